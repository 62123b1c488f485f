package worker_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// An aged provider has one target with an epoch. Its steps are done at once.
type aged struct {
	provider.Provider  // none
	provider.Inventory // none
	mu                 sync.Mutex
	said               target.Epoch
	changes, advances  int
	made               []string
	fails              func() error
	asked, changed     func() // before each advance, and after each change; nil for nothing
}

func (a *aged) step(in provider.Instance) (provider.Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if in.Target.Identity == "" {
		return provider.Status{Target: &provider.Target{Name: "east", Identity: "s-1"}, After: time.Millisecond}, nil
	}
	if err := a.said.Check("east", in.Epoch); err != nil {
		return provider.Status{}, err
	}
	a.changes++
	if a.changed != nil {
		a.changed()
	}
	if !slices.Contains(a.made, in.ID) {
		a.made = append(a.made, in.ID)
	}
	return provider.Status{Done: true}, nil
}

// Advance implements wired.Reconciler.
func (a *aged) Advance(_ context.Context, _ provider.Target, from, to target.Epoch) (target.Epoch, error) {
	if a.asked != nil {
		a.asked()
	}
	if a.fails != nil {
		if err := a.fails(); err != nil {
			return target.Epoch{}, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.said == from && from != to {
		a.said = to
		a.advances++
	}
	return a.said, nil
}

// Survey implements wired.Reconciler.
func (a *aged) Survey(context.Context, string) (provider.Target, target.Epoch, error) {
	return provider.Target{Name: "east", Identity: "s-1"}, a.said, nil
}

// Holdings implements wired.Reconciler.
func (a *aged) Holdings(context.Context, string, string) ([]provider.Holding, string, error) {
	return nil, "", nil
}

func (a *aged) Provision(_ context.Context, in provider.Instance) (provider.Status, error) {
	return a.step(in)
}
func (a *aged) Update(_ context.Context, in provider.Instance) (provider.Status, error) {
	return a.step(in)
}

// atEpoch requires that what is known of the target is where it is.
func (a *aged) atEpoch(t *testing.T, k *testkit.Kit) lifecycle.TargetEpoch {
	t.Helper()
	known := expect.Get(k.Ledger().Epoch(t.Context(), "demo", "s-1"))(t)
	at := target.Epoch{Line: known.Line, Count: known.Count, Mark: known.Mark}
	if at != a.said || at.Mark == "" || known.Reserved != "" {
		t.Errorf("it is known as %+v, and is %v", known, a.said)
	}
	return known
}

// A target that is as it was earlier is changed by no step: operations wait, the
// operator is told once, and the user no more than that it waits.
func TestARestoredTargetIsLeftAlone(t *testing.T) {
	w, log, counts := newWorld(t), &bytes.Buffer{}, &bytes.Buffer{}
	a := &aged{said: target.Epoch{Line: "one", Count: 7}}
	worker := w.by(a)
	worker.Log, worker.Metrics = slog.New(slog.NewTextHandler(log, nil)), metrics.New("s", counts, w.now)
	step := func(ref workflow.Ref) workflow.Outcome {
		t.Helper()
		outcome := w.step(worker, ref)
		w.clock = w.clock.Add(outcome.Wait)
		return outcome
	}
	w.drive(worker, w.asks(provision))
	for name, restored := range map[string]target.Epoch{"Earlier": {Line: "one", Count: 7}, "OtherLine": {Line: "two", Count: 90}} {
		w.clock = w.clock.Add(time.Hour)
		was, made := a.said, a.changes
		a.said = restored
		log.Reset()
		counts.Reset()
		ref := w.asks(updates(`{"of":"` + name + `"}`))
		for range 5 {
			if step(ref).Settled {
				t.Fatalf("%s: the update has settled", name)
			}
		}
		op := w.instance().Operation
		if a.changes != made || a.said != restored {
			t.Errorf("%s: %d changes were made, and it is at %v", name, a.changes-made, a.said)
		}
		if !strings.Contains(op.Trouble, "longshore reconcile") || strings.Contains(op.Description, "restored") || op.Description == "" {
			t.Errorf("%s: the operator reads %q, and the user %q", name, op.Trouble, op.Description)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "trouble=restored") {
			t.Errorf("%s: of 5 steps, %d lines tell: %s", name, n, log)
		}
		if said := counts.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, `"Dimensions":[["Stack"]]`) ||
			!strings.Contains(said, `"Trouble":1`) || !strings.Contains(said, `"trouble":"restored"`) {
			t.Errorf("%s: the alarm's metric is %s", name, said)
		}
		a.said = was
		w.drive(worker, ref)
		if op := w.instance().Operation; op.Phase != lifecycle.Succeeded || op.Trouble != "" || op.Description != "" {
			t.Errorf("%s: it ends as %+v", name, op)
		}
	}
	a.atEpoch(t, w.kit())
}

// However many processes raise a target at once, the latest epoch is recorded, and none of
// them fails.
func TestManyProcessesRaiseATarget(t *testing.T) {
	w := newWorld(t)
	a := &aged{said: target.Epoch{Line: "one", Count: 1}}
	k := testkit.New(testkit.Options{Vault: w.vault, Catalog: w.offered, Providers: map[string]provider.Provider{"demo": a}})
	var all sync.WaitGroup
	for _, id := range strings.Fields("a b c d e f g h i j k l m n o p") {
		r := expect.Get(orders(id, "async-bind", nil)(w, k.Broker()))(t)
		all.Go(func() { untilSettled(t, k.Worker(), refOf(r, 1)) })
	}
	all.Wait()
	a.atEpoch(t, k)
	expect.Same(t, "changes", 16, a.changes)
}

// Adopt is a change as others are.
func (a *aged) Adopt(ctx context.Context, h provider.Holding, _ provider.Tags) error {
	return a.Quarantine(ctx, h)
}

// That a thing is kept is on record as done: a target that is restored to before it, where
// the thing is open again, is seen to be restored.
func TestKeepingRaisesTheEpoch(t *testing.T) {
	w := newWorld(t)
	a := &aged{said: target.Epoch{Line: "one", Count: 7}}
	done(provisionKept)(w)
	i := w.instance()
	i.Made.Target = lifecycle.Target{Name: "east", Identity: "s-1"}
	w.commits(ledger.Put(i), ledger.Put(lifecycle.TargetEpoch{Provider: "demo", Identity: "s-1", Line: "one", Count: 7}))
	w.settles(w.by(a), w.asks(deprovision))
	expect.Same(t, "kept", 1, len(w.kept()))
	// It was raised before it and after it.
	if known := a.atEpoch(t, w.kit()); known.Count != 9 {
		t.Errorf("the target is known as %+v", known)
	}
}

// Concurrent operations share raises: a few cover 64 operations in one process.
func TestActsAtOnceShareRaises(t *testing.T) {
	const clients = 64
	now := testkit.Epoch
	a := &aged{said: target.Epoch{Line: "one", Count: 1}}
	k := testkit.New(testkit.Options{Providers: map[string]provider.Provider{"demo": a}, Now: func() time.Time { return now }})
	b, w := k.Broker(), k.Worker()
	var changed sync.WaitGroup
	changed.Add(clients)
	a.changed = changed.Done
	a.asked = func() { // the first one that raises after its change is slow
		a.mu.Lock()
		any := a.changes > 0
		a.mu.Unlock()
		if any {
			changed.Wait()
		}
	}
	var all sync.WaitGroup
	for n := range clients {
		r := expect.Get(orders(fmt.Sprint(n), "async-bind", nil)(&world{clock: now}, b))(t)
		all.Go(func() { untilSettled(t, w, refOf(r, 1)) })
	}
	all.Wait()
	known := a.atEpoch(t, k)
	t.Logf("%d operations: %d raises of the server, %d writes of the record", a.changes, a.advances, known.Version)
	if a.changes != clients || a.advances > clients/2 || known.Version != int64(2*a.advances) {
		t.Errorf("%d changes, %d raises, %d writes", a.changes, a.advances, known.Version)
	}
}

// An act is on record as done only after a raise that began after it. So a server that is
// restored to any time before the act is behind.
func TestDoneIsAfterARaise(t *testing.T) {
	s := newSite(t)
	k := s.process(&mortal{})
	for _, id := range []string{"a", "b", "c"} { // all in the same ten seconds
		var before []target.Epoch
		s.server.asked = func() {
			if slices.Contains(s.server.made, id) {
				before = append(before, s.server.said) // as a snapshot has it that was taken after the change
			}
		}
		s.makes(k, id)
		known := s.server.atEpoch(t, k)
		at := target.Epoch{Line: known.Line, Count: known.Count, Mark: known.Mark}
		if len(before) == 0 || before[0].Follows(at) {
			t.Errorf("%s: a snapshot of %v counts as %v", id, before, at)
		}
	}
}
