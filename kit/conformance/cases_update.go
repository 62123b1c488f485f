package conformance

import (
	"net/http"
	"slices"
)

func updateCases() []Case {
	return slices.Concat(updateBodyCases(), updateStateCases())
}

func updateBodyCases() []Case {
	only := members(object{"service_id": "$service"})
	toOther := members(object{"service_id": "$service", "plan_id": "$otherplan"})
	return []Case{
		{ID: "UPD-01", Title: "a synchronous update is answered 200", given: ready, needs: []need{changedSync, changeable},
			steps: []step{{patch(instance, change(0)), status(200)}}},
		{ID: "UPD-02", Title: "an asynchronous update is answered 202, and succeeds", given: ready,
			needs: []need{changedAsync, changeable},
			story: func(s *scene) {
				if s.asked(patch(instance+async, change(0)), status(202)) {
					s.ends(instanceOperation, succeeded)
				}
			}},
		{ID: "UPD-03", Title: "an update of a plan that is only asynchronous is refused to a client that cannot wait",
			given: ready,
			needs: []need{asyncOnly, changedAsync},
			steps: []step{{patch(instance, change(0)), refused(asyncRequired)}}},
		{ID: "UPD-03/2.9", speaks: 9, Title: "the same for a client of version 2.9", given: ready,
			needs: []need{asyncOnly, changedAsync},
			steps: []step{{patch(instance, change(0)).as(9), refused(asyncRequired)}}},
		{ID: "UPD-03/plan", Title: "a change to a plan that is only asynchronous is refused to a client that cannot wait",
			given: ready,
			needs: []need{toAsyncOnly},
			steps: []step{{patch(instance, members(object{"service_id": "$service", "plan_id": "$laterplan"})),
				refused(asyncRequired)}}},
		refusedUpdate("UPD-04/missing", 0, "an update without service_id is refused",
			members(object{"parameters": object{}}), status(400)),
		refusedUpdate("UPD-04/empty", 12, "an update with an empty service_id is refused",
			members(object{"service_id": ""}), status(400)),
		refusedUpdate("UPD-04/unknown", 0, "an update with an unknown service_id is refused",
			members(object{"service_id": "$unknown"}),
			status(400)),
		refusedUpdate("UPD-05", 0, "an update to another offering is refused", members(object{"service_id": "$foreignservice"}),
			status(400, 422),
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
		{ID: "UPD-09", Title: "a plan that cannot be changed for another is refused it", given: ready,
			needs: []need{notUpdateable},
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
					object{"platform": "cloudfoundry", "organization_guid": "$organization", "space_guid": "$space",
						"instance_name": "new"})), changed}}},
		{ID: "UPD-15", Since: 15, Title: "an update of the context alone is done, or refused", given: ready,
			steps: []step{{patch(instance+async,
				only.with("context", object{"platform": "cloudfoundry", "instance_name": "new"})),
				status(200, 202, 422)}}},
		{ID: "UPD-15/allowed", Since: 15,
			Title: "an update of the context alone is done where the offering allows it", given: ready,
			needs: []need{contextUpdates},
			steps: []step{{patch(instance, only.with("context", object{"platform": "cloudfoundry", "instance_name": "new"})),
				status(200)}}},
		{ID: "UPD-18/ids", Title: "previous_values are accepted", given: ready, needs: []need{changeable},
			steps: []step{{patch(instance+async,
				previous(object{"plan_id": "$plan", "service_id": "$service", "organization_id": "$organization",
					"space_id": "$space"})), changed}}},
		{ID: "UPD-18/maintenance", Since: 15, Title: "previous_values with maintenance_info are accepted", given: ready,
			needs: []need{changeable},
			steps: []step{{patch(instance+async,
				previous(object{"plan_id": "$plan", "maintenance_info": object{"version": "0.0.1"}})), changed}}},
		{ID: "UPD-18/2.9", speaks: 9, Title: "previous_values of version 2.9, which have a context, are accepted", given: ready,
			needs: []need{changeable}, steps: []step{{patch(instance+async,
				previous(object{"plan_id": "$plan", "service_id": "$service",
					"context": object{"some_field": "x"}})).as(9), changed}}},
		{ID: "UPD-18/stale", Title: "previous_values that are not true do no harm", given: ready,
			steps: []step{{patch(instance+async, previous(object{"plan_id": "$unknown", "organization_id": "elsewhere"})),
				status(200, 202, 400)}}},
		{ID: "UPD-19", Title: "an update of an unknown instance is refused", needs: []need{anyPlan},
			steps: []step{{patch(instance+async, only), status(404, 410, 400, 422)}}},
		{ID: "UPD-19/404", Title: "an update of an unknown instance is 404", needs: []need{anyPlan},
			steps: []step{{patch(instance+async, only), status(404)}}},
		{ID: "UPD-19/deleted", Title: "an update of a deleted instance is refused", given: deleted,
			steps: []step{{patch(instance+async, only), status(404, 410, 400, 422)}}},
		{ID: "UPD-20/provisioning", Since: 14, Title: "an update while provisioning is refused", given: provisioning,
			needs: []need{changeable},
			steps: []step{{patch(instance+async, change(0)), refused(concurrencyError)}}},
		{ID: "UPD-20/deleting", Since: 14, Title: "an update while deleting is refused", given: deleting,
			needs: []need{changeable},
			steps: []step{{patch(instance+async, change(0)), refused(concurrencyError)}}},
		{ID: "UPD-21", Since: 14, Title: "an identical update while it runs names the same operation", given: updating,
			steps: []step{{patch(instance+async, change(0)), status(202).sameOperation()}}},
		{ID: "UPD-22", Since: 14, Title: "another update while one runs is refused", given: updating,
			steps: []step{{patch(instance+async, change(1)), refused(concurrencyError)}}},
		{ID: "UPD-23", Since: 14, Title: "a failed update leaves the instance as it was",
			needs: []need{changeFailing, fetchable}, given: ready,
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
		{ID: "UPD-27", Since: 14, Title: "the dashboard in the answer to an update is a text", given: ready,
			needs: []need{changeable},
			steps: []step{{patch(instance+async, change(0)), changed.that(func(_ *scene, a response) (string, string) {
				if v, ok := a.body["dashboard_url"]; ok && v != nil && typeOf(v) != "string" {
					return "dashboard_url to be a text", a.String()
				}
				return "", ""
			})}}},
		{ID: "UPD-28", Title: "a plan can be changed for another", given: ready, needs: []need{plansChange},
			story: func(s *scene) {
				a, ok := s.send(patch(instance+async, toOther))
				if ok && !s.refused(a, "take this change of plan", 400, 422) && s.checked(a, changed) &&
					a.status == http.StatusAccepted {
					s.ends(instanceOperation, succeeded)
				}
			}},
	}
}

func refusedUpdate(id string, since int, title string, content body, w want, needs ...need) Case {
	return Case{ID: id, Since: since, Title: title, given: ready, needs: needs,
		steps: []step{{patch(instance+async, content), w}}}
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
		at("PROV-20/invalid", 15, "a maintenance version that is none is refused as another",
			anew(with(provisionBody, "Invalid")),
			refused(maintenanceConflict), given{}, maintained),
		at("PROV-20/none", 15, "a maintenance version is refused by a plan without one", anew(with(provisionBody, "99.99.99")),
			refused(maintenanceConflict), given{}, unmaintained),
		at("PROV-21/equal", 15, "a provision of the plan's maintenance version is accepted",
			anew(with(provisionBody, "$maintenance")), made,
			given{}, anyPlan, maintained),
		at("PROV-21/description", 15, "the description of maintenance_info does not matter",
			anew(with(provisionBody, "$maintenance").with("maintenance_info.description", "x")), made, given{}, anyPlan,
			maintained),
		at("PROV-21/absent", 15, "a provision without a maintenance version is accepted", anew(provisionBody), made,
			given{}, anyPlan,
			maintained),
		{ID: "PROV-22", Since: 15, speaks: 14, Title: "clients before 2.15 know no maintenance_info", needs: []need{anyPlan},
			steps: []step{{anew(with(provisionBody, "99.99.99")).as(14), made}}},
		{ID: "PROV-23", Since: 15, Title: "a maintenance version that is no text is refused", needs: []need{inCatalog},
			steps: []step{{anew(provisionBody.with("maintenance_info", object{"version": 5})), status(400, 422)}}},
		{ID: "PROV-23/absent", Since: 15, Title: "maintenance_info without a version is refused", needs: []need{inCatalog},
			steps: []step{{anew(provisionBody.with("maintenance_info", object{"description": "x"})), status(400, 422)}}},
		at("GETI-01/maintenance", 17, "an instance shows its maintenance version", get(instance),
			status(200).typed("maintenance_info.version", "string"), ready, maintained, fetchable),
		at("UPD-16", 15, "an update to the plan's maintenance version succeeds",
			patch(instance+async, with(only, "$maintenance")), changed,
			ready, maintained),
		at("UPD-17/other", 15, "an update to another maintenance version is refused",
			patch(instance+async, with(only, "99.99.99")),
			refused(maintenanceConflict), ready, maintained),
		at("UPD-17/none", 15, "an update to a maintenance version is refused by a plan without one",
			patch(instance+async, with(only, "99.99.99")), refused(maintenanceConflict), ready, unmaintained),
	}
}
