package worker_test

import (
	"context"
	"errors"
	"fmt"
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
)

var restoredKey = lifecycle.Key{Platform: "p", Instance: "r"}

// restore asks for an instance "r" that is restored from the instance "i".
var restore = orders("r", "restorable", []byte(`{"restore_from":"i"}`))

func (w *world) restored() lifecycle.Record { return w.recorded(restoredKey) }

// A provider is told what its source is, in each step, with the state that the source's own operations left, opened.
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
		if s == nil || s.Platform != "p" || s.ID != "i" || s.Incarnation != i.Incarnation ||
			string(s.Snapshot) != `{"means":"this"}` || string(s.State.Data) != "x" || s.State.Format != 2 ||
			s.Target != i.Made.Target || in.Target != s.Target || s.Origin != i.Made.Origin {
			t.Errorf("step %d is told another source: %v", n, s != nil)
		}
	}
	r := w.restored()
	if len(told) != 2 || r.State != lifecycle.Ready {
		t.Errorf("after %d steps it is %q", len(told), r.State)
	}
	// It is there for good: a target that leaves the settings makes the inventory incomplete as long as it stands.
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
				if r.State != lifecycle.CreateFailed || calls != want {
					t.Fatalf("after %d calls it is %q: %s", calls, r.State, r.Operation.Description)
				}
				expect.Says(t, "what the platform reads", r.Operation.Description, "changed or deleted")
				if calls > 0 && r.Made.State == nil {
					t.Error("what the provider remembers is lost")
				}
				w.rest()
				w.left("in the end", restoredKey, lifecycle.Deleted, c.held)
				p := expect.Get(w.broker().LastOperation(t.Context(), restoredKey, ref.Token.String()))(t)
				expect.Same(t, "its token says", lifecycle.Failed, p.Operation.Phase)
			})
		}
	}
}

// A source that changes after its record was read meets the check of the commit before the cloud is asked.
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

// located is a provider whose targets are proven by its caller.
type located struct {
	stub
	account string
	fails   error
	refused int // how often it was asked whether it refuses a deletion
}

func (p *located) Identify(_ context.Context, in provider.Instance) (provider.Target, error) {
	return provider.Target{Name: "east", Identity: p.account}, p.fails
}

func (p *located) Refuses(context.Context, provider.Instance) error {
	p.refused++
	return nil
}

// The first step of an instance learns its target and makes nothing. At another account,
// and where nobody says which one it is, a step calls nothing and the operation waits.
func TestATargetIsProvenBeforeEachStep(t *testing.T) {
	w := newWorld(t)
	calls := 0
	p := &located{account: "one", stub: w.tells(func(in provider.Instance) (provider.Status, error) {
		calls++
		expect.Same(t, "a step is at", provider.Target{Name: "east", Identity: "one"}, in.Target)
		return provider.Status{Done: true}, nil
	})}
	ref, by := w.asks(provision), w.by(p)
	step := func() {
		t.Helper()
		w.clock = w.clock.Add(max(w.step(by, ref).Wait, time.Second))
	}
	step()
	if at := w.instance().Made.Target; calls != 0 || at != (lifecycle.Target{Name: "east", Identity: "one"}) {
		t.Fatalf("the first step made %d calls, and %v is recorded", calls, at)
	}
	for name, c := range map[string]struct {
		account string
		fails   error
		says    string
	}{
		"Other":   {"two", nil, `it answers as "two", and this was made in "one"`},
		"Unknown": {"one", errors.New("no answer"), ""},
	} {
		p.account, p.fails = c.account, c.fails
		step()
		if op := w.instance().Operation; calls != 0 || op.Phase != lifecycle.InProgress || op.Faults == 0 ||
			!strings.Contains(op.Trouble, c.says) {
			t.Errorf("%s: %d calls, and the operation is %+v", name, calls, op)
		}
	}
	p.account, p.fails = "one", nil
	step()
	if state := w.instance().State; calls != 1 || state != lifecycle.Ready {
		t.Errorf("at its own account again: %d calls, and it is %q", calls, state)
	}
}

// A provider is not asked at another account whether it refuses a deletion, and no binding is removed meanwhile.
func TestARefusalIsAskedOfTheRightTarget(t *testing.T) {
	w := newWorld(t)
	done(provision, bind)(w)
	p := &located{stub: stub{cloud: w.cloud()}, account: "two"}
	i := w.instance()
	i.Made.Target = lifecycle.Target{Name: "east", Identity: "one"}
	w.commits(ledger.Put(i))
	w.step(w.by(p), w.asks(deprovision))
	b := w.recorded(bindingKey)
	if p.refused != 0 || b.State != lifecycle.Ready || w.instance().Operation.Faults == 0 {
		t.Errorf("asked %d times, the binding is %q, the operation is %+v", p.refused, b.State, w.instance().Operation)
	}
}

// refusing is a provider that refuses deletions.
type refusing struct{ stub }

func (refusing) Refuses(context.Context, provider.Instance) error {
	return &provider.Failure{Message: "it is not empty", InstanceUsable: new(true), Untouched: true}
}

// A deletion that the provider refuses takes no binding away: the instance is ready
// as before, can be bound so that it can be emptied, and is deleted when it is empty.
// The tombstones of earlier bindings make no difference.
func TestARefusedDeletionTakesNothing(t *testing.T) {
	for name, before := range map[string][]asking{
		"OneBinding": {provision, bind}, "AfterATombstone": {provision, bindAs("a"), deletes("i", "a"), bind},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done(before...)(w)
			w.settles(w.by(refusing{stub{cloud: w.cloud()}}), w.asks(deprovision))
			i := w.instance()
			if op := i.Operation; i.State != lifecycle.Ready || op.Phase != lifecycle.Failed || op.InstanceUsable == nil ||
				!*op.InstanceUsable || op.Description != "it is not empty" {
				t.Errorf("state %q, operation %+v", i.State, op)
			}
			if b := w.recorded(bindingKey); b.State != lifecycle.Ready || b.Grant == nil {
				t.Errorf("the binding is %q", b.State)
			}
			w.must(bind) // the same again: there it is
			done(deprovision)(w)
			w.left("once it is empty", instanceKey, lifecycle.Deleted, 0)
		})
	}
}

func provisionWith(parameters string) asking { return orders("i", "async-bind", []byte(parameters)) }
func bindWith(parameters string) asking      { return binds("b", "async-bind", []byte(parameters)) }

// When nothing sealed can be opened any more, everything can still be deleted, in whatever state it is: by the broker's
// answer to the DELETE, each step, the look that comes after it, and the reaper.
func TestDeletionNeedsNoKey(t *testing.T) {
	provision, bind := provisionWith(`{"delay_seconds":7}`), bindWith(`{"delay_seconds":5}`)
	for name, tc := range map[string]struct {
		reason string
		before func(*world)
		asks   []asking
		held   int
	}{
		"Deprovision":       {"an instance with parameters", done(provision), []asking{deprovision}, 0},
		"Unbind":            {"a binding with parameters, a secret and a grant", done(provision, bind), []asking{unbind}, 1},
		"Both":              {"one after the other", done(provision, bind), []asking{unbind, deprovision}, 0},
		"WithItsBindings":   {"the bindings go with the instance", done(provision, bind), []asking{deprovision}, 0},
		"Updated":           {"after an update", done(provision, update), []asking{deprovision}, 0},
		"HalfProvisioned":   {"overtaking the creation", begun(provision), []asking{deprovision}, 0},
		"HalfBound":         {"overtaking the bind", both(done(provision), begun(bind)), []asking{unbind}, 1},
		"HalfBoundInstance": {"with its instance", both(done(provision), begun(bind)), []asking{deprovision}, 0},
		"FailedCreation":    {"what failed", done(provisionWith(`{"fail":true,"delay_seconds":7}`)), []asking{deprovision}, 0},
		"FailingDeprovision": {"nobody knows any more that it was to fail", done(provisionWith(`{"fail":"deprovision"}`)),
			[]asking{deprovision}, 0},
		"FailingUnbind":     {"also of a binding", done(provision, bindWith(`{"fail":"unbind"}`)), []asking{unbind}, 1},
		"ReclaimedByReaper": {"a failed creation that nobody deletes", done(provisionWith(`{"fail":true}`)), nil, 0},
		"LeftoversOfRequest": {"a deletion that was lost on its way, and is driven by the reaper", done(provision, bind),
			[]asking{deprovision}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.before(w)
			w.vault = shut{vault.ErrSealed} // the key is gone
			for _, ask := range tc.asks {
				w.must(ask)
				if name == "LeftoversOfRequest" {
					clear(w.started)
				}
				w.rest()
			}
			w.clock = w.clock.Add(lifecycle.LateLook + 2*lifecycle.Grace)
			w.rest()
			w.clock = w.clock.Add(lifecycle.ReclaimAfter)
			w.rest()
			expect.Same(t, fmt.Sprintf("%s: things that are left; the instance is %q", tc.reason, w.instance().State), tc.held,
				w.held())
			i := w.instance()
			if tc.held == 0 && i.State != lifecycle.Deleted && i.State != lifecycle.Absent {
				t.Errorf("%s: the instance is %q: %s", tc.reason, i.State, i.Operation.Description)
			}
		})
	}
}

// An update needs its parameters, and refuses a DELETE while it runs (DEPR-09): one that cannot open them ends at its
// deadline, by whoever looks then, and no later.
func TestAnUpdateThatCannotBeOpenedEndsAtItsDeadline(t *testing.T) {
	for _, driven := range []bool{true, false} {
		t.Run(fmt.Sprintf("Driven=%v", driven), func(t *testing.T) {
			w := newWorld(t)
			done(provision)(w)
			ref := w.asks(update)
			w.vault = shut{vault.ErrSealed} // the key is gone
			if _, err := w.worker().Step(context.Background(), ref); !errors.Is(err, vault.ErrSealed) {
				t.Fatalf("the step ends with %v: the test proves nothing", err)
			}
			w.left("before its deadline", instanceKey, lifecycle.Updating, 1)
			if !driven {
				clear(w.started)
			}
			w.clock = w.instance().Operation.Deadline.Add(lifecycle.Grace)
			w.rest()
			if i := w.instance(); i.State != lifecycle.Ready || i.Operation.Phase != lifecycle.Failed {
				t.Fatalf("at its deadline the instance is %q, the update %q", i.State, i.Operation.Phase)
			}
			done(deprovision)(w)
			w.left("in the end", instanceKey, lifecycle.Deleted, 0)
		})
	}
}
