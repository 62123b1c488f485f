package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/cloudcontroller"
	"github.com/longshore/longshore/kit/conformance"
)

const (
	checkUser     = "platform"
	checkPassword = "check-password-71fe"
)

// called runs the command line, and gives its exit status and what it wrote.
func called(t *testing.T, env map[string]string, args ...string) (status int, out, diagnostics string) {
	t.Helper()
	return calledIn(context.Background(), env, args...)
}

// calledIn is called until the context ends.
func calledIn(ctx context.Context, env map[string]string, args ...string) (status int, out, diagnostics string) {
	var o, d strings.Builder
	status = run(ctx, args, func(name string) string { return env[name] }, &o, &d)
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
	b := &bench{started: &started{T: t}, dir: t.TempDir()}
	b.start()
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
		"junit": func(b []byte) error { return xml.Unmarshal(b, &struct{}{}) },
		"text":  func([]byte) error { return nil },
	} {
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

// impatient leaves Retry-After out, so that the shortest pause decides.
func impatient(broker http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { broker.ServeHTTP(unhurried{w}, r) })
}

type unhurried struct{ http.ResponseWriter }

func (u unhurried) WriteHeader(status int) {
	u.Header().Del("Retry-After")
	u.ResponseWriter.WriteHeader(status)
}

// answering answers some requests otherwise than the broker, which never sees them.
func answering(method, path string, status int, body string) func(http.Handler) http.Handler {
	matches := regexp.MustCompile(path)
	return func(broker http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == method && matches.MatchString(r.URL.Path) {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
				return
			}
			impatient(broker).ServeHTTP(w, r)
		})
	}
}

const ofInstance, ofBinding = `instances/[^/]*$`, `bindings/[^/]*$`

func TestTryExitStatus(t *testing.T) {
	t.Parallel()
	good := serving(t, impatient)
	for name, c := range map[string]struct {
		url    string
		args   []string
		status int
		says   string // on either output
	}{
		"FirstFreePlan": {good, nil, 0, "nothing is left"},
		"Asynchronous":  {good, []string{"--plan", "async-bind", "--service", "demo"}, 0, "polled"},
		"ByID":          {good, []string{"--plan", "4dcb3699-4e64-40fe-aa3b-ec0d58a96028"}, 0, "demo/async"},
		"FlagsFirst":    {good, []string{"--service=demo", "--plan", "sync", "--bind=false"}, 0, "nothing is left"},
		"Schema": {good, []string{"--plan",
			"schema", "--parameters", `{"parameter1":1}`, "--bind-parameters", `{"parameter2":"x"}`}, 0, "demo/schema"},
		"AgainstSchema":   {good, []string{"--plan", "schema", "--parameters", `{"nope":1}`}, 1, "nothing was made"},
		"NotBindable":     {good, []string{"--plan", "not-bindable"}, 0, "deprovision"},
		"Application":     {good, []string{"--plan", "requires-app"}, 0, "bind"},
		"Key":             {good, []string{"--plan", "requires-app", "--key"}, 1, "RequiresApp"},
		"Old":             {good, []string{"--plan", "async", "--api-version", "2.9"}, 0, "nothing is left"},
		"Fails":           {good, []string{"--plan", "fail"}, 1, "take it for an orphan"},
		"BindFails":       {good, []string{"--plan", "async", "--bind-parameters", `{"fail":true}`}, 1, "clean up"},
		"DeleteFailsOnce": {good, []string{"--plan", "async", "--parameters", `{"fail":"deprovision"}`}, 1, "nothing is left"},
		"TooSlow": {good, []string{"--plan", "async", "--parameters", `{"delay_seconds":0.3}`, "--timeout", "50ms"}, 1,
			"within the required time"},
		"BrokenAnswer":    {serving(t, answering("PUT", ofInstance, 201, "{")), nil, 1, "cannot be understood"},
		"Unavailable":     {serving(t, answering("PUT", ofBinding, 503, "{}")), nil, 1, "nothing is left"},
		"NotRetrievable":  {serving(t, answering("GET", ofBinding, 404, "{}")), nil, 1, "fetch binding  FAILED"},
		"OtherPlan":       {serving(t, answering("GET", ofInstance, 200, `{"plan_id":"other"}`)), nil, 1, "another plan"},
		"NotThatGrant":    {serving(t, answering("GET", ofBinding, 200, `{"credentials":{}}`)), nil, 1, "credentials differ"},
		"NotReallyGone":   {serving(t, answering("DELETE", ofInstance, 200, "{}")), nil, 1, "can still be fetched"},
		"NoURL":           {"", nil, 2, "try needs the URL of a broker"},
		"TwoURLs":         {good, []string{good}, 2, "one URL"},
		"UnknownFlag":     {good, []string{"--fast"}, 2, "fast"},
		"UnknownVersion":  {good, []string{"--api-version", "2.18"}, 2, "2.18"},
		"NoTime":          {good, []string{"--timeout", "0s"}, 2, "above zero"},
		"BadParameters":   {good, []string{"--parameters", "[1]"}, 2, "--parameters"},
		"BadBind":         {good, []string{"--bind-parameters", "x"}, 2, "--bind-parameters"},
		"AnyServicesPlan": {good, []string{"--plan", "nope"}, 2, `the catalog has no plan "nope": it has demo/sync, demo/async,`},
		"PlanOfAnother": {good, []string{"--service", "demo-other", "--plan", "async"}, 2,
			`the catalog has no plan "async" of a service "demo-other": it has demo/sync, demo/async,`},
		"UnknownService": {good, []string{"--service", "nosuch"}, 2,
			`the catalog has no service "nosuch": it has demo/sync, demo/async,`},
		"NoServices":    {serving(t, answering("GET", `/catalog$`, 200, `{"services":[]}`)), nil, 2, "the catalog has no plans"},
		"OtherPath":     {good + "/x", nil, 2, "there is no broker at " + good + "/x: its /v2/catalog answers 404"},
		"PathOfCatalog": {good + "/v2/catalog", nil, 2, "Give the URL up to /v2"},
		"Dead":          {"http://127.0.0.1:1", nil, 2, "does not answer"},
		"WrongPassword": {good, []string{"--password", "wrong"}, 2, "401"},
		"NoCatalog": {serving(t, answering("GET", `/catalog$`, 200, `{"services":[{"id":"x"}]}`)), nil, 2,
			"needs an id, a name"},
		"NeedsParameters": {serving(t, answering("GET", `/catalog$`, 200, demanding)), nil, 2,
			"requires size: give them with --parameters"},
		"NoTranscript": {good, []string{"--transcript", "/no/such/folder/file"}, 2, "/no/such/folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"try", "--interval", "5ms"}, c.args...)
			if c.url != "" {
				args = append(args, c.url)
			}
			status, out, diagnostics := called(t, environment, args...)
			if status != c.status || !strings.Contains(out+diagnostics, c.says) {
				t.Errorf("exit status %d, want %d with %q:\n%s%s", status, c.status, c.says, out, diagnostics)
			}
			expect.Never(t, "what is printed", out+diagnostics, checkPassword, "\x1b")
		})
	}
	fails(t, 2, app.EnvPassword, "try", good)
}

// demanding is a catalog whose plan cannot be had without parameters.
const demanding = `{"services":[{"id":"s","name":"s","description":"d","bindable":false,
	"plans":[{"id":"p","name":"p","description":"d",
	"schemas":{"service_instance":{"create":{"parameters":{"type":"object","required":["size"]}}}}}]}]}`

// A transcript tells no secret. What was made is kept if so asked.
func TestTryWritesATranscript(t *testing.T) {
	t.Parallel()
	url := serving(t, impatient)
	path := filepath.Join(t.TempDir(), "transcript")
	status, out, _ := called(t, environment, "try", url, "--service", "demo", "--plan", "sync", "--transcript", path)
	content := expect.Get(os.ReadFile(path))(t, out)
	expect.Same(t, "exit status", 0, status)
	_, dashed, _ := called(t, environment, "try", url, "--service", "demo", "--plan", "sync", "--transcript", "-")
	for name, text := range map[string]string{"file": string(content), "output": dashed} {
		expect.Says(t, name, text, "/v2/catalog", " plans of ", "PUT /v2/service_instances/", "201 after",
			`{"credentials":"(left out)"}`, "DELETE /v2/")
		expect.Never(t, name, text, "password\":", checkPassword)
	}
	status, out, _ = called(t, environment, "try", url, "--service", "demo", "--plan", "sync", "--keep")
	id := regexp.MustCompile(`kept +instance ([0-9a-f-]{36})`).FindStringSubmatch(out)
	if status != 0 || id == nil || !strings.Contains(out, "kept           binding") || fetched(t, url, id[1]) != http.StatusOK {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}

// fetched is the status of an instance.
func fetched(t *testing.T, url, id string) int {
	t.Helper()
	r := expect.Get(http.NewRequest(http.MethodGet, url+"/v2/service_instances/"+id, nil))(t)
	r.SetBasicAuth(checkUser, checkPassword)
	r.Header.Set("X-Broker-API-Version", "2.17")
	response := expect.Get(http.DefaultClient.Do(r))(t)
	_ = response.Body.Close()
	return response.StatusCode
}

// Whenever it is interrupted, what was made is deleted.
func TestTryInterrupted(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{
		"WhileProvisioning": "PUT " + ofInstance, "WhilePolling": "GET last_operation$",
		"WhileBinding": "PUT " + ofBinding, "WhileUnbinding": "DELETE " + ofBinding,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			method, path, _ := strings.Cut(at, " ")
			matches := regexp.MustCompile(path)
			url := serving(t, func(broker http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == method && matches.MatchString(r.URL.Path) {
						interrupt()
					}
					impatient(broker).ServeHTTP(w, r)
				})
			})
			status, out, diagnostics := calledIn(ctx, environment, "try", url, "--service", "demo", "--plan", "async-bind",
				"--interval", "5ms")
			expect.Same(t, "exit status", 1, status)
			has(t, diagnostics, "interrupted")
			has(t, out, "nothing is left")
			id := regexp.MustCompile(`instance ([0-9a-f-]{36})`).FindStringSubmatch(out)
			if id == nil || fetched(t, url, id[1]) != http.StatusNotFound {
				t.Errorf("it is still there:\n%s", out)
			}
		})
	}
}

// aLife is a trial whose pauses take no time, and its outputs.
func aLife(url string, terminal bool) (l *life, out, diagnostics *strings.Builder) {
	out, diagnostics = &strings.Builder{}, &strings.Builder{}
	c := &cloudcontroller.Client{URL: url, Credential: cloudcontroller.Credential{Username: checkUser, Password: checkPassword},
		APIVersion: 17, HTTP: cloudcontroller.HTTP(nil),
		Now: time.Now, NewID: app.NewUUID, KeepOrphans: true, Sleep: func(context.Context, time.Duration) error { return nil }}
	l = &life{trial: trial{client: c, bind: true}, out: out, line: &progress{out: diagnostics, terminal: terminal}}
	return l, out, diagnostics
}

func TestTrySaysWhatIsLeftBehind(t *testing.T) {
	l, out, _ := aLife(serving(t, answering("DELETE", `.`, 500, "{}")), false)
	if err := l.live(t.Context()); err == nil || strings.Count(out.String(), "LEFT BEHIND") != 2 ||
		!strings.Contains(out.String(), "Something was left behind") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestTryShowsABarOnATerminal(t *testing.T) {
	l, out, diagnostics := aLife(serving(t, as), true)
	expect.OK(t, l.live(t.Context()), out)
	shown := diagnostics.String()
	has(t, shown, clear+"[....................] 1 of 7, provision: ", clear+"[#################...] 7 of 7, ")
	expect.Same(t, "the end of what is shown", clear, shown[max(0, len(shown)-len(clear)):])
	expect.Never(t, "the output", out.String(), "\x1b")
}

// A catalog with several offerings: the first one, and of it what costs nothing.
func TestTryChoosesAPlan(t *testing.T) {
	paid, free := false, true
	plan := func(name string, isFree *bool) cloudcontroller.Plan {
		return cloudcontroller.Plan{ID: name + "-id", Name: name, Free: isFree}
	}
	offered := cloudcontroller.Catalog{Services: []cloudcontroller.Service{
		{ID: "1", Name: "first", Plans: []cloudcontroller.Plan{plan("large", &paid), plan("small", &free), plan("other", nil)}},
		{ID: "2", Name: "second", Plans: []cloudcontroller.Plan{plan("tiny", nil), plan("huge", &paid)}},
	}}
	for name, c := range map[string]struct{ service, plan, want string }{
		"Free":         {"", "", "small"},
		"Named":        {"first", "large", "large"},
		"ByID":         {"2", "huge-id", "huge"},
		"OfTheService": {"second", "", "tiny"},
		"Elsewhere":    {"", "huge", "huge"},
	} {
		l := &life{trial: trial{brokerFlags: brokerFlags{options: conformance.Options{Service: c.service, Plan: c.plan}}}}
		if err := l.choose(offered); err != nil || l.plan.Name != c.want {
			t.Errorf("%s: %q, %v", name, l.plan.Name, err)
		}
	}
}
