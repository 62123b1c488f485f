package fuzz_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/front/osb"
)

// A seed is what the fuzzer begins with and changes: of the state-th instance of the snapshot, or of another id if there is
// one; the rest as it is sent. In the query, TOKEN stands for the token of the instance's last operation.
type seed struct {
	state                            uint8
	id, version, query, who, whoAsks string
	body                             string
}

// A target is a handler: how its path is made of the instance's segment, and the queries and bodies that are sent to
// instances in every state.
type target struct {
	method  string
	path    func(instance string) string
	queries []string
	bodies  []string
}

const (
	later    = "accepts_incomplete=true"
	identity = "cloudfoundry eyJ1c2VyX2lkIjoiNjgzZWE3NDgtMzA5Mi00ZmY0LWI2NTYtMzljYWNjNGQ1MzYwIn0="
)

func ofInstance(suffix string) func(string) string {
	return func(instance string) string { return instancePath + instance + suffix }
}

// ofBinding is the path of the instance's binding, as prefix and suffix make it.
func ofBinding(prefix, suffix string) func(string) string {
	return func(instance string) string {
		return instancePath + instance + bindingPath + prefix + instance + suffix
	}
}

// run fuzzes a target.
func (g target) run(f *testing.F) {
	if len(g.bodies) == 0 {
		g.bodies = []string{""}
	}
	for state := range states {
		for _, query := range g.queries {
			for _, body := range g.bodies {
				f.Add(uint8(state), "", "2.17", query, identity, "request-1", body)
			}
		}
	}
	f.Add(uint8(0), "a%2Fb", "2.9", later, "cloudfoundry !", "request\t1", g.bodies[0])
	f.Add(uint8(0), "%ff", "", "service_id=%zz&plan_id", "", "", "{")
	f.Fuzz(func(t *testing.T, state uint8, id, version, query, who, whoAsks, body string) {
		g.check(t, seed{state, id, version, query, who, whoAsks, body})
	})
}

func (g target) check(t *testing.T, d seed) {
	s := copied()
	name := states[int(d.state)%len(states)]
	q := request{method: g.method, body: d.body, header: map[string]string{"X-Broker-API-Version": d.version,
		"X-Broker-API-Originating-Identity": d.who, "X-Broker-API-Request-Identity": d.whoAsks}}
	path := g.path(cmp.Or(d.id, name))
	if d.query != "" {
		path += "?" + d.query
	}
	path = strings.ReplaceAll(path, "TOKEN", used().tokens[name])
	// In its state, and again when that has changed; by one platform, and by another, which sees none of it.
	for _, by := range [][2]string{{"root", ""}, {"root", ""}, {"eu", "/cf-eu"}} {
		q.user, q.target = by[0], by[1]+path
		w, err := s.send(q)
		if err != nil {
			return
		}
		d.answered(t, q, w)
	}
	s.rest(t)
	s.owned(t)
}

// answered requires what every answer has.
func (d seed) answered(t *testing.T, q request, w *httptest.ResponseRecorder) {
	t.Helper()
	wrong := func(is bool, what string) {
		t.Helper()
		if is {
			t.Errorf("%s %s with %q: %s: status %d, %v: %s", q.method, q.target, q.body, what, w.Code, w.Header(), w.Body)
		}
	}
	wrong(w.Code < 200 || w.Code >= 500 && !d.asksForTrouble(), "no such status was asked for")
	if w.Code != http.StatusNotModified {
		var object map[string]json.RawMessage
		err := json.Unmarshal(w.Body.Bytes(), &object)
		wrong(err != nil || object == nil, "the body is no object")
		wrong(w.Code >= 400 && object["description"] == nil && w.Code != http.StatusGone, "it does not say why")
	}
	identity := osb.RequestIdentity(http.Header{"X-Broker-Api-Request-Identity": {d.whoAsks}})
	wrong(w.Header().Get("X-Broker-API-Request-Identity") != identity, "the identity is not "+identity)
	leads := strings.Contains(w.Header().Get("Location"), "/operations/")
	wrong(w.Code == http.StatusAccepted && !leads, "it was accepted, and leads to no operation")
}

// asksForTrouble reports whether a request may have asked the demo to fail, or
// to take longer than a request waits: only then is a 500 right.
func (d seed) asksForTrouble() bool {
	return slices.ContainsFunc([]string{"fail", "delay", `\u`, planID("fail"), planID("update-fail")},
		func(sign string) bool { return strings.Contains(strings.ToLower(d.body), sign) })
}

func FuzzCatalog(f *testing.F) {
	target{"GET", func(string) string { return "/v2/catalog" }, []string{"", "x=%zz"}, nil}.run(f)
}

func FuzzProvision(f *testing.F) {
	maintained := strings.TrimSuffix(provisioning("maintenance"), "}") +
		`,"maintenance_info":{"version":"2.0.0"},"context":{"platform":"cloudfoundry","organization_guid":"o"}}`
	target{"PUT", ofInstance(""), []string{"", later},
		[]string{provisioning("async"), provisioning("sync"), provisioning("schema"), maintained}}.run(f)
}

func FuzzUpdate(f *testing.F) {
	update := func(rest string) string { return `{"service_id":"` + serviceID + `",` + rest + `}` }
	target{"PATCH", ofInstance(""), []string{"", later}, []string{
		update(`"parameters":{"a":3}`), update(`"plan_id":"` + planID("sync") + `","previous_values":{"plan_id":"x"}`),
		update(`"maintenance_info":{"version":"2.0.0"}`), update(`"context":{"platform":"kubernetes","namespace":"n"}`),
	}}.run(f)
}

func FuzzDeprovision(f *testing.F) {
	queries := []string{idsOf("async"), later + "&" + idsOf("async"), later + "&" + idsOf("sync"), later}
	target{"DELETE", ofInstance(""), queries, nil}.run(f)
}

func FuzzGetInstance(f *testing.F) {
	target{"GET", ofInstance(""), []string{"", idsOf("async")}, nil}.run(f)
}

func FuzzLastOperation(f *testing.F) {
	queries := []string{"", "operation=TOKEN", idsOf("async") + "&operation=TOKEN", "operation=x.y"}
	target{"GET", ofInstance("/last_operation"), queries, nil}.run(f)
}

func FuzzBind(f *testing.F) {
	target{"PUT", ofBinding("b-", ""), []string{"", later}, []string{
		binding("async"), binding("sync"), binding("async-bind"), `{"predecessor_binding_id":"b-rotatable"}`}}.run(f)
}

func FuzzRotate(f *testing.F) {
	target{"PUT", ofBinding("n-", ""), []string{"", later}, []string{
		`{"predecessor_binding_id":"b-rotatable"}`, `{"predecessor_binding_id":"n-rotatable"}`, binding("rotatable")}}.run(f)
}

func FuzzUnbind(f *testing.F) {
	queries := []string{idsOf("async"), later + "&" + idsOf("async-bind"), later + "&" + idsOf("rotatable")}
	target{"DELETE", ofBinding("b-", ""), queries, nil}.run(f)
}

func FuzzGetBinding(f *testing.F) {
	target{"GET", ofBinding("b-", ""), []string{"", idsOf("async")}, nil}.run(f)
}

func FuzzBindingLastOperation(f *testing.F) {
	target{"GET", ofBinding("b-", "/last_operation"), []string{"", "operation=TOKEN"}, nil}.run(f)
}

// ofOperation is the path of an instance's last operation, or of a made-up one.
func ofOperation(segment string) string {
	if slices.Contains(states, segment) {
		segment = "TOKEN"
	}
	return "/operations/" + segment
}

func FuzzOperation(f *testing.F) { target{"GET", ofOperation, []string{""}, nil}.run(f) }
func FuzzCancel(f *testing.F)    { target{"DELETE", ofOperation, []string{"", later}, nil}.run(f) }
