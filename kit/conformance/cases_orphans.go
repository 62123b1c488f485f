package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

func orphanCases() []Case {
	return []Case{
		{ID: "ORB-01", Title: "a deletion of an instance never seen is 410", needs: needs{inCatalog},
			steps: []step{{toDeprovision, status(410)}, {toDeprovision, status(410)}}},
		{ID: "ORB-01/refused", Title: "a deletion after a refused provision is 410", needs: needs{inCatalog},
			story: func(s *scene) {
				// PROV-13 is about the refusal itself.
				if a, ok := s.send(toProvision(provision.without("plan_id"))); ok && !s.taken(a, "a provision without plan_id") {
					s.asked(toDeprovision, status(410))
				}
			}},
		{ID: "ORB-02", Title: "a deletion of a binding never seen is 410", needs: needs{saysBindable}, ask: toUnbind,
			want: status(410)},
		{ID: "ORB-02/refused", Title: "a deletion after a refused bind is 410", given: ready, needs: needs{bindable},
			story: func(s *scene) {
				// BIND-04 is about the refusal itself.
				if a, ok := s.send(toBind(bind.without("plan_id"))); ok && !s.taken(a, "a bind without plan_id") {
					s.asked(toUnbind, status(410))
				}
			}},
		{ID: "ORB-03", Title: "a deletion that overtakes a provision leaves nothing", needs: needs{anyPlan}, settles: true,
			story: func(s *scene) {
				s.all(2, func(n int) {
					if n == 0 {
						_, _ = s.send(toProvision(provision))
						return
					}
					sleep(s.ctx, time.Millisecond)
					if a, ok := s.send(toDeprovision); ok {
						s.checked(a, status(410, 200, 202, 422))
					}
				})
				// Whichever came first, a deletion now works, and nothing is left after it.
				ctx, cancel := context.WithTimeout(s.ctx, s.OperationTimeout)
				defer cancel()
				for {
					a, ok := s.send(toDeprovision)
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
			needs: needs{synchronous}, settles: true, story: func(s *scene) {
				s.all(8, func(n int) { // at several moments, since the critical one is not known
					path := fmt.Sprintf("/v2/service_instances/$overtaken%d", n)
					s.all(2, func(second int) {
						if second == 0 {
							_, _ = s.send(set(path, provision))
							return
						}
						sleep(s.ctx, time.Duration(n)*time.Millisecond)
						if a, ok := s.send(remove(path + ids)); ok {
							s.checked(a, status(200, 410, 422))
						}
					})
				})
			}},
		{ID: "ORB-06", Title: "an instance whose provision failed can be removed by a client that cannot wait",
			given: provisionFailed, ask: remove(instance + ids), want: status(200, 410)},
		{ID: "ORB-07", Title: "no request is answered 5xx", watched: true},
	}
}
