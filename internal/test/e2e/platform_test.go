package e2e_test

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// does runs a command that must succeed, and gives what it prints.
func does(t testing.TB, env []string, args ...string) string {
	t.Helper()
	status, said := run(t, env, args...)
	if status != 0 {
		t.Fatalf("longshore %v: status %d:\n%s", args, status, said)
	}
	return said
}

func basic(username, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password))
}

// login gives the status by which a platform is answered.
func login(t testing.TB, url, username, password string) int {
	t.Helper()
	header := map[string]string{"Authorization": basic(username, password)}
	return expect.Get(ask("GET", url+"/v2/catalog", "", header))(t).status
}

// spread is the time in which what a command says of logins reaches a broker that runs.
const spread = 90 * time.Second

// says runs a command that must succeed, and gives the group, if there is one, of what it must print.
func says(t testing.TB, pattern string, args ...string) string {
	t.Helper()
	out := does(t, nil, args...)
	found := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("longshore %v: nothing like %q:\n%s", args, pattern, out)
	}
	return found[min(1, len(found)-1)]
}

// learns waits until a broker lets a new password in, which lets the old one in meanwhile.
func (p *process) learns(t testing.TB, path, user, old, password string) {
	t.Helper()
	waitFor(t, spread, "the new password to be known", func() bool {
		if got := login(t, p.url+path, user, old); got != 200 {
			t.Fatalf("during the overlap, the old password is answered %d", got)
		}
		return login(t, p.url+path, user, password) == 200
	})
}

// Platforms come and go while the broker runs, and after a restart. A rotation keeps both passwords valid (AUTH-08).
func TestPlatforms(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data)
	do := func(pattern string, args ...string) string {
		t.Helper()
		return says(t, pattern, append(args, "--data", data)...)
	}
	password := do(`password +(\S+)`, "platform", "add", "korifi", "--path", "/korifi", "--offering", "demo/sync")
	waitFor(t, spread, "the platform to be let in", func() bool { return login(t, p.url+"/korifi", "korifi", password) == 200 })
	expect.Same(t, "at the root it is answered", 404, login(t, p.url, "korifi", password))
	expect.Same(t, "another password is answered", 401, login(t, p.url+"/korifi", "korifi", "neither"))
	list := do(`(?s).*`, "platform", "list")
	expect.Says(t, "the list", list, "korifi", "demo/sync")
	expect.Never(t, "the list", list, password)
	next := do(`: (\S{20,})\n`, "platform", "rotate", "korifi", "--now", "--overlap", "30m")
	if next == password {
		t.Error("the new password is the old one")
	}
	p.learns(t, "/korifi", "korifi", password, next)
	p.kill()
	p = start(t, data)
	for _, valid := range []string{password, next} {
		expect.Same(t, "after a restart it is answered", 200, login(t, p.url+"/korifi", "korifi", valid))
	}
	do(`refused`, "platform", "remove", "korifi")
	p.kill()
	p = start(t, data)
	expect.Same(t, "after its removal it is answered", 401, login(t, p.url+"/korifi", "korifi", next))

	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"NoVerb":       {[]string{"platform"}, 2, "add, list, oidc, remove, rotate, signon"},
		"Verb":         {[]string{"platform", "rename"}, 2, "add, list, oidc, remove, rotate, signon"},
		"NoName":       {[]string{"platform", "add"}, 2, "needs a NAME"},
		"Surplus":      {[]string{"platform", "remove", "a", "b"}, 2, `does not take "b"`},
		"NoFolder":     {[]string{"platform", "list", "--data", t.TempDir()}, 1, "started once"},
		"Unknown":      {[]string{"platform", "rotate", "none", "--data", data}, 1, "platform list"},
		"Offering":     {[]string{"platform", "add", "x", "--offering", "none", "--data", data}, 1, "the catalog has no none"},
		"Last":         {[]string{"platform", "remove", "default", "--data", data}, 1, "last platform"},
		"BadName":      {[]string{"platform", "add", "Bad_Name", "--data", data}, 1, "small letters"},
		"BadPath":      {[]string{"platform", "add", "x", "--path", "x", "--data", data}, 1, "such as /cf-eu"},
		"NegativeTime": {[]string{"platform", "rotate", "default", "--overlap", "-1h", "--data", data}, 2, "2m or more"},
	} {
		if status, out := run(t, nil, tc.args...); status != tc.status || !strings.Contains(out, tc.want) {
			t.Errorf("%s: status %d:\n%s\nwant %d, and %q", name, status, out, tc.status, tc.want)
		}
	}
}

// AUTH-08: with a login from the environment, as the README sets it up, rotate
// is true of the broker that runs and of its next starts.
func TestRotateOfTheEnvironmentsPassword(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data, credentials()...)
	rotate := func(pattern string, args ...string) string {
		t.Helper()
		args = append([]string{"platform", "rotate", "default", "--now", "--data", data}, args...)
		return says(t, `: (\S+)\n`+pattern, args...)
	}
	next := rotate(`The old password is valid until \S+Z: `)
	p.learns(t, "", username, password, next)
	p.kill()
	p = start(t, data, credentials()...)
	expect.Same(t, "started with the old one, the new one is answered", 200, login(t, p.url, username, next))
	expect.Says(t, "the log", p.log.String(), "LONGSHORE_PASSWORD is the old password")
	last := rotate(`Every earlier password is refused, in a minute`, "--overlap", "0s")
	waitFor(t, spread, "the last password to be known", func() bool { return login(t, p.url, username, last) == 200 })
	expect.Same(t, "without an overlap the one before is answered", 401, login(t, p.url, username, next))
	p.kill()
	code, out := run(t, append(credentials(), "LONGSHORE_PASSWORD=never-valid-71c2"), "serve", "--listen", "127.0.0.1:0",
		"--data", data)
	expect.Same(t, "with another one set, exit status", 1, code)
	expect.Says(t, "with another one set, it", out, "LONGSHORE_PASSWORD is not the password", "unset both")
	expect.Never(t, "with another one set, it", out, "never-valid")
	p = start(t, data)
	expect.Same(t, "with none set the last one is answered", 200, login(t, p.url, username, last))
	expect.Never(t, "what is printed", p.out.String(), password)
}

// AUTH-02: the program slows failed logins down, and none that succeeds.
func TestGuessesAreSlowedDown(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), credentials()...)
	for range 10 {
		expect.Same(t, "a guess is answered", 401, login(t, p.url, username, "wrong"))
	}
	go func() { // its answer waits until the program ends
		_, _ = ask("GET", p.url+"/v2/catalog", "", map[string]string{"Authorization": basic(username, "wrong")})
	}()
	waitFor(t, settleLimit, "a guess to be held up",
		func() bool { return strings.Contains(p.log.String(), "failed logins are slowed down") })
	expect.Same(t, "meanwhile a good login is answered", 200, login(t, p.url, username, password))
	p.ends(t, interrupt) // with a guess that waits
}
