package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
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

// commits writes records as something else would, fifty at a time.
func (w *world) commits(changes ...ledger.Change) {
	w.Helper()
	for some := range slices.Chunk(changes, 50) {
		expect.OK(w, quietLedger(w).Commit(context.Background(), some...))
	}
}

// keeps requires so many things, each of which is on record as kept.
func (w *world) keeps(things int) {
	w.Helper()
	if len(w.kept()) != things || w.held() != things {
		w.Errorf("%d things exist, want %d; on record as kept: %+v", w.held(), things, w.kept())
	}
}

// isKept requires that the one thing there is was made for "i" and is kept for the owner, as it is on record.
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

// A record that was rebuilt does not know its plan's snapshot: today's plan counts, and what is deleted is kept. A provider
// may drop the data with a binding, unless the plan keeps them. So it is told today's plan with each binding, too.
func TestABindingOfWhatWasRebuiltIsRemovedByTodaysPlan(t *testing.T) {
	w := newWorld(t)
	done(provisionKept, bindKept)(w)
	i := w.instance()
	plan := string(i.Attributes.Snapshot)
	if plan == "" {
		t.Fatal("the plan has no snapshot: the test proves nothing")
	}
	i.Attributes.Snapshot = nil
	w.commits(ledger.Put(i))
	var told []string
	w.drive(w.by(stub{cloud: w.cloud(), unbind: func(ctx context.Context, b provider.Binding) (provider.Status, error) {
		told = append(told, string(b.Instance.Operation.Kind)+" "+string(b.Instance.Snapshot))
		return w.cloud().Unbind(ctx, b)
	}}), w.asks(deprovision))
	w.keeps(1)
	want := []string{string(lifecycle.Deprovision) + " " + plan}
	expect.Same(t, "each removal of the binding is told", want, slices.Compact(told))
}

// outlived is a world in which "i" is kept, and its date has come.
func outlived(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	done(provisionKept, deprovision)(w)
	w.clock = w.kept()[0].Kept.Until.Add(time.Second)
	return w
}

// When its date has come it is deleted, wherever the process dies meanwhile, and whatever has its id by then.
func TestWhatIsKeptIsDeletedAtItsDate(t *testing.T) {
	for name, used := range map[string]bool{"Gone": false, "IDIsUsedAgain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			total := deaths(func(at int, after bool) bool {
				w := outlived(t)
				life, want := w.kept()[0].Key, 0
				if used {
					w.clock = w.clock.Add(-time.Hour)
					done(provisionKept)(w)
					w.clock, want = w.clock.Add(time.Hour), 1
				}
				w.effects, w.dieAt, w.after = 0, at, after
				survived := w.alive(w.rest)
				if w.dieAt = 0; !survived {
					w.restarts()
				}
				w.rest()
				if r := w.recorded(life); r.State != lifecycle.Deleted || r.LateLook.IsZero() || w.held() != want {
					t.Errorf("dying at effect %d (after: %v): %d things exist, want %d; on record: %+v", at, after,
						w.held(), want, r)
				}
				if used && w.instance().State != lifecycle.Ready {
					t.Errorf("what has its id is %q", w.instance().State)
				}
				return survived
			})
			if total < 8 {
				t.Errorf("died %d times only: the test proves little", total)
			}
		})
	}
}

// A provider that refuses to delete it at its date, since it is not empty, is asked again, until it is gone.
func TestWhatIsKeptIsDeletedAfterARefusal(t *testing.T) {
	w := outlived(t)
	life := w.kept()[0].Key
	expect.Same(t, "deletions that begin", 1, w.sweep().Removed)
	for _, ref := range w.started {
		w.settles(w.with(answers(provider.Status{}, refusing{}.Refuses(t.Context(), provider.Instance{}))), ref)
	}
	clear(w.started)
	w.left("refused", life, lifecycle.DeleteFailed, 1)
	w.clock = w.clock.Add(lifecycle.ReclaimAfter)
	w.rest()
	w.left("once it is empty", life, lifecycle.Deleted, 0)
}

// A provider is told the thing as its instance was, and until when; the date is the same in each step.
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

// freed has "i" be kept, and an operator allow that it is given back.
func freed(w *world) {
	w.Helper()
	done(provisionKept, deprovision)(w)
	w.free()
}

// free has the one kept life be free to be given back.
func (w *world) free() {
	w.Helper()
	r, ok := w.kept()[0].Free(lifecycle.Attributes{}, w.clock)
	if !ok {
		w.Fatal("it cannot be given back")
	}
	w.commits(ledger.Put(r))
	w.handle = r.Handle()
}

// undeleteAs asks for an instance of an id that "i" becomes, with more parameters.
func undeleteAs(id string, more map[string]any) asking {
	return func(w *world, b *broker.Broker) (broker.Result, error) {
		parameters := map[string]any{"restore_from": w.handle}
		maps.Copy(parameters, more)
		return orders(id, "retained", expect.Get(json.Marshal(parameters))(w))(w, b)
	}
}

var (
	undelete = undeleteAs("r", nil)
	remove   = deletes("r", "")
)

// isGivenBack requires that "r" has what was made for "i", and that it is in use.
func (w *world) isGivenBack(when string) {
	w.Helper()
	things, r := w.things.Things(), w.restored()
	if len(things) != 1 || len(w.kept()) != 0 {
		w.Errorf("%s: there are %+v, on record as kept: %+v", when, things, w.kept())
		return
	}
	instance, incarnation, _ := lifecycle.ParseHandle(w.handle)
	want := provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: "r", Incarnation: r.Incarnation,
		Origin: provider.Origin{Instance: instance, Incarnation: incarnation}}
	if thing := things[0]; thing.Locked || !thing.RetainedUntil.IsZero() || thing.Tags != want ||
		thing.Name != w.demo().Name(want) {
		w.Errorf("%s: it is %+v, want %+v", when, thing, want)
	}
	if r.Undeletes != nil || r.Made.Origin != want.Origin {
		w.Errorf("%s: on record: %+v, undeletes %+v", when, r.Made, r.Undeletes)
	}
}

// isKeptAgain requires that what "r" was to have is kept for it, and may be given back.
func (w *world) isKeptAgain(when string) {
	w.Helper()
	w.isKept(when, "r")
	if all := w.kept(); len(all) == 1 && (all[0].Kept.Freed.IsZero() || all[0].Made.Origin.Instance != "i") {
		w.Errorf("%s: it is on record as %+v, kept %+v", when, all[0], all[0].Kept)
	}
}

// An undelete gives back one thing, wherever the process dies. The thing is the new instance's, or is kept again if
// that instance fails or is deleted midway. It is never lost, and nothing is left behind.
func TestWhatIsGivenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		deed
		ends   func(*world, string)
		deaths int
	}{
		"Ready": {deed{freed, undelete, 1, lifecycle.Ready, restoredKey}, (*world).isGivenBack, 12},
		"Fails": {deed{freed, undeleteAs("r", map[string]any{"fail": true}), 1, lifecycle.CreateFailed, restoredKey},
			func(w *world, when string) {
				done(remove)(w)
				w.isKeptAgain(when)
			}, 12},
		"DeletedAtOnce": {deed{both(freed, asked(undelete)), remove, 1, lifecycle.Deleted, restoredKey},
			(*world).isKeptAgain, 12},
		"DeletedOnceAdopted": {deed{both(freed, begun(undelete)), remove, 1, lifecycle.Deleted, restoredKey},
			(*world).isKeptAgain, 12},
		"DeletedMidway": {deed{both(freed, stepped(undelete)), remove, 1, lifecycle.Deleted, restoredKey},
			(*world).isKeptAgain, 12},
		"DeletedOnceItFailed": {deed{both(freed, done(undeleteAs("r", map[string]any{"fail": true}))), remove, 1,
			lifecycle.Deleted, restoredKey}, (*world).isKeptAgain, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if total := tc.deed.dies(t, tc.ends); total < tc.deaths {
				t.Errorf("died %d times only: the test proves little", total)
			}
		})
	}
}

// asked is a request that is accepted, and of which no step is done.
func asked(ask asking) func(*world) { return func(w *world) { w.must(ask) } }

// stepped is a request whose work has made two steps: it is about to be in use.
func stepped(ask asking) func(*world) {
	return both(begun(ask), func(w *world) {
		for _, ref := range w.started {
			w.step(w.worker(), ref)
		}
		if things := w.things.Things(); things[0].Locked {
			w.Fatalf("preparing: it is not in use: %+v", things)
		}
	})
}

// A life that was kept again is given back by its latest handle, under the name that it was made with.
func TestWhatWasKeptAgainIsGivenBack(t *testing.T) {
	w := newWorld(t)
	both(freed, done(undeleteAs("r", map[string]any{"fail": true}), remove))(w)
	name, life := w.things.Things()[0].Name, w.kept()[0]
	w.handle = life.Handle()
	done(undeleteAs("r", nil))(w)
	things, r := w.things.Things(), w.restored()
	if len(things) != 1 || things[0].Name != name || things[0].Locked || things[0].Tags.Incarnation != r.Incarnation ||
		things[0].Tags.Origin.Instance != "i" || r.State != lifecycle.Ready || len(w.kept()) != 0 {
		t.Errorf("there are %+v; it is %q; on record as kept: %+v", things, r.State, w.kept())
	}
	// It is an instance like any other: it is kept for as long as its plan says.
	done(remove)(w)
	w.isKept("deleted", "r")
	if k := w.kept()[0].Kept; k.Until.Before(k.Since.Add(week-time.Hour)) || !k.Freed.IsZero() {
		t.Errorf("kept %+v", k)
	}
}

// It keeps the longer of the times that were promised.
func TestWhatIsKeptAgainKeepsItsDate(t *testing.T) {
	w := newWorld(t)
	freed(w)
	until := w.kept()[0].Kept.Until
	both(begun(undelete), done(remove))(w)
	expect.Same(t, "it is kept until", until, w.kept()[0].Kept.Until)
	w.free()
	w.clock = until.Add(-time.Hour)
	w.free()
	both(begun(undelete), done(remove))(w)
	if k := w.kept()[0].Kept; k.Until.Before(k.Since.Add(23 * time.Hour)) {
		t.Errorf("an hour before its end it is kept %+v", k)
	}
}

// adopting is a worker whose provider tells what is to be adopted.
func (w *world) adopting(adopt func(h provider.Holding, former provider.Tags) error) *worker.Worker {
	return w.by(stub{cloud: w.cloud(), adopt: adopt})
}

// The call of a former life that may yet land is waited for before the thing is another's.
func TestUndeleteWaitsForTheFormerLife(t *testing.T) {
	w := newWorld(t)
	freed(w)
	life := w.kept()[0]
	life.Leases = []lifecycle.Lease{{Holder: "late", Operation: "former", Taken: w.clock,
		Until: w.clock.Add(time.Minute), TimedOut: true}}
	w.commits(ledger.Put(life))
	ref, calls := w.asks(undelete), 0
	by := w.adopting(func(provider.Holding, provider.Tags) error { calls++; return nil })
	for range 3 {
		w.waits(by, ref)
		expect.Same(t, "calls before the lease has run out", 0, calls)
	}
	w.clock = w.clock.Add(time.Minute)
	w.step(by, ref)
	if calls != 1 || w.restored().Adopts() {
		t.Errorf("%d calls, on record: %+v", calls, w.restored().Undeletes)
	}
}

// Adopt is told both owners and the origin of the name.
func TestAProviderIsToldWhatToAdopt(t *testing.T) {
	w := newWorld(t)
	freed(w)
	life := w.kept()[0]
	life.Made.State = w.seals(life.Key, provider.State{Format: 3})
	w.commits(ledger.Put(life))
	var h provider.Holding
	var former provider.Tags
	w.step(w.adopting(func(is provider.Holding, was provider.Tags) error {
		h, former = is, was
		return nil
	}), w.asks(undelete))
	was := provider.Tags{Broker: testkit.Identity, Platform: "p", Instance: "i", Incarnation: life.Incarnation}
	if former.Owner() != was || h.Tags.Instance != "r" || h.Tags.Incarnation != w.restored().Incarnation ||
		h.Tags.Origin != (provider.Origin{Instance: "i", Incarnation: life.Incarnation}) || h.State.Format != 3 {
		t.Errorf("it is told %+v, of %+v", h, former)
	}
}

// refuses requires that a request is refused as a bad one.
func (w *world) refuses(ask asking, what string) {
	w.Helper()
	expect.Same(w, what+" is answered", lifecycle.BadRequest, reason(expect.Err(ask(w, w.broker()))))
}

// Two undeletes, or an undelete and the final deletion, have one winner.
func TestOneWins(t *testing.T) {
	for name, wins := range map[string]func(w *world){
		"TwoProvisions": func(w *world) {
			w.must(undelete)
			w.refuses(undeleteAs("r2", nil), "the second one")
			w.rest()
			w.isGivenBack("the first one")
		},
		"DeletionFirst": func(w *world) {
			w.clock = w.kept()[0].Kept.Until
			w.sweep()
			w.refuses(undelete, "what is being deleted")
			w.rest()
			w.keeps(0)
		},
		"UndeleteFirst": func(w *world) {
			w.clock = w.kept()[0].Kept.Until.Add(-time.Second)
			w.must(undelete)
			w.clock = w.clock.Add(time.Hour) // its date has come, and it is looked at
			expect.Same(w, "removed", 0, w.sweep().Removed)
			w.rest()
			w.isGivenBack("when its date has come")
		},
		"AtOnce": func(w *world) { // the deletion begins while the request is decided
			life := w.kept()[0]
			begun, err := life.BeginDelete(lifecycle.Start{ID: "op", Now: w.clock})
			expect.OK(w, err)
			w.commits(ledger.Put(begun))
			expect.Fails(w, "both win", ledger.ErrConflict, w.ledger().Commit(w.Context(), ledger.Delete(life)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			freed(w)
			wins(w)
		})
	}
}

// An undelete whose kept thing is missing fails: nothing is made in its place.
func TestWhatIsNotThereIsNotGivenBack(t *testing.T) {
	w := newWorld(t)
	freed(w)
	w.things.Take(w.things.Things()[0].Name)
	done(undelete)(w)
	w.left("without the thing", restoredKey, lifecycle.CreateFailed, 0)
	done(remove)(w)
	w.clock = w.kept()[0].Kept.Until
	w.rest()
	w.keeps(0)
}
