package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/kit/conformance"
)

// A httpCase is one request to a broker in a known state, and what it must answer: where the conformance kit leaves brokers
// a choice, or asks nothing. In paths and bodies, I and B stand for fresh instance and binding ids, and $name for the id of
// a plan or offering of the catalog.
type httpCase struct {
	rule   string // of docs/conformance.md
	given  given
	asks   string // the method and the path: after /v2/service_instances/ unless it begins with a slash; I/B is of a binding
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

func reads(path string, status int, has ...string) *then { return &then{path, status, has} }

// A given brings an instance, or a binding, into a state.
type given string

const (
	ready          given = "an instance that is ready"
	readyAsync     given = "a ready instance of async-only"
	provisioning   given = "an instance that is being provisioned"
	provisionedBad given = "an instance whose provision failed"
	updatedBad     given = "an instance whose update failed"
	deleting       given = "an instance that is being deleted"
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
	return orderBody("$demo", "$"+plan, parameters)
}

// with adds members to a body, and swap puts one text in the place of another.
func with(body, members string) string      { return "{" + members + "," + body[1:] }
func swap(body, was, becomes string) string { return strings.Replace(body, was, becomes, 1) }
func changing(parameters string) string {
	return `{"service_id":"$demo","parameters":` + parameters + `}`
}
func version(v string) map[string]string { return map[string]string{"X-Broker-API-Version": v} }
func conflictError(code string) (has []string) {
	return []string{`error="` + code + `"`, "description"}
}

const (
	place    = `"organization_guid":"o","space_guid":"s"`
	bind1    = `{"service_id":"$demo","plan_id":"$sync","bind_resource":{"app_guid":"app"},"app_guid":"app"}`
	bindSlow = `{"service_id":"$demo","plan_id":"$async-bind","parameters":{"delay_seconds":30}}`
	ids      = "service_id=$demo&plan_id=$sync"
	idsLong  = "service_id=$demo&plan_id=$async-only"
	asyncReq = "AsyncRequired"
)

var (
	sync1 = demoOf("sync", `{"a":1,"b":"x"}`)
	long1 = demoOf("async-only", `{"delay_seconds":30}`)

	stillReady = reads("I", 200, `plan_id="$sync"`, `parameters={"a":1,"b":"x"}`)
	noInstance = reads("I/last_operation", 404)
)

// steps are the requests that bring about each given; the last one's operation is polled to its end unless the given is in
// the making.
var steps = map[given][]httpCase{
	ready:          {{asks: "PUT I", body: sync1, status: 201}},
	readyAsync:     {{asks: "PUT I" + async, body: demoOf("async-only", `{"delay_seconds":0}`), status: 202}, {asks: "poll I"}},
	provisioning:   {{asks: "PUT I" + async, body: long1, status: 202}},
	provisionedBad: {{asks: "PUT I" + async, body: demoOf("fail", `{"delay_seconds":0}`), status: 202}, {asks: "poll I"}},
	updatedBad: {{asks: "PUT I", body: demoOf("update-fail", `{"a":1}`), status: 201},
		{asks: "PATCH I" + async, body: changing(`{"a":2,"delay_seconds":0}`), status: 202}, {asks: "poll I"}},
	deleting: {{asks: "PUT I" + async, body: demoOf("async", ""), status: 202}, {asks: "poll I"},
		{asks: "PATCH I", body: changing(`{"delay_seconds":2}`), status: 200},
		{asks: "DELETE I" + async + "&" + idsLong, status: 202}},
	deletedBad: {{asks: "PUT I", body: demoOf("async", `{"fail":"deprovision"}`), status: 201},
		{asks: "DELETE I" + async + "&" + ids, status: 202}, {asks: "poll I"}},
	bound: {{asks: "PUT I", body: sync1, status: 201}, {asks: "PUT I/B", body: bind1, status: 201}},
	binding: {{asks: "PUT I", body: demoOf("async-bind", ""), status: 201},
		{asks: "PUT I/B" + async, body: bindSlow, status: 202}},
	boundAsync: {{asks: "PUT I", body: demoOf("async-bind", ""), status: 201},
		{asks: "PUT I/B" + async, body: planBody("$demo", "$async-bind", ""), status: 202}, {asks: "poll I/B"}},
	notBindable:   {{asks: "PUT I", body: demoOf("not-bindable", ""), status: 201}},
	notUpdateable: {{asks: "PUT I", body: demoOf("not-updateable", ""), status: 201}},
	asyncBindable: {{asks: "PUT I", body: demoOf("async-bind", ""), status: 201}},
	maintained: {{asks: "PUT I", body: with(demoOf("maintenance", ""), `"maintenance_info":{"version":"2.0.0"}`),
		status: 201}},
}

func httpCases() []httpCase {
	cases := slices.Concat(requestCases(), changeCases(), []httpCase{
		{rule: "BIND-16 a bind that takes its time, in two recorded steps", given: ready, asks: "PUT I/B",
			body: with(bind1, `"parameters":{"delay_seconds":0.2}`), status: 201, has: []string{"credentials"},
			then: reads("I/B", 200, "credentials")},
		{rule: "PROV-01 restored from another", given: ready, asks: "PUT I-restored",
			body: demoOf("restorable", `{"restore_from":"$I"}`), status: 201, then: reads("I-restored", 200)},
		{rule: "PROV-01 restored from nothing", given: ready, asks: "PUT I-restored",
			body: demoOf("restorable", `{"restore_from":"$I-absent"}`), status: 400, has: []string{"description"}},
	})
	for _, id := range []string{"a%20b", "a%2Fb", "%C3%A9", "~._-", "a%23b", "a%3Fb", "%2e%2e", "a%25b", "a;b", "a:b@c"} {
		cases = append(cases, httpCase{rule: "INP-11 " + id, asks: "PUT I" + id, body: sync1, status: 201,
			then: reads("I"+id, 200)})
	}
	return cases
}

func requestCases() []httpCase {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	return []httpCase{
		{rule: "MISC-06 curl's default content type", given: ready, asks: "PUT I/B", body: bind1, status: 201,
			header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, has: []string{"credentials"}},
		{rule: "INP-09 empty", asks: "PUT I?accepts_incomplete=", body: long1, status: 400, then: noInstance},
		{rule: "INP-09 twice", asks: "PUT I?accepts_incomplete=true&accepts_incomplete=true", body: long1, status: 400,
			then: noInstance},
		{rule: "INP-10 in the body", asks: "PUT I", body: with(long1, `"accepts_incomplete":true`), status: 202},
		{rule: "INP-10 the query wins", asks: "PUT I?accepts_incomplete=false", body: with(long1, `"accepts_incomplete":true`),
			status: 422},
		{rule: "INP-15 context", asks: "PUT I", body: with(sync1, `"context":{"x":`+nested(9990)+`}`), status: 400,
			then: noInstance},
		{rule: "INP-15 allowed", asks: "PUT I", body: with(sync1, `"context":{"x":`+nested(900)+`,"s":"[[[\\\"{{"}`),
			status: 201, then: reads("I", 200)},
		{rule: "FAC-12 a forged token", status: 404,
			asks: "GET /operations/AAAAAAAAAAAAAAAAAAAAAA.ZGVmYXVsdA." + strings.Repeat("QUFB", 1000)},
		{rule: "INP-16", asks: "DELETE /v2/catalog", status: 405},
		{rule: "INP-16", asks: "GET /", status: 404},
		{rule: "CLI-07 unknown plan", given: ready, asks: "PUT I", body: swap(sync1, "$sync", "nope"), status: 400,
			then: stillReady},
		{rule: "PROV-23", asks: "PUT I", body: with(sync1, `"maintenance_info":{"description":"x"}`), status: 400,
			then: noInstance},
		{rule: "CLI-04", asks: "PUT I", body: with(sync1, `"maintenance_info":{}`), status: 201},
		{rule: "PROV-29", given: deleting, asks: "PUT I" + async, body: sync1, status: 409},
		{rule: "PROV-33 a provider's failure", asks: "PUT I", body: swap(sync1, `"a":1`, `"fail":true`), status: 500,
			has: []string{"description"}, then: reads("I/last_operation", 200, `state="failed"`)},
		{rule: "INP-05 a service key as Go clients ask for it", given: ready, asks: "PUT I/B", status: 201,
			body: planBody("$demo", "$sync", `,"app_guid":"","context":{},"bind_resource":{"app_guid":"","route":""}`)},
	}
}

// changeCases are of updates and deletions, and of what follows on them.
func changeCases() []httpCase {
	return []httpCase{
		{rule: "UPD-01", given: ready, asks: "PATCH I", body: changing(`{"b":"y"}`), status: 200, lacks: []string{"operation"},
			then: reads("I", 200, `parameters={"a":1,"b":"y"}`)},
		{rule: "UPD-08", given: ready, asks: "PATCH I", body: changing(`{"b":null,"c":null}`), status: 200,
			then: reads("I", 200, `parameters={"a":1}`)},
		{rule: "UPD-12 the result", given: ready, asks: "PATCH I", body: planBody("$demo", "$schema", ""), status: 400,
			has: []string{`description="parameter /a is not a parameter of the plan; give it as null to remove it; ` +
				`parameter /b is not a parameter of the plan; give it as null to remove it"`}, then: stillReady},
		{rule: "UPD-12 the result", given: ready, asks: "PATCH I", status: 200,
			body: planBody("$demo", "$schema", `,"parameters":{"a":null,"b":null,"size":"small"}`),
			then: reads("I", 200, `plan_id="$schema"`, `parameters={"size":"small"}`)},
		{rule: "UPD-03 the target's plan", given: ready, asks: "PATCH I", body: planBody("$demo", "$async-only", ""),
			status: 422, has: conflictError(asyncReq), then: stillReady},
		{rule: "UPD-05", given: ready, asks: "PATCH I", body: `{"service_id":"$demo-other"}`, status: 400, then: stillReady},
		{rule: "UPD-09, UPD-11", given: notUpdateable, asks: "PATCH I", body: planBody("$demo", "$sync", ""),
			status: 422, has: []string{"description", "update_repeatable=false"}},
		{rule: "UPD-13 without permission on an asynchronous plan", given: readyAsync, asks: "PATCH I",
			body: planBody("$demo", "$async-only", ""), status: 200},
		{rule: "UPD-24 gated", given: updatedBad, asks: "GET I/last_operation", header: version("2.9"), status: 200,
			lacks: []string{"instance_usable", "update_repeatable"}},
		{rule: "LOP-03", given: provisionedBad, asks: "GET I/last_operation?operation=$operation", status: 200,
			has: []string{`state="failed"`, "description"}, lacks: []string{"instance_usable"}},
		{rule: "LOP-14", given: ready, asks: "GET I/last_operation", status: 200, has: []string{`state="succeeded"`},
			lacks: []string{"description"}},
		{rule: "LOP-17", given: ready, asks: "GET I/last_operation?operation=" + strings.Repeat("x", 10_001), status: 400},
		{rule: "DEPR-13", given: deletedBad, asks: "GET I/last_operation", status: 200,
			has: []string{`state="failed"`, "instance_usable=false"}},
		{rule: "CLI-07 unknown plan", given: bound, asks: "PUT I/B", body: swap(bind1, "$sync", "nope"), status: 400},
		{rule: "BIND-07", given: ready, asks: "PUT I/B", body: swap(bind1, "$sync", "$async"), status: 400},
		{rule: "BIND-09", given: ready, asks: "PUT I/B", body: swap(bind1, `"app_guid":"app"}`, `"app_guid":"other"}`),
			status: 400},
		{rule: "BIND-13", given: notBindable, asks: "PUT I/B", body: planBody("$demo", "$not-bindable", ""), status: 400},
		{rule: "BIND-17 failed", given: provisionedBad, asks: "PUT I/B", body: swap(bind1, "$sync", "$fail"), status: 422,
			has: []string{"description"}},
		{rule: "BIND-20", given: binding, asks: "PUT I/B" + async, body: bindSlow, header: version("2.13"), status: 422,
			has: conflictError(asyncReq)},
		{rule: "BIND-33", given: ready, asks: "PUT I/B", status: 400,
			body: planBody("$demo", "$sync", `,"bind_resource":{"route":"r.example.com"}`)},
		{rule: "UNB-04 only the instance", given: ready, asks: "DELETE I/B", status: 410},
		{rule: "UNB-04 neither", asks: "DELETE I/B", status: 400},
		{rule: "DEPR-08", given: provisioning, asks: "DELETE I?" + idsLong, status: 422, has: conflictError(asyncReq)},
		{rule: "DEPR-10, BIND-40", given: bound, asks: "DELETE I?" + ids, status: 200, then: reads("I/B", 404)},
		{rule: "DEPR-13", given: deletedBad, asks: "DELETE I?" + ids, status: 200},
		{rule: "14.1 delete failed", given: deletedBad, asks: "PATCH I", body: changing(`{"a":2}`), status: 422,
			has: []string{"description"}},
		{rule: "14.1 delete failed", given: deletedBad, asks: "PUT I/B", body: swap(bind1, "$sync", "$async"), status: 422},
	}
}

// catalogIDs are the ids by which cases name plans and offerings: a plan of the demo by its name, one of another offering by
// offering/plan.
func catalogIDs(t testing.TB, base string) map[string]string {
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
	if rest, ok := strings.CutPrefix(p, "I/B"); ok {
		p = bindingPath(r.values["I"], r.values["B"]) + rest
	} else if rest, ok := strings.CutPrefix(p, "I"); ok {
		p = instancePath(r.values["I"]) + rest
	}
	return r.fill(p)
}

func (r *runOf) do(c httpCase) answer {
	r.Helper()
	method, path, _ := strings.Cut(c.asks, " ")
	a := expect.Get(ask(method, r.base+r.path(path), r.fill(c.body), c.header))(r, c.rule)
	if id := a.header.Get("X-Broker-API-Request-Identity"); id != c.header["X-Broker-API-Request-Identity"] {
		r.Errorf("RID-01: request identity %q", id)
	}
	if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		r.Errorf("MISC-04: content type %q", kind)
	}
	return a
}

// prove brings about what is given, asks, checks the answer, and reads back.
func (r *runOf) prove(c httpCase) answer {
	r.Helper()
	r.bring(c.given)
	a := r.check(c)
	if c.then != nil {
		r.check(httpCase{rule: c.rule + ", read back", asks: "GET " + c.then.path, status: c.then.status, has: c.then.has})
	}
	return a
}

func (r *runOf) check(c httpCase) answer {
	r.Helper()
	a := r.do(c)
	if a.status != c.status {
		r.Fatalf("%s: %.80s given %q: status %d, want %d: %v", c.rule, c.asks, c.given, a.status, c.status, a.body["description"])
	}
	for _, want := range c.has {
		name, value, exact := strings.Cut(want, "=")
		got, ok := a.body[name]
		if !ok || got == "" {
			r.Errorf("%s: the answer lacks %s", c.rule, name)
		}
		if raw, err := json.Marshal(got); exact && (err != nil || string(raw) != r.fill(value)) {
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
	return a
}

func (r *runOf) bring(g given) {
	r.Helper()
	for _, step := range steps[g] {
		if path, ok := strings.CutPrefix(step.asks, "poll "); ok {
			settled(r, r.base, r.path(path))
			continue
		}
		step.rule = "setting up " + string(g)
		if token := r.check(step).text("operation"); token != "" {
			r.values["operation"] = token
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
		all.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			method, _, _ := strings.Cut(c.asks, " ")
			if !t.Run(fmt.Sprintf("%s %s %s", c.rule, method, c.given), func(t *testing.T) { newRun(t, p.url, known).prove(c) }) {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	expect.Never(t, "the log", p.log.String(), "panic")
	t.Logf("%d cases, %d failed", len(cases), failed.Load())
}

// The program keeps to the API, rule by rule; BIND-39 is among the cases of INP-01.
func TestConformance(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), credentials("LONGSHORE_DEMO_DELAY=400ms")...)
	report := expect.Get(conformance.Run(t.Context(), conformance.Target{URL: p.url, Username: username, Password: password},
		conformance.Options{Now: time.Now, Parallel: 8, OperationTimeout: settleLimit}))(t)
	for _, r := range report.Results {
		if r.Outcome == conformance.Failed || r.Outcome == conformance.Blocked {
			t.Errorf("%s %s: %s %s %v", r.ID, r.Outcome, r.Title, r.Reason, r.Failures)
		}
	}
	if passed := report.Count(conformance.Passed); passed < 500 || len(report.Left) > 0 {
		t.Errorf("%d cases passed, left behind %v", passed, report.Left)
	}
}
