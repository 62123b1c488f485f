package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

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
		{ID: "ORB-06", Title: "an instance whose provision failed can be removed by a client that cannot wait",
			given: provisionFailed,
			steps: []step{{remove(instance + ids), status(200, 410)}}},
		{ID: "ORB-07", Title: "no request is answered 5xx", watched: true, needs: []need{inCatalog}, story: tour},
	}
}
