package conformance

import "net/http"

func unbindCases() []Case {
	still := step{get(binding), status(200)}
	missing := func(id string, title, query string) Case {
		return Case{ID: id, Since: 14, Title: title, given: bound, needs: needs{bindFetchable},
			steps: []step{{remove(binding + query), status(400)}, still}}
	}
	return []Case{
		{ID: "UNB-01", Title: "a synchronous unbind is answered 200", given: bound, needs: needs{bindSync},
			ask: remove(binding + ids), want: status(200)},
		{ID: "UNB-01/2.9", speaks: 9, Title: "a synchronous unbind of version 2.9 is answered 200", given: bound,
			needs: needs{bindSync}, ask: remove(binding + ids).as(9), want: status(200)},
		{ID: "UNB-02/unknown", Title: "an unknown binding is 410", given: ready, needs: needs{bindable}, ask: toUnbind,
			want: status(410)},
		{ID: "UNB-02/instance", Title: "a binding of an unknown instance is 410", needs: needs{saysBindable}, ask: toUnbind,
			want: status(410)},
		{ID: "UNB-02/elsewhere", Title: "a binding cannot be deleted through another instance", given: bound,
			ask: remove(elsewhere + asyncIDs), want: status(410)},
		{ID: "UNB-02/2.9", speaks: 9, Title: "an unknown binding is 410 for version 2.9", given: ready, needs: needs{bindable},
			ask: toUnbind.as(9), want: status(410)},
		{ID: "UNB-03", Title: "a second unbind is 410", given: unbound, ask: toUnbind, want: status(410)},
		missing("UNB-04/service_id", "an unbind without service_id is refused", async+"&plan_id=$plan"),
		missing("UNB-04/plan_id", "an unbind without plan_id is refused", async+"&service_id=$service"),
		missing("UNB-04/both", "an unbind without either is refused", async),
		missing("UNB-04/empty", "an unbind with an empty plan_id is refused", async+"&service_id=$service&plan_id="),
		{ID: "UNB-05", Title: "an unbind in the name of another plan succeeds, or is refused", given: bound,
			ask: remove(binding + async + "&service_id=$service&plan_id=$unknown"), want: status(200, 202, 400)},
		{ID: "UNB-06", Since: 14, Title: "an asynchronous unbind is answered 202", given: bound, needs: needs{bindAsyncOnly},
			ask: toUnbind, want: status(202, 200)},
		{ID: "UNB-06/refused", Since: 14, Title: "a plan that unbinds only asynchronously refuses a client that cannot wait",
			given: bound, needs: needs{bindAsyncOnly}, story: func(s *scene) {
				if a, ok := s.send(remove(binding + ids)); ok && a.status != http.StatusOK {
					s.checked(a, cannotWait)
				}
			}},
		{ID: "UNB-06/again", Since: 14, Title: "an unbind that is sent again while it runs names the same operation",
			given: unbinding, ask: toUnbind, want: status(202).sameOperation()},
		{ID: "UNB-07", speaks: 13, Title: "an unbind of a client before 2.14 is not answered 202", given: bound,
			needs: needs{bindSync}, ask: toUnbind.as(13), want: status(200, 422)},
		{ID: "UNB-07/async-only", Since: 14, speaks: 13, Title: "nor by a plan that unbinds only asynchronously", given: bound,
			needs: needs{bindAsyncOnly}, ask: toUnbind.as(13), want: status(422, 200)},
		{ID: "UNB-08", Since: 15, Title: "an unbind while the bind runs is accepted, or refused for now", given: bindRunning,
			settles: true, story: func(s *scene) {
				s.underWay()
				a, ok := s.send(toUnbind)
				if !ok || !s.checked(a, refusedOr(concurrencyError, 202, 200, 410)) || a.status == http.StatusAccepted &&
					!s.ends(bindingOperation, succeeded, gone) {
					return
				}
				if a.status/100 == 2 {
					s.nothingAt(binding)
				}
			}},
		{ID: "UNB-10", Title: "an unbind of an instance whose update failed succeeds", needs: needs{changeFailing, bindSync},
			given: bound, story: func(s *scene) {
				if s.asked(toUpdate(change(0)), status(202)) && s.ends(instanceOperation, failed) {
					s.asked(toUnbind, removed)
				}
			}},
		{ID: "UNB-10/failed", Title: "an unbind under an instance whose provision failed is 410", given: provisionFailed,
			ask: toUnbind, want: status(410, 200)},
	}
}

func deprovisionCases() []Case {
	missing := func(id string, title, query string) Case {
		return Case{ID: id, Title: title, given: ready, ask: remove(instance + query), want: status(400)}
	}
	return []Case{
		{ID: "DEPR-01", Title: "a synchronous deprovision is answered 200", given: ready, needs: needs{deletedSync},
			ask: remove(instance + ids), want: status(200)},
		{ID: "DEPR-01/2.9", speaks: 9, Title: "a synchronous deprovision of version 2.9 is answered 200", given: ready,
			needs: needs{deletedSync}, ask: remove(instance + ids).as(9), want: status(200)},
		{ID: "DEPR-02", Title: "an asynchronous deprovision is answered 202, and ends", given: ready, needs: needs{deletedAsync},
			story: func(s *scene) {
				if s.asked(toDeprovision, status(202)) {
					s.ends(instanceOperation, succeeded, gone)
				}
			}},
		{ID: "DEPR-02/2.9", speaks: 9, Title: "an asynchronous deprovision of version 2.9 is answered 202", given: ready,
			needs: needs{deletedAsync}, ask: toDeprovision.as(9), want: status(202)},
		{ID: "DEPR-03", Title: "an unknown instance is 410", needs: needs{inCatalog}, ask: toDeprovision, want: status(410)},
		{ID: "DEPR-03/sync",
			Title: "an unknown instance of a plan that is only asynchronous is 410, or refused to a client that cannot wait",
			needs: needs{asyncOnly}, ask: remove(instance + ids), want: status(410, 422)},
		{ID: "DEPR-04", Title: "a second deprovision is 410", given: deleted, ask: toDeprovision, want: status(410)},
		{ID: "DEPR-04/async", Title: "a second deprovision after an asynchronous one is 410", given: deleted,
			needs: needs{deletedAsync}, ask: toDeprovision, want: status(410)},
		missing("DEPR-05/service_id", "a deprovision without service_id is refused", async+"&plan_id=$plan"),
		missing("DEPR-05/plan_id", "a deprovision without plan_id is refused", async+"&service_id=$service"),
		missing("DEPR-05/both", "a deprovision without either is refused", async),
		missing("DEPR-05/empty", "a deprovision with an empty service_id is refused", async+"&service_id=&plan_id=$plan"),
		{ID: "DEPR-06", Title: "a plan that is only asynchronous refuses a client that cannot wait", given: ready,
			needs: needs{asyncOnly, deletedAsync}, ask: remove(instance + ids), want: cannotWait},
		{ID: "DEPR-07", Since: 14, Title: "a deprovision that is sent again while it runs names the same operation",
			given: deleting, ask: toDeprovision, want: status(202).sameOperation()},
		{ID: "DEPR-07/refused", Title: "it is refused to a client that cannot wait", given: deleting, needs: needs{asyncOnly},
			ask: remove(instance + ids), want: cannotWait},
		{ID: "DEPR-08", Since: 15, Title: "a deprovision while provisioning is accepted, or refused for now", given: provisioning,
			settles: true, story: func(s *scene) {
				s.underWay()
				a, ok := s.send(toDeprovision)
				if !ok || !s.checked(a, refusedOr(concurrencyError, 202, 200)) {
					return
				}
				if a.status == http.StatusAccepted && !s.ends(instanceOperation, succeeded, gone) || a.status == 422 {
					return
				}
				s.nothingAt(instance)
			}},
		{ID: "DEPR-09", Since: 14, Title: "a deprovision while updating is refused", given: updating, ask: toDeprovision,
			want: busy},
		{ID: "DEPR-10", Title: "an instance with bindings is deprovisioned with them, or refused", given: bound,
			needs: needs{bindSync}, story: func(s *scene) {
				a, ok := s.send(toDeprovision)
				if !ok || !s.checked(a, status(200, 202, 400, 422)) || a.status >= 400 || !s.done(a, instanceOperation) {
					return
				}
				s.asked(toUnbind, status(410))
			}},
		{ID: "DEPR-11", Title: "force=true does no harm", ask: remove(instance + asyncIDs + "&force=true"), want: status(410)},
		{ID: "DEPR-12", Title: "an instance whose provision failed can be removed", given: provisionFailed,
			story: func(s *scene) {
				a, ok := s.send(toDeprovision)
				if !ok || !s.checked(a, status(200, 202, 410)) ||
					a.status == http.StatusAccepted && !s.ends(instanceOperation, succeeded, gone) {
					return
				}
				s.asked(toDeprovision, status(410))
			}},
		{ID: "DEPR-14", Title: "a deprovision in the name of another plan succeeds, or is refused", given: ready,
			ask: remove(instance + async + "&service_id=$service&plan_id=$unknown"), want: status(200, 202, 400)},
		{ID: "DEPR-16/fetch", Since: 14, Title: "a deleted instance cannot be updated or bound", given: deleted,
			needs: needs{bindable},
			steps: []step{{toUpdate(update), status(404, 410, 400, 422)}, {toBind(bind), status(404, 400, 410, 422)}}},
		{ID: "DEPR-17", Title: "a synchronous plan is deprovisioned also for a client that can wait", given: ready,
			needs: needs{synchronous}, story: func(s *scene) {
				a, ok := s.send(toDeprovision)
				if ok && s.checked(a, removed) && a.status == http.StatusAccepted {
					s.ends(instanceOperation, succeeded, gone)
				}
			}},
	}
}
