package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
)

// One damaged record of the reaper's hides no other one, whether the broker runs or not: it
// is named and counted, the rest is listed, and the exit status is 2.
func TestListsGoAroundADamagedRecord(t *testing.T) {
	b := newBench(t)
	b.provision("one", "sync", 0, 201)
	var rows []struct {
		Platform string `json:"platform_id"`
	}
	if err := json.Unmarshal([]byte(b.operate(0, "instances", "-o", "json")), &rows); err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	b.stop()
	s, err := bolt.Open(filepath.Join(b.dir, "longshore.db"), bolt.MustExist())
	if err != nil {
		t.Fatal(err)
	}
	ended := time.Now().Add(time.Hour) // else the reaper ends it
	records, key := ledger.New(s, func() string { return "w" }), lifecycle.Key{Platform: rows[0].Platform, Instance: "i"}
	kept := lifecycle.Record{Key: key.Former("1"), State: lifecycle.Quarantined, Incarnation: "1", Provider: "demo", Due: ended,
		Kept: &lifecycle.Kept{Since: time.Now(), Until: ended}}
	enclosed := kept
	enclosed.Key, enclosed.State = key.Former("2"), lifecycle.Ready
	enclosed.Kept = &lifecycle.Kept{Name: "enclosed", Since: time.Now(), Until: ended}
	changes := []ledger.Change{ledger.Put(kept), ledger.Put(enclosed),
		ledger.PutReport(ledger.Report{Started: time.Now(), Ended: ended, Swept: &ledger.Swept{Redriven: 7}}, "1")}
	if err := records.Commit(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
	for sort, partition := range map[string]string{"FORMER#a#": "I#p#a", "FORMER#z#": "I#p#z",
		"REPORT#a": ledger.ReaperPartition} {
		r := store.Record{Key: store.Key{Partition: partition, Sort: sort}, Writer: "w", Schema: 1, Body: []byte("no JSON")}
		if partition != ledger.ReaperPartition {
			r.Due = ended
		}
		if err := s.Commit(t.Context(), store.Put(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, runs := range []bool{false, true} {
		if runs {
			b.start()
		}
		for command, wants := range map[string][]string{
			"retained":          {"i@1", "in 59m", "not all records could be read (2 faults)", `"FORMER#a#"`, `"FORMER#z#"`},
			"reaper quarantine": {"enclosed", "demo", "released", "not all records could be read (2 faults)", `"FORMER#a#"`},
			"reaper report":     {"started again 7", "not all records could be read (1 faults)", `"REPORT#a"`},
		} {
			has(t, b.operate(2, strings.Fields(command)...), wants...)
		}
	}
}
