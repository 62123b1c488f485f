package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// pollLimit is the longest operation token, in characters (PROV-25).
const pollLimit = 10_000

func brokerapi() []defect {
	return slices.Concat(brokerapiRequests(), brokerapiSecrets(), brokerapiBodies(), brokerapiErrors())
}

func brokerapiRequests() []defect {
	return []defect{
		{
			id: "B1", rules: "HDR-04, ERR-02",
			wrong: "the body of a refused version has the member `Description`, which no client reads",
			right: "`description`, which names the versions that are served", kit: []string{"HDR-04/3.0", "HDR-07/abc"},
		},
		{
			id: "B2", rules: "HDR-06",
			wrong: "a missing version is 412, where 400 is allowed since 2.16, and its body is the one of B1",
			right: "412 too, on purpose: clients and checkers know nothing else (see [divergences.md](divergences.md)); it " +
				"names the header",
			show: func(r *runOf) {
				a := r.prove(refused("PUT", "I", sync1, 412, "VersionNotSupported").as("X-Broker-API-Version",
					"").leaves(noInstance))
				if !strings.Contains(a.text("description"), "X-Broker-API-Version") {
					r.Errorf("it does not name the header: %q", a.text("description"))
				}
			},
		},
		{
			id: "B3", rules: "AUTH-02, AUTH-06, RID-01, ERR-01",
			wrong: "a wrong password is answered by plain text, without a challenge and without the request's identity",
			right: "a JSON object, a challenge, and the identity",
			kit:   []string{"AUTH-02/password", "AUTH-06", "RID-01", "MISC-04"},
		},
		{
			id: "B4", rules: "INP-16, RID-01, ERR-01",
			wrong: "an unknown route or method is answered by plain text, without the request's identity",
			right: "a JSON object with the identity; 405 says what is allowed",
			kit:   []string{"INP-16/path", "INP-16/post-instance", "RID-01", "ERR-01"},
		},
		{
			id: "B5", rules: "PROV-14", wrong: "a plan of another offering is taken: plans are looked for in all offerings",
			right: "400, and nothing is made", kit: []string{"PROV-14/foreign"},
		},
		{
			id: "B6", rules: "UPD-04, UPD-06, BIND-05, PROV-15, UNB-05, DEPR-14",
			wrong: "ids that are in no catalog, and a PUT without organization and space, are taken: only that something is " +
				"there is checked",
			right: "400; but a deletion finds its instance or binding by its own id, and goes on: a refusal would leave it " +
				"behind for good",
			kit: []string{"UPD-04/unknown", "UPD-06/unknown", "BIND-05/service", "BIND-05/plan", "PROV-15/organization",
				"PROV-15/organization-empty", "UNB-05", "DEPR-14"},
		},
		{
			id: "B7", rules: "INP-01, INP-03, BIND-39",
			wrong: "JSON that is malformed, missing or of a wrong type is 422, with the names of Go's types in the text",
			right: "400, in the words of the API",
			kit: []string{"INP-01/provision-brace", "INP-01/update-empty", "INP-02/bind-array", "INP-03/provision-service_id",
				"INP-03/update-plan_id", "INP-03/bind-plan_id"},
		},
		{
			id: "B8", rules: "ERR-12",
			wrong: "any plain error is shown to the client, addresses and all, and a refusal that is wrapped becomes 500",
			right: "a fixed sentence with an id that the log has too; a wrapped refusal stays itself",
			tests: []string{"internal/front/osb TestReasonsBecomeStatusAndCode/Internal",
				"internal/front/osb TestReasonsBecomeStatusAndCode/Wrapped"},
		},
		{
			id: "B9", rules: "PROV-10, BIND-23",
			wrong: "what exists and is still being made is 200; a binding's credentials come with it",
			right: "202 with the same operation, and no credentials", kit: []string{"PROV-10/operation", "BIND-23"},
		},
		{
			id: "B10", rules: "ROT-02",
			wrong: "a rotation with nothing but `predecessor_binding_id` is 400: the member is unknown",
			right: "201 with new credentials, and the predecessor stays valid", kit: []string{"ROT-01/credentials", "ROT-02"},
		},
		{
			id: "B11", rules: "ERR-03", wrong: "202 goes to clients that did not permit it",
			right: "422 `AsyncRequired` on each of the five operations, and nothing happens",
			kit:   []string{"PROV-03", "UPD-03", "DEPR-06", "UNB-06/refused", "BIND-22", "INP-09/false"},
		},
		{
			id: "B11b", rules: "INP-09", wrong: "`accepts_incomplete=1` is a permission to a PATCH, and none to a PUT",
			right: "400 everywhere: it is `true` or `false`",
			show: asks(
				refused("PUT", "I?accepts_incomplete=1", sync1, 400, "BadRequest").leaves(noInstance),
				refused("PATCH", "I?accepts_incomplete=1", `{"service_id":"$demo"}`, 400,
					"BadRequest").in(ready).leaves(stillReady),
				refused("DELETE", "I?accepts_incomplete=1&"+ids, "", 400, "BadRequest").in(ready).leaves(stillReady),
				refused("PUT", bindings+"?accepts_incomplete=1", bind1, 400, "BadRequest").in(ready).leaves(noBinding),
				refused("DELETE", bindings+"?accepts_incomplete=1&"+ids, "", 400,
					"BadRequest").in(bound).leaves(&then{path: bindings, status: 200}),
			),
		},
		{
			id: "B12", rules: "MISC-06", wrong: "JSON that curl sends as a form is lost on a bind: the body was read as the form",
			right: "it is read as JSON on every operation", cases: []string{"MISC-06 curl's default content type"},
			kit: []string{"MISC-06"},
		},
	}
}

func brokerapiSecrets() []defect {
	return []defect{
		{
			id: "B13", rules: "ERR-12", wrong: "a provision that fails has its parameters and context in the log",
			right: "no value of either is ever printed, whatever fails",
			show: func(r *runOf) {
				const canary = "canary-b13"
				secret := `"parameters":{"password":"` + canary +
					`","fail":true},"context":{"platform":"x","secret":"` + canary + `"}`
				log := printed(r, func(r *runOf) {
					r.prove(httpCase{method: "PUT", path: "I",
						body: `{"service_id":"$demo","plan_id":"$sync",` + place + `,` + secret + `}`, status: 500})
					r.another().prove(httpCase{method: "PUT", path: "I",
						body: `{"service_id":"$demo","plan_id":"$sync",` + place + `,` + secret +
							`,"maintenance_info":{"version":"9.9.9"}}`, status: 422})
					r.another().prove(httpCase{method: "PUT", path: "I",
						body: `{"service_id":"$demo","plan_id":"$schema",` + place + `,` + secret + `}`, status: 400})
					made := r.another()
					made.prove(httpCase{given: ready, method: "PATCH", path: "I",
						body: `{"service_id":"$demo",` + secret + `}`, status: 500})
					made.prove(httpCase{method: "PUT", path: bindings,
						body: strings.Replace(bind1, "{", "{"+secret+",", 1), status: 500})
					late := r.another()
					late.prove(httpCase{method: "PUT", path: "I" + async,
						body: `{"service_id":"$demo","plan_id":"$async",` + place + `,` + secret + `}`, status: 202})
					if state := settled(late, late.base, late.path("I")); state != "failed" {
						late.Errorf("it ended %q", state)
					}
				})
				if strings.Contains(log, canary) || strings.Count(log, "result=failed") != 4 {
					r.Errorf("the log tells parameters, or not that four operations failed:\n%s", log)
				}
			},
		},
		{
			id: "B14", rules: "ERR-12, ERR-01",
			wrong: "credentials that JSON cannot hold are 201 without a body, and stand in the log",
			right: "an internal error; neither the answer nor the log has them, and they are not kept",
			tests: []string{"internal/front/osb TestWhatCannotBeEncodedIsAnInternalError",
				"internal/work/worker TestGrantsThatCannotBeEncoded"},
		},
	}
}

func brokerapiBodies() []defect {
	sized := func(member, value string) string { return strings.Replace(sync1, "{", `{"`+member+`":`+value+`,`, 1) }
	return []defect{
		{
			id: "B15", rules: "INP-14, INP-02, INP-03",
			wrong: "a body of 60 MB, JSON with garbage after it, and parameters that are a text are all taken",
			right: "413, 400 and 400, and nothing is made", cases: []string{"INP-14 body of 12 MiB"},
			show: asks(
				refused("PUT", "I", sized("x", `"`+strings.Repeat("a", 60<<20)+`"`), 413, "RequestTooLarge").leaves(noInstance),
				refused("PUT", "I", sync1+"garbage", 400, "BadRequest").leaves(noInstance),
				refused("PUT", "I", sync1+sync1, 400, "BadRequest").leaves(noInstance),
				refused("PUT", "I", strings.Replace(sync1, `{"a":1,"b":"x"}`, `"str"`, 1), 400, "BadRequest").leaves(noInstance),
				refused("PATCH", "I", `{"service_id":"$demo","parameters":"str"}`, 400,
					"BadRequest").in(ready).leaves(stillReady),
				refused("PUT", bindings, strings.Replace(bind1, "{", `{"parameters":"str",`, 1), 400,
					"BadRequest").in(ready).leaves(noBinding),
			),
		},
		{
			id: "B16", rules: "CAT-01, CAT-27",
			wrong: "a catalog with a part of the schemas, or with nothing, has `null` where an object or array must be",
			right: "what is absent is left out; the list of services is always an array; each schema has its `$schema`",
			tests: []string{"internal/catalog/compile TestCatalogJSON/Least",
				"internal/front/osb TestPlatformsSeeTheirPartOfTheCatalog"},
			show: func(r *runOf) {
				a := r.prove(httpCase{method: "GET", path: "/v2/catalog", status: 200, has: []string{"services"}, only: true})
				if strings.Contains(a.raw, "null") {
					r.Error("the catalog has null")
				}
				var schemas struct {
					Services []struct {
						Plans []struct {
							Schemas map[string]map[string]struct{ Parameters map[string]any }
						}
					}
				}
				if err := json.Unmarshal([]byte(a.raw), &schemas); err != nil {
					r.Fatal(err)
				}
				seen := 0
				for _, s := range schemas.Services {
					for _, p := range s.Plans {
						for _, of := range p.Schemas {
							for verb, schema := range of {
								if seen++; schema.Parameters["$schema"] == nil {
									r.Errorf("a schema for %s has no $schema", verb)
								}
							}
						}
					}
				}
				if seen < 10 {
					r.Errorf("only %d schemas were seen", seen)
				}
			},
		},
		{
			id: "B17", rules: "AUTH-08", wrong: "of two credentials that are given, as for a rotation, neither is accepted",
			right: "both, until the old one's time is over",
			tests: []string{"internal/front/platforms TestRotationLosesNoRequest"},
			show: func(r *runOf) {
				data := r.TempDir()
				start(r, data).kill() // which makes the folder
				rotate := func(verb ...string) string {
					out, status := longshore(r, append(append([]string{"platform"}, verb...), "--data", data)...)
					found := regexp.MustCompile(`(?:password +|: )(\S{20,})\n`).FindStringSubmatch(out)
					if status != 0 || found == nil {
						r.Fatalf("longshore platform %v: status %d:\n%s", verb, status, out)
					}
					return found[1]
				}
				old := rotate("add", "cf", "--path", "/cf")
				next := rotate("rotate", "cf", "--now")
				p := start(r, data)
				for password, want := range map[string]int{old: 200, next: 200, "neither": 401} {
					if got := login(r, p.url+"/cf", "cf", password); got != want || old == next {
						r.Errorf("a password is answered %d, want %d", got, want)
					}
				}
			},
		},
	}
}

func brokerapiErrors() []defect {
	sized := func(member, value string) string { return strings.Replace(sync1, "{", `{"`+member+`":`+value+`,`, 1) }
	return []defect{
		{
			id: "B18", rules: "BIND-10, ERR-05", wrong: "the error for a service that needs an app has no code",
			right: "422 `RequiresApp` with the sentence that clients know", kit: []string{"BIND-10"},
			tests: []string{"internal/front/osb TestReasonsBecomeStatusAndCode/RequiresApp"},
		},
		{
			id: "B19", rules: "INP-13, INP-14, INP-15",
			wrong: "limits and quotas are 500, so that the platform deletes what it takes for an orphan",
			right: "every limit that there is (of identifiers, bodies, parameters, depth) is a 4xx and changes nothing",
			never: "quotas of instances do not exist yet; a refusal that is none of the API's own codes is 422",
			tests: []string{"internal/front/osb TestReasonsBecomeStatusAndCode/Unprocessable"},
			show: asks(
				refused("PUT", "I"+strings.Repeat("x", 800), sync1, 400, "BadRequest"),
				refused("PUT", "I", strings.Replace(sync1, `"b":"x"`, `"b":"`+strings.Repeat("x", 64<<10)+`"`, 1), 400,
					"BadRequest").leaves(noInstance),
				refused("PUT", "I", sized("x", strings.Repeat("[", 1001)+strings.Repeat("]", 1001)), 400,
					"BadRequest").leaves(noInstance),
				refused("PUT", "I", sized("x", `"`+strings.Repeat("x", 256<<10)+`"`), 413, "RequestTooLarge").leaves(noInstance),
			),
		},
		{
			id: "B20", rules: "LOP-09, UPD-19, LOB-02, ERR-11",
			wrong: "the error at hand for what does not exist is 410, which on a poll means that a deletion has ended",
			right: "404 for everything but a deletion, which is 410 `{}`",
			kit: []string{"LOP-09", "GETI-02", "UPD-19/404", "BIND-06/404", "GETB-02/unknown", "LOB-02", "DEPR-03",
				"UNB-02/unknown"},
		},
		{
			id: "B21", rules: "PROV-25, LOP-17", wrong: "any state and an operation of any length are passed on",
			right: "a provider has no way to say a state; tokens are made here, short even for the longest ids, and too long a " +
				"one is refused",
			kit: []string{"LOP-01"}, cases: []string{"LOP-17", "LOP-14", "LOP-03"},
			show: func(r *runOf) {
				long := "I" + strings.Repeat("%20", 780)
				a := r.prove(httpCase{rule: "PROV-25", method: "PUT", path: long + async,
					body:   strings.Replace(sync1, "$sync", "$async", 1),
					status: 202, has: []string{"operation", "dashboard_url"}, only: true})
				token := a.text("operation")
				if len(token) > pollLimit || url.QueryEscape(token) != token {
					r.Errorf("a token of %d characters, %.60q…", len(token), token)
				}
				r.prove(httpCase{rule: "LOP-06", method: "GET", path: long + "/last_operation?operation=" + token, status: 200,
					has: []string{"state"}})
			},
		},
		{
			id: "B22", rules: "ERR-12", wrong: "while the catalog cannot be had, the user is told that the service is unknown",
			right: "the catalog is read before the first request, or the start is refused; what else cannot be had is an " +
				"internal error, never the user's",
			tests: []string{"internal/test/e2e TestCommandLine/NoOfferings", "internal/broker TestAnOutageIsNotTheUsersFault"},
		},
		{
			id: "B23", rules: "ERR-12", wrong: "a panic resets the connection",
			right: "500 with a JSON object; a panic in a step ends one execution, which is driven again",
			tests: []string{"internal/front/osb TestAPanicIsAnInternalErrorWithoutInternals",
				"internal/front/gateway TestNoEventFailsTheFunction/Panic", "internal/work/inprocess TestEngine"},
		},
		{
			id: "B24", rules: "PROV-20", wrong: "a PUT with a maintenance version that is not the catalog's is taken",
			right: "422 `MaintenanceInfoConflict`, and nothing is made", kit: []string{"PROV-20/other"},
		},
		{
			id: "B25", rules: "HDR-07", wrong: "`2.17garbage` and `2.-5` are versions", right: "412: digits, a dot, digits",
			tests: []string{"internal/front/osb TestVersionHeader/2.17garbage", "internal/front/osb TestVersionHeader/2.-5"},
			kit:   []string{"HDR-07/2.17garbage", "HDR-07/2.-9"},
		},
		{
			id: "B26", rules: "LOP-05, UPD-24, UPD-09, DEPR-13, CAT-25, CAT-30",
			wrong: "Retry-After, `instance_usable`, `update_repeatable`, an instance's `maintenance_info`, `binding_rotatable` " +
				"and ETag cannot be said",
			right: "all are", cases: []string{"UPD-09, UPD-11", "DEPR-13"},
			show: func(r *runOf) {
				for _, c := range []httpCase{
					{method: "PUT", path: "I" + async, body: long1, status: 202, has: []string{"operation"}},
					{given: provisioning, method: "GET", path: "I/last_operation", status: 200, has: []string{"state"}},
				} {
					if a := r.another().prove(c); !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(a.header.Get("Retry-After")) {
						r.Errorf("%s: Retry-After %q", c.method, a.header.Get("Retry-After"))
					}
				}
				r.another().prove(httpCase{given: updatedBad, method: "GET", path: "I/last_operation", status: 200, only: true,
					has: []string{`state="failed"`, "description", "instance_usable=true", "update_repeatable=true"}})
				r.another().prove(httpCase{given: maintained, method: "GET", path: "I", status: 200,
					has: []string{`maintenance_info={"version":"2.0.0"}`}})
				catalog := r.prove(httpCase{method: "GET", path: "/v2/catalog", status: 200})
				if !strings.Contains(catalog.raw, `"binding_rotatable":true`) {
					r.Error("no plan says that its bindings are rotatable")
				}
				unchanged(r, catalog.header.Get("ETag"))
			},
		},
	}
}

var noBinding = &then{path: bindings, status: 404}

// printed is all that a broker of its own prints while it is asked, to its end.
func printed(r *runOf, ask func(r *runOf)) string {
	r.Helper()
	p := start(r, r.TempDir(), credentials("LONGSHORE_DEMO_DELAY=20ms")...)
	ask(newRun(r.T, p.url, r.values))
	if code := p.stop(r, terminate); code != 0 {
		r.Errorf("exit status %d", code)
	}
	if !strings.Contains(p.log.String(), "request") {
		r.Error("nothing was logged: the test proves nothing")
	}
	return p.log.String() + p.out.String()
}

// unchanged asks for the catalog again: 304 has no body.
func unchanged(r *runOf, tag string) {
	r.Helper()
	request, err := http.NewRequest("GET", r.base+"/v2/catalog", nil)
	if err != nil {
		r.Fatal(err)
	}
	request.SetBasicAuth(username, password)
	request.Header.Set("X-Broker-API-Version", "2.17")
	request.Header.Set("If-None-Match", tag)
	response, err := client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusNotModified || tag == "" || response.ContentLength > 0 {
		r.Errorf("CAT-30: tag %q: status %d with %d bytes", tag, response.StatusCode, response.ContentLength)
	}
}
