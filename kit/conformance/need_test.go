package conformance

import (
	"net/http"
	"slices"
	"testing"
)

// A case that begins with nothing and wants nothing made is asked of a plan that
// cannot be provisioned too, unless only trying shows what it is about.
func TestWhatNeedsNoInstanceNeedsNoPlanThatWorks(t *testing.T) {
	learned := []string{updatable.what, asyncOnly.what, asynchronous.what, bindAsync.what, facade.what}
	s := &service{id: "s", name: "s", bindable: true, instancesRetrievable: true, bindingsRetrievable: true}
	p := &plan{service: s, id: "p", name: "p", bindable: true, trouble: "no room", maintenance: "1.0.0",
		schemas: object{"service_instance": object{"create": object{"parameters": object{"additionalProperties": false}}}}}
	k := &Knowledge{services: []*service{s}}
	for range 2 {
		other := *p
		other.knowledge = k
		s.plans, k.plans = append(s.plans, &other), append(k.plans, &other)
	}
	k.services = append(k.services, &service{id: "t", name: "t", plans: k.plans})
	asked := 0
	for _, c := range Cases() {
		refusals := !slices.ContainsFunc(c.steps, func(s step) bool {
			asks := s.ask.method == http.MethodGet || s.ask.method == http.MethodDelete
			return !asks && (len(s.want.status) == 0 || slices.Min(s.want.status) < 400)
		})
		if c.given.reach != nil || len(c.steps) == 0 || !refusals ||
			slices.ContainsFunc(c.needs,
				func(n need) bool { return slices.Contains(learned, n.what) || n.what == unmaintained.what }) {
			continue
		}
		asked++
		if plans, reason := k.choose(c); reason != "" || len(c.needs) > 0 && len(plans) == 0 {
			t.Errorf("%s is not asked: %s", c.ID, reason)
		}
	}
	if asked < 100 {
		t.Errorf("only %d cases need no instance", asked)
	}
}
