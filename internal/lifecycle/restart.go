package lifecycle

import "time"

// Restarted returns the record after its work has begun again: a running operation gets another
// attempt, since its execution was lost; a failed creation or deletion, and a kept life whose
// date has come, are deleted. Any other state is an IllegalTransition.
func (r Record) Restarted(s Start) (Record, error) {
	switch {
	case r.InProgress():
		return r.Redriven(s.Now), nil
	case r.State == CreateFailed, r.State == DeleteFailed, r.State == Quarantined && !s.Now.Before(r.Kept.Until):
		return r.BeginDelete(s)
	}
	return r, &IllegalTransition{State: r.State, Event: "restart"}
}

// Redriven returns the record with the next attempt of the running operation.
func (r Record) Redriven(now time.Time) Record {
	if !r.InProgress() {
		return r
	}
	r = r.clone()
	r.Operation.Attempt++
	r.Operation.Next = now
	r.Due = now.Add(Grace)
	return r
}
