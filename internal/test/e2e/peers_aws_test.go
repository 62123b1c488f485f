package e2e_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

func awsServiceBroker() []defect { return slices.Concat(awsRequests(), awsOperations(), awsRest()) }

func awsRequests() []defect {
	strict := func(parameters string) string {
		return `{"service_id":"$demo","plan_id":"$schema",` + place + `,"parameters":` + parameters + `}`
	}
	return []defect{
		{
			id: "A1", rules: "HDR-04, HDR-06, HDR-07", wrong: "a request with no version, a junk one or 3.0 is served",
			right: "412", kit: []string{"HDR-06", "HDR-07/abc", "HDR-04/3.0"},
		},
		{
			id: "A2", rules: "RID-01, ERR-01", wrong: "the request's identity never comes back, and 401 is plain text",
			right: "it comes back with every status, in JSON", kit: []string{"RID-01"},
		},
		{
			id: "A3", rules: "AUTH-04", wrong: "metrics are open to anybody, and so is all unless a flag asks for passwords",
			right: "there is no start without a password, and no path without it but /healthz, which says that the process lives",
			show: func(r *runOf) {
				p := start(r, r.TempDir()) // nothing is set
				for _, path := range []string{"/metrics", "/healthz/", "/debug/pprof/", "/", "/v2/catalog", "/operations/x"} {
					one := newRun(r.T, p.url, r.values)
					one.prove(refused("GET", path, "", 401, "Unauthorized").as("Authorization", ""))
				}
				r.prove(refused("GET", "/metrics", "", 404, "NotFound"))
			},
		},
		{
			id: "A4", rules: "AUTH-02",
			wrong: "each request computes a slow hash, a tenth of a second long: a few requests are enough to keep it busy",
			right: "two fast hashes are compared in constant time",
			tests: []string{"internal/front/platforms TestLoginsAreCheapAndConstant"},
		},
		{
			id: "A5", rules: "INP-01, BIND-39", wrong: "malformed JSON is 500 on a bind and on a PATCH",
			right: "400, and nothing changes",
			kit:   []string{"INP-01/bind-brace", "INP-01/update-brace", "INP-01/provision-brace"},
		},
		{
			id: "A6", rules: "PROV-13", wrong: "a PUT without service_id is 500 with the text of the database's error",
			right: "400, in the words of the API", kit: []string{"PROV-13/service_id", "PROV-13/plan_id"},
		},
		{
			id: "A7", rules: "PROV-15, PROV-16", wrong: "a context of Cloud Foundry without an organization is a panic",
			right: "400; where the version asks for a context alone, or the organization stands beside it, it is taken",
			show: asks(
				refused("PUT", "I", `{"service_id":"$demo","plan_id":"$sync","context":{"platform":"cloudfoundry"}}`, 400,
					"BadRequest").leaves(noInstance),
				httpCase{rule: "PROV-16", method: "PUT", path: "I",
					body:   `{"service_id":"$demo","plan_id":"$sync","context":{"platform":"cloudfoundry"}}`,
					status: 201}.as("X-Broker-API-Version", "2.9"),
				httpCase{rule: "PROV-15", method: "PUT", path: "I",
					body: strings.Replace(sync1, "{", `{"context":{"platform":"cloudfoundry"},`, 1), status: 201},
			),
		},
		{
			id: "A8", rules: "PROV-19",
			wrong: "parameters that the plan does not take are sent on, nested ones as Go prints them",
			right: "400 by the plan's schema; what is taken stays as it was sent",
			show: asks(
				refused("PUT", "I", strict(`{"parameter1":"banana"}`), 400, "BadRequest").leaves(noInstance),
				refused("PUT", "I", strict(`{"parameter1":{"a":[1,2]}}`), 400, "BadRequest").leaves(noInstance),
				refused("PUT", "I", strict(`{"size":"huge"}`), 400, "BadRequest").leaves(noInstance),
				httpCase{rule: "GETI-01", method: "PUT", path: "I",
					body: strings.Replace(sync1, `{"a":1,"b":"x"}`, `{"a":{"b":[1,{"c":null}]}}`, 1), status: 201,
					then: &then{path: "I", status: 200, has: []string{`parameters={"a":{"b":[1,{"c":null}]}}`}}},
			),
		},
		{
			id: "A9", rules: "PROV-07, PROV-08", wrong: "the same PUT again is always 409",
			right: "200 `{}`; 409 only if something differs",
			kit:   []string{"PROV-07", "PROV-09/numbers", "PROV-08/parameters", "PROV-08/plan", "PROV-08/organization"},
		},
		{
			id: "A10", rules: "PROV-10, PROV-11", wrong: "the same PUT while it runs is 409",
			right: "202 with the same operation", kit: []string{"PROV-10/operation", "PROV-11/space"},
		},
		{
			id: "A11", rules: "BIND-17",
			wrong: "a bind while the instance is being made is 201 without credentials, and is kept so",
			right: "422 `ConcurrencyError`; nothing is kept, and the binding can be made later",
			kit:   []string{"BIND-17/provisioning"},
		},
		{
			id: "A12", rules: "BIND-02", wrong: "the same bind again is 200 without credentials", right: "200 with the same ones",
			kit: []string{"BIND-02/credentials", "IDEM-08"},
		},
	}
}

func awsOperations() []defect {
	return []defect{
		{
			id: "A13", rules: "PROV-34", wrong: "every answer has a member `async` of its own",
			right: "nothing but what the API names",
			show: asks(
				httpCase{method: "PUT", path: "I", body: sync1, status: 201, only: true, has: []string{"dashboard_url"}},
				httpCase{method: "PUT", path: "I" + async, body: long1, status: 202, only: true,
					has: []string{"operation", "dashboard_url"}},
				httpCase{given: ready, method: "PATCH", path: "I", body: `{"service_id":"$demo","parameters":{"a":2}}`,
					status: 200, only: true},
				httpCase{given: readyAsync, method: "PATCH", path: "I" + async,
					body: `{"service_id":"$demo","parameters":{"a":2}}`, status: 202, only: true, has: []string{"operation"}},
				httpCase{given: ready, method: "PUT", path: bindings, body: bind1, status: 201, only: true,
					has: []string{"credentials"}},
				httpCase{given: asyncBindable, method: "PUT", path: bindings + async, body: bindSlow, status: 202, only: true,
					has: []string{"operation"}},
				httpCase{given: bound, method: "DELETE", path: bindings + "?" + ids, status: 200, only: true},
				httpCase{given: boundAsync, method: "DELETE", path: bindings + async + "&" + ids, status: 202, only: true,
					has: []string{"operation"}},
				httpCase{given: ready, method: "DELETE", path: "I?" + ids, status: 200, only: true},
				httpCase{given: readyAsync, method: "DELETE", path: "I" + async + "&" + idsLong, status: 202, only: true,
					has: []string{"operation"}},
			),
		},
		{
			id: "A14", rules: "GETI-01, GETI-02", wrong: "an instance cannot be read: 405 with no body",
			right: "200 with what it is; 404 in JSON for an unknown one", kit: []string{"GETI-01", "GETI-02"},
		},
		{
			id: "A15", rules: "GETB-01, GETB-02", wrong: "reading a binding is a panic",
			right: "200 with the credentials, or 404", kit: []string{"GETB-01", "GETB-02/unknown"},
		},
		{
			id: "A16", rules: "LOB-02, LOB-06, OID-04",
			wrong: "polling a binding needs the originating identity, which is optional, and is a panic with it",
			right: "404 or the state, with it or without", kit: []string{"LOB-02", "LOB-06", "OID-04"},
		},
		{
			id: "A17", rules: "BIND-05, BIND-07, UNB-02",
			wrong: "a bind in the name of another service and plan gives the real password; an unbind by an instance that " +
				"never was deletes the binding",
			right: "400; 410, and the binding stays",
			kit:   []string{"BIND-07/plan", "BIND-07/service", "UNB-02/elsewhere"},
		},
		{
			id: "A18", rules: "UPD-23, UPD-25",
			wrong: "an update that failed is taken for applied: the same PATCH again is 200, and nothing happens",
			right: "the instance is as it was, and the same PATCH runs again", kit: []string{"UPD-23", "UPD-25"},
		},
		{
			id: "A19", rules: "UPD-21", wrong: "the same PATCH while it runs is 200", right: "202 with the same operation",
			kit: []string{"UPD-21"},
		},
		{
			id: "A20", rules: "IDEM-03, PROV-31",
			wrong: "of identical PUTs at once, all but one are 500, upon which the platform deletes the good instance",
			right: "all are 202 with one operation",
			kit:   []string{"IDEM-03/parallel", "PROV-31"}, tests: []string{"internal/broker TestOneTokenForIdenticalRequests"},
		},
		{
			id: "A21", rules: "ORB-01, DEPR-08, NFR-02",
			wrong: "a broker that dies between making a thing and recording it answers 410 to the deletion, and the thing stays",
			right: "what is to be made is recorded first: the deletion finds it, and nothing is left", show: diesWhileMaking,
			tests: []string{"internal/work/worker TestDyingAtEveryEffect", "internal/test/e2e TestKilledAtAnyMoment"},
		},
		{
			id: "A22", rules: "LOP-01, LOP-03", wrong: "a rollback that still runs is failed, and the next request meets it",
			right: "in progress until the provider says that it is over: only its permanent answer fails an operation",
			tests: []string{"internal/work/worker TestStepAnswersOfAProvider/InProgress",
				"internal/work/worker TestStepAnswersOfAProvider/Failure",
				"internal/work/worker TestStepAnswersOfAProvider/Fault"},
			never: "no provider rolls back yet",
		},
		{
			id: "A23", rules: "LOP-03", wrong: "a failed operation is polled with 400 where the identity is of Kubernetes",
			right: "200 with the state `failed`, whoever asks", kit: []string{"LOP-03", "LOP-03/update"},
		},
		{
			id: "A24", rules: "LOP-09, LOB-02", wrong: "polling what never was is 410, which means that a deletion has ended",
			right: "404", kit: []string{"LOP-09", "LOB-02"},
		},
	}
}

func awsRest() []defect {
	return []defect{
		{
			id: "A25", rules: "UPD-09, UPD-11", wrong: "an update that the plan does not support is 400",
			right: "422 that says not to repeat it; 400 only for parameters that the plan's schema refuses",
			cases: []string{"UPD-09, UPD-11"},
		},
		{
			id: "A26", rules: "DEPR-05", wrong: "an instance is deleted although the ids are missing", right: "400, and it stays",
			kit: []string{"DEPR-05/both"},
		},
		{
			id: "A27", rules: "LOP-10, LOP-13, UNB-02",
			wrong: "how a deletion ended is forgotten, and what bindings are left can never be removed",
			right: "the end can be asked for again; bindings go with their instance, and are 410",
			show: func(r *runOf) {
				r.prove(httpCase{given: bound, method: "DELETE", path: "I?" + ids, status: 200, only: true})
				for range 2 {
					r.prove(httpCase{rule: "LOP-10", method: "GET", path: "I/last_operation", status: 200,
						has: []string{`state="succeeded"`}})
					r.prove(httpCase{rule: "UNB-02", method: "DELETE", path: bindings + "?" + ids, status: 410, only: true})
				}
				late := r.another()
				token := late.prove(httpCase{given: readyAsync, method: "DELETE", path: "I" + async + "&" + idsLong, status: 202,
					has: []string{"operation"}}).text("operation")
				settled(late, late.base, late.path("I"))
				for range 2 {
					late.prove(httpCase{rule: "LOP-10", method: "GET", path: "I/last_operation?operation=" + token,
						status: 410, only: true})
					late.prove(httpCase{rule: "LOP-13", method: "GET", path: "I/last_operation", status: 200,
						has: []string{`state="succeeded"`}})
				}
			},
		},
		{
			id: "A28", rules: "CAT-01", wrong: "when the catalog cannot be read again after an hour, it is a panic, or `null`",
			right: "it is read once, before the first request; what is read again, the platforms' passwords, stays valid when " +
				"that fails",
			tests: []string{"internal/front/platforms TestKeptOutlivesItsSource/Failing",
				"internal/front/osb TestPlatformsSeeTheirPartOfTheCatalog"},
		},
		{
			id: "A29", wrong: "a user's parameter wins over what the operator has fixed", right: "what a plan fixes is final",
			tests: []string{"internal/provider/demo TestDelays/PlanOverParameter"},
			show: func(r *runOf) {
				r.prove(httpCase{method: "PUT", path: "I" + async,
					body: `{"service_id":"$demo","plan_id":"$fail",` + place +
						`,"parameters":{"fail":false,"delay_seconds":0}}`, status: 202})
				if state := settled(r, r.base, r.path("I")); state != "failed" {
					r.Errorf("the plan's setting was overridden: %q", state)
				}
			},
		},
		{
			id: "A30", wrong: "an operator's value is cut at its second `=`", right: "values are whole",
			show: func(r *runOf) {
				p := start(r, r.TempDir(), "LONGSHORE_USERNAME=u=v", "LONGSHORE_PASSWORD=a=b=c")
				for password, want := range map[string]int{"a=b=c": 200, "a": 401, "a=b": 401} {
					if got := login(r, p.url, "u=v", password); got != want {
						r.Errorf("the password %q is answered %d, want %d", password, got, want)
					}
				}
			},
		},
		{
			id: "A31", wrong: "a password with `+;/@` breaks the URL that it is put into, and TLS is switched off in it",
			right: "the URL in the demo's credentials is made of escaped parts, and says the same as the members beside it",
			never: "no service whose credentials have a password of somebody else's making, or a JDBC URL, is offered",
			show: func(r *runOf) {
				a := r.prove(httpCase{given: ready, method: "PUT", path: bindings, body: bind1, status: 201,
					has: []string{"credentials"}, only: true})
				credentials, _ := a.body["credentials"].(map[string]any)
				uri, err := url.Parse(fmt.Sprint(credentials["uri"]))
				if err != nil || uri.User == nil {
					r.Fatalf("the URL of the credentials cannot be read: %v", err)
				}
				password, _ := uri.User.Password()
				if uri.User.Username() != credentials["username"] || password != credentials["password"] || uri.Host == "" {
					r.Error("the URL of the credentials says other than its members")
				}
			},
		},
		{
			id: "A32", wrong: "a developer names, by a parameter, the role that the broker takes on or adds policies to",
			right: "no parameter names a role: the operator's settings do; no function may touch IAM but by the provider's role",
			never: "no plan has a parameter for a role", tests: []string{"infra TestRolesMayNeverDoThis/IAM"},
		},
		{
			id: "A33", wrong: "past a page of a listing, the rest is missing; past ten values, reading them fails",
			right: "listings are read page by page to their end; a batch is never larger than AWS takes, and what it leaves " +
				"out is read again",
			tests: []string{"internal/records/store/bolt TestPages", "internal/records/store/dynamo TestUnprocessedKeys"},
		},
		{
			id: "A34", rules: "CAT-30", wrong: "the order of plans changes with each reading",
			right: "the catalog is the same, byte by byte, from process to process",
			show: func(r *runOf) {
				first := r.prove(httpCase{method: "GET", path: "/v2/catalog", status: 200})
				other := newRun(r.T, start(r, r.TempDir(), credentials()...).url, r.values)
				second := other.prove(httpCase{method: "GET", path: "/v2/catalog", status: 200})
				if first.raw != second.raw || first.header.Get("ETag") != second.header.Get("ETag") {
					r.Error("two processes have two catalogs")
				}
				unchanged(other, first.header.Get("ETag"))
			},
		},
	}
}

// diesWhileMaking kills a broker that has made half of an instance.
func diesWhileMaking(r *runOf) {
	data := r.TempDir()
	p := start(r, data, credentials("LONGSHORE_DEMO_DELAY=30s")...)
	body := provisionBody(planAsync, `{}`)
	path := instancePath("i")
	must(r, p.url, "PUT", path+async, body, 202)
	waitFor(r, settleLimit, "the instance to be half made", func() bool { return begun(r, p.url, path) })
	p.kill()
	p = start(r, data, credentials("LONGSHORE_DEMO_DELAY=20ms")...)
	must(r, p.url, "PUT", path+async, body, 200, 202) // the retry finds what runs, or has ended
	removal := must(r, p.url, "DELETE", path+async+"&"+hints(planAsync), "", 202).text("operation")
	if state := settled(r, p.url, path); state != "succeeded" {
		r.Errorf("the deletion ended %q", state)
	}
	must(r, p.url, "GET", path+"/last_operation?operation="+removal, "", 410)
	must(r, p.url, "PUT", path+async, body, 202) // and the id can be used again
	if state := settled(r, p.url, path); state != "succeeded" {
		r.Errorf("the next instance ended %q", state)
	}
}
