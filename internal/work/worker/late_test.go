package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// lands lets a call to the cloud arrive, long after its sender gave it up.
func (w *world) lands(call func(w *world) (provider.Status, error)) {
	w.Helper()
	before := w.held()
	expect.Get(call(w))(w)
	if w.held() != before+1 {
		w.Fatal("the late call made nothing: the test would prove nothing")
	}
}

// restForLong is rest for as long as looks are repeated.
func (w *world) restForLong() {
	w.Helper()
	for range 3 {
		w.rest()
		w.clock = w.clock.Add(lifecycle.LateLookAgain)
	}
	w.rest()
}

// told is the instance "i" as an operation of its provider is told of it.
func (w *world) told(kind operation.Kind, id string) provider.Instance {
	return provider.Instance{Broker: testkit.Identity, Platform: "p", ID: "i", Incarnation: w.instance().Incarnation,
		ServiceID: service(), PlanID: planAsyncBind(), Operation: provider.Operation{ID: id, Kind: kind, Started: w.clock}}
}

func lateInstance(w *world) (provider.Status, error) {
	return w.demo().Provision(context.Background(), w.told(operation.Provision, w.instance().Incarnation))
}

func lateBinding(w *world) (provider.Status, error) {
	c := w.recorded(bindingKey)
	return w.demo().Bind(context.Background(), provider.Binding{Instance: w.told(operation.Bind, c.Operation.ID), ID: "b",
		Incarnation: c.Incarnation, Secret: make([]byte, 32)})
}

func TestWhatComesLateIsRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(w *world)
		key    lifecycle.Key
		call   func(w *world) (provider.Status, error)
	}{
		"Instance": {done(provision, deprovision), instanceKey, lateInstance},
		"Binding":  {done(provision, bind, unbind), bindingKey, lateBinding},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(w)
			held := w.held()
			w.lands(tc.call)
			before := w.recorded(tc.key)
			w.clock = before.LateLook.Add(-time.Second)
			w.restForLong()
			after := w.recorded(tc.key)
			if w.held() != held || !after.LateLook.IsZero() || after.State != lifecycle.Deleted ||
				!after.Due.Equal(after.Expires) || len(after.Leases) != 0 {
				t.Errorf("%d things exist, want %d; the tombstone is %+v", w.held(), held, after)
			}
			expect.Same(t, "LOP-19: the operation that platforms see", before.Operation, after.Operation)
		})
	}
}

// begunLook is a tombstone that an execution is about to look at.
func begunLook(t *testing.T) (*world, workflow.Ref) {
	t.Helper()
	w := newWorld(t)
	done(provision, deprovision)(w)
	w.lands(lateInstance)
	w.clock = w.instance().LateLook
	if report := w.sweep(); report.Looks != 1 || len(w.started) != 1 {
		t.Fatalf("report %+v, started %v", report, w.started)
	}
	for _, ref := range w.started {
		return w, ref
	}
	panic("unreachable")
}

// An id that is used again is another instance: a look that was under way does nothing to
// it, and is made again by the record that was set aside.
func TestALateLookLeavesASuccessorAlone(t *testing.T) {
	w, ref := begunLook(t)
	was := w.instance()
	done(provision)(w)
	w.drive(w.worker(), ref)
	w.left("after the look that was under way", instanceKey, lifecycle.Ready, 2)
	w.clock = w.clock.Add(lifecycle.LateLookAgain)
	w.restForLong()
	w.left("after the next look", instanceKey, lifecycle.Ready, 1)
	former := w.recorded(was.Key.Former(was.Incarnation))
	if former.State != lifecycle.Deleted || !former.LateLook.IsZero() || former.Operation.ID != was.Operation.ID {
		t.Errorf("the record that was set aside is %+v", former)
	}
}

// A creation waits for no call of the life before: that one cannot reach what it makes.
// The record that was set aside has the lease of the call, and waits for it.
func TestACreationWaitsForNoLateLook(t *testing.T) {
	w, ref := begunLook(t)
	was := w.instance()
	w.settles(w.with(func(context.Context) (provider.Status, error) {
		done(provision)(w)
		return provider.Status{Done: true}, nil
	}), ref)
	w.left("beside the look", instanceKey, lifecycle.Ready, 2)
	former := w.recorded(was.Key.Former(was.Incarnation))
	if len(former.Leases) != 1 {
		t.Fatalf("the leases of its former life are %v", former.Leases)
	}
	w.clock = former.Leases[0].Until
	w.restForLong()
	w.left("after the next look", instanceKey, lifecycle.Ready, 1)
}

// A look that fails, or sees that something is left, is made again later.
func TestALateLookIsRepeated(t *testing.T) {
	faults := map[string]error{"Fault": errors.New("throttled"), "Failure": provider.Failf("no"), "InProgress": nil}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			w, ref := begunLook(t)
			w.settles(w.with(answers(provider.Status{}, fault)), ref)
			if c := w.instance(); c.LateLook.IsZero() || !c.Due.Equal(w.clock.Add(lifecycle.LateLookAgain)) ||
				len(c.Leases) != 0 {
				t.Errorf("the tombstone is %+v", c)
			}
			w.restForLong()
			expect.Same(t, "things that came late", 0, w.held())
		})
	}
}

// A call of a deletion that timed out may still land when the deletion is done: what is
// made next with the id is out of its reach.
func TestACreationWaitsForNoStepOfTheDeletionBefore(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	deletion := w.asks(deprovision)
	wait := w.waits(w.with(answers(provider.Status{}, context.DeadlineExceeded)), deletion)
	if wait < lifecycle.SecondLook {
		t.Fatalf("after a call that timed out: a wait of %v, want %v", wait, lifecycle.SecondLook)
	}
	w.clock = w.clock.Add(wait)
	w.drive(w.worker(), deletion)
	if c := w.instance(); c.State != lifecycle.Deleted || len(c.Leases) != 1 {
		t.Errorf("the instance is %q, with leases %v", c.State, c.Leases)
	}
	done(provision)(w)
	w.left("the next instance", instanceKey, lifecycle.Ready, 1)
}

// After a restart, no lease of the process before counts: not even if the clock has been set back meanwhile.
func TestARestartEndsAllLeases(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			w := newWorld(t)
			w.alone = true
			w.dies(w.asks(provision))
			w.clock = w.clock.Add(by)
			w.settles(w.with(finished), w.asks(deprovision))
		})
	}
}

// A call whose time was up may still land: its lease counts until it runs out,
// and one look does not prove an absence then.
func TestALostCallCountsAlsoAlone(t *testing.T) {
	w := newWorld(t)
	w.alone = true
	create := w.asks(provision)
	gives := context.DeadlineExceeded
	by := w.with(func(context.Context) (provider.Status, error) { return provider.Status{Done: gives == nil}, gives })
	w.step(by, create)
	gives = nil
	remove, began := w.asks(deprovision), w.clock
	w.drive(by, remove)
	if waited := w.clock.Sub(began); waited < 2*time.Minute {
		t.Errorf("settled after %v", waited)
	}
}
