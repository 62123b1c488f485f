package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/memory"
)

func TestQuarantinesAreKept(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	serial := 0
	l := ledger.New(memory.New(), func() string { serial++; return fmt.Sprint(serial) })
	orphan := func(provider, id string) lifecycle.Orphan {
		return lifecycle.Orphan{
			Key: lifecycle.Key{Platform: "p", Instance: id, Binding: "b"}, Incarnation: "made", Provider: provider, Broker: "ours", Created: now,
		}
	}
	want := lifecycle.BeginQuarantine(orphan("a#b", "i"), "thing#1", "id", now)
	other := lifecycle.BeginQuarantine(orphan("a", "j"), "b#thing#1", "id-2", now)
	if err := l.Commit(t.Context(), ledger.Put(want), ledger.Put(other)); err != nil {
		t.Fatal(err)
	}
	want.Version = 1
	got, err := l.Quarantine(t.Context(), "a#b", "thing#1")
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	var due []string
	for d, err := range paging.All(t.Context(), func(ctx context.Context, cursor string) ([]ledger.Due, string, error) {
		return l.Due(ctx, now.Add(lifecycle.Grace), cursor)
	}) {
		if err != nil || d.Quarantine == nil || d.Quarantine.Version != 1 {
			t.Fatalf("%+v %v", d, err)
		}
		due = append(due, d.Quarantine.Name)
	}
	if slices.Sort(due); !slices.Equal(due, []string{"b#thing#1", "thing#1"}) {
		t.Errorf("due: %q", due)
	}
	if err := l.Commit(t.Context(), ledger.Delete(got), ledger.Delete(lifecycle.Quarantine{})); err != nil {
		t.Fatal(err)
	}
	page, next, err := l.Quarantines(t.Context(), "")
	if err != nil || next != "" || len(page) != 1 || page[0].Name != "b#thing#1" {
		t.Errorf("listed: %+v %q %v", page, next, err)
	}
}
