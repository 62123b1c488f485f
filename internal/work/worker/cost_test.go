package worker_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
)

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
	commit := func(more ...ledger.Change) {
		if changes = append(changes, more...); len(changes) == 0 || len(changes) < 50 && more != nil {
			return
		}
		w.commits(changes...)
		changes = nil
	}
	for n := range live + dead {
		// The dead are before, between and behind the live.
		key, start := instanceKey.BindingKey(fmt.Sprintf("%07d", n*7919%(live+dead))),
			lifecycle.Start{ID: w.ids(), Now: w.clock, Received: w.clock, Timeout: time.Hour}
		b, _, err := lifecycle.Record{Key: key}.BeginCreate(start, lifecycle.Record{Provider: "demo",
			Attributes:  lifecycle.Attributes{ServiceID: service(), PlanID: planAsyncBind()},
			BindingOnly: lifecycle.BindingOnly{InstanceIncarnation: w.instance().Incarnation}})
		if err == nil {
			b, err = b.Succeed(w.clock, make(lifecycle.Sealed, 48_000)) // 64 KB in JSON
		}
		if err == nil && n >= live {
			b, err = b.Remove(w.clock, w.clock)
		}
		expect.OK(t, err)
		commit(ledger.Put(b))
	}
	commit()

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
			t.Logf("%d live, %d dead: %d records (%d KB) in %d pages", test.live, test.dead, got.records, got.bytes/1000, got.pages)
			// A page that finds a live one may hold as many again that it does
			// not need.
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
