package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// An unbind and the deletion of its instance run at once, as after a bind whose
// answer was lost: the platform deletes the binding and then the instance. Each
// would begin the binding's deletion anew whenever the other had begun it.
func TestUnbindAndDeprovisionDoNotHinderOneAnother(t *testing.T) {
	w := newWorld(t)
	done(provision, bind)(w)
	for _, ask := range []func(*world, *broker.Broker) (broker.Result, error){unbind, deprovision} {
		if _, err := ask(w, w.broker()); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		for name, ref := range w.started {
			outcome, err := w.worker().Step(context.Background(), ref)
			if err != nil {
				t.Fatal(err)
			}
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
		t.Errorf("after %v the instance is %q, and the unbind was tried %d times, then %d", w.clock.Sub(began), i.State, before, o.unbinds)
	}
	if b := w.course(bindingKey); b.State != lifecycle.Deleted || b.Operation.Phase != lifecycle.Succeeded {
		t.Errorf("the binding is %q, its operation %+v", b.State, b.Operation)
	}
	for _, r := range []broker.Result{unbinding, deleting} {
		if ref := refOf(r, 1); w.course(ref.Token.Key).InProgress() {
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
			outcome, err := worker.New(o).Step(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			if outcome.Settled {
				delete(w.started, name)
			}
			w.clock = w.clock.Add(min(outcome.Wait, time.Second))
		}
	}
}
