package lifecycle

import "time"

// A call to the cloud that was given up on its way may land after a deletion
// has seen that nothing is left. A tombstone is therefore looked at once more,
// by an execution of its last operation under a new attempt. The operation
// itself has settled, and platforms see nothing of it.

// LateLookDue reports whether a tombstone is to be looked at now.
func (r Record) LateLookDue(now time.Time) bool {
	return r.State == Deleted && r.Operation != nil && !r.LateLook.IsZero() && !r.Due.After(now)
}

// LateLookBegun is the tombstone once another execution is to look at it.
func (r Record) LateLookBegun(now time.Time) Record {
	r = r.clone()
	r.LateAttempt = max(r.LateAttempt, r.Operation.Attempt) + 1
	r.Due = now.Add(LateLookAgain)
	return r
}

// LooksLate reports whether this execution may look at the tombstone: not if a
// new incarnation has begun, or if another execution looks.
func (r Record) LooksLate(operation string, attempt int) bool {
	return r.State == Deleted && !r.LateLook.IsZero() &&
		r.Operation != nil && r.Operation.ID == operation && r.LateAttempt == attempt && attempt > 0
}

// LookedLate records a late look. One that did not see an absence is followed
// by another.
func (r Record) LookedLate(now time.Time, absent bool) Record {
	r = r.clone()
	if absent {
		r.LateLook, r.LateAttempt, r.Due = time.Time{}, 0, r.Expires
		return r
	}
	r.Due = now.Add(LateLookAgain)
	return r
}

// Owns reports whether the record knows of a thing of this incarnation: it is
// what the thing was made for, or an operation, a late look or the time to
// reclaim will deal with it.
func (r Record) Owns(incarnation string) bool {
	switch r.State {
	case Absent:
		return false
	case Deleted:
		return !r.LateLook.IsZero()
	case Ready:
		return r.Incarnation == incarnation
	default:
		return true
	}
}
