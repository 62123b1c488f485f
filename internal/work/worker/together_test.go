package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// An unbind and the deletion of its instance run at once, as after a bind whose
// answer was lost: the platform deletes the binding and then the instance. Each
// would begin the binding's deletion anew whenever the other had begun it.
func TestUnbindAndDeprovisionDoNotHinderOneAnother(t *testing.T) {
	w := newWorld(t)
	done(provision, bind)(w)
	for _, ask := range []asking{unbind, deprovision} {
		expect.Get(ask(w, w.broker()))(t)
	}
	for range 100 {
		for name, ref := range w.started {
			outcome := w.step(w.worker(), ref)
			if outcome.Settled {
				delete(w.started, name)
			}
		}
		w.clock = w.clock.Add(time.Second)
	}
	if len(w.started) > 0 || w.held() > 0 {
		t.Errorf("after 100 s %d operations run and %d things are held", len(w.started), w.held())
	}
	w.ended(deed{state: lifecycle.Deleted, key: instanceKey}, "in the end")
	w.ended(deed{state: lifecycle.Deleted, key: bindingKey}, "in the end")
}

// obstructed is a provider that can unbind only for the deletion of the instance, if it
// can do that.
type obstructed struct {
	provider.Provider
	unbinds   int
	deletable bool
}

func (o *obstructed) Unbind(_ context.Context, b provider.Binding) (provider.Status, error) {
	if b.Instance.Operation.Kind == operation.Deprovision {
		if !o.deletable {
			return provider.Status{}, provider.Failf("not deletable")
		}
		return provider.Status{Done: true}, nil
	}
	o.unbinds++
	return provider.Status{}, errors.New("the tenant's things are in the way")
}

func (o *obstructed) Deprovision(context.Context, provider.Instance) (provider.Status, error) {
	return provider.Status{Done: true}, nil
}

// The deletion of an instance does not wait for an unbind that cannot go on: it removes
// the binding in its place, and meanwhile the unbind asks for nothing. The platform
// learns that the unbind has succeeded.
func TestADeprovisionOvertakesAnUnbind(t *testing.T) {
	w, o, options := obstruct(t)
	o.deletable = true
	began, unbinding := w.clock, w.must(unbind)
	steps(t, w, options, 3)
	before := o.unbinds
	deleting := w.must(deprovision)
	for range 10 {
		steps(t, w, options, 1)
	}
	if i := w.instance(); i.State != lifecycle.Deleted || before == 0 || o.unbinds > before+1 {
		t.Errorf("after %v the instance is %q, and the unbind was tried %d times, then %d", w.clock.Sub(began), i.State, before,
			o.unbinds)
	}
	if b := w.recorded(bindingKey); b.State != lifecycle.Deleted || b.Operation.Phase != lifecycle.Succeeded {
		t.Errorf("the binding is %q, its operation %+v", b.State, b.Operation)
	}
	for _, r := range []broker.Result{unbinding, deleting} {
		if ref := refOf(r, 1); w.recorded(ref.Token.Key).InProgress() {
			t.Errorf("%s goes on", ref.Name())
		}
	}
}

// An unbind that was overtaken goes on once the deletion of the instance has failed.
func TestAnUnbindOutlivesADeprovisionThatFails(t *testing.T) {
	w, o, options := obstruct(t)
	w.must(unbind)
	steps(t, w, options, 3)
	w.must(deprovision)
	for range 10 {
		steps(t, w, options, 1)
	}
	if i := w.instance(); i.State != lifecycle.DeleteFailed {
		t.Fatalf("the instance is %q: the test proves nothing", i.State)
	}
	before := o.unbinds
	w.clock = w.clock.Add(5 * time.Minute)
	steps(t, w, options, 1)
	if o.unbinds == before {
		t.Error("the unbind does not go on")
	}
}

func obstruct(t *testing.T) (*world, *obstructed, worker.Options) {
	t.Helper()
	w := newWorld(t)
	done(provision, bind)(w)
	o := &obstructed{}
	options := w.worker().Options
	options.Providers = testkit.AsDemo(o)
	return w, o, options
}

// steps has each execution that was started make steps, a second apart or as far apart
// as they ask for.
func steps(t *testing.T, w *world, o worker.Options, n int) {
	t.Helper()
	for range n {
		for name, ref := range w.started {
			outcome := w.step(worker.New(o), ref)
			if outcome.Settled {
				delete(w.started, name)
			}
			w.clock = w.clock.Add(min(outcome.Wait, time.Second))
		}
	}
}

// looking counts how often each step looks for a binding.
type looking struct {
	worker.Records
	looks int
}

func (l *looking) NextBinding(ctx context.Context, instance lifecycle.Key, after string) (*lifecycle.Record, string, error) {
	l.looks++
	return l.Records.NextBinding(ctx, instance, after)
}

// However many bindings an instance has, an update of it begins: no step looks at all of
// them, none is looked at twice, and one that is busy holds up no more than itself.
func TestAnUpdateOfAnInstanceWithManyBindings(t *testing.T) {
	const many = 1300
	w := newWorld(t)
	done(provision, bind)(w)
	one := w.recorded(bindingKey)
	busy := one
	for n := range many {
		b := one
		b.Key.Binding, b.Version = fmt.Sprintf("many-%04d", n), 0
		if n == many-1 {
			b.Leases = []lifecycle.Lease{{Holder: "its step", Operation: "its operation", Taken: w.clock,
				Until: w.clock.Add(time.Hour)}}
			busy = b
		}
		expect.OK(t, quietLedger(w).Commit(t.Context(), ledger.Put(b)))
	}
	ref := refOf(w.must(update), 1)
	o := w.worker().Options
	counted := &looking{Records: o.Records}
	o.Records, o.Providers = counted, testkit.AsDemo(scripted{step: finished})
	most, steps := 0, 0
	step := func() (settled bool) {
		t.Helper()
		before := counted.looks
		outcome := w.step(worker.New(o), ref)
		most, steps = max(most, counted.looks-before), steps+1
		w.clock = w.clock.Add(outcome.Wait)
		return outcome.Settled
	}
	for range 20 {
		if step() {
			t.Fatal("it did not wait for the one that is busy")
		}
	}
	busy.Version, busy.Leases = 1, nil
	expect.OK(t, quietLedger(w).Commit(t.Context(), ledger.Put(busy)))
	for !step() {
		if steps > 100 {
			t.Fatal("it never begins")
		}
	}
	if i := w.instance(); i.State != lifecycle.Ready || i.Operation.Phase != lifecycle.Succeeded {
		t.Errorf("the instance is %q: %+v", i.State, i.Operation)
	}
	if most > many/2 || counted.looks > many+40 {
		t.Errorf("a step has looked at %d bindings, and all together at %d of %d", most, counted.looks, many)
	}
}
