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

func TestAnOperatorReleasesAThing(t *testing.T) {
	s, name, key := enclosed(t)
	if q, err := s.console.Release(t.Context(), "demo/"+name); err != nil || q.Kept.Name != name {
		t.Fatalf("%+v %v", q, err)
	}
	if q := s.record(key); !q.IsReleased() || s.locked() {
		t.Errorf("%+v, out of use: %v", q, s.locked())
	}
	var refusal *operator.Refusal
	for _, again := range []string{name, "nothing"} {
		if _, err := s.console.Release(t.Context(), again); !errors.As(err, &refusal) {
			t.Errorf("release of %q: %v", again, err)
		}
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
	row, err := s.console.Discard(t.Context(), name)
	if err != nil || row.Instance != "one" {
		t.Fatalf("%+v %v", row, err)
	}
	if left := s.things.Things(); len(left) != 0 || s.record(key).State != lifecycle.Deleted {
		t.Errorf("%d things are left, %+v", len(left), s.record(key))
	}

	// A thing that has a record is its platform's to delete.
	s, name, key = enclosed(t)
	back, err := lifecycle.Record{Key: key.Current()}.Rebuild(lifecycle.Thing{Incarnation: key.Life, Provider: "demo"},
		lifecycle.Attributes{}, s.clock)
	expect.OK(t, err)
	expect.OK(t, s.console.Records.Commit(t.Context(), ledger.Put(back)))
	var refusal *operator.Refusal
	if _, err := s.console.Discard(t.Context(), name); !errors.As(err, &refusal) {
		t.Errorf("%v", err)
	}

	// A record of another life of the id does not matter.
	s, name, key = enclosed(t)
	s.provision("one", "sync")
	if row, err := s.console.Discard(t.Context(), name); err != nil || row.Instance != "one" {
		t.Errorf("%+v %v", row, err)
	}
	is, err := s.console.Records.Record(t.Context(), key.Current(), s.clock)
	if err != nil || is.State != lifecycle.Ready || s.record(key).State != lifecycle.Deleted {
		t.Errorf("what has the id is %+v, %v", is, err)
	}
}

func TestARebuildReleasesWhatHasARecordAgain(t *testing.T) {
	s, name, key := enclosed(t)
	found, err := s.console.Rebuild(t.Context())
	if err != nil || !slices.Equal(found.Instances, []string{"one"}) || !slices.Equal(found.Released, []string{name}) {
		t.Fatalf("%+v %v", found, err)
	}
	if q := s.record(key); !q.IsReleased() || s.locked() {
		t.Errorf("%+v, out of use: %v", q, s.locked())
	}
}
