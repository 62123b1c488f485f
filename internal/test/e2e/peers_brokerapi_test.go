package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/test/expect"
)

// pollLimit is the longest operation token, in characters (PROV-25).
const pollLimit = 10_000

func brokerapi() []defect {
	return slices.Concat(brokerapiRequests(), brokerapiContents(), brokerapiErrors())
}

func brokerapiRequests() []defect {
	return []defect{
		{id: "B1", rules: "ERR-02", kit: "HDR-04/3.0 HDR-07/abc",
			wrong: "the body of a refused version has the member `Description`, which no client reads",
			right: "`description`, which names the versions that are served"},
		{id: "B2", rules: "HDR-06",
			wrong: "a missing version is 412, where 400 is allowed since 2.16, and its body is the one of B1",
			right: "412 too, on purpose: clients and checkers know nothing else (see [divergences.md](divergences.md)); it " +
				"names the header",
			show: func(r *runOf) {
				const header = "X-Broker-API-Version"
				a := r.prove(refused("PUT I", sync1, 412, "VersionNotSupported").as(header, "").leaves(noInstance))
				expect.Says(r, "the description", a.text("description"), header)
			}},
		{id: "B3", rules: "ERR-01", kit: "AUTH-02/password AUTH-06 RID-01 MISC-04",
			wrong: "a wrong password is answered by plain text, without a challenge and without the request's identity",
			right: "a JSON object, a challenge, and the identity"},
		{id: "B4", kit: "INP-16/path INP-16/post-instance RID-01 ERR-01",
			wrong: "an unknown route or method is answered by plain text, without the request's identity",
			right: "a JSON object with the identity; 405 says what is allowed"},
		{id: "B5", kit: "PROV-14/foreign", wrong: "a plan of another offering is taken: plans are looked for in all offerings",
			right: "400, and nothing is made"},
		{id: "B6",
			kit: "UPD-04/unknown UPD-06/unknown BIND-05/service BIND-05/plan PROV-15/organization PROV-15/organization-empty " +
				"UNB-05 DEPR-14",
			wrong: "ids that are in no catalog, and a PUT without organization and space, are taken: only that something is " +
				"there is checked",
			right: "400; but a deletion finds its instance or binding by its own id, and goes on: a refusal would leave it " +
				"behind for good"},
		{id: "B7", rules: "BIND-39",
			kit: "INP-01/provision-brace INP-01/update-empty INP-02/bind-array INP-03/provision-service_id " +
				"INP-03/update-plan_id INP-03/bind-plan_id",
			wrong: "JSON that is malformed, missing or of a wrong type is 422, with the names of Go's types in the text",
			right: "400, in the words of the API"},
		{id: "B8", rules: "ERR-12",
			tests: []string{"internal/front/osb TestReasonsBecomeStatusAndCode/Internal",
				"internal/front/osb TestReasonsBecomeStatusAndCode/Wrapped"},
			wrong: "any plain error is shown to the client, addresses and all, and a refusal that is wrapped becomes 500",
			right: "a fixed sentence with an id that the log has too; a wrapped refusal stays itself"},
		{id: "B9", kit: "PROV-10/operation BIND-23",
			wrong: "what exists and is still being made is 200; a binding's credentials come with it",
			right: "202 with the same operation, and no credentials"},
		{id: "B10", kit: "ROT-01/credentials ROT-02",
			wrong: "a rotation with nothing but `predecessor_binding_id` is 400: the member is unknown",
			right: "201 with new credentials, and the predecessor stays valid"},
		{id: "B11", rules: "ERR-03", kit: "PROV-03 UPD-03 DEPR-06 UNB-06/refused BIND-22 INP-09/false",
			wrong: "202 goes to clients that did not permit it",
			right: "422 `AsyncRequired` on each of the five operations, and nothing happens"},
		{id: "B11b", rules: "INP-09", wrong: "`accepts_incomplete=1` is a permission to a PATCH, and none to a PUT",
			right: "400 everywhere: it is `true` or `false`",
			show: asks(
				refused("PUT I?accepts_incomplete=1", sync1, 400, bad).leaves(noInstance),
				refused("PATCH I?accepts_incomplete=1", `{"service_id":"$demo"}`, 400, bad).in(ready).leaves(stillReady),
				refused("DELETE I?accepts_incomplete=1&"+ids, "", 400, bad).in(ready).leaves(stillReady),
				refused("PUT I/B?accepts_incomplete=1", bind1, 400, bad).in(ready).leaves(noBinding),
				refused("DELETE I/B?accepts_incomplete=1&"+ids, "", 400, bad).in(bound).leaves(reads("I/B", 200)),
			)},
		{id: "B12", kit: "MISC-06", cases: []string{"MISC-06 curl's default content type"},
			wrong: "JSON that curl sends as a form is lost on a bind: the body was read as the form",
			right: "it is read as JSON on every operation"},
	}
}

func brokerapiContents() []defect {
	return []defect{
		{id: "B13", rules: "ERR-12", tests: []string{"internal/test/e2e TestNoSecretLeaks"},
			wrong: "a provision that fails has its parameters and context in the log",
			right: "no value of either is ever printed, whatever fails"},
		{id: "B14", rules: "ERR-12, ERR-01",
			tests: []string{"internal/front/osb TestWhatCannotBeEncodedIsAnInternalError",
				"internal/work/worker TestGrantsThatCannotBeEncoded"},
			wrong: "credentials that JSON cannot hold are 201 without a body, and stand in the log",
			right: "an internal error; neither the answer nor the log has them, and they are not kept"},
		{id: "B15", rules: "INP-14, INP-02, INP-03",
			wrong: "a body of 60 MB, JSON with garbage after it, and parameters that are a text are all taken",
			right: "413, 400 and 400, and nothing is made",
			show: asks(
				refused("PUT I", with(sync1, `"x":"`+strings.Repeat("a", 60<<20)+`"`), 413, tooLarge).leaves(noInstance),
				refused("PUT I", sync1+"garbage", 400, bad).leaves(noInstance),
				refused("PUT I", sync1+sync1, 400, bad).leaves(noInstance),
				refused("PUT I", demoOf("sync", `"str"`), 400, bad).leaves(noInstance),
				refused("PATCH I", changing(`"str"`), 400, bad).in(ready).leaves(stillReady),
				refused("PUT I/B", with(bind1, `"parameters":"str"`), 400, bad).in(ready).leaves(noBinding),
			)},
		{id: "B16", rules: "CAT-01, CAT-27",
			tests: []string{"internal/catalog/compile TestCatalogJSON/Least",
				"internal/front/osb TestPlatformsSeeTheirPartOfTheCatalog"},
			wrong: "a catalog with a part of the schemas, or with nothing, has `null` where an object or array must be",
			right: "what is absent is left out; the list of services is always an array; each schema has its `$schema`",
			show: func(r *runOf) {
				a := r.prove(httpCase{asks: "GET /v2/catalog", status: 200, has: []string{"services"}, only: true})
				expect.Never(r, "the catalog", a.raw, "null")
				var schemas struct {
					Services []struct {
						Plans []struct {
							Schemas map[string]map[string]struct{ Parameters map[string]any }
						}
					}
				}
				expect.OK(r, json.Unmarshal([]byte(a.raw), &schemas))
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
			}},
		{id: "B17", rules: "AUTH-08",
			tests: []string{"internal/front/platforms TestRotationLosesNoRequest", "internal/test/e2e TestPlatforms"},
			wrong: "of two credentials that are given, as for a rotation, neither is accepted",
			right: "both, until the old one's time is over"},
	}
}

func brokerapiErrors() []defect {
	return []defect{
		{id: "B18", rules: "ERR-05", kit: "BIND-10",
			tests: []string{"internal/front/osb TestReasonsBecomeStatusAndCode/RequiresApp"},
			wrong: "the error for a service that needs an app has no code",
			right: "422 `RequiresApp` with the sentence that clients know"},
		{id: "B19", rules: "INP-13, INP-14, INP-15, NFR-10",
			tests: []string{"internal/front/osb TestReasonsBecomeStatusAndCode/Unprocessable"},
			wrong: "limits and quotas are 500, so that the platform deletes what it takes for an orphan",
			right: "every limit that there is (of identifiers, bodies, parameters, depth) is a 4xx and changes nothing",
			never: "quotas of instances do not exist yet; a refusal that is none of the API's own codes is 422",
			show: asks(
				refused("PUT I"+strings.Repeat("x", 800), sync1, 400, bad),
				refused("PUT I", swap(sync1, `"x"`, `"`+strings.Repeat("x", 64<<10)+`"`), 400, bad).leaves(noInstance),
				refused("PUT I", with(sync1, `"x":`+strings.Repeat("[", 1001)+strings.Repeat("]", 1001)), 400,
					bad).leaves(noInstance),
				refused("PUT I", with(sync1, `"x":"`+strings.Repeat("x", 256<<10)+`"`), 413, tooLarge).leaves(noInstance),
			)},
		{id: "B20", rules: "ERR-11", kit: "LOP-09 GETI-02 UPD-19/404 BIND-06/404 GETB-02/unknown LOB-02 DEPR-03 UNB-02/unknown",
			wrong: "the error at hand for what does not exist is 410, which on a poll means that a deletion has ended",
			right: "404 for everything but a deletion, which is 410 `{}`"},
		{id: "B21", rules: "PROV-25, LOP-17", kit: "LOP-01", cases: []string{"LOP-17", "LOP-14", "LOP-03"},
			wrong: "any state and an operation of any length are passed on",
			right: "a provider has no way to say a state; tokens are made here, short even for the longest ids, and too long a " +
				"one is refused",
			show: func(r *runOf) {
				long := "I" + strings.Repeat("%20", 780)
				a := r.prove(httpCase{rule: "PROV-25", asks: "PUT " + long + async, body: swap(sync1, "$sync", "$async"),
					status: 202, has: []string{"operation", "dashboard_url"}, only: true})
				token := a.text("operation")
				if len(token) > pollLimit || url.QueryEscape(token) != token {
					r.Errorf("a token of %d characters, %.60q…", len(token), token)
				}
				r.prove(httpCase{rule: "LOP-06", asks: "GET " + long + "/last_operation?operation=" + token, status: 200,
					has: []string{"state"}})
			}},
		{id: "B22", rules: "ERR-12",
			tests: []string{"internal/test/e2e TestCommandLine/NoOfferings", "internal/broker TestAnOutageIsNotTheUsersFault"},
			wrong: "while the catalog cannot be had, the user is told that the service is unknown",
			right: "the catalog is read before the first request, or the start is refused; what else cannot be had is an " +
				"internal error, never the user's"},
		{id: "B23", rules: "ERR-12",
			tests: []string{"internal/front/osb TestAPanicIsAnInternalErrorWithoutInternals",
				"internal/front/gateway TestNoEventFailsTheFunction/Panic", "internal/work/inprocess TestEngine"},
			wrong: "a panic resets the connection",
			right: "500 with a JSON object; a panic in a step ends one execution, which is driven again"},
		{id: "B24", kit: "PROV-20/other", wrong: "a PUT with a maintenance version that is not the catalog's is taken",
			right: "422 `MaintenanceInfoConflict`, and nothing is made"},
		{id: "B25", kit: "HDR-07/2.17garbage HDR-07/2.-9",
			tests: []string{"internal/front/osb TestVersionHeader/2.17garbage", "internal/front/osb TestVersionHeader/2.-5"},
			wrong: "`2.17garbage` and `2.-5` are versions", right: "412: digits, a dot, digits"},
		{id: "B26", rules: "LOP-05, UPD-24, UPD-09, DEPR-13, CAT-25, CAT-30", cases: []string{"UPD-09, UPD-11", "DEPR-13"},
			wrong: "Retry-After, `instance_usable`, `update_repeatable`, an instance's `maintenance_info`, `binding_rotatable` " +
				"and ETag cannot be said", right: "all are",
			show: func(r *runOf) {
				for _, c := range []httpCase{
					{asks: "PUT I" + async, body: long1, status: 202, has: []string{"operation"}},
					{given: provisioning, asks: "GET I/last_operation", status: 200, has: []string{"state"}},
				} {
					if a := r.another().prove(c); !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(a.header.Get("Retry-After")) {
						r.Errorf("%s: Retry-After %q", c.asks, a.header.Get("Retry-After"))
					}
				}
				r.another().prove(httpCase{given: updatedBad, asks: "GET I/last_operation", status: 200, only: true,
					has: []string{`state="failed"`, "description", "instance_usable=true", "update_repeatable=true"}})
				r.another().prove(httpCase{given: maintained, asks: "GET I", status: 200,
					has: []string{`maintenance_info={"version":"2.0.0"}`}})
				catalog := r.prove(httpCase{asks: "GET /v2/catalog", status: 200})
				expect.Says(r, "the catalog", catalog.raw, `"binding_rotatable":true`)
				unchanged(r, catalog.header.Get("ETag"))
			}},
	}
}

const bad, tooLarge = "BadRequest", "RequestTooLarge"

var noBinding = reads("I/B", 404)

// unchanged asks for the catalog again: 304 has no body.
func unchanged(r *runOf, tag string) {
	r.Helper()
	a, _ := ask("GET", r.base+"/v2/catalog", "", map[string]string{"If-None-Match": tag})
	if a.status != http.StatusNotModified || tag == "" || a.raw != "" {
		r.Errorf("CAT-30: tag %q: status %d with %q", tag, a.status, a.raw)
	}
}
