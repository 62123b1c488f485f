package osb_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/front/rates"
	"github.com/longshore/longshore/internal/lifecycle"
)

// Each member that a record keeps has a bound: a longer one is answered 400 before anything is
// written, and one that just fits goes through (INP-13, INP-14).
func TestEveryMemberIsBounded(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	object := func(n int) string { return `{"x":"` + long(n-len(`{"x":""}`)) + `"}` }
	with := func(members string) string {
		return `{"service_id":"s","plan_id":"p","organization_guid":"o","space_guid":"sp",` + members + `}`
	}
	const instance, binding = "/v2/service_instances/i", "/v2/service_instances/i/service_bindings/b"
	identity := func(n int) []string {
		header := "cf " + base64.StdEncoding.EncodeToString([]byte(object(n/2)))
		return []string{"X-Broker-API-Originating-Identity", header + long(n-len(header))}
	}
	cases := map[string]struct {
		method, path string
		body         func(n int) string
		header       func(n int) []string
		most         int
	}{
		"InstanceID": {"PUT", instance, nil, nil, limits.Identifier},
		"BindingID":  {"PUT", binding, nil, nil, limits.Identifier},
		"ServiceID": {"PUT", instance,
			func(n int) string { return strings.Replace(provisionBody, `"s"`, `"`+long(n)+`"`, 1) }, nil,
			limits.Identifier},
		"PlanID": {"PATCH", instance, func(n int) string { return `{"service_id":"s","plan_id":"` + long(n) + `"}` }, nil,
			limits.Identifier},
		"Organization": {"PUT", instance,
			func(n int) string { return strings.Replace(provisionBody, `"o"`, `"`+long(n)+`"`, 1) }, nil,
			limits.Identifier},
		"Space": {"PUT", instance, func(n int) string { return strings.Replace(provisionBody, `"sp"`, `"`+long(n)+`"`, 1) }, nil,
			limits.Identifier},
		"SpaceInContext": {"PUT", instance, func(n int) string {
			return `{"service_id":"s","plan_id":"p","context":{"organization_guid":"o","space_guid":"` + long(n) + `"}}`
		}, func(int) []string { return []string{"X-Broker-API-Version", "2.9"} }, limits.Identifier},
		"Maintenance": {"PUT", instance,
			func(n int) string { return with(`"maintenance_info":{"version":"` + long(n) + `"}`) }, nil,
			limits.Identifier},
		"AppGUID": {"PUT", binding, func(n int) string { return with(`"app_guid":"` + long(n) + `"`) }, nil, limits.Identifier},
		"ResourceAppGUID": {"PUT", binding,
			func(n int) string { return with(`"bind_resource":{"app_guid":"` + long(n) + `"}`) }, nil,
			limits.Identifier},
		"Route": {"PUT", binding, func(n int) string { return with(`"bind_resource":{"route":"` + long(n) + `"}`) }, nil,
			limits.Identifier},
		"Predecessor": {"PUT", binding, func(n int) string { return with(`"predecessor_binding_id":"` + long(n) + `"`) }, nil,
			limits.Identifier},
		"Parameters": {"PUT", instance, func(n int) string { return with(`"parameters":` + object(n)) }, nil,
			limits.Parameters},
		"UpdateParameters": {"PATCH", instance, func(n int) string { return with(`"parameters":` + object(n)) }, nil,
			limits.Parameters},
		"BindParameters": {"PUT", binding, func(n int) string { return with(`"parameters":` + object(n)) }, nil,
			limits.Parameters},
		"Context":       {"PUT", instance, func(n int) string { return with(`"context":` + object(n)) }, nil, limits.Context},
		"UpdateContext": {"PATCH", instance, func(n int) string { return with(`"context":` + object(n)) }, nil, limits.Context},
		"BindContext": {"PUT", binding, func(n int) string { return with(`"context":` + object(n)) }, nil,
			limits.Context},
		"OriginatorProvision": {"PUT", instance, nil, identity, limits.Identity},
		"OriginatorUpdate":    {"PATCH", instance, func(int) string { return with(`"x":1`) }, identity, limits.Identity},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for beyond := range 2 {
				n := tc.most + beyond
				path, body, header := tc.path, provisionBody, []string(nil)
				if tc.body != nil {
					body = tc.body(n)
				}
				if tc.header != nil {
					header = tc.header(n)
				}
				if tc.body == nil && tc.header == nil {
					path = path[:len(path)-1] + long(n)
				}
				b := &stub{result: broker.Result{Effect: broker.Accepted}}
				w := send(t, newServer(t, b, io.Discard), tc.method, path, body, header...)
				if want := beyond == 0; (w.Code == http.StatusAccepted) != want || (b.asked != nil) != want ||
					(w.Code == http.StatusBadRequest) == want {
					t.Errorf("%d bytes of %d: status %d, the broker was asked: %v: %s", n, tc.most, w.Code,
						b.asked != nil, w.Body)
				}
			}
		})
	}
}

// A deletion gets through whatever its audit header holds; what is too large to
// keep is left out (OID-03).
func TestDeletionsTakeAnyOriginator(t *testing.T) {
	for _, path := range []string{"/v2/service_instances/i", "/v2/service_instances/i/service_bindings/b"} {
		b := &stub{result: broker.Result{Effect: broker.Done}}
		identity := "cf " + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", limits.Identity)))
		w := send(t, newServer(t, b, io.Discard), "DELETE", path+"?service_id=s&plan_id=p", "",
			"X-Broker-API-Originating-Identity", identity)
		if q, ok := b.asked.(broker.DeleteRequest); w.Code != http.StatusOK || !ok || q.Identity != nil {
			t.Errorf("status %d: %s; the identity has %d bytes", w.Code, w.Body, len(q.Identity))
		}
	}
}

// A path is refused for what is wrong with it.
func TestRefusedPathsSayWhy(t *testing.T) {
	for name, c := range map[string]struct{ id, says string }{
		"Null":    {"a%00b", "control character"},
		"Newline": {"a%0Ab", "control character"},
		"C1":      {"a%C2%85b", "control character"},
		"NotUTF8": {"a%FFb", "not valid percent-encoded UTF-8 text"},
	} {
		t.Run(name, func(t *testing.T) {
			w := send(t, newServer(t, &stub{}, io.Discard), http.MethodGet, "/v2/service_instances/"+c.id, "")
			if said, _ := bodyOf(t, w)["description"].(string); w.Code != http.StatusBadRequest ||
				!strings.Contains(said, c.says) {
				t.Errorf("%d %q, want 400 and %q", w.Code, said, c.says)
			}
		})
	}
}

// A client that speaks a version without asynchronous bindings learns which version
// has them; to others the sentence is the one that they know word for word (ERR-03).
func TestOldClientsLearnWhichVersionBindsAsynchronously(t *testing.T) {
	const ids = "?service_id=s&plan_id=p&accepts_incomplete=true"
	for name, c := range map[string]struct {
		method, path, version string
		namesVersion          bool
	}{
		"Bind":      {http.MethodPut, "/v2/service_instances/i/service_bindings/b", "2.13", true},
		"Unbind":    {http.MethodDelete, "/v2/service_instances/i/service_bindings/b" + ids, "2.13", true},
		"NewBind":   {http.MethodPut, "/v2/service_instances/i/service_bindings/b", "2.14", false},
		"Provision": {http.MethodPut, "/v2/service_instances/i", "2.13", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &stub{err: lifecycle.RefuseAsyncRequired()}
			w := send(t, newServer(t, b, io.Discard), c.method, c.path, provisionBody, "X-Broker-API-Version", c.version)
			body := bodyOf(t, w)
			said, _ := body["description"].(string)
			if w.Code != http.StatusUnprocessableEntity || body["error"] != "AsyncRequired" ||
				!strings.HasPrefix(said, lifecycle.AsyncRequiredSentence) ||
				strings.Contains(said, "from version 2.14") != c.namesVersion {
				t.Errorf("%d %v", w.Code, body)
			}
		})
	}
}

// A platform that asks too much is told when to come back, and neither its body
// nor anything that is kept is read for it. A login that fails is not counted.
func TestAPlatformThatAsksTooMuch(t *testing.T) {
	b := &stub{}
	s := newServer(t, b, io.Discard)
	now := epoch
	s.Throttle = rates.New(1, func() time.Time { return now })
	for range 10 {
		if w := send(t, s, "GET", "/v2/catalog", "", "Authorization", "Basic eDp5"); w.Code != 401 {
			t.Fatalf("a wrong login is answered %d", w.Code)
		}
	}
	for range 2 {
		if w := send(t, s, "GET", "/v2/service_instances/i", ""); w.Code != 200 {
			t.Fatalf("within the rate: %d %s", w.Code, w.Body)
		}
	}
	b.asked = nil
	r := httptest.NewRequest("PUT", "/v2/service_instances/i?accepts_incomplete=true", unread{t})
	r.SetBasicAuth("u", "p:w")
	r.Header.Set("X-Broker-API-Version", "2.17")
	w := httptest.NewRecorder()
	now = now.Add(100 * time.Millisecond)
	s.ServeHTTP(w, r)
	if body := bodyOf(t, w); w.Code != 429 || w.Header().Get("Retry-After") != "1" || body["error"] != "TooManyRequests" ||
		!strings.HasSuffix(body["description"].(string), ".") {
		t.Errorf("beyond the rate: %d, Retry-After %q, %v", w.Code, w.Header().Get("Retry-After"), body)
	}
	if b.asked != nil {
		t.Errorf("the broker was asked %v", b.asked)
	}
	if now = now.Add(time.Second); send(t, s, "GET", "/v2/service_instances/i", "").Code != 200 {
		t.Error("a second later it is refused")
	}
}

// unread is a body that nobody is to read.
type unread struct{ t *testing.T }

func (b unread) Read([]byte) (int, error) {
	b.t.Error("the body is read")
	return 0, io.EOF
}
