package lifecycle

import "time"

// Hazard: a call that timed out may take effect after the deletion saw that nothing is
// left. So an execution of the tombstone's last operation looks once more, under a new
// attempt. The operation itself has settled, and platforms do not see the late look.

// LateLookDue reports whether a tombstone's late look is due.
func (r Record) LateLookDue(now time.Time) bool {
	return r.State == Deleted && r.Operation != nil && !r.LateLook.IsZero() && !r.Due.After(now)
}

// LateLookBegun returns the tombstone after an execution has been started for the late look.
func (r Record) LateLookBegun(now time.Time) Record {
	r = r.clone()
	r.LateAttempt = max(r.LateAttempt, r.Operation.Attempt) + 1
	r.Due = now.Add(LateLookAgain)
	return r
}

// LooksLate reports whether this execution may take the late look. It may not once a new
// incarnation has begun, or another execution has been started.
func (r Record) LooksLate(operation string, attempt int) bool {
	return r.State == Deleted && !r.LateLook.IsZero() &&
		r.Operation != nil && r.Operation.ID == operation && r.LateAttempt == attempt && attempt > 0
}

// LookedLate records a late look. If the look did not prove the absence, another one follows.
func (r Record) LookedLate(now time.Time, absent bool) Record {
	r = r.clone()
	if absent {
		r.LateLook, r.LateAttempt, r.Due = time.Time{}, 0, r.Expires
		return r
	}
	r.Due = now.Add(LateLookAgain)
	return r
}

// Owns reports whether the record accounts for a thing of this incarnation: it uses the
// thing, or one of its operations, its late look or its cleanup will remove the thing.
func (r Record) Owns(incarnation string) bool {
	return r.Incarnation == incarnation && (r.Exists() || r.State == Deleted && !r.LateLook.IsZero())
}
