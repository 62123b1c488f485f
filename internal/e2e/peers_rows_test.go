package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A peer is something that another broker gets wrong, and our right answer to
// it: cases, a test of its own, a test that stands elsewhere, or the reason why
// it cannot come up here.
type peer struct {
	row   string // B is brokerapi v13, A the AWS Service Broker, C the Cloud Service Broker, G a broker of the Go library before that
	wrong string // what it answers
	right string // what we answer
	cases []httpCase
	test  func(t *testing.T, p *process, known map[string]string)
	// elsewhere is a package and a test of it.
	elsewhere string
	absent    string
}

const (
	rid       = "X-Broker-API-Request-Identity"
	malformed = `{"service_id":`
	wrongType = `{"service_id":5,"plan_id":"$sync"}`
)

// anywhere sends the same wrong body wherever there is one.
func anywhere(rule, body string, status int) (out []httpCase) {
	for _, at := range []struct{ method, path string }{{"PUT", "I-other"}, {"PATCH", "I"}, {"PUT", "I/service_bindings/B"}} {
		out = append(out, httpCase{rule: rule, given: ready, method: at.method, path: at.path, body: body, status: status, has: []string{"description"}, then: stillReady})
	}
	return out
}

// strict are the parameters of the plan that checks them.
func strict(parameters string) string {
	return `{"service_id":"$demo","plan_id":"$schema",` + place + `,"parameters":` + parameters + `}`
}

func everywhere(version string) []httpCase {
	h := map[string]string{"X-Broker-API-Version": version}
	return []httpCase{
		{rule: "HDR-09", method: "GET", path: "/v2/catalog", header: h, status: 412, has: []string{"description"}, lacks: []string{"Description", "services"}},
		{rule: "HDR-09", method: "PUT", path: "I", body: sync1, header: h, status: 412, has: []string{"description"}, then: noInstance},
	}
}

// peers are all rows, in order.
func peers() []peer {
	return slices.Concat(peersOfBrokerAPI(), peersOfAWS(), peersOfCloud())
}

func peersOfBrokerAPI() []peer {
	wrongPassword := map[string]string{"Authorization": "Basic eDp5", rid: "r-1"}
	identity := map[string]string{rid: "r-1"}
	return []peer{
		{row: "B1", wrong: "a wrong version is answered with a member Description", right: "412 with description", cases: everywhere("1.0")},
		{row: "B2", wrong: "412 without a word of what is missing", right: "412 that names the header", cases: everywhere("")},
		{row: "B3", wrong: "401 in plain text, without WWW-Authenticate and request identity", right: "a JSON object with both", test: func(t *testing.T, p *process, _ map[string]string) {
			a := (&runOf{T: t, base: p.url}).do(httpCase{rule: "AUTH-02", method: "GET", path: "/v2/catalog", header: wrongPassword})
			if a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Basic ") || a.text("description") == "" {
				t.Errorf("%d %v %v", a.status, a.header, a.body)
			}
		}},
		{row: "B4", wrong: "404 and 405 in plain text", right: "JSON objects with request identity, 405 with Allow", cases: []httpCase{
			{rule: "INP-16", method: "GET", path: "/v2/nothing", header: identity, status: 404, has: []string{"description"}},
			{rule: "INP-16", method: "POST", path: "/v2/catalog", header: identity, status: 405, has: []string{"description"}},
		}},
		{row: "B5", wrong: "the plan of another offering is taken", right: "400, and nothing is made", cases: []httpCase{
			{rule: "PROV-14", method: "PUT", path: "I", body: strings.Replace(sync1, "$sync", "$demo-volume/default", 1), status: 400, then: noInstance},
		}},
		{row: "B6", wrong: "ids that are not in the catalog, and a missing place, are taken", right: "400, and nothing changes; a deletion names what it deletes by its id alone", cases: []httpCase{
			{rule: "UPD-05", given: ready, method: "PATCH", path: "I", body: `{"service_id":"nothing"}`, status: 400, then: stillReady},
			{rule: "UPD-06", given: ready, method: "PATCH", path: "I", body: `{"service_id":"$demo","plan_id":"nothing"}`, status: 400, then: stillReady},
			{rule: "BIND-05", given: ready, method: "PUT", path: "I/service_bindings/B", body: `{"service_id":"$demo","plan_id":"nothing"}`, status: 400, then: &then{path: "I/service_bindings/B", status: 404}},
			{rule: "PROV-15", method: "PUT", path: "I", body: strings.Replace(sync1, place+",", "", 1), status: 400, then: noInstance},
			{rule: "UNB-04", given: bound, method: "DELETE", path: "I/service_bindings/B?service_id=$demo", status: 400, then: &then{path: "I/service_bindings/B", status: 200}},
		}},
		{row: "B7", wrong: "malformed JSON is 422, with the names of Go types", right: "400 in words", cases: slices.Concat(anywhere("INP-01", malformed, 400), anywhere("INP-01", "", 400), anywhere("INP-03", wrongType, 400), anywhere("INP-02", "[]", 400)),
			test: func(t *testing.T, p *process, known map[string]string) {
				r := &runOf{T: t, base: p.url, values: known}
				for _, body := range []string{malformed, wrongType, ""} {
					a := r.do(httpCase{method: "PUT", path: "/v2/service_instances/b7", body: body})
					for _, internal := range []string{"Go ", "struct", "unmarshal", "EOF"} {
						if strings.Contains(a.text("description"), internal) {
							t.Errorf("the description shows internals: %s", a.text("description"))
						}
					}
				}
			}},
		{row: "B8", wrong: "the text of any error goes to the client; a wrapped refusal is a 500", right: "a name under which the log has it; refusals are found inside others", elsewhere: "internal/osb TestReasonsBecomeStatusAndCode"},
		{row: "B9", wrong: "200, with credentials, while the operation still runs", right: "202 with the same operation", cases: []httpCase{
			{rule: "PROV-10", given: provisioning, method: "PUT", path: "I" + async, body: long1, status: 202, has: []string{`operation="$operation"`}},
			{rule: "BIND-23", given: binding, method: "PUT", path: "I/service_bindings/B" + async, body: bindSlow, status: 202, has: []string{`operation="$operation"`}, lacks: []string{"credentials"}},
		}},
		{row: "B10", wrong: "a rotation needs ids that the specification does not ask for", right: "predecessor_binding_id is enough", cases: []httpCase{
			{rule: "ROT-01", given: rotatable, method: "PUT", path: "I/service_bindings/next-B", body: `{"predecessor_binding_id":"$binding"}`, status: 201, has: []string{"credentials"}},
		}},
		{row: "B11", wrong: "202 although the client cannot wait", right: "422 AsyncRequired, and nothing is begun", cases: []httpCase{
			{rule: "ERR-03", method: "PUT", path: "I", body: long1, status: 422, has: conflictError(asyncReq), then: noInstance},
			{rule: "DEPR-06", given: readyAsync, method: "DELETE", path: "I?" + idsLong, status: 422, has: conflictError(asyncReq), then: &then{path: "I", status: 200}},
			{rule: "BIND-22", given: asyncBindable, method: "PUT", path: "I/service_bindings/B", body: bindSlow, status: 422, has: conflictError(asyncReq), then: &then{path: "I/service_bindings/B", status: 404}},
			{rule: "UPD-03", given: readyAsync, method: "PATCH", path: "I", body: `{"service_id":"$demo","parameters":{"a":1}}`, status: 422, has: conflictError(asyncReq)},
		}},
		{row: "B11b", wrong: "accepts_incomplete=1 means true to one method and false to another", right: "400 to each", cases: []httpCase{
			{rule: "INP-09", method: "PUT", path: "I?accepts_incomplete=1", body: long1, status: 400, then: noInstance},
			{rule: "INP-09", given: ready, method: "PATCH", path: "I?accepts_incomplete=1", body: `{"service_id":"$demo","parameters":{"a":9}}`, status: 400, then: stillReady},
			{rule: "INP-09", given: ready, method: "DELETE", path: "I?accepts_incomplete=1&" + ids, status: 400, then: stillReady},
		}},
		{row: "B12", wrong: "a bind whose content type is that of a form is empty to it", right: "the body counts", cases: []httpCase{
			{rule: "MISC-06", given: ready, method: "PUT", path: "I/service_bindings/B", body: bind1, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, status: 201, has: []string{"credentials"}},
		}},
		{row: "B13", wrong: "parameters and context are in the log of a provision that fails", right: "never", test: logsTellNothing},
		{row: "B14", wrong: "credentials that JSON cannot hold are an empty 201, and in the log", right: "an internal error that quotes nothing", elsewhere: "internal/osb TestWhatCannotBeEncodedIsAnInternalError"},
		{row: "B15", wrong: "60 MB, JSON followed by more, and parameters that are a text are taken", right: "413, 400 and 400", cases: []httpCase{
			{rule: "INP-14", method: "PUT", path: "I", body: `{"x":"` + strings.Repeat("a", 60<<20) + `"}`, status: 413, then: noInstance},
			{rule: "INP-01", method: "PUT", path: "I", body: sync1 + "{}", status: 400, then: noInstance},
			{rule: "INP-03", method: "PUT", path: "I", body: strings.Replace(sync1, `{"a":1,"b":"x"}`, `"str"`, 1), status: 400, then: noInstance},
		}},
		{row: "B16", wrong: "null where the catalog has nothing", right: "left out", test: func(t *testing.T, p *process, _ map[string]string) {
			if services, ok := must(t, p.url, "GET", "/v2/catalog", "", 200).body["services"].([]any); !ok || len(services) == 0 || hasNull(services) {
				t.Errorf("the catalog has no services, or a null in it")
			}
		}},
		{row: "B17", wrong: "two credentials lock both out", right: "both are valid", elsewhere: "internal/platforms TestRotationLosesNoRequest"},
		{row: "B18", wrong: "a missing application is a 422 without error", right: "RequiresApp", cases: []httpCase{
			{rule: "BIND-10", given: requiresApp, method: "PUT", path: "I/service_bindings/B", body: `{"service_id":"$demo","plan_id":"$requires-app"}`, status: 422, has: conflictError("RequiresApp")},
		}},
		{row: "B19", wrong: "a full quota is a 500, for which platforms delete", right: "", absent: "this broker has no quotas"},
		{row: "B20", wrong: "410 for what never existed", right: "404", cases: []httpCase{
			{rule: "LOP-09", method: "GET", path: "I/last_operation", status: 404},
			{rule: "UPD-19", method: "PATCH", path: "I", body: `{"service_id":"$demo","parameters":{}}`, status: 404},
		}},
		{row: "B21", wrong: "any state, and operations of any length, are passed on", right: "three states; an operation over 10 000 characters is 400", cases: []httpCase{
			{rule: "LOP-17", given: ready, method: "GET", path: "I/last_operation?operation=" + strings.Repeat("x", 20_000), status: 400},
		}},
		{row: "B22", wrong: "a catalog that cannot be read is the client's fault", right: "", absent: "the catalog is part of the program, checked before it starts"},
		{row: "B23", wrong: "a panic closes the connection", right: "500 as JSON, and the next request is served", elsewhere: "internal/osb TestAPanicIsAnInternalErrorWithoutInternals"},
		{row: "B24", wrong: "another maintenance version is taken", right: "422 MaintenanceInfoConflict", cases: []httpCase{
			{rule: "PROV-20", method: "PUT", path: "I", body: `{"service_id":"$demo","plan_id":"$maintenance",` + place + `,"maintenance_info":{"version":"9.9.9"}}`, status: 422, has: conflictError("MaintenanceInfoConflict"), then: noInstance},
		}},
		{row: "B25", wrong: "versions such as 2.17garbage are taken", right: "412", cases: slices.Concat(everywhere("2.17garbage"), everywhere("2.-5"))},
		{row: "B26", wrong: "Retry-After, ETag, flags of a failure, maintenance_info cannot be sent", right: "they are", cases: []httpCase{
			{rule: "GETI-01", given: maintained, method: "GET", path: "I", status: 200, has: []string{`maintenance_info={"version":"2.0.0"}`}},
		}, test: func(t *testing.T, p *process, _ map[string]string) {
			if a := must(t, p.url, "GET", "/v2/catalog", "", 200); a.header.Get("ETag") == "" || !strings.Contains(a.raw, `"binding_rotatable":true`) {
				t.Error("the catalog has no ETag, or says nothing of rotation")
			}
			if a := must(t, p.url, "PUT", instancePath("b26")+async, provisionBody(planAsync, `{}`), 202); a.header.Get("Retry-After") == "" {
				t.Error("a 202 without Retry-After")
			}
		}},
	}
}

func peersOfAWS() []peer {
	kubernetes := map[string]string{"X-Broker-API-Originating-Identity": "kubernetes eyJ1c2VybmFtZSI6InUifQ=="}
	return []peer{
		{row: "A1", wrong: "any version, or none, is served", right: "412", cases: slices.Concat(everywhere(""), everywhere("junk"), everywhere("3.0"))},
		{row: "A2", wrong: "the request identity never comes back", right: "it comes back with every answer", cases: []httpCase{
			{rule: "RID-01", method: "GET", path: "/v2/catalog", header: map[string]string{rid: "r-2"}, status: 200},
			{rule: "RID-01", method: "GET", path: "/v2/catalog", header: map[string]string{"Authorization": "Basic eDp5", rid: "r-3"}, status: 401},
		}},
		{row: "A3", wrong: "metrics for everybody; no authentication unless it is switched on", right: "nothing is served without it", cases: []httpCase{
			{rule: "AUTH-01", method: "GET", path: "/metrics", header: map[string]string{"Authorization": ""}, status: 401},
			{rule: "AUTH-01", method: "GET", path: "/v2/catalog", header: map[string]string{"Authorization": ""}, status: 401},
		}},
		{row: "A4", wrong: "a slow hash of the password is made for each request", right: "hashes of one length are compared in constant time", elsewhere: "internal/platforms TestBothHalvesAreCompared"},
		{row: "A5", wrong: "500 for malformed JSON", right: "400", cases: anywhere("INP-01", malformed, 400)},
		{row: "A6", wrong: "500 with the database's words for a missing service_id", right: "400", cases: []httpCase{
			{rule: "PROV-13", method: "PUT", path: "I", body: `{"plan_id":"$sync",` + place + `}`, status: 400, has: []string{"description"}, then: noInstance},
		}},
		{row: "A7", wrong: "a context without organization_guid ends in a panic", right: "it is taken", cases: []httpCase{
			{rule: "PROV-17", method: "PUT", path: "I", body: strings.Replace(sync1, "{", `{"context":{"platform":"cloudfoundry"},`, 1), status: 201},
		}},
		{row: "A8", wrong: "parameters of a wrong type are passed on", right: "400, and nothing is made", cases: []httpCase{
			{rule: "PROV-19", method: "PUT", path: "I", body: strict(`{"size":"banana"}`), status: 400, has: []string{"description"}, then: noInstance},
			{rule: "PROV-19", method: "PUT", path: "I", body: strict(`{"parameter1":{"a":[1,2]}}`), status: 400, has: []string{"description"}, then: noInstance},
		}},
		{row: "A9", wrong: "409 for the same request after it is done", right: "200; 409 only for another", cases: []httpCase{
			{rule: "PROV-07", given: ready, method: "PUT", path: "I", body: sync1, status: 200},
			{rule: "PROV-08", given: ready, method: "PUT", path: "I", body: strings.Replace(sync1, `"a":1`, `"a":2`, 1), status: 409, then: stillReady},
		}},
		{row: "A10", wrong: "409 while it runs", right: "202 with the same operation", cases: []httpCase{
			{rule: "PROV-10", given: provisioning, method: "PUT", path: "I" + async, body: long1, status: 202, has: []string{`operation="$operation"`}},
		}},
		{row: "A11", wrong: "a binding without credentials while the instance is being made", right: "422 ConcurrencyError, and no binding", cases: []httpCase{
			{rule: "BIND-17", given: provisioning, method: "PUT", path: "I/service_bindings/B", body: strings.Replace(bind1, "$sync", "$async-only", 1), status: 422, has: conflictError("ConcurrencyError"), then: &then{path: "I/service_bindings/B", status: 404}},
		}},
		{row: "A12", wrong: "200 without credentials for the same bind", right: "200 with the same credentials", cases: []httpCase{
			{rule: "BIND-02", given: bound, method: "PUT", path: "I/service_bindings/B", body: bind1, status: 200, has: []string{`credentials=$credentials`}},
		}},
		{row: "A13", wrong: "members of its own in every answer", right: "only the specification's", test: onlyKnownMembers},
		{row: "A14", wrong: "405 without a body for a fetch", right: "the instance, or 404", cases: []httpCase{
			{rule: "GETI-01", given: ready, method: "GET", path: "I", status: 200, has: []string{"service_id", "plan_id"}},
			{rule: "GETI-02", method: "GET", path: "I", status: 404, has: []string{"description"}},
		}},
		{row: "A15", wrong: "a fetch of a binding ends in a panic", right: "the binding, or 404", cases: []httpCase{
			{rule: "GETB-01", given: bound, method: "GET", path: "I/service_bindings/B", status: 200, has: []string{`credentials=$credentials`}},
			{rule: "GETB-02", given: ready, method: "GET", path: "I/service_bindings/B", status: 404, has: []string{"description"}},
		}},
		{row: "A16", wrong: "a poll of a binding needs an originating identity, and then ends in a panic", right: "the state, or 404, with or without", cases: []httpCase{
			{rule: "LOB-01", given: binding, method: "GET", path: "I/service_bindings/B/last_operation", status: 200, has: []string{`state="in progress"`}},
			{rule: "LOB-01", given: binding, method: "GET", path: "I/service_bindings/B/last_operation", header: kubernetes, status: 200, has: []string{`state="in progress"`}},
			{rule: "LOP-09", given: ready, method: "GET", path: "I/service_bindings/B/last_operation", status: 404},
		}},
		{row: "A17", wrong: "a bind in the name of another offering, and an unbind through another instance, are done", right: "400 and 410, and the binding stays", cases: []httpCase{
			{rule: "BIND-05", given: ready, method: "PUT", path: "I/service_bindings/B", body: `{"service_id":"$demo-volume","plan_id":"nothing"}`, status: 400, then: &then{path: "I/service_bindings/B", status: 404}},
			{rule: "UNB-02", given: bound, method: "DELETE", path: "/v2/service_instances/none/service_bindings/$binding?" + ids, status: 410, then: &then{path: "I/service_bindings/B", status: 200}},
		}},
		{row: "A18", wrong: "an update that failed succeeds when it is repeated, though nothing was applied", right: "the old parameters stay, and the update runs again", cases: []httpCase{
			{rule: "UPD-23", given: updatedBad, method: "GET", path: "I", status: 200, has: []string{`parameters={"a":1}`}},
			{rule: "UPD-25", given: updatedBad, method: "PATCH", path: "I" + async, body: `{"service_id":"$demo","parameters":{"a":2,"delay_seconds":0}}`, status: 202, has: []string{"operation"}},
		}},
		{row: "A19", wrong: "200 for the update that still runs", right: "202 with the same operation", cases: []httpCase{
			{rule: "UPD-21", given: updating, method: "PATCH", path: "I" + async, body: patchSame, status: 202, has: []string{`operation="$operation"`}},
		}},
		{row: "A20", wrong: "identical requests at once: one 202, else 500", right: "one resource, one operation", elsewhere: "internal/e2e TestIdenticalRequestsAtOnce"},
		{row: "A21", wrong: "what it made before it died can neither be deleted nor made again", right: "a repeated request goes on, a deletion finds everything", elsewhere: "internal/e2e TestKilledAtAnyMoment"},
		{row: "A22", wrong: "failed while the cloud still works", right: "in progress until the provider is done", elsewhere: "internal/worker TestStepAnswersOfAProvider"},
		{row: "A23", wrong: "400 for a failed operation", right: "200 with the state failed", cases: []httpCase{
			{rule: "LOP-03", given: provisionedBad, method: "GET", path: "I/last_operation", header: kubernetes, status: 200, has: []string{`state="failed"`}},
		}},
		{row: "A24", wrong: "410 for what never existed", right: "404", cases: []httpCase{{rule: "LOP-09", method: "GET", path: "I/last_operation", status: 404}}},
		{row: "A25", wrong: "400 for a plan that cannot be changed", right: "422", cases: []httpCase{
			{rule: "UPD-09", given: notUpdateable, method: "PATCH", path: "I", body: `{"service_id":"$demo","plan_id":"$sync"}`, status: 422, has: []string{"description"}},
		}},
		{row: "A26", wrong: "a deletion needs no ids", right: "400, and nothing is deleted", cases: []httpCase{
			{rule: "DEPR-05", given: ready, method: "DELETE", path: "I" + async, status: 400, then: stillReady},
		}},
		{row: "A27", wrong: "what is deleted is forgotten at once; a binding that is left can never be removed", right: "the end is remembered, and a deletion takes the bindings along", cases: []httpCase{
			{rule: "DEPR-10", given: boundAndDeleted, method: "DELETE", path: "I/service_bindings/B?" + ids, status: 410, then: &then{path: "I/last_operation", status: 200, has: []string{`state="succeeded"`}}},
		}},
		{row: "A28", wrong: "a refresh that fails takes the catalog away", right: "", absent: "the catalog is part of the program; the platforms, which are read again, outlive their source (internal/platforms TestKeptOutlivesItsSource)"},
		{row: "A29", wrong: "a user's parameter wins over the operator's", right: "the operator's is final", cases: []httpCase{
			{rule: "PROV-33", method: "PUT", path: "I", body: `{"service_id":"$demo","plan_id":"$fail",` + place + `,"parameters":{"fail":false,"delay_seconds":0}}`, status: 500, has: []string{"description"}},
		}},
		{row: "A30", wrong: "an operator's value ends at its second =", right: "", absent: "what the operator fixes is YAML, with values of any kind"},
		{row: "A31", wrong: "a password with + ; / @ breaks the URI", right: "URIs are encoded", test: uriMeansItsPassword},
		{row: "A32", wrong: "a parameter names the role that the broker takes", right: "", absent: "no parameter names a principal, and no role of the broker has a right of IAM or STS (infra TestRolesMayNeverDoThis)"},
		{row: "A33", wrong: "what is beyond the first page is missing", right: "every listing is paged", elsewhere: "internal/provider/demo/parameters TestList"},
		{row: "A34", wrong: "plans come in another order each time", right: "one order, and one ETag", test: func(t *testing.T, p *process, _ map[string]string) {
			first, again := must(t, p.url, "GET", "/v2/catalog", "", 200), must(t, p.url, "GET", "/v2/catalog", "", 200)
			next := start(t, t.TempDir(), credentials()...)
			restarted := must(t, next.url, "GET", "/v2/catalog", "", 200)
			if first.raw != again.raw || first.raw != restarted.raw || first.header.Get("ETag") != restarted.header.Get("ETag") {
				t.Error("the catalog differs from one answer to the next")
			}
		}},
	}
}

func peersOfCloud() []peer {
	return []peer{
		{row: "C1", wrong: "500 for a parameter that is unknown or of a wrong type", right: "400", cases: []httpCase{
			{rule: "PROV-19", method: "PUT", path: "I", body: strict(`{"unknown":1}`), status: 400, then: noInstance},
			{rule: "PROV-19", method: "PUT", path: "I", body: strict(`{"parameter1":"x"}`), status: 400, then: noInstance},
		}},
		{row: "C2", wrong: "500 for an update to an unknown plan", right: "400", cases: []httpCase{
			{rule: "UPD-06", given: ready, method: "PATCH", path: "I", body: `{"service_id":"$demo","plan_id":"nothing"}`, status: 400, then: stillReady},
		}},
		{row: "C3", wrong: "a fetch during an update has the code in its description", right: "422 with error ConcurrencyError", cases: []httpCase{
			{rule: "GETI-04", given: updating, method: "GET", path: "I", status: 422, has: conflictError("ConcurrencyError")},
		}},
		{row: "C4", wrong: "202 for a stale maintenance version", right: "422 MaintenanceInfoConflict", cases: []httpCase{
			{rule: "PROV-20", method: "PUT", path: "I" + async, body: `{"service_id":"$demo","plan_id":"$maintenance",` + place + `,"maintenance_info":{"version":"1.0.0"}}`, status: 422, has: conflictError("MaintenanceInfoConflict"), then: noInstance},
		}},
		{row: "C5", wrong: "409 for the same provision", right: "200", cases: []httpCase{{rule: "PROV-07", given: ready, method: "PUT", path: "I", body: sync1, status: 200, then: stillReady}}},
		{row: "C6", wrong: "409 for the same bind", right: "200", cases: []httpCase{{rule: "BIND-02", given: bound, method: "PUT", path: "I/service_bindings/B", body: bind1, status: 200, has: []string{"credentials"}}}},
		{row: "C7", wrong: "422 for a poll of a binding", right: "its state", cases: []httpCase{
			{rule: "LOB-01", given: boundAsync, method: "GET", path: "I/service_bindings/B/last_operation", status: 200, has: []string{`state="succeeded"`}},
		}},
		{row: "C8", wrong: "a fetched binding has no credentials", right: "it has the same", cases: []httpCase{
			{rule: "GETB-04", given: bound, method: "GET", path: "I/service_bindings/B", status: 200, has: []string{`credentials=$credentials`}},
		}},
		{row: "C9", wrong: "a second update runs beside the first", right: "422 ConcurrencyError", cases: []httpCase{
			{rule: "UPD-22", given: updating, method: "PATCH", path: "I" + async, body: patchOther, status: 422, has: conflictError("ConcurrencyError")},
		}},
		{row: "C10", wrong: "410 for an unbind while the bind goes on and makes a user", right: "the unbind overtakes it, and nothing is left", test: func(t *testing.T, p *process, known map[string]string) {
			// The bind takes as long as the unbind: both are slow enough to meet.
			r := &runOf{T: t, base: p.url, values: known}
			r.values["I"], r.values["B"] = "c10", "c10-b"
			r.bring(asyncBindable)
			if a := r.do(httpCase{method: "PUT", path: "I/service_bindings/B" + async, body: strings.Replace(bindSlow, "30", "1", 1)}); a.status != 202 {
				t.Fatalf("BIND-21: %d %v", a.status, a.body)
			}
			if a := r.do(httpCase{method: "DELETE", path: "I/service_bindings/B" + async + "&" + ids}); a.status != 202 {
				t.Fatalf("UNB-08: %d %v", a.status, a.body)
			}
			settled(t, p.url, instancePath("c10")+"/service_bindings/c10-b")
			must(t, p.url, "GET", instancePath("c10")+"/service_bindings/c10-b", "", 404)
			must(t, p.url, "DELETE", instancePath("c10")+async+"&"+hints(planSync), "", 200, 202)
		}},
		{row: "C11", wrong: "parameters are in the log", right: "never", elsewhere: "internal/e2e TestNoSecretLeaks"},
		{row: "C12", wrong: "a process that is killed forgets what it made", right: "the next one goes on", elsewhere: "internal/e2e TestKilledAtAnyMoment"},
		{row: "C13", wrong: "certificates are not checked unless that is switched on", right: "nothing can switch it off", test: func(t *testing.T, _ *process, _ map[string]string) {
			if found := sourcesSay(t, "InsecureSkip"+"Verify"); found != nil {
				t.Errorf("%v", found)
			}
			if sourcesSay(t, "package osb") == nil {
				t.Error("the sources are not where they are looked for")
			}
		}},
		{row: "G1", wrong: "an unknown or absent service_id ends in a panic", right: "400; polls need none", cases: []httpCase{
			{rule: "UPD-04", given: ready, method: "PATCH", path: "I", body: `{"parameters":{"a":1}}`, status: 400, then: stillReady},
			{rule: "BIND-04", given: ready, method: "PUT", path: "I/service_bindings/B", body: `{"plan_id":"$sync"}`, status: 400},
			{rule: "LOP-07", given: ready, method: "GET", path: "I/last_operation", status: 200, has: []string{`state="succeeded"`}},
			{rule: "LOP-07", given: ready, method: "GET", path: "I/last_operation?service_id=nothing", status: 200, has: []string{`state="succeeded"`}},
		}},
		{row: "G2", wrong: "200 for the unbind of what never was", right: "410", cases: []httpCase{
			{rule: "UNB-02", given: ready, method: "DELETE", path: "I/service_bindings/B?" + ids, status: 410},
		}},
	}
}

// hasNull looks for a null at any depth.
func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return slices.ContainsFunc(v, hasNull)
	case map[string]any:
		for _, inner := range v {
			if hasNull(inner) {
				return true
			}
		}
	}
	return false
}

// logsTellNothing fails a provision, an update and a bind with a secret in their
// parameters, and looks for it in all that the process printed.
func logsTellNothing(t *testing.T, p *process, known map[string]string) {
	secret := "canary-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	parameters := fmt.Sprintf(`{"fail":true,"admin_password":%q}`, secret)
	must(t, p.url, "PUT", instancePath(secret[:10]), provisionBody(planSync, parameters), 500)
	must(t, p.url, "PUT", instancePath("x-"+secret[:10]), provisionBody(planSync, `{}`), 201)
	must(t, p.url, "PATCH", instancePath("x-"+secret[:10]), fmt.Sprintf(`{"service_id":%q,"parameters":%s}`, service, parameters), 500)
	must(t, p.url, "PUT", instancePath("x-"+secret[:10])+"/service_bindings/y"+secret[:10], fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"parameters":%s}`, service, planSync, parameters), 500)
	if printed := p.log.String() + p.out.String(); strings.Contains(printed, secret) || !strings.Contains(printed, "operation settled") {
		t.Error("the log has the parameters, or nothing at all")
	}
}

// sourcesSay looks for a text in the product's sources.
func sourcesSay(t *testing.T, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(raw), text) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// uriMeansItsPassword reads the credentials' URI as an application does.
func uriMeansItsPassword(t *testing.T, p *process, _ map[string]string) {
	must(t, p.url, "PUT", instancePath("a31"), provisionBody(planSync, `{}`), 201)
	credentials, _ := must(t, p.url, "PUT", instancePath("a31")+"/service_bindings/a31", fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, planSync), 201).body["credentials"].(map[string]any)
	text, _ := credentials["uri"].(string)
	uri, err := url.Parse(text)
	if err != nil || uri.User == nil {
		t.Fatalf("the credentials have no URI with a user: %v", err)
	}
	if password, _ := uri.User.Password(); password == "" || password != credentials["password"] {
		t.Error("the URI's password is not the credentials'")
	}
}

var allowed = map[string][]string{
	http.MethodPut:    {"operation", "dashboard_url", "metadata", "credentials", "syslog_drain_url", "route_service_url", "volume_mounts", "endpoints"},
	http.MethodPatch:  {"operation", "dashboard_url", "metadata"},
	http.MethodDelete: {"operation"},
}

// onlyKnownMembers looks at each answer of a lifecycle.
func onlyKnownMembers(t *testing.T, p *process, _ map[string]string) {
	path := instancePath("a13")
	bind := fmt.Sprintf(`{"service_id":%q,"plan_id":%q}`, service, planAsync)
	for _, q := range []struct{ method, path, body string }{
		{"PUT", path + async, provisionBody(planAsync, `{}`)}, {"poll", path, ""},
		{"PATCH", path + async, fmt.Sprintf(`{"service_id":%q,"parameters":{"a":2}}`, service)}, {"poll", path, ""},
		{"PUT", path + "/service_bindings/a13", bind}, {"DELETE", path + "/service_bindings/a13?" + hints(planAsync), ""},
		{"DELETE", path + async + "&" + hints(planAsync), ""},
	} {
		if q.method == "poll" {
			settled(t, p.url, q.path)
			continue
		}
		for member := range must(t, p.url, q.method, q.path, q.body, 200, 201, 202).body {
			if !slices.Contains(allowed[q.method], member) {
				t.Errorf("%s %s: the answer has a member %q", q.method, q.path, member)
			}
		}
	}
}
