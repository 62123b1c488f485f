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
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/worker"
)

// An unbind and the deletion of its instance run at once, as after a bind whose answer was lost: the platform deletes
// the binding and then the instance. Each would begin the binding's deletion anew whenever the other had begun it.
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

// obstructed is a world whose provider can unbind only for the deletion of the instance, if it can do that.
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

// steps has each execution that was started make steps, a second apart or as far apart as they ask for.
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
	var changes []ledger.Change
	for n := range many {
		b := one
		b.Key.Binding, b.Version = fmt.Sprintf("many-%04d", n), 0
		if n == many-1 {
			b.Leases = []lifecycle.Lease{{Holder: "its step", Operation: "its operation", Taken: w.clock,
				Until: w.clock.Add(time.Hour)}}
			busy = b
		}
		changes = append(changes, ledger.Put(b))
	}
	w.commits(changes...)
	ref, by := w.asks(update), w.with(finished)
	counted := &looking{Records: by.Records}
	by.Records = counted
	most, steps := 0, 0
	step := func() (settled bool) {
		t.Helper()
		before := counted.looks
		outcome := w.step(worker.New(by.Options), ref) // a process of its own: how far the last one came is on record
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

// listed counts what listings give.
type listed struct {
	store.Store
	pages, records, bytes int
}

func (l *listed) List(ctx context.Context, partition, prefix, after string, limit int) (store.Page, error) {
	page, err := l.Store.List(ctx, partition, prefix, after, limit)
	l.pages++
	l.records += len(page.Records)
	for _, r := range page.Records {
		l.bytes += len(r.Body)
	}
	return page, err
}

// deletedWith deletes an instance with many live bindings of 64 KB each, and
// many that are dead. It gives what the listings of that cost.
func deletedWith(t *testing.T, live, dead int) listed {
	t.Helper()
	w := newWorld(t)
	done(provision)(w)
	var changes []ledger.Change
	of, grant := w.instance().Incarnation, make(lifecycle.Sealed, 48_000) // 64 KB in JSON
	for n := range live + dead {
		// The dead are before, between and behind the live.
		key, start := instanceKey.BindingKey(fmt.Sprintf("%07d", n*7919%(live+dead))),
			lifecycle.Start{ID: w.ids(), Now: w.clock, Received: w.clock, Timeout: time.Hour}
		b, err := lifecycle.Record{Key: key}.BeginCreate(start, lifecycle.Record{Provider: "demo",
			Attributes:  lifecycle.Attributes{ServiceID: service(), PlanID: planAsyncBind()},
			BindingOnly: lifecycle.BindingOnly{InstanceIncarnation: of}})
		if err == nil {
			b, err = b.Succeed(w.clock, grant)
		}
		if err == nil && n >= live {
			b, err = b.Remove(w.clock, w.clock)
		}
		expect.OK(t, err)
		changes = append(changes, ledger.Put(b))
	}
	w.commits(changes...)

	counted := &listed{Store: w.records}
	w.records = counted
	ref := w.asks(deprovision)
	steps := w.drive(w.with(finished), ref)
	cost := *counted
	if i := w.instance(); i.State != lifecycle.Deleted || steps != live+1 {
		t.Errorf("after %d steps the instance is %q: %+v", steps, i.State, i.Operation)
	}
	if b, _, err := quietLedger(w).NextBinding(t.Context(), instanceKey, ""); b != nil || err != nil {
		t.Errorf("a binding is left: %+v, %v", b, err)
	}
	return cost
}

// A step of a deprovision looks for one binding, however many live ones there
// are beside it, and however many dead ones it has passed before.
func TestADeprovisionReadsEachBindingOnce(t *testing.T) {
	for name, test := range map[string]struct {
		reason     string
		live, dead int
	}{
		"Live": {"the bodies of those whose turn has not come are not read", 60, 0},
		"Dead": {"tombstones are passed once", 1, 5000},
		"Both": {"also where they are between the live", 40, 2000},
	} {
		t.Run(name, func(t *testing.T) {
			got := deletedWith(t, test.live, test.dead)
			t.Logf("%d live, %d dead: %d records, %d bytes, %d pages", test.live, test.dead, got.records, got.bytes, got.pages)
			// A page that finds a live one may hold as many again that it does not need.
			if most := 2*(test.live+test.dead) + 1; got.records > most {
				t.Errorf("%s: %d records were read, at most %d", test.reason, got.records, most)
			}
			if test.dead == 0 && got.records != test.live {
				t.Errorf("%s: %d records were read, want %d", test.reason, got.records, test.live)
			}
		})
	}
}

// Looks at an instance whose bindings are gone do not pass them again.
func TestALongDeprovisionPassesDeadBindingsOnce(t *testing.T) {
	w := newWorld(t)
	done(provision, bind, unbind)(w)
	counted := &listed{Store: w.records}
	w.records = counted
	ref := w.asks(deprovision)
	for range 10 {
		outcome := w.step(w.with(answers(provider.Status{After: time.Minute}, nil)), ref)
		w.clock = w.clock.Add(outcome.Wait)
	}
	expect.Same(t, "records of bindings that ten looks read", 1, counted.records)
}
