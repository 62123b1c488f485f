package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// A httpCase is one request to a broker in a known state, and what it must
// answer: where the conformance kit leaves brokers a choice, or asks nothing. In paths and bodies,
// I and B stand for fresh instance and binding
// ids, and $name for the id of a plan or offering of the catalog.
type httpCase struct {
	rule   string // of docs/conformance.md
	given  given
	method string
	path   string // after /v2/service_instances/ unless it begins with a slash
	body   string
	header map[string]string // an empty value: not sent
	status int
	// has lists members that the answer must have: name, or name=JSON value. lacks lists members that it must not have.
	has, lacks []string
	only       bool // has lists all of its members
	// then is read back afterwards: nothing has changed.
	then *then
}

type then struct {
	path   string
	status int
	has    []string
}

// A given brings an instance, or a binding, into a state.
type given string

const (
	nothing        given = ""
	ready          given = "an instance that is ready"
	readyAsync     given = "a ready instance of async-only"
	provisioning   given = "an instance that is being provisioned"
	provisionedBad given = "an instance whose provision failed"
	updatedBad     given = "an instance whose update failed"
	deleting       given = "an instance that is being deleted"
	deleted        given = "an instance that was deleted"
	deletedBad     given = "an instance whose deletion failed"
	bound          given = "a binding of a ready instance"
	binding        given = "a binding that is being made"
	boundAsync     given = "a binding of async-bind"
	notBindable    given = "a ready instance of not-bindable"
	notUpdateable  given = "a ready instance of not-updateable"
	maintained     given = "a ready instance of maintenance"
	asyncBindable  given = "a ready instance of async-bind"
)

// demoOf is the body of a provision of the demo.
func demoOf(plan, parameters string) string {
	if parameters != "" {
		parameters = `,"parameters":` + parameters
	}
	return `{"service_id":"$demo","plan_id":"$` + plan + `",` + place + parameters + `}`
}

const (
	place    = `"organization_guid":"o","space_guid":"s"`
	bind1    = `{"service_id":"$demo","plan_id":"$sync","bind_resource":{"app_guid":"app"},"app_guid":"app"}`
	bindSlow = `{"service_id":"$demo","plan_id":"$async-bind","parameters":{"delay_seconds":30}}`
	ids      = "service_id=$demo&plan_id=$sync"
	idsLong  = "service_id=$demo&plan_id=$async-only"
	asyncReq = "AsyncRequired"
)

func conflictError(code string) []string { return []string{`error="` + code + `"`, "description"} }

var (
	sync1 = demoOf("sync", `{"a":1,"b":"x"}`)
	long1 = demoOf("async-only", `{"delay_seconds":30}`)
)

// steps are the requests that bring about each given; the last one's operation
// is polled to its end unless the given is in the making.
var steps = map[given][]httpCase{
	ready: {{method: "PUT", path: "I", body: sync1, status: 201}},
	readyAsync: {{method: "PUT", path: "I" + async, body: demoOf("async-only", `{"delay_seconds":0}`), status: 202},
		{path: "poll"}},
	provisioning: {{method: "PUT", path: "I" + async, body: long1, status: 202}},
	provisionedBad: {{method: "PUT", path: "I" + async, body: demoOf("fail", `{"delay_seconds":0}`), status: 202},
		{path: "poll"}},
	updatedBad: {{method: "PUT", path: "I", body: demoOf("update-fail", `{"a":1}`), status: 201},
		{method: "PATCH", path: "I" + async, body: `{"service_id":"$demo","parameters":{"a":2,"delay_seconds":0}}`, status: 202},
		{path: "poll"}},
	deleting: {{method: "PUT", path: "I" + async, body: demoOf("async", ""), status: 202}, {path: "poll"},
		{method: "PATCH", path: "I", body: `{"service_id":"$demo","parameters":{"delay_seconds":2}}`, status: 200},
		{method: "DELETE", path: "I" + async + "&" + idsLong, status: 202}},
	deleted: {{method: "PUT", path: "I", body: sync1, status: 201}, {method: "DELETE", path: "I?" + ids, status: 200}},
	deletedBad: {{method: "PUT", path: "I", body: demoOf("async", `{"fail":"deprovision"}`), status: 201},
		{method: "DELETE", path: "I" + async + "&" + ids, status: 202}, {path: "poll"}},
	bound: {{method: "PUT", path: "I", body: sync1, status: 201},
		{method: "PUT", path: "I/service_bindings/B", body: bind1, status: 201}},
	binding: {{method: "PUT", path: "I", body: demoOf("async-bind", ""), status: 201},
		{method: "PUT", path: "I/service_bindings/B" + async, body: bindSlow, status: 202}},
	boundAsync: {{method: "PUT", path: "I", body: demoOf("async-bind", ""), status: 201},
		{method: "PUT", path: "I/service_bindings/B" + async,
			body: `{"service_id":"$demo","plan_id":"$async-bind"}`, status: 202},
		{path: "poll binding"}},
	notBindable:   {{method: "PUT", path: "I", body: demoOf("not-bindable", ""), status: 201}},
	notUpdateable: {{method: "PUT", path: "I", body: demoOf("not-updateable", ""), status: 201}},
	asyncBindable: {{method: "PUT", path: "I", body: demoOf("async-bind", ""), status: 201}},
	maintained: {{method: "PUT", path: "I",
		body:   `{"service_id":"$demo","plan_id":"$maintenance",` + place + `,"maintenance_info":{"version":"2.0.0"}}`,
		status: 201}},
}

func version(v string) map[string]string { return map[string]string{"X-Broker-API-Version": v} }

var (
	stillReady = &then{path: "I", status: 200, has: []string{`plan_id="$sync"`, `parameters={"a":1,"b":"x"}`}}
	noInstance = &then{path: "I/last_operation", status: 404}
)

// bindTwoSteps takes two recorded steps within its request.
var bindTwoSteps = httpCase{
	rule: "BIND-16 a bind that takes its time", given: ready, method: "PUT", path: "I/service_bindings/B",
	body: strings.Replace(bind1, `"app_guid":"app"}`, `"app_guid":"app","parameters":{"delay_seconds":0.2}}`, 1), status: 201,
	has: []string{"credentials"}, then: &then{path: "I/service_bindings/B", status: 200, has: []string{"credentials"}},
}

// restoring is a provision that is restored from another instance.
func restoring(from string) string {
	return demoOf("restorable", `{"restore_from":"`+from+`"}`)
}

var restores = []httpCase{
	{rule: "PROV-01 restored from another", given: ready, method: "PUT", path: "I-restored", body: restoring("$I"), status: 201,
		then: &then{path: "I-restored", status: 200}},
	{rule: "PROV-01 restored from nothing", given: ready, method: "PUT", path: "I-restored", body: restoring("$I-absent"),
		status: 400, has: []string{"description"}},
}

func httpCases() []httpCase {
	cases := slices.Concat(requestCases(), changeCases(), []httpCase{bindTwoSteps}, restores)
	for _, id := range []string{"a%20b", "a%2Fb", "%C3%A9", "~._-", "a%23b", "a%3Fb", "%2e%2e", "a%25b", "a;b", "a:b@c"} {
		cases = append(cases, httpCase{rule: "INP-11 " + id, method: "PUT", path: "I" + id, body: sync1, status: 201,
			then: &then{path: "I" + id, status: 200}})
	}
	return cases
}

func requestCases() []httpCase {
	return []httpCase{
		{rule: "MISC-06 curl's default content type", given: ready, method: "PUT", path: "I/service_bindings/B", body: bind1,
			header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, status: 201,
			has: []string{"credentials"}},
		{rule: "INP-09 empty", method: "PUT", path: "I?accepts_incomplete=", body: long1, status: 400, then: noInstance},
		{rule: "INP-09 twice", method: "PUT", path: "I?accepts_incomplete=true&accepts_incomplete=true", body: long1, status: 400,
			then: noInstance},
		{rule: "INP-10 in the body", method: "PUT", path: "I",
			body: strings.Replace(long1, "{", `{"accepts_incomplete":true,`, 1), status: 202},
		{rule: "INP-10 the query wins", method: "PUT", path: "I?accepts_incomplete=false",
			body: strings.Replace(long1, "{", `{"accepts_incomplete":true,`, 1), status: 422},
		{rule: "INP-14, NFR-10: body over 256 KiB", method: "PUT", path: "I",
			body: `{"x":"` + strings.Repeat("a", 256<<10) + `"}`, status: 413, then: noInstance},
		{rule: "INP-14 body of 12 MiB", method: "PUT", path: "I", body: `{"x":"` + strings.Repeat("a", 12<<20) + `"}`,
			status: 413, then: noInstance},
		{rule: "INP-15 context", method: "PUT", path: "I",
			body:   strings.Replace(sync1, "{", `{"context":{"x":`+strings.Repeat("[", 9990)+strings.Repeat("]", 9990)+`},`, 1),
			status: 400, then: noInstance},
		{rule: "INP-15 allowed", method: "PUT", path: "I",
			body: strings.Replace(sync1, "{",
				`{"context":{"x":`+strings.Repeat("[", 900)+strings.Repeat("]", 900)+`,"s":"[[[\\\"{{"},`, 1),
			status: 201, then: &then{path: "I", status: 200}},
		{rule: "FAC-12 a forged token", method: "GET",
			path: "/operations/AAAAAAAAAAAAAAAAAAAAAA.ZGVmYXVsdA." + strings.Repeat("QUFB", 1000), status: 404},
		{rule: "INP-16", method: "DELETE", path: "/v2/catalog", status: 405},
		{rule: "INP-16", method: "GET", path: "/", status: 404},
		{rule: "CLI-07 unknown plan", given: ready, method: "PUT", path: "I", body: strings.Replace(sync1, "$sync", "nope", 1),
			status: 400, then: stillReady},
		{rule: "PROV-23", method: "PUT", path: "I",
			body: strings.Replace(sync1, "{", `{"maintenance_info":{"description":"x"},`, 1), status: 400, then: noInstance},
		{rule: "CLI-04", method: "PUT", path: "I", body: strings.Replace(sync1, "{", `{"maintenance_info":{},`, 1), status: 201},
		{rule: "PROV-29", given: deleting, method: "PUT", path: "I" + async, body: sync1, status: 409},
		{rule: "PROV-33 a provider's failure", method: "PUT", path: "I",
			body: strings.Replace(sync1, `"a":1`, `"fail":true`, 1), status: 500,
			has: []string{"description"}, then: &then{path: "I/last_operation", status: 200, has: []string{`state="failed"`}}},
		{rule: "INP-05 a service key as Go clients ask for it", given: ready, method: "PUT", path: "I/service_bindings/B",
			body: `{"service_id":"$demo","plan_id":"$sync","app_guid":"","context":{},` +
				`"bind_resource":{"app_guid":"","route":""}}`,
			status: 201},
	}
}

// changeCases are of updates and deletions, and of what follows on them.
func changeCases() []httpCase {
	return []httpCase{
		{rule: "UPD-01", given: ready, method: "PATCH", path: "I",
			body: `{"service_id":"$demo","parameters":{"b":"y"}}`, status: 200,
			lacks: []string{"operation"}, then: &then{path: "I", status: 200, has: []string{`parameters={"a":1,"b":"y"}`}}},
		{rule: "UPD-08", given: ready, method: "PATCH", path: "I",
			body: `{"service_id":"$demo","parameters":{"b":null,"c":null}}`, status: 200,
			then: &then{path: "I", status: 200, has: []string{`parameters={"a":1}`}}},
		{rule: "UPD-12 the result", given: ready, method: "PATCH", path: "I",
			body: `{"service_id":"$demo","plan_id":"$schema"}`, status: 400,
			has: []string{`description="parameter /a is not a parameter of the plan; give it as null to remove it; ` +
				`parameter /b is not a parameter of the plan; give it as null to remove it"`}, then: stillReady},
		{rule: "UPD-12 the result", given: ready, method: "PATCH", path: "I",
			body: `{"service_id":"$demo","plan_id":"$schema","parameters":{"a":null,"b":null,"size":"small"}}`, status: 200,
			then: &then{path: "I", status: 200, has: []string{`plan_id="$schema"`, `parameters={"size":"small"}`}}},
		{rule: "UPD-03 the target's plan", given: ready, method: "PATCH", path: "I",
			body:   `{"service_id":"$demo","plan_id":"$async-only"}`,
			status: 422, has: conflictError(asyncReq), then: stillReady},
		{rule: "UPD-05", given: ready, method: "PATCH", path: "I", body: `{"service_id":"$demo-other"}`, status: 400,
			then: stillReady},
		{rule: "UPD-09, UPD-11", given: notUpdateable, method: "PATCH", path: "I",
			body:   `{"service_id":"$demo","plan_id":"$sync"}`,
			status: 422, has: []string{"description", "update_repeatable=false"}},
		{rule: "UPD-13 without permission on an asynchronous plan", given: readyAsync, method: "PATCH", path: "I",
			body: `{"service_id":"$demo","plan_id":"$async-only"}`, status: 200},
		{rule: "UPD-24", given: updatedBad, method: "GET", path: "I/last_operation", status: 200,
			has: []string{`state="failed"`, "description"}},
		{rule: "UPD-24 gated", given: updatedBad, method: "GET", path: "I/last_operation", header: version("2.9"), status: 200,
			lacks: []string{"instance_usable", "update_repeatable"}},
		{rule: "LOP-03", given: provisionedBad, method: "GET", path: "I/last_operation?operation=$operation", status: 200,
			has: []string{`state="failed"`, "description"}, lacks: []string{"instance_usable"}},
		{rule: "LOP-14", given: ready, method: "GET", path: "I/last_operation", status: 200, has: []string{`state="succeeded"`},
			lacks: []string{"description"}},
		{rule: "LOP-17", given: ready, method: "GET",
			path: "I/last_operation?operation=" + strings.Repeat("x", 10_001), status: 400},
		{rule: "LOP-10", given: deleted, method: "GET", path: "I/last_operation", status: 200,
			has: []string{`state="succeeded"`}},
		{rule: "DEPR-13", given: deletedBad, method: "GET", path: "I/last_operation", status: 200,
			has: []string{`state="failed"`, "instance_usable=false"}},
		{rule: "CLI-07 unknown plan", given: bound, method: "PUT", path: "I/service_bindings/B",
			body: strings.Replace(bind1, "$sync", "nope", 1), status: 400},
		{rule: "BIND-07", given: ready, method: "PUT", path: "I/service_bindings/B",
			body: strings.Replace(bind1, "$sync", "$async", 1), status: 400},
		{rule: "BIND-09", given: ready, method: "PUT", path: "I/service_bindings/B",
			body: strings.Replace(bind1, `"app_guid":"app"}`, `"app_guid":"other"}`, 1), status: 400},
		{rule: "BIND-13", given: notBindable, method: "PUT", path: "I/service_bindings/B",
			body: `{"service_id":"$demo","plan_id":"$not-bindable"}`, status: 400},
		{rule: "BIND-17 failed", given: provisionedBad, method: "PUT", path: "I/service_bindings/B",
			body: strings.Replace(bind1, "$sync", "$fail", 1), status: 422, has: []string{"description"}},
		{rule: "BIND-20", given: binding, method: "PUT", path: "I/service_bindings/B" + async, body: bindSlow,
			header: version("2.13"), status: 422, has: conflictError(asyncReq)},
		{rule: "BIND-33", given: ready, method: "PUT", path: "I/service_bindings/B",
			body: `{"service_id":"$demo","plan_id":"$sync","bind_resource":{"route":"r.example.com"}}`, status: 400},
		{rule: "UNB-04 only the instance", given: ready, method: "DELETE", path: "I/service_bindings/B", status: 410},
		{rule: "UNB-04 neither", method: "DELETE", path: "I/service_bindings/B", status: 400},
		{rule: "DEPR-08", given: provisioning, method: "DELETE", path: "I?" + idsLong, status: 422, has: conflictError(asyncReq)},
		{rule: "DEPR-10, BIND-40", given: bound, method: "DELETE", path: "I?" + ids, status: 200,
			then: &then{path: "I/service_bindings/B", status: 404}},
		{rule: "DEPR-13", given: deletedBad, method: "DELETE", path: "I?" + ids, status: 200},
		{rule: "14.1 delete failed", given: deletedBad, method: "PATCH", path: "I",
			body: `{"service_id":"$demo","parameters":{"a":2}}`, status: 422, has: []string{"description"}},
		{rule: "14.1 delete failed", given: deletedBad, method: "PUT", path: "I/service_bindings/B",
			body: strings.Replace(bind1, "$sync", "$async", 1), status: 422},
	}
}

// catalogIDs are the ids by which cases name plans and offerings: a plan of
// the demo by its name, one of another offering by offering/plan.
func catalogIDs(t *testing.T, base string) map[string]string {
	t.Helper()
	var catalog struct {
		Services []struct {
			ID, Name string
			Plans    []struct{ ID, Name string }
		}
	}
	expect.OK(t, json.Unmarshal([]byte(must(t, base, "GET", "/v2/catalog", "", 200).raw), &catalog))
	out := map[string]string{}
	for _, s := range catalog.Services {
		out[s.Name] = s.ID
		for _, p := range s.Plans {
			out[s.Name+"/"+p.Name] = p.ID
			if s.Name == "demo" {
				out[p.Name] = p.ID
			}
		}
	}
	return out
}

// A run is one case on its way: its ids, and what its steps have answered.
type runOf struct {
	*testing.T
	base   string
	values map[string]string
}

var serial atomic.Int64 // of runs: no id is used twice

func newRun(t *testing.T, base string, catalog map[string]string) *runOf {
	values, n := maps.Clone(catalog), serial.Add(1)
	values["I"], values["B"] = fmt.Sprintf("i%d", n), fmt.Sprintf("b%d", n)
	return &runOf{T: t, base: base, values: values}
}

var variable = regexp.MustCompile(`\$([IB]\b|[a-z]+(-[a-z]+)*(/[a-z]+)?)`)

func (r *runOf) fill(s string) string {
	return variable.ReplaceAllStringFunc(s, func(name string) string {
		if v, ok := r.values[name[1:]]; ok {
			return v
		}
		return name
	})
}

func (r *runOf) path(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = strings.Replace(p, "service_bindings/B", "service_bindings/"+r.values["B"], 1)
		p = "/v2/service_instances/" + r.values["I"] + strings.TrimPrefix(p, "I")
	}
	return r.fill(p)
}

func (r *runOf) do(c httpCase) answer {
	r.Helper()
	request, err := http.NewRequest(c.method, r.base+r.path(c.path), strings.NewReader(r.fill(c.body)))
	if err != nil {
		r.Fatal(err)
	}
	request.SetBasicAuth(username, password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	for name, value := range c.header {
		if request.Header.Del(name); value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := client.Do(request)
	if err != nil {
		r.Fatalf("%s: no answer: %v", c.rule, err)
	}
	defer func() { _ = response.Body.Close() }()
	var body map[string]any
	raw, err := io.ReadAll(response.Body)
	if err != nil || json.Unmarshal(raw, &body) != nil || body == nil {
		r.Fatalf("ERR-01: %s %s: %d with a body that is no JSON object: %v", c.method, c.path, response.StatusCode, err)
	}
	if id := c.header["X-Broker-API-Request-Identity"]; id != response.Header.Get("X-Broker-API-Request-Identity") {
		r.Errorf("RID-01: request identity %q", response.Header.Get("X-Broker-API-Request-Identity"))
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		r.Errorf("MISC-04: content type %q", response.Header.Get("Content-Type"))
	}
	return answer{status: response.StatusCode, header: response.Header, body: body, raw: string(raw)}
}

// prove brings about what is given, asks, checks the answer, and reads back.
func (r *runOf) prove(c httpCase) answer {
	r.Helper()
	r.bring(c.given)
	a := r.do(c)
	r.check(c, a)
	if c.then != nil {
		back := httpCase{rule: c.rule + ", read back", method: "GET", path: c.then.path, status: c.then.status, has: c.then.has}
		r.check(back, r.do(back))
	}
	return a
}

func (r *runOf) check(c httpCase, a answer) {
	r.Helper()
	if a.status != c.status {
		r.Fatalf("%s: %s %.80s given %q: status %d, want %d: %v", c.rule, c.method, c.path, c.given, a.status, c.status,
			a.body["description"])
	}
	for _, want := range c.has {
		name, value, exact := strings.Cut(want, "=")
		got, ok := a.body[name]
		if !ok || got == "" {
			r.Errorf("%s: the answer lacks %s", c.rule, name)
		}
		if !exact {
			continue
		}
		raw, err := json.Marshal(got)
		if err != nil || string(raw) != r.fill(value) {
			r.Errorf("%s: %s is not as it should be", c.rule, name)
		}
	}
	if c.only && len(a.body) != len(c.has) {
		r.Errorf("%s: the answer has %d members, want %d", c.rule, len(a.body), len(c.has))
	}
	for _, name := range c.lacks {
		if _, ok := a.body[name]; ok {
			r.Errorf("%s: the answer has %s", c.rule, name)
		}
	}
}

func (r *runOf) bring(g given) {
	r.Helper()
	for _, step := range steps[g] {
		switch step.path {
		case "poll":
			settled(r, r.base, r.path("I"))
		case "poll binding":
			settled(r, r.base, r.path("I/service_bindings/B"))
		default:
			a := r.do(step)
			step.rule = "setting up " + string(g)
			r.check(step, a)
			if token := a.text("operation"); token != "" {
				r.values["operation"] = token
			}
			if raw, err := json.Marshal(a.body["credentials"]); err == nil && a.body["credentials"] != nil {
				r.values["credentials"] = string(raw)
			}
		}
	}
}

// This broker keeps its promises beyond the rules that the kit proves.
func TestHTTPCases(t *testing.T) {
	p := start(t, t.TempDir(), credentials("LONGSHORE_DEMO_DELAY=100ms")...)
	known := catalogIDs(t, p.url)
	cases := httpCases()
	var failed atomic.Int64
	var all sync.WaitGroup
	limit := make(chan struct{}, 8)
	for _, c := range cases {
		all.Add(1)
		go t.Run(fmt.Sprintf("%s %s %s", c.rule, c.method, c.given), func(t *testing.T) {
			defer all.Done()
			limit <- struct{}{}
			defer func() { <-limit }()
			defer func() {
				if t.Failed() {
					failed.Add(1)
				}
			}()
			newRun(t, p.url, known).prove(c)
		})
	}
	all.Wait()
	if p.log.String() != "" && strings.Contains(p.log.String(), "panic") {
		t.Errorf("the broker panicked:\n%s", p.log)
	}
	t.Logf("%d cases, %d failed", len(cases), failed.Load())
}
