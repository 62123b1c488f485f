package conformance_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/conformance"
	"github.com/longshore/longshore/kit/conformance/report"
)

// A strange broker is ours behind something that changes what comes through.
type strange struct {
	broker http.Handler
	// stands answers in the broker's place, if it returns true.
	stands func(w http.ResponseWriter, r *http.Request) bool

	mu    sync.Mutex
	asked map[string]bool // by path: what was to be made
}

// breaking breaks the answers that match.
func breaking(m match, breaks func(*reply)) *strange {
	s := new(strange)
	s.stands = func(w http.ResponseWriter, r *http.Request) bool {
		broken(http.HandlerFunc(s.pass), w, r, m, breaks)
		return true
	}
	return s
}

func (s *strange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.stands == nil || !s.stands(w, r) {
		s.pass(w, r)
	}
}

// pass lets the broker answer.
func (s *strange) pass(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		s.mu.Lock()
		s.asked[r.URL.EscapedPath()] = true
		s.mu.Unlock()
	}
	s.broker.ServeHTTP(w, r)
}

// there is what the broker has made, and not deleted.
func (s *strange) there() []string {
	s.mu.Lock()
	asked := slices.Sorted(maps.Keys(s.asked))
	s.mu.Unlock()
	var out []string
	for _, path := range asked {
		q := httptest.NewRequest(http.MethodGet, path, nil)
		q.SetBasicAuth(username, password)
		q.Header.Set("X-Broker-API-Version", "2.17")
		answer := httptest.NewRecorder()
		if s.broker.ServeHTTP(answer, q); answer.Code == http.StatusOK {
			out = append(out, path)
		}
	}
	return out
}

// target opens the broker.
func (s *strange) target(t *testing.T) conformance.Target {
	t.Helper()
	s.broker, s.asked = open(t).Handler, map[string]bool{}
	return at(t, s)
}

// checked runs the kit on a strange broker.
func (s *strange) checked(t *testing.T, o conformance.Options) conformance.Report {
	t.Helper()
	return checked(t, s.target(t), o)
}

// quick is the plan that takes no time.
func quick(ids string) conformance.Options {
	o := conformance.Options{Service: "demo", Plan: "sync"}
	if ids != "" {
		o.Only = regexp.MustCompile(ids)
	}
	return o
}

// answer answers in JSON.
func answer(w http.ResponseWriter, status int, body string) bool {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	return true
}

func page(w http.ResponseWriter, status int) bool {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html><h1>%d</h1>from the router</html>", status)
	return true
}

// paths are those of what is told to be left behind.
func paths(left []string) []string {
	var out []string
	for _, l := range left {
		path, _, _ := strings.Cut(l, " ")
		out = append(out, path)
	}
	slices.Sort(out)
	return out
}

// tellsWhatIsThere wants all that is left behind to be told, for certain or not.
func (s *strange) tellsWhatIsThere(t *testing.T, r conformance.Report) {
	t.Helper()
	known := paths(slices.Concat(r.Left, r.Unsure))
	for _, path := range s.there() {
		if !slices.Contains(known, path) {
			t.Errorf("%s is there, and not told", path)
		}
	}
}

// noneFails wants no case to fail, and gives how many are blocked.
func noneFails(t *testing.T, r conformance.Report) (blocked int) {
	t.Helper()
	for _, r := range r.Results {
		if r.Outcome == conformance.Failed {
			saysWrong(t, r)
		}
	}
	return r.Count(conformance.Blocked)
}

func outcomes(r conformance.Report) map[string]conformance.Result {
	out := map[string]conformance.Result{}
	for _, result := range r.Results {
		out[result.ID] = result
	}
	return out
}

// ends wants cases to end so.
func ends(t *testing.T, r conformance.Report, want conformance.Outcome, ids ...string) {
	t.Helper()
	found := outcomes(r)
	for _, id := range ids {
		if r := found[id]; r.Outcome != want {
			t.Errorf("%s, want %s:", id, want)
			saysWrong(t, r)
		}
	}
}

// saysWrong fails a test with what a broker is said to do wrong.
func saysWrong(t *testing.T, r conformance.Result) {
	t.Helper()
	t.Errorf("%s [%s] %s (%s): %s %s %v\n%s", r.ID, r.Level, r.Outcome, r.Plan, r.Title, r.Reason, r.Failures, r.Source)
}

// The kit asks a broker without an update endpoint for no update, and finds fault with a catalog that promises updates.
func TestABrokerWithoutUpdates(t *testing.T) {
	for name, status := range map[string]int{
		"NotFound": http.StatusNotFound, "MethodNotAllowed": http.StatusMethodNotAllowed,
		"NotImplemented": http.StatusNotImplemented,
	} {
		t.Run(name, func(t *testing.T) {
			var patches atomic.Int64
			broker := strange{stands: func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPatch {
					return false
				}
				patches.Add(1)
				http.Error(w, http.StatusText(status), status) // before anything else is looked at
				return true
			}}
			asked := "^(UPD|CAT-13|ERR-0|IDEM-02|AUTH-01|HDR-09)"
			if status == http.StatusMethodNotAllowed { // once, all: what takes its time is asked in other tests
				asked = ""
			}
			for id, r := range outcomes(broker.checked(t, quick(asked))) {
				switch {
				case id == "CAT-13/endpoint":
					if r.Outcome != conformance.Failed || r.Level != conformance.Must {
						saysWrong(t, r)
					}
				case r.Outcome == conformance.Failed || r.Outcome == conformance.Blocked:
					saysWrong(t, r)
				case id == "UPD-06/unknown" && !strings.Contains(r.Reason, "update endpoint"):
					saysWrong(t, r)
				}
			}
			if n := patches.Load(); n > 2 {
				t.Errorf("%d updates were asked for: once is enough to learn, and once for the finding", n)
			}
		})
	}
}

// usual are the paths that each broker serves.
var usual = regexp.MustCompile(`^/v2/service_instances/[a-z0-9-]+(/service_bindings/[a-z0-9-]+)?(/last_operation)?$`)

// A router in front of a broker says nothing of the broker: what it answers in its place fails no case, and removes nothing.
func TestABrokerBehindARouter(t *testing.T) {
	statuses := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusNotFound}
	var requests, lost atomic.Int64
	broker := strange{stands: func(w http.ResponseWriter, r *http.Request) bool {
		// The first requests are those by which the plan is tried.
		if n := requests.Add(1); n < 60 || n%3 != 0 {
			return false
		}
		status := statuses[lost.Add(1)%4]
		if status == http.StatusNotFound && !usual.MatchString(r.URL.Path) { // which a broker may say itself
			w.Header().Set("X-Cf-RouterError", "unknown_route")
		}
		return page(w, status)
	}}
	result := broker.checked(t, quick(""))
	if blocked := noneFails(t, result); lost.Load() < 100 || blocked == 0 || result.Conforms() {
		t.Errorf("%d answers were lost, %d cases blocked, conforms %v", lost.Load(), blocked, result.Conforms())
	}
	broker.tellsWhatIsThere(t, result)
}

// A router's answer to a deletion is no removal: the kit lists the instances that are still there, and no others.
func TestWhatARouterAnswersRemovesNothing(t *testing.T) {
	pages := func(status int) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool { return page(w, status) }
	}
	for name, answer := range map[string]func(w http.ResponseWriter) bool{
		"NotFound": pages(http.StatusNotFound), "Gone": pages(http.StatusGone), "OK": pages(http.StatusOK),
		"Accepted": pages(http.StatusAccepted), "BadGateway": pages(http.StatusBadGateway),
		"NoRoute": func(w http.ResponseWriter) bool {
			w.Header().Set("X-Cf-RouterError", "unknown_route")
			return page(w, http.StatusNotFound)
		},
		"EmptyOK":       func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusOK); return true },
		"EmptyNotFound": func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusNotFound); return true },
		"Lost":          func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			broker := strange{stands: func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodDelete && answer(w)
			}}
			result := broker.checked(t, quick("^(PROV-01|PROV-1[345]/.*) "))
			if diff := cmp.Diff(broker.there(), paths(result.Left)); diff != "" || len(result.Left) == 0 || result.Conforms() {
				t.Errorf("of %d that were asked for, these are there and are told (-want +got):\n%s", len(broker.asked), diff)
			}
		})
	}
}

// An answer that breaks off in its midst blocks the case, and fails none; what was made is removed, or told.
func TestABrokerThatDropsConnections(t *testing.T) {
	var requests atomic.Int64
	var broker strange
	broker.stands = func(w http.ResponseWriter, r *http.Request) bool {
		if n := requests.Add(1); n < 60 || n%4 != 0 {
			return false
		}
		broker.pass(httptest.NewRecorder(), r) // it does what it was asked to
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"credentials":{"user`))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	result := broker.checked(t, quick(""))
	if noneFails(t, result) == 0 {
		t.Error("nothing is blocked")
	}
	broker.tellsWhatIsThere(t, result)
}

// Where nothing can be provisioned, what needs no instance is asked all the same.
func TestABrokerThatProvisionsNothing(t *testing.T) {
	broker := strange{stands: func(w http.ResponseWriter, r *http.Request) bool {
		user, given, _ := r.BasicAuth()
		return r.Method == http.MethodPut && user == username && given == password &&
			answer(w, http.StatusInternalServerError, `{"description":"there is no room"}`)
	}}
	result := broker.checked(t, quick(""))
	ends(t, result, conformance.Passed, "AUTH-01/provision", "AUTH-01/deprovision", "AUTH-01/bind", "AUTH-07", "HDR-09/unbind",
		"CAT-01", "DEPR-03", "DEPR-11", "GETI-02", "LOP-09", "ORB-01", "ORB-02", "UNB-02/instance", "GETB-02/instance",
		"INP-16/post-instance", "INP-18")
	ends(t, result, conformance.Failed, "PROV-13/plan_id")
	if r := outcomes(result)["PROV-01"]; r.Outcome != conformance.Blocked || !strings.Contains(r.Reason, "there is no room") {
		saysWrong(t, r)
	}
	if len(result.Left)+len(result.Unsure) > 0 || result.Conforms() {
		t.Errorf("conforms %v; left behind: %v, %v", result.Conforms(), result.Left, result.Unsure)
	}
	// Where the broker does not say why, too: cases are blocked, and not passed over.
	broker.stands = func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == http.MethodPut && answer(w, http.StatusServiceUnavailable, "{}")
	}
	result = broker.checked(t, conformance.Options{Only: regexp.MustCompile("^(PROV-0|CAT-0)")})
	if result.Conforms() || result.Count(conformance.Blocked) == 0 || result.Count(conformance.Passed) == 0 {
		t.Errorf("passed %d, failed %d, blocked %d", result.Count(conformance.Passed), result.Count(conformance.Failed),
			result.Count(conformance.Blocked))
	}
}

// A broker that takes any password is not asked for it from 2.13 on, and is a hazard at the level of the version's own sentence.
func TestABrokerThatTakesAnyPassword(t *testing.T) {
	for name, want := range map[string]struct {
		minor   int
		level   conformance.Level
		outcome conformance.Outcome // of the cases about passwords
	}{
		"Recommended": {17, conformance.Should, conformance.NotApplicable},
		"Required":    {12, conformance.Must, conformance.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			broker := strange{stands: func(_ http.ResponseWriter, r *http.Request) bool {
				r.SetBasicAuth(username, password)
				return false
			}}
			options := quick("^(AUTH-0[12]|CAT-01)")
			options.Minor = want.minor
			result := broker.checked(t, options)
			for id, r := range outcomes(result) {
				if expected := id == "AUTH-02/alike" || strings.HasPrefix(id, "CAT"); !expected && r.Outcome != want.outcome &&
					!strings.Contains(r.Reason, "does not offer") {
					saysWrong(t, r)
				}
			}
			if len(result.Hazards) != 1 || result.Hazards[0].Level != want.level {
				t.Fatalf("the hazards are %+v", result.Hazards)
			}
			var out strings.Builder
			expect.OK(t, report.Text(&out, result))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if line := lines[len(lines)-4]; !strings.HasPrefix(line, "Hazard ["+want.level.String()+"]") {
				t.Errorf("the closing lines do not tell: %q", lines[len(lines)-5:])
			}
		})
	}
}

// The case whose sentence forbids a fault reports it, and no other case that meets it.
func TestAFaultIsToldByItsOwnRule(t *testing.T) {
	var broker strange
	broker.stands = func(w http.ResponseWriter, r *http.Request) bool {
		const body = `{"description":"as it pleases"}`
		user, given, _ := r.BasicAuth()
		content, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(content))
		switch {
		case user != username || given != password:
			return answer(w, http.StatusForbidden, body) // and not 401
		case r.Method == http.MethodPut && bytes.HasPrefix(content, []byte("{")) && !bytes.Contains(content, []byte(`"plan_id"`)):
			return answer(w, http.StatusCreated, body) // and not 400
		case r.Method == http.MethodDelete:
			recorder := httptest.NewRecorder()
			broker.broker.ServeHTTP(recorder, r)
			if recorder.Code == http.StatusGone {
				return answer(w, http.StatusOK, body)
			}
			return answer(w, recorder.Code, body)
		}
		return false
	}
	result := broker.checked(t, quick("^(AUTH-02/user|AUTH-07|PROV-13/plan_id|BIND-04/plan_id|"+
		"BIND-38|ORB-0[12]/refused|DEPR-03|PROV-19) "))
	ends(t, result, conformance.Failed, "AUTH-02/user", "PROV-13/plan_id", "BIND-04/plan_id", "DEPR-03")
	ends(t, result, conformance.Passed, "AUTH-07", "PROV-19")
	ends(t, result, conformance.NotApplicable, "ORB-01/refused", "ORB-02/refused", "BIND-38")
	expect.Same(t, "cases that are asked", 9, len(result.Results))
	expect.Says(t, "AUTH-07", outcomes(result)["AUTH-07"].Reason, "what never was")
}
