package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

var restoredKey = lifecycle.Key{Platform: "p", Instance: "r"}

// restore asks for an instance "r" that is restored from the instance "i".
var restore = orders("r", "restorable", []byte(`{"restore_from":"i"}`))

func (w *world) restored() lifecycle.Record { return w.recorded(restoredKey) }

// A provider is told what its source is, in each step, with the state that the
// source's own operations left, opened.
func TestAProviderIsToldTheSource(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	i := w.instance()
	state := provider.State{Format: 2, Data: []byte("x")}
	sealed, err := w.vault.Seal(t.Context(), vault.Label{Key: i.Key, Member: vault.State}, state.Encode())
	expect.OK(t, err)
	i.Made.State, i.Made.Target = sealed, lifecycle.Target{Name: "east", Identity: "account"}
	i.Made.Origin = lifecycle.Origin{Instance: "before", Incarnation: "earlier"} // it was undeleted
	i.Attributes.Snapshot = []byte(`{"means":"this"}`)
	expect.OK(t, quietLedger(w).Commit(t.Context(), ledger.Put(i)))
	ref := refOf(w.must(restore), 1)
	o := w.worker().Options
	var told []provider.Instance
	o.Providers = testkit.AsDemo(telling{Provider: o.Providers["demo"].Provider, tell: func(in provider.Instance) (provider.Status, error) {
		told = append(told, in)
		return provider.Status{Done: len(told) == 2, After: time.Second}, nil
	}})
	for range 2 {
		w.step(worker.New(o), ref)
		w.clock = w.clock.Add(time.Second)
	}
	for n, in := range told {
		s := in.Source
		if s == nil || s.Platform != "p" || s.ID != "i" || s.Incarnation != i.Incarnation || string(s.Snapshot) != `{"means":"this"}` ||
			string(s.State.Data) != "x" || s.State.Format != 2 || s.Target != i.Made.Target || in.Target != s.Target ||
			s.Origin != i.Made.Origin {
			t.Errorf("step %d is told another source: %v", n, s != nil)
		}
	}
	r := w.restored()
	if len(told) != 2 || r.State != lifecycle.Ready {
		t.Errorf("after %d steps it is %q", len(told), r.State)
	}
	// It is there for good: a target that leaves the settings makes the inventory
	// incomplete as long as it stands.
	if use, err := w.ledger().TargetUse(t.Context(), r.TargetUse(w.clock)); err != nil || use.Version != 1 {
		t.Errorf("nothing says that it is in its target: %+v %v", use, err)
	}
}

// A source that changes before the restore ends fails the restore, at whatever moment. The
// half-restored instance is removed, and the source is left alone.
func TestASourceThatChanges(t *testing.T) {
	changes := map[string]struct {
		ask  asking
		held int
	}{"Updated": {update, 1}, "Deleted": {deprovision, 0}}
	for name, c := range changes {
		for _, when := range []string{"Before", "Between", "During", "AtTheEnd"} {
			t.Run(name+when, func(t *testing.T) {
				w := newWorld(t)
				done(provision)(w)
				asked := w.must(restore)
				ref, o := refOf(asked, 1), w.worker().Options
				calls := 0
				o.Providers = testkit.AsDemo(telling{Provider: o.Providers["demo"].Provider, tell: func(provider.Instance) (provider.Status, error) {
					calls++
					if when == "During" || when == "AtTheEnd" {
						w.must(c.ask)
					}
					return provider.Status{Done: when == "AtTheEnd", After: time.Second, State: &provider.State{Format: 1, Data: []byte("made")}}, nil
				}})
				want := 1
				if when == "Before" {
					want = 0
					w.must(c.ask)
				}
				for n := range 3 {
					w.step(worker.New(o), ref)
					w.clock = w.clock.Add(time.Second)
					if n == 0 && when == "Between" {
						w.must(c.ask)
					}
				}
				r := w.restored()
				if r.State != lifecycle.CreateFailed || !strings.Contains(r.Operation.Description, "changed or deleted") || calls != want {
					t.Fatalf("after %d calls it is %q: %s", calls, r.State, r.Operation.Description)
				}
				if calls > 0 && r.Made.State == nil {
					t.Error("what the provider remembers is lost")
				}
				w.rest()
				if r, held := w.restored(), w.held(); r.State != lifecycle.Deleted || held != c.held {
					t.Errorf("in the end it is %q, and there are %d things", r.State, held)
				}
				if p, err := w.broker().LastOperation(t.Context(), restoredKey, asked.Token.String()); err != nil ||
					p.Operation.Phase != lifecycle.Failed {
					t.Errorf("its token says %v %v", p.Operation.Phase, err)
				}
			})
		}
	}
}

// A source that changes after its record was read meets the check of the commit
// before the cloud is asked.
func TestASourceThatChangesBesideTheLease(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	ref, o := refOf(w.must(restore), 1), w.worker().Options
	once := false
	o.Records = ledgerOver(w, &storetest.Faulty{Store: w.records, Before: func([]store.Change) error {
		if !once {
			once = true
			w.must(update)
		}
		return nil
	}})
	o.Providers = testkit.AsDemo(telling{Provider: o.Providers["demo"].Provider, tell: func(provider.Instance) (provider.Status, error) {
		t.Error("the cloud was asked")
		return provider.Status{}, nil
	}})
	for range 2 {
		w.step(worker.New(o), ref)
	}
	if r := w.restored(); !once || r.State != lifecycle.CreateFailed {
		t.Errorf("it is %q", r.State)
	}
}
