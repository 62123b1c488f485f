package lifecycle

import "time"

// A call to the cloud that was given up on its way may land after a deletion
// has seen that nothing is left. A tombstone is therefore looked at once more,
// by an execution of its last operation under a new attempt. The operation
// itself has settled, and platforms see nothing of it.

// LateLookDue reports whether a tombstone is to be looked at now.
func (c Course) LateLookDue(now time.Time) bool {
	return c.State == Deleted && c.Operation != nil && !c.LateLook.IsZero() && !c.Due.After(now)
}

// LateLookBegun is the tombstone once another execution is to look at it.
func (c Course) LateLookBegun(now time.Time) Course {
	c = c.clone()
	c.LateAttempt = max(c.LateAttempt, c.Operation.Attempt) + 1
	c.Due = now.Add(LateLookAgain)
	return c
}

// LooksLate reports whether this execution may look at the tombstone: not if a
// new incarnation has begun, or if another execution looks.
func (c Course) LooksLate(operation string, attempt int) bool {
	return c.State == Deleted && !c.LateLook.IsZero() &&
		c.Operation != nil && c.Operation.ID == operation && c.LateAttempt == attempt && attempt > 0
}

// LookedLate records a late look. One that did not see an absence is followed
// by another.
func (c Course) LookedLate(now time.Time, absent bool) Course {
	c = c.clone()
	if absent {
		c.LateLook, c.LateAttempt, c.Due = time.Time{}, 0, c.Expires
		return c
	}
	c.Due = now.Add(LateLookAgain)
	return c
}
