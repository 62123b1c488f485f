package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
)

func TestExplains(t *testing.T) {
	deleted := time.Date(2030, 1, 10, 0, 0, 0, 0, time.UTC)
	tombstone := lifecycle.Record{State: lifecycle.Deleted, Incarnation: "last", Expires: deleted.Add(lifecycle.Retention)}
	without := tombstone
	without.Incarnation = ""
	for name, tc := range map[string]struct {
		reason      string
		record      lifecycle.Record
		incarnation string
		created     time.Duration // after the deletion was recorded
		want        bool
	}{
		"Absent":       {"nobody asked for its deletion", lifecycle.Record{}, "last", -time.Hour, false},
		"Same":         {"the deletion left it", tombstone, "last", -time.Hour, true},
		"SameLate":     {"a late call made it", tombstone, "last", time.Hour, true},
		"Older":        {"it is of an earlier life", tombstone, "first", -time.Hour, true},
		"Newer":        {"its own record was lost", tombstone, "next", time.Hour, false},
		"Unknown":      {"its platform deleted what the broker did not know", without, "any", -time.Hour, true},
		"UnknownNewer": {"it was made after that", without, "any", time.Hour, false},
		"Nameless":     {"no incarnation is not the same one", without, "", time.Hour, false},
		"Ready":        {"what lives explains nothing", lifecycle.Record{State: lifecycle.Ready, Incarnation: "last"}, "last", -time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.record.Explains(lifecycle.Orphan{Incarnation: tc.incarnation, Created: deleted.Add(tc.created)}); got != tc.want {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}

// The life of a quarantine: each step by the time at which the reaper looks next.
func TestAQuarantine(t *testing.T) {
	begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	q := lifecycle.BeginQuarantine(lifecycle.Orphan{Provider: "demo"}, "thing", "id", begun)
	if ends := begun.Add(14 * 24 * time.Hour); !q.Ends.Equal(ends) {
		t.Errorf("it ends at %v, want %v", q.Ends, ends)
	}
	type look struct {
		Phase   lifecycle.QuarantinePhase
		Attempt int
		Due     time.Duration
		Current bool
	}
	seen := func() look {
		d := q.Due.Sub(begun)
		if q.Due.IsZero() {
			d = -1
		}
		return look{q.Phase, q.Attempt, d, q.Current("id", q.Attempt)}
	}
	at := func(d time.Duration) time.Time { return begun.Add(d) }
	const hour = time.Hour
	for _, step := range []struct {
		what string
		do   func()
		want look
	}{
		{"begun", func() {}, look{lifecycle.Enclosing, 1, lifecycle.Grace, true}},
		{"leased", func() { q = q.Leased(at(hour)) }, look{lifecycle.Enclosing, 1, hour, true}},
		{"failed", func() { q = q.Given().Faulted(at(hour), time.Minute) },
			look{lifecycle.Enclosing, 1, hour + time.Minute + lifecycle.Grace, true}},
		{"driven again", func() { q = q.Redriven(at(2 * hour)) }, look{lifecycle.Enclosing, 2, 2*hour + lifecycle.Grace, true}},
		{"out of use", func() { q = q.Moved(at(2 * hour)) }, look{lifecycle.Enclosed, 2, 3 * hour, false}},
		{"looked at", func() { q = q.Kept(at(14*24*hour - time.Minute)) }, look{lifecycle.Enclosed, 2, 14 * 24 * hour, false}},
		{"looked at after its end", func() { q = q.Kept(at(14 * 24 * hour)) }, look{lifecycle.Enclosed, 2, 14*24*hour + hour, false}},
		{"released", func() { q, _ = q.Release(at(hour)) }, look{lifecycle.Releasing, 3, hour + lifecycle.Grace, true}},
		{"in use", func() { q = q.Moved(at(hour)) }, look{lifecycle.Released, 3, -1, false}},
	} {
		step.do()
		if d := cmp.Diff(step.want, seen()); d != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, d)
		}
	}
	if !q.Busy.IsZero() || q.Faults != 0 {
		t.Errorf("%+v", q)
	}
	if again, changed := q.Release(at(hour)); changed || !cmp.Equal(again, q) {
		t.Error("it was released twice")
	}
	if (lifecycle.Quarantine{Phase: lifecycle.Enclosing, ID: "id", Attempt: 2}).Current("id", 1) {
		t.Error("a step of an older attempt may act")
	}
	if p, name, is := q.Token().Key.OfQuarantine(); p != "demo" || name != "thing" || !is {
		t.Errorf("its token is of %q %q, %v", p, name, is)
	}
	if _, _, is := (lifecycle.Key{Platform: "p", Instance: "i"}).OfQuarantine(); is {
		t.Error("an instance is in quarantine")
	}
}
