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
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// lands lets a call to the cloud arrive, long after its sender gave it up.
func (w *world) lands(call func(p *cloudtest.Provider) (provider.Status, error)) {
	w.Helper()
	before := w.held()
	expect.Get(call(w.demo()))(w)
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

func (w *world) lateInstance(i lifecycle.Record) func(p *cloudtest.Provider) (provider.Status, error) {
	return func(p *cloudtest.Provider) (provider.Status, error) {
		return p.Provision(context.Background(), provider.Instance{Broker: testkit.Identity, Platform: "p", ID: "i",
			Incarnation: i.Incarnation, ServiceID: service(), PlanID: planAsyncBind(),
			Operation: provider.Operation{ID: i.Incarnation, Kind: operation.Provision, Started: w.clock}})
	}
}

func TestWhatComesLateIsRemoved(t *testing.T) {
	tests := map[string]struct {
		before func(w *world)
		key    lifecycle.Key
		call   func(w *world) func(p *cloudtest.Provider) (provider.Status, error)
	}{
		"Instance": {done(provision, deprovision), instanceKey,
			func(w *world) func(*cloudtest.Provider) (provider.Status, error) { return w.lateInstance(w.instance()) }},
		"Binding": {done(provision, bind, unbind), bindingKey, lateBinding},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(w)
			held := w.held()
			w.lands(tc.call(w))
			before := w.recorded(tc.key)
			w.clock = before.LateLook.Add(-time.Second)
			w.restForLong()
			after := w.recorded(tc.key)
			if w.held() != held || !after.LateLook.IsZero() || after.State != lifecycle.Deleted ||
				!after.Due.Equal(after.Expires) ||
				len(after.Leases) != 0 {
				t.Errorf("%d things exist, want %d; the tombstone is %+v", w.held(), held, after)
			}
			expect.Same(t, "LOP-19: the operation that platforms see", before.Operation, after.Operation)
		})
	}
}

func lateBinding(w *world) func(p *cloudtest.Provider) (provider.Status, error) {
	return func(p *cloudtest.Provider) (provider.Status, error) {
		c := w.recorded(bindingKey)
		return p.Bind(context.Background(), provider.Binding{
			Instance: provider.Instance{Broker: testkit.Identity, Platform: "p", ID: "i",
				Incarnation: w.instance().Incarnation, ServiceID: service(), PlanID: planAsyncBind(),
				Operation: provider.Operation{ID: c.Operation.ID, Kind: operation.Bind, Started: w.clock}},
			ID: "b", Incarnation: c.Incarnation, Secret: make([]byte, 32),
		})
	}
}

// begunLook is a tombstone that an execution is about to look at.
func begunLook(t *testing.T) (*world, workflow.Ref) {
	t.Helper()
	w := newWorld(t)
	done(provision, deprovision)(w)
	w.lands(w.lateInstance(w.instance()))
	w.clock = w.instance().LateLook
	report, err := w.reaper().Sweep(context.Background())
	if err != nil || report.Looks != 1 || len(w.started) != 1 {
		t.Fatalf("report %+v, started %v, error %v", report, w.started, err)
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
	w.must(provision)
	w.rest()
	w.drive(context.Background(), ref)
	if i := w.instance(); w.held() != 2 || i.State != lifecycle.Ready {
		t.Errorf("%d things exist, the instance is %q", w.held(), i.State)
	}
	w.clock = w.clock.Add(lifecycle.LateLookAgain)
	w.restForLong()
	if i := w.instance(); w.held() != 1 || i.State != lifecycle.Ready {
		t.Errorf("%d things exist, the instance is %q", w.held(), i.State)
	}
	former, err := w.ledger().Record(t.Context(), was.Key.Former(was.Incarnation), w.clock)
	if err != nil || former.State != lifecycle.Deleted || !former.LateLook.IsZero() || former.Operation.ID != was.Operation.ID {
		t.Errorf("the record that was set aside is %+v, %v", former, err)
	}
}

// A creation waits for no call of the life before: that one cannot reach what it makes.
// The record that was set aside has the lease of the call, and waits for it.
func TestACreationWaitsForNoLateLook(t *testing.T) {
	w, ref := begunLook(t)
	was := w.instance()
	looker := w.with(func(context.Context) (provider.Status, error) {
		w.must(provision)
		w.rest()
		return provider.Status{Done: true}, nil
	})
	w.settles(looker, ref)
	former, err := w.ledger().Record(t.Context(), was.Key.Former(was.Incarnation), w.clock)
	if i := w.instance(); err != nil || len(i.Leases) != 0 || i.State != lifecycle.Ready || len(former.Leases) != 1 {
		t.Errorf("the instance is %q, leases %v, and those of its former life %v, %v", i.State, i.Leases, former.Leases, err)
	}
	w.clock = former.Leases[0].Until
	w.restForLong()
	if i := w.instance(); w.held() != 1 || i.State != lifecycle.Ready {
		t.Errorf("%d things exist, the instance is %q", w.held(), i.State)
	}
}

// A look that fails, or sees that something is left, is made again later.
func TestALateLookIsRepeated(t *testing.T) {
	faults := map[string]error{"Fault": errors.New("throttled"), "Failure": provider.Failf("no"), "InProgress": nil}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			w, ref := begunLook(t)
			outcome, err := w.with(answers(provider.Status{}, fault)).Step(context.Background(), ref)
			if err != nil || !outcome.Settled {
				t.Fatalf("%+v %v", outcome, err)
			}
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
	deletion := refOf(w.must(deprovision), 1)
	slow := w.with(answers(provider.Status{}, context.DeadlineExceeded))
	outcome, err := slow.Step(context.Background(), deletion)
	if err != nil || outcome.Wait < lifecycle.SecondLook {
		t.Fatalf("after a call that timed out: %+v %v, want a wait of %v", outcome, err, lifecycle.SecondLook)
	}
	w.clock = w.clock.Add(outcome.Wait)
	w.drive(context.Background(), deletion)
	if c := w.instance(); c.State != lifecycle.Deleted || len(c.Leases) != 1 {
		t.Errorf("the instance is %q, with leases %v", c.State, c.Leases)
	}
	w.must(provision)
	w.rest()
	if i := w.instance(); i.State != lifecycle.Ready || w.held() != 1 || len(i.Leases) != 0 {
		t.Errorf("the instance is %q, %d things exist, leases %v", i.State, w.held(), i.Leases)
	}
}

// A laptop falls asleep while a step is in the middle of its call, and wakes up
// hours later: its lease counts all the same, and a deletion waits for it.
func TestASleepingMachineLosesNoLease(t *testing.T) {
	w := newWorld(t)
	w.alone = true
	create := refOf(w.must(provision), 1)
	var both *worker.Worker
	var remove workflow.Ref
	asleep := true
	both = w.with(func(context.Context) (provider.Status, error) {
		if !asleep {
			return provider.Status{Done: true}, nil
		}
		w.clock, asleep = w.clock.Add(3*time.Hour), false
		remove = refOf(w.must(deprovision), 1)
		if outcome, err := both.Step(context.Background(), remove); err != nil || outcome.Settled || outcome.Wait <= 0 ||
			outcome.Wait > 10*time.Second {
			t.Errorf("the deletion did not wait: %+v %v", outcome, err)
		}
		return provider.Status{Done: true}, nil
	})
	w.settles(both, create)
	// Its lease was given up, so that one look is enough.
	w.settles(both, remove)
}

// After a restart, no lease of the process before counts: not even if the clock
// has been set back meanwhile.
func TestARestartEndsAllLeases(t *testing.T) {
	for name, by := range map[string]time.Duration{"ClockSetBack": -time.Hour, "ClockGoesOn": time.Second,
		"ClockSetForward": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.alone = true
			create := refOf(w.must(provision), 1)
			dying := w.with(func(context.Context) (provider.Status, error) { panic(died{}) })
			if w.alive(func() { _, _ = dying.Step(context.Background(), create) }) {
				t.Fatal("the step lived on")
			}
			w.clock = w.clock.Add(by)
			remove := refOf(w.must(deprovision), 1)
			next := w.with(finished)
			w.settles(next, remove)
		})
	}
}

// A call whose time was up may still land: its lease counts until it runs out,
// and one look does not prove an absence then.
func TestALostCallCountsAlsoAlone(t *testing.T) {
	w := newWorld(t)
	w.alone = true
	create := refOf(w.must(provision), 1)
	timedOut := true
	both := w.with(func(context.Context) (provider.Status, error) {
		if timedOut {
			timedOut = false
			return provider.Status{}, context.DeadlineExceeded
		}
		return provider.Status{Done: true}, nil
	})
	w.step(both, create)
	remove := refOf(w.must(deprovision), 1)
	began, settled := w.clock, false
	for range 100 {
		outcome := w.step(both, remove)
		if settled = outcome.Settled; settled {
			break
		}
		w.clock = w.clock.Add(outcome.Wait)
	}
	if waited := w.clock.Sub(began); !settled || waited < 2*time.Minute {
		t.Errorf("settled %v, after %v", settled, waited)
	}
}
