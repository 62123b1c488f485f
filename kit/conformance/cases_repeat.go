package conformance

import (
	"net/http"
	"slices"
	"sync"
)

func idempotencyCases() []Case {
	return []Case{
		{ID: "IDEM-02", Title: "a repeated request is compared with what the instance is now", given: ready,
			needs: needs{plansChange}, story: func(s *scene) {
				if s.toOther() {
					s.asked(toProvision(provision), status(409))
				}
			}},
		{ID: "IDEM-02/same", Title: "what the instance is now is an identical request", given: ready, needs: needs{plansChange},
			story: func(s *scene) {
				if s.toOther() {
					s.asked(toProvision(provision.with("plan_id", "$otherplan")), status(200))
				}
			}},
		{ID: "IDEM-03/sequence", Title: "ten identical requests make one instance", given: ready, story: func(s *scene) {
			for range 10 {
				if !s.asked(toProvision(provision), status(200)) {
					return
				}
			}
		}},
		{ID: "IDEM-03/parallel", Title: "ten identical requests at once begin one provision", needs: needs{asynchronous, anyPlan},
			settles: true, story: func(s *scene) {
				var mu sync.Mutex
				tokens := map[string]bool{}
				s.all(10, func(int) {
					a, ok := s.send(toProvision(provision))
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
		{ID: "IDEM-05", Title: "a repeated request is answered as the first was", needs: needs{synchronous},
			story: func(s *scene) {
				first, ok := s.send(provisionAtOnce)
				again, sent := s.send(provisionAtOnce)
				if ok && sent && s.checked(first, status(201)) && s.checked(again, status(200)) && !same(first.body, again.body) {
					s.fail("IDEM-05", again.request, "the body of the 201", again.String())
				}
			}},
		{ID: "IDEM-06/name", Since: 15, Title: "a changed name of the instance does not make a request another", given: ready,
			story: asIdentical(provision.with("context.instance_name", "renamed"))},
		{ID: "IDEM-06/identity", Since: 13, Title: "another originating identity does not make a request another", given: ready,
			ask:  toProvision(provision).with(identityHeader, identityOf("cloudfoundry", `{"user_id":"another"}`)),
			want: status(200)},
		{ID: "IDEM-08", Title: "an application at either place is the same application", given: bound,
			steps: []step{{toBind(bind.without("bind_resource")), status(200)}, {toBind(bind.without("app_guid")), status(200)}}},
		{ID: "IDEM-09", Title: "the id of a deleted binding can be used again, with new credentials", given: unbound,
			needs: needs{bindSync, withGrant}, story: func(s *scene) {
				a, ok := s.send(set(binding, bind))
				if ok && s.checked(a, status(201)) && same(a.body["credentials"], s.grant["credentials"]) {
					s.fail("IDEM-09", a.request, "new credentials", "those that were deleted")
				}
			}},
		{ID: "IDEM-07", Since: 14, Title: "a bind while the binding is being deleted is refused", given: unbinding,
			ask: toBind(bind), want: busy},
	}
}

func concurrencyCases() []Case {
	return []Case{
		{ID: "PROV-31", Title: "two first requests at once make one instance", needs: needs{synchronous, anyPlan},
			story: func(s *scene) {
				var mu sync.Mutex
				var statuses []int
				s.all(4, func(int) {
					if a, ok := s.send(provisionAtOnce); ok && s.checked(a, status(201, 200, 409, 422)) {
						mu.Lock()
						defer mu.Unlock()
						statuses = append(statuses, a.status)
					}
				})
				slices.Sort(statuses)
				if n := len(statuses); n == 4 &&
					(slices.Index(statuses, 201) < 0 || slices.Contains(statuses[slices.Index(statuses, 201)+1:], 201)) {
					s.fail("PROV-31", "PUT "+s.text(instance)+", four at once", "exactly one 201", alternatives(statuses))
				}
			}},
		{ID: "PROV-31/bind", Title: "two first binds at once make one binding", given: ready, needs: needs{bindSync, withGrant},
			story: func(s *scene) {
				var mu sync.Mutex
				var grants []any
				s.all(4, func(int) {
					if a, ok := s.send(set(binding, bind)); ok && s.checked(a, status(201, 200, 422)) && a.status < 300 {
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
		{ID: "CONC-01", Since: 14, Title: "while an update runs, all that changes is refused for now", given: updating,
			needs: needs{bindable}, steps: []step{{toUpdate(change(1)), busy}, {toBind(bind), busy}, {toDeprovision, busy}}},
		{ID: "CONC-02", Title: "refusing an update does not disturb the one that runs", given: updating, settles: true,
			story: func(s *scene) {
				if a, ok := s.send(toUpdate(change(1))); ok && a.status == 422 {
					s.ends(instanceOperation, succeeded)
				}
			}},
		{ID: "CONC-03", Title: "polls and the catalog are answered while an operation runs", given: provisioning,
			steps: []step{{toPoll, status(200)}, {get(catalog), status(200)}}},
		{ID: "CONC-05", Title: "when an update has ended the next is accepted", given: updated, needs: needs{twoChanges},
			ask: toUpdate(change(1)), want: changed},
		{ID: "CONC-06", Title: "an instance that is busy does not block another", given: provisioning, settles: true,
			story: func(s *scene) {
				s.asked(set("/v2/service_instances/$instance2"+async, provision), made)
			}},
		{ID: "CONC-08", Since: 14, Title: "an unbind while the instance is being updated is refused for now, or done",
			given: bound, needs: needs{twoChanges, changedAsync}, story: func(s *scene) {
				if s.asked(toUpdate(change(0)), status(202)) && s.runs(instanceOperation) {
					s.asked(toUnbind, status(422, 200, 202))
				}
			}},
		{ID: "CONC-09", Since: 15, Title: "a provision that a deletion overtook does not come back", given: provisioning,
			needs: needs{anyPlan}, settles: true, story: func(s *scene) {
				s.underWay()
				a, ok := s.send(toDeprovision)
				if !ok || !s.checked(a, status(202, 200, 422)) || a.status == 422 || !s.ends(instanceOperation, succeeded, gone) {
					return
				}
				for range 10 {
					if !sleep(s.ctx, 3*firstPause) || !s.nothingAt(instance) {
						return
					}
				}
			}},
		{ID: "CONC-07", Since: 14, Title: "of two updates at once, one is refused", given: ready,
			needs: needs{twoChanges, changedAsync}, story: func(s *scene) {
				var mu sync.Mutex
				accepted := 0
				s.all(2, func(n int) {
					a, ok := s.send(toUpdate(change(n)))
					if ok && s.checked(a, status(202, 200, 422)) && a.status != 422 {
						mu.Lock()
						defer mu.Unlock()
						accepted++
					} else if ok && a.status == 422 {
						s.checked(a, busy)
					}
				})
				if accepted == 0 {
					s.fail("CONC-07", "PATCH "+s.text(instance)+", two at once", "one to be accepted", "none")
				}
				s.settle(instanceOperation)
			}},
	}
}
