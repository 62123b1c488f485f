package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

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
		s := expect.Get(startAs(t, as))(t)
		defer s.stop()
		s.lets("", "cf", first, 200)
		return s.clientOf(first)
	}
	if c := shown(); c.ID != "" {
		t.Errorf("a platform without a sign-on is to make %q", c.ID)
	}
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
	raw, err := os.ReadFile(credentialsOf(dir))
	if err != nil || strings.Contains(string(raw), "canary") || !strings.Contains(string(raw), `"oidc"`) {
		t.Errorf("the folder has the secret in clear: %v\n%s", err, raw)
	}

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
	if after, _ := os.ReadFile(credentialsOf(dir)); string(after) != string(raw) {
		t.Error("a refusal has changed the folder")
	}

	// A client that was made by hand is none that the platform makes.
	secret := filepath.Join(t.TempDir(), "secret")
	write(secret, "canary-8a\n")
	say(t, dir, "", "signon", "default", "--host", "a.example.com", "--client", "by-hand", "--secret-file", secret)
	if c := shown(); c.ID != "" {
		t.Errorf("beside a client that was made by hand it is to make %q", c.ID)
	}
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
