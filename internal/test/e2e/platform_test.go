package e2e_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// longshore runs a command to its end, and gives its output and exit status.
func longshore(t testing.TB, args ...string) (out string, status int) {
	t.Helper()
	cmd := command(nil, args...)
	raw, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("longshore %v: %v", args, err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

func login(t testing.TB, url, username, password string) int {
	t.Helper()
	request := expect.Get(http.NewRequestWithContext(t.Context(), "GET", url+"/v2/catalog", nil))(t)
	request.SetBasicAuth(username, password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	response := expect.Get(client.Do(request))(t)
	_ = response.Body.Close()
	return response.StatusCode
}

// Platforms come and go while the broker runs, and after a restart.
func TestPlatforms(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p := start(t, data)
	do := func(pattern string, args ...string) string {
		t.Helper()
		out, status := longshore(t, append(args, "--data", data)...)
		found := regexp.MustCompile(pattern).FindStringSubmatch(out)
		if status != 0 || found == nil {
			t.Fatalf("longshore %v: status %d, and nothing like %q:\n%s", args, status, pattern, out)
		}
		return found[len(found)-1]
	}
	const spread = 90 * time.Second
	password := do(`password +(\S+)`, "platform", "add", "korifi", "--path", "/korifi", "--offering", "demo/sync")
	waitFor(t, spread, "the platform to be let in", func() bool { return login(t, p.url+"/korifi", "korifi", password) == 200 })
	expect.Same(t, "at the root it is answered", 404, login(t, p.url, "korifi", password))
	list := do(`(?s).*`, "platform", "list")
	if !strings.Contains(list, "korifi") || !strings.Contains(list, "demo/sync") || strings.Contains(list, password) {
		t.Errorf("the list:\n%s", list)
	}
	next := do(`: (\S+)\n`, "platform", "rotate", "korifi", "--now", "--overlap", "30m")
	waitFor(t, spread, "the new password to be known", func() bool {
		if login(t, p.url+"/korifi", "korifi", password) != 200 {
			t.Fatal("the old password is refused during the overlap")
		}
		return login(t, p.url+"/korifi", "korifi", next) == 200
	})
	p.kill()
	p = start(t, data)
	expect.Same(t, "after a restart it is answered", 200, login(t, p.url+"/korifi", "korifi", next))
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
		if out, status := longshore(t, tc.args...); status != tc.status || !strings.Contains(out, tc.want) {
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
		out, status := longshore(t, append([]string{"platform", "rotate", "default", "--now", "--data", data}, args...)...)
		found := regexp.MustCompile(`: (\S+)\n` + pattern).FindStringSubmatch(out)
		if status != 0 || found == nil {
			t.Fatalf("status %d, and nothing like %q:\n%s", status, pattern, out)
		}
		return found[1]
	}
	const spread = 90 * time.Second
	next := rotate(`The old password is valid until \S+Z: `)
	waitFor(t, spread, "the new password to be known", func() bool {
		if login(t, p.url, username, password) != 200 {
			t.Fatal("the old password is refused during the overlap")
		}
		return login(t, p.url, username, next) == 200
	})
	p.kill()
	p = start(t, data, credentials()...)
	if got := login(t, p.url, username, next); got != 200 ||
		!strings.Contains(p.log.String(), "LONGSHORE_PASSWORD is the old password") {
		t.Errorf("started with the old one, the new one is answered %d:\n%s", got, p.log)
	}
	last := rotate(`Every earlier password is refused, in a minute`, "--overlap", "0s")
	waitFor(t, spread, "the last password to be known", func() bool { return login(t, p.url, username, last) == 200 })
	expect.Same(t, "without an overlap the one before is answered", 401, login(t, p.url, username, next))
	p.kill()
	code, out := run(t, append(credentials(), "LONGSHORE_PASSWORD=never-valid-71c2"), "serve", "--listen", "127.0.0.1:0",
		"--data", data)
	if code != 1 || !strings.Contains(out, "LONGSHORE_PASSWORD is not the password") || !strings.Contains(out, "unset both") ||
		strings.Contains(out, "never-valid") {
		t.Errorf("with another one set: exit status %d:\n%s", code, out)
	}
	p = start(t, data)
	if got := login(t, p.url, username, last); got != 200 || strings.Contains(p.out.String(), password) {
		t.Errorf("with none set the last one is answered %d:\n%s", got, p.out)
	}
}

// AUTH-02: the program slows failed logins down, and none that succeeds.
func TestGuessesAreSlowedDown(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), credentials()...)
	for range 10 {
		if got := login(t, p.url, username, "wrong"); got != 401 {
			t.Fatalf("a guess is answered %d", got)
		}
	}
	go func() { // its answer waits until the program ends
		r, err := http.NewRequest("GET", p.url+"/v2/catalog", nil)
		if err != nil {
			return
		}
		r.SetBasicAuth(username, "wrong")
		if answer, err := client.Do(r); err == nil {
			_ = answer.Body.Close()
		}
	}()
	waitFor(t, settleLimit, "a guess to be held up",
		func() bool { return strings.Contains(p.log.String(), "failed logins are slowed down") })
	expect.Same(t, "meanwhile a good login is answered", 200, login(t, p.url, username, password))
	if code := p.stop(t, interrupt); code != 0 {
		t.Errorf("with a guess that waits, the program ended with status %d:\n%s", code, p.log)
	}
}
