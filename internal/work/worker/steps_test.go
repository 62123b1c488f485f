package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/work/worker"
)

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
	if outcome, err := both.Step(context.Background(), create); err != nil || !outcome.Settled {
		t.Errorf("the overtaken step: %+v %v", outcome, err)
	}
	// Its lease was given up, so that one look is enough.
	if outcome, err := both.Step(context.Background(), remove); err != nil || !outcome.Settled {
		t.Errorf("the deletion: %+v %v", outcome, err)
	}
}

// After a restart, no lease of the process before counts: not even if the clock
// has been set back meanwhile.
func TestARestartEndsAllLeases(t *testing.T) {
	for name, by := range map[string]time.Duration{"ClockSetBack": -time.Hour, "ClockGoesOn": time.Second, "ClockSetForward": time.Hour} {
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
			next := w.with(func(context.Context) (provider.Status, error) { return provider.Status{Done: true}, nil })
			if outcome, err := next.Step(context.Background(), remove); err != nil || !outcome.Settled {
				t.Errorf("the deletion waits for the dead: %+v %v", outcome, err)
			}
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
	if _, err := both.Step(context.Background(), create); err != nil {
		t.Fatal(err)
	}
	remove := refOf(w.must(deprovision), 1)
	began, settled := w.clock, false
	for range 100 {
		outcome, err := both.Step(context.Background(), remove)
		if err != nil {
			t.Fatal(err)
		}
		if settled = outcome.Settled; settled {
			break
		}
		w.clock = w.clock.Add(outcome.Wait)
	}
	if waited := w.clock.Sub(began); !settled || waited < 2*time.Minute {
		t.Errorf("settled %v, after %v", settled, waited)
	}
}
