package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const (
	binding2          = instance + "/service_bindings/$binding2"
	binding2Operation = binding2 + "/last_operation"
	// elsewhere is the path of the same binding under another instance.
	elsewhere = "/v2/service_instances/$instance2/service_bindings/$binding"
)

func bindCases() []Case {
	return slices.Concat(bindRequestCases(), bindStateCases(), bindAnswerCases())
}

func bindRequestCases() []Case {
	again := func(id string, title string, content body, needs ...need) Case {
		return Case{ID: id, Title: title, given: bound, needs: needs, ask: toBind(content), want: status(409)}
	}
	key := bind.without("app_guid", "bind_resource")
	return []Case{
		{ID: "BIND-01", Title: "a synchronous bind is answered 201", given: ready, needs: needs{bindSync},
			ask: set(binding, bind), want: status(201).typed("credentials", "object")},
		{ID: "BIND-01/2.9", speaks: 9, Title: "a synchronous bind of version 2.9 is answered 201", given: ready,
			needs: needs{bindSync}, ask: set(binding, bind).as(9), want: status(201).typed("credentials", "object")},
		{ID: "BIND-02", Title: "an identical request is answered 200", given: bound, ask: toBind(bind), want: status(200)},
		{ID: "BIND-02/credentials", Title: "it gives the same credentials", given: bound, ask: toBind(bind),
			want: status(200).that(sameGrant)},
		{ID: "BIND-02/twice", Title: "it does so each time", given: bound, needs: needs{withGrant},
			steps: []step{{toBind(bind), status(200).that(sameGrant)}, {toBind(bind), status(200).that(sameGrant)}}},
		again("BIND-03/parameters", "another request for a binding conflicts: parameters", bind.with(freeParameter, 7), bindFree),
		{ID: "BIND-03/2.9", speaks: 9, Title: "another request of version 2.9 conflicts", given: bound, needs: needs{bindFree},
			ask: toBind(bind.with(freeParameter, 7)).as(9), want: status(409)},
		again("BIND-03/plan", "another request for a binding conflicts: plan", bind.with("plan_id", "$otherplan"), withSibling),
		again("BIND-03/app", "another request for a binding conflicts: application",
			bind.with("app_guid", "$app2").with("bind_resource.app_guid", "$app2")),
		bindTo("BIND-04/service_id", 0, "a bind without service_id is refused", bind.without("service_id"), status(400)),
		bindTo("BIND-04/plan_id", 0, "a bind without plan_id is refused", bind.without("plan_id"), status(400)),
		bindTo("BIND-04/service_id-empty", 12, "a bind with an empty service_id is refused", bind.with("service_id", ""),
			status(400)),
		bindTo("BIND-04/plan_id-empty", 12, "a bind with an empty plan_id is refused", bind.with("plan_id", ""), status(400)),
		bindTo("BIND-05/service", 0, "a bind with an unknown service_id is refused", bind.with("service_id", "$unknown"),
			status(400)),
		bindTo("BIND-05/plan", 0, "a bind with an unknown plan_id is refused", bind.with("plan_id", "$unknown"), status(400)),
		{ID: "BIND-06", Title: "a bind of an unknown instance is refused", needs: needs{saysBindable}, ask: toBind(bind),
			want: status(404, 400, 410, 422)},
		{ID: "BIND-06/404", Title: "a bind of an unknown instance is 404", needs: needs{saysBindable}, ask: toBind(bind),
			want: status(404)},
		bindTo("BIND-07/plan", 0, "a bind in the name of another plan is refused", bind.with("plan_id", "$otherplan"),
			status(400, 422), withSibling),
		bindTo("BIND-07/service", 0, "a bind in the name of another offering is refused",
			bind.with("service_id", "$foreignservice").with("plan_id", "$foreignplan"), status(400, 422), withForeign),
		bindTo("BIND-08/top", 0, "an application at the top level is bound", bind.without("bind_resource"), made),
		bindTo("BIND-08/resource", 0, "an application in bind_resource is bound", bind.without("app_guid"), made),
		bindTo("BIND-09", 0, "two applications that differ are refused, or one is bound", bind.with("app_guid", "$app2"),
			status(400, 201, 202)),
		bindTo("BIND-10", 0, "a plan for applications only refuses a service key", key, refused(requiresApp), bindApps),
		bindTo("BIND-10/empty", 0, "it refuses an empty bind_resource too", key.with("bind_resource", object{}),
			refused(requiresApp), bindApps),
		bindTo("BIND-10/resource", 0, "an application in bind_resource is enough for it", bind.without("app_guid"), made,
			bindApps),
		{ID: "ERR-05", speaks: 9, Title: "RequiresApp comes with the sentence of version 2.9", given: ready,
			needs: needs{bindApps}, ask: toBind(key).as(9), want: refused(requiresApp).has("description", appSentence)},
		bindTo("BIND-11/none", 0, "a service key is made without bind_resource", key, made, bindKeys),
		bindTo("BIND-11/empty", 0, "a service key is made with an empty bind_resource", key.with("bind_resource", object{}), made,
			bindKeys),
		bindTo("BIND-12", 0, "other members of bind_resource are accepted",
			bind.with("bind_resource.space_guid", "$space").with("bind_resource.app_annotations", object{"a": "b"}), made),
	}
}

func bindStateCases() []Case {
	return []Case{
		{ID: "BIND-13", Title: "a plan that is not bindable refuses", given: ready, needs: needs{notBindable}, ask: toBind(bind),
			want: status(400, 422)},
		bindTo("BIND-14", 13, "the context of a bind is accepted", bind.with("context", cloudFoundry), made),
		{ID: "BIND-15", Since: 13, Title: "parameters of a bind that violate the schema are refused", given: ready,
			needs: needs{bindSchema}, story: func(s *scene) {
				s.asked(toBind(bind.with("parameters", s.plan.wrong("service_binding", "create"))), status(400))
			}},
		{ID: "BIND-16", Title: "each binding has credentials of its own", given: bound, needs: needs{withGrant, bindSync},
			story: func(s *scene) {
				a, ok := s.send(set(binding2, bind))
				if ok && s.checked(a, status(201)) && same(a.body["credentials"], s.grant["credentials"]) {
					s.fail("BIND-16", a.request, "other credentials than the first binding's", "the same")
				}
			}},
		{ID: "BIND-16/left", Since: 14, Title: "a binding stays when another is deleted", given: bound,
			needs: needs{bindSync, bindFetchable}, story: func(s *scene) {
				if !s.asked(set(binding2, bind), status(201)) {
					return
				}
				if s.did(remove(binding2+asyncIDs), removed, binding2Operation) {
					s.asked(get(binding), status(200).that(sameGrant))
				}
			}},
		{ID: "BIND-17/provisioning", Since: 14, Title: "a bind while the instance is being provisioned is refused",
			given: provisioning, needs: needs{bindable}, ask: toBind(bind), want: busy},
		{ID: "BIND-17/updating", Since: 14, Title: "a bind while the instance is being updated is refused", given: updating,
			needs: needs{bindable}, ask: toBind(bind), want: busy},
		{ID: "BIND-17/deleting", Since: 14, Title: "a bind while the instance is being deleted is refused", given: deleting,
			needs: needs{bindable}, ask: toBind(bind), want: busy},
		{ID: "BIND-17/failed", Title: "a bind of an instance whose provision failed is refused", given: provisionFailed,
			ask: toBind(bind), want: status(422, 404, 400)},
		{ID: "BIND-19", Title: "the id of a binding does not serve another instance", given: bound, needs: needs{withGrant},
			story: func(s *scene) {
				path := "/v2/service_instances/$instance2"
				if !s.did(set(path+async, provision), made, path+"/last_operation") {
					return
				}
				b, ok := s.send(set(elsewhere+async, bind))
				if !ok || !s.checked(b, status(409, 201, 202)) {
					return
				}
				if same(b.body["credentials"], s.grant["credentials"]) && b.body["credentials"] != nil {
					s.fail("BIND-19", b.request, "not the credentials of another instance", "them")
				}
				if b.status == http.StatusAccepted {
					s.settle(elsewhere + "/last_operation")
				}
				s.asked(toBind(bind), status(200).that(sameGrant))
			}},
		{ID: "BIND-20", speaks: 9, Title: "a bind of a client before 2.14 is not answered 202", given: ready,
			needs: needs{bindable}, ask: toBind(bind).as(9), want: status(201, 422)},
		{ID: "BIND-20/async-only", speaks: 13, Title: "a plan that binds only asynchronously refuses clients before 2.14",
			given: ready, needs: needs{bindAsyncOnly}, ask: toBind(bind).as(13), want: cannotWait},
		{ID: "BIND-21", Since: 14, Title: "an asynchronous bind is answered 202, without what it gives", given: ready,
			needs: needs{bindAsync}, watched: true, story: func(s *scene) {
				if s.asked(toBind(bind), status(202).lacks(grantMembers...)) {
					s.ends(bindingOperation, succeeded)
				}
			}},
		{ID: "BIND-22", Since: 14, Title: "a plan that binds only asynchronously refuses a client that cannot wait", given: ready,
			needs: needs{bindAsyncOnly}, ask: set(binding, bind), want: cannotWait},
		{ID: "BIND-23", Since: 14, Title: "an identical bind while it runs names the same operation", given: bindRunning,
			ask: toBind(bind), want: status(202).sameOperation().lacks("credentials")},
		{ID: "BIND-23/other", Since: 15, Title: "another bind while one runs conflicts: application", given: bindRunning,
			ask: toBind(bind.with("app_guid", "$app2").with("bind_resource.app_guid", "$app2")), want: status(409)},
		{ID: "BIND-23/parameters", Since: 15, Title: "another bind while one runs conflicts: parameters", given: bindRunning,
			needs: needs{bindFree}, ask: toBind(bind.with(freeParameter, 7)), want: status(409)},
		{ID: "BIND-24", Title: "two binds at once do not disturb each other", given: ready, needs: needs{bindSync},
			story: func(s *scene) {
				s.all(4, func(n int) {
					s.asked(set(fmt.Sprintf("%s/service_bindings/$parallel%d", instance, n), bind), status(201, 422))
				})
			}},
		{ID: "BIND-25", Since: 14, Title: "the credentials of an asynchronous bind can be fetched", given: bound,
			needs: needs{bindAsync, withGrant}, story: granted(holds("credentials", func(a response) bool {
				return a.body["credentials"] != nil
			}))},
	}
}

func bindAnswerCases() []Case {
	return []Case{
		{ID: "BIND-26", Since: 15, Title: "endpoints are well formed", given: bound, story: granted(endpoints)},
		{ID: "BIND-27", Since: 16, Title: "the times in a binding's metadata are well formed", given: bound,
			story: granted(expiry)},
		{ID: "BIND-30", Title: "a binding gives nothing that its offering did not require permission for", given: bound,
			story: granted(unasked)},
		bindTo("BIND-31", 0, "a log drain service names its drain", bind, status(201).that(drained), drains, bindSync),
		bindTo("BIND-31/scheme", 0, "the URL of the drain has a scheme that platforms speak", bind, status(201).that(drain),
			drains, bindSync),
		bindTo("BIND-32", 0, "a route service names an https URL, or none",
			bind.without("app_guid", "bind_resource").with("bind_resource", object{"route": "app.example.com"}),
			status(201).that(holds("a route_service_url that begins with https://", func(a response) bool {
				u := text(a.body, "route_service_url")
				return u == "" || strings.HasPrefix(u, "https://")
			})), forwards, bindSync),
		bindTo("BIND-33", 0, "a route is refused by an offering that forwards none, or ignored",
			bind.without("app_guid").with("bind_resource", object{"route": "app.example.com"}), status(400, 201, 202, 422),
			forwardsNone),
		bindTo("BIND-34", 10, "volume mounts are in the form of version 2.10", bind, status(201).that(volumes), mounts, bindSync),
		{ID: "BIND-35", speaks: 9, Title: "volume mounts for 2.9 are in the experimental form", given: ready,
			needs: needs{mounts, bindSync}, ask: set(binding, bind).as(9), want: status(201).that(experimental)},
		{ID: "BIND-35/again", speaks: 9, Title: "also when they are asked for again", given: bound,
			needs: needs{mounts, bindSync}, ask: set(binding, bind).as(9), want: status(200).that(experimental)},
		{ID: "BIND-38", Since: 14, Title: "a bind that is refused makes nothing", given: ready,
			needs: needs{bindable, bindFetchable}, story: func(s *scene) {
				// BIND-04 is about the refusal itself.
				if a, ok := s.send(toBind(bind.without("plan_id"))); ok && !s.taken(a, "a bind without plan_id") {
					_ = s.asked(get(binding), status(404)) && s.nothingAt(binding)
				}
			}},
	}
}

func bindTo(id string, since int, title string, content body, w want, needs ...need) Case {
	return Case{ID: id, Since: since, Title: title, given: ready, needs: append([]need{bindable}, needs...),
		ask: toBind(content), want: w}
}

func fetchBindingCases() []Case {
	fetch := func(id string, title string, g given, w want, needs ...need) Case {
		return Case{ID: id, Since: 14, Title: title, given: g, needs: append([]need{bindFetchable}, needs...),
			ask: get(binding), want: w}
	}
	return []Case{
		fetch("GETB-01", "a binding can be fetched", bound,
			status(200).typed("credentials", "object").typed("parameters", "object").that(endpoints).that(expiry)),
		fetch("GETB-02/unknown", "an unknown binding is 404", ready, status(404), bindable),
		fetch("GETB-02/instance", "a binding of an unknown instance is 404", given{}, status(404), saysBindable),
		fetch("GETB-02/running", "a binding that is being made is 404", bindRunning, status(404)),
		fetch("GETB-02/unbound", "a binding that was deleted is 404", unbound, status(404)),
		{ID: "GETB-02/elsewhere", Since: 14, Title: "a binding is not found under another instance", given: bound,
			needs: needs{bindFetchable}, ask: get(elsewhere), want: status(404)},
		{ID: "GETB-03", Since: 14, Title: "a binding that is being deleted is not shown", given: unbinding,
			needs: needs{bindFetchable}, ask: get(binding), want: status(404, 422)},
		fetch("GETB-04", "a fetch gives what the bind gave", bound, status(200).that(sameGrant), withGrant),
		{ID: "GETB-04/hints", Since: 16, Title: "the hints of a fetch are accepted", given: bound, needs: needs{bindFetchable},
			ask: get(binding + ids), want: status(200)},
		{ID: "LOB-01", Since: 14, Title: "a running bind is in progress", given: bindRunning,
			ask: get(bindingOperation + ofOperation), want: running},
		{ID: "LOB-01/unbind", Since: 14, Title: "a running unbind is in progress", given: unbinding,
			ask: get(bindingOperation + ofOperation), want: running},
		{ID: "LOB-02", Since: 16, Title: "the last operation of an unknown binding is 404", given: ready, needs: needs{bindAsync},
			ask: get(bindingOperation), want: status(404)},
		{ID: "LOB-02/elsewhere", Since: 16, Title: "a binding's last operation is not found under another instance", given: bound,
			needs: needs{bindAsync}, ask: get(elsewhere + "/last_operation"), want: status(404)},
		{ID: "LOB-03", Since: 14, Title: "a binding can be fetched as soon as it has succeeded", given: bound,
			needs: needs{bindAsync, bindFetchable}, ask: get(binding), want: status(200)},
		{ID: "LOB-04", Since: 14, Title: "polling an asynchronous unbind ends", given: bound, needs: needs{bindAsync},
			story: func(s *scene) {
				a, ok := s.send(toUnbind)
				if ok && s.checked(a, status(202, 200)) && a.status == http.StatusAccepted {
					s.ends(bindingOperation, succeeded, gone)
				}
			}},
		{ID: "LOB-05", Since: 14, Title: "bind and unbind are different operations", given: bound, needs: needs{bindAsync},
			story: func(s *scene) {
				first, ok := s.known("operation")
				a, sent := s.send(toUnbind)
				if ok && sent && s.checked(a, status(202, 200)) && a.body["operation"] == first {
					s.fail("LOB-05", a.request, "an operation of its own", "the bind's")
				}
			}},
		{ID: "LOB-06", Since: 14, Title: "a binding that was made synchronously has a last operation that succeeded",
			given: bound, needs: needs{bindSync}, ask: get(bindingOperation), want: status(200).has("state", succeeded)},
		{ID: "LOB-07", Since: 14, Title: "no poll tells credentials", watched: true, given: bound, ask: get(bindingOperation),
			want: anything},
	}
}
