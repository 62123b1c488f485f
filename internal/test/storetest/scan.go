package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
)

// scanTests are about reading everything.
var scanTests = map[string]func(*testing.T, *Harness){
	"Everything": testScanEverything,
	"Empty":      testScanEmpty,
	"Cursors":    testScanCursors,
}

// scan reads all pages.
func scan(t *testing.T, s store.Store) []store.Record {
	t.Helper()
	all, err := Gather(func(cursor string) (store.Page, error) { return s.Scan(t.Context(), cursor) })
	if err != nil {
		t.Fatalf("Scan: %v", err)
	}
	return all
}

func testScanEverything(t *testing.T, h *Harness) {
	var records []store.Record
	for i := range 120 {
		r := resting(key(fmt.Sprintf("partition-%d", i%7), fmt.Sprintf("sort-%03d", i)))
		r.Body = body(20)
		records = append(records, r)
	}
	records = append(records, large("large")...)
	stored := putAll(t, h.Store, records...)
	if d := diff(sorted(stored), sorted(scan(t, h.Store))); d != "" {
		t.Errorf("every record of every partition once: -want +got:\n%s", d)
	}
	if err := h.Store.Commit(t.Context(), store.Delete(stored[0].Key, stored[0].Version)); err != nil {
		t.Fatal(err)
	}
	if d := diff(sorted(stored[1:]), sorted(scan(t, h.Store))); d != "" {
		t.Errorf("what is deleted is not there: -want +got:\n%s", d)
	}
}

func testScanEmpty(t *testing.T, h *Harness) {
	if got := scan(t, h.Store); len(got) != 0 {
		t.Errorf("an empty store has %d records", len(got))
	}
}

func testScanCursors(t *testing.T, h *Harness) {
	scan(t, h.Store)
	if _, err := h.Store.Scan(t.Context(), "no page gave this!"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a cursor that no page gave: %v", err)
	}
}
