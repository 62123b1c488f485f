package embedded

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valkey-io/valkey-go"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/testserver"
	"github.com/longshore/longshore/internal/test/valkeytest"
)

// urlOf is how an operator names a server.
func urlOf(a hosted.Access) string {
	u := url.URL{Scheme: "postgresql", User: url.UserPassword(a.User, a.Password), Host: a.Address(), Path: "/" + a.Database}
	return u.String()
}

func nothingIsLeft(t *testing.T, s *pgtest.Server, a hosted.Access) {
	t.Helper()
	databases, roles := s.Made(a.User)
	expect.Same(t, "the databases and roles that are left", [2]int{}, [2]int{databases, roles})
}

// `serve --postgres URL`, with a login as the guide has it made: without it nothing is offered, with it databases and the guide's
// examples work; and once there are some, the offering stays without the server: operations wait until it is named again, and
// the log says what to do.
func TestPostgresByURL(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t, "17")
	access := guided(t, server)
	given := map[string]string{"LONGSHORE_POSTGRES_URL": urlOf(access)}
	h := newHistory(t)
	h.start(nil)
	h.offers("postgres", "small", false)
	expect.Says(t, "the log without a server", h.log.String(), "--postgres is not given")
	h.offers("demo", "sync", true)

	h.start(given)
	expect.Never(t, "of a server that has nothing yet", h.log.String(), "cannot be used")
	service, plan := h.plan("postgres", "small")
	h.provision("i", service, plan)
	credentials := h.bind("i/service_bindings/b", service, plan)
	uri, _ := credentials["uri"].(string)
	lets := func(when, want string) *pgx.Conn {
		t.Helper()
		conn, code := pgtest.Login(t, uri)
		if expect.Same(t, when+" the login ends with", want, code); conn == nil && want == "" {
			t.FailNow() // there is nothing to run statements on
		}
		return conn
	}
	expect.Get(lets("after the bind", "").Exec(t.Context(), "CREATE TABLE t (n int); INSERT INTO t VALUES (1)"))(t)
	t.Run("Examples", func(t *testing.T) { examples(t, credentials) })

	h.start(nil) // nobody names the server
	h.offers("postgres", "small", true)
	h.ask("", "DELETE", "i/service_bindings/b"+hints(service, plan)+"&accepts_incomplete=true", "", 200, 202)
	for range 600 {
		if log := h.log.String(); strings.Contains(log, "a call met a fault") || strings.Contains(log, "will be repeated") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	expect.Says(t, "what the operator is told", h.log.String(), "--postgres is not given: give it, or LONGSHORE_POSTGRES_URL")
	lets("after an unbind that waits", "")

	h.start(given)
	h.remove("i/service_bindings/b", service, plan)
	lets("after the unbind", "28P01")
	h.remove("i", service, plan)
	nothingIsLeft(t, server, access)
	expect.Never(t, "the log", h.log.String(), access.Password)
}

// A server that refuses the broker's login, or is not there, is said at the start, before
// anything is asked of it; the rest is offered.
func TestAServerThatIsNoGood(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, "17")
	wrong := server.Access()
	wrong.Password = "not-the-password"
	port := expect.Get(testserver.FreePort())(t)
	h := newHistory(t)
	for given, says := range map[string]string{
		urlOf(wrong): "it refuses the broker's login: give its current name and password",
		"postgresql://longshore:secret@127.0.0.1:" + port + "/longshore": "nobody answers at its address",
	} {
		h.start(map[string]string{"LONGSHORE_POSTGRES_URL": given})
		expect.Says(t, "the log at the start", h.log.String(), "level=ERROR", says)
		expect.Never(t, "the log at the start", h.log.String(), wrong.Password)
		h.offers("demo", "sync", true)
	}
}

// deadServer is the URL of a server that is not there.
const deadServer = "postgresql://longshore:secret@127.0.0.1:1/longshore"

// A server that was used and is not named any more may have been restored: a look at the servers says that it was not
// looked at, whether the broker runs or not, and what was found of the others.
func TestReconcileNamesServersThatAreNotSet(t *testing.T) {
	t.Parallel()
	h := newHistory(t)
	h.start(map[string]string{"LONGSHORE_POSTGRES_URL": deadServer})
	service, plan := h.plan("postgres", "small")
	h.ask("", "PUT", "i?accepts_incomplete=true", order(service, plan), 202)
	h.start(nil)
	looks := func(when string, console operator.Link, scope operator.Scope, others ...string) {
		t.Helper()
		all, err := operator.Reconcile.Ask(t.Context(), console, scope)
		expect.Says(t, when+" it", fmt.Sprint(err), "start the broker if it is stopped", `"postgres"`,
			"--postgres is not given: give it, or LONGSHORE_POSTGRES_URL")
		var seen []string
		for _, r := range all {
			seen = append(seen, r.Provider)
		}
		expect.Same(t, when+" it has looked at", others, seen)
	}
	looks("while the broker runs,", h.open.console.Call, operator.Scope{})
	looks("while the broker runs, of the provider,", h.open.console.Call, operator.Scope{Provider: "postgres"})
	h.end()
	given := func(name string) string { // Valkey comes after PostgreSQL
		return map[string]string{"LONGSHORE_VALKEY_URL": "redis://u:secret@127.0.0.1:1"}[name]
	}
	console, closing, err := Console(t.Context(), h.data, "", given, nil)
	expect.OK(t, err)
	defer closing()
	looks("while it does not,", console, operator.Scope{}, "valkey")
	looks("while it does not, of the provider,", console, operator.Scope{Provider: "postgres", Target: "default"})
}

// Where a server is comes from a flag before the environment, its password perhaps
// from a file; a setting that cannot be meant is refused with its remedy, and never repeated.
func TestServerSettings(t *testing.T) {
	t.Parallel()
	const anURL, aFile, notGiven = "LONGSHORE_POSTGRES_URL", "LONGSHORE_POSTGRES_PASSWORD_FILE", "-"
	dir := t.TempDir()
	password, empty := filepath.Join(dir, "password"), filepath.Join(dir, "empty")
	for path, text := range map[string]string{password: "canary\n", empty: "\n"} {
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	type environment = map[string]string
	check := func(server, flag string, given environment, says string) {
		t.Helper()
		flags := map[string]string{}
		if flag != notGiven {
			flags[servers()[server].envURL()] = flag
		}
		_, err := Settings{Listen: ":0", Data: "d", Flags: flags}.Complete(func(name string) string { return given[name] })
		said := fmt.Sprint(err)
		if (err == nil) != (says == "") || !strings.Contains(said, says) || strings.Contains(said, "canary") {
			t.Errorf("%s %v: %v, want %q", flag, given, err, says)
		}
		if _, ok := errors.AsType[*advice.Error](err); err != nil && !ok {
			t.Errorf("%s %v: no remedy: %v", flag, given, err)
		}
	}
	for _, test := range []struct {
		flag  string
		given environment
		says  string // in the error; empty for none
	}{
		{notGiven, nil, ""},
		{"postgresql://u:canary@h", nil, ""},
		{notGiven, environment{anURL: "postgres://u:canary@h"}, ""},
		{"postgresql://u@h", environment{anURL: "canary", aFile: password}, ""},
		{"", environment{anURL: "mysql://u:canary@h"}, ""}, // an empty flag is a given one
		{"", environment{anURL: "postgresql://u@h", aFile: password}, aFile + " is set, and no server"},
		{notGiven, environment{anURL: "postgresql://u@h", aFile: password}, ""},
		{"mysql://u:canary@h", nil, "--postgres (or LONGSHORE_POSTGRES_URL) does not begin with"},
		{notGiven, environment{anURL: "mysql://u:canary@h"}, "does not begin with"},
		{notGiven, environment{aFile: password}, aFile + " is set, and no server"},
		{notGiven, environment{anURL: "postgresql://u:canary@h", aFile: password}, "leave it out of the URL"},
		{notGiven, environment{anURL: "postgresql://u@h", aFile: password + "x"}, "without a password"},
		{notGiven, environment{anURL: "postgresql://u@h", aFile: empty}, "it is empty"},
		{notGiven, environment{"LONGSHORE_POSTGRES_SECRETS": "x"}, "give name=ARN"},
	} {
		check("postgres", test.flag, test.given, test.says)
	}
	for flag, says := range map[string]string{
		"redis://u:canary@h": "", "valkey://u:canary@h": "", "rediss://u:canary@h:7": "", "valkeys://u:canary@h": "",
		"redis://u:canary@h?sslmode=verify-full": "",
		"rediss://u:canary@h?sslmode=require":    "give one of disable, verify-full",
		"redis://u:canary@h/1":                   "names a database",
		"redis://:canary@h":                      "names no user",
		"postgresql://u:canary@h":                "does not begin with redis://",
		"embedded":                               "the broker has no such server of its own",
	} {
		check("valkey", flag, nil, says)
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
		err := over(t, "postgresql://u@127.0.0.1:1", dir, slog.DiscardHandler)
		expect.Says(t, target, fmt.Sprint(err), says)
	}
}

// over starts a broker over a PostgreSQL server, with the offerings of a folder, and ends it.
func over(t *testing.T, flag, offerings string, log slog.Handler) error {
	t.Helper()
	given := Settings{Listen: ":0", Data: t.TempDir(), Flags: map[string]string{"LONGSHORE_POSTGRES_URL": flag}}
	e, err := Open(expect.Get(given.Complete(func(string) string { return "" }))(t),
		expect.Get(offeringfiles.Load(offerings))(t), slog.New(log))
	if err == nil {
		e.Close()
	}
	return err
}

// A password in the command line is warned about, and not repeated.
func TestPasswordsThatEveryoneSees(t *testing.T) {
	t.Parallel()
	for flag, warns := range map[string]bool{"postgresql://u:canary@127.0.0.1:1": true, "postgresql://u@127.0.0.1:1": false} {
		var log testserver.Output
		expect.OK(t, over(t, flag, "", slog.NewTextHandler(&log, nil)))
		expect.Same(t, "it warns:\n"+log.String(), warns, strings.Contains(log.String(), "every user of this machine"))
		expect.Never(t, "the log", log.String(), "canary")
	}
}

// A server behind TLS, by rediss:// and its certificate: apps get in with what they are given, until the unbind. Without the URL
// the offering stays, as there is an instance.
func TestValkeyByTLS(t *testing.T) {
	t.Parallel()
	server := valkeytest.Start(t, "app")
	access := server.Access()
	port, ca := server.TLS(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	expect.OK(t, os.WriteFile(file, []byte(ca), 0o600))
	from := url.URL{Scheme: "rediss", User: url.UserPassword(access.User, access.Password),
		Host: fmt.Sprintf("%s:%d", access.Host, port), RawQuery: url.Values{"sslrootcert": {file}}.Encode()}
	given := map[string]string{"LONGSHORE_VALKEY_URL": from.String()}
	h := newHistory(t)
	h.start(given)
	service, plan := h.plan("valkey", "shared")
	h.provision("i", service, plan)
	got := h.bind("i/service_bindings/b", service, plan)
	options, err := valkey.ParseURL(got["uri"].(string))
	if err != nil || options.TLSConfig == nil {
		t.Fatalf("the uri has no TLS: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(got["ca"].(string)))
	options.TLSConfig, options.DisableCache = &tls.Config{ServerName: access.Host, RootCAs: roots,
		MinVersion: tls.VersionTLS12}, true
	enter := func() error {
		client, err := valkey.NewClient(options)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Do(t.Context(), client.B().Set().Key(got["prefix"].(string)+"k").Value("v").Build()).Error()
	}
	expect.OK(t, enter())

	h.start(nil)
	h.offers("valkey", "shared", true) // as there is an instance
	h.start(given)
	h.remove("i/service_bindings/b", service, plan)
	expect.Says(t, "a login after the unbind", fmt.Sprint(enter()), "WRONGPASS")
	h.remove("i", service, plan)
}
