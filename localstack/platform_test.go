//go:build deployed

// Package localstack_test tests a broker that is deployed, by what a platform sees of it: the real functions behind API
// Gateway, driven by Step Functions. `make localstack-test` runs it; it needs BROKER_URL, BROKER_USERNAME and
// BROKER_PASSWORD, and fails without them.
package localstack_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// The ids of the demo's offerings never change once published.
const (
	service   = "f95c6dc5-becc-415a-96b6-c5997d1a68fe"
	planSync  = "d574c774-74a4-427c-9694-41484f478244"
	planAsync = "4dcb3699-4e64-40fe-aa3b-ec0d58a96028"

	// settleLimit is generous: an execution that fails at its start waits for the reaper's next minute.
	settleLimit = 10 * time.Minute
	callLimit   = 35 * time.Second // the gateway's own is 29 s
)

// A platform is a client of the broker.
type platform struct{ url, username, password string }

func newPlatform(t *testing.T) platform {
	t.Helper()
	p := platform{os.Getenv("BROKER_URL"), os.Getenv("BROKER_USERNAME"), os.Getenv("BROKER_PASSWORD")}
	if p.url == "" || p.username == "" || p.password == "" {
		t.Fatal("BROKER_URL, BROKER_USERNAME or BROKER_PASSWORD is not set: run make localstack-test")
	}
	return p
}

// id is one that no other test, nor an earlier run, has.
func id(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:12]) }

type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (a answer) text(name string) string {
	s, _ := a.body[name].(string)
	return s
}

// ask sends a request whose path is escaped already.
func (p platform) ask(t *testing.T, method, path, body string) answer {
	t.Helper()
	request := expect.Get(http.NewRequestWithContext(t.Context(), method, p.url+path, strings.NewReader(body)))(t)
	request.SetBasicAuth(p.username, p.password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	request.Header.Set("Content-Type", "application/json")
	// Not sent: it has the client send again what met a kept connection that the emulator closed meanwhile.
	request.Header["X-Idempotency-Key"] = []string{}
	client := http.Client{Timeout: callLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response := expect.Get(client.Do(request))(t, method, path)
	defer func() { _ = response.Body.Close() }()
	raw := expect.Get(io.ReadAll(response.Body))(t, method, path)
	return answer{status: response.StatusCode, header: response.Header, raw: string(raw)}
}

// call asks for one of the statuses. Every answer must be JSON, an error with a description.
func (p platform) call(t *testing.T, method, path, body string, want ...int) answer {
	t.Helper()
	a := p.ask(t, method, path, body)
	if err := json.Unmarshal([]byte(a.raw), &a.body); err != nil {
		t.Fatalf("%s %s: %d with %q, which is no JSON object", method, path, a.status, a.raw)
	}
	keepCredentials(a.body["credentials"])
	if !slices.Contains(want, a.status) {
		t.Fatalf("%s %s: %d %s, want %d", method, path, a.status, a.raw, want)
	}
	if a.status >= 400 && a.status != http.StatusGone && a.text("description") == "" {
		t.Errorf("%s %s: %d has no description: %s", method, path, a.status, a.raw)
	}
	return a
}

func instancePath(id string) string { return "/v2/service_instances/" + url.PathEscape(id) }

func hintsOf(service, plan string) string { return "service_id=" + service + "&plan_id=" + plan }

func hints(plan string) string { return hintsOf(service, plan) }

// order is the body that orders an instance, and has more members.
func order(service, plan, more string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s"%s}`, service, plan, more)
}

// provision orders an instance of the demo.
func provision(plan string) string {
	return order(service, plan, fmt.Sprintf(`,"parameters":{"note":%q}`, canary))
}

// bind is the body that orders a binding.
func bind(service, plan string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, plan)
}

// settled polls the operation as a platform does; a deletion ends as gone.
func (p platform) settled(t *testing.T, path, operation string) (state string) {
	t.Helper()
	eventually(t, fmt.Sprintf("operation %q of %s has settled", operation, path), settleLimit, func() bool {
		a := p.call(t, "GET", path+"/last_operation?"+url.Values{"operation": {operation}}.Encode(), "", 200, 410)
		state = a.text("state")
		return a.status == http.StatusGone || state != "in progress"
	})
	return state
}

// ends makes a request that is answered later, and waits for its end.
func (p platform) ends(t *testing.T, method, path, query, body string) (operation string) {
	t.Helper()
	operation = p.call(t, method, path+"?accepts_incomplete=true&"+query, body, 202).text("operation")
	want := "succeeded"
	if method == "DELETE" {
		want = "" // it is gone
	}
	if state := p.settled(t, path, operation); state != want {
		t.Fatalf("%s %s ended %q", method, path, state)
	}
	return operation
}

// deletes removes, at once, what is at each of the paths, of the demo's synchronous plan.
func (p platform) deletes(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		p.call(t, "DELETE", path+"?"+hints(planSync), "", 200)
	}
}
