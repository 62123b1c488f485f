package conformance

import (
	"net/http"
	"slices"
	"strings"
)

// freeParameter is a parameter that a plan takes which takes any.
const freeParameter = "parameters." + probe

func provisionCases() []Case {
	return slices.Concat(repeatedProvisionCases(), provisionInputCases(), provisionAnswerCases())
}

func repeatedProvisionCases() []Case {
	conflict := func(id, title string, content body, needs ...need) Case {
		return Case{ID: id, Title: title, given: ready, needs: needs, steps: []step{{set(instance+async, content), status(409)}}}
	}
	return []Case{
		{ID: "PROV-01", Title: "a synchronous provision is answered 201", needs: []need{synchronous},
			steps: []step{{set(instance, provisionBody), status(201)}}},
		{ID: "PROV-01/2.9", speaks: 9, Title: "a synchronous provision of version 2.9 is answered 201", needs: []need{synchronous},
			steps: []step{{set(instance, provisionBody).as(9), status(201)}}},
		{ID: "PROV-02", Title: "an asynchronous provision is answered 202, and succeeds", needs: []need{asynchronous, anyPlan},
			story: func(s *scene) {
				if s.asked(anew(provisionBody), status(202)) {
					s.ends(instanceOperation, succeeded)
				}
			}},
		{ID: "PROV-02/operation", Title: "a 202 names its operation", needs: []need{asynchronous},
			steps: []step{{anew(provisionBody), status(202).has("operation", present)}}},
		{ID: "PROV-03", Title: "a plan that is only asynchronous is refused to a client that cannot wait", needs: []need{asyncOnly},
			story: func(s *scene) {
				if s.asked(set(instance, provisionBody), refused(asyncRequired)) {
					s.nothingAt(instance)
				}
			}},
		{ID: "PROV-03/2.9", speaks: 9, Title: "the same for a client of version 2.9", needs: []need{asyncOnly},
			steps: []step{{set(instance, provisionBody).as(9), refused(asyncRequired)}}},
		{ID: "PROV-04", Title: "a plan that can be asynchronous is done synchronously for a client that cannot wait",
			needs: []need{asynchronous, synchronous},
			steps: []step{{set(instance, provisionBody), status(201)}}},
		{ID: "PROV-05", Title: "a synchronous plan is provisioned also for a client that can wait", needs: []need{synchronous, anyPlan},
			steps: []step{{anew(provisionBody), made}}},
		{ID: "PROV-06", Title: "no 202 without permission", watched: true, needs: []need{anyPlan},
			steps: []step{{set(instance, provisionBody), anything}, {set(instance, provisionBody), anything}, {remove(instance + ids), anything}}},
		{ID: "PROV-07", Title: "an identical request for a ready instance is answered 200", given: ready,
			steps: []step{{set(instance+async, provisionBody), status(200)}}},
		{ID: "PROV-07/sync", Title: "an identical request without permission is answered 200", given: ready, needs: []need{synchronous},
			steps: []step{{set(instance, provisionBody), status(200)}}},
		{ID: "PROV-07/async-only", Title: "also by a plan that is only asynchronous, or it is refused to a client that cannot wait",
			given: ready, needs: []need{asyncOnly},
			steps: []step{{set(instance, provisionBody), status(200, 422)}}},
		{ID: "PROV-07/2.9", speaks: 9, Title: "an identical request of version 2.9 is answered 200, or conflicts", given: ready,
			steps: []step{{set(instance+async, provisionBody).as(9), status(200, 409)}}},
		conflict("PROV-08/parameters", "another request for a ready instance conflicts: parameters", provisionBody.with(freeParameter, 7), free),
		conflict("PROV-08/plan", "another request for a ready instance conflicts: plan", provisionBody.with("plan_id", "$otherplan"),
			withSibling),
		conflict("PROV-08/organization", "another request for a ready instance conflicts: organization",
			provisionBody.with("organization_guid", "$organization2").with("context.organization_guid", "$organization2")),
		conflict("PROV-08/space", "another request for a ready instance conflicts: space",
			provisionBody.with("space_guid", "$space2").with("context.space_guid", "$space2")),
		{ID: "PROV-08/2.9", speaks: 9, Title: "another request of version 2.9 conflicts", given: ready, needs: []need{free},
			steps: []step{{set(instance+async, provisionBody.with(freeParameter, 7)).as(9), status(409)}}},
		{ID: "PROV-08/dropped", Title: "a request without the parameters conflicts", needs: []need{anyPlan, free}, story: func(s *scene) {
			a, ok := s.send(anew(provisionBody.with(freeParameter, 7)))
			if ok && s.checked(a, made) && s.done(a, instanceOperation) {
				s.asked(anew(provisionBody), status(409))
			}
		}},
		{ID: "PROV-09/numbers", Title: "numbers are compared by value, and members in any order", needs: []need{anyPlan, free},
			story: func(s *scene) {
				a, ok := s.send(anew(provisionBody.with(freeParameter, object{"a": 1, "b": "x"})))
				if ok && s.checked(a, made) && s.done(a, instanceOperation) {
					s.asked(anew(raw(`{"space_guid":"$space", "parameters":{"`+probe+
						`":{"b":"x","a":1.0}}, "organization_guid":"$organization","plan_id":"$plan","service_id":"$service",
					"context":{"platform":"cloudfoundry","space_guid":"$space","organization_guid":"$organization"}}`)), status(200))
				}
			}},
		{ID: "PROV-10", Since: 12, Title: "an identical request while provisioning is answered 202", given: provisioning,
			steps: []step{{anew(provisionBody), status(202)}}},
		{ID: "PROV-10/operation", Since: 14, Title: "it names the same operation", given: provisioning,
			steps: []step{{anew(provisionBody), status(202).sameOperation()}}},
		{ID: "PROV-10/2.9", speaks: 9, Title: "so it is for a client of version 2.9", given: provisioning,
			steps: []step{{anew(provisionBody).as(9), status(202).sameOperation()}}},
		{ID: "PROV-11/parameters", Since: 15, Title: "another request while provisioning conflicts: parameters", given: provisioning,
			needs: []need{free}, steps: []step{{anew(provisionBody.with(freeParameter, 7)), status(409)}}},
		{ID: "PROV-11/space", Since: 15, Title: "another request while provisioning conflicts: space", given: provisioning,
			steps: []step{{anew(provisionBody.with("space_guid", "$space2").with("context.space_guid", "$space2")), status(409)}}},
		{ID: "PROV-11/plan", Since: 15, Title: "another request while provisioning conflicts: plan", given: provisioning,
			needs: []need{withSibling},
			steps: []step{{anew(provisionBody.with("plan_id", "$otherplan")), status(409)}}},
		{ID: "PROV-12", Title: "an identical request while provisioning is refused to a client that cannot wait", given: provisioning,
			needs: []need{asyncOnly},
			steps: []step{{set(instance, provisionBody), refused(asyncRequired)}}},
	}
}

func provisionInputCases() []Case {
	refusal := func(id string, since int, title string, content body, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, needs: append(needs, inCatalog), steps: []step{{anew(content), status(400)}}}
	}
	placed := members(object{"service_id": "$service", "plan_id": "$plan"})
	old := func(id, title string, content body, w want, n need) Case {
		return Case{ID: id, Title: title, needs: []need{n}, speaks: 9, steps: []step{{anew(content).as(9), w}}}
	}
	return []Case{
		refusal("PROV-13/service_id", 0, "a provision without service_id is refused", provisionBody.without("service_id")),
		refusal("PROV-13/plan_id", 0, "a provision without plan_id is refused", provisionBody.without("plan_id")),
		{ID: "PROV-13/2.9", speaks: 9, Title: "a provision of version 2.9 without service_id is refused", needs: []need{inCatalog},
			steps: []step{{anew(provisionBody.without("service_id")).as(9), status(400)}}},
		old("PROV-13/2.9-plan", "a provision of version 2.9 without plan_id is refused", provisionBody.without("plan_id"), status(400),
			inCatalog),
		refusal("PROV-14/service", 0, "an unknown service_id is refused", provisionBody.with("service_id", "$unknown")),
		refusal("PROV-14/plan", 0, "an unknown plan_id is refused", provisionBody.with("plan_id", "$unknown")),
		refusal("PROV-14/foreign", 0, "a plan of another offering is refused", provisionBody.with("plan_id", "$foreignplan"), withForeign),
		refusal("PROV-14/service-as-plan", 0, "the offering's id is no plan's", provisionBody.with("plan_id", "$service")),
		refusal("PROV-15/organization", 11, "a provision without organization_guid is refused", provisionBody.without("organization_guid")),
		refusal("PROV-15/space", 11, "a provision without space_guid is refused", provisionBody.without("space_guid")),
		refusal("PROV-15/organization-empty", 12, "an empty organization_guid is refused", provisionBody.with("organization_guid", "")),
		refusal("PROV-15/space-empty", 12, "an empty space_guid is refused", provisionBody.with("space_guid", "")),
		old("PROV-16/context", "version 2.9: a context is enough", provisionBody.without("organization_guid", "space_guid"), made, anyPlan),
		old("PROV-16/guids", "version 2.9: the guids are enough", provisionBody.without("context"), made, anyPlan),
		old("PROV-16/neither", "version 2.9: neither is refused", placed, status(400), inCatalog),
		{ID: "PROV-17/absent", Since: 12, Title: "a context is optional", needs: []need{anyPlan},
			steps: []step{{anew(provisionBody.without("context")), made}}},
		{ID: "PROV-17/kubernetes", Since: 12, Title: "a context of Kubernetes is accepted", needs: []need{anyPlan},
			steps: []step{{anew(provisionBody.with("context",
				object{"platform": "kubernetes", "namespace": "$space", "clusterid": "$organization", "instance_name": "db"})), made}}},
		{ID: "PROV-17/full", Since: 12, Title: "a full context of Cloud Foundry is accepted", needs: []need{anyPlan},
			steps: []step{{anew(provisionBody.with("context.organization_name", "o").with("context.space_name", "s").with("context.instance_name",
				"db").
				with("context.organization_annotations", object{"a.example.com/b": "c"}).with("context.space_annotations", object{})), made}}},
		{ID: "PROV-18", Since: 13, Title: "parameters that violate the schema are refused at once also where the plan is asynchronous",
			needs: []need{asynchronous, createSchema}, story: func(s *scene) {
				s.asked(anew(provisionBody.with("parameters", s.plan.wrong("service_instance", "create"))), status(400))
			}},
		{ID: "PROV-19", Since: 13, Title: "parameters that violate the schema are refused", needs: []need{createSchema}, story: func(s *scene) {
			if s.asked(anew(provisionBody.with("parameters", s.plan.wrong("service_instance", "create"))), status(400)) {
				s.nothingAt(instance)
			}
		}},
	}
}

func provisionAnswerCases() []Case {
	return []Case{
		{ID: "PROV-24", Since: 12, Title: "a dashboard is named from the first answer on", needs: []need{anyPlan}, story: func(s *scene) {
			first, ok := s.send(anew(provisionBody))
			if !ok || !s.checked(first, made) || !s.done(first, instanceOperation) {
				return
			}
			again, ok := s.send(anew(provisionBody))
			if ok && again.status == http.StatusOK && first.body["dashboard_url"] == nil && again.body["dashboard_url"] != nil {
				s.fail("PROV-24", again.request, "dashboard_url already in the first answer", again.String())
			}
		}},
		{ID: "PROV-25", Title: "operations are texts of 1 to 10000 characters", watched: true, needs: []need{asynchronous},
			steps: []step{{anew(provisionBody), anything}}},
		{ID: "PROV-25/only", Title: "an operation stands with a 202 alone", watched: true, needs: []need{inCatalog}, story: tour},
		{ID: "PROV-25/apart", Title: "each operation has a token of its own", needs: []need{asynchronous}, story: func(s *scene) {
			one, ok := s.send(anew(provisionBody))
			two, again := s.send(set("/v2/service_instances/$instance2"+async, provisionBody))
			if ok && again && one.body["operation"] != nil && same(one.body["operation"], two.body["operation"]) {
				s.fail("PROV-25", two.request, "an operation of its own", "that of another instance")
			}
		}},
		{ID: "PROV-26", Since: 16, Title: "the metadata of an instance are objects", needs: []need{anyPlan},
			steps: []step{{anew(provisionBody),
				made.typed("metadata", "object").typed("metadata.labels", "object").typed("metadata.attributes", "object")}}},
		{ID: "PROV-27", Title: "the id of an instance is taken as it is, in upper case and in lower", given: ready, story: func(s *scene) {
			upper := "/v2/service_instances/" + strings.ToUpper(s.value("instance"))
			s.asked(remove(upper+asyncIDs), status(410))
			s.asked(set(instance+async, provisionBody), status(200))
		}},
		{ID: "PROV-28", Title: "the id of a deleted instance can be used again", given: deleted,
			steps: []step{{anew(provisionBody), status(201, 202, 400, 409, 422)}}},
		{ID: "PROV-29", Since: 14, Title: "a provision while the instance is being deleted is refused", given: deleting,
			steps: []step{{anew(provisionBody), refused(concurrencyError)}}},
		{ID: "PROV-30", Title: "another request after a failed provision conflicts", given: provisionFailed,
			steps: []step{{anew(provisionBody.with("space_guid", "$space2").with("context.space_guid", "$space2")), status(409)}}},
		{ID: "PROV-30/again", Title: "an identical request after a failed provision begins again, or is told of the failure",
			given: provisionFailed,
			steps: []step{{anew(provisionBody), made}}},
		{ID: "PROV-32", Title: "every request is answered within a minute", watched: true, needs: []need{inCatalog}, story: tour},
		{ID: "PROV-35", Title: "an instance can be bound as soon as it was answered 201", given: ready, needs: []need{synchronous, bindSync},
			steps: []step{{set(binding, bindBody), status(201)}}},
	}
}

func fetchInstanceCases() []Case {
	fetch := func(id string, since int, title string, g given, w want, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, given: g, needs: append([]need{fetchable}, needs...), steps: []step{{get(instance), w}}}
	}
	shown := status(200).says("service_id", "$service").says("plan_id", "$plan").typed("parameters", "object").typed("dashboard_url",
		"string").typed("metadata", "object").typed("maintenance_info", "object")
	return []Case{
		fetch("GETI-01", 14, "a ready instance can be fetched", ready, shown),
		fetch("GETI-01/ids", 14, "an instance shows its offering and its plan", ready,
			status(200).has("service_id", "$service").has("plan_id", "$plan")),
		fetch("GETI-02", 14, "an unknown instance is 404", given{}, status(404)),
		fetch("GETI-03", 14, "an instance that is being provisioned is 404", provisioning, status(404)),
		fetch("GETI-04", 14, "an instance that is being updated cannot be fetched now", updating, refused(concurrencyError)),
		{ID: "GETI-05", Since: 14, Title: "an instance that is being deleted cannot be fetched", given: deleting, needs: []need{fetchable},
			steps: []step{{get(instance), status(422, 404)}}},
		fetch("GETI-06", 14, "a deleted instance is 404", deleted, status(404)),
		{ID: "GETI-07", Since: 14, Title: "an instance whose provision failed is 404", given: provisionFailed, needs: []need{fetchable},
			steps: []step{{get(instance), status(404)}}},
		{ID: "GETI-08", Since: 14, Title: "an instance can be fetched as soon as its provision has succeeded", given: readyLater,
			needs: []need{fetchable}, steps: []step{{get(instance), shown}}},
		{ID: "GETI-09", Since: 16, Title: "the hints of a fetch are accepted", given: ready, needs: []need{fetchable},
			steps: []step{{get(instance + ids), shown}}},
		{ID: "GETI-10", Since: 14, Title: "parameters that are shown are those that were given", needs: []need{fetchable, free, anyPlan},
			story: showing(object{"a": 12, "b": []any{true, "x"}})},
		{ID: "GETI-10/integer", Since: 14, Title: "also integers above 2^53, and nulls", needs: []need{fetchable, free, anyPlan},
			story: showing(object{"a": 12345678901234567, "b": []any{true, nil}})},
		{ID: "GETI-11", Since: 14, Title: "an instance shows the plan that it was changed to", needs: []need{fetchable, plansChange},
			given: ready, story: func(s *scene) {
				if s.toOther() {
					s.asked(get(instance), status(200).says("plan_id", "$otherplan"))
				}
			}},
		{ID: "GETI-12", Since: 14, speaks: 9, Title: "an instance can be fetched by older clients", given: ready, needs: []need{fetchable},
			steps: []step{{get(instance).as(9), status(200, 412, 404)}}},
	}
}

// toOther changes the plan of the instance. It is false if that is refused,
// which a broker may, or fails.
func (s *scene) toOther() bool {
	a, ok := s.send(patch(instance+async, members(object{"service_id": "$service", "plan_id": "$otherplan"})))
	return ok && !s.refused(a, "take this change of plan", 400, 422) && s.checked(a, changed) && s.done(a, instanceOperation)
}

// showing wants parameters to be shown as they were given, or not at all.
func showing(parameter object) func(s *scene) {
	return func(s *scene) {
		a, ok := s.send(anew(provisionBody.with(freeParameter, parameter)))
		if !ok || !s.checked(a, made) || !s.done(a, instanceOperation) {
			return
		}
		if b, ok := s.send(get(instance)); ok && s.checked(b, status(200)) {
			if v, ok := find(b.body, freeParameter); ok && !same(v, normal(parameter)) {
				s.fail("GETI-10", b.request, "the parameters that were given, or none", b.String())
			}
		}
	}
}

func updateCases() []Case {
	return slices.Concat(updateBodyCases(), updateStateCases())
}

func updateBodyCases() []Case {
	only := members(object{"service_id": "$service"})
	toOther := members(object{"service_id": "$service", "plan_id": "$otherplan"})
	return []Case{
		{ID: "UPD-01", Title: "a synchronous update is answered 200", given: ready, needs: []need{changedSync, changeable},
			steps: []step{{patch(instance, change(0)), status(200)}}},
		{ID: "UPD-02", Title: "an asynchronous update is answered 202, and succeeds", given: ready, needs: []need{changedAsync, changeable},
			story: func(s *scene) {
				if s.asked(patch(instance+async, change(0)), status(202)) {
					s.ends(instanceOperation, succeeded)
				}
			}},
		{ID: "UPD-03", Title: "an update of a plan that is only asynchronous is refused to a client that cannot wait", given: ready,
			needs: []need{asyncOnly, changedAsync},
			steps: []step{{patch(instance, change(0)), refused(asyncRequired)}}},
		{ID: "UPD-03/2.9", speaks: 9, Title: "the same for a client of version 2.9", given: ready, needs: []need{asyncOnly, changedAsync},
			steps: []step{{patch(instance, change(0)).as(9), refused(asyncRequired)}}},
		{ID: "UPD-03/plan", Title: "a change to a plan that is only asynchronous is refused to a client that cannot wait", given: ready,
			needs: []need{toAsyncOnly},
			steps: []step{{patch(instance, members(object{"service_id": "$service", "plan_id": "$laterplan"})), refused(asyncRequired)}}},
		refusedUpdate("UPD-04/missing", 0, "an update without service_id is refused", members(object{"parameters": object{}}), status(400)),
		refusedUpdate("UPD-04/empty", 12, "an update with an empty service_id is refused", members(object{"service_id": ""}), status(400)),
		refusedUpdate("UPD-04/unknown", 0, "an update with an unknown service_id is refused", members(object{"service_id": "$unknown"}),
			status(400)),
		refusedUpdate("UPD-05", 0, "an update to another offering is refused", members(object{"service_id": "$foreignservice"}), status(400, 422),
			withForeign),
		refusedUpdate("UPD-06/unknown", 0, "an update to an unknown plan is refused",
			members(object{"service_id": "$service", "plan_id": "$unknown"}), status(400, 422)),
		refusedUpdate("UPD-06/foreign", 0, "an update to a plan of another offering is refused",
			members(object{"service_id": "$service", "plan_id": "$foreignplan"}), status(400, 422), withForeign),
		{ID: "UPD-07", Since: 14, Title: "an update without plan_id leaves the plan as it is", given: updated,
			needs: []need{fetchable, keepsPlan}, steps: []step{{get(instance), status(200).says("plan_id", "$plan")}}},
		{ID: "UPD-08", Since: 14, Title: "an update without parameters leaves them as they are",
			needs: []need{anyPlan, updatable, free, fetchable}, story: func(s *scene) {
				a, ok := s.send(anew(provisionBody.with(freeParameter, 7)))
				if !ok || !s.checked(a, made) || !s.done(a, instanceOperation) {
					return
				}
				before, _ := s.send(get(instance))
				if a, ok = s.send(patch(instance+async, only)); ok && s.checked(a, changed) && s.done(a, instanceOperation) {
					if after, ok := s.send(get(instance)); ok && !same(before.body["parameters"], after.body["parameters"]) {
						s.fail("UPD-08", a.request, "the parameters to stay", after.String())
					}
				}
			}},
		{ID: "UPD-09", Title: "a plan that cannot be changed for another is refused it", given: ready, needs: []need{notUpdateable},
			steps: []step{{patch(instance+async, toOther), status(422, 400)}}},
		{ID: "UPD-10/parameters", Since: 14, Title: "it takes other parameters all the same", given: ready,
			needs: []need{notUpdateable, changeable, free},
			steps: []step{{patch(instance+async, change(0)), changed}}},
		{ID: "UPD-10/same-plan", Since: 14, Title: "it takes the plan that it has", given: ready, needs: []need{notUpdateable},
			steps: []step{{patch(instance+async, members(object{"service_id": "$service", "plan_id": "$plan"})), changed}}},
		{ID: "UPD-12", Since: 13, Title: "parameters of an update that violate the schema are refused", given: ready,
			needs: []need{updatable, updateSchema}, story: func(s *scene) {
				s.asked(patch(instance+async, only.with("parameters", s.plan.wrong("service_instance", "update"))), status(400))
			}},
		{ID: "UPD-13/nothing", Since: 15, Title: "an update of nothing is answered 200", given: ready,
			steps: []step{{patch(instance+async, only), changed}}},
		{ID: "UPD-13/same-plan", Since: 15, Title: "an update to the plan that the instance has succeeds", given: ready,
			steps: []step{{patch(instance+async, members(object{"service_id": "$service", "plan_id": "$plan"})), changed}}},
	}
}

func updateStateCases() []Case {
	only := members(object{"service_id": "$service"})
	toOther := members(object{"service_id": "$service", "plan_id": "$otherplan"})
	previous := func(o object) body { return change(0).with("previous_values", o) }
	return []Case{
		{ID: "UPD-14", Since: 12, Title: "the context of an update is accepted", given: ready, needs: []need{changeable},
			steps: []step{{patch(instance+async,
				change(0).with("context",
					object{"platform": "cloudfoundry", "organization_guid": "$organization", "space_guid": "$space", "instance_name": "new"})), changed}}},
		{ID: "UPD-15", Since: 15, Title: "an update of the context alone is done, or refused", given: ready,
			steps: []step{{patch(instance+async, only.with("context", object{"platform": "cloudfoundry", "instance_name": "new"})),
				status(200, 202, 422)}}},
		{ID: "UPD-15/allowed", Since: 15, Title: "an update of the context alone is done where the offering allows it", given: ready,
			needs: []need{contextUpdates},
			steps: []step{{patch(instance, only.with("context", object{"platform": "cloudfoundry", "instance_name": "new"})), status(200)}}},
		{ID: "UPD-18/ids", Title: "previous_values are accepted", given: ready, needs: []need{changeable},
			steps: []step{{patch(instance+async,
				previous(object{"plan_id": "$plan", "service_id": "$service", "organization_id": "$organization", "space_id": "$space"})), changed}}},
		{ID: "UPD-18/maintenance", Since: 15, Title: "previous_values with maintenance_info are accepted", given: ready,
			needs: []need{changeable},
			steps: []step{{patch(instance+async, previous(object{"plan_id": "$plan", "maintenance_info": object{"version": "0.0.1"}})), changed}}},
		{ID: "UPD-18/2.9", speaks: 9, Title: "previous_values of version 2.9, which have a context, are accepted", given: ready,
			needs: []need{changeable}, steps: []step{{patch(instance+async,
				previous(object{"plan_id": "$plan", "service_id": "$service", "context": object{"some_field": "x"}})).as(9), changed}}},
		{ID: "UPD-18/stale", Title: "previous_values that are not true do no harm", given: ready,
			steps: []step{{patch(instance+async, previous(object{"plan_id": "$unknown", "organization_id": "elsewhere"})), status(200, 202, 400)}}},
		{ID: "UPD-19", Title: "an update of an unknown instance is refused", needs: []need{anyPlan},
			steps: []step{{patch(instance+async, only), status(404, 410, 400, 422)}}},
		{ID: "UPD-19/404", Title: "an update of an unknown instance is 404", needs: []need{anyPlan},
			steps: []step{{patch(instance+async, only), status(404)}}},
		{ID: "UPD-19/deleted", Title: "an update of a deleted instance is refused", given: deleted,
			steps: []step{{patch(instance+async, only), status(404, 410, 400, 422)}}},
		{ID: "UPD-20/provisioning", Since: 14, Title: "an update while provisioning is refused", given: provisioning, needs: []need{changeable},
			steps: []step{{patch(instance+async, change(0)), refused(concurrencyError)}}},
		{ID: "UPD-20/deleting", Since: 14, Title: "an update while deleting is refused", given: deleting, needs: []need{changeable},
			steps: []step{{patch(instance+async, change(0)), refused(concurrencyError)}}},
		{ID: "UPD-21", Since: 14, Title: "an identical update while it runs names the same operation", given: updating,
			steps: []step{{patch(instance+async, change(0)), status(202).sameOperation()}}},
		{ID: "UPD-22", Since: 14, Title: "another update while one runs is refused", given: updating,
			steps: []step{{patch(instance+async, change(1)), refused(concurrencyError)}}},
		{ID: "UPD-23", Since: 14, Title: "a failed update leaves the instance as it was", needs: []need{changeFailing, fetchable}, given: ready,
			story: func(s *scene) {
				before, ok := s.send(get(instance))
				if !ok || !s.asked(patch(instance+async, change(0)), status(202)) || !s.ends(instanceOperation, failed) {
					return
				}
				if after, ok := s.send(get(instance)); ok && !same(before.body, after.body) {
					s.fail("UPD-23", after.request, "what it was before the update", after.String())
				}
			}},
		{ID: "UPD-25", Title: "an instance whose update failed can be updated again", given: updateFailed,
			steps: []step{{patch(instance+async, change(0)), changed}}},
		{ID: "UPD-27", Since: 14, Title: "the dashboard in the answer to an update is a text", given: ready, needs: []need{changeable},
			steps: []step{{patch(instance+async, change(0)), changed.that(func(_ *scene, a answer) (string, string) {
				if v, ok := a.body["dashboard_url"]; ok && v != nil && kind(v) != "string" {
					return "dashboard_url to be a text", a.String()
				}
				return "", ""
			})}}},
		{ID: "UPD-28", Title: "a plan can be changed for another", given: ready, needs: []need{plansChange}, story: func(s *scene) {
			a, ok := s.send(patch(instance+async, toOther))
			if ok && !s.refused(a, "take this change of plan", 400, 422) && s.checked(a, changed) && a.status == http.StatusAccepted {
				s.ends(instanceOperation, succeeded)
			}
		}},
	}
}

func refusedUpdate(id string, since int, title string, content body, w want, needs ...need) Case {
	return Case{ID: id, Since: since, Title: title, given: ready, needs: needs, steps: []step{{patch(instance+async, content), w}}}
}

func maintenanceCases() []Case {
	with := func(content body, version string) body {
		return content.with("maintenance_info", object{"version": version})
	}
	only := members(object{"service_id": "$service"})
	at := func(id string, since int, title string, q request, w want, g given, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, given: g, needs: needs, steps: []step{{q, w}}}
	}
	return []Case{
		at("PROV-20/other", 15, "a provision of another maintenance version is refused", anew(with(provisionBody, "99.99.99")),
			refused(maintenanceConflict), given{}, maintained),
		at("PROV-20/invalid", 15, "a maintenance version that is none is refused as another", anew(with(provisionBody, "Invalid")),
			refused(maintenanceConflict), given{}, maintained),
		at("PROV-20/none", 15, "a maintenance version is refused by a plan without one", anew(with(provisionBody, "99.99.99")),
			refused(maintenanceConflict), given{}, unmaintained),
		at("PROV-21/equal", 15, "a provision of the plan's maintenance version is accepted", anew(with(provisionBody, "$maintenance")), made,
			given{}, anyPlan, maintained),
		at("PROV-21/description", 15, "the description of maintenance_info does not matter",
			anew(with(provisionBody, "$maintenance").with("maintenance_info.description", "x")), made, given{}, anyPlan,
			maintained),
		at("PROV-21/absent", 15, "a provision without a maintenance version is accepted", anew(provisionBody), made, given{}, anyPlan,
			maintained),
		{ID: "PROV-22", Since: 15, speaks: 14, Title: "clients before 2.15 know no maintenance_info", needs: []need{anyPlan},
			steps: []step{{anew(with(provisionBody, "99.99.99")).as(14), made}}},
		{ID: "PROV-23", Since: 15, Title: "a maintenance version that is no text is refused", needs: []need{inCatalog},
			steps: []step{{anew(provisionBody.with("maintenance_info", object{"version": 5})), status(400, 422)}}},
		{ID: "PROV-23/absent", Since: 15, Title: "maintenance_info without a version is refused", needs: []need{inCatalog},
			steps: []step{{anew(provisionBody.with("maintenance_info", object{"description": "x"})), status(400, 422)}}},
		at("GETI-01/maintenance", 17, "an instance shows its maintenance version", get(instance),
			status(200).typed("maintenance_info.version", "string"), ready, maintained, fetchable),
		at("UPD-16", 15, "an update to the plan's maintenance version succeeds", patch(instance+async, with(only, "$maintenance")), changed,
			ready, maintained),
		at("UPD-17/other", 15, "an update to another maintenance version is refused", patch(instance+async, with(only, "99.99.99")),
			refused(maintenanceConflict), ready, maintained),
		at("UPD-17/none", 15, "an update to a maintenance version is refused by a plan without one",
			patch(instance+async, with(only, "99.99.99")), refused(maintenanceConflict), ready, unmaintained),
	}
}

func lastOperationCases() []Case {
	poll := func(id string, since int, title string, g given, query string, w want, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, given: g, needs: needs, steps: []step{{get(instanceOperation + query), w}}}
	}
	done := status(200).has("state", succeeded)
	return []Case{
		{ID: "LOP-01/state", Title: "an operation is in progress, succeeded or failed", watched: true, needs: []need{anyPlan}, given: ready,
			steps: []step{{get(instanceOperation), anything}}},
		poll("LOP-01", 0, "a running operation is in progress", provisioning, ofOperation, running),
		poll("LOP-01/update", 0, "a running update is in progress", updating, ofOperation, running),
		poll("LOP-15", 0, "a running deletion is in progress", deleting, ofOperation, running),
		{ID: "LOP-02", Title: "an operation that has ended has succeeded, and stays so", given: readyLater,
			steps: []step{{get(instanceOperation + ofOperation), done}, {get(instanceOperation + ofOperation), done}}},
		{ID: "LOP-03", Title: "a provision that failed is 200 with the state failed", needs: []need{failing}, story: func(s *scene) {
			if s.asked(anew(provisionBody), status(202)) && s.ends(instanceOperation, failed) {
				s.asked(get(instanceOperation+ofOperation), status(200).has("state", failed))
			}
		}},
		poll("LOP-03/description", 0, "a failure says why", provisionFailed, ofOperation, status(200).has("description", present)),
		poll("LOP-03/update", 0, "an update that failed is 200 with the state failed", updateFailed, ofOperation,
			status(200).has("state", failed)),
		{ID: "LOP-03/old", Since: 16, speaks: 15, Title: "clients before 2.16 do not see the flags of a failure", given: updateFailed,
			steps: []step{{get(instanceOperation).as(15), status(200).lacks("instance_usable", "update_repeatable")}}},
		{ID: "LOP-05", Since: 15, Title: "Retry-After is in seconds", watched: true, given: readyLater,
			steps: []step{{get(instanceOperation), anything}}},
		{ID: "LOP-05/ended", Since: 15, Title: "Retry-After ends with the operation", watched: true, given: readyLater,
			steps: []step{{get(instanceOperation), anything}}},
		{ID: "LOP-04", Title: "a poll is never answered by another success than 200, nor by a redirect", watched: true, given: ready,
			steps: []step{{get(instanceOperation), anything}}},
		{ID: "LOP-06", Title: "a token tells of its operation, also when a later one runs", given: readyLater,
			needs: []need{changeable, changedAsync}, story: func(s *scene) {
				first, ok := s.known("operation")
				if !ok || !s.asked(patch(instance+async, change(0)), status(202)) {
					return
				}
				s.remember("operation", first)
				s.asked(get(instanceOperation+ofOperation), status(200).has("state", succeeded))
			}},
		poll("LOP-07", 0, "without a token, the last operation is told", provisioning, "", running),
		poll("LOP-08", 0, "with an unknown token, the last operation is told", provisioning, "?operation=provision", running),
		{ID: "LOP-08/foreign", Title: "the token of another instance tells nothing of it", needs: []need{synchronous, anyPlan},
			story: foreignToken},
		poll("LOP-09", 16, "the last operation of an unknown instance is 404", given{}, "", status(404), inCatalog),
		poll("LOP-09/old", 0, "the last operation of an unknown instance does not exist for older clients either", given{}, "",
			status(404, 410), inCatalog),
		poll("LOP-10", 0, "a deletion that has ended is 410, or 200 with the state succeeded", deleted, ofOperation, status(200, 410, 404),
			deletedAsync),
		{ID: "LOP-10/token", Title: "polling an asynchronous deletion ends", given: ready, needs: []need{deletedAsync}, story: func(s *scene) {
			if s.asked(remove(instance+asyncIDs), status(202)) {
				s.ends(instanceOperation, succeeded, gone)
			}
		}},
		poll("LOP-11", 0, "410 never while provisioning", provisioning, ofOperation, status(200)),
		poll("LOP-12/hints", 0, "the hints of a poll are accepted", provisioning, ids+"&operation=$operation", running),
		poll("LOP-12/mismatch", 0, "hints that do not match are ignored", provisioning, "?service_id=$service&plan_id=$unknown", running),
		poll("LOP-12/update", 0, "the hints of a poll are accepted while an update runs", updating, ids+"&operation=$operation", running),
		poll("LOP-12/update-mismatch", 0, "hints that do not match are ignored while an update runs", updating,
			"?service_id=$service&plan_id=$unknown&operation=$operation", running),
		poll("LOP-14", 0, "an instance that was made synchronously has a last operation that succeeded", ready, "", done, synchronous),
		{ID: "LOP-16", Since: 15, Title: "a provision that a deletion overtook has not succeeded", given: provisioning, settles: true,
			needs: []need{deletedAsync}, story: func(s *scene) {
				token, ok := s.known("operation")
				s.underWay()
				a, sent := s.send(remove(instance + asyncIDs))
				if !sent || !s.checked(a, status(202, 200, 422)) || a.status != http.StatusAccepted || !ok {
					return
				}
				s.settle(instanceOperation)
				s.remember("operation", token)
				if b, ok := s.send(get(instanceOperation + ofOperation)); ok && s.checked(b, status(200, 410, 404)) && b.body["state"] == inProgress {
					s.fail("LOP-16", b.request, "the operation to have ended", b.String())
				}
			}},
		{ID: "LOP-17", Title: "a token of more than 10000 characters does no harm", given: ready, story: func(s *scene) {
			s.remember("operation", longText(maxOperation+1))
			s.asked(get(instanceOperation+ofOperation), status(400, 200, 414, 431))
		}},
		{ID: "LOP-18", Title: "many polls at once do not change the outcome", needs: []need{asynchronous, anyPlan}, given: provisioning,
			settles: true, story: func(s *scene) {
				s.all(10, func(int) { s.asked(get(instanceOperation+ofOperation), status(200)) })
				s.ends(instanceOperation, succeeded)
			}},
		{ID: "LOP-19", Title: "what has ended does not run again", given: readyLater, story: func(s *scene) {
			for range 10 {
				if !s.asked(get(instanceOperation+ofOperation), done) {
					return
				}
			}
		}},
		{ID: "LOP-21", Since: 16, Title: "the description of an operation is a text, or absent", watched: true, given: ready,
			steps: []step{{get(instanceOperation), anything}}},
	}
}

func longText(n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = 'x'
	}
	return string(out)
}

func foreignToken(s *scene) {
	var token string
	for _, p := range s.know.plans {
		if p.works && p.async {
			other := s.begin(s.ctx, s.Case, p)
			if other.beingProvisioned() {
				token, _ = other.known("operation")
			}
			defer s.ledger.later(other.cleanUp)
			break
		}
	}
	if token == "" || !s.provisioned() {
		return
	}
	s.remember("operation", token)
	a, ok := s.send(get(instanceOperation + ofOperation))
	if ok && s.checked(a, status(200, 400, 404)) && a.body["state"] == inProgress {
		s.fail("LOP-08", a.request, "nothing of another instance's operation", a.String())
	}
}
