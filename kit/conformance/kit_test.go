package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/embedded"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/kit/conformance"
	"github.com/longshore/longshore/kit/conformance/report"
)

const (
	username = "platform"
	password = "kit-password-5c1e"
	// demoDelay is how long the demo's operations take: long enough to be asked about while they run.
	demoDelay = "400ms"
)

// delayed gives the demo its delay.
func delayed(name string) string { return map[string]string{app.EnvDemoDelay: demoDelay}[name] }

// open starts the embedded broker.
func open(t *testing.T) *embedded.Broker {
	t.Helper()
	broker, err := embedded.Open(embedded.Settings{Data: t.TempDir(), Username: username, Password: password, Getenv: delayed},
		testkit.Shipped(), slog.New(slog.DiscardHandler))
	expect.OK(t, err, "opening the broker")
	t.Cleanup(broker.Close)
	return broker
}

// at is a handler's own target.
func at(t *testing.T, h http.Handler) conformance.Target {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return conformance.Target{URL: server.URL, Username: username, Password: password}
}

// checked asks a broker as most tests do.
func checked(t *testing.T, target conformance.Target, o conformance.Options) conformance.Report {
	t.Helper()
	o.Now, o.Parallel, o.OperationTimeout = time.Now, cmp.Or(o.Parallel, 8), cmp.Or(o.OperationTimeout, 5*time.Minute)
	if o.Only == nil {
		o.Only = only(t)
	}
	return expect.Get(conformance.Run(t.Context(), target, o))(t)
}

// notOffered are the cases that no plan of the demo has anything to show for.
var notOffered = []string{"UPD-15/allowed", "CAT-19/endpoint", "ROT-06"}

// Our broker passes. On a busy machine an operation may end before a case can ask about it: such a case is asked again, alone.
func TestOurBrokerConforms(t *testing.T) {
	target := at(t, open(t).Handler)
	report := checked(t, target, conformance.Options{})
	if late := skipped(t, report); late != nil {
		alone := regexp.MustCompile("^(" + strings.Join(late, "|") + ") ")
		for _, id := range skipped(t, checked(t, target, conformance.Options{Only: alone, Parallel: 1})) {
			t.Errorf("%s was not asked, twice", id)
		}
	}
	t.Logf("%d cases in %v: %d passed, %d not applicable", len(report.Results), report.Duration,
		report.Count(conformance.Passed), report.Count(conformance.NotApplicable))
}

// skipped returns patterns of the ids of cases that were not asked, of those that the demo has something to show for. It
// reports each case that failed, and what is left behind.
func skipped(t *testing.T, report conformance.Report) (ids []string) {
	t.Helper()
	for _, r := range report.Results {
		switch r.Outcome {
		case conformance.Failed, conformance.Blocked:
			saysWrong(t, r)
		case conformance.NotApplicable:
			if !slices.Contains(notOffered, r.ID) {
				t.Logf("%s was not asked: %s", r.ID, r.Reason)
				ids = append(ids, regexp.QuoteMeta(r.ID))
			}
		}
	}
	expect.Same(t, "left behind", "", strings.Join(report.Left, "\n"))
	return ids
}

// onlyVariable restricts the cases, for work on one of them.
const onlyVariable = "LONGSHORE_CHECK_ONLY"

// only are the cases that are asked: all, unless it is set.
func only(t *testing.T) *regexp.Regexp {
	t.Helper()
	if pattern := os.Getenv(onlyVariable); pattern != "" {
		return regexp.MustCompile(pattern)
	}
	return nil
}

// Ids are unique, and each names a rule.
func TestCasesAreNamed(t *testing.T) {
	rule := regexp.MustCompile(`^[A-Z]{3,4}-\d\d$`)
	seen := map[string]bool{}
	for _, c := range conformance.Cases() {
		if seen[c.ID] {
			t.Errorf("two cases are called %s", c.ID)
		}
		if seen[c.ID] = true; !rule.MatchString(c.Rule()) {
			t.Errorf("%s does not begin with a rule", c.ID)
		}
		if c.Title == "" || c.Section == "" || c.Level == 0 || c.Since < conformance.OldestMinor ||
			c.Since > conformance.NewestMinor {
			t.Errorf("%s is incomplete", c.ID)
		}
	}
	if n := len(conformance.Options{}.Cases()); n < 400 || n > len(seen) {
		t.Errorf("%d of %d cases are asked: fewer than there were", n, len(seen))
	}
}

// The page says how many cases there are of each version, and how firm they are.
func TestThePageCountsTheCases(t *testing.T) {
	page := expect.Get(os.ReadFile("../../docs/conformance-kit.md"))(t)
	counts := map[int][3]int{}
	for _, c := range conformance.Cases() {
		for _, of := range []int{max(c.Since, 10), 0} { // 0 counts all
			n := counts[of]
			n[0]++
			switch c.Level {
			case conformance.Must:
				n[1]++
			case conformance.Should:
				n[2]++
			}
			counts[of] = n
		}
	}
	for minor, n := range counts {
		first := fmt.Sprintf("2.%d:", minor)
		if minor == 0 {
			first = "together"
		}
		row := fmt.Sprintf(`(?m)^\| .*%s.* \| %d \| %d \| %d \|$`, regexp.QuoteMeta(first), n[0], n[1], n[2])
		if !regexp.MustCompile(row).Match(page) {
			t.Errorf("docs/conformance-kit.md has no row %q with %v", first, n)
		}
	}
	expect.Says(t, "docs/conformance-kit.md", string(page), fmt.Sprintf("some %d cases", counts[0][0]))
}

// A broker is asked below its base path, and of the chosen plan; what the plan does not do is not applicable, and not failed.
func TestOnePlanBelowABasePath(t *testing.T) {
	target := at(t, http.StripPrefix("/brokers/one", open(t).Handler))
	target.URL += "/brokers/one/"
	options := quick("")
	options.Level = conformance.Must
	result := checked(t, target, options)
	if !result.Conforms() {
		for _, r := range result.Results {
			if r.Outcome == conformance.Failed || r.Outcome == conformance.Blocked {
				saysWrong(t, r)
			}
		}
		t.Errorf("it does not conform; left behind: %v", result.Left)
	}
	for id, reason := range map[string]string{
		"PROV-10": "asynchronously", "BIND-34": "volume_mount", "ROT-01": "binding_rotatable",
		"PROV-21/equal": "maintenance_info",
	} {
		ends(t, result, conformance.NotApplicable, id)
		expect.Says(t, id, outcomes(result)[id].Reason, reason)
	}
}

// A run that is interrupted removes what it has made.
func TestAnInterruptedRunRemovesWhatItMade(t *testing.T) {
	for name, end := range map[string]int64{"WhileTrying": 5, "WhileAsking": 60, "Late": 150} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var made atomic.Int64
			var broker strange
			broker.stands = func(w http.ResponseWriter, r *http.Request) bool {
				broker.pass(w, r)
				if r.Method == http.MethodPut && made.Add(1) == end {
					interrupt()
				}
				return true
			}
			options := quick("") // synchronous plans: nothing is to be waited for
			options.Now, options.Only = time.Now, only(t)
			result, err := conformance.Run(ctx, broker.target(t), options)
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err == nil && (!result.Interrupted || result.Conforms()) {
				t.Errorf("the report does not tell of the interruption")
			}
			if there := broker.there(); len(result.Left)+len(there) > 0 || made.Load() < end {
				t.Errorf("after %d requests, left behind: %s; still there: %s", made.Load(), result.Left, there)
			}
		})
	}
}

// A run tells what it cannot remove, and the broker does not conform.
func TestWhatIsLeftBehindIsTold(t *testing.T) {
	broker := breaking(on("DELETE", instancePath), func(r *reply) {
		r.status, r.body = 500, map[string]any{"description": "no"}
	})
	options := quick("^PROV-01 ")
	options.OperationTimeout = time.Second
	result := broker.checked(t, options)
	if len(result.Left) == 0 || result.Conforms() {
		t.Errorf("nothing is told to be left behind: %+v", result)
	}
	for _, left := range result.Left {
		expect.Says(t, "what is left", left, "/v2/service_instances/", "500")
	}
}

// No plan is tried of a service that is left out.
func TestWithout(t *testing.T) {
	for without, want := range map[string]bool{"demo": true, "another": false} {
		var broker strange
		options := quick("^PROV-01 ")
		options.Now, options.Without = time.Now, []string{without}
		_, err := conformance.Run(t.Context(), broker.target(t), options)
		if left := errors.Is(err, conformance.ErrUnusable) && len(broker.asked) == 0; left != want {
			t.Errorf("without %s: %v, and these were tried: %v", without, err, broker.asked)
		}
	}
}

// A broker that cannot be asked at all is an ErrUnusable.
func TestUnusableBrokers(t *testing.T) {
	answering := func(status int, body string) string {
		return at(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, status, body) })).URL
	}
	for name, c := range map[string]struct{ url, says string }{
		"NoURL": {"broker", ""}, "OtherScheme": {"ftp://broker.example.com", ""}, "Dead": {"http://127.0.0.1:1", ""},
		"PasswordInURL": {"http://user:" + password + "@broker.example.com", ""}, "Unauthorized": {answering(401, "{}"), ""},
		"NotABroker": {answering(404, "not found"), ""}, "NotJSON": {answering(200, html), ""},
		"WrongPath": {answering(404, "{}") + "/x", "/x, whose /v2/catalog is answered 404"},
	} {
		t.Run(name, func(t *testing.T) {
			target := conformance.Target{URL: c.url, Username: username, Password: password}
			_, err := conformance.Run(t.Context(), target, conformance.Options{Now: time.Now})
			expect.Fails(t, name, conformance.ErrUnusable, err)
			expect.Says(t, "the error", fmt.Sprint(err), c.says)
			expect.Never(t, "the error", fmt.Sprint(err), password)
		})
	}
}

// No report tells a password or credentials, wherever the broker says them.
func TestReportsTellNoSecrets(t *testing.T) {
	var mu sync.Mutex
	secrets := []string{password}
	options := quick("^(BIND|ERR|AUTH|UNB|GETB)")
	options.OperationTimeout = time.Second
	result := breaking(match{}, func(r *reply) {
		mu.Lock()
		defer mu.Unlock()
		c, told := r.body["credentials"].(map[string]any)
		if told {
			secrets = append(secrets, fmt.Sprint(c["password"]))
		}
		if r.status >= 400 { // every error tells all it knows, and is of a wrong status
			r.status = 418
			r.says("description", "as "+strings.Join(secrets, ", "))
		}
		if r.status == 200 && told {
			r.status = 202
		}
	}).checked(t, options)
	expect.Least(t, "cases that failed", 30, result.Count(conformance.Failed))
	for name, write := range report.Formats {
		var out strings.Builder
		expect.OK(t, write(&out, result))
		for _, secret := range secrets {
			if secret != "" && secret != "<nil>" && strings.Contains(out.String(), secret) {
				t.Errorf("%s tells a secret", name)
			}
		}
	}
}

// Refusals without a description are reported once, and bind nobody.
func TestMissingDescriptionsAreReportedOnce(t *testing.T) {
	result := breaking(match{}, func(r *reply) {
		if r.status >= 400 {
			delete(r.body, "description")
		}
	}).checked(t, conformance.Options{Only: regexp.MustCompile("^(HDR|AUTH|ERR|INP-0|PROV-1|BIND-0|UNB-0|DEPR-0)")})
	var failed []string
	for _, r := range result.Results {
		if r.Outcome == conformance.Failed {
			failed = append(failed, r.ID+" "+r.Level.String())
		}
	}
	// The others are about what a description says.
	want := []string{"ERR-02/description REC", "ERR-03/sentence REC", "ERR-04/sentence REC", "ERR-05 SHOULD"}
	expect.Same(t, "failed", want, failed)
	expect.Same(t, "conforms", true, result.Conforms())
}

// Words that hold an everyday password are no leak, are not hidden, and the report says that this was not checked.
func TestOrdinaryWordsAreNoSecrets(t *testing.T) {
	const word = "pass"
	var broker strange
	broker.stands = func(w http.ResponseWriter, r *http.Request) bool {
		if user, given, _ := r.BasicAuth(); user == username && given == word {
			r.SetBasicAuth(username, password)
		}
		broken(broker.broker, w, r, match{status: []int{401, 404}}, func(r *reply) {
			r.status = 418
			r.says("description", "the password did not pass")
		})
		return true
	}
	target := broker.target(t)
	target.Password = word
	result := checked(t, target, quick("^(ERR-13|AUTH-02/user) "))
	for _, r := range result.Results {
		switch {
		case r.ID == "ERR-13" && (r.Outcome != conformance.Passed || !strings.Contains(r.Reason, "not checked")):
			t.Errorf("ERR-13 %s: %s %v", r.Outcome, r.Reason, r.Failures)
		case r.ID == "AUTH-02/user" && (len(r.Failures) == 0 ||
			!strings.Contains(r.Failures[0].Got, "the password did not (left out)")):
			t.Errorf("the report says %v", r.Failures)
		}
	}
	var out strings.Builder
	if err := report.Text(&out, result); err != nil || !strings.Contains(out.String(), "Not checked by ERR-13") {
		t.Errorf("%v: the report does not say what was not checked:\n%s", err, out.String())
	}
}

// A broker that answers anything at all ends the run, and does not pass it.
func TestBrokersThatAnswerAnything(t *testing.T) {
	const oneService = `{"services":[{"id":"s","name":"s","description":"d","bindable":true,"plan_updateable":true,
		"instances_retrievable":true,"bindings_retrievable":true,
		"plans":[{"id":"p","name":"p","description":"d","maintenance_info":{"version":"1.0.0"},
		"schemas":{"service_instance":{"create":{"parameters":{"required":["a",1],
		"properties":{"a":{"type":"string","minLength":3}}}}}}},
		{"id":"q","name":"q","description":"d"}]}]}`
	for name, c := range map[string]struct {
		catalog, rest string
		status        int
	}{
		"EmptyCatalog": {`{}`, `{}`, 200},
		"NullServices": {`{"services":null}`, `null`, 200},
		"WildCatalog": {`{"services":[null,1,{"id":5,"plans":[{},null,"x"]},
			{"id":"s","name":"s","plans":{"id":"p"},"requires":"x","tags":[1,{}],"metadata":[]}]}`, `{}`, 200},
		"OnlyOK":           {oneService, `{}`, 200},
		"OnlyCreated":      {oneService, `{"credentials":{"uri":5,"list":[null,"a long enough secret"]}}`, 201},
		"OnlyAccepted":     {oneService, `{"operation":{"x":1}}`, 202},
		"OnlyInProgress":   {oneService, `{"state":"in progress","operation":"o","description":5}`, 200},
		"OnlyFailed":       {oneService, `{"state":"failed","operation":"o"}`, 202},
		"OnlyRefusals":     {oneService, `{"error":7}`, 422},
		"OnlyConcurrency":  {oneService, `{"error":"ConcurrencyError"}`, 422},
		"OnlyGone":         {oneService, `[]`, 410},
		"OnlyFaults":       {oneService, html, 500},
		"OnlyRedirects":    {oneService, ``, 302},
		"ConnectionsReset": {oneService, ``, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := at(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Location", "//elsewhere.example.com/%zz")
				switch {
				case r.URL.Path == "/v2/catalog":
					_, _ = w.Write([]byte(c.catalog))
				case c.status == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(c.status)
					_, _ = w.Write([]byte(c.rest))
				}
			}))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			result := expect.Get(conformance.Run(ctx, target,
				conformance.Options{Now: time.Now, Parallel: 16, OperationTimeout: 100 * time.Millisecond}))(t)
			if result.Conforms() || result.Interrupted {
				t.Errorf("conforms %v, interrupted %v in %v", result.Conforms(), result.Interrupted, result.Duration)
			}
		})
	}
}

// A connection that was kept, and that is closed when the next request comes, is no silence of the broker.
func TestAKeptConnectionThatIsClosedIsNoSilence(t *testing.T) {
	type answered struct{} // of a connection: whether it was
	broker := open(t).Handler
	var closed atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if kept := r.Context().Value(answered{}).(*atomic.Bool).Swap(true); kept {
			closed.Add(1)
			panic(http.ErrAbortHandler)
		}
		broker.ServeHTTP(w, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, answered{}, new(atomic.Bool))
	}
	server.Start()
	defer server.Close()
	target := conformance.Target{URL: server.URL, Username: username, Password: password}
	report := checked(t, target, conformance.Options{Parallel: 4, Only: regexp.MustCompile(`^(PROV|DEPR)-0`)})
	if closed.Load() == 0 {
		t.Fatal("no connection was kept: the test proves nothing")
	}
	for _, r := range report.Results {
		if r.Outcome == conformance.Blocked || r.Outcome == conformance.Failed {
			saysWrong(t, r)
		}
	}
}
