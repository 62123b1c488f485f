package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
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
	i.Made.State = w.seals(i.Key, provider.State{Format: 2, Data: []byte("x")})
	i.Made.Target = lifecycle.Target{Name: "east", Identity: "account"}
	i.Made.Origin = lifecycle.Origin{Instance: "before", Incarnation: "earlier"} // it was undeleted
	i.Attributes.Snapshot = []byte(`{"means":"this"}`)
	w.commits(ledger.Put(i))
	var told []provider.Instance
	w.drive(w.telling(func(in provider.Instance) (provider.Status, error) {
		told = append(told, in)
		return provider.Status{Done: len(told) == 2, After: time.Second}, nil
	}), w.asks(restore))
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
				ref, calls, want := w.asks(restore), 0, 1
				by := w.telling(func(provider.Instance) (provider.Status, error) {
					calls++
					if when == "During" || when == "AtTheEnd" {
						w.must(c.ask)
					}
					state := &provider.State{Format: 1, Data: []byte("made")}
					return provider.Status{Done: when == "AtTheEnd", After: time.Second, State: state}, nil
				})
				if when == "Before" {
					want = 0
					w.must(c.ask)
				}
				for n := range 3 {
					w.step(by, ref)
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
				p := expect.Get(w.broker().LastOperation(t.Context(), restoredKey, ref.Token.String()))(t)
				expect.Same(t, "its token says", lifecycle.Failed, p.Operation.Phase)
			})
		}
	}
}

// A source that changes after its record was read meets the check of the commit
// before the cloud is asked.
func TestASourceThatChangesBesideTheLease(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	ref, by, once := w.asks(restore), w.silent("by a restore whose source has changed"), false
	by.Records = ledgerOver(w, &storetest.Faulty{Store: w.records, Before: func([]store.Change) error {
		if !once {
			once = true
			w.must(update)
		}
		return nil
	}})
	w.step(by, ref)
	w.step(by, ref)
	if r := w.restored(); !once || r.State != lifecycle.CreateFailed {
		t.Errorf("it is %q", r.State)
	}
}
