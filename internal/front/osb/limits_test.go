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
	"github.com/longshore/longshore/internal/test/expect"
)

// A member longer than a record keeps is answered 400 before a write; one that just fits goes through (INP-13, INP-14).
func TestEveryMemberIsBounded(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	object := func(n int) string { return `{"x":"` + long(n-len(`{"x":""}`)) + `"}` }
	with := func(member string) string { return strings.TrimSuffix(provisionBody, "}") + "," + member + "}" }
	const old = `{"service_id":"s","plan_id":"p","context":{"organization_guid":"o","space_guid":"LONG"}}`
	originator := func(n int) string {
		header := "cf " + base64.StdEncoding.EncodeToString([]byte(object(n/2)))
		return header + long(n-len(header))
	}
	for name, tc := range map[string]struct {
		method, path, body string // in which LONG is a text, and OBJECT an object
		most               int
	}{
		"InstanceID":          {"PUT", "/v2/service_instances/LONG", provisionBody, limits.Identifier},
		"BindingID":           {"PUT", instance + "/service_bindings/LONG", provisionBody, limits.Identifier},
		"ServiceID":           {"PUT", instance, strings.Replace(provisionBody, `"s"`, `"LONG"`, 1), limits.Identifier},
		"PlanID":              {"PATCH", instance, `{"service_id":"s","plan_id":"LONG"}`, limits.Identifier},
		"Organization":        {"PUT", instance, strings.Replace(provisionBody, `"o"`, `"LONG"`, 1), limits.Identifier},
		"Space":               {"PUT", instance, strings.Replace(provisionBody, `"sp"`, `"LONG"`, 1), limits.Identifier},
		"SpaceInContext":      {"PUT", instance, old, limits.Identifier},
		"Maintenance":         {"PUT", instance, with(`"maintenance_info":{"version":"LONG"}`), limits.Identifier},
		"AppGUID":             {"PUT", binding, with(`"app_guid":"LONG"`), limits.Identifier},
		"ResourceAppGUID":     {"PUT", binding, with(`"bind_resource":{"app_guid":"LONG"}`), limits.Identifier},
		"Route":               {"PUT", binding, with(`"bind_resource":{"route":"LONG"}`), limits.Identifier},
		"Predecessor":         {"PUT", binding, with(`"predecessor_binding_id":"LONG"`), limits.Identifier},
		"Parameters":          {"PUT", instance, with(`"parameters":OBJECT`), limits.Parameters},
		"UpdateParameters":    {"PATCH", instance, with(`"parameters":OBJECT`), limits.Parameters},
		"BindParameters":      {"PUT", binding, with(`"parameters":OBJECT`), limits.Parameters},
		"Context":             {"PUT", instance, with(`"context":OBJECT`), limits.Context},
		"UpdateContext":       {"PATCH", instance, with(`"context":OBJECT`), limits.Context},
		"BindContext":         {"PUT", binding, with(`"context":OBJECT`), limits.Context},
		"OriginatorProvision": {"PUT", instance, provisionBody, limits.Identity},
		"OriginatorUpdate":    {"PATCH", instance, with(`"x":1`), limits.Identity},
	} {
		t.Run(name, func(t *testing.T) {
			for beyond := range 2 {
				n := tc.most + beyond
				fill := strings.NewReplacer("LONG", long(n), "OBJECT", object(n)).Replace
				var headers []string
				switch {
				case tc.body == old:
					headers = []string{"X-Broker-API-Version", "2.9"}
				case tc.most == limits.Identity:
					headers = []string{"X-Broker-API-Originating-Identity", originator(n)}
				}
				b := &stub{result: broker.Result{Effect: broker.Accepted}}
				w := ask(t, b, tc.method, fill(tc.path), fill(tc.body), headers...)
				want := map[bool]int{true: http.StatusAccepted, false: http.StatusBadRequest}[beyond == 0]
				if w.Code != want || (b.asked != nil) != (beyond == 0) {
					t.Errorf("%d bytes of %d: status %d, the broker was asked: %v: %s", n, tc.most, w.Code, b.asked != nil,
						w.Body)
				}
			}
		})
	}
}

// A deletion gets through whatever its audit header holds; what is too large to keep is left out (OID-03).
func TestDeletionsTakeAnyOriginator(t *testing.T) {
	for _, path := range []string{instance, binding} {
		b := &stub{result: broker.Result{Effect: broker.Done}}
		identity := "cf " + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", limits.Identity)))
		w := ask(t, b, "DELETE", path+"?service_id=s&plan_id=p", "", "X-Broker-API-Originating-Identity", identity)
		if q, ok := b.asked.(broker.DeleteRequest); w.Code != http.StatusOK || !ok || q.Identity != nil {
			t.Errorf("status %d: %s; the identity has %d bytes", w.Code, w.Body, len(q.Identity))
		}
	}
}

// A body that is not UTF-8 is refused, wherever in it that is, before the broker is asked (INP-17).
func TestBodiesAreUTF8(t *testing.T) {
	for _, member := range []string{"parameters", "context"} {
		body := strings.TrimSuffix(provisionBody, "}") + ",\"" + member + "\":{\"a\":\"\xff\"}}"
		for path, method := range map[string]string{instance: "PUT", instance + "?": "PATCH", binding: "PUT"} {
			b := &stub{}
			w := ask(t, b, method, path, body)
			expect.Same(t, method+" "+path, http.StatusBadRequest, w.Code)
			expect.Says(t, method+" "+path, fmt.Sprint(bodyOf(t, w)["description"]), "UTF-8")
			expect.Same(t, "the broker was asked", false, b.asked != nil)
		}
	}
}

// A path is refused for what is wrong with it.
func TestRefusedPathsSayWhy(t *testing.T) {
	for id, says := range map[string]string{"a%00b": "control character", "a%0Ab": "control character",
		"a%C2%85b": "control character", "a%FFb": "not valid percent-encoded UTF-8 text"} {
		w := ask(t, &stub{}, "GET", "/v2/service_instances/"+id, "")
		expect.Same(t, id, http.StatusBadRequest, w.Code)
		expect.Says(t, id, fmt.Sprint(bodyOf(t, w)["description"]), says)
	}
}

// A client of a version without asynchronous bindings learns which has them; to others the sentence is the known one (ERR-03).
func TestOldClientsLearnWhichVersionBindsAsynchronously(t *testing.T) {
	const query = "?service_id=s&plan_id=p&accepts_incomplete=true"
	for name, c := range map[string]struct {
		method, path, version string
		namesVersion          bool
	}{
		"Bind":      {http.MethodPut, binding, "2.13", true},
		"Unbind":    {http.MethodDelete, binding + query, "2.13", true},
		"NewBind":   {http.MethodPut, binding, "2.14", false},
		"Provision": {http.MethodPut, instance, "2.13", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &stub{err: lifecycle.RefuseAsyncRequired()}
			w := ask(t, b, c.method, c.path, provisionBody, "X-Broker-API-Version", c.version)
			body := bodyOf(t, w)
			said, _ := body["description"].(string)
			if w.Code != http.StatusUnprocessableEntity || body["error"] != "AsyncRequired" ||
				!strings.HasPrefix(said, lifecycle.AsyncRequiredSentence) ||
				strings.Contains(said, "need version 2.14") != c.namesVersion {
				t.Errorf("%d %v", w.Code, body)
			}
		})
	}
}

// A platform that asks too much is told when to come back, and its body is not read. A login that fails is not counted.
func TestAPlatformThatAsksTooMuch(t *testing.T) {
	b := &stub{}
	s := newServer(t, b, io.Discard)
	now := epoch
	s.Throttle = rates.New(1, func() time.Time { return now })
	for range 10 {
		expect.Same(t, "a wrong login", 401, send(t, s, "GET", "/v2/catalog", "", "Authorization", "Basic eDp5").Code)
	}
	for range 2 {
		expect.Same(t, "within the rate", 200, send(t, s, "GET", instance, "").Code)
	}
	b.asked = nil
	r := request("PUT", instance+"?accepts_incomplete=true", "")
	r.Body, r.ContentLength = io.NopCloser(unread{t}), -1
	w := httptest.NewRecorder()
	now = now.Add(100 * time.Millisecond)
	s.ServeHTTP(w, r)
	body := bodyOf(t, w)
	expect.Same(t, "beyond the rate", 429, w.Code)
	expect.Same(t, "Retry-After", "1", w.Header().Get("Retry-After"))
	if body["error"] != "TooManyRequests" || !strings.HasSuffix(body["description"].(string), ".") || b.asked != nil {
		t.Errorf("beyond the rate: %v, and the broker was asked %v", body, b.asked)
	}
	now = now.Add(time.Second)
	expect.Same(t, "a second later", 200, send(t, s, "GET", instance, "").Code)
}

// unread is a body that nobody is to read.
type unread struct{ t *testing.T }

func (b unread) Read([]byte) (int, error) {
	b.t.Error("the body is read")
	return 0, io.EOF
}
