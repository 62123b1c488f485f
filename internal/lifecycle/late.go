package lifecycle

import "time"

// A call to the cloud that timed out may take effect after a deletion has seen that
// nothing is left. So an execution of the tombstone's last operation asks the cloud
// once more, under a new attempt. The operation itself has settled, and platforms see
// nothing of this late look.

// LateLookDue reports whether a tombstone is to be looked at now.
func (r Record) LateLookDue(now time.Time) bool {
	return r.State == Deleted && r.Operation != nil && !r.LateLook.IsZero() && !r.Due.After(now)
}

// LateLookBegun is the tombstone once another execution has been told to ask.
func (r Record) LateLookBegun(now time.Time) Record {
	r = r.clone()
	r.LateAttempt = max(r.LateAttempt, r.Operation.Attempt) + 1
	r.Due = now.Add(LateLookAgain)
	return r
}

// LooksLate reports whether this execution may ask the cloud about the tombstone. It
// may not if a new incarnation has begun, or if another execution does.
func (r Record) LooksLate(operation string, attempt int) bool {
	return r.State == Deleted && !r.LateLook.IsZero() &&
		r.Operation != nil && r.Operation.ID == operation && r.LateAttempt == attempt && attempt > 0
}

// LookedLate records a late look. If that did not see the absence, another one follows.
func (r Record) LookedLate(now time.Time, absent bool) Record {
	r = r.clone()
	if absent {
		r.LateLook, r.LateAttempt, r.Due = time.Time{}, 0, r.Expires
		return r
	}
	r.Due = now.Add(LateLookAgain)
	return r
}

// Owns reports whether the record accounts for a thing of this incarnation: the thing
// was made for it, or an operation, a late look or the reclaiming of a failure will
// deal with it.
func (r Record) Owns(incarnation string) bool {
	return r.Incarnation == incarnation && (r.Exists() || r.State == Deleted && !r.LateLook.IsZero())
}
