package conformance

import (
	"net/http"
	"slices"
)

func updateCases() []Case {
	return slices.Concat(updateBodyCases(), updateStateCases())
}

func updateBodyCases() []Case {
	toOther := update.with("plan_id", "$otherplan")
	return []Case{
		{ID: "UPD-01", Title: "a synchronous update is answered 200", given: ready, needs: needs{changedSync, changeable},
			ask: patch(instance, change(0)), want: status(200)},
		{ID: "UPD-02", Title: "an asynchronous update is answered 202, and succeeds", given: ready,
			needs: needs{changedAsync, changeable}, story: func(s *scene) {
				if s.asked(toUpdate(change(0)), status(202)) {
					s.ends(instanceOperation, succeeded)
				}
			}},
		{ID: "UPD-03", Title: "an update of a plan that is only asynchronous is refused to a client that cannot wait",
			given: ready, needs: needs{asyncOnly, changedAsync}, ask: patch(instance, change(0)), want: cannotWait},
		{ID: "UPD-03/2.9", speaks: 9, Title: "the same for a client of version 2.9", given: ready,
			needs: needs{asyncOnly, changedAsync}, ask: patch(instance, change(0)).as(9), want: cannotWait},
		{ID: "UPD-03/plan", Title: "a change to a plan that is only asynchronous is refused to a client that cannot wait",
			given: ready, needs: needs{toAsyncOnly}, ask: patch(instance, update.with("plan_id", "$laterplan")),
			want: cannotWait},
		refusedUpdate("UPD-04/missing", 0, "an update without service_id is refused", members(object{"parameters": object{}}),
			status(400)),
		refusedUpdate("UPD-04/empty", 12, "an update with an empty service_id is refused", members(object{"service_id": ""}),
			status(400)),
		refusedUpdate("UPD-04/unknown", 0, "an update with an unknown service_id is refused",
			members(object{"service_id": "$unknown"}), status(400)),
		refusedUpdate("UPD-05", 0, "an update to another offering is refused", members(object{"service_id": "$foreignservice"}),
			status(400, 422), withForeign),
		refusedUpdate("UPD-06/unknown", 0, "an update to an unknown plan is refused", update.with("plan_id", "$unknown"),
			status(400, 422)),
		refusedUpdate("UPD-06/foreign", 0, "an update to a plan of another offering is refused",
			update.with("plan_id", "$foreignplan"), status(400, 422), withForeign),
		{ID: "UPD-07", Since: 14, Title: "an update without plan_id leaves the plan as it is", given: updated,
			needs: needs{fetchable, keepsPlan}, ask: get(instance), want: status(200).says("plan_id", "$plan")},
		{ID: "UPD-08", Since: 14, Title: "an update without parameters leaves them as they are",
			needs: needs{anyPlan, updatable, free, fetchable}, story: func(s *scene) {
				if !s.did(toProvision(provision.with(freeParameter, 7)), made, instanceOperation) {
					return
				}
				before, _ := s.send(get(instance))
				if a, ok := s.send(toUpdate(update)); ok && s.checked(a, changed) && s.done(a, instanceOperation) {
					if after, ok := s.send(get(instance)); ok && !same(before.body["parameters"], after.body["parameters"]) {
						s.fail("UPD-08", a.request, "the parameters to stay", after.String())
					}
				}
			}},
		{ID: "UPD-09", Title: "a plan that cannot be changed for another is refused it", given: ready,
			needs: needs{notUpdateable}, ask: toUpdate(toOther), want: status(422, 400)},
		{ID: "UPD-10/parameters", Since: 14, Title: "it takes other parameters all the same", given: ready,
			needs: needs{notUpdateable, changeable, free}, ask: toUpdate(change(0)), want: changed},
		{ID: "UPD-10/same-plan", Since: 14, Title: "it takes the plan that it has", given: ready, needs: needs{notUpdateable},
			ask: toUpdate(update.with("plan_id", "$plan")), want: changed},
		{ID: "UPD-12", Since: 13, Title: "parameters of an update that violate the schema are refused", given: ready,
			needs: needs{updatable, updateSchema}, story: func(s *scene) {
				s.asked(toUpdate(update.with("parameters", s.plan.wrong("service_instance", "update"))), status(400))
			}},
		{ID: "UPD-13/nothing", Since: 15, Title: "an update of nothing is answered 200", given: ready, ask: toUpdate(update),
			want: changed},
		{ID: "UPD-13/same-plan", Since: 15, Title: "an update to the plan that the instance has succeeds", given: ready,
			ask: toUpdate(update.with("plan_id", "$plan")), want: changed},
	}
}

func updateStateCases() []Case {
	toOther := update.with("plan_id", "$otherplan")
	previous := func(o object) body { return change(0).with("previous_values", o) }
	return []Case{
		{ID: "UPD-14", Since: 12, Title: "the context of an update is accepted", given: ready, needs: needs{changeable},
			ask: toUpdate(change(0).with("context", cloudFoundry).with("context.instance_name", "new")), want: changed},
		{ID: "UPD-15", Since: 15, Title: "an update of the context alone is done, or refused", given: ready,
			ask:  toUpdate(update.with("context", object{"platform": "cloudfoundry", "instance_name": "new"})),
			want: status(200, 202, 422)},
		{ID: "UPD-15/allowed", Since: 15, Title: "an update of the context alone is done where the offering allows it",
			given: ready, needs: needs{contextUpdates},
			ask:  patch(instance, update.with("context", object{"platform": "cloudfoundry", "instance_name": "new"})),
			want: status(200)},
		{ID: "UPD-18/ids", Title: "previous_values are accepted", given: ready, needs: needs{changeable},
			ask: toUpdate(previous(object{"plan_id": "$plan", "service_id": "$service",
				"organization_id": "$organization", "space_id": "$space"})), want: changed},
		{ID: "UPD-18/maintenance", Since: 15, Title: "previous_values with maintenance_info are accepted", given: ready,
			needs: needs{changeable},
			ask:   toUpdate(previous(object{"plan_id": "$plan", "maintenance_info": object{"version": "0.0.1"}})), want: changed},
		{ID: "UPD-18/2.9", speaks: 9, Title: "previous_values of version 2.9, which have a context, are accepted", given: ready,
			needs: needs{changeable},
			ask: toUpdate(previous(object{"plan_id": "$plan", "service_id": "$service",
				"context": object{"some_field": "x"}})).as(9),
			want: changed},
		{ID: "UPD-18/stale", Title: "previous_values that are not true do no harm", given: ready,
			ask: toUpdate(previous(object{"plan_id": "$unknown", "organization_id": "elsewhere"})), want: status(200, 202, 400)},
		{ID: "UPD-19", Title: "an update of an unknown instance is refused", needs: needs{anyPlan}, ask: toUpdate(update),
			want: status(404, 410, 400, 422)},
		{ID: "UPD-19/404", Title: "an update of an unknown instance is 404", needs: needs{anyPlan}, ask: toUpdate(update),
			want: status(404)},
		{ID: "UPD-19/deleted", Title: "an update of a deleted instance is refused", given: deleted, ask: toUpdate(update),
			want: status(404, 410, 400, 422)},
		{ID: "UPD-20/provisioning", Since: 14, Title: "an update while provisioning is refused", given: provisioning,
			needs: needs{changeable}, ask: toUpdate(change(0)), want: busy},
		{ID: "UPD-20/deleting", Since: 14, Title: "an update while deleting is refused", given: deleting,
			needs: needs{changeable}, ask: toUpdate(change(0)), want: busy},
		{ID: "UPD-21", Since: 14, Title: "an identical update while it runs names the same operation", given: updating,
			ask: toUpdate(change(0)), want: status(202).sameOperation()},
		{ID: "UPD-22", Since: 14, Title: "another update while one runs is refused", given: updating, ask: toUpdate(change(1)),
			want: busy},
		{ID: "UPD-23", Since: 14, Title: "a failed update leaves the instance as it was", needs: needs{changeFailing, fetchable},
			given: ready, story: func(s *scene) {
				before, ok := s.send(get(instance))
				if !ok || !s.asked(toUpdate(change(0)), status(202)) || !s.ends(instanceOperation, failed) {
					return
				}
				if after, ok := s.send(get(instance)); ok && !same(before.body, after.body) {
					s.fail("UPD-23", after.request, "what it was before the update", after.String())
				}
			}},
		{ID: "UPD-25", Title: "an instance whose update failed can be updated again", given: updateFailed,
			ask: toUpdate(change(0)), want: changed},
		{ID: "UPD-27", Since: 14, Title: "the dashboard in the answer to an update is a text", given: ready,
			needs: needs{changeable}, ask: toUpdate(change(0)), want: changed.typed("dashboard_url", "string")},
		{ID: "UPD-28", Title: "a plan can be changed for another", given: ready, needs: needs{plansChange},
			story: func(s *scene) {
				a, ok := s.send(toUpdate(toOther))
				if ok && !s.refused(a, "take this change of plan", 400, 422) && s.checked(a, changed) &&
					a.status == http.StatusAccepted {
					s.ends(instanceOperation, succeeded)
				}
			}},
	}
}

func refusedUpdate(id string, since int, title string, content body, w want, needs ...need) Case {
	return Case{ID: id, Since: since, Title: title, given: ready, needs: needs,
		ask: toUpdate(content), want: w}
}

func maintenanceCases() []Case {
	with := func(content body, version string) body {
		return content.with("maintenance_info", object{"version": version})
	}
	at := func(id string, since int, title string, q request, w want, g given, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, given: g, needs: needs, ask: q, want: w}
	}
	return []Case{
		at("PROV-20/other", 15, "a provision of another maintenance version is refused", toProvision(with(provision, "99.99.99")),
			refused(maintenanceConflict), given{}, maintained),
		at("PROV-20/invalid", 15, "a maintenance version that is none is refused as another",
			toProvision(with(provision, "Invalid")), refused(maintenanceConflict), given{}, maintained),
		at("PROV-20/none", 15, "a maintenance version is refused by a plan without one", toProvision(with(provision, "99.99.99")),
			refused(maintenanceConflict), given{}, unmaintained),
		at("PROV-21/equal", 15, "a provision of the plan's maintenance version is accepted",
			toProvision(with(provision, "$maintenance")), made, given{}, anyPlan, maintained),
		at("PROV-21/description", 15, "the description of maintenance_info does not matter",
			toProvision(with(provision, "$maintenance").with("maintenance_info.description", "x")), made, given{}, anyPlan,
			maintained),
		at("PROV-21/absent", 15, "a provision without a maintenance version is accepted", toProvision(provision), made, given{},
			anyPlan, maintained),
		{ID: "PROV-22", Since: 15, speaks: 14, Title: "clients before 2.15 know no maintenance_info", needs: needs{anyPlan},
			ask: toProvision(with(provision, "99.99.99")).as(14), want: made},
		{ID: "PROV-23", Since: 15, Title: "a maintenance version that is no text is refused", needs: needs{inCatalog},
			ask: toProvision(provision.with("maintenance_info", object{"version": 5})), want: status(400, 422)},
		{ID: "PROV-23/absent", Since: 15, Title: "maintenance_info without a version is refused", needs: needs{inCatalog},
			ask: toProvision(provision.with("maintenance_info", object{"description": "x"})), want: status(400, 422)},
		at("GETI-01/maintenance", 17, "an instance shows its maintenance version", get(instance),
			status(200).typed("maintenance_info.version", "string"), ready, maintained, fetchable),
		at("UPD-16", 15, "an update to the plan's maintenance version succeeds", toUpdate(with(update, "$maintenance")), changed,
			ready, maintained),
		at("UPD-17/other", 15, "an update to another maintenance version is refused", toUpdate(with(update, "99.99.99")),
			refused(maintenanceConflict), ready, maintained),
		at("UPD-17/none", 15, "an update to a maintenance version is refused by a plan without one",
			toUpdate(with(update, "99.99.99")), refused(maintenanceConflict), ready, unmaintained),
	}
}
