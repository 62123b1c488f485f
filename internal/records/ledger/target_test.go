package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/memory"
)

// NextTargetUse finds one use of each target without reading the others.
func TestTargetsInUse(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	serial := 0
	l := ledger.New(memory.New(), func() string { serial++; return fmt.Sprint(serial) })
	use := func(provider, target, incarnation string) lifecycle.TargetUse {
		r := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: "i-" + incarnation, Binding: "b"}, Incarnation: incarnation,
			Provider: provider, Made: lifecycle.Made{Target: lifecycle.Target{Name: target}}}
		return r.TargetUse(now)
	}
	all := []lifecycle.TargetUse{use("demo", "east", "1"), use("demo", "east", "2"), use("demo", "east#1", "3"), use("demo", "west", "4"),
		use("other", "east", "5")}
	for i, u := range all {
		if err := l.Commit(t.Context(), ledger.Put(u)); err != nil {
			t.Fatal(err)
		}
		all[i].Version = 1
	}
	for elsewhere, want := range map[bool][]lifecycle.TargetUse{false: all, true: {all[0], all[2], all[3], all[4]}} {
		var got []lifecycle.TargetUse
		for at := (lifecycle.TargetUse{}); len(got) < 10; {
			next, err := l.NextTargetUse(t.Context(), at, elsewhere)
			if err != nil {
				t.Fatal(err)
			}
			if next == nil {
				break
			}
			at = *next
			got = append(got, at)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("elsewhere %v: -want +got:\n%s", elsewhere, d)
		}
	}
	if got, err := l.TargetUse(t.Context(), use("demo", "west", "4")); err != nil || got.Version != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if err := l.Commit(t.Context(), ledger.Delete(all[4])); err != nil {
		t.Fatal(err)
	}
	due, _, err := l.Due(t.Context(), all[0].Due, "")
	if err != nil || len(due) != 4 || due[0].TargetUse == nil {
		t.Errorf("due: %+v %v", due, err)
	}
}
