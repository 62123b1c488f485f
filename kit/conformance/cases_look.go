package conformance

import (
	"net/http"
	"strings"
)

func fetchInstanceCases() []Case {
	fetch := func(id string, since int, title string, g given, w want, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, given: g, needs: append([]need{fetchable}, needs...),
			ask: get(instance), want: w}
	}
	shown := status(200).says("service_id", "$service").says("plan_id", "$plan").typed("parameters",
		"object").typed("dashboard_url",
		"string").typed("metadata", "object").typed("maintenance_info", "object")
	return []Case{
		fetch("GETI-01", 14, "a ready instance can be fetched", ready, shown),
		fetch("GETI-01/ids", 14, "an instance shows its offering and its plan", ready,
			status(200).has("service_id", "$service").has("plan_id", "$plan")),
		fetch("GETI-02", 14, "an unknown instance is 404", given{}, status(404)),
		fetch("GETI-03", 14, "an instance that is being provisioned is 404", provisioning, status(404)),
		fetch("GETI-04", 14, "an instance that is being updated cannot be fetched now", updating, busy),
		{ID: "GETI-05", Since: 14, Title: "an instance that is being deleted cannot be fetched", given: deleting,
			needs: needs{fetchable}, ask: get(instance), want: status(422, 404)},
		fetch("GETI-06", 14, "a deleted instance is 404", deleted, status(404)),
		{ID: "GETI-07", Since: 14, Title: "an instance whose provision failed is 404", given: provisionFailed,
			needs: needs{fetchable}, ask: get(instance), want: status(404)},
		{ID: "GETI-08", Since: 14, Title: "an instance can be fetched as soon as its provision has succeeded", given: readyLater,
			needs: needs{fetchable}, ask: get(instance), want: shown},
		{ID: "GETI-09", Since: 16, Title: "the hints of a fetch are accepted", given: ready, needs: needs{fetchable},
			ask: get(instance + ids), want: shown},
		{ID: "GETI-10", Since: 14, Title: "parameters that are shown are those that were given",
			needs: needs{fetchable, free, anyPlan}, story: showing(object{"a": 12, "b": []any{true, "x"}})},
		{ID: "GETI-10/integer", Since: 14, Title: "also integers above 2^53, and nulls", needs: needs{fetchable, free, anyPlan},
			story: showing(object{"a": 12345678901234567, "b": []any{true, nil}})},
		{ID: "GETI-11", Since: 14, Title: "an instance shows the plan that it was changed to",
			needs: needs{fetchable, plansChange}, given: ready, story: func(s *scene) {
				if s.toOther() {
					s.asked(get(instance), status(200).says("plan_id", "$otherplan"))
				}
			}},
		{ID: "GETI-12", Since: 14, speaks: 9, Title: "an instance can be fetched by older clients", given: ready,
			needs: needs{fetchable}, ask: get(instance).as(9), want: status(200, 412, 404)},
	}
}

// toOther changes the plan of the instance. It returns false if the change fails, or if it is
// refused, which a broker may do.
func (s *scene) toOther() bool {
	a, ok := s.send(toUpdate(update.with("plan_id", "$otherplan")))
	return ok && !s.refused(a, "take this change of plan", 400, 422) && s.checked(a, changed) && s.done(a, instanceOperation)
}

// showing wants parameters to be shown as they were given, or not at all.
func showing(parameter object) func(s *scene) {
	return func(s *scene) {
		if !s.did(toProvision(provision.with(freeParameter, parameter)), made, instanceOperation) {
			return
		}
		if b, ok := s.send(get(instance)); ok && s.checked(b, status(200)) {
			if v, ok := find(b.body, freeParameter); ok && !same(v, normal(parameter)) {
				s.fail("GETI-10", b.request, "the parameters that were given, or none", b.String())
			}
		}
	}
}

func lastOperationCases() []Case {
	poll := func(id string, since int, title string, g given, query string, w want, needs ...need) Case {
		return Case{ID: id, Since: since, Title: title, given: g, needs: needs,
			ask: get(instanceOperation + query), want: w}
	}
	done := status(200).has("state", succeeded)
	return []Case{
		{ID: "LOP-01/state", Title: "an operation is in progress, succeeded or failed", watched: true, needs: needs{anyPlan},
			given: ready, ask: get(instanceOperation), want: anything},
		poll("LOP-01", 0, "a running operation is in progress", provisioning, ofOperation, running),
		poll("LOP-01/update", 0, "a running update is in progress", updating, ofOperation, running),
		poll("LOP-15", 0, "a running deletion is in progress", deleting, ofOperation, running),
		{ID: "LOP-02", Title: "an operation that has ended has succeeded, and stays so", given: readyLater,
			steps: []step{{toPoll, done}, {toPoll, done}}},
		{ID: "LOP-03", Title: "a provision that failed is 200 with the state failed", needs: needs{failing},
			story: func(s *scene) {
				if s.asked(toProvision(provision), status(202)) && s.ends(instanceOperation, failed) {
					s.asked(toPoll, status(200).has("state", failed))
				}
			}},
		poll("LOP-03/description", 0, "a failure says why", provisionFailed, ofOperation,
			status(200).has("description", present)),
		poll("LOP-03/update", 0, "an update that failed is 200 with the state failed", updateFailed, ofOperation,
			status(200).has("state", failed)),
		{ID: "LOP-03/old", Since: 16, speaks: 15, Title: "clients before 2.16 do not see the flags of a failure",
			given: updateFailed, ask: get(instanceOperation).as(15),
			want: status(200).lacks("instance_usable", "update_repeatable")},
		{ID: "LOP-05", Since: 15, Title: "Retry-After is in seconds", watched: true, given: readyLater,
			ask: get(instanceOperation), want: anything},
		{ID: "LOP-05/ended", Since: 15, Title: "Retry-After ends with the operation", watched: true, given: readyLater,
			ask: get(instanceOperation), want: anything},
		{ID: "LOP-04", Title: "a poll is never answered by another success than 200, nor by a redirect", watched: true,
			given: ready, ask: get(instanceOperation), want: anything},
		{ID: "LOP-06", Title: "a token tells of its operation, also when a later one runs", given: readyLater,
			needs: needs{changeable, changedAsync}, story: func(s *scene) {
				first, ok := s.known("operation")
				if !ok || !s.asked(toUpdate(change(0)), status(202)) {
					return
				}
				s.remember("operation", first)
				s.asked(toPoll, status(200).has("state", succeeded))
			}},
		poll("LOP-07", 0, "without a token, the last operation is told", provisioning, "", running),
		poll("LOP-08", 0, "with an unknown token, the last operation is told", provisioning, "?operation=provision", running),
		{ID: "LOP-08/foreign", Title: "the token of another instance tells nothing of it", needs: needs{synchronous, anyPlan},
			story: foreignToken},
		poll("LOP-09", 16, "the last operation of an unknown instance is 404", given{}, "", status(404), inCatalog),
		poll("LOP-09/old", 0, "the last operation of an unknown instance does not exist for older clients either", given{}, "",
			status(404, 410), inCatalog),
		poll("LOP-10", 0, "a deletion that has ended is 410, or 200 with the state succeeded", deleted, ofOperation,
			status(200, 410, 404), deletedAsync),
		{ID: "LOP-10/token", Title: "polling an asynchronous deletion ends", given: ready, needs: needs{deletedAsync},
			story: func(s *scene) {
				if s.asked(toDeprovision, status(202)) {
					s.ends(instanceOperation, succeeded, gone)
				}
			}},
		poll("LOP-11", 0, "410 never while provisioning", provisioning, ofOperation, status(200)),
		poll("LOP-12/hints", 0, "the hints of a poll are accepted", provisioning, ids+"&operation=$operation", running),
		poll("LOP-12/mismatch", 0, "hints that do not match are ignored", provisioning, "?service_id=$service&plan_id=$unknown",
			running),
		poll("LOP-12/update", 0, "the hints of a poll are accepted while an update runs", updating, ids+"&operation=$operation",
			running),
		poll("LOP-12/update-mismatch", 0, "hints that do not match are ignored while an update runs", updating,
			"?service_id=$service&plan_id=$unknown&operation=$operation", running),
		poll("LOP-14", 0, "an instance that was made synchronously has a last operation that succeeded", ready, "", done,
			synchronous),
		{ID: "LOP-16", Since: 15, Title: "a provision that a deletion overtook has not succeeded", given: provisioning,
			settles: true, needs: needs{deletedAsync}, story: func(s *scene) {
				token, ok := s.known("operation")
				s.underWay()
				a, sent := s.send(toDeprovision)
				if !sent || !s.checked(a, status(202, 200, 422)) || a.status != http.StatusAccepted || !ok {
					return
				}
				s.settle(instanceOperation)
				s.remember("operation", token)
				if b, ok := s.send(toPoll); ok && s.checked(b, status(200, 410, 404)) &&
					b.body["state"] == inProgress {
					s.fail("LOP-16", b.request, "the operation to have ended", b.String())
				}
			}},
		{ID: "LOP-17", Title: "a token of more than 10000 characters does no harm", given: ready, story: func(s *scene) {
			s.remember("operation", strings.Repeat("x", maxOperation+1))
			s.asked(toPoll, status(400, 200, 414, 431))
		}},
		{ID: "LOP-18", Title: "many polls at once do not change the outcome", needs: needs{asynchronous, anyPlan},
			given: provisioning, settles: true, story: func(s *scene) {
				s.all(10, func(int) { s.asked(toPoll, status(200)) })
				s.ends(instanceOperation, succeeded)
			}},
		{ID: "LOP-19", Title: "what has ended does not run again", given: readyLater, story: func(s *scene) {
			for range 10 {
				if !s.asked(toPoll, done) {
					return
				}
			}
		}},
		{ID: "LOP-21", Since: 16, Title: "the description of an operation is a text, or absent", watched: true, given: ready,
			ask: get(instanceOperation), want: anything},
	}
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
	a, ok := s.send(toPoll)
	if ok && s.checked(a, status(200, 400, 404)) && a.body["state"] == inProgress {
		s.fail("LOP-08", a.request, "nothing of another instance's operation", a.String())
	}
}
