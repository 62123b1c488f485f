package e2e_test

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/longshore/longshore/internal/test/expect"
)

func awsServiceBroker() []defect { return slices.Concat(awsRequests(), awsOperations(), awsRest()) }

func awsRequests() []defect {
	const cloudFoundry = `"context":{"platform":"cloudfoundry"}`
	return []defect{
		{id: "A1", kit: "HDR-06 HDR-07/abc HDR-04/3.0", wrong: "a request with no version, a junk one or 3.0 is served",
			right: "412"},
		{id: "A2", rules: "ERR-01", kit: "RID-01", wrong: "the request's identity never comes back, and 401 is plain text",
			right: "it comes back with every status, in JSON"},
		{id: "A3", rules: "AUTH-04", wrong: "metrics are open to anybody, and so is all unless a flag asks for passwords",
			right: "there is no start without a password, and no path without it but /healthz, which says that the process lives",
			show: func(r *runOf) {
				p := start(r, r.TempDir()) // nothing is set
				for _, path := range []string{"/metrics", "/healthz/", "/debug/pprof/", "/", "/v2/catalog", "/operations/x"} {
					one := newRun(r.T, p.url, r.values)
					one.prove(refused("GET "+path, "", 401, "Unauthorized").as("Authorization", ""))
				}
				r.prove(refused("GET /metrics", "", 404, "NotFound"))
			}},
		{id: "A4", rules: "AUTH-02", tests: []string{"internal/front/platforms TestLoginsAreCheapAndConstant"},
			wrong: "each request computes a slow hash, a tenth of a second long: a few requests are enough to keep it busy",
			right: "two fast hashes are compared in constant time"},
		{id: "A5", rules: "BIND-39", kit: "INP-01/bind-brace INP-01/update-brace INP-01/provision-brace",
			wrong: "malformed JSON is 500 on a bind and on a PATCH", right: "400, and nothing changes"},
		{id: "A6", kit: "PROV-13/service_id PROV-13/plan_id",
			wrong: "a PUT without service_id is 500 with the text of the database's error",
			right: "400, in the words of the API"},
		{id: "A7", rules: "PROV-15, PROV-16", wrong: "a context of Cloud Foundry without an organization is a panic",
			right: "400; where the version asks for a context alone, or the organization stands beside it, it is taken",
			show: asks(
				refused("PUT I", planBody("$demo", "$sync", ","+cloudFoundry), 400, bad).leaves(noInstance),
				httpCase{rule: "PROV-16", asks: "PUT I", body: planBody("$demo", "$sync", ","+cloudFoundry), status: 201,
					header: version("2.9")},
				httpCase{rule: "PROV-15", asks: "PUT I", body: with(sync1, cloudFoundry), status: 201},
			)},
		{id: "A8", rules: "PROV-19", wrong: "parameters that the plan does not take are sent on, nested ones as Go prints them",
			right: "400 by the plan's schema; what is taken stays as it was sent",
			show: asks(
				refused("PUT I", demoOf("schema", `{"parameter1":"banana"}`), 400, bad).leaves(noInstance),
				refused("PUT I", demoOf("schema", `{"parameter1":{"a":[1,2]}}`), 400, bad).leaves(noInstance),
				refused("PUT I", demoOf("schema", `{"size":"huge"}`), 400, bad).leaves(noInstance),
				httpCase{rule: "GETI-01", asks: "PUT I", body: demoOf("sync", `{"a":{"b":[1,{"c":null}]}}`), status: 201,
					then: reads("I", 200, `parameters={"a":{"b":[1,{"c":null}]}}`)},
			)},
		{id: "A9", kit: "PROV-07 PROV-09/numbers PROV-08/parameters PROV-08/plan PROV-08/organization",
			wrong: "the same PUT again is always 409", right: "200 `{}`; 409 only if something differs"},
		{id: "A10", kit: "PROV-10/operation PROV-11/space", wrong: "the same PUT while it runs is 409",
			right: "202 with the same operation"},
		{id: "A11", kit: "BIND-17/provisioning",
			wrong: "a bind while the instance is being made is 201 without credentials, and is kept so",
			right: "422 `ConcurrencyError`; nothing is kept, and the binding can be made later"},
		{id: "A12", kit: "BIND-02/credentials IDEM-08", wrong: "the same bind again is 200 without credentials",
			right: "200 with the same ones"},
	}
}

func awsOperations() []defect {
	return []defect{
		{id: "A13", rules: "PROV-34", wrong: "every answer has a member `async` of its own",
			right: "nothing but what the API names",
			show: asks(
				alone("", "PUT I", sync1, 201, "dashboard_url"),
				alone("", "PUT I"+async, long1, 202, "operation", "dashboard_url"),
				alone(ready, "PATCH I", changing(`{"a":2}`), 200),
				alone(readyAsync, "PATCH I"+async, changing(`{"a":2}`), 202, "operation"),
				alone(ready, "PUT I/B", bind1, 201, "credentials"),
				alone(asyncBindable, "PUT I/B"+async, bindSlow, 202, "operation"),
				alone(bound, "DELETE I/B?"+ids, "", 200),
				alone(boundAsync, "DELETE I/B"+async+"&"+ids, "", 202, "operation"),
				alone(ready, "DELETE I?"+ids, "", 200),
				alone(readyAsync, "DELETE I"+async+"&"+idsLong, "", 202, "operation"),
			)},
		{id: "A14", kit: "GETI-01 GETI-02", wrong: "an instance cannot be read: 405 with no body",
			right: "200 with what it is; 404 in JSON for an unknown one"},
		{id: "A15", kit: "GETB-01 GETB-02/unknown", wrong: "reading a binding is a panic",
			right: "200 with the credentials, or 404"},
		{id: "A16", kit: "LOB-02 LOB-06 OID-04",
			wrong: "polling a binding needs the originating identity, which is optional, and is a panic with it",
			right: "404 or the state, with it or without"},
		{id: "A17", rules: "BIND-05", kit: "BIND-07/plan BIND-07/service UNB-02/elsewhere",
			wrong: "a bind in the name of another service and plan gives the real password; an unbind by an instance that " +
				"never was deletes the binding", right: "400; 410, and the binding stays"},
		{id: "A18", kit: "UPD-23 UPD-25",
			wrong: "an update that failed is taken for applied: the same PATCH again is 200, and nothing happens",
			right: "the instance is as it was, and the same PATCH runs again"},
		{id: "A19", kit: "UPD-21", wrong: "the same PATCH while it runs is 200", right: "202 with the same operation"},
		{id: "A20", kit: "IDEM-03/parallel PROV-31", tests: []string{"internal/broker TestOneTokenForIdenticalRequests"},
			wrong: "of identical PUTs at once, all but one are 500, upon which the platform deletes the good instance",
			right: "all are 202 with one operation"},
		{id: "A21", rules: "ORB-01, DEPR-08, NFR-02",
			tests: []string{"internal/work/worker TestDyingAtEveryEffect", "internal/test/e2e TestKilledAtAnyMoment"},
			wrong: "a broker that dies between making a thing and recording it answers 410 to the deletion, and the thing stays",
			right: "what is to be made is recorded first: the deletion finds it, and nothing is left",
			show:  diesWhileMaking},
		{id: "A22", rules: "LOP-01, LOP-03",
			tests: []string{"internal/work/worker TestStepAnswersOfAProvider/InProgress",
				"internal/work/worker TestStepAnswersOfAProvider/Failure",
				"internal/work/worker TestStepAnswersOfAProvider/Fault"},
			wrong: "a rollback that still runs is failed, and the next request meets it",
			right: "in progress until the provider says that it is over: only its permanent answer fails an operation",
			never: "no provider rolls back yet"},
		{id: "A23", kit: "LOP-03 LOP-03/update",
			wrong: "a failed operation is polled with 400 where the identity is of Kubernetes",
			right: "200 with the state `failed`, whoever asks"},
		{id: "A24", kit: "LOP-09 LOB-02", wrong: "polling what never was is 410, which means that a deletion has ended",
			right: "404"},
	}
}

func awsRest() []defect {
	return []defect{
		{id: "A25", cases: []string{"UPD-09, UPD-11"}, wrong: "an update that the plan does not support is 400",
			right: "422 that says not to repeat it; 400 only for parameters that the plan's schema refuses"},
		{id: "A26", kit: "DEPR-05/both", wrong: "an instance is deleted although the ids are missing",
			right: "400, and it stays"},
		{id: "A27", rules: "LOP-10, LOP-13, UNB-02",
			wrong: "how a deletion ended is forgotten, and what bindings are left can never be removed",
			right: "the end can be asked for again; bindings go with their instance, and are 410",
			show: func(r *runOf) {
				ended := httpCase{rule: "LOP-10, LOP-13", asks: "GET I/last_operation", status: 200,
					has: []string{`state="succeeded"`}}
				r.prove(alone(bound, "DELETE I?"+ids, "", 200))
				for range 2 {
					r.prove(ended)
					r.prove(httpCase{rule: "UNB-02", asks: "DELETE I/B?" + ids, status: 410, only: true})
				}
				late := r.another()
				token := late.prove(alone(readyAsync, "DELETE I"+async+"&"+idsLong, "", 202, "operation")).text("operation")
				settled(late, late.base, late.path("I"))
				for range 2 {
					late.prove(httpCase{rule: "LOP-10", asks: "GET I/last_operation?operation=" + token, status: 410, only: true})
					late.prove(ended)
				}
			}},
		{id: "A28", rules: "CAT-01",
			tests: []string{"internal/front/platforms TestKeptOutlivesItsSource/Failing",
				"internal/front/osb TestPlatformsSeeTheirPartOfTheCatalog"},
			wrong: "when the catalog cannot be read again after an hour, it is a panic, or `null`",
			right: "it is read once, before the first request; what is read again, the platforms' passwords, stays valid when " +
				"that fails"},
		{id: "A29", tests: []string{"internal/provider/demo TestDelays/PlanOverParameter"},
			wrong: "a user's parameter wins over what the operator has fixed", right: "what a plan fixes is final",
			show: func(r *runOf) {
				r.prove(httpCase{asks: "PUT I" + async, body: demoOf("fail", `{"fail":false,"delay_seconds":0}`), status: 202})
				expect.Same(r, "against the plan's setting, it ended", "failed", settled(r, r.base, r.path("I")))
			}},
		{id: "A30", wrong: "an operator's value is cut at its second `=`", right: "values are whole",
			show: func(r *runOf) {
				p := start(r, r.TempDir(), "LONGSHORE_USERNAME=u=v", "LONGSHORE_PASSWORD=a=b=c")
				for password, want := range map[string]int{"a=b=c": 200, "a": 401, "a=b": 401} {
					expect.Same(r, "the password "+password+" is answered", want, login(r, p.url, "u=v", password))
				}
			}},
		{id: "A31", wrong: "a password with `+;/@` breaks the URL that it is put into, and TLS is switched off in it",
			right: "the URL in the demo's credentials is made of escaped parts, and says the same as the members beside it",
			never: "no service whose credentials have a password of somebody else's making, or a JDBC URL, is offered",
			show: func(r *runOf) {
				a := r.prove(alone(ready, "PUT I/B", bind1, 201, "credentials"))
				credentials, _ := a.body["credentials"].(map[string]any)
				uri := expect.Get(url.Parse(fmt.Sprint(credentials["uri"])))(r)
				password, _ := uri.User.Password()
				if uri.User.Username() != credentials["username"] || password != credentials["password"] || uri.Host == "" {
					r.Error("the URL of the credentials says other than its members")
				}
			}},
		{id: "A32", tests: []string{"infra TestRolesMayNeverDoThis/IAM"},
			wrong: "a developer names, by a parameter, the role that the broker takes on or adds policies to",
			right: "no parameter names a role: the operator's settings do; no function may touch IAM but by the provider's role",
			never: "no plan has a parameter for a role"},
		{id: "A33", tests: []string{"internal/records/store/bolt TestPages", "internal/records/store/dynamo TestUnprocessedKeys"},
			wrong: "past a page of a listing, the rest is missing; past ten values, reading them fails",
			right: "listings are read page by page to their end; a batch is never larger than AWS takes, and what it leaves " +
				"out is read again"},
		{id: "A34", rules: "CAT-30", wrong: "the order of plans changes with each reading",
			right: "the catalog is the same, byte by byte, from process to process",
			show: func(r *runOf) {
				first := r.prove(httpCase{asks: "GET /v2/catalog", status: 200})
				other := newRun(r.T, start(r, r.TempDir(), credentials()...).url, r.values)
				second := other.prove(httpCase{asks: "GET /v2/catalog", status: 200})
				if first.raw != second.raw || first.header.Get("ETag") != second.header.Get("ETag") {
					r.Error("two processes have two catalogs")
				}
				unchanged(other, first.header.Get("ETag"))
			}},
	}
}

// alone is a case of an answer that has these members, and no other.
func alone(g given, asks, body string, status int, has ...string) httpCase {
	return httpCase{given: g, asks: asks, body: body, status: status, has: has, only: true}
}

// diesWhileMaking kills a broker that has made half of an instance.
func diesWhileMaking(r *runOf) {
	data, path, body := r.TempDir(), instancePath("i"), provisionBody(planAsync, `{}`)
	p := start(r, data, credentials("LONGSHORE_DEMO_DELAY=30s")...)
	must(r, p.url, "PUT", path+async, body, 202)
	p.begun(r, path)
	p.kill()
	p = start(r, data, credentials("LONGSHORE_DEMO_DELAY=20ms")...)
	must(r, p.url, "PUT", path+async, body, 200, 202) // the retry finds what runs, or has ended
	removal := must(r, p.url, "DELETE", path+async+"&"+hints(planAsync), "", 202).text("operation")
	p.succeeds(r, path)
	must(r, p.url, "GET", path+"/last_operation?operation="+removal, "", 410)
	must(r, p.url, "PUT", path+async, body, 202) // and the id can be used again
	p.succeeds(r, path)
}
