package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// A started is an embedded broker that was started over a folder, and what it logged at that.
type started struct {
	*testing.T
	broker *embedded.Broker
	log    *strings.Builder
}

// startAs starts a broker, and stops it with the test.
func startAs(t *testing.T, as embedded.Settings, offered *catalog.Catalog) (s *started, err error) {
	t.Helper()
	s = &started{t, nil, &strings.Builder{}}
	s.broker, err = embedded.Open(as, offered, slog.New(slog.NewTextHandler(s.log, nil)))
	if err == nil {
		t.Cleanup(s.stop)
	}
	return s, err
}

// startIn starts one with what the environment says who logs in, both empty for nothing.
func startIn(t *testing.T, dir, username, password string) (*started, error) {
	t.Helper()
	return startAs(t, embedded.Settings{Data: dir, Username: username, Password: password}, testkit.Demo())
}

// startedOnce is a folder on which a broker of the platform cf was started.
func startedOnce(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	mustStart(t, dir, "cf", first).stop()
	return dir
}

func mustStart(t *testing.T, dir, username, password string) *started {
	t.Helper()
	return expect.Get(startIn(t, dir, username, password))(t)
}

func (s *started) stop() {
	if s.broker != nil {
		s.broker.Close()
		s.broker = nil
	}
}

// catalog asks for the catalog below a path.
func (s *started) catalog(path, username, password string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path+"/v2/catalog", nil)
	r.SetBasicAuth(username, password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	s.broker.Handler.ServeHTTP(w, r)
	return w
}

// lets requires the status of a login: 200, or 401, or 404 for another path.
func (s *started) lets(path, username, password string, want int) *started {
	s.Helper()
	expect.Same(s, username+" with the password "+password+" is answered", want, s.catalog(path, username, password).Code)
	return s
}

// say calls a platform command on a folder, and gives what the pattern finds in what it says.
func say(t *testing.T, dir, pattern string, args ...string) string {
	t.Helper()
	status, out, diagnostics := called(t, nil, append(append([]string{"platform"}, args...), "--data", dir)...)
	found := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if status != 0 || found == nil {
		t.Fatalf("longshore platform %q: exit status %d, and nothing like %q:\n%s%s", args, status, pattern, out, diagnostics)
	}
	return found[len(found)-1]
}

func credentialsOf(dir string) string { return filepath.Join(dir, "credentials.json") }

// edit changes members of the file of the platforms; one that is nil is removed.
func edit(t *testing.T, dir string, change func(file map[string]any)) {
	t.Helper()
	raw, err := os.ReadFile(credentialsOf(dir))
	file := map[string]any{}
	expect.OK(t, errors.Join(err, json.Unmarshal(raw, &file)))
	change(file)
	raw, err = json.Marshal(file)
	expect.OK(t, errors.Join(err, os.WriteFile(credentialsOf(dir), raw, 0o600)))
}

const first, other = "the-first-password", "quite-another-password"

// refuses requires that a start ends with a message about a setting that says
// what to do, tells no password, and leaves the folder as it is.
func refuses(t *testing.T, dir, username, password, setting string, wants ...string) {
	t.Helper()
	before, _ := os.ReadFile(credentialsOf(dir))
	s, err := startIn(t, dir, username, password)
	var wrong *advice.Error
	if !errors.As(err, &wrong) || wrong.Name != setting {
		t.Fatalf("the start ended with %v", err)
	}
	has(t, err.Error(), append(wants, "unset both")...)
	expect.Never(t, "what is told", err.Error()+s.log.String(), first, other)
	after, _ := os.ReadFile(credentialsOf(dir))
	expect.Same(t, "the folder's credentials", string(before), string(after))
}

// AUTH-01: the environment gives a new folder its first credential; afterwards it must agree with the folder.
func TestEnvironmentGivesTheFirstCredentialAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my data")
	mustStart(t, dir, "cf", first).lets("", "cf", first, 200).stop()
	for _, again := range [][2]string{{"cf", first}, {"", ""}} {
		mustStart(t, dir, again[0], again[1]).lets("", "cf", first, 200).lets("", "broker", first, 401).stop()
	}
	refuses(t, dir, "cf", other, app.EnvPassword, "is not the password", "platform rotate default --data '"+dir+"'")
	refuses(t, dir, "korifi", first, app.EnvUsername, `logs in as "cf"`, "platform rotate default")
}

// AUTH-08: what rotate prints is true of the broker, also where the environment still names the old password.
func TestRotateOfTheDefaultPlatform(t *testing.T) {
	dir := startedOnce(t)
	said := say(t, dir, `(?s).*`, "rotate", "default", "--now", "--overlap", "2m")
	next := regexp.MustCompile(`: (\S+)\n`).FindStringSubmatch(said)[1]
	end, err := time.Parse(time.RFC3339, regexp.MustCompile(`valid until (\S+):`).FindStringSubmatch(said)[1])
	if left := time.Until(end); err != nil || left < time.Minute || left > 2*time.Minute {
		t.Errorf("the end of the old password: %v, %v", end, err)
	}
	has(t, say(t, dir, `(?s).*`, "list", "-o", "wide"), "cf", end.Format(time.RFC3339))

	// In the overlap a start with the old one goes on, and says so.
	s := mustStart(t, dir, "cf", first)
	s.lets("", "cf", first, 200)
	s.lets("", "cf", next, 200)
	has(t, s.log.String(), "level=WARN", app.EnvPassword, "old password", end.Format("2006-01-02T15:04:05"))
	s.stop()

	// The printed end has passed.
	edit(t, dir, func(file map[string]any) {
		old := file["previous"].([]any)[0].(map[string]any)
		expect.Same(t, "it is kept until", any(end.Format(time.RFC3339)), old["until"])
		old["until"] = time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	})
	refuses(t, dir, "cf", first, app.EnvPassword, "ended at", "rotate default")
	mustStart(t, dir, "cf", next).lets("", "cf", first, 401).lets("", "cf", next, 200).stop()
	mustStart(t, dir, "", "").lets("", "cf", next, 200)
}

// A rotation without an overlap ends every earlier password at once. An overlap that is over when the new password is shown is
// refused, before anything is changed.
func TestRotateWithoutAnOverlap(t *testing.T) {
	if minOverlap <= platforms.Spread {
		t.Fatalf("an overlap of %v is taken, and after it some processes do not know of it for %v", minOverlap,
			platforms.Spread-minOverlap)
	}
	dir := startedOnce(t)
	for _, overlap := range []string{"1s", "65s", "1m59s", "-1h"} {
		for _, now := range []bool{true, false} {
			fails(t, 2, "give 2m or more, or 0s", "platform", "rotate", "default", "--data", dir, "--overlap", overlap,
				fmt.Sprint("--now=", now))
		}
	}
	mustStart(t, dir, "cf", first).lets("", "cf", first, 200).stop()
	second := say(t, dir, `: (\S+)\nThe old password is valid until`, "rotate", "default", "--now", "--overlap", "1h")
	next := say(t, dir, `: (\S+)\nEvery earlier password is refused, in a minute at the latest`, "rotate", "default",
		"--now", "--overlap", "0s")
	refuses(t, dir, "cf", first, app.EnvPassword)
	mustStart(t, dir, "", "").lets("", "cf", first, 401).lets("", "cf", second, 401).lets("", "cf", next, 200)
}

// TestPlatformsAreAsTheCommandsSay proves that the broker does what add, remove and list say.
func TestPlatformsAreAsTheCommandsSay(t *testing.T) {
	dir := startedOnce(t)
	// A platform that is named like the user of the environment is refused, and nothing is blocked by it.
	fails(t, 1, `the user name "cf" is that of platform "default": choose another name`, "platform", "add", "cf", "--data", dir)
	eu := say(t, dir, `password +(\S+)`, "add", "cf-eu")
	user := say(t, dir, `user +(\S+)`, "add", "korifi", "--path", "/korifi", "--offering", "demo/async")
	again := func(what string, path, user, password string, want int) {
		t.Helper()
		mustStart(t, dir, "cf", first).lets(path, user, password, want).lets("", "cf", first, 200).
			lets("", "cf-eu", eu, 200).stop()
	}
	expect.Same(t, "the user is", "korifi", user)
	next := say(t, dir, `: (\S+)\n`, "rotate", "korifi", "--now")
	again("rotated", "/korifi", "korifi", next, 200)
	say(t, dir, `(?m)^default +default +cf +- +everything +- +-$`, "list")
	say(t, dir, `(?m)^korifi +p-\S+ +korifi +/korifi +demo/async +in [0-9]+[hm] +-$`, "list")
	say(t, dir, "Platform korifi is refused", "remove", "korifi")
	again("removed", "/korifi", "korifi", next, 401)
	say(t, dir, `(?m)^korifi +p-\S+ +- +/korifi +demo/async +- +[0-9]s ago$`, "list") // no user who cannot log in
	password := say(t, dir, `(?s)password +(\S+)\n  sees +demo/async\n`, "add", "korifi")
	again("added again, with its path", "/korifi", "korifi", password, 200)
	again("its path is its only one", "", "korifi", password, 404)
	say(t, dir, "Platform korifi is refused", "remove", "korifi")
	password = say(t, dir, `(?s)password +(\S+)\n  sees +everything\n`, "add", "korifi", "--path", "", "--offering", "")
	again("added again, without", "", "korifi", password, 200)

	// The default platform goes: who still sets its login is told.
	say(t, dir, "Platform default is refused", "remove", "default")
	refuses(t, dir, "cf", first, app.EnvUsername, "was removed", "longshore platform add default")
	mustStart(t, dir, "", "").lets("", "cf", first, 401).lets("", "korifi", password, 200).stop()
	user, password = say(t, dir, `user +(\S+)`, "add", "cf"), say(t, dir, `password +(\S+)`, "add", "default")
	mustStart(t, dir, "default", password).lets("", "default", password, 200)
	expect.Same(t, "the user name of a platform that was removed is not free again", "cf", user)
}

// A platform of which the broker has lost all knowledge but its records gets them back by its id, and nobody else does.
func TestPlatformAddWithItsID(t *testing.T) {
	dir := startedOnce(t)
	say(t, dir, "Platform korifi may", "add", "korifi")
	id := say(t, dir, `korifi +(p-\S+)`, "list")
	edit(t, dir, func(file map[string]any) { delete(file, "platforms") })

	for _, wrong := range []string{"default", "p-" + strings.Repeat("x", 40), "Not/Valid"} {
		fails(t, 1, `id "`+wrong+`" is `, "platform", "add", "korifi", "--id", wrong, "--data", dir)
	}
	password := say(t, dir, `password +(\S+)`, "add", "korifi", "--id", id)
	expect.Same(t, "its id", id, say(t, dir, `korifi +(p-\S+)`, "list"))
	mustStart(t, dir, "", "").lets("", "korifi", password, 200)
}

// Logins that a later program wrote are not read, and not written over.
func TestLoginsOfALaterVersion(t *testing.T) {
	dir := startedOnce(t)
	edit(t, dir, func(file map[string]any) { file["format"] = 9 })
	expect.Says(t, "a start", fmt.Sprint(expect.Err(startIn(t, dir, "cf", first))), "newer")
	fails(t, 1, "later version", "platform", "rotate", "default", "--data", dir)
}

// Only a standard output that is the journal counts as one, and not that of a shell which a service has started.
func TestJournalsAreRecognized(t *testing.T) {
	info := expect.Get(os.Stdout.Stat())(t)
	is := info.Sys().(*syscall.Stat_t)
	for stream, want := range map[string]bool{fmt.Sprintf("%d:%d", is.Dev, is.Ino): true, "": false, "9:31415": false} {
		expect.Same(t, fmt.Sprintf("JOURNAL_STREAM=%q is the standard output", stream), want, journaled(stream))
	}
}

// A password that was generated is shown, as nobody knows it; one that was set is not. None goes into a journal.
func TestWelcomeTellsNoPasswordThatWasSet(t *testing.T) {
	dir := t.TempDir()
	into := func(journal bool, username, password string) string {
		s := mustStart(t, dir, username, password)
		defer s.stop()
		var out strings.Builder
		welcome(&out, "http://127.0.0.1:1", s.broker, embedded.Settings{Username: username, Password: password, Data: "my data"},
			journal, "http://link")
		return out.String()
	}
	for _, env := range [][2]string{{"cf", first}, {"", ""}} {
		said := into(false, env[0], env[1])
		has(t, said, "user      cf")
		expect.Never(t, "what is printed", said, first)
	}
	next := say(t, dir, `: (\S+)\n`, "rotate", "default", "--now")
	has(t, into(false, "", ""), "user      cf", "password  "+next, "cf:"+next, "data      my data\n",
		"console --data 'my data'\n")
	logged := into(true, "", "")
	has(t, logged, "user      cf", "longshore platform rotate default --data 'my data'`")
	expect.Never(t, "what a journal keeps", logged, next)
	say(t, dir, `user`, "add", "korifi")
	say(t, dir, `refused`, "remove", "default")
	has(t, into(false, "", ""), "platform list")
}

// clientOf is the dashboard client that the default platform is to make for an offering.
func (s *started) clientOf(password string) (c catalog.DashboardClient) {
	s.Helper()
	w := s.catalog("", "cf", password)
	var shown struct {
		Services []struct {
			Client *catalog.DashboardClient `json:"dashboard_client"`
		} `json:"services"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil || len(shown.Services) == 0 {
		s.Fatalf("the catalog is %q", w.Body)
	}
	if found := shown.Services[0].Client; found != nil {
		c = *found
	}
	return c
}

// A sign-on survives restarts and changes of its hosts with the same client, lies sealed in the folder, and goes with a lost key,
// which takes no platform's access.
func TestSignOnsAreKeptSealed(t *testing.T) {
	dir := t.TempDir()
	shown := func() catalog.DashboardClient {
		t.Helper()
		as := embedded.Settings{Data: dir, Username: "cf", Password: first, Origin: "https://broker.example.com"}
		s := expect.Get(startAs(t, as, testkit.Demo()))(t)
		defer s.stop()
		s.lets("", "cf", first, 200)
		return s.clientOf(first)
	}
	expect.Same(t, "the client to make, without a sign-on or beside one that was made by hand", "", shown().ID)
	say(t, dir, "People of platform default sign on", "signon", "default", "--host", "api.example.com", "--host",
		"https://login.example.com")
	made := shown()
	if made.ID == "" || made.Secret == "" || made.RedirectURI != "https://broker.example.com/dashboard/callback" {
		t.Errorf("the client is %q with %d letters, back to %q", made.ID, len(made.Secret), made.RedirectURI)
	}
	say(t, dir, "", "signon", "default", "--host", "api.example.com")
	login := filepath.Join(t.TempDir(), "login.json")
	write := func(path, text string) {
		t.Helper()
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	const whole = `{"issuer":"https://login.example.com","client_id":"x","client_secret":"canary-7f",` +
		`"rules":[{"claim":"g","value":"v",`
	write(login, whole+`"platform":"default"}]}`)
	say(t, dir, "People sign on by https://login.example.com", "oidc", login)
	isSame := func(when string) {
		t.Helper()
		if again := shown(); again.ID != made.ID || again.Secret != made.Secret {
			t.Errorf("%s the client is %q, was %q", when, again.ID, made.ID)
		}
	}
	isSame("after a restart")
	raw := string(expect.Get(os.ReadFile(credentialsOf(dir)))(t))
	has(t, raw, `"oidc"`)
	expect.Never(t, "the folder", raw, "canary")

	// Refusals change nothing, and repeat no secret.
	for _, wrong := range []string{whole + `"platform":"unknown"}]}`,
		whole + `"console":"admin"}]}`, whole + `"organisation":"x","platform":"*"}]}`,
		whole + `"platform":""}]}`, strings.Replace(whole, "https", "http", 1) + `"platform":"*"}]}`, whole} {
		write(login, wrong)
		status, out, diagnostics := called(t, nil, "platform", "oidc", login, "--data", dir)
		if status == 0 || strings.Contains(out+diagnostics, "canary") {
			t.Errorf("%s: exit status %d, %s%s", wrong, status, out, diagnostics)
		}
	}
	for _, wrong := range [][]string{{"default"}, {"default", "--host", "http://api.example.com"}, {"default", "--host", "a b"},
		{"unknown", "--host", "a"}, {"default", "--host", "a", "--client", "x"}} {
		args := append([]string{"platform", "signon", "--data", dir}, wrong...)
		if status, out, diagnostics := called(t, nil, args...); status == 0 {
			t.Errorf("%q: %s%s", wrong, out, diagnostics)
		}
	}
	expect.Same(t, "the folder after refusals", raw, string(expect.Get(os.ReadFile(credentialsOf(dir)))(t)))

	// A client that was made by hand is none that the platform makes.
	secret := filepath.Join(t.TempDir(), "secret")
	write(secret, "canary-8a\n")
	say(t, dir, "", "signon", "default", "--host", "a.example.com", "--client", "by-hand", "--secret-file", secret)
	expect.Same(t, "the client to make, without a sign-on or beside one that was made by hand", "", shown().ID)
	say(t, dir, "Nobody signs on", "signon", "default", "--off")
	say(t, dir, "", "signon", "default", "--host", "api.example.com")
	if c := shown(); c.ID == "" || c.ID == made.ID {
		t.Errorf("switched off and on again, the client is %q", c.ID)
	}

	// While the key is lost, logins can be changed, which gives up no sign-on.
	key := filepath.Join(dir, "vault.key")
	made = shown()
	found := expect.Get(os.ReadFile(key))(t)
	changes := func() {
		t.Helper()
		say(t, dir, "default", "list")
		say(t, dir, "The new password of platform default", "rotate", "default", "--now")
	}
	expect.OK(t, os.Remove(key))
	changes()
	write(key, "no key")
	changes()
	write(key, string(found))
	isSame("with the key found again,")
	expect.OK(t, os.Remove(key))
	expect.OK(t, vault.CreateKeyFile(key))
	say(t, dir, "default", "list")
}
