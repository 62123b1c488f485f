package embedded

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/test/testserver"
)

// A check of records starts the tests' program again.
func TestMain(m *testing.M) {
	bolt.BeChecker()
	os.Exit(m.Run())
}

// order is the body that orders a plan: an instance, or a binding.
func order(service, plan string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"}`, service, plan)
}

func hints(service, plan string) string { return "?service_id=" + service + "&plan_id=" + plan }

// The plan of the demo that answers at once.
var (
	demoService, demoPlan  = testkit.PlanIDs("sync")
	demoOrder, ofDemosPlan = order(demoService, demoPlan), hints(demoService, demoPlan)
)

// opened is a broker that offers the demo.
func opened(t *testing.T, s Settings) *Broker {
	t.Helper()
	return expect.Get(Open(s, testkit.Demo(), slog.New(slog.DiscardHandler)))(t)
}

func begun(t *testing.T, dir string) *Broker {
	t.Helper()
	return opened(t, Settings{Data: dir})
}

// withInstances is a data folder with instances of those ids, on which no broker runs.
func withInstances(t *testing.T, ids ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	e := begun(t, dir)
	defer e.Close()
	for _, id := range ids {
		asked(t, e, "PUT", id, demoOrder, 201)
	}
	return dir
}

// answer is what the broker answers to its default platform.
func answer(t *testing.T, e *Broker, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "/v2/"+path, strings.NewReader(body))
	r.SetBasicAuth(e.Default.Username, e.Default.Password)
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	e.Handler.ServeHTTP(w, r)
	return w
}

// asked is the body of an answer about an instance, or what belongs to it, which has to have one of the statuses.
func asked(t *testing.T, e *Broker, method, path, body string, want ...int) string {
	t.Helper()
	w := answer(t, e, method, "service_instances/"+path, body)
	if !slices.Contains(want, w.Code) {
		t.Fatalf("%s %s: %d %s, want %v", method, path, w.Code, w.Body, want)
	}
	return w.Body.String()
}

// A history is the broker over one data folder, which a test opens with one environment after the other, and all that ships.
type history struct {
	*testing.T
	data string
	open *Broker
	log  *testserver.Output
}

func newHistory(t *testing.T) *history {
	h := &history{T: t, data: t.TempDir()}
	t.Cleanup(h.end)
	return h
}

func (h *history) end() {
	if h.open != nil {
		h.open.Close()
		h.open = nil
	}
}

// start starts the broker with an environment, after it has ended it.
func (h *history) start(environment map[string]string) {
	h.Helper()
	h.end()
	h.log = &testserver.Output{}
	h.open = expect.Get(Open(Settings{Data: h.data, Getenv: func(name string) string { return environment[name] }},
		expect.Get(offeringfiles.Load(""))(h), slog.New(slog.NewTextHandler(h.log, nil))))(h)
}

// ask gives a member of the answer, which has to have one of the statuses.
func (h *history) ask(member, method, path, body string, want ...int) any {
	h.Helper()
	var out map[string]any
	expect.OK(h, json.Unmarshal([]byte(asked(h.T, h.open, method, path, body, want...)), &out))
	return out[member]
}

// offers requires that a plan is offered, or is not.
func (h *history) offers(offering, plan string, want bool) {
	h.Helper()
	_, id := h.plan(offering, plan)
	expect.Same(h, offering+" is offered", want, id != "")
}

// plan gives the ids of an offered plan; they are empty if it is not.
func (h *history) plan(offering, plan string) (service, id string) {
	h.Helper()
	w := answer(h.T, h.open, "GET", "catalog", "")
	if w.Code != 200 {
		h.Fatalf("the catalog is answered %d %s:\n%s", w.Code, w.Body, h.log)
	}
	var all struct{ Services []catalog.Offering }
	expect.OK(h, json.Unmarshal(w.Body.Bytes(), &all))
	for _, s := range all.Services {
		for _, p := range s.Plans {
			if s.Name == offering && p.Name == plan {
				return s.ID, p.ID
			}
		}
	}
	return "", ""
}

// settles waits until the operation has ended, as it has to.
func (h *history) settles(path string, want ...any) {
	h.Helper()
	for range 600 {
		state := h.ask("state", "GET", path+"/last_operation", "", 200, 410)
		if state == "in progress" {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		if !slices.Contains(want, state) {
			h.Fatalf("the operation of %s has ended %v:\n%s", path, state, h.log)
		}
		return
	}
	h.Fatalf("the operation does not end:\n%s", h.log)
}

// provision orders an instance and waits for it.
func (h *history) provision(path, service, plan string) {
	h.Helper()
	h.ask("", "PUT", path+"?accepts_incomplete=true", order(service, plan), 201, 202)
	h.settles(path, "succeeded")
}

// bind gives a binding's credentials.
func (h *history) bind(path, service, plan string) map[string]any {
	h.Helper()
	bound := h.ask("credentials", "PUT", path+"?accepts_incomplete=true", order(service, plan), 201, 202)
	if bound == nil {
		h.settles(path, "succeeded")
		bound = h.ask("credentials", "GET", path, "", 200)
	}
	credentials, _ := bound.(map[string]any)
	return credentials
}

// remove deletes what is at the path and waits for it.
func (h *history) remove(path, service, plan string) {
	h.Helper()
	h.ask("", "DELETE", path+hints(service, plan)+"&accepts_incomplete=true", "", 200, 202, 410)
	h.settles(path, nil, "succeeded")
}
