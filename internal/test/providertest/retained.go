package providertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
)

// retention is how long what the suite deletes is retained.
const retention = 7 * 24 * time.Hour

// adopter is the inventory, if it can retain.
func (s *scene) adopter() provider.Adopter {
	s.t.Helper()
	a, ok := s.Inventory.(provider.Adopter)
	if !ok {
		s.t.Skip("this provider retains nothing")
	}
	return a
}

// holding is an instance's thing as its record tells it.
func (s *scene) holding(in request) provider.Holding {
	of := s.watch.records.instance(in.instance)
	return provider.Holding{Tags: in.tags(), PlanID: in.instance.PlanID, Target: of.Target, State: of.State, Epoch: of.Epoch}
}

// put drives what an inventory does with a thing to its good end.
func (s *scene) put(act func(context.Context, provider.Holding) error, h provider.Holding) {
	s.t.Helper()
	if _, f := Drive(s.t, s.Clock, putting(act, h)); f != nil {
		s.t.Fatalf("it failed: %s", f.Message)
	}
}

// putting is a step of it.
func putting(act func(context.Context, provider.Holding) error, h provider.Holding) Step {
	return func(ctx context.Context) (provider.Status, error) { return provider.Status{Done: true}, act(ctx, h) }
}

// adopting has a thing be another owner's.
func adopting(a provider.Adopter, former provider.Tags) func(context.Context, provider.Holding) error {
	return func(ctx context.Context, h provider.Holding) error { return a.Adopt(ctx, h, former) }
}

// retain deletes an instance as a worker does whose plan retains it.
func (s *scene) retain(in request) provider.Holding {
	s.t.Helper()
	h := s.holding(in)
	h.RetainedUntil = s.Clock.Now().Add(retention)
	s.put(s.adopter().Quarantine, h)
	return h
}

// undeleted is the request for an instance that is to have what was made for another one.
func (s *scene) undeleted(old request, id string) request {
	r := s.provision(old.instance.Platform, id)
	r.instance.Origin = old.instance.Origin
	if old.instance.Origin == (provider.Origin{}) {
		r.instance.Origin = provider.Origin{Instance: old.instance.ID, Incarnation: old.instance.Incarnation}
	}
	s.watch.records.copied(old.tags(), r.tags())
	return r
}

// kept requires that the inventory lists a thing of the owner, retained until the date.
func (s *scene) kept(owner request, until time.Time) {
	s.t.Helper()
	held := s.held(owner.tags())
	if len(held) != 1 || !held[0].RetainedUntil.Equal(until) {
		s.t.Errorf("the inventory holds %+v, want one of %+v until %v", held, owner.tags(), until)
	}
}

// refusesAll requires that no grant opens.
func (s *scene) refusesAll(when string, grants ...*provider.Grant) {
	s.t.Helper()
	for i, g := range grants {
		if s.Opens(s.t, g) {
			s.t.Errorf("%s: credentials %d of the deleted instance open", when, i)
		}
	}
}

// A retained instance stays where it is, opens to nobody, and keeps its date through a
// quarantine without one. Its deletion is that of any instance.
func testRetains(t *testing.T, open stage) {
	s := open(t)
	a := s.adopter()
	first := s.provision(platform, "instance-1")
	s.must(first)
	gone, left := s.bind(first, "binding-1"), s.bind(first, "binding-2")
	grants := []*provider.Grant{s.must(gone).Grant, s.must(left).Grant}
	s.must(s.unbind(gone))
	h := s.retain(first) // with a binding that was left
	s.refusesAll("retained", grants...)
	undated := h
	undated.RetainedUntil = time.Time{}
	for _, again := range []provider.Holding{h, undated} {
		s.put(a.Quarantine, again)
		s.kept(first, h.RetainedUntil)
	}
	for _, late := range []request{first, s.update(first), s.bind(first, "binding-3")} {
		s.mustFail(late)
	}
	s.kept(first, h.RetainedUntil)
	second := s.provision(platform, "instance-1")
	s.must(second)
	if grant := s.must(s.bind(second, "binding-1")).Grant; !s.Opens(t, grant) {
		t.Error("the next life of the id does not open")
	}
	s.kept(first, h.RetainedUntil)
	longer := h
	longer.RetainedUntil = h.RetainedUntil.Add(time.Hour)
	s.put(a.Quarantine, longer)
	s.kept(first, longer.RetainedUntil)
	u := s.unbind(left)
	s.must(u)
	s.none(u)
	d := s.deprovision(first)
	for range 2 {
		s.must(d)
		s.none(d)
	}
	s.one(second)
	s.finish()
}

// A retained thing becomes another instance's, once and unchanged. Its former owner can do
// nothing with it, however late.
func testUndeletes(t *testing.T, open stage) {
	s := open(t)
	a := s.adopter()
	old := s.provision(platform, "instance-1")
	s.must(old)
	gone, left := s.bind(old, "binding-1"), s.bind(old, "binding-2")
	grants := []*provider.Grant{s.must(gone).Grant, s.must(left).Grant}
	s.must(s.unbind(gone))
	h := s.retain(old)
	made := s.undeleted(old, "instance-2")
	s.mustFail(made) // it is not its own yet
	s.kept(old, h.RetainedUntil)

	h.Tags = made.tags()
	for range 2 {
		s.put(adopting(a, old.tags()), h)
		s.kept(made, h.RetainedUntil)
	}
	for name, other := range map[string]struct {
		taker  request
		former provider.Tags
	}{
		"late":    {s.undeleted(old, "instance-3"), old.tags()},
		"unknown": {s.undeleted(old, "instance-4"), provider.TagsOf(s.ofAnother(old).instance)},
	} {
		stolen := h
		stolen.Tags = other.taker.tags()
		_, f := Drive(t, s.Clock, putting(adopting(a, other.former), stolen))
		if f == nil {
			t.Errorf("a %s owner has it", name)
		}
		s.mustFail(other.taker)
		s.must(s.deprovisionOrFail(other.taker))
	}
	s.formerCalls(old, h)
	s.kept(made, h.RetainedUntil)
	s.refusesAll("adopted", grants...)

	for range 2 {
		s.put(a.Release, h)
	}
	s.must(made)
	s.kept(made, time.Time{})
	s.formerCalls(old, h)
	s.refusesAll("undeleted", grants...)
	b := s.bind(made, "binding-1")
	if !s.Opens(t, s.must(b).Grant) {
		t.Error("undeleted, and it does not open")
	}
	s.refusesAll("bound again", grants...)
	look := s.Look(t, made.tags())
	s.must(s.update(made))
	if s.Look(t, made.tags()) == look {
		t.Error("updated, but nothing has changed")
	}
	for _, bh := range s.held(b.tags()) { // whose tags say nothing of the origin
		s.put(a.Quarantine, bh)
		s.put(a.Release, bh)
	}
	if !s.Opens(t, s.must(b).Grant) {
		t.Error("a binding that was released does not open")
	}
	s.must(s.unbind(b))

	again := s.retain(made) // and once more
	further := s.undeleted(made, "instance-5")
	again.Tags = further.tags()
	s.put(adopting(a, made.tags()), again)
	s.put(a.Release, again)
	s.must(further)
	if !s.Opens(t, s.must(s.bind(further, "binding-1")).Grant) {
		t.Error("undeleted once more, and it does not open")
	}
	s.finish()
}

// deprovisionOrFail is the end of an instance that never had anything.
func (s *scene) deprovisionOrFail(r request) request {
	d := s.deprovision(r)
	if _, f := s.run(d); f != nil { // what stands there is another one's
		return s.deprovision(s.provision(platform, "nothing"))
	}
	return d
}

// formerCalls are those that a former owner may still have on their way.
func (s *scene) formerCalls(old request, h provider.Holding) {
	s.t.Helper()
	held := s.list()
	h.Tags = old.tags()
	for _, act := range []func(context.Context, provider.Holding) error{s.adopter().Quarantine, s.adopter().Release} {
		s.put(act, h)
	}
	for _, r := range []request{old, s.update(old), s.bind(old, "binding-late")} {
		s.mustFail(r)
	}
	s.expect(s.deprovision(old), settles)
	if diff := cmp.Diff(held, s.list()); diff != "" {
		s.t.Errorf("a former owner changed what is another's (-before +after):\n%s", diff)
	}
}

// An adoption of a thing that is gone fails, and makes nothing in its place.
func testAdoptsNothing(t *testing.T, open stage) {
	s := open(t)
	a := s.adopter()
	old := s.provision(platform, "instance-1")
	s.must(old)
	h := s.retain(old)
	s.must(s.deprovision(old))
	made := s.undeleted(old, "instance-2")
	h.Tags = made.tags()
	for range 2 {
		if _, f := Drive(t, s.Clock, putting(adopting(a, old.tags()), h)); f == nil {
			t.Error("what is gone was adopted")
		}
		s.mustFail(made)
		s.none(made)
	}
	d := s.deprovision(made)
	s.must(d)
	s.none(d)
	s.finish()
}

// Two adopters race, and one of them gets the thing.
func testTwoAdopters(t *testing.T, open stage) {
	s := open(t)
	s.adopter()
	for n := range 6 {
		old := s.provision(platform, fmt.Sprintf("instance-%d", n))
		s.must(old)
		h := s.retain(old)
		takers := []request{s.undeleted(old, fmt.Sprintf("one-%d", n)), s.undeleted(old, fmt.Sprintf("other-%d", n))}
		has, ended := make([]bool, 2), make([]bool, 2)
		for try := 0; !ended[0] || !ended[1]; try++ {
			if try == MaxSteps {
				t.Fatal("two adopters come to no end")
			}
			var wg sync.WaitGroup
			for i, taker := range takers {
				if ended[i] {
					continue
				}
				_, inventory := s.Open(t, s.Broker)
				its := h
				its.Tags = taker.tags()
				wg.Go(func() {
					err := inventory.(provider.Adopter).Adopt(t.Context(), its, old.tags())
					_, failed := errors.AsType[*provider.Failure](err)
					has[i], ended[i] = err == nil, err == nil || failed
				})
			}
			wg.Wait()
			s.Clock.Advance(time.Second)
		}
		if has[0] == has[1] {
			t.Fatalf("of two that adopt at once, they have it: %v", has)
		}
		for i, taker := range takers {
			if has[i] {
				s.kept(taker, h.RetainedUntil)
				s.must(s.deprovision(taker))
			}
		}
	}
	s.finish()
}

// Every call by which an instance is retained, adopted, released, brought to its plan and
// removed goes wrong once, in each way.
func testRetentionFaults(t *testing.T, open stage) {
	for _, fault := range []Fault{Refused, Lost, Late, Killed} {
		t.Run(fault.String(), func(t *testing.T) { retentionFaults(t, open, fault) })
	}
}

func retentionFaults(t *testing.T, open stage, fault Fault) {
	s := open(t)
	s.adopter()
	for n, struck := 1, true; struck; n++ {
		if n > MaxSteps {
			t.Fatalf("it still reaches its world after %d calls", n)
		}
		struck = false
		old := s.provision(platform, fmt.Sprintf("instance-%d", n))
		s.must(old)
		grant := s.must(s.bind(old, fmt.Sprintf("binding-%d", n))).Grant
		if s.Fill != nil {
			s.Fill(t, grant)
		}
		made := s.undeleted(old, fmt.Sprintf("undeleted-%d", n))
		its := s.holding(old)
		its.RetainedUntil = s.Clock.Now().Add(retention)
		others := its
		others.Tags = made.tags()
		for _, what := range []func(provider.Adopter) Step{
			func(a provider.Adopter) Step { return putting(a.Quarantine, its) },
			func(a provider.Adopter) Step { return putting(adopting(a, old.tags()), others) },
			func(a provider.Adopter) Step { return putting(a.Release, others) },
		} {
			if s.faultedPut(what, n, fault) {
				struck = true
			}
			s.refusesAll(fmt.Sprintf("after call %d", n), grant)
		}
		_, hit := s.faulted(made, n, fault, 0)
		s.kept(made, time.Time{})
		struck = struck || hit
		b := s.bind(made, fmt.Sprintf("binding-of-it-%d", n))
		again := s.must(b).Grant
		if !s.Opens(t, again) {
			t.Errorf("after call %d it does not open", n)
		}
		if s.Holds != nil && !s.Holds(t, again) {
			t.Errorf("after call %d it does not hold what was kept in it", n)
		}
		s.refusesAll(fmt.Sprintf("undeleted after call %d", n), grant)
		s.must(s.unbind(b))
		d := s.deprovision(made)
		_, hit = s.faulted(d, n, fault, 0)
		s.must(d)
		s.none(d)
		struck = struck || hit
	}
	s.finish()
}

// faultedPut drives an act of the inventory, whose nth call goes wrong; another process
// goes on with it.
func (s *scene) faultedPut(what func(provider.Adopter) Step, n int, fault Fault) bool {
	s.t.Helper()
	struck, disarm := s.Falter(n, fault)
	defer disarm()
	first := what(s.adopter())
	_, f := Drive(s.t, s.Clock, func(ctx context.Context) (provider.Status, error) {
		if !struck() {
			st, err := first(ctx)
			if fault == Killed && struck() {
				err = ErrFault
			}
			return st, err
		}
		disarm()
		_, inventory := s.Open(s.t, s.Broker)
		return what(inventory.(provider.Adopter))(ctx)
	})
	if f != nil {
		s.t.Fatalf("with a fault at call %d, it failed: %s", n, f.Message)
	}
	return struck()
}
