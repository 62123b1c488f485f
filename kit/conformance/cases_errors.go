package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Sentences of version 2.9 by which some platforms recognise errors.
const (
	asyncSentence       = "This service plan requires client support for asynchronous service operations."
	concurrencySentence = "The Service Broker does not support concurrent requests that mutate the same resource."
	appSentence         = "This service supports generation of credentials through binding an application only."
)

func errorCases() []Case {
	return []Case{
		{ID: "ERR-01", Title: "every body is a JSON object", watched: true},
		{ID: "ERR-02", Title: "error and description are texts that are not empty, or absent", watched: true},
		{ID: "ERR-02/word", Title: "error is one word", watched: true},
		{ID: "ERR-02/description", Title: "a refusal says why in description", watched: true},
		{ID: "ERR-03", Title: "the refusal of a client that cannot wait is AsyncRequired", needs: needs{asyncOnly},
			ask: provisionAtOnce, want: cannotWait},
		{ID: "ERR-03/sentence", Title: "AsyncRequired comes with the sentence of version 2.9", needs: needs{asyncOnly},
			ask: provisionAtOnce, want: cannotWait.has("description", asyncSentence)},
		{ID: "ERR-04/sentence", Since: 14,
			Title: "ConcurrencyError comes with the sentence that Kubernetes' client library knows it by", given: updating,
			ask: toUpdate(change(1)), want: refusedOr(concurrencyError, 200, 202).that(sentence(concurrencySentence))},
		ifBusy("update-while-updating", "an update while one runs", updating, toUpdate(change(1)), 200, 202),
		ifBusy("bind-while-updating", "a bind while the instance is being updated", updating, toBind(bind), 201,
			202).needing(bindable),
		ifBusy("deprovision-while-updating", "a deprovision while the instance is being updated", updating, toDeprovision, 200,
			202),
		ifBusy("fetch-while-updating", "a fetch while the instance is being updated", updating, get(instance),
			200).needing(fetchable),
		ifBusy("update-while-provisioning", "an update while the instance is being provisioned", provisioning,
			toUpdate(change(0)), 200, 202, 404).needing(changeable),
		ifBusy("bind-while-provisioning", "a bind while the instance is being provisioned", provisioning, toBind(bind), 201, 202,
			404).needing(bindable),
		ifBusy("deprovision-while-provisioning", "a deprovision while the instance is being provisioned", provisioning,
			toDeprovision, 200, 202),
		{ID: "ERR-06", Since: 15, Title: "the refusal of another maintenance version is MaintenanceInfoConflict",
			needs: needs{maintained}, ask: toProvision(provision.with("maintenance_info", object{"version": "99.99.99"})),
			want: refused(maintenanceConflict)},
		{ID: "ERR-07", watched: true, Title: "the refusal of a change of plan has no reserved code", given: ready,
			needs: needs{notUpdateable}, ask: toUpdate(update.with("plan_id", "$otherplan")),
			want: status(422, 400).that(func(_ *scene, a response) (string, string) {
				if reserved(text(a.body, "error")) {
					return "another error than " + text(a.body, "error"), a.String()
				}
				return "", ""
			})},
		{ID: "ERR-08", Since: 14, watched: true, Title: "what is refused changes nothing", given: ready,
			needs: needs{fetchable, free, withSibling}, story: func(s *scene) {
				for _, q := range []request{
					toProvision(provision.with(freeParameter, 7)),
					toProvision(provision.with("plan_id", "$otherplan")),
					toUpdate(update.with("plan_id", "$unknown").with(freeParameter, 8)),
					remove(instance + async),
				} {
					if q.method == http.MethodPatch && s.plan.noUpdates {
						continue
					}
					before := s.look(q)
					a, ok := s.send(q)
					if !ok || a.status < 400 {
						return // a request that is not refused may change something
					}
					s.unchanged(a, before, s.look(q))
				}
			}},
		{ID: "ERR-10", Since: 16, Title: "instance_usable and update_repeatable stand only where they mean something",
			watched: true},
		{ID: "ERR-11", Since: 14, Title: "410 is for deletions and 404 for the rest, and what is busy is not 423", watched: true},
		{ID: "ERR-13", Title: "no error, poll or header tells a password, and errors are short", watched: true,
			needs: needs{inCatalog}, story: func(s *scene) {
				tour(s)
				s.unchecked()
			}},
	}
}

// ifBusy is about a request that meets a running operation. A broker may accept the request; if it
// does not, it answers with ConcurrencyError. The others are the statuses that it may answer as well.
func ifBusy(name, what string, g given, q request, others ...int) Case {
	return Case{ID: "ERR-04/" + name, Title: what + " is taken, or refused with ConcurrencyError", given: g,
		ask: q, want: refusedOr(concurrencyError, others...)}
}

// needing returns the case with more needs.
func (c Case) needing(n ...need) Case {
	c.needs = append(c.needs[:len(c.needs):len(c.needs)], n...)
	return c
}

// sentence wants a refusal to have this description.
func sentence(says string) test {
	return holds("description to be "+says, func(a response) bool {
		return a.status != http.StatusUnprocessableEntity || text(a.body, "description") == says
	})
}

func inputCases() []Case { return slices.Concat(malformedCases(), oddInputCases()) }

func malformedCases() []Case {
	var out []Case
	malformed := []struct{ rule, name, content string }{
		{"INP-01", "brace", "{"}, {"INP-01", "text", "not json"}, {"INP-01", "empty", ""}, {"INP-01", "garbage", "{}x"},
		{"INP-02", "array", "[]"}, {"INP-02", "string", `"x"`}, {"INP-02", "null", "null"}, {"INP-02", "number", "1"},
		{"INP-17", "utf8", "{\"service_id\":\"\xff\"}"},
	}
	type wrong struct {
		member string
		value  any
		since  int
	}
	kinds := []struct {
		name  string
		ask   func(content any) request
		body  body
		given given
		needs needs
		wrong []wrong
	}{
		{"provision", toProvision, provision, given{}, needs{inCatalog}, []wrong{
			{"service_id", 5, 0}, {"plan_id", object{}, 0}, {"organization_guid", 7, 10}, {"space_guid", []any{}, 10},
			{"context", "x", 12}, {"parameters", []any{}, 0}, {"maintenance_info", "1.0.0", 15},
		}},
		{"update", toUpdate, update, ready, nil, []wrong{
			{"service_id", 5, 0}, {"plan_id", []any{}, 0}, {"parameters", "x", 0}, {"context", 1, 0}, {"previous_values", 1, 0},
		}},
		{"bind", toBind, bind, ready, needs{bindable}, []wrong{
			{"service_id", 5, 0}, {"plan_id", []any{}, 0}, {"parameters", []any{}, 0}, {"bind_resource", []any{}, 0},
			{"app_guid", object{}, 0},
		}},
	}
	for _, m := range malformed {
		for _, k := range kinds {
			out = append(out, Case{ID: m.rule + "/" + k.name + "-" + m.name,
				Title: "a body that is no JSON object is refused: " + m.name,
				given: k.given, needs: k.needs, ask: k.ask(raw(m.content)), want: status(400)})
		}
	}
	for _, k := range kinds {
		for _, w := range k.wrong {
			out = append(out, Case{ID: "INP-03/" + k.name + "-" + w.member, Since: w.since,
				Title: w.member + " of a wrong type is refused",
				given: k.given, needs: k.needs, ask: k.ask(k.body.with(w.member, w.value)), want: status(400)})
		}
	}
	out = append(out, Case{ID: "INP-03/provision-parameters-text", Title: "parameters that are a text are refused",
		needs: needs{inCatalog}, ask: toProvision(provision.with("parameters", "x")), want: status(400)})
	for _, member := range []string{"service_id", "plan_id"} {
		out = append(out, Case{ID: "INP-04/" + member, Since: 12, Title: "an empty " + member + " is refused",
			needs: needs{inCatalog}, ask: toProvision(provision.with(member, "")), want: status(400)})
	}
	for _, id := range []struct{ name, escaped string }{
		{"unreserved", "$instance~._-"}, {"space", "$instance%20x"}, {"slash", "$instance%2Fx"}, {"accent", "$instance%C3%A9"},
		{"question", "$instance%3Fx"}, {"percent", "$instance%25x"},
	} {
		w := status(201, 202, 400)
		if id.name == "unreserved" {
			w = made
		}
		out = append(out, Case{ID: "INP-11/" + id.name, Since: 13,
			Title: "an id with special characters is kept apart, or refused",
			needs: needs{anyPlan},
			story: func(s *scene) {
				path := "/v2/service_instances/" + id.escaped
				a, ok := s.send(set(path+async, provision))
				if !ok || !s.checked(a, w) || a.status == 400 {
					return
				}
				if a.status == 202 {
					s.ends(path+"/last_operation", succeeded)
				}
				s.asked(set(path+async, provision), status(200))
				s.nothingAt(instance) // the id without its suffix is a different one
			}})
	}
	return out
}

func oddInputCases() []Case {
	long := strings.Repeat("x", 255-36)
	deep := strings.Repeat("[", 10000) + strings.Repeat("]", 10000)
	odd := func(id, parameters, title string) Case {
		content := raw(`{"service_id":"$service","plan_id":"$plan","organization_guid":"$organization","space_guid":"$space",` +
			`"parameters":` + parameters + `}`)
		return Case{ID: id, Title: title, needs: needs{anyPlan}, ask: toProvision(content), want: status(400, 201, 202)}
	}
	return []Case{
		{ID: "INP-05/plan_id", Since: 12, Title: "an empty plan_id of an update is refused", given: ready,
			ask: toUpdate(update.with("plan_id", "")), want: status(400)},
		{ID: "INP-06/provision", Title: "unknown members of a provision are ignored", needs: needs{anyPlan},
			ask: toProvision(provision.with("x-vendor", object{"y": 1}).with("context.x-vendor", true)), want: made},
		{ID: "INP-06/bind", Title: "unknown members of a bind are ignored", given: ready, needs: needs{bindable},
			ask: toBind(bind.with("x-vendor", 1).with("bind_resource.x-vendor", "y")), want: made},
		{ID: "INP-06/update", Title: "unknown members of an update are ignored", given: ready,
			ask: toUpdate(update.with("x-vendor", object{}).with("previous_values.x-vendor", 1)), want: changed},
		{ID: "INP-06/compared", Title: "unknown members do not make a request another", given: ready,
			story: asIdentical(provision.with("x-vendor", 1))},
		{ID: "INP-07", Title: "null is as good as absent", needs: needs{anyPlan}, story: func(s *scene) {
			content := provision.with("maintenance_info", nil)
			if len(s.plan.parameters) == 0 {
				content = content.with("parameters", nil)
			}
			s.asked(toProvision(content), made)
		}},
		{ID: "INP-08", Title: "a member that stands twice does no harm", needs: needs{anyPlan},
			ask: toProvision(raw(`{"service_id":"$service","service_id":"$service","plan_id":"$plan",
				"organization_guid":"$organization","space_guid":"$space"}`)), want: status(201, 202, 400)},
		{ID: "INP-09/false", Title: "accepts_incomplete=false permits nothing", needs: needs{asyncOnly},
			ask: set(instance+"?accepts_incomplete=false", provision), want: cannotWait},
		{ID: "INP-09/banana", Title: "accepts_incomplete=banana is refused", needs: needs{asyncOnly},
			ask: set(instance+"?accepts_incomplete=banana", provision), want: status(400, 422)},
		{ID: "INP-10", Title: "accepts_incomplete in the body is honoured or ignored", needs: needs{asyncOnly},
			ask: set(instance, provision.with("accepts_incomplete", true)), want: status(202, 422)},
		{ID: "INP-12", Title: "an empty instance id is not served", needs: needs{inCatalog},
			ask: set("/v2/service_instances/", provision), want: status(404, 405, 400)},
		{ID: "INP-13", Title: "an id of 255 characters is accepted", needs: needs{anyPlan},
			ask: set("/v2/service_instances/"+long+"$instance"+async, provision), want: made},
		{ID: "INP-14", Title: "a body of 1 MiB is refused", needs: needs{inCatalog},
			ask: toProvision(provision.with("x", strings.Repeat("a", 1<<20))), want: status(413, 400)},
		odd("INP-15/nesting", `{"x":`+deep+`}`, "parameters that are nested 10000 times do no harm"),
		odd("INP-15/number", `{"x":1e400}`, "a number beyond every float does no harm"),
		odd("INP-15/integer", `{"x":123456789012345678901234567890}`, "an integer of 30 digits does no harm"),
		{ID: "INP-16/post-catalog", Title: "POST of the catalog is refused",
			ask: request{method: "POST", path: catalog, content: object{}}, want: status(405, 404)},
		{ID: "INP-16/post-instance", Title: "POST of an instance is refused", needs: needs{inCatalog},
			ask: request{method: "POST", path: instance, content: provision}, want: status(405, 404)},
		{ID: "INP-16/path", Title: "an unknown path is 404", ask: get("/v2/nothing-here"), want: status(404)},
		{ID: "INP-18", Title: "unknown query parameters are ignored", needs: needs{inCatalog},
			ask: remove(instance + asyncIDs + "&force=true&foo=bar"), want: status(410)},
		{ID: "INP-19", Title: "nothing under /v2 is answered with a redirect", watched: true,
			steps: []step{{get(catalog + "/"), status(404, 200)}, {get("/v2//catalog"), status(404, 200)}}},
		{ID: "INP-20", Title: "the body of a DELETE is ignored", given: ready,
			ask: request{method: "DELETE", path: instance + asyncIDs, content: object{"x": 1}}, want: removed},
	}
}

// asIdentical wants a request for a ready instance to be answered like the identical request.
func asIdentical(content body) func(s *scene) {
	return func(s *scene) {
		a, ok := s.send(toProvision(provision))
		b, again := s.send(toProvision(provision))
		switch {
		case !ok || !again:
		case a.status != b.status:
			s.lacking = fmt.Sprintf("the broker does not answer an identical request alike each time: %d, then %d",
				a.status, b.status)
		default:
			s.asked(toProvision(content), status(a.status))
		}
	}
}

// everyOf checks all objects of one kind in a catalog with look, which describes what it finds wrong.
func everyOf(of string, look func(o object) string) test {
	return func(_ *scene, a response) (string, string) {
		for _, service := range list(a.body["services"]) {
			owners := []object{service}
			if of == "plans" {
				owners = list(service["plans"])
			}
			for _, o := range owners {
				if problem := look(o); problem != "" {
					name := text(o, "name")
					return problem, fmt.Sprintf("in %q of %q: %.200s", name, text(service, "name"), encode(a.secrets.redacted(o)))
				}
			}
		}
		return "", ""
	}
}
