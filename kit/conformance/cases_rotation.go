package conformance

import (
	"net/http"
	"time"
)

func rotationCases() []Case {
	successor := body(func(s *scene) object { return object{"predecessor_binding_id": s.value("binding")} })
	named := bind.without("app_guid", "bind_resource", "parameters").with("predecessor_binding_id", "$binding")
	rotate := func(s *scene) bool {
		a, ok := s.send(set(binding2+async, successor))
		if !ok || !s.checked(a, made) {
			return false
		}
		return a.status != http.StatusAccepted || s.ends(binding2Operation, succeeded)
	}
	return []Case{
		{ID: "ROT-01", Since: 17, Title: "a successor is made of a binding", given: bound, needs: needs{rotatable},
			ask: set(binding2+async, successor), want: made},
		{ID: "ROT-01/credentials", Since: 17, Title: "a successor has credentials of its own", given: bound,
			needs: needs{rotatable, bindSync, withGrant}, story: func(s *scene) {
				a, ok := s.send(set(binding2, successor))
				if ok && s.checked(a, status(201).has("credentials", present)) &&
					same(a.body["credentials"], s.grant["credentials"]) {
					s.fail("ROT-01", a.request, "other credentials than the predecessor's", "the same")
				}
			}},
		{ID: "ROT-02", Since: 17, Title: "a successor may name its offering and plan", given: bound, needs: needs{rotatable},
			ask: set(binding2+async, named), want: made},
		{ID: "ROT-02/other", Since: 17, Title: "a successor of another plan is refused", given: bound,
			needs: needs{rotatable, withSibling}, ask: set(binding2+async, named.with("plan_id", "$otherplan")),
			want: status(400, 422)},
		{ID: "ROT-03", Since: 17, Title: "both bindings can be fetched", given: bound, needs: needs{rotatable, bindFetchable},
			story: func(s *scene) {
				if rotate(s) {
					s.asked(get(binding), status(200))
					s.asked(get(binding2), status(200))
				}
			}},
		{ID: "ROT-04", Since: 17, Title: "a successor of an unknown binding is refused", given: bound, needs: needs{rotatable},
			ask: set(binding2+async, named.with("predecessor_binding_id", "$unknown")), want: status(400, 404, 422)},
		{ID: "ROT-05", Since: 17, Title: "a plan that does not rotate refuses", given: bound, needs: needs{notRotatable},
			ask: set(binding2+async, named), want: status(400, 422)},
		{ID: "ROT-06", Since: 17, Title: "a successor of a binding that is being made is refused for now", given: bindRunning,
			needs: needs{rotatable}, ask: set(binding2+async, named), want: busy},
		{ID: "ROT-07", Since: 17, Title: "an identical rotation is answered 200", given: bound, needs: needs{rotatable},
			story: func(s *scene) {
				if rotate(s) {
					s.asked(set(binding2+async, successor), status(200))
				}
			}},
		{ID: "ROT-07/other", Since: 17, Title: "a rotation of another binding under the same id conflicts", given: bound,
			needs: needs{rotatable}, story: func(s *scene) {
				if rotate(s) {
					s.asked(set(binding2+async,
						body(func(s *scene) object { return object{"predecessor_binding_id": s.value("unknown")} })),
						status(409, 400))
				}
			}},
		{ID: "ROT-08", Since: 17, Title: "clients before 2.17 know no rotation", given: bound, needs: needs{rotatable},
			speaks: 16, ask: set(binding2+async, successor).as(16), want: status(400)},
		{ID: "ROT-09", Since: 17, Title: "a successor ends later than its predecessor", given: bound,
			needs: needs{rotatable, bindSync}, story: func(s *scene) {
				// Most brokers give times to a tenth of a second, some only to the second.
				if !sleep(s.ctx, 1100*time.Millisecond) {
					return
				}
				a, ok := s.send(set(binding2, successor))
				if !ok || !s.checked(a, status(201)) {
					return
				}
				before, told := instantOf(text(s.grant, "metadata.expires_at"))
				after, again := instantOf(text(a.body, "metadata.expires_at"))
				if told && again && !after.After(before) {
					s.fail("ROT-09", a.request, "metadata.expires_at after "+before.String(), after.String())
				}
			}},
		{ID: "UNB-12", Since: 17, Title: "a predecessor can be unbound, and its successor stays", given: bound,
			needs: needs{rotatable, bindFetchable}, story: func(s *scene) {
				if rotate(s) && s.did(toUnbind, removed, bindingOperation) {
					s.asked(get(binding2), status(200))
				}
			}},
	}
}
