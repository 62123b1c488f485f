package lifecycle_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// deleting is an instance that was ready and is being deleted, with leases of its own deletion and of others.
func deleting(t *testing.T) lifecycle.Record {
	t.Helper()
	r := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete)
	r.Made.Target = lifecycle.Target{Name: "east"}
	r.Leases = []lifecycle.Lease{
		{Holder: "now", Operation: r.Operation.ID, Until: at(9)},
		{Holder: "timed out", Operation: r.Operation.ID, Until: at(9), TimedOut: true},
		{Holder: "before", Operation: "another", Until: at(9)},
	}
	return r
}

// A kept life has a record beside the tombstone of its id: the leases go with the life, and
// what was secret or a user's goes with neither.
func TestKeep(t *testing.T) {
	r := deleting(t)
	next, kept, err := r.Keep(at(5), at(60))
	expect.OK(t, err)
	holds(t, next.State == lifecycle.Deleted && next.Key == instanceKey && next.LateLook.IsZero() && next.Leases == nil &&
		next.Due.Equal(next.Expires) && next.Operation.Phase == lifecycle.Succeeded && next.Made.State == nil,
		"the tombstone", next)
	want := r
	want.Key, want.State, want.Due, want.Operation = instanceKey.Former(r.Incarnation), lifecycle.Quarantined, at(60), nil
	want.Leases, want.Kept = r.Leases[1:], &lifecycle.Kept{Since: at(5), Until: at(60)}
	want.Attributes.Parameters, want.Attributes.SealedContext = nil, nil
	same(t, "the life", want, *kept)

	// A former life that failed to be made, and was to have what is kept of another one.
	r.Key, r.Undeletes = r.Key.Former(r.Incarnation), &lifecycle.Undeletion{Instance: "i", Incarnation: "1",
		Freed: at(1), Adopted: true}
	next, kept, err = r.Keep(at(5), at(60))
	expect.OK(t, err)
	holds(t, kept == nil && next.State == lifecycle.Quarantined && next.Key == r.Key && next.Undeletes == nil &&
		next.Kept.Freed.Equal(at(1)) && next.Operation.Phase == lifecycle.Succeeded, "a former life", next, kept)
	again, err := next.BeginDelete(start("again", at(60)))
	holds(t, err == nil && again.Past(next) == nil && again.State == lifecycle.Deleting && again.KeepsUntil(time.Hour).IsZero(),
		"its date has come", again, err)
}

// A former life whose deletion is refused is deleted later: no user could bind it, to empty it, or delete it again.
// An instance that has the id becomes ready.
func TestARefusedDeletionOfAFormerLife(t *testing.T) {
	refused := lifecycle.Failure{Message: "not empty", InstanceUsable: &yes, Untouched: true}
	_, kept, err := deleting(t).Keep(at(5), at(60))
	expect.OK(t, err)
	stray, err := lifecycle.Record{Key: instanceKey.Former(orphan)}.BeginOrphanDeletion(start("orphan", at(60)),
		lifecycle.Thing{Key: instanceKey, Incarnation: orphan, Provider: "provider", Created: at(1)})
	expect.OK(t, err)
	for name, life := range map[string]lifecycle.Record{
		"Kept": expect.Get(kept.Restarted(start("date", at(60))))(t), "Orphan": stray,
	} {
		life, err := life.Fail(at(61), refused)
		holds(t, err == nil && life.State == lifecycle.DeleteFailed && life.Due.Equal(at(61).Add(lifecycle.ReclaimAfter)) &&
			!*life.Operation.InstanceUsable, name+" is not to be deleted later", life.State, life.Due, life.Operation, err)
		again, err := life.Restarted(start("again", life.Due))
		holds(t, err == nil && again.State == lifecycle.Deleting, name+" is not deleted again", again.State, err)
	}
	is, err := deleting(t).Fail(at(61), refused)
	holds(t, err == nil && is.State == lifecycle.Ready && is.Due.IsZero() && *is.Operation.InstanceUsable,
		"what has the id is not ready", is.State, is.Due, err)
}

// The date until which an instance is kept follows from its deletion, so each step of the
// deletion computes the same date.
func TestKeepsUntil(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		reason    string
		change    func(*lifecycle.Record)
		retention time.Duration
		want      time.Duration // after the deletion began; zero for not at all
	}{
		"Promised":  {"its plan says so", func(*lifecycle.Record) {}, 7 * day, 7 * day},
		"None":      {"its plan says nothing", func(*lifecycle.Record) {}, 0, 0},
		"HalfMade":  {"nobody has used it", func(r *lifecycle.Record) { r.Unfinished = true }, 7 * day, 0},
		"Orphan":    {"nobody knows its plan", func(r *lifecycle.Record) { r.Attributes.PlanID = "" }, 7 * day, 0},
		"Binding":   {"a login is nothing to keep", func(r *lifecycle.Record) { r.Key = bindingKey }, 7 * day, 0},
		"DateCome":  {"it was kept", func(r *lifecycle.Record) { r.Kept = &lifecycle.Kept{} }, 7 * day, 0},
		"Undeleted": {"it holds what was promised to be kept", undeletes(30 * day), 0, 30 * day},
		"AtLeast":   {"a developer has just asked for it", undeletes(time.Hour), 0, day},
	} {
		r := deleting(t)
		tc.change(&r)
		var want time.Time
		if tc.want > 0 {
			want = r.Operation.Started.Add(tc.want).Truncate(time.Millisecond)
		}
		expect.Same(t, name+": "+tc.reason+": until", want, r.KeepsUntil(tc.retention))
	}
}

func undeletes(until time.Duration) func(*lifecycle.Record) {
	return func(r *lifecycle.Record) {
		r.Unfinished, r.Undeletes = true, &lifecycle.Undeletion{Until: r.Operation.Started.Add(until).Truncate(time.Millisecond)}
	}
}

// Names derive from the life that a thing was made for, however often it is given back.
func TestUndeleteKeepsTheOrigin(t *testing.T) {
	_, kept, err := deleting(t).Keep(at(5), at(60))
	expect.OK(t, err)
	expect.Same(t, "what nobody has allowed to give back", nil, kept.Undelete("provider", attributes("small")))
	free, ok := kept.Free(lifecycle.Attributes{}, at(6))
	holds(t, ok && free.Kept.Until.Equal(at(6+24*60)) && free.Due.Equal(free.Kept.Until) && kept.Kept.Freed.IsZero(),
		"it is not free for a day", free.Kept, ok)
	origin := lifecycle.Origin{Instance: "instance", Incarnation: kept.Incarnation}
	fresh := free.Undelete("provider", attributes("small"))
	holds(t, fresh.Made.Origin == origin && fresh.Made.Target == kept.Made.Target && len(fresh.Leases) == 2, "given back", fresh)
	free.Made.Origin, free.Incarnation = origin, "another"
	if again := free.Undelete("provider", attributes("small")); again.Made.Origin != origin ||
		again.Undeletes.Incarnation != "another" {
		t.Errorf("%+v", again)
	}
	elsewhere, _ := free.Free(lifecycle.Attributes{SpaceGUID: "space 2"}, at(7))
	expect.Same(t, "what is to be given back in another space", nil, elsewhere.Undelete("provider", attributes("small")))
}

// One execution at a time takes the late look at a tombstone, and none does once the id is used again.
func TestLateLook(t *testing.T) {
	c := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Succeed)
	at := c.LateLook
	id, attempt := c.Operation.ID, c.Operation.Attempt
	holds(t, !c.LateLookDue(at.Add(-1)) && c.LateLookDue(at), "it is not due when it is to be looked at", c.Due)
	begun := c.LateLookBegun(at)
	holds(t, !begun.LateLookDue(at) && begun.LateLookDue(at.Add(lifecycle.LateLookAgain)), "begun, it is due again", begun.Due)
	holds(t, !begun.LooksLate(id, attempt) && begun.LooksLate(id, attempt+1) && !begun.LooksLate("other", attempt+1),
		"it is not the new attempt alone that may look")
	holds(t, !begun.InProgress() && !begun.Current(id, attempt+1) && begun.Operation.Phase == lifecycle.Succeeded,
		"LOP-19: platforms see it", begun.Operation)
	again := begun.LookedLate(at.Add(time.Second), false)
	holds(t, !again.LateLook.IsZero() && again.Due.Equal(at.Add(time.Second+lifecycle.LateLookAgain)),
		"what was not seen to be absent is due", again.Due)
	over := begun.LookedLate(at.Add(time.Second), true)
	holds(t, !over.LooksLate(id, attempt+1) && !over.LateLookDue(at.AddDate(1, 0, 0)) && over.Due.Equal(over.Expires),
		"what was seen to be absent is due", over.Due)
	next, err := begun.BeginCreate(lifecycle.Start{ID: "next", Now: at, Received: at, Timeout: time.Hour},
		lifecycle.Record{Provider: "demo"})
	holds(t, err == nil && !next.LooksLate(id, attempt+1), "an id that is used again is looked at as if it were deleted", err)
	never := instances.after(t, lifecycle.Entomb)
	holds(t, !never.LateLookDue(at.AddDate(1, 0, 0)), "what never existed is looked at")
}
