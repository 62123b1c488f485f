package conformance_test

import (
	"bytes"
	"context"
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
	"time"

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
	var out []string
	for _, path := range slices.Sorted(maps.Keys(s.asked)) {
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

func page(w http.ResponseWriter, status int) bool {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html><h1>%d</h1>from the router</html>", status)
	return true
}

// checked runs the kit on a strange broker.
func (s *strange) checked(t *testing.T, o conformance.Options) conformance.Report {
	t.Helper()
	s.broker, s.asked = open(t).Handler, map[string]bool{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	o.Now, o.Parallel, o.OperationTimeout = time.Now, 8, 5*time.Minute
	if o.Only == nil {
		o.Only = only(t)
	}
	return expect.Get(conformance.Run(context.Background(), targetOf(server), o))(t)
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

func outcomes(r conformance.Report) map[string]conformance.Result {
	out := map[string]conformance.Result{}
	for _, result := range r.Results {
		out[result.ID] = result
	}
	return out
}

// saysWrong fails a test with what a broker is said to do wrong.
func saysWrong(t *testing.T, r conformance.Result) {
	t.Helper()
	t.Errorf("%s [%s] %s: %s %s %v", r.ID, r.Level, r.Outcome, r.Title, r.Reason, r.Failures)
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
			// The quick plan alone: what takes its time is asked in other tests.
			options := conformance.Options{Service: "demo", Plan: "sync"}
			if status != http.StatusMethodNotAllowed {
				options.Only = regexp.MustCompile("^(UPD|CAT-13|ERR-0|IDEM-02|AUTH-01|HDR-09)")
			}
			result := broker.checked(t, options)
			for id, r := range outcomes(result) {
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
	result := broker.checked(t, conformance.Options{Service: "demo", Plan: "sync"})
	for _, r := range result.Results {
		if r.Outcome == conformance.Failed {
			saysWrong(t, r)
		}
	}
	if lost.Load() < 100 || result.Count(conformance.Blocked) == 0 || result.Conforms() {
		t.Errorf("%d answers were lost, %d cases blocked, conforms %v", lost.Load(), result.Count(conformance.Blocked),
			result.Conforms())
	}
	broker.tellsWhatIsThere(t, result)
}

// A router's answer to a deletion is no removal: the kit lists the instances that are still there, and no others.
func TestWhatARouterAnswersRemovesNothing(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter) bool{
		"NotFound":   func(w http.ResponseWriter) bool { return page(w, http.StatusNotFound) },
		"Gone":       func(w http.ResponseWriter) bool { return page(w, http.StatusGone) },
		"OK":         func(w http.ResponseWriter) bool { return page(w, http.StatusOK) },
		"Accepted":   func(w http.ResponseWriter) bool { return page(w, http.StatusAccepted) },
		"BadGateway": func(w http.ResponseWriter) bool { return page(w, http.StatusBadGateway) },
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
			result := broker.checked(t, conformance.Options{Service: "demo", Plan: "sync",
				Only: regexp.MustCompile("^(PROV-01|PROV-1[345]/.*) ")})
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
	result := broker.checked(t, conformance.Options{Service: "demo", Plan: "sync"})
	for _, r := range result.Results {
		if r.Outcome == conformance.Failed {
			saysWrong(t, r)
		}
	}
	if result.Count(conformance.Blocked) == 0 {
		t.Error("nothing is blocked")
	}
	broker.tellsWhatIsThere(t, result)
}

// Where nothing can be provisioned, what needs no instance is asked all the same.
func TestABrokerThatProvisionsNothing(t *testing.T) {
	broker := strange{stands: func(w http.ResponseWriter, r *http.Request) bool {
		user, given, _ := r.BasicAuth()
		if r.Method != http.MethodPut || user != username || given != password {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte(`{"description":"there is no room"}`))
		return true
	}}
	result := broker.checked(t, conformance.Options{Service: "demo", Plan: "sync"})
	found := outcomes(result)
	for _, id := range []string{
		"AUTH-01/provision", "AUTH-01/deprovision", "AUTH-01/bind", "AUTH-07", "HDR-09/unbind", "CAT-01", "DEPR-03", "DEPR-11",
		"GETI-02", "LOP-09", "ORB-01", "ORB-02", "UNB-02/instance", "GETB-02/instance", "INP-16/post-instance", "INP-18",
	} {
		if r := found[id]; r.Outcome != conformance.Passed {
			saysWrong(t, r)
		}
	}
	if r := found["PROV-13/plan_id"]; r.Outcome != conformance.Failed {
		saysWrong(t, r)
	}
	if r := found["PROV-01"]; r.Outcome != conformance.Blocked || !strings.Contains(r.Reason, "there is no room") {
		saysWrong(t, r)
	}
	if len(result.Left)+len(result.Unsure) > 0 {
		t.Errorf("left behind: %v, %v", result.Left, result.Unsure)
	}
}

// A broker that takes any password is not asked for it from version 2.13 on, and is
// told to be a hazard at the level of the version's own sentence.
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
			result := broker.checked(t, conformance.Options{Service: "demo", Plan: "sync", Minor: want.minor,
				Only: regexp.MustCompile("^(AUTH-0[12]|CAT-01)")})
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
		answer := func(status int) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"description":"as it pleases"}`))
			return true
		}
		user, given, _ := r.BasicAuth()
		content, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(content))
		switch {
		case user != username || given != password:
			return answer(http.StatusForbidden) // and not 401
		case r.Method == http.MethodPut && bytes.HasPrefix(content, []byte("{")) && !bytes.Contains(content, []byte(`"plan_id"`)):
			return answer(http.StatusCreated) // and not 400
		case r.Method == http.MethodDelete:
			recorder := httptest.NewRecorder()
			broker.broker.ServeHTTP(recorder, r)
			if recorder.Code == http.StatusGone {
				return answer(http.StatusOK)
			}
			return answer(recorder.Code)
		}
		return false
	}
	result := broker.checked(t, conformance.Options{Service: "demo", Plan: "sync",
		Only: regexp.MustCompile("^(AUTH-02/user|AUTH-07|PROV-13/plan_id|BIND-04/plan_id|" +
			"BIND-38|ORB-0[12]/refused|DEPR-03|PROV-19) ")})
	got := map[string]conformance.Outcome{}
	for id, r := range outcomes(result) {
		got[id] = r.Outcome
	}
	want := map[string]conformance.Outcome{
		"AUTH-02/user": conformance.Failed, "AUTH-07": conformance.Passed,
		"PROV-13/plan_id": conformance.Failed, "ORB-01/refused": conformance.NotApplicable,
		"BIND-04/plan_id": conformance.Failed, "ORB-02/refused": conformance.NotApplicable, "BIND-38": conformance.NotApplicable,
		"DEPR-03": conformance.Failed, "PROV-19": conformance.Passed,
	}
	expect.Same(t, "outcomes", want, got)
	expect.Says(t, "AUTH-07", outcomes(result)["AUTH-07"].Reason, "what never was")
}
