package operator_test

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/testkit"
)

// Lists of the reaper's records go around what is damaged: they name each such record, and
// give the rest, with the name of the platform as the operator knows it. What names a thing
// that can be read finds it.
func TestAListGoesAroundADamagedRecord(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	s := knowing(t)
	key := lifecycle.Key{Platform: s.caller().Platform, Instance: "i"}
	service, plan := s.plan("retained")
	life := kept(key, "1", now)
	life.Attributes, life.Made.Broker = lifecycle.Attributes{ServiceID: service, PlanID: plan, SpaceGUID: "s"}, testkit.Identity
	enclosed := kept(key, "2", now)
	enclosed.Kept.Name = "enclosed"
	changes := []ledger.Change{ledger.Put(life), ledger.Put(enclosed), ledger.PutReport(ledger.Report{Started: now}, "1")}
	if err := s.ledger.Commit(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
	for sort, partition := range map[string]string{"FORMER#a#": "I#p#a", "FORMER#z#": "I#p#z",
		"REPORT#a": ledger.ReaperPartition, "INVENTORY": ledger.ReaperPartition} {
		r := store.Record{Key: store.Key{Partition: partition, Sort: sort}, Writer: "w", Schema: 1, Body: []byte("no JSON")}
		if partition != ledger.ReaperPartition {
			r.Due = now
		}
		if err := s.store.Commit(t.Context(), store.Put(r)); err != nil {
			t.Fatal(err)
		}
	}
	kepts, next, err := s.console.Retained(t.Context(), operator.Query{})
	if len(kepts) != 1 || kepts[0].Life != "1" || kepts[0].PlatformName != "korifi" || next != "" ||
		len(operator.Faults(err)) != 2 {
		t.Errorf("retained: %+v %q %v", kepts, next, err)
	}
	orphans, next, err := s.console.Quarantined(t.Context(), operator.Query{})
	if len(orphans) != 1 || orphans[0].PlatformName != "korifi" || next != "" || len(operator.Faults(err)) != 2 {
		t.Errorf("in quarantine: %+v %q %v", orphans, next, err)
	}
	if r, err := s.console.Report(t.Context()); len(r.Reports) != 1 || len(operator.Faults(err)) != 2 {
		t.Errorf("reports: %+v %v", r, err)
	}

	// Whether a damaged record is of a thing of the same name, nobody can tell.
	for name, found := range map[string]bool{"enclosed": false, "demo/enclosed": true, "other": false} {
		if _, err := s.console.Release(t.Context(), name); (err == nil) != found || refused(err) {
			t.Errorf("release of %q: %v", name, err)
		}
	}
	for id, found := range map[string]bool{"i": false, life.Handle(): true} {
		if _, err := s.console.Undelete(t.Context(), operator.Undeletion{ID: id, Platform: "korifi"}); (err == nil) != found || refused(err) {
			t.Errorf("undelete of %q: %v", id, err)
		}
	}
	if row, err := s.console.Owner(t.Context(), kepts[0].Made[0]); err != nil || row.Life != "1" {
		t.Errorf("whose: %+v %v", row, err)
	}
}

// A rebuild names the quarantines that it cannot read, and comes to its end.
func TestARebuildGoesAroundADamagedQuarantine(t *testing.T) {
	s, name, _ := enclosed(t)
	r := store.Record{Key: store.Key{Partition: "I#p#a", Sort: "FORMER#a#"}, Writer: "w", Schema: 1, Due: s.clock,
		Body: []byte("no JSON")}
	if err := s.store.Commit(t.Context(), store.Put(r)); err != nil {
		t.Fatal(err)
	}
	found, err := s.console.Rebuild(t.Context())
	if err != nil || !slices.Equal(found.Released, []string{name}) || len(found.Unknown) != 1 {
		t.Errorf("%+v %v", found, err)
	}
}
