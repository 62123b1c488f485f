package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
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
		got := tc.record.Explains(lifecycle.Thing{Incarnation: tc.incarnation, Created: deleted.Add(tc.created)})
		expect.Same(t, name+": "+tc.reason, tc.want, got)
	}
}

// The life of a quarantine: each step by the time at which the reaper looks next.
func TestAQuarantine(t *testing.T) {
	begun := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return begun.Add(d) }
	const day = 24 * time.Hour
	q := lifecycle.Record{Key: bindingKey.Former("made")}
	must := func(next lifecycle.Record, err error) {
		t.Helper()
		expect.OK(t, err)
		q = next
	}
	thing := lifecycle.Thing{Name: "thing", Incarnation: "made", Of: "of", Provider: "demo"}
	for _, step := range []struct {
		what  string
		do    func()
		state lifecycle.State
		due   time.Duration
	}{
		{"begun", func() { must(q.BeginQuarantine(start("id", begun), thing)) }, lifecycle.Quarantining, lifecycle.Grace},
		{"driven again", func() { must(q.Restarted(start("", at(time.Hour)))) }, lifecycle.Quarantining,
			time.Hour + lifecycle.Grace},
		{"out of use", func() { must(q.Succeed(at(2*time.Hour), nil)) }, lifecycle.Quarantined, 14 * day},
		{"waiting", func() { q = q.Postponed(at(14 * day)) }, lifecycle.Quarantined, 14*day + time.Hour},
		{"released", func() { must(q.BeginRelease(start("release", at(day)))) }, lifecycle.Releasing, day + lifecycle.Grace},
		{"in vain", func() { must(q.Fail(at(2*day), lifecycle.Failure{})) }, lifecycle.Quarantined, 14 * day},
		{"once more", func() { must(q.BeginRelease(start("release", at(day)))) }, lifecycle.Releasing, day + lifecycle.Grace},
		{"in use", func() { must(q.Succeed(at(day), nil)) }, lifecycle.Ready, 31 * day},
		{"left alone", func() { q = q.LeftAlone(at(31 * day)) }, lifecycle.Ready, 61 * day},
	} {
		step.do()
		if due := q.Due.Sub(begun); q.State != step.state || due.Round(time.Minute) != step.due {
			t.Errorf("%s: it is %q, due after %v; want %q, %v", step.what, q.State, due, step.state, step.due)
		}
	}
	holds(t, q.OfOrphan() && q.IsReleased() && q.Kept.Name == "thing" && q.Kept.Until.Equal(at(14*day)) &&
		q.InstanceIncarnation == "of", "in the end", q, q.Kept)
	holds(t, expect.Err(q.BeginRelease(start("release", at(day)))) != nil, "it was released twice")
	_, free := q.Free(lifecycle.Attributes{}, begun)
	expect.Same(t, "an orphan may be given back", false, free)
}

// Restarted allows the same restarts to the reaper and to an operator.
func TestRestarted(t *testing.T) {
	kept := lifecycle.Record{State: lifecycle.Quarantined, Kept: &lifecycle.Kept{Until: at(60)}}
	for name, tc := range map[string]struct {
		record lifecycle.Record
		minute int
		want   lifecycle.State // empty for refused
	}{
		"Running":      {instances.after(t, create), 9, lifecycle.Creating},
		"CreateFailed": {instances.after(t, create, failed), 9, lifecycle.Deleting},
		"DeleteFailed": {instances.after(t, create, remove, failed), 9, lifecycle.Deleting},
		"Ready":        {instances.after(t, create, succeed), 9, ""},
		"Deleted":      {instances.after(t, create, remove, succeed), 9, ""},
		"Kept":         {kept, 59, ""},
		"DateCome":     {kept, 60, lifecycle.Deleting},
	} {
		next, err := tc.record.Restarted(start("again", at(tc.minute)))
		if tc.want == "" && !errors.As(err, new(*lifecycle.IllegalTransition)) ||
			tc.want != "" && (err != nil || next.State != tc.want) {
			t.Errorf("%s: it is %q: %v", name, next.State, err)
		}
		if attempt := next.Operation; tc.want == lifecycle.Creating && attempt.Attempt != 2 {
			t.Errorf("%s: it is tried as %+v", name, attempt)
		}
	}
}
