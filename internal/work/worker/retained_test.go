package worker_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// week is how long the plan "retained" keeps what is deleted.
const week = 7 * 24 * time.Hour

// provisionKept and bindKept are of a plan that retains what is deleted.
var (
	provisionKept = orders("i", "retained", nil)
	bindKept      = binds("b", "retained", nil)
)

// kept is all that is on record as kept.
func (w *world) kept() (all []lifecycle.Record) {
	w.Helper()
	for d, err := range paging.All(context.Background(), func(ctx context.Context, cursor string) ([]ledger.Due, string, error) {
		return w.ledger().Due(ctx, w.clock.AddDate(100, 0, 0), cursor)
	}) {
		expect.OK(w, err)
		if d.Record != nil && d.Record.State == lifecycle.Quarantined {
			all = append(all, *d.Record)
		}
	}
	return all
}

func (w *world) recorded(key lifecycle.Key) lifecycle.Record {
	w.Helper()
	return expect.Get(w.ledger().Record(context.Background(), key, w.clock))(w)
}

// seals is a provider's state as the record of the key has it.
func (w *world) seals(key lifecycle.Key, state provider.State) lifecycle.Sealed {
	w.Helper()
	return expect.Get(w.vault.Seal(context.Background(), vault.Label{Key: key, Member: vault.State}, state.Encode()))(w)
}

// commits writes records as something else would.
func (w *world) commits(changes ...ledger.Change) {
	w.Helper()
	expect.OK(w, quietLedger(w).Commit(context.Background(), changes...))
}

// isKept requires that the one thing there is was made for "i" and is kept for the owner,
// as it is on record.
func (w *world) isKept(when, owner string) {
	w.Helper()
	all, things := w.kept(), w.things.Things()
	if len(all) != 1 || len(things) != 1 {
		w.Errorf("%s: %d are on record as kept, %d things exist; want one", when, len(all), len(things))
		return
	}
	r, thing := all[0], things[0]
	want := provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: owner, Incarnation: r.Incarnation,
		Origin: r.Made.Origin}
	if !thing.Locked || !thing.RetainedUntil.Equal(r.Kept.Until) || thing.Tags != want || thing.Name != w.demo().Name(want) {
		w.Errorf("%s: on record as %+v, kept %+v, and it is %+v", when, r, r.Kept, thing)
	}
	if a := r.Attributes; r.Provider != "demo" || a.ServiceID != service() || a.PlanID == "" || a.OrganizationGUID != "o" ||
		a.SpaceGUID != "s" || a.Snapshot == nil || a.Parameters != nil || a.SealedContext != nil {
		w.Errorf("%s: it is on record with %+v", when, a)
	}
	if r.Key != (lifecycle.Key{Platform: "p", Instance: owner, Life: r.Incarnation}) || !r.Due.Equal(r.Kept.Until) ||
		r.Operation != nil || len(r.Leases) != 0 || r.Kept.Until.Before(r.Kept.Since.Add(23*time.Hour)) {
		w.Errorf("%s: it is on record as %+v, kept %+v", when, r, r.Kept)
	}
	if gone := w.recorded(r.Key.Current()); gone.Incarnation == r.Incarnation &&
		(gone.State != lifecycle.Deleted || !gone.LateLook.IsZero() || len(gone.Leases) != 0) {
		w.Errorf("%s: its tombstone is %+v", when, gone)
	}
}

// A plan may have what is deleted be kept: wherever the process dies, exactly one thing is
// left, shut, and the record of its life says until when.
func TestWhatIsDeletedIsKept(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*world){
		"Alone":        done(provisionKept),
		"WithABinding": done(provisionKept, bindKept),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deed{before, deprovision, 1, lifecycle.Deleted, instanceKey}
			total := d.dies(t, func(w *world, when string) {
				w.isKept(when, "i")
				if all := w.kept(); len(all) == 1 && all[0].Kept.Until.Before(all[0].Kept.Since.Add(week-time.Hour)) {
					w.Errorf("%s: kept %+v", when, all[0].Kept)
				}
			})
			if total < 12 {
				t.Errorf("died %d times only: the test proves little", total)
			}
		})
	}
}

// An instance that was never ready is deleted at once, and not kept.
func TestWhatIsHalfMadeIsNotKept(t *testing.T) {
	w := newWorld(t)
	begun(provisionKept)(w)
	done(deprovision)(w)
	if len(w.kept()) != 0 || w.held() != 0 {
		t.Errorf("%d things exist, on record: %+v", w.held(), w.kept())
	}
}

// A record that was rebuilt does not know its plan's snapshot: today's plan counts.
func TestWhatWasRebuiltIsKept(t *testing.T) {
	w := newWorld(t)
	done(provisionKept)(w)
	i := w.instance()
	i.Attributes.Snapshot = nil
	w.commits(ledger.Put(i))
	done(deprovision)(w)
	if len(w.kept()) != 1 || w.held() != 1 {
		t.Errorf("%d things exist, on record: %+v", w.held(), w.kept())
	}
}

// outlived is a world in which "i" is kept, and its date has come.
func outlived(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	done(provisionKept, deprovision)(w)
	w.clock = w.kept()[0].Kept.Until.Add(time.Second)
	return w
}

// When its date has come it is deleted, wherever the process dies meanwhile, and whatever
// has its id by then.
func TestWhatIsKeptIsDeletedAtItsDate(t *testing.T) {
	for name, used := range map[string]bool{"Gone": false, "IDIsUsedAgain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total := 0
			for _, after := range []bool{false, true} {
				for at, survived := 1, false; !survived; at++ {
					w := outlived(t)
					life, want := w.kept()[0].Key, 0
					if used {
						w.clock = w.clock.Add(-time.Hour)
						done(provisionKept)(w)
						w.clock, want = w.clock.Add(time.Hour), 1
					}
					w.effects, w.dieAt, w.after = 0, at, after
					survived = w.alive(w.rest)
					if w.dieAt = 0; !survived {
						w.restarts()
						total++
					}
					w.rest()
					if r := w.recorded(life); r.State != lifecycle.Deleted || r.LateLook.IsZero() || w.held() != want {
						t.Errorf("dying at effect %d (after: %v): %d things exist, want %d; on record: %+v", at, after,
							w.held(), want, r)
					}
					if used && w.instance().State != lifecycle.Ready {
						t.Errorf("what has its id is %q", w.instance().State)
					}
				}
			}
			if total < 8 {
				t.Errorf("died %d times only: the test proves little", total)
			}
		})
	}
}

// A provider is told the thing as its instance was, and until when; the date is the same in
// each step.
func TestAProviderIsToldWhatToKeep(t *testing.T) {
	for name, lost := range map[string]bool{"Opens": false, "Lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done(provisionKept)(w)
			i := w.instance()
			state := provider.State{Format: 1, Data: []byte(`{"failed":"earlier"}`)}
			sealed := w.seals(i.Key, state)
			if lost {
				sealed, state = []byte("\x01nonsense"), provider.State{}
			}
			i.Made.State, i.Made.Target = sealed, lifecycle.Target{Name: "east", Identity: "account"}
			w.commits(ledger.Put(i))
			ref := w.asks(deprovision)
			asked := w.clock
			var told []provider.Holding
			gives := []error{context.DeadlineExceeded, nil}
			by := w.by(stub{cloud: w.cloud(), quarantine: func(h provider.Holding) error {
				told = append(told, h)
				return gives[len(told)-1]
			}})
			w.clock = w.clock.Add(w.waits(by, ref))
			w.settles(by, ref)
			for n, h := range told {
				if h.Tags != (provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: "i",
					Incarnation: i.Incarnation}) || !h.RetainedUntil.Equal(asked.Add(week)) || h.PlanID != i.Attributes.PlanID ||
					h.Target.Identity != "account" || !bytes.Equal(h.State.Encode(), state.Encode()) {
					t.Errorf("call %d is told %+v, of a state of format %d", n, h, h.State.Format)
				}
			}
			// The lease of the call that timed out goes with the life: it may yet land.
			if r := w.kept()[0]; len(told) != 2 || string(r.Made.State) != string(sealed) || r.Made.Target != i.Made.Target ||
				len(r.Leases) != 1 || !r.Leases[0].TimedOut {
				t.Errorf("%d calls, on record: %+v", len(told), r)
			}
		})
	}
}

// Without the provider's help nothing is deleted: the deletion waits.
func TestWhatCannotBeKept(t *testing.T) {
	w := newWorld(t)
	done(provisionKept)(w)
	outcome := w.step(w.by(struct{ provider.Provider }{w.demo()}), w.asks(deprovision))
	if i := w.instance(); outcome.Settled || i.State != lifecycle.Deleting || i.Operation.Faults != 1 || w.held() != 1 {
		t.Errorf("%+v, it is %q, %d things", outcome, i.State, w.held())
	}
}
