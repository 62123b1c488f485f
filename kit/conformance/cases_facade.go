package conformance

import (
	"net/http"
	"slices"
)

// statusOf wants the body of a status resource to be in a state; an empty state stands for any.
func statusOf(w want, state string) want {
	return w.that(func(_ *scene, a response) (string, string) {
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

// location asks for the status resource that the last answer named.
func location() request { return get("$location") }

func atStatus(id string, title string, g given, q request, w want, needs ...need) Case {
	return Case{ID: id, Title: title, given: g, needs: append([]need{facade}, needs...), ask: q, want: w}
}

func tellsWhenToAsk(_ *scene, a response) (string, string) {
	if !seconds.MatchString(a.header.Get("Retry-After")) {
		return "Retry-After in seconds", "none"
	}
	return "", ""
}

func tellsWhereToAsk(s *scene, a response) (string, string) {
	if a.header.Get("Location") == "" {
		return "a Location", "none"
	}
	return tellsWhenToAsk(s, a)
}

func tellsNoTime(_ *scene, a response) (string, string) {
	if a.header.Get("Retry-After") != "" {
		return "no Retry-After", "one"
	}
	return "", ""
}

func facadeCases() []Case { return slices.Concat(operationStatusCases(), statusResourceCases()) }

// operationStatusCases are about the course of an operation, as its status resource shows it.
func operationStatusCases() []Case {
	return []Case{
		atStatus("FAC-01", "a 202 names a status resource, and when to ask it", given{}, toProvision(provision),
			status(202).that(tellsWhereToAsk), asynchronous),
		atStatus("FAC-01/delete", "so does the 202 of a deletion", ready, toDeprovision, status(202).that(tellsWhereToAsk),
			deletedAsync),
		atStatus("FAC-02", "a request that is refused has no status resource", given{}, toProvision(provision.without("plan_id")),
			status(400).header("Location", "")),
		atStatus("FAC-03", "a pending operation is 202", provisioning, location(),
			statusOf(status(202, 200), "").that(tellsWhenToAsk)),
		atStatus("FAC-04", "the body tells state and conditions", provisioning, location(),
			statusOf(status(202, 200), "Creating")),
		{ID: "FAC-06", Title: "a finished provision leads to the instance", given: readyLater, needs: needs{facade, fetchable},
			story: func(s *scene) {
				a, ok := s.send(location())
				if !ok || !s.checked(a, statusOf(status(302, 303), "")) {
					return
				}
				s.remember("location", a.header.Get("Location"))
				s.asked(location(), status(200).has("plan_id", "$plan"))
			}},
		{ID: "FAC-07", Title: "a finished bind leads to the binding", given: bound,
			needs: needs{facade, bindAsync, bindFetchable}, story: func(s *scene) {
				a, ok := s.send(location())
				if !ok || !s.checked(a, status(302, 303)) {
					return
				}
				s.remember("location", a.header.Get("Location"))
				s.asked(location(), status(200).that(sameGrant))
			}},
		{ID: "FAC-08", Title: "a finished deletion is 200", given: ready, needs: needs{facade, deletedAsync},
			story: func(s *scene) {
				if s.asked(toDeprovision, status(202)) && s.ends(instanceOperation, succeeded, gone) {
					s.asked(location(), status(200, 204).header("Location", ""))
				}
			}},
		atStatus("FAC-09", "a failure stays a 4xx", provisionFailed, location(),
			statusOf(status(422, 400, 404, 409, 410, 424), "Failed")),
		{ID: "FAC-10", Title: "a pending provision can be cancelled", given: provisioning, settles: true,
			needs: needs{facade, anyPlan}, story: func(s *scene) {
				if cancelled(s) {
					s.asked(get(instance), status(404))
					s.asked(toPoll, status(200, 410, 404))
				}
			}},
		atStatus("FAC-10/finished", "a finished operation cannot be cancelled", readyLater, remove("$location"),
			status(409, 404, 405, 410)),
		{ID: "FAC-11", Title: "the status of a cancelled operation says so", given: provisioning, settles: true,
			needs: needs{facade, anyPlan}, story: func(s *scene) {
				if cancelled(s) {
					s.asked(location(), statusOf(status(409, 410, 422), "Cancelled"))
				}
			}},
		{ID: "FAC-12", Title: "an unknown status resource is 404", given: provisioning, settles: true, needs: needs{facade},
			story: func(s *scene) {
				v := s.value("location")
				s.remember("location", v[:len(v)-len(v)/8]+"x")
				s.asked(location(), status(404))
			}},
	}
}

// statusResourceCases are about the status resource itself.
func statusResourceCases() []Case {
	return []Case{
		atStatus("FAC-13", "a status resource wants credentials", provisioning, location().with("Authorization", ""),
			status(401)),
		atStatus("FAC-13/version", "a status resource wants no version", provisioning, location().with(versionHeader, ""),
			status(202, 200, 412)),
		atStatus("FAC-14", "a status is not to be cached", provisioning, location(),
			status(202, 200).that(func(_ *scene, a response) (string, string) {
				if a.header.Get("Cache-Control") != "no-store" {
					return "Cache-Control: no-store", a.header.Get("Cache-Control")
				}
				return "", ""
			})),
		{ID: "FAC-15", Title: "the status resource agrees with the last operation", given: provisioning,
			needs: needs{facade, anyPlan, fetchable}, settles: true, story: func(s *scene) {
				if s.ends(instanceOperation, succeeded) {
					s.asked(location(), status(302, 303))
				}
			}},
		atStatus("FAC-17", "a status outlives the operation", readyLater, location(), status(302, 303), fetchable),
		{ID: "FAC-18", Title: "asking for a status changes nothing", given: provisioning, needs: needs{facade, anyPlan},
			settles: true, story: func(s *scene) {
				s.all(5, func(int) { s.asked(location(), status(202, 200, 302, 303)) })
				s.ends(instanceOperation, succeeded)
			}},
		atStatus("FAC-19", "a deletion that runs is Deleting", deleting, location(), statusOf(status(202, 200), "Deleting")),
		atStatus("FAC-19/update", "an update that runs is Updating", updating, location(),
			statusOf(status(202, 200), "Updating")),
		atStatus("FAC-19/bind", "a bind that runs is Binding", bindRunning, location(), statusOf(status(202, 200), "Binding")),
		atStatus("FAC-20", "an answer that is final names no time to ask again", given{}, provisionAtOnce,
			status(201).that(tellsNoTime), synchronous),
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
		s.atOnce = ok && a.status < 500 && s.ended() // the operation had ended already
		return false
	}
	if _, known := s.known("operation"); !known {
		return false
	}
	return s.ends(instanceOperation, failed, gone)
}
