package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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

// provisions has a process order an instance, and do what there is to do; it says why
// that does not end.
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

// makes is provisions that comes to its end.
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

// A mark that was reserved before is no mark of this raise: whoever has a copy of the
// records knows it too.
func TestAnOldReservationCoversNothing(t *testing.T) {
	s := newSite(t)
	k := s.process(&mortal{})
	old := lifecycle.TargetEpoch{Provider: "demo", Identity: "s-1", Line: "one", Count: 1, Reserved: "old"}
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
