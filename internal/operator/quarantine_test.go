package operator_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
)

// enclosed puts what a site has made for an instance out of use, whose record it
// has lost, and gives the thing's name, and the key of its life.
func enclosed(t *testing.T) (*site, string, lifecycle.Key) {
	t.Helper()
	before := newSite(t)
	before.provision("one", "sync")
	s := before.over()
	s.clock = before.clock.Add(time.Hour)
	held, _, err := s.console.Inventories["demo"].List(t.Context(), "")
	if err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	h := held[0]
	key := lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Life: h.Tags.Incarnation}
	q, err := lifecycle.Record{Key: key}.BeginQuarantine(lifecycle.Start{ID: s.id(), Now: s.clock},
		lifecycle.Thing{Name: h.Name, Incarnation: h.Tags.Incarnation, Provider: "demo", Broker: h.Tags.Broker,
			Created: h.Created})
	expect.OK(t, errors.Join(err, s.ledger.Commit(t.Context(), ledger.Put(q)), s.Finish(t.Context(), workflow.Of(q))))
	if q := s.record(q.Key); q.State != lifecycle.Quarantined || !s.locked() {
		t.Fatalf("%+v, out of use: %v", q, s.locked())
	}
	return s, h.Name, q.Key
}

// locked reports whether anything is out of use.
func (s *site) locked() bool {
	return slices.ContainsFunc(s.things.Things(), func(t cloudtest.Thing) bool { return t.Locked })
}

// hasReleased requires that the thing is in use again.
func (s *site) hasReleased(key lifecycle.Key) {
	s.Helper()
	if q := s.record(key); !q.IsReleased() || s.locked() {
		s.Errorf("%+v, out of use: %v", q, s.locked())
	}
}

func TestAnOperatorReleasesAThing(t *testing.T) {
	s, name, key := enclosed(t)
	expect.Same(t, "released", name, expect.Get(s.console.Release(t.Context(), "demo/"+name))(t).Kept.Name)
	s.hasReleased(key)
	for _, again := range []string{name, "nothing"} {
		isRefused(t, "release of "+again, expect.Err(s.console.Release(t.Context(), again)))
	}
	for state, listed := range map[string]int{"": 1, "released": 1, "ready": 0} {
		page, next, err := s.console.Quarantined(t.Context(), operator.Query{State: state})
		if err != nil || next != "" || len(page) != listed || listed > 0 && page[0].State != "released" {
			t.Errorf("listed by the state %q: %+v %q %v", state, page, next, err)
		}
	}
}

func TestAnOperatorDeletesAThing(t *testing.T) {
	s, name, key := enclosed(t)
	discard := func() {
		t.Helper()
		expect.Same(t, "deleted", "one", expect.Get(s.console.Discard(t.Context(), name))(t).Instance)
	}
	discard()
	if left := s.things.Things(); len(left) != 0 || s.record(key).State != lifecycle.Deleted {
		t.Errorf("%d things are left, %+v", len(left), s.record(key))
	}

	// A thing that has a record is its platform's to delete.
	s, name, key = enclosed(t)
	back, err := lifecycle.Record{Key: key.Current()}.Rebuild(lifecycle.Thing{Incarnation: key.Life, Provider: "demo"},
		lifecycle.Attributes{}, s.clock)
	expect.OK(t, err)
	expect.OK(t, s.console.Records.Commit(t.Context(), ledger.Put(back)))
	isRefused(t, "what has a record", expect.Err(s.console.Discard(t.Context(), name)))

	// A record of another life of the id does not matter.
	s, name, key = enclosed(t)
	s.provision("one", "sync")
	discard()
	if is := s.record(key.Current()); is.State != lifecycle.Ready || s.record(key).State != lifecycle.Deleted {
		t.Errorf("what has the id is %+v", is)
	}
}

// A rebuild releases what has a record again. It names the quarantines that it cannot read, and comes to its end.
func TestARebuildReleasesWhatHasARecordAgain(t *testing.T) {
	for _, damaged := range []int{0, 1} {
		s, name, key := enclosed(t)
		if damaged > 0 {
			r := store.Record{Key: store.Key{Partition: "I#p#a", Sort: "FORMER#a#"}, Writer: "w", Schema: 1, Due: s.clock,
				Body: []byte("no JSON")}
			expect.OK(t, s.store.Commit(t.Context(), store.Put(r)))
		}
		found, err := s.console.Rebuild(t.Context())
		if err != nil || !slices.Equal(found.Instances, []string{"one"}) || !slices.Equal(found.Released, []string{name}) ||
			len(found.Unknown) != damaged {
			t.Fatalf("%+v %v", found, err)
		}
		s.hasReleased(key)
	}
}
