package embedded_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// urlOf is how an operator names a server.
func urlOf(a hosted.Access) string {
	u := url.URL{Scheme: "postgresql", User: url.UserPassword(a.User, a.Password), Host: a.Address(), Path: "/" + a.Database}
	return u.String()
}

// An embeddedBroker is the embedded broker over one data folder, which a test opens
// with one environment after the other.
type embeddedBroker struct {
	*testing.T
	data string
	open *embedded.Broker
	log  *testserver.Output
}

const brokerUser, brokerPassword = "platform", "a-password-of-a-platform"

func newEmbedded(t *testing.T) *embeddedBroker {
	b := &embeddedBroker{T: t, data: t.TempDir()}
	t.Cleanup(b.end)
	return b
}

func (b *embeddedBroker) end() {
	if b.open != nil {
		b.open.Close()
		b.open = nil
	}
}

// start starts the broker with an environment, after it has ended it.
func (b *embeddedBroker) start(environment map[string]string) {
	b.Helper()
	b.end()
	all, err := offeringfiles.Load("")
	expect.OK(b, err)
	b.log = &testserver.Output{}
	b.open, err = embedded.Open(embedded.Settings{Data: b.data, Username: brokerUser, Password: brokerPassword,
		Getenv: func(name string) string { return environment[name] }}, all, slog.New(slog.NewTextHandler(b.log, nil)))
	expect.OK(b, err)
}

// ask gives the body of the answer, which has to have one of the statuses.
func (b *embeddedBroker) ask(method, path, body string, want ...int) map[string]any {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), method, "/v2/"+path, strings.NewReader(body))
	r.SetBasicAuth(brokerUser, brokerPassword)
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	b.open.Handler.ServeHTTP(w, r)
	raw, _ := io.ReadAll(w.Result().Body)
	for _, status := range want {
		if w.Code == status {
			var out map[string]any
			if err := json.Unmarshal(raw, &out); err != nil {
				b.Fatalf("%s %s: %s", method, path, raw)
			}
			return out
		}
	}
	b.Fatalf("%s %s: %d %s, want %v\n%s", method, path, w.Code, raw, want, b.log)
	return nil
}

// ids are those of a plan.
func (b *embeddedBroker) ids(offering, plan string) (service, id string, offers bool) {
	b.Helper()
	services, _ := b.ask("GET", "catalog", "", 200)["services"].([]any)
	for _, s := range services {
		s := s.(map[string]any)
		for _, p := range s["plans"].([]any) {
			if p := p.(map[string]any); s["name"] == offering && p["name"] == plan {
				return s["id"].(string), p["id"].(string), true
			}
		}
	}
	return "", "", false
}

// settled waits until the instance's operation has ended, and tells how.
func (b *embeddedBroker) settled(path string) string {
	b.Helper()
	for range 600 {
		state, _ := b.ask("GET", path+"/last_operation", "", 200, 410)["state"].(string)
		if state != "in progress" {
			return state
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatalf("the operation does not end:\n%s", b.log)
	return ""
}

// provision orders an instance and waits for it.
func (b *embeddedBroker) provision(path, service, plan string) {
	b.Helper()
	b.ask("PUT", path+"?accepts_incomplete=true",
		fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`, service, plan), 201, 202)
	if state := b.settled(path); state != "succeeded" {
		b.Fatalf("the provision has ended %q:\n%s", state, b.log)
	}
}

// bind gives a binding's credentials.
func (b *embeddedBroker) bind(path, service, plan string) map[string]any {
	b.Helper()
	a := b.ask("PUT", path+"?accepts_incomplete=true", fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, plan), 201, 202)
	if a["credentials"] == nil {
		if state := b.settled(path); state != "succeeded" {
			b.Fatalf("the bind has ended %q:\n%s", state, b.log)
		}
		a = b.ask("GET", path, "", 200)
	}
	credentials, _ := a["credentials"].(map[string]any)
	return credentials
}

// remove deletes what is at the path and waits for it.
func (b *embeddedBroker) remove(path, service, plan string) {
	b.Helper()
	b.ask("DELETE", path+"?accepts_incomplete=true&service_id="+service+"&plan_id="+plan, "", 200, 202, 410)
	if state := b.settled(path); state != "" && state != "succeeded" {
		b.Fatalf("the deletion has ended %q:\n%s", state, b.log)
	}
}

// `serve --postgres URL`: without it nothing is offered, with it databases work; and
// once there are some, the offering stays without the server: operations wait until it is
// named again, and the log says what to do.
func TestPostgresByURL(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "17")
	access := server.Access()
	given := map[string]string{"LONGSHORE_POSTGRES_URL": urlOf(access)}
	b := newEmbedded(t)
	b.start(nil)
	if _, _, offers := b.ids("postgres", "small"); offers || !strings.Contains(b.log.String(), "--postgres is not given") {
		t.Errorf("without a server it is offered: %v, and the log says:\n%s", offers, b.log)
	}
	if _, _, offers := b.ids("demo", "sync"); !offers {
		t.Error("the rest is not offered")
	}

	b.start(given)
	if strings.Contains(b.log.String(), "cannot be used") {
		t.Errorf("a server that has nothing yet is said to be no good:\n%s", b.log)
	}
	service, plan, _ := b.ids("postgres", "small")
	b.provision("service_instances/i", service, plan)
	credentials := b.bind("service_instances/i/service_bindings/b", service, plan)
	uri, _ := credentials["uri"].(string)
	conn, code := pgtest.Login(t, uri)
	if code != "" {
		t.Fatalf("the credentials are refused: %s", code)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE t (n int); INSERT INTO t VALUES (1)"); err != nil {
		t.Error(err)
	}

	b.start(nil) // nobody names the server
	if _, _, offers := b.ids("postgres", "small"); !offers {
		t.Error("an offering with an instance has gone")
	}
	b.ask("DELETE", "service_instances/i/service_bindings/b?accepts_incomplete=true&service_id="+service+"&plan_id="+plan, "",
		200, 202)
	for range 600 {
		if strings.Contains(b.log.String(), "a call met a fault") || strings.Contains(b.log.String(), "will be repeated") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if !strings.Contains(b.log.String(), "--postgres is not given: give it, or LONGSHORE_POSTGRES_URL") {
		t.Errorf("the operator is not told what to do:\n%s", b.log)
	}
	if _, code := pgtest.Login(t, uri); code != "" {
		t.Errorf("an unbind that waits has done something: %s", code)
	}

	b.start(given)
	b.remove("service_instances/i/service_bindings/b", service, plan)
	if _, code := pgtest.Login(t, uri); code != "28P01" {
		t.Errorf("after the unbind the login ends with %q", code)
	}
	b.remove("service_instances/i", service, plan)
	if databases, roles := server.Made(access.User); databases != 0 || roles != 0 {
		t.Errorf("%d databases and %d roles are left", databases, roles)
	}
	if strings.Contains(b.log.String(), access.Password) {
		t.Error("the password of the broker's login is in the log")
	}
}

// A server that refuses the broker's login, or is not there, is said at the start, before
// anything is asked of it; the rest is offered.
func TestAServerThatIsNoGood(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "17")
	wrong := server.Access()
	wrong.Password = "not-the-password"
	nobody, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.OK(t, err)
	_ = nobody.Close()
	b := newEmbedded(t)
	for given, says := range map[string]string{
		urlOf(wrong): "it refuses the broker's login: give its name and its password of today",
		"postgresql://longshore:secret@" + nobody.Addr().String() + "/longshore": "nobody answers at its address",
	} {
		b.start(map[string]string{"LONGSHORE_POSTGRES_URL": given})
		log := b.log.String()
		if !strings.Contains(log, "level=ERROR") || !strings.Contains(log, says) || strings.Contains(log, wrong.Password) {
			t.Errorf("at the start the log says\n%s\nwant: %s", log, says)
		}
		if _, _, offers := b.ids("demo", "sync"); !offers {
			t.Error("the rest is not offered")
		}
	}
}

// Where a server is comes from a flag before the environment, its password perhaps
// from a file; a setting that cannot be meant is refused with its remedy, and never repeated.
func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	const anURL = "LONGSHORE_POSTGRES_URL"
	const aFile = "LONGSHORE_POSTGRES_PASSWORD_FILE"
	dir := t.TempDir()
	password, empty := filepath.Join(dir, "password"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{password: "canary\n", empty: "\n"} {
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for name, test := range map[string]struct {
		flag        string
		environment map[string]string
		says        string // in the error; empty for none
	}{
		"Nothing":   {},
		"Flag":      {flag: "postgresql://u:canary@h"},
		"Variable":  {environment: map[string]string{anURL: "postgres://u:canary@h"}},
		"FlagFirst": {flag: "postgresql://u@h", environment: map[string]string{anURL: "canary", aFile: password}},
		"File":      {environment: map[string]string{anURL: "postgresql://u@h", aFile: password}},
		"Wrong":     {flag: "mysql://u:canary@h", says: "--postgres (or LONGSHORE_POSTGRES_URL) does not begin with"},
		"FileAlone": {environment: map[string]string{aFile: password}, says: aFile + " is set, and no server"},
		"TwoPasswords": {environment: map[string]string{anURL: "postgresql://u:canary@h", aFile: password},
			says: "leave it out of the URL"},
		"NoFile": {environment: map[string]string{anURL: "postgresql://u@h", aFile: password + "x"},
			says: "without a password"},
		"Empty":   {environment: map[string]string{anURL: "postgresql://u@h", aFile: empty}, says: "it is empty"},
		"Secrets": {environment: map[string]string{"LONGSHORE_POSTGRES_SECRETS": "x"}, says: "give name=ARN"},
	} {
		_, err := embedded.Settings{Listen: ":0", Data: "d", Servers: map[string]string{"postgres": test.flag}}.
			Complete(func(name string) string { return test.environment[name] })
		said := fmt.Sprint(err)
		if (err == nil) != (test.says == "") || !strings.Contains(said, test.says) || strings.Contains(said, "canary") {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
		if _, ok := errors.AsType[*advice.Error](err); err != nil && !ok {
			t.Errorf("%s: no remedy: %v", name, err)
		}
	}
}

// A plan of a server that one machine cannot have is refused at the start: its orders would wait for ever.
func TestAPlanOfAnotherServer(t *testing.T) {
	t.Parallel()
	const offering = `id: o
name: mine
description: d
provider: postgres
bindable: true
bindings_retrievable: true
plans:
- id: p
  name: p
  description: d
  free: true
  asynchronous: allowed
  asynchronous_binding: allowed
  settings: {target: %s}
`
	for target, says := range map[string]string{
		"big":     `plan p of offering mine names the server "big": leave its setting target out`,
		"default": "<nil>",
	} {
		dir := t.TempDir()
		expect.OK(t, os.Mkdir(filepath.Join(dir, "mine"), 0o700))
		expect.OK(t, os.WriteFile(filepath.Join(dir, "mine", "offering.yaml"), fmt.Appendf(nil, offering, target), 0o600))
		given := embedded.Settings{Listen: ":0", Data: t.TempDir(),
			Servers: map[string]string{"postgres": "postgresql://u@127.0.0.1:1"}}
		b, err := embedded.Open(expect.Get(given.Complete(func(string) string { return "" }))(t),
			expect.Get(offeringfiles.Load(dir))(t), slog.New(slog.DiscardHandler))
		if err == nil {
			b.Close()
		}
		expect.Says(t, target, fmt.Sprint(err), says)
	}
}

// A password in the command line is warned about, and not repeated.
func TestPasswordsThatEveryoneSees(t *testing.T) {
	t.Parallel()
	for flag, warns := range map[string]bool{"postgresql://u:canary@127.0.0.1:1": true, "postgresql://u@127.0.0.1:1": false} {
		given := embedded.Settings{Listen: ":0", Data: t.TempDir(), Servers: map[string]string{"postgres": flag}}
		s, err := given.Complete(func(string) string { return "" })
		expect.OK(t, err)
		all, err := offeringfiles.Load("")
		expect.OK(t, err)
		var log testserver.Output
		e, err := embedded.Open(s, all, slog.New(slog.NewTextHandler(&log, nil)))
		expect.OK(t, err)
		e.Close()
		if got := strings.Contains(log.String(), "every user of this machine"); got != warns ||
			strings.Contains(log.String(), "canary") {
			t.Errorf("%v: warned %v, and the log says:\n%s", warns, got, log.String())
		}
	}
}
