package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

func deprovisionCases() []Case {
	missing := func(id string, title, query string) Case {
		return Case{ID: id, Title: title, given: ready, steps: []step{{remove(instance + query), status(400)}}}
	}
	return []Case{
		{ID: "DEPR-01", Title: "a synchronous deprovision is answered 200", given: ready, needs: []need{deletedSync},
			steps: []step{{remove(instance + ids), status(200)}}},
		{ID: "DEPR-01/2.9", speaks: 9, Title: "a synchronous deprovision of version 2.9 is answered 200", given: ready,
			needs: []need{deletedSync}, steps: []step{{remove(instance + ids).as(9), status(200)}}},
		{ID: "DEPR-02", Title: "an asynchronous deprovision is answered 202, and ends", given: ready, needs: []need{deletedAsync},
			story: func(s *scene) {
				if s.asked(remove(instance+asyncIDs), status(202)) {
					s.ends(instanceOperation, succeeded, gone)
				}
			}},
		{ID: "DEPR-02/2.9", speaks: 9, Title: "an asynchronous deprovision of version 2.9 is answered 202", given: ready,
			needs: []need{deletedAsync}, steps: []step{{remove(instance + asyncIDs).as(9), status(202)}}},
		{ID: "DEPR-03", Title: "an unknown instance is 410", needs: []need{inCatalog}, steps: []step{{remove(instance + asyncIDs), status(410)}}},
		{ID: "DEPR-03/sync", Title: "an unknown instance of a plan that is only asynchronous is 410, or refused to a client that cannot wait",
			needs: []need{asyncOnly}, steps: []step{{remove(instance + ids), status(410, 422)}}},
		{ID: "DEPR-04", Title: "a second deprovision is 410", given: deleted, steps: []step{{remove(instance + asyncIDs), status(410)}}},
		{ID: "DEPR-04/async", Title: "a second deprovision after an asynchronous one is 410", given: deleted, needs: []need{deletedAsync},
			steps: []step{{remove(instance + asyncIDs), status(410)}}},
		missing("DEPR-05/service_id", "a deprovision without service_id is refused", async+"&plan_id=$plan"),
		missing("DEPR-05/plan_id", "a deprovision without plan_id is refused", async+"&service_id=$service"),
		missing("DEPR-05/both", "a deprovision without either is refused", async),
		missing("DEPR-05/empty", "a deprovision with an empty service_id is refused", async+"&service_id=&plan_id=$plan"),
		{ID: "DEPR-06", Title: "a plan that is only asynchronous refuses a client that cannot wait", given: ready,
			needs: []need{asyncOnly, deletedAsync}, steps: []step{{remove(instance + ids), refused(asyncRequired)}}},
		{ID: "DEPR-07", Since: 14, Title: "a deprovision that is sent again while it runs names the same operation", given: deleting,
			steps: []step{{remove(instance + asyncIDs), status(202).sameOperation()}}},
		{ID: "DEPR-07/refused", Title: "it is refused to a client that cannot wait", given: deleting, needs: []need{asyncOnly},
			steps: []step{{remove(instance + ids), refused(asyncRequired)}}},
		{ID: "DEPR-08", Since: 15, Title: "a deprovision while provisioning is accepted, or refused for now", given: provisioning,
			settles: true, story: func(s *scene) {
				s.underWay()
				a, ok := s.send(remove(instance + asyncIDs))
				if !ok || !s.checked(a, refusedOr(concurrencyError, 202, 200)) {
					return
				}
				if a.status == http.StatusAccepted && !s.ends(instanceOperation, succeeded, gone) || a.status == 422 {
					return
				}
				s.nothingAt(instance)
			}},
		{ID: "DEPR-09", Since: 14, Title: "a deprovision while updating is refused", given: updating,
			steps: []step{{remove(instance + asyncIDs), refused(concurrencyError)}}},
		{ID: "DEPR-10", Title: "an instance with bindings is deprovisioned with them, or refused", given: bound, needs: []need{bindSync},
			story: func(s *scene) {
				a, ok := s.send(remove(instance + asyncIDs))
				if !ok || !s.checked(a, status(200, 202, 400, 422)) || a.status >= 400 || !s.done(a, instanceOperation) {
					return
				}
				s.asked(remove(binding+asyncIDs), status(410))
			}},
		{ID: "DEPR-11", Title: "force=true does no harm", steps: []step{{remove(instance + asyncIDs + "&force=true"), status(410)}}},
		{ID: "DEPR-12", Title: "an instance whose provision failed can be removed", given: provisionFailed, story: func(s *scene) {
			a, ok := s.send(remove(instance + asyncIDs))
			if !ok || !s.checked(a, status(200, 202, 410)) || a.status == http.StatusAccepted && !s.ends(instanceOperation, succeeded, gone) {
				return
			}
			s.asked(remove(instance+asyncIDs), status(410))
		}},
		{ID: "DEPR-14", Title: "a deprovision in the name of another plan succeeds, or is refused", given: ready,
			steps: []step{{remove(instance + async + "&service_id=$service&plan_id=$unknown"), status(200, 202, 400)}}},
		{ID: "DEPR-16/fetch", Since: 14, Title: "a deleted instance cannot be updated or bound", given: deleted, needs: []need{bindable},
			steps: []step{{patch(instance+async, members(object{"service_id": "$service"})), status(404, 410, 400, 422)},
				{set(binding+async, bindBody), status(404, 400, 410, 422)}}},
		{ID: "DEPR-17", Title: "a synchronous plan is deprovisioned also for a client that can wait", given: ready, needs: []need{synchronous},
			story: func(s *scene) {
				a, ok := s.send(remove(instance + asyncIDs))
				if ok && s.checked(a, removed) && a.status == http.StatusAccepted {
					s.ends(instanceOperation, succeeded, gone)
				}
			}},
	}
}

func idempotencyCases() []Case {
	return []Case{
		{ID: "IDEM-02", Title: "a repeated request is compared with what the instance is now", given: ready, needs: []need{plansChange},
			story: func(s *scene) {
				if s.toOther() {
					s.asked(set(instance+async, provisionBody), status(409))
				}
			}},
		{ID: "IDEM-02/same", Title: "what the instance is now is an identical request", given: ready, needs: []need{plansChange},
			story: func(s *scene) {
				if s.toOther() {
					s.asked(set(instance+async, provisionBody.with("plan_id", "$otherplan")), status(200))
				}
			}},
		{ID: "IDEM-03/sequence", Title: "ten identical requests make one instance", given: ready, story: func(s *scene) {
			for range 10 {
				if !s.asked(set(instance+async, provisionBody), status(200)) {
					return
				}
			}
		}},
		{ID: "IDEM-03/parallel", Title: "ten identical requests at once begin one provision", needs: []need{asynchronous, anyPlan},
			settles: true, story: func(s *scene) {
				var mu sync.Mutex
				tokens := map[string]bool{}
				s.all(10, func(int) {
					a, ok := s.send(anew(provisionBody))
					if !ok || !s.checked(a, status(202, 200, 422)) || a.status != http.StatusAccepted {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					tokens[text(a.body, "operation")] = true
				})
				if len(tokens) > 1 {
					s.fail("IDEM-03", "PUT "+s.text(instance)+", ten at once", "one operation", "several")
				}
				s.ends(instanceOperation, succeeded)
			}},
		{ID: "IDEM-05", Title: "a repeated request is answered as the first was", needs: []need{synchronous}, story: func(s *scene) {
			first, ok := s.send(set(instance, provisionBody))
			again, sent := s.send(set(instance, provisionBody))
			if ok && sent && s.checked(first, status(201)) && s.checked(again, status(200)) && !same(first.body, again.body) {
				s.fail("IDEM-05", again.request, "the body of the 201", again.String())
			}
		}},
		{ID: "IDEM-06/name", Since: 15, Title: "a changed name of the instance does not make a request another", given: ready,
			story: asIdentical(provisionBody.with("context.instance_name", "renamed"))},
		{ID: "IDEM-06/identity", Since: 13, Title: "another originating identity does not make a request another", given: ready, steps: []step{
			{set(instance+async, provisionBody).with(identityHeader, identityOf("cloudfoundry", `{"user_id":"another"}`)), status(200)}}},
		{ID: "IDEM-08", Title: "an application at either place is the same application", given: bound,
			steps: []step{{set(binding+async, bindBody.without("bind_resource")), status(200)},
				{set(binding+async, bindBody.without("app_guid")), status(200)}}},
		{ID: "IDEM-09", Title: "the id of a deleted binding can be used again, with new credentials", given: unbound,
			needs: []need{bindSync, withGrant}, story: func(s *scene) {
				a, ok := s.send(set(binding, bindBody))
				if ok && s.checked(a, status(201)) && same(a.body["credentials"], s.grant["credentials"]) {
					s.fail("IDEM-09", a.request, "new credentials", "those that were deleted")
				}
			}},
		{ID: "IDEM-07", Since: 14, Title: "a bind while the binding is being deleted is refused", given: unbinding,
			steps: []step{{set(binding+async, bindBody), refused(concurrencyError)}}},
	}
}

func concurrencyCases() []Case {
	return []Case{
		{ID: "PROV-31", Title: "two first requests at once make one instance", needs: []need{synchronous, anyPlan}, story: func(s *scene) {
			var mu sync.Mutex
			var statuses []int
			s.all(4, func(int) {
				if a, ok := s.send(set(instance, provisionBody)); ok && s.checked(a, status(201, 200, 409, 422)) {
					mu.Lock()
					defer mu.Unlock()
					statuses = append(statuses, a.status)
				}
			})
			slices.Sort(statuses)
			if n := len(statuses); n == 4 && (slices.Index(statuses, 201) < 0 || slices.Contains(statuses[slices.Index(statuses, 201)+1:], 201)) {
				s.fail("PROV-31", "PUT "+s.text(instance)+", four at once", "exactly one 201", alternatives(statuses))
			}
		}},
		{ID: "PROV-31/bind", Title: "two first binds at once make one binding", given: ready, needs: []need{bindSync, withGrant},
			story: func(s *scene) {
				var mu sync.Mutex
				var grants []any
				s.all(4, func(int) {
					if a, ok := s.send(set(binding, bindBody)); ok && s.checked(a, status(201, 200, 422)) && a.status < 300 {
						mu.Lock()
						defer mu.Unlock()
						grants = append(grants, a.body["credentials"])
					}
				})
				for _, g := range grants {
					if !same(g, grants[0]) {
						s.fail("PROV-31", "PUT "+s.text(binding)+", four at once", "the same credentials", "others")
					}
				}
			}},
		{ID: "CONC-01", Since: 14, Title: "while an update runs, all that changes is refused for now", given: updating, needs: []need{bindable},
			steps: []step{
				{patch(instance+async, change(1)), refused(concurrencyError)}, {set(binding+async, bindBody), refused(concurrencyError)},
				{remove(instance + asyncIDs), refused(concurrencyError)},
			}},
		{ID: "CONC-02", Title: "refusing an update does not disturb the one that runs", given: updating, settles: true, story: func(s *scene) {
			if a, ok := s.send(patch(instance+async, change(1))); ok && a.status == 422 {
				s.ends(instanceOperation, succeeded)
			}
		}},
		{ID: "CONC-03", Title: "polls and the catalog are answered while an operation runs", given: provisioning,
			steps: []step{{get(instanceOperation + ofOperation), status(200)}, {get(catalog), status(200)}}},
		{ID: "CONC-05", Title: "when an update has ended the next is accepted", given: updated, needs: []need{twoChanges},
			steps: []step{{patch(instance+async, change(1)), changed}}},
		{ID: "CONC-06", Title: "an instance that is busy does not block another", given: provisioning, settles: true, story: func(s *scene) {
			s.asked(set("/v2/service_instances/$instance2"+async, provisionBody), made)
		}},
		{ID: "CONC-08", Since: 14, Title: "an unbind while the instance is being updated is refused for now, or done", given: bound,
			needs: []need{twoChanges, changedAsync}, story: func(s *scene) {
				if s.asked(patch(instance+async, change(0)), status(202)) && s.runs(instanceOperation) {
					s.asked(remove(binding+asyncIDs), status(422, 200, 202))
				}
			}},
		{ID: "CONC-09", Since: 15, Title: "a provision that a deletion overtook does not come back", given: provisioning,
			needs: []need{anyPlan}, settles: true, story: func(s *scene) {
				s.underWay()
				a, ok := s.send(remove(instance + asyncIDs))
				if !ok || !s.checked(a, status(202, 200, 422)) || a.status == 422 || !s.ends(instanceOperation, succeeded, gone) {
					return
				}
				for range 10 {
					if !sleep(s.ctx, 3*firstPause) || !s.nothingAt(instance) {
						return
					}
				}
			}},
		{ID: "CONC-07", Since: 14, Title: "of two updates at once, one is refused", given: ready, needs: []need{twoChanges, changedAsync},
			story: func(s *scene) {
				var mu sync.Mutex
				accepted := 0
				s.all(2, func(n int) {
					a, ok := s.send(patch(instance+async, change(n)))
					if ok && s.checked(a, status(202, 200, 422)) && a.status != 422 {
						mu.Lock()
						defer mu.Unlock()
						accepted++
					} else if ok && a.status == 422 {
						s.checked(a, refused(concurrencyError))
					}
				})
				if accepted == 0 {
					s.fail("CONC-07", "PATCH "+s.text(instance)+", two at once", "one to be accepted", "none")
				}
				s.settle(instanceOperation)
			}},
	}
}

func orphanCases() []Case {
	return []Case{
		{ID: "ORB-01", Title: "a deletion of an instance never seen is 410", needs: []need{inCatalog},
			steps: []step{{remove(instance + asyncIDs), status(410)}, {remove(instance + asyncIDs), status(410)}}},
		{ID: "ORB-01/refused", Title: "a deletion after a refused provision is 410", needs: []need{inCatalog},
			story: func(s *scene) {
				// That it is refused is PROV-13.
				if a, ok := s.send(anew(provisionBody.without("plan_id"))); ok && !s.taken(a, "a provision without plan_id") {
					s.asked(remove(instance+asyncIDs), status(410))
				}
			}},
		{ID: "ORB-02", Title: "a deletion of a binding never seen is 410", needs: []need{saysBindable},
			steps: []step{{remove(binding + asyncIDs), status(410)}}},
		{ID: "ORB-02/refused", Title: "a deletion after a refused bind is 410", given: ready, needs: []need{bindable},
			story: func(s *scene) {
				// That it is refused is BIND-04.
				if a, ok := s.send(set(binding+async, bindBody.without("plan_id"))); ok && !s.taken(a, "a bind without plan_id") {
					s.asked(remove(binding+asyncIDs), status(410))
				}
			}},
		{ID: "ORB-03", Title: "a deletion that overtakes a provision leaves nothing", needs: []need{anyPlan}, settles: true,
			story: func(s *scene) {
				s.all(2, func(n int) {
					if n == 0 {
						_, _ = s.send(anew(provisionBody))
						return
					}
					sleep(s.ctx, time.Millisecond)
					if a, ok := s.send(remove(instance + asyncIDs)); ok {
						s.checked(a, status(410, 200, 202, 422))
					}
				})
				// Whoever came first: a deletion works now, and then nothing is there.
				ctx, cancel := context.WithTimeout(s.ctx, s.OperationTimeout)
				defer cancel()
				for {
					a, ok := s.send(remove(instance + asyncIDs))
					if !ok || a.status == http.StatusGone || !s.checked(a, status(200, 202, 422)) {
						return
					}
					if !sleep(ctx, 5*firstPause) {
						s.fail("ORB-03", a.request, "410 in the end", a.String())
						return
					}
				}
			}},
		{ID: "ORB-03/sync", Title: "a deletion that overtakes a provision is not an internal error for a client that cannot wait",
			needs: []need{synchronous}, settles: true, story: func(s *scene) {
				s.all(8, func(n int) { // at several moments, since the right one is not known
					path := fmt.Sprintf("/v2/service_instances/$overtaken%d", n)
					s.all(2, func(second int) {
						if second == 0 {
							_, _ = s.send(set(path, provisionBody))
							return
						}
						sleep(s.ctx, time.Duration(n)*time.Millisecond)
						if a, ok := s.send(remove(path + ids)); ok {
							s.checked(a, status(200, 410, 422))
						}
					})
				})
			}},
		{ID: "ORB-06", Title: "an instance whose provision failed can be removed by a client that cannot wait", given: provisionFailed,
			steps: []step{{remove(instance + ids), status(200, 410)}}},
		{ID: "ORB-07", Title: "no request is answered 5xx", watched: true, needs: []need{inCatalog}, story: tour},
	}
}

// statusOf wants the body of a status resource in a state, any if it is empty.
func statusOf(w want, state string) want {
	return w.that(func(_ *scene, a answer) (string, string) {
		got := text(a.body, "status.state")
		if got == "" || state != "" && got != state {
			return "status.state " + state, a.String()
		}
		v, _ := find(a.body, "status.conditions")
		conditions := list(v)
		if len(conditions) == 0 {
			return "status.conditions", a.String()
		}
		for _, c := range conditions {
			for _, member := range []string{"type", "status", "lastTransitionTime", "reason", "message"} {
				if text(c, member) == "" {
					return "conditions with " + member, a.String()
				}
			}
			if s := text(c, "status"); s != "True" && s != "False" && s != "Unknown" {
				return "a condition's status to be True, False or Unknown", a.String()
			}
		}
		return "", ""
	})
}

func facadeCases() []Case {
	at := func(id string, title string, g given, q request, w want, needs ...need) Case {
		return Case{ID: id, Title: title, given: g, needs: append([]need{facade}, needs...), steps: []step{{q, w}}}
	}
	location := get("$location")
	retry := func(_ *scene, a answer) (string, string) {
		if !seconds.MatchString(a.header.Get("Retry-After")) {
			return "Retry-After in seconds", "none"
		}
		return "", ""
	}
	pointer := func(s *scene, a answer) (string, string) {
		if a.header.Get("Location") == "" {
			return "a Location", "none"
		}
		return retry(s, a)
	}
	bare := func(_ *scene, a answer) (string, string) {
		if a.header.Get("Retry-After") != "" {
			return "no Retry-After", "one"
		}
		return "", ""
	}
	return []Case{
		at("FAC-01", "a 202 names a status resource, and when to ask it", given{}, anew(provisionBody), status(202).that(pointer), asynchronous),
		at("FAC-01/delete", "so does the 202 of a deletion", ready, remove(instance+asyncIDs), status(202).that(pointer), deletedAsync),
		at("FAC-02", "a request that is refused has no status resource", given{}, anew(provisionBody.without("plan_id")),
			status(400).header("Location", "")),
		at("FAC-03", "a pending operation is 202", provisioning, location, statusOf(status(202, 200), "").that(retry)),
		at("FAC-04", "the body tells state and conditions", provisioning, location, statusOf(status(202, 200), "Creating")),
		{ID: "FAC-06", Title: "a finished provision leads to the instance", given: readyLater, needs: []need{facade, fetchable},
			story: func(s *scene) {
				a, ok := s.send(location)
				if !ok || !s.checked(a, statusOf(status(302, 303), "")) {
					return
				}
				s.remember("location", a.header.Get("Location"))
				s.asked(location, status(200).has("plan_id", "$plan"))
			}},
		{ID: "FAC-07", Title: "a finished bind leads to the binding", given: bound, needs: []need{facade, bindAsync, bindFetchable},
			story: func(s *scene) {
				a, ok := s.send(location)
				if !ok || !s.checked(a, status(302, 303)) {
					return
				}
				s.remember("location", a.header.Get("Location"))
				s.asked(location, status(200).that(sameGrant))
			}},
		{ID: "FAC-08", Title: "a finished deletion is 200", given: ready, needs: []need{facade, deletedAsync}, story: func(s *scene) {
			if s.asked(remove(instance+asyncIDs), status(202)) && s.ends(instanceOperation, succeeded, gone) {
				s.asked(location, status(200, 204).header("Location", ""))
			}
		}},
		at("FAC-09", "a failure stays a 4xx", provisionFailed, location, statusOf(status(422, 400, 404, 409, 410, 424), "Failed")),
		{ID: "FAC-10", Title: "a pending provision can be cancelled", given: provisioning, settles: true, needs: []need{facade, anyPlan},
			story: func(s *scene) {
				if cancelled(s) {
					s.asked(get(instance), status(404))
					s.asked(get(instanceOperation+ofOperation), status(200, 410, 404))
				}
			}},
		at("FAC-10/finished", "a finished operation cannot be cancelled", readyLater, remove("$location"), status(409, 404, 405, 410)),
		{ID: "FAC-11", Title: "the status of a cancelled operation says so", given: provisioning, settles: true, needs: []need{facade, anyPlan},
			story: func(s *scene) {
				if cancelled(s) {
					s.asked(location, statusOf(status(409, 410, 422), "Cancelled"))
				}
			}},
		{ID: "FAC-12", Title: "an unknown status resource is 404", given: provisioning, settles: true, needs: []need{facade},
			story: func(s *scene) {
				v := s.value("location")
				s.remember("location", v[:len(v)-len(v)/8]+"x")
				s.asked(location, status(404))
			}},
		at("FAC-13", "a status resource wants credentials", provisioning, location.with("Authorization", ""), status(401)),
		at("FAC-13/version", "a status resource wants no version", provisioning, location.with(versionHeader, ""), status(202, 200, 412)),
		at("FAC-14", "a status is not to be cached", provisioning, location, status(202, 200).that(func(_ *scene, a answer) (string, string) {
			if a.header.Get("Cache-Control") != "no-store" {
				return "Cache-Control: no-store", a.header.Get("Cache-Control")
			}
			return "", ""
		})),
		{ID: "FAC-15", Title: "the status resource agrees with the last operation", given: provisioning,
			needs: []need{facade, anyPlan, fetchable}, settles: true, story: func(s *scene) {
				if s.ends(instanceOperation, succeeded) {
					s.asked(location, status(302, 303))
				}
			}},
		at("FAC-17", "a status outlives the operation", readyLater, location, status(302, 303), fetchable),
		{ID: "FAC-18", Title: "asking for a status changes nothing", given: provisioning, needs: []need{facade, anyPlan}, settles: true,
			story: func(s *scene) {
				s.all(5, func(int) { s.asked(location, status(202, 200, 302, 303)) })
				s.ends(instanceOperation, succeeded)
			}},
		at("FAC-19", "a deletion that runs is Deleting", deleting, location, statusOf(status(202, 200), "Deleting")),
		at("FAC-19/update", "an update that runs is Updating", updating, location, statusOf(status(202, 200), "Updating")),
		at("FAC-19/bind", "a bind that runs is Binding", bindRunning, location, statusOf(status(202, 200), "Binding")),
		at("FAC-20", "an answer that is final names no time to ask again", given{}, set(instance, provisionBody), status(201).that(bare),
			synchronous),
	}
}

func cancelled(s *scene) bool {
	s.underWay()
	a, ok := s.send(remove("$location"))
	if ok && a.status == http.StatusMethodNotAllowed {
		s.lacking = "the broker does not offer to cancel operations"
		return false
	}
	if !ok || !s.checked(a, status(202, 200, 204)) {
		s.atOnce = ok && a.status < 500 && s.ended() // nothing was left to be cancelled
		return false
	}
	if _, known := s.known("operation"); !known {
		return false
	}
	return s.ends(instanceOperation, failed, gone)
}
