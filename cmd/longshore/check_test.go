package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
)

const (
	checkUser     = "platform"
	checkPassword = "check-password-71fe"
)

// called runs the command line, and gives its exit status and what it wrote.
func called(t *testing.T, env map[string]string, args ...string) (status int, out, diagnostics string) {
	t.Helper()
	var o, d strings.Builder
	status = run(context.Background(), args, func(name string) string { return env[name] }, &o, &d)
	return status, o.String(), d.String()
}

// fails requires that a command line ends with this status, prints nothing, and says this among its diagnostics.
func fails(t *testing.T, want int, says string, args ...string) {
	t.Helper()
	status, out, diagnostics := called(t, nil, args...)
	if status != want || out != "" || !strings.Contains(diagnostics, says) {
		t.Errorf("longshore %q: exit status %d, want %d with %q:\n%s%s", args, status, want, says, out, diagnostics)
	}
}

func serving(t *testing.T, around func(http.Handler) http.Handler) string {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir()}
	b.start()
	t.Cleanup(b.stop)
	server := httptest.NewServer(around(b.broker.Handler))
	t.Cleanup(server.Close)
	return server.URL
}

func as(h http.Handler) http.Handler { return h }

var environment = map[string]string{app.EnvUsername: checkUser, app.EnvPassword: checkPassword}

func TestCheckExitStatus(t *testing.T) {
	t.Parallel()
	good := serving(t, as)
	bad := serving(t, func(broker http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" { // a missing password does not matter
				r.SetBasicAuth(checkUser, checkPassword)
			}
			broker.ServeHTTP(w, r)
		})
	})
	lax := serving(t, func(broker http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("X-Broker-API-Version", "2.17") // none is refused
			broker.ServeHTTP(w, r)
		})
	})
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"Conforms":       {[]string{good, "--only", "^(HDR-0[1-8]|AUTH)"}, 0, ""},
		"FlagsFirst":     {[]string{"--only=^HDR-01", "-o", "json", good}, 0, ""},
		"Fails":          {[]string{bad, "--only", "^AUTH-01/catalog"}, 1, "AUTH-01/catalog"},
		"WeakerFails":    {[]string{lax, "--only", "^HDR"}, 0, "HDR-04/3.0"},
		"NoURL":          {[]string{}, 2, "check needs the URL of a broker"},
		"TwoURLs":        {[]string{good, bad}, 2, "one URL"},
		"UnknownFlag":    {[]string{good, "--fast"}, 2, "fast"},
		"UnknownFormat":  {[]string{good, "-o", "yaml"}, 2, "--output does not take \"yaml\": give text, json or junit"},
		"UnknownLevel":   {[]string{good, "--level", "MIGHT"}, 2, "MIGHT"},
		"UnknownVersion": {[]string{good, "--api-version", "2.18"}, 2, "2.18"},
		"OldVersion":     {[]string{good, "--api-version", "3.9"}, 2, "3.9"},
		"BadExpression":  {[]string{good, "--only", "("}, 2, "regular expression"},
		"BadParameters":  {[]string{good, "--parameters", "[1]"}, 2, "--parameters"},
		"NoCases":        {[]string{good, "--only", "no such case"}, 2, "no case"},
		"UnknownPlan":    {[]string{good, "--plan", "nope"}, 2, `its catalog has no plan "nope": it has demo/sync, demo/async,`},
		"UnknownService": {[]string{good, "--service", "nope"}, 2, `its catalog has no service "nope": it has demo/sync,`},
		"LeftOut":        {[]string{good, "--plan", "sync", "--without", "other,demo"}, 2, `no plan "sync": it has demo-other/`},
		"PlanOfAnother": {[]string{good, "--service", "demo-other", "--plan", "async"}, 2,
			`no plan "async" of a service "demo-other": it has`},
		"Dead":          {[]string{"http://127.0.0.1:1"}, 2, "cannot be checked"},
		"WrongPassword": {[]string{good, "--password", "wrong"}, 2, "401"},
		"NoOutput":      {[]string{good, "--report", "/no/such/folder/report"}, 2, "/no/such/folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, out, diagnostics := called(t, environment, append([]string{"check"}, c.args...)...)
			if status != c.status || !strings.Contains(diagnostics, c.says) {
				t.Errorf("exit status %d, want %d with %q:\n%s%s", status, c.status, c.says, out, diagnostics)
			}
			expect.Never(t, "what is printed", out+diagnostics, checkPassword)
		})
	}
	fails(t, 2, app.EnvPassword, "check", good)
}

func TestCheckWritesReports(t *testing.T) {
	url := serving(t, as)
	for format, parse := range map[string]func([]byte) error{
		"json":  func(b []byte) error { return json.Unmarshal(b, &struct{}{}) },
		"junit": func(b []byte) error { return xml.Unmarshal(b, &struct{}{}) }, "text": func([]byte) error { return nil }} {
		path := filepath.Join(t.TempDir(), "report")
		expect.OK(t, os.WriteFile(path, []byte(strings.Repeat("what was there before ", 1000)), 0o600))
		status, out, diagnostics := called(t, environment, "check", url, "--only", "^HDR-01", "--output",
			format, "--report", path)
		content, err := os.ReadFile(path)
		if err != nil || status != 0 || out != "" || parse(content) != nil || !strings.Contains(string(content), "2.17") ||
			strings.Contains(string(content), "before") {
			t.Errorf("%s: exit status %d, %v, %q, %s:\n%s", format, status, err, out, diagnostics, content)
		}
		if strings.Contains(diagnostics, "\x1b") || !strings.Contains(diagnostics, "1 of 1, 0 failed\n") {
			t.Errorf("%s: progress is not in plain lines: %q", format, diagnostics)
		}
	}
}

func TestCheckListsCases(t *testing.T) {
	status, out, _ := called(t, nil, "check", "--list", "--only", "^PROV-08", "--level", "MUST")
	if status != 0 || !strings.Contains(out, "PROV-08/space") || strings.Contains(out, "HDR-01") {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}
