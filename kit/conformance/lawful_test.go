package conformance_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/conformance"
)

// A lawful broker is ours without what it does beyond the specification: each of its answers is permitted, and some broker's.
type lawful struct {
	broker http.Handler
	minor  int // the only version that is served
	clock  atomic.Int64

	mu   sync.Mutex
	told map[string]bool // the bindings whose credentials were told
}

func (l *lawful) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	user, given, ok := q.BasicAuth()
	switch {
	case (!ok || user != username || given != password) && l.modern():
		http.Error(w, "Not Authorized", http.StatusUnauthorized) // no JSON, no challenge
		return
	case ok && user == username && given == password && q.Header.Get("X-Broker-API-Version") != fmt.Sprintf("2.%d", l.minor):
		w.WriteHeader(http.StatusPreconditionFailed)
		_, _ = fmt.Fprint(w, `{}`)
		return
	}
	broken(l.broker, w, q, match{}, func(r *reply) { l.change(q, r) })
}

// modern reports whether a version leaves open that bodies are JSON and that an identical request is answered 200: from 2.14 on.
func (l *lawful) modern() bool { return l.minor >= 14 }

// change makes an answer poorer.
func (l *lawful) change(q *http.Request, r *reply) {
	r.header.Del("X-Broker-API-Request-Identity")
	r.header.Del("Location")
	r.header.Del("WWW-Authenticate")
	if r.status >= 400 {
		code := r.body["error"]
		r.body = map[string]any{}
		switch code {
		case "AsyncRequired", "ConcurrencyError", "RequiresApp", "MaintenanceInfoConflict":
			r.says("error", code)
		}
	}
	if q.Method == http.MethodPatch && r.status == http.StatusNotFound && l.modern() { // no table has a status for it
		r.status = http.StatusInternalServerError
		sends("<html>no such instance</html>")(r)
		return
	}
	if q.Method == http.MethodPut && r.status == http.StatusOK && l.modern() { // 200 is a SHOULD
		r.status, r.body = http.StatusConflict, map[string]any{}
	}
	delete(r.body, "operation")
	if instancePath.MatchString(q.URL.Path) && r.status/100 == 2 && q.Method != http.MethodDelete && r.body != nil {
		r.says("dashboard_url", fmt.Sprintf("https://dashboard.example.com/?time=%d", l.clock.Add(1)))
	}
	if strings.HasSuffix(q.URL.Path, "/last_operation") && r.body["state"] != nil {
		delete(r.body, "description")
	}
	if bindingPath.MatchString(q.URL.Path) && r.body["credentials"] != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.told[q.URL.Path] {
			r.body = map[string]any{} // they are told once
		}
		l.told[q.URL.Path] = true
	}
}

// An answer that a document permits fails no MUST, in each version that is asked for; a recommendation is reported as one.
func TestWhatIsPermittedIsNoFailure(t *testing.T) {
	for _, minor := range []int{17, 14, 12, 9} {
		t.Run(fmt.Sprintf("2.%d", minor), func(t *testing.T) {
			t.Parallel() // it mostly waits
			report := checked(t, at(t, &lawful{broker: open(t).Handler, minor: minor, told: map[string]bool{}}),
				conformance.Options{Minor: minor, OperationTimeout: 20 * time.Second})
			for _, r := range report.Results {
				if r.Outcome == conformance.Blocked || r.Outcome == conformance.Failed && r.Level == conformance.Must {
					saysWrong(t, r)
				}
			}
			expect.Same(t, "left behind", "", strings.Join(report.Left, "\n"))
			if only(t) == nil {
				weaker(t, outcomes(report), minor)
			}
		})
	}
}

// weaker wants what is permitted to be reported at its own level, and what the version does not have to be not applicable.
func weaker(t *testing.T, found map[string]conformance.Result, minor int) {
	t.Helper()
	if r := found["ERR-02/description"]; r.Outcome != conformance.Failed || r.Level != conformance.Recommended {
		t.Errorf("refusals without a description: %s at %s", r.Outcome, r.Level)
	}
	for id, version := range map[string]int{"PROV-07/2.9": 9, "GETI-01": 14, "LOP-09": 16, "ROT-01": 17} {
		late := version > minor || id == "PROV-07/2.9" && minor != 9 // which this broker refuses
		expect.Same(t, id+" is not applicable: "+found[id].Reason, late, found[id].Outcome == conformance.NotApplicable)
	}
	for _, id := range []string{"HDR-08/X-BROKER-API-VERSION", "HDR-01"} {
		if r := found[id]; r.Outcome == conformance.Failed {
			t.Errorf("%s failed: %v", id, r.Failures)
		}
	}
}

// A broker that waits for fast work answers 202 only to slow work. A plan that was slow when it was tried may be fast later.
func TestADeletionThatWasSlowOnce(t *testing.T) {
	const sync = "d574c774-74a4-427c-9694-41484f478244" // the demo's synchronous plan, which the kit would rather ask
	var slowed atomic.Bool
	once := on(http.MethodDelete, instancePath, http.StatusOK).and(func(q *http.Request, _ *reply) bool {
		return q.URL.Query().Get("plan_id") == sync && slowed.CompareAndSwap(false, true)
	})
	passes(t, breaking(once, answers(http.StatusAccepted)), 8, "^(DEPR-02|DEPR-07|LOP-10/token|LOP-15|GETI-05) ")
	if !slowed.Load() {
		t.Error("no deletion was answered 200")
	}
}

// passes requires that a broker passes the cases whose ids match, so many at once.
func passes(t *testing.T, broker *strange, parallel int, ids string) {
	t.Helper()
	asked := regexp.MustCompile(ids)
	for _, r := range broker.checked(t, conformance.Options{Parallel: parallel, Only: asked}).Results {
		if asked.MatchString(r.ID+" ") && r.Outcome != conformance.Passed {
			saysWrong(t, r)
		}
	}
}

// An operation may end before the request arrives that is about a running one: on a slow machine the kit asks anew.
func TestRequestsThatComeTooLate(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, path, poll string // the cases, the path of a DELETE that is held up, and what polls from there
		running           func(*httptest.ResponseRecorder) bool
	}{
		"Cancellation": {"^FAC-1[01] ", "^/operations/", "", func(w *httptest.ResponseRecorder) bool {
			return w.Code != http.StatusSeeOther && w.Code != http.StatusFound
		}},
		"Deletion": {"^CONC-01 ", instancePath.String(), "/last_operation", func(w *httptest.ResponseRecorder) bool {
			return strings.Contains(w.Body.String(), `"in progress"`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			var broker strange
			path := regexp.MustCompile(tc.path)
			var delayed atomic.Bool
			runs := func(q *http.Request) bool {
				poll := q.Clone(q.Context())
				poll.Method, poll.URL.Path = http.MethodGet, q.URL.Path+tc.poll
				answer := httptest.NewRecorder()
				broker.broker.ServeHTTP(answer, poll)
				return tc.running(answer)
			}
			broker.stands = func(_ http.ResponseWriter, q *http.Request) bool {
				meant := q.Method == http.MethodDelete && path.MatchString(q.URL.Path)
				if meant && runs(q) && delayed.CompareAndSwap(false, true) {
					for runs(q) {
						time.Sleep(10 * time.Millisecond)
					}
				}
				return false
			}
			passes(t, &broker, 1, tc.asked)
			if !delayed.Load() {
				t.Error("nothing was held up")
			}
		})
	}
}

// A plan may take orders with any parameters and refuse to change them later, while it can be changed for another plan.
func TestAPlanWhoseParametersStay(t *testing.T) {
	broker := strange{stands: func(w http.ResponseWriter, q *http.Request) bool {
		body, _ := io.ReadAll(q.Body)
		q.Body = io.NopCloser(bytes.NewReader(body))
		return q.Method == http.MethodPatch && bytes.Contains(body, []byte(`"parameters"`)) &&
			answer(w, http.StatusUnprocessableEntity, `{"description":"The parameters of an instance stay as they are."}`)
	}}
	report := broker.checked(t, conformance.Options{Only: regexp.MustCompile("^UPD-0[127] ")})
	ends(t, report, conformance.Passed, "UPD-01", "UPD-02")
	ends(t, report, conformance.NotApplicable, "UPD-07")
	expect.Same(t, "results", 3, len(report.Results))
}
