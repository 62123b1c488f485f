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

// A Stray is a thing that exists although no record knows of it.
type Stray struct {
	Key         Key
	Incarnation string
	Provider    string // what made it
	Created     time.Time
}

// Adopt begins the deletion of a stray instance.
func (i Instance) Adopt(s Start, stray Stray) (Instance, *PastOperation, error) {
	state, err := instanceTransitions.next(i.State, Adopt)
	if err != nil {
		return i, nil, err
	}
	i.Course = i.clone()
	i.Key, i.State = stray.Key, state
	i.Incarnation, i.Provider, i.Created = stray.Incarnation, stray.Provider, stray.Created
	return i, i.begin(s, Deprovision), nil
}

// Adopt begins the removal of a stray binding.
func (b Binding) Adopt(s Start, stray Stray) (Binding, *PastOperation, error) {
	state, err := bindingTransitions.next(b.State, Adopt)
	if err != nil {
		return b, nil, err
	}
	b.Course = b.clone()
	b.Key, b.State = stray.Key, state
	b.Incarnation, b.Provider, b.Created = stray.Incarnation, stray.Provider, stray.Created
	return b, b.begin(s, Unbind), nil
}

// Owns reports whether the record knows of a thing of this incarnation: it is
// what the thing was made for, or an operation, a late look or the time to
// reclaim will deal with it.
func (c Course) Owns(recorded, incarnation string) bool {
	switch c.State {
	case Absent:
		return false
	case Deleted:
		return !c.LateLook.IsZero()
	case Ready:
		return recorded == incarnation
	default:
		return true
	}
}
