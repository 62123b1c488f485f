package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

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
	one, err := w.ledger().Record(t.Context(), bindingKey, w.clock)
	if err != nil {
		t.Fatal(err)
	}
	busy := one
	for n := range many {
		b := one
		b.Key.Binding, b.Version = fmt.Sprintf("many-%04d", n), 0
		if n == many-1 {
			b.Leases = []lifecycle.Lease{{Holder: "its step", Operation: "its operation", Taken: w.clock, Until: w.clock.Add(time.Hour)}}
			busy = b
		}
		if err := quietLedger(w).Commit(t.Context(), ledger.Put(b)); err != nil {
			t.Fatal(err)
		}
	}
	ref := refOf(w.must(update), 1)
	o := w.worker().Options
	counted := &looking{Records: o.Records}
	o.Records, o.Providers = counted, testkit.AsDemo(answering{status: provider.Status{Done: true}})
	most, steps := 0, 0
	step := func() (settled bool) {
		t.Helper()
		before := counted.looks
		outcome, err := worker.New(o).Step(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := quietLedger(w).Commit(t.Context(), ledger.Put(busy)); err != nil {
		t.Fatal(err)
	}
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
