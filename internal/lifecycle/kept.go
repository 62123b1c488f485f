package lifecycle

import (
	"slices"
	"strings"
	"time"
)

// Kept says until when a former life is kept out of use, in quarantine: under its own name,
// shut to everybody. Then it is deleted. Either its platform has deleted it, and a rule of
// its plan keeps what it holds, or it is an orphan that nothing explains.
type Kept struct {
	// Name is what the provider lists an orphan under; empty for what a plan keeps.
	Name  string    `json:"name,omitempty"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Freed is when an operator allowed to give it back; zero if none did.
	Freed time.Time `json:"freed,omitzero"`
}

// An Origin names the life that a thing was made for, which its name derives from.
type Origin struct {
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"`
}

// An Undeletion says of which kept life an instance is made, until the instance is ready.
type Undeletion struct {
	// Instance and Incarnation are those of the kept life, on the same platform.
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation"`
	// Until and Freed are those of its Kept: if the instance is deleted before it was
	// ready, what it was to be is kept again.
	Until time.Time `json:"until"`
	Freed time.Time `json:"freed"`
	// Adopted says that the thing is the instance's by now, and not the kept life's.
	Adopted bool `json:"adopted,omitempty"`
}

// KeepsUntil is until when the running deletion of an instance keeps what the instance
// holds; zero if it removes that. Retention is what the plan promises. All steps of a
// deletion give the same date.
//
// Hazard: an instance that is made of a kept life holds the data of that life before it
// was ready itself. It is kept again, for as long as was promised, and for a day at least.
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

// Keep ends the deletion of an instance whose provider has put what it holds out of use:
// next replaces r. Unless r is of a former life already, next is the tombstone of the id,
// and kept the record of the life that begins beside it; else kept is nil. Both are written
// in one commit: a death between the two would leave a thing that nobody knows of, or two
// records that know of it.
//
// The leases go with the life, for whoever acts on the thing next. Nothing of it can come
// late under the id, so that the tombstone needs no late look.
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
	life.Attributes.Parameters, life.Attributes.SealedContext = nil, nil // of no use any more
	if r.Key.Life != "" {
		return life, nil, nil
	}
	life.Version, life.Operation = 0, nil // its token is of the id
	return next, &life, nil
}

// handleMark stands between the parts of a handle.
const handleMark = "@"

// Handle names one life of an id to people. By that of a kept life, a developer has it
// back.
func Handle(id, incarnation string) string { return id + handleMark + incarnation }

// Handle is that of the instance.
func (r Record) Handle() string { return Handle(r.Key.Instance, r.Incarnation) }

// ParseHandle reads what Handle gives; ok is false for what cannot be one.
func ParseHandle(text string) (instance, incarnation string, ok bool) {
	at := strings.LastIndex(text, handleMark)
	if at <= 0 || at == len(text)-len(handleMark) {
		return "", "", false
	}
	return text[:at], text[at+len(handleMark):], true
}

// undeleteTime is how long a life is kept at least once giving it back was allowed.
const undeleteTime = 24 * time.Hour

// Free allows that the kept life is given back to an instance in the place that a names;
// where it names none, in the place where it was. It reports false if its date has come.
func (r Record) Free(a Attributes, now time.Time) (Record, bool) {
	if r.State != Quarantined || r.OfOrphan() {
		return r, false
	}
	kept := *r.Kept
	kept.Freed, kept.Until = now, later(kept.Until, now.Add(undeleteTime))
	r.Kept, r.Due = &kept, kept.Until
	if a.OrganizationGUID != "" || a.SpaceGUID != "" {
		r.Attributes.Context = nil // it told of the other place
	}
	if a.OrganizationGUID != "" {
		r.Attributes.OrganizationGUID = a.OrganizationGUID
	}
	if a.SpaceGUID != "" {
		r.Attributes.SpaceGUID = a.SpaceGUID
	}
	return r, true
}

// Undelete is what an instance of the provider begins with that is ordered with the
// attributes and made of this kept life; nil if it may not have that. The reason is kept
// from whoever asks. The state is sealed for this record.
//
// The leases of the kept life become the instance's: its first step waits for the calls
// of those that put the thing out of use.
func (r Record) Undelete(provider string, a Attributes) *Record {
	if r.State != Quarantined || r.Kept.Freed.IsZero() || r.Provider != provider || r.Attributes.SpaceGUID == "" ||
		!SamePlacement(r.Attributes, a) {
		return nil
	}
	fresh := Record{Made: r.Made, Leases: r.Leases, Wary: r.Wary}
	if fresh.Made.Origin == (Origin{}) {
		fresh.Made.Origin = Origin{Instance: r.Key.Instance, Incarnation: r.Incarnation}
	}
	fresh.Undeletes = &Undeletion{Instance: r.Key.Instance, Incarnation: r.Incarnation, Until: r.Kept.Until, Freed: r.Kept.Freed}
	return &fresh
}

// Adopts reports whether the thing that the instance is made of is not known to be the
// instance's yet.
func (r Record) Adopts() bool { return r.Undeletes != nil && !r.Undeletes.Adopted }

// Adopted records that the thing is the instance's.
func (r Record) Adopted() Record {
	of := *r.Undeletes
	of.Adopted = true
	r.Undeletes = &of
	return r
}

// RebuildKept is the record of a kept life, from what the thing says that is left of it.
// Where it was ordered is lost. It is kept for at least QuarantineTime, so that whoever
// misses it has time to say so.
func (r Record) RebuildKept(found Orphan, a Attributes, now time.Time) (Record, error) {
	if r.Exists() {
		return r, &IllegalTransition{State: r.State, Event: "rebuild"}
	}
	until := later(found.KeptUntil, now.Add(QuarantineTime))
	return Record{
		Version: r.Version, Key: r.Key, State: Quarantined, Rebuilt: now, Due: until,
		Incarnation: found.Incarnation, Provider: found.Provider, Attributes: a, Made: found.made(), Created: found.Created,
		Kept: &Kept{Since: now, Until: until},
	}, nil
}
