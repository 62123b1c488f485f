package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

// week is how long the plan "retained" keeps what is deleted.
const week = 7 * 24 * time.Hour

// provisionKept asks for the instance "i" of a plan that retains what is deleted.
func provisionKept(w *world, b *broker.Broker) (broker.Result, error) {
	_, plan := testkit.PlanIDs("retained")
	return b.Provision(context.Background(), broker.ProvisionRequest{
		Caller: w.caller(), InstanceID: "i", ServiceID: service(), PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s",
	})
}

// retained is all that is on record as retained.
func (w *world) retained() []lifecycle.Retained {
	w.Helper()
	all, _, err := w.ledger().AllRetained(context.Background(), "")
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// shelved is what exists, by name.
func (w *world) shelved() map[string]cloudtest.Thing {
	all := map[string]cloudtest.Thing{}
	for _, t := range w.things.Things() {
		all[t.Name] = t
	}
	return all
}

// isKept requires that of all lives of "i" one is retained, as it is on record.
func (w *world) isKept(when string) {
	w.Helper()
	all, held := w.retained(), w.shelved()
	if len(all) != 1 || len(held) != 1 {
		w.Errorf("%s: %d are on record as retained, %d things exist; want one", when, len(all), len(held))
		return
	}
	r := all[0]
	if h := held[r.Name]; !h.RetainedUntil.Equal(r.Until) || h.Tags.Incarnation != r.Incarnation || h.Tags.Instance != "i" {
		w.Errorf("%s: on record as %+v, and it is %+v", when, r, h)
	}
	if r.Key != instanceKey || r.Provider != "demo" || r.ServiceID != service() || r.PlanID == "" || r.OrganizationGUID != "o" ||
		r.SpaceGUID != "s" || r.Snapshot == nil || r.Until.Before(r.Deleted.Add(week-time.Hour)) || !r.Due.Equal(r.Until) {
		w.Errorf("%s: it is on record as %+v", when, r)
	}
}

// A plan may have what is deleted be retained: wherever the process dies, exactly
// one thing is left, under another name, and its record says until when.
func TestWhatIsDeletedIsRetained(t *testing.T) {
	t.Parallel()
	d := deed{done(provisionKept), deprovision, 1, lifecycle.Deleted, instanceKey}
	if total := d.dies(t, func(w *world, when string) { w.isKept(when) }); total < 12 {
		t.Errorf("died %d times only: the test proves little", total)
	}
}

// What never was ready is not worth keeping.
func TestWhatIsHalfMadeIsNotRetained(t *testing.T) {
	w := newWorld(t)
	begun(provisionKept)(w)
	done(deprovision)(w)
	if len(w.retained()) != 0 || w.held() != 0 {
		t.Errorf("%d things exist, on record: %+v", w.held(), w.retained())
	}
}

// outlived is a world in which "i" is retained, and its time is over.
func outlived(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	done(provisionKept, deprovision)(w)
	w.clock = w.clock.Add(lifecycle.LateLook)
	w.rest()
	w.clock = w.retained()[0].Until.Add(time.Second)
	return w
}

// When its time is over, it is removed, wherever the process dies meanwhile, and
// whatever has its id by then.
func TestWhatIsRetainedIsRemovedWhenItsTimeIsOver(t *testing.T) {
	for name, used := range map[string]bool{"Gone": false, "IDIsUsedAgain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total := 0
			for _, after := range []bool{false, true} {
				for at := 1; ; at++ {
					w := outlived(t)
					want := 0
					if used {
						w.clock = w.clock.Add(-time.Hour)
						done(provisionKept)(w)
						w.clock, want = w.clock.Add(time.Hour), 1
					}
					w.effects, w.dieAt, w.after = 0, at, after
					survived := w.alive(w.rest)
					w.dieAt = 0
					if !survived {
						w.started = map[string]workflow.Ref{}
						w.clock = w.clock.Add(time.Second)
						total++
					}
					w.rest()
					if len(w.retained()) != 0 || w.held() != want {
						t.Errorf("dying at effect %d (after: %v): %d things exist, want %d; on record: %+v", at, after, w.held(), want, w.retained())
					}
					if used && w.instance().State != lifecycle.Ready {
						t.Errorf("what has its id is %q", w.instance().State)
					}
					if survived {
						break
					}
				}
			}
			if total < 8 {
				t.Errorf("died %d times only: the test proves little", total)
			}
		})
	}
}

// stubborn is a provider whose removals are as the test says.
type stubborn struct {
	cloud
	remove func(ctx context.Context, h provider.Holding) (provider.Status, error)
}

func (p stubborn) RemoveRetained(ctx context.Context, h provider.Holding) (provider.Status, error) {
	return p.remove(ctx, h)
}

func (w *world) removing(do func(context.Context, provider.Holding) (provider.Status, error)) *worker.Worker {
	o := w.kit().WorkerOptions()
	o.Providers = testkit.AsDemo(stubborn{cloud: w.kit().Providers["demo"].(cloud), remove: do})
	return worker.New(o)
}

// begins has the reaper begin, or drive again, the removal of what is retained.
func (w *world) begins() (workflow.Ref, reaper.Report) {
	w.Helper()
	report, err := w.reaper().Sweep(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	for name, ref := range w.started {
		delete(w.started, name)
		return ref, report
	}
	return workflow.Ref{}, report
}

// A removal that always fails is tried less and less often, for ever, and its
// record says why.
func TestARemovalThatAlwaysFails(t *testing.T) {
	w := outlived(t)
	tries, outlasted := 0, 0
	refuses := func(context.Context, provider.Holding) (provider.Status, error) {
		tries++
		return provider.Status{}, provider.Failf("its tags are another's, %d", tries)
	}
	begun := w.clock
	for last, longest := begun, time.Duration(0); w.clock.Sub(begun) < 5*24*time.Hour; w.clock = w.clock.Add(time.Minute) {
		ref, report := w.begins()
		if ref == (workflow.Ref{}) {
			continue
		}
		outlasted += report.Outlived
		if pause := w.clock.Sub(last); pause < longest-2*time.Minute {
			t.Fatalf("after %d tries, it is tried again after %v, and was after %v before", tries, pause, longest)
		} else {
			last, longest = w.clock, max(longest, pause)
		}
		for range 20 {
			outcome, err := w.removing(refuses).Step(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Settled {
				break
			}
			w.clock = w.clock.Add(outcome.Wait)
		}
	}
	r := w.retained()[0]
	if tries < 20 || tries > 60 || outlasted < 10 || r.Faults != tries || r.Fault != fmt.Sprintf("its tags are another's, %d", tries) {
		t.Errorf("%d tries in five days, told of %d times; on record: %d faults, %q", tries, outlasted, r.Faults, r.Fault)
	}
	w.clock = w.clock.Add(24 * time.Hour)
	w.rest() // it works by now
	if len(w.retained()) != 0 || w.held() != 0 {
		t.Errorf("%d things exist, on record: %+v", w.held(), w.retained())
	}
}

// Two steps of a removal never call at once, and a step of an older attempt, or one
// that is delivered once more, does nothing.
func TestStepsOfARemoval(t *testing.T) {
	w := outlived(t)
	ref, report := w.begins()
	if report.Removed != 1 || !strings.HasPrefix(ref.Token.Key.Platform, "#") {
		t.Fatalf("%+v %+v", report, ref)
	}
	calls := 0
	var told provider.Holding
	outcome, err := w.removing(func(_ context.Context, h provider.Holding) (provider.Status, error) {
		calls++
		told = h
		second, err := w.worker().Step(t.Context(), ref)
		if err != nil || second.Settled || second.Wait <= 0 || w.held() != 1 {
			t.Errorf("a second step did not wait: %+v %v, %d things", second, err, w.held())
		}
		return provider.Status{After: time.Minute}, nil
	}).Step(t.Context(), ref)
	if err != nil || outcome.Settled || outcome.Wait != time.Minute || calls != 1 {
		t.Fatalf("%+v %v, %d calls", outcome, err, calls)
	}
	r := w.retained()[0]
	if h := w.shelved()[r.Name]; told.Name != r.Name || told.Tags != h.Tags || !told.RetainedUntil.Equal(r.Until) || told.PlanID != r.PlanID {
		t.Errorf("the provider is told %+v of %+v", told, h)
	}
	old := ref
	r = r.Redriven(w.clock)
	if err := w.ledger().Commit(t.Context(), ledger.Put(r)); err != nil {
		t.Fatal(err)
	}
	if outcome, err := w.worker().Step(t.Context(), old); err != nil || !outcome.Settled || w.held() != 1 {
		t.Errorf("a step of an older attempt acted: %+v %v", outcome, err)
	}
	ref.Attempt = r.Attempt
	for range 2 {
		if outcome, err := w.worker().Step(t.Context(), ref); err != nil || !outcome.Settled || w.held() != 0 {
			t.Errorf("%+v %v, %d things", outcome, err, w.held())
		}
	}
}

// What the provider remembers goes with it, sealed; a removal goes on without it if
// it does not open.
func TestARemovalIsToldTheState(t *testing.T) {
	for name, lost := range map[string]bool{"Opens": false, "Lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done(provisionKept)(w)
			i := w.instance()
			state := provider.State{Format: 1, Data: []byte(`{"failed":"earlier"}`)}
			sealed, err := w.vault.Seal(t.Context(), vault.Label{Key: i.Key, Member: vault.State}, state.Encode())
			if err != nil {
				t.Fatal(err)
			}
			i.Made.State, i.Made.Target = sealed, lifecycle.Target{Name: "east", Identity: "account"}
			if err := w.ledger().Commit(t.Context(), ledger.Put(i)); err != nil {
				t.Fatal(err)
			}
			done(deprovision)(w)
			w.clock = w.clock.Add(lifecycle.LateLook)
			w.rest()
			r := w.retained()[0]
			if r.Made.Target != i.Made.Target || string(r.Made.State) != string(sealed) {
				t.Errorf("on record: %+v", r.Made.Target)
			}
			if lost {
				r.Made.State = []byte("\x01nonsense")
				if err := w.ledger().Commit(t.Context(), ledger.Put(r)); err != nil {
					t.Fatal(err)
				}
				state = provider.State{}
			}
			w.clock = r.Until
			ref, _ := w.begins()
			var told provider.Holding
			outcome, err := w.removing(func(_ context.Context, h provider.Holding) (provider.Status, error) {
				told = h
				return provider.Status{Done: true}, nil
			}).Step(t.Context(), ref)
			if err != nil || !outcome.Settled || told.Target.Identity != "account" || told.State.Format != state.Format ||
				string(told.State.Data) != string(state.Data) {
				t.Errorf("%+v %v, told of target %+v, state of format %d", outcome, err, told.Target, told.State.Format)
			}
			if len(w.retained()) != 0 {
				t.Error("what is removed is on record")
			}
		})
	}
}

// A provider that says nothing of use fails the deletion, and one that cannot
// remove is told of: neither loses the thing.
func TestWhatCannotBeRetained(t *testing.T) {
	for name, kept := range map[string]provider.Retained{
		"NoName": {Until: testkit.Epoch.Add(week)}, "NoTime": {Name: "x"}, "LongName": {Name: strings.Repeat("x", 801), Until: testkit.Epoch},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done(provisionKept)(w)
			ref := refOf(w.must(deprovision), 1)
			outcome, err := w.with(func(context.Context) (provider.Status, error) {
				return provider.Status{Done: true, Retained: &kept}, nil
			}).Step(t.Context(), ref)
			if i := w.instance(); err != nil || !outcome.Settled || i.State != lifecycle.DeleteFailed || len(w.retained()) != 0 {
				t.Errorf("%+v %v, it is %q", outcome, err, i.State)
			}
		})
	}
	w := outlived(t)
	ref, _ := w.begins()
	o := w.kit().WorkerOptions()
	o.Providers = testkit.AsDemo(struct{ provider.Provider }{})
	outcome, err := worker.New(o).Step(t.Context(), ref)
	if r := w.retained()[0]; err != nil || outcome.Settled || r.Faults != 1 || !strings.Contains(r.Fault, "does not remove") {
		t.Errorf("%+v %v, %+v", outcome, err, r)
	}
}

// A call whose time was up may land: its lease stays.
func TestARemovalWhoseTimeWasUpKeepsItsLease(t *testing.T) {
	w := outlived(t)
	ref, _ := w.begins()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := w.removing(func(context.Context, provider.Holding) (provider.Status, error) {
		cancel()
		return provider.Status{}, errors.New("the connection was closed")
	}).Step(ctx, ref)
	if r := w.retained()[0]; err != nil || !r.Busy.After(w.clock) {
		t.Errorf("%v, %+v", err, r)
	}
}
