package lifecycle

import "time"

// Restarted is the record once work on it begins again: a running operation has another
// attempt, since the execution of the last one was lost; what failed to be created or
// deleted is deleted, and so is what was kept until now. Of anything else, nothing is to be
// restarted.
func (r Record) Restarted(s Start) (Record, *PastOperation, error) {
	switch {
	case r.InProgress():
		return r.Redriven(s.Now), nil, nil
	case r.State == CreateFailed, r.State == DeleteFailed, r.State == Quarantined && !s.Now.Before(r.Kept.Until):
		return r.BeginDelete(s)
	}
	return r, nil, &IllegalTransition{State: r.State, Event: "restart"}
}

// Redriven is the record for the next attempt.
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
