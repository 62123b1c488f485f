package lifecycle

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Kept says until when a former life is in quarantine: it keeps its own name, and nobody is let
// in. On that date the reaper deletes it. Either its platform deleted it and its plan keeps the
// data, or it is an unexplained orphan.
type Kept struct {
	// Name is the provider's name of an orphan; empty for a life that its plan keeps.
	Name  string    `json:"name,omitempty"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Freed is when an operator allowed the undelete; zero if none did.
	Freed time.Time `json:"freed,omitzero"`
}

// An Undeletion names the kept life that an instance takes over, until the instance is
// ready.
type Undeletion struct {
	// Instance and Incarnation identify the kept life, on the same platform.
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"`
	// Until and Freed come from the kept life's Kept: if the instance is deleted before it is
	// ready, the life is kept again.
	Until time.Time `json:"until"`
	Freed time.Time `json:"freed"`
	// Adopted says that the thing belongs to the instance, and no longer to the kept life.
	Adopted bool `json:"adopted,omitempty"`
}

// KeepsUntil returns the date until which the running deletion keeps the instance's data; zero if
// it removes the data. Retention is the plan's promise. All steps of a deletion get the same date.
//
// Hazard: an instance that takes over a kept life holds that life's data before the instance itself
// is ready. Its deletion keeps the data again, until the promised date and for at least a day.
func (r Record) KeepsUntil(retention time.Duration) time.Time {
	var until time.Time
	switch from := r.Undeletes; {
	case r.IsBinding() || r.Kept != nil: // its date has come
	case from != nil:
		until = later(from.Until, r.Operation.Started.Add(undeleteTime))
	case !r.Unfinished && r.Attributes.PlanID != "" && retention > 0:
		until = r.Operation.Started.Add(retention)
	}
	return until.UTC().Truncate(time.Millisecond)
}

// Keep ends the deletion of an instance whose thing the provider has put into quarantine:
// next replaces r. If r has the id, next is its tombstone and kept the record of the former
// life beside it; if r is a former life already, kept is nil. Commit both at once: a death
// between two commits would leave a thing without a record, or with two.
//
// The leases go with the life, for the next caller that acts on the thing. No call for it
// can come late under the id, so the tombstone needs no late look.
func (r Record) Keep(now, until time.Time) (next Record, kept *Record, err error) {
	if _, err := r.settling(Keep); err != nil {
		return r, nil, err
	}
	if next, err = r.Succeed(now, nil); err != nil {
		return r, nil, err
	}
	next.Leases, next.LateLook, next.Due, next.Undeletes = nil, time.Time{}, next.Expires, nil
	life := r.clone()
	life.Key, life.State, life.Due, life.Operation = r.Key.Former(r.Incarnation), Quarantined, until, next.Operation
	life.Kept = &Kept{Since: now, Until: until}
	if r.Undeletes != nil {
		life.Kept.Freed = r.Undeletes.Freed
	}
	life.Leases = slices.DeleteFunc(life.Leases, func(l Lease) bool { return l.Operation == r.Operation.ID && !l.TimedOut })
	life.Failed, life.Undeletes, life.AbsentSince = nil, nil, time.Time{}
	life.Attributes.Parameters, life.Attributes.SealedContext = nil, nil // no longer needed
	if r.Key.Life != "" {
		return life, nil, nil
	}
	life.Version, life.Operation = 0, nil // the operation's token stays with the id
	return next, &life, nil
}

// handleMark separates the parts of a handle.
const handleMark = "@"

// Handle names one life of an id to people. A developer orders a kept life back by its
// handle.
func Handle(id, incarnation string) string { return id + handleMark + incarnation }

// Handle returns the handle of the instance.
func (r Record) Handle() string { return Handle(r.Key.Instance, r.Incarnation) }

// ParseHandle parses the form that Handle returns; ok is false if the text cannot be a handle.
func ParseHandle(text string) (instance, incarnation string, ok bool) {
	at := strings.LastIndex(text, handleMark)
	if at <= 0 || at == len(text)-len(handleMark) {
		return "", "", false
	}
	return text[:at], text[at+len(handleMark):], true
}

// undeleteTime is how long a life is kept, at least, once its undelete is allowed.
const undeleteTime = 24 * time.Hour

// Free allows the undelete in the place that a names or, if a names none, in the place where the
// life was ordered. It reports false if the record is not, or no longer, that of a kept life.
func (r Record) Free(a Attributes, now time.Time) (Record, bool) {
	if r.State != Quarantined || r.OfOrphan() {
		return r, false
	}
	kept := *r.Kept
	kept.Freed, kept.Until = now, later(kept.Until, now.Add(undeleteTime))
	r.Kept, r.Due = &kept, kept.Until
	if a.OrganizationGUID != "" || a.SpaceGUID != "" {
		r.Attributes.Context = nil // the context names the old place
	}
	r.Attributes.OrganizationGUID = cmp.Or(a.OrganizationGUID, r.Attributes.OrganizationGUID)
	r.Attributes.SpaceGUID = cmp.Or(a.SpaceGUID, r.Attributes.SpaceGUID)
	return r, true
}

// Undelete returns the members with which a new instance takes over this kept life; nil if it may
// not. The instance is of the provider, and ordered with the attributes. The asker is not told why
// an undelete is refused. The provider's state in the result is still sealed for this record.
//
// The instance inherits the leases of the kept life: its first step waits for calls that may
// still put the thing into quarantine.
func (r Record) Undelete(provider string, a Attributes) *Record {
	if r.State != Quarantined || r.Kept.Freed.IsZero() || r.Provider != provider || r.Attributes.SpaceGUID == "" ||
		!SamePlacement(r.Attributes, a) {
		return nil
	}
	fresh := Record{Made: r.Made, Leases: r.Leases, Wary: r.Wary}
	fresh.Made.Origin = cmp.Or(fresh.Made.Origin, Origin{Instance: r.Key.Instance, Incarnation: r.Incarnation})
	fresh.Undeletes = &Undeletion{Instance: r.Key.Instance, Incarnation: r.Incarnation, Until: r.Kept.Until, Freed: r.Kept.Freed}
	return &fresh
}

// Adopts reports whether the instance has yet to adopt the kept thing.
func (r Record) Adopts() bool { return r.Undeletes != nil && !r.Undeletes.Adopted }

// Adopted records that the thing now belongs to the instance.
func (r Record) Adopted() Record {
	of := *r.Undeletes
	of.Adopted = true
	r.Undeletes = &of
	return r
}

// RebuildKept returns the record of a kept life, read from the label of the thing. The space
// where the life was ordered is lost. The life is kept for at least QuarantineTime, so that its
// user has time to ask for it.
func (r Record) RebuildKept(found Thing, a Attributes, now time.Time) (Record, error) {
	if r.Exists() {
		return r, &IllegalTransition{State: r.State, Event: "rebuild"}
	}
	until := later(found.KeptUntil, now.Add(QuarantineTime))
	is := Record{Version: r.Version, Key: r.Key, State: Quarantined, Rebuilt: now, Due: until, Attributes: a}
	is.orphaned(found)
	is.Kept = &Kept{Since: now, Until: until}
	return is, nil
}
