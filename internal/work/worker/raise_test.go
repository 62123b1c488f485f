package worker_test

import (
	"bytes"
	"context"
	"errors"
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
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
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
func (a *aged) atEpoch(t *testing.T, k *testkit.Kit) ledger.TargetEpoch {
	t.Helper()
	known := expect.Get(k.Ledger().Epoch(t.Context(), "demo", "s-1"))(t)
	if known.Epoch != a.said || known.Mark == "" || known.Reserved != "" {
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
	for name, restored := range map[string]target.Epoch{
		"Earlier": {Line: "one", Count: 7}, "OtherLine": {Line: "two", Count: 90},
	} {
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
		expect.Says(t, name+": the operator reads", op.Trouble, "longshore reconcile")
		if strings.Contains(op.Description, "restored") || op.Description == "" {
			t.Errorf("%s: the user reads %q", name, op.Description)
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

// However many processes raise a target at once, the latest epoch is recorded, and none of them fails.
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
	w.commits(ledger.Put(i), ledger.Put(ledger.TargetEpoch{Provider: "demo", Identity: "s-1",
		Known: target.Known{Epoch: target.Epoch{Line: "one", Count: 7}}}))
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
		at := s.server.atEpoch(t, k).Epoch
		if len(before) == 0 || before[0].Follows(at) {
			t.Errorf("%s: a snapshot of %v counts as %v", id, before, at)
		}
	}
}

// A mortal is what a process does to the world: from its n-th effect on, none comes
// about, or that one only comes about.
type mortal struct {
	dieAt, effects int
	after          bool
}

var errDead = errors.New("the process is dead")

func (m *mortal) effect(do func() error) error {
	m.effects++
	if m.dieAt > 0 && (m.effects > m.dieAt || m.effects == m.dieAt && !m.after) {
		return errDead
	}
	if err := do(); err != nil || m.effects != m.dieAt {
		return err
	}
	return errDead
}

// mortalStore and mortalServer are the records and the server, to a process.
type mortalStore struct {
	*memory.Store
	*mortal
}

func (s mortalStore) Commit(ctx context.Context, changes ...store.Change) error {
	return s.effect(func() error { return s.Store.Commit(ctx, changes...) })
}

type mortalServer struct {
	*aged
	*mortal
}

func (s mortalServer) Advance(ctx context.Context, t provider.Target, from, to target.Epoch) (at target.Epoch, err error) {
	err = s.effect(func() error { at, err = s.aged.Advance(ctx, t, from, to); return err })
	return at, err
}

// A site is a broker's data, at a server that others may share.
type site struct {
	*testing.T
	store  *memory.Store
	server *aged
	now    *time.Time
	ids    func() string
}

func newSite(t *testing.T) *site {
	now := testkit.Epoch
	return &site{t, memory.New(), &aged{said: target.Epoch{Line: "one", Count: 1}}, &now, testkit.IDs()}
}

// copied is another broker's data, as a copy of the folder.
func (s *site) copied() *site { o := *s; o.store = s.store.Clone(); return &o }

// process is a broker that has just been started.
func (s *site) process(m *mortal) *testkit.Kit {
	*s.now = s.now.Add(time.Minute)
	return testkit.New(testkit.Options{Store: mortalStore{s.store, m}, NewID: s.ids, Now: func() time.Time { return *s.now },
		Alone: true, Providers: map[string]provider.Provider{"demo": mortalServer{s.server, m}}})
}

// provisions has a process order an instance, and do what there is to do; it says why that does not end.
func (s *site) provisions(k *testkit.Kit, id string) (trouble string) {
	s.Helper()
	key := lifecycle.Key{Platform: "p", Instance: id}
	if _, err := orders(id, "async-bind", nil)(&world{}, k.Broker()); err != nil {
		return err.Error()
	}
	w := k.Worker()
	for range 12 {
		r, err := k.Ledger().Record(s.Context(), key, *s.now)
		if err != nil {
			return err.Error()
		}
		if !r.InProgress() {
			return ""
		}
		trouble = r.Operation.Trouble
		outcome, err := w.Step(s.Context(), workflow.Ref{Token: r.Token(), Attempt: r.Operation.Attempt})
		if err != nil {
			return err.Error()
		}
		*s.now = s.now.Add(outcome.Wait)
	}
	return trouble
}

// makes provisions an instance, and ends the test if that fails.
func (s *site) makes(k *testkit.Kit, id string) {
	s.Helper()
	if why := s.provisions(k, id); why != "" {
		s.Fatal(why)
	}
}

// A server that two brokers change, which run on copies of one set of records, is changed
// by one of them alone: whichever comes first, wherever the broker died before its records
// were copied. If there is one broker, nobody has to do anything.
func TestTheSecondOfTwoCopiesChangesNothing(t *testing.T) {
	for at, over := 1, false; !over; at++ {
		for _, after := range []bool{false, true} {
			name := fmt.Sprintf("Effect%d,%v", at, after)
			died := func() *site {
				s := newSite(t)
				s.makes(s.process(&mortal{}), "first")
				m := &mortal{dieAt: at, after: after}
				s.provisions(s.process(m), "second")
				over = m.effects < at
				return s
			}
			s := died()
			for _, id := range []string{"second", "third"} {
				expect.Same(t, fmt.Sprintf("%s: the only broker waits with %s", name, id), "",
					s.provisions(s.process(&mortal{}), id))
			}
			for order, swap := range map[string]bool{"OriginalFirst": false, "CopyFirst": true} {
				first := died()
				second := first.copied()
				if swap {
					first, second = second, first
				}
				expect.Same(t, fmt.Sprintf("%s, %s: the first one waits", name, order), "",
					first.provisions(first.process(&mortal{}), "third"))

				made := len(first.server.made)
				for range 2 { // and once more after a restart
					why := second.provisions(second.process(&mortal{}), "fourth")
					if len(first.server.made) != made || !strings.HasPrefix(why, target.Doubled) {
						t.Errorf("%s, %s: the second one has made %v: %s", name, order, first.server.made, why)
					}
				}
				expect.Same(t, fmt.Sprintf("%s, %s: the first one waits for the second", name, order), "",
					first.provisions(first.process(&mortal{}), "fifth"))
			}
		}
	}
}

// A target that cannot be raised, since a binding holds all that it has, is rid of that
// binding all the same; it is on record only when the target was raised.
func TestWhatKeepsATargetFromBeingRaisedIsTakenAway(t *testing.T) {
	s := newSite(t)
	k := s.process(&mortal{})
	s.makes(k, "i")
	unbound := false
	s.server.fails = func() error {
		if !unbound {
			return &target.Trouble{Kind: target.Connections, Target: "east", Message: "make room"}
		}
		return nil
	}
	*s.now = s.now.Add(time.Hour)
	w := k.Worker()
	target := provider.Target{Name: "east", Identity: "s-1"}
	for evicts, want := range map[bool]bool{false: false, true: true} {
		err := worker.Call(t.Context(), w, "demo", target, evicts, func() { unbound = evicts })
		if (err == nil) != want || unbound != want {
			t.Errorf("evicts %v: %v, and unbound %v", evicts, err, unbound)
		}
		unbound = false
	}
	s.server.fails, s.server.said.Mark = nil, "theirs"
	if err := worker.Call(t.Context(), k.Worker(), "demo", target, true, func() { unbound = true }); err == nil || unbound {
		t.Errorf("on another broker's server: %v, unbound %v", err, unbound)
	}
}

// A mark that was reserved before is no mark of this raise: whoever has a copy of the records knows it too.
func TestAnOldReservationCoversNothing(t *testing.T) {
	s := newSite(t)
	k := s.process(&mortal{})
	old := ledger.TargetEpoch{Provider: "demo", Identity: "s-1",
		Known: target.Known{Epoch: target.Epoch{Line: "one", Count: 1}, Reserved: "old"}}
	expect.OK(t, k.Ledger().Commit(t.Context(), ledger.Put(old)))
	var during target.Epoch
	expect.OK(t, worker.Call(t.Context(), k.Worker(), "demo", provider.Target{Name: "east", Identity: "s-1"}, false,
		func() { during = s.server.said }))
	if during.Count != 3 || during.Mark == "old" || s.server.said.Count != 4 {
		t.Errorf("a change is made at %v, and done at %v", during, s.server.said)
	}
}

// Quarantine implements provider.Quarantiner.
func (a *aged) Quarantine(_ context.Context, h provider.Holding) error {
	_, err := a.step(provider.Instance{ID: "locked " + h.Name, Target: h.Target, Epoch: h.Epoch})
	return err
}

// Release implements provider.Quarantiner.
func (a *aged) Release(ctx context.Context, h provider.Holding) error { return a.Quarantine(ctx, h) }

// A thing that no record knows of is put out of use only on a server that nobody else has
// raised: to a broker on a copy, it may be the original's. Locked, it is so on record.
func TestTheUnknownIsLockedAfterARaise(t *testing.T) {
	for name, others := range map[string]bool{"Alone": false, "Copied": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.makes(s.process(&mortal{}), "first")
			of := s.copied()
			if others {
				s.provisions(s.process(&mortal{}), "since")
			}
			k := of.process(&mortal{})
			q, err := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: "since", Life: "n"}}.BeginQuarantine(
				lifecycle.Start{ID: s.ids(), Now: *s.now}, lifecycle.Thing{Incarnation: "n", Provider: "demo",
					Target: lifecycle.Target{Name: "east", Identity: "s-1"}, Name: "thing"})
			expect.OK(t, errors.Join(err, k.Ledger().Commit(t.Context(), ledger.Put(q))))
			before := s.server.said
			outcome, err := k.Worker().Step(t.Context(), workflow.Of(q))
			locked := slices.Contains(s.server.made, "locked thing")
			if err != nil || outcome.Settled == others || locked == others || others && s.server.said != before {
				t.Errorf("%+v %v: locked %v, at %v after %v", outcome, err, locked, s.server.said, before)
			}
			if !others && s.server.said.Count < before.Count+2 {
				t.Errorf("it is at %v after %v: want a raise before it, and one after it", s.server.said, before)
			}
		})
	}
}
