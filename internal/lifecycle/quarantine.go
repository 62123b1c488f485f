package lifecycle

import "time"

// QuarantineTime is how long an unexplained orphan is kept out of use before its
// deletion begins.
const QuarantineTime = 14 * 24 * time.Hour

// quarantineLook is how often the reaper looks meanwhile whether a record of it has
// come back.
const quarantineLook = time.Hour

// A Quarantine keeps an orphan out of use that no tombstone explains. The broker
// records an intent before it makes anything, so the record was most likely lost and
// the thing may be in use. Whoever uses it is to notice, and to have time to say so,
// before it is deleted.
type Quarantine struct {
	// Version is the version that was read; 0 if it is in no quarantine.
	Version int64 `json:"-"`
	Orphan
	// Name is the name that the orphan's provider lists it under.
	Name  string          `json:"name"`
	Phase QuarantinePhase `json:"phase"`
	// ID and Attempt name the execution that puts it out of use, or into use again.
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
	// Since is when it began, and Ends when the deletion begins.
	Since time.Time `json:"since"`
	Ends  time.Time `json:"ends"`
	// Due is when the reaper is to look; zero never.
	Due time.Time `json:"due,omitzero"`
	// Busy is until when a step may be calling the cloud.
	Busy time.Time `json:"busy,omitzero"`
	// Faults counts the steps in a row that failed.
	Faults int `json:"faults,omitempty"`
}

// A QuarantinePhase is how far a quarantine is.
type QuarantinePhase string

// The phases.
const (
	Enclosing QuarantinePhase = "enclosing" // it is being put out of use
	Enclosed  QuarantinePhase = "enclosed"  // it is out of use
	Releasing QuarantinePhase = "releasing" // it is being put into use again
	Released  QuarantinePhase = "released"  // it is left alone, by an operator's word
)

// quarantined stands for the platform in the tokens of quarantines. No platform has
// this id.
const quarantined = "#quarantine"

// QuarantineKey is the key in the token of a quarantine. There is no record under it.
func QuarantineKey(provider, name string) Key {
	return Key{Platform: quarantined, Instance: provider, Binding: name}
}

// OfQuarantine reports whether the key is of a quarantine, and of what thing.
func (k Key) OfQuarantine() (provider, name string, is bool) {
	return k.Instance, k.Binding, k.Platform == quarantined
}

// BeginQuarantine begins to put an orphan out of use; id is the id of a new operation.
func BeginQuarantine(orphan Orphan, name, id string, now time.Time) Quarantine {
	return Quarantine{
		Orphan: orphan, Name: name, Phase: Enclosing, ID: id, Attempt: 1, Since: now, Due: now.Add(Grace),
		Ends: later(orphan.KeptUntil, now.Add(QuarantineTime)),
	}
}

// Token names the execution that changes whether the thing is in use.
func (q Quarantine) Token() Token {
	return Token{Operation: q.ID, Key: QuarantineKey(q.Provider, q.Name)}
}

// Moving reports whether a step has something to do in the cloud.
func (q Quarantine) Moving() bool { return q.Phase == Enclosing || q.Phase == Releasing }

// Current reports whether a step of this operation and attempt may act.
func (q Quarantine) Current(operation string, attempt int) bool {
	return q.Moving() && q.ID == operation && q.Attempt == attempt
}

// Held is until when a step may be calling the cloud.
func (q Quarantine) Held() time.Time { return q.Busy }

// Leased lets a step call the cloud until the time. No other step may begin before
// then.
func (q Quarantine) Leased(until time.Time) Quarantine {
	q.Busy = until
	if q.Due.Before(until) {
		q.Due = until
	}
	return q
}

// Given gives up a step's lease.
func (q Quarantine) Given() Quarantine {
	q.Busy = time.Time{}
	return q
}

// Moved records that a step has put the thing out of use, or into use again.
func (q Quarantine) Moved(now time.Time) Quarantine {
	q.Faults = 0
	switch q.Phase {
	case Enclosing:
		q.Phase = Enclosed
		return q.Kept(now)
	case Releasing:
		q.Phase, q.Due = Released, time.Time{}
	}
	return q
}

// Faulted records a step that failed and that is repeated after the pause.
func (q Quarantine) Faulted(now time.Time, after time.Duration) Quarantine {
	q.Faults++
	if again := now.Add(after + Grace); q.Due.Before(again) {
		q.Due = again
	}
	return q
}

// Redriven is the record for the next attempt, once the execution has been lost.
func (q Quarantine) Redriven(now time.Time) Quarantine {
	q.Attempt++
	q.Due = now.Add(Grace)
	return q
}

// Kept has the reaper look again in an hour, or when the quarantine ends.
func (q Quarantine) Kept(now time.Time) Quarantine {
	q.Due = now.Add(quarantineLook)
	if now.Before(q.Ends) {
		q.Due = earlier(q.Due, q.Ends)
	}
	return q
}

// Release begins to put the thing into use again; from then on it is left alone. It
// reports false if it was released before.
func (q Quarantine) Release(now time.Time) (Quarantine, bool) {
	if q.Phase == Releasing || q.Phase == Released {
		return q, false
	}
	q.Phase, q.Faults = Releasing, 0
	return q.Redriven(now), true
}

// Explains reports whether a tombstone tells why the orphan exists: either the orphan
// is of the deleted incarnation, so the deletion left it or a late call made it; or it
// is older than the request to delete what has its id.
func (r Record) Explains(o Orphan) bool {
	switch {
	case r.State != Deleted:
		return false
	case r.Incarnation != "" && r.Incarnation == o.Incarnation:
		return true
	default:
		return o.Created.Before(r.Expires.Add(-Retention))
	}
}
