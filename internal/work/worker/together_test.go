package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
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
			if w.step(w.worker(), ref).Settled {
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

// obstructed is a world whose provider can unbind only for the deletion of the instance, if it can
// do that.
type obstructed struct {
	*world
	unbinds   int
	deletable bool
}

func (o *obstructed) unbind(_ context.Context, b provider.Binding) (provider.Status, error) {
	switch {
	case b.Instance.Operation.Kind != operation.Deprovision:
		o.unbinds++
		return provider.Status{}, errors.New("the tenant's things are in the way")
	case !o.deletable:
		return provider.Status{}, provider.Failf("not deletable")
	}
	return provider.Status{Done: true}, nil
}

// steps has each execution that was started make steps, a second apart or as far apart
// as they ask for.
func (o *obstructed) steps(n int) {
	o.Helper()
	by := o.by(stub{unbind: o.unbind, instance: func(context.Context, provider.Instance) (provider.Status, error) {
		return provider.Status{Done: true}, nil
	}})
	for range n {
		for name, ref := range o.started {
			outcome := o.step(by, ref)
			if outcome.Settled {
				delete(o.started, name)
			}
			o.clock = o.clock.Add(min(outcome.Wait, time.Second))
		}
	}
}

// The deletion of an instance does not wait for an unbind that cannot go on: it removes
// the binding in its place, and meanwhile the unbind asks for nothing. The platform
// learns that the unbind has succeeded. If the deletion fails, the unbind goes on.
func TestADeprovisionOvertakesAnUnbind(t *testing.T) {
	for name, deletable := range map[string]bool{"Deletable": true, "NotDeletable": false} {
		t.Run(name, func(t *testing.T) {
			o := &obstructed{world: newWorld(t), deletable: deletable}
			done(provision, bind)(o.world)
			unbinding := o.asks(unbind)
			o.steps(3)
			before := o.unbinds
			deleting := o.asks(deprovision)
			o.steps(10)
			if !deletable {
				if i := o.instance(); i.State != lifecycle.DeleteFailed {
					t.Fatalf("the instance is %q: the test proves nothing", i.State)
				}
				before = o.unbinds
				o.clock = o.clock.Add(5 * time.Minute)
				if o.steps(1); o.unbinds == before {
					t.Error("the unbind does not go on")
				}
				return
			}
			if before == 0 || o.unbinds > before+1 {
				t.Errorf("the unbind was tried %d times, then %d", before, o.unbinds)
			}
			if b := o.recorded(bindingKey); b.State != lifecycle.Deleted || b.Operation.Phase != lifecycle.Succeeded {
				t.Errorf("the binding is %q, its operation %+v", b.State, b.Operation)
			}
			for _, ref := range []workflow.Ref{unbinding, deleting} {
				if o.recorded(ref.Token.Key).InProgress() {
					t.Errorf("%s goes on", ref.Name())
				}
			}
			expect.Same(t, "the instance", lifecycle.Deleted, o.instance().State)
		})
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
		w.commits(ledger.Put(b))
	}
	ref, by := w.asks(update), w.with(finished)
	counted := &looking{Records: by.Records}
	by.Records = counted
	most, steps := 0, 0
	step := func() (settled bool) {
		t.Helper()
		before := counted.looks
		outcome := w.step(by, ref)
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
	w.commits(ledger.Put(busy))
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
