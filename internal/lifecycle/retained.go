package lifecycle

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
)

// A Retained is what is kept of an instance that its platform has deleted, by a rule of
// its plan. The thing is renamed after its incarnation: under its former id it no
// longer exists, and another instance may use that. It can be given back only to an
// instance in the same place, so platform, organization and space are kept.
type Retained struct {
	// Version is the version that was read; 0 if nothing is retained.
	Version     int64  `json:"-"`
	Key         Key    `json:"key"` // of the instance, when it lived
	Incarnation string `json:"incarnation"`
	Provider    string `json:"provider"`
	// Name is the name that its provider lists it under since it was renamed.
	Name             string `json:"name"`
	ServiceID        string `json:"service_id"`
	PlanID           string `json:"plan_id"`
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context is what else says where it was ordered; see SamePlacement.
	Context json.RawMessage `json:"context,omitempty"`
	Created time.Time       `json:"created"`
	Deleted time.Time       `json:"deleted"`
	// Until is when it is to be removed, and Due when the reaper is to look at the record.
	Until time.Time `json:"until"`
	Due   time.Time `json:"due"`
	// Made and Snapshot are copied from the instance's record: its provider needs them to
	// remove it, or to make another instance from it.
	Made     Made            `json:"made,omitzero"`
	Snapshot json.RawMessage `json:"snapshot,omitempty"`

	Phase RetainedPhase `json:"phase,omitempty"`
	// Freed is when an operator allowed to give it back; zero if none did.
	Freed time.Time `json:"freed,omitzero"`
	// Into is the instance that is being made from it, and By the operation that makes it.
	// While these are set, nobody else takes or removes it.
	Into Key    `json:"into,omitzero"`
	By   string `json:"by,omitempty"`
	// ID and Attempt name the execution that removes it.
	ID      string `json:"id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Busy is until when a step may be calling the cloud to remove it.
	Busy time.Time `json:"busy,omitzero"`
	// Faults counts the steps in a row that failed, and Fault says why the last
	// one did, to operators.
	Faults int    `json:"faults,omitempty"`
	Fault  string `json:"fault,omitempty"`
}

// A RetainedPhase is what becomes of a retained thing. Restoring and Removing exclude
// one another: the one that is recorded first wins.
type RetainedPhase string

// The phases.
const (
	Keeping   RetainedPhase = ""
	Restoring RetainedPhase = "restoring" // another instance is being made of it
	Removing  RetainedPhase = "removing"  // its time is over; there is no way back
)

// Retain is what is kept of the instance until a time. It is committed with the
// tombstone of the instance; r is the record before that.
func (r Record) Retain(name string, until, now time.Time) Retained {
	return Retained{
		Key: r.Key.InstanceKey(), Incarnation: r.Incarnation, Provider: r.Provider, Name: name,
		ServiceID: r.Attributes.ServiceID, PlanID: r.Attributes.PlanID,
		OrganizationGUID: r.Attributes.OrganizationGUID, SpaceGUID: r.Attributes.SpaceGUID,
		Context: r.Attributes.Context, Created: r.Created, Deleted: now, Until: until, Due: until, Made: r.Made, Snapshot: r.Attributes.Snapshot,
	}
}

// handleMark stands between the parts of a handle.
const handleMark = "@"

// Handle names it to whoever is to have it back. Unlike the instance's id, it names
// this one incarnation.
func (r Retained) Handle() string { return r.Key.Instance + handleMark + r.Incarnation }

// ParseHandle reads what Handle gives; ok is false for what cannot be one.
func ParseHandle(text string) (instance, incarnation string, ok bool) {
	at := strings.LastIndex(text, handleMark)
	if at <= 0 || at == len(text)-len(handleMark) {
		return "", "", false
	}
	return text[:at], text[at+len(handleMark):], true
}

// undeleteTime is how long a thing is kept at least once giving it back was allowed.
const undeleteTime = 24 * time.Hour

// Free allows to give it back. It reports false if it is being given back or removed
// already.
func (r Retained) Free(now time.Time) (Retained, bool) {
	if r.Phase != Keeping {
		return r, false
	}
	r.Freed = now
	return r.atLeast(now), true
}

func (r Retained) atLeast(now time.Time) Retained {
	r.Until = later(r.Until, now.Add(undeleteTime))
	r.Due = r.Until
	return r
}

// AsSource is the source for an instance of the provider that is ordered with the
// attributes; nil if that instance may not have it. The reason is kept from whoever
// asks.
func (r Retained) AsSource(provider string, a Attributes) *Source {
	was := Attributes{OrganizationGUID: r.OrganizationGUID, SpaceGUID: r.SpaceGUID, Context: r.Context}
	if r.Version == 0 || r.Phase != Keeping || r.Freed.IsZero() || r.Provider != provider || r.SpaceGUID == "" || !SamePlacement(was, a) {
		return nil
	}
	return &Source{Instance: r.Key.Instance, Incarnation: r.Incarnation, Retained: true}
}

// restoringLook is how often the reaper looks whether an instance is still being made
// from it.
const restoringLook = time.Hour

// Taken reserves it for an instance that the operation makes. It is committed with the
// beginning of that operation.
func (r Retained) Taken(into Key, operation string, now time.Time) Retained {
	r.Phase, r.Into, r.By, r.Due = Restoring, into, operation, now.Add(restoringLook)
	return r
}

// TakenBy reports whether it is reserved for the instance.
func (r Retained) TakenBy(into Key) bool {
	return r.Version > 0 && r.Phase == Restoring && r.Into == into
}

// Awaited has the reaper look again later whether the instance is still being made.
func (r Retained) Awaited(now time.Time) Retained {
	r.Due = now.Add(restoringLook)
	return r
}

// GivenBack ends the reservation: the instance that was to be made from it is deleted,
// and another one may be.
func (r Retained) GivenBack(now time.Time) Retained {
	r.Phase, r.Into, r.By = Keeping, Key{}, ""
	return r.atLeast(now)
}

// StandsRetained reports whether the thing is still reserved for the operation.
func (s Source) StandsRetained(r Retained, operation string) bool {
	return r.Version > 0 && r.Phase == Restoring && r.By == operation
}

// RetainedFound rebuilds the lost record of a retained thing from what the thing itself
// says. Where it was ordered is lost. It is kept for at least QuarantineTime, so that
// whoever misses it has time to say so.
func RetainedFound(o Orphan, name, planID string, until, now time.Time) Retained {
	r := Retained{
		Key: o.Key.InstanceKey(), Incarnation: o.Incarnation, Provider: o.Provider, Name: name, PlanID: planID, Created: o.Created,
		Deleted: now, Until: later(until, now.Add(QuarantineTime)), Made: o.made(),
	}
	r.Due = r.Until
	return r
}

// retained stands before the platform in the tokens of removals. No platform has an id
// with this prefix.
const retained = "#retained#"

// Token names the execution that removes it. There is no record under its key.
func (r Retained) Token() Token {
	return Token{Operation: r.ID, Key: Key{Platform: retained + r.Key.Platform, Instance: r.Key.Instance, Binding: r.Incarnation}}
}

// OfRetained reports whether the key belongs to the removal of a retained thing, and of
// which instance.
func (k Key) OfRetained() (key Key, incarnation string, is bool) {
	platform, is := strings.CutPrefix(k.Platform, retained)
	return Key{Platform: platform, Instance: k.Instance}, k.Binding, is
}

// BeginRemoval begins the removal of a thing whose time is over; id is the id of a new
// operation.
func (r Retained) BeginRemoval(id string, now time.Time) Retained {
	r.Phase, r.ID, r.Faults, r.Fault = Removing, id, 0, ""
	r.Attempt = 0
	return r.Redriven(now)
}

// Redriven is the record for the next attempt, once the execution of the removal has
// been lost.
func (r Retained) Redriven(now time.Time) Retained {
	r.Attempt++
	r.Due = now.Add(Grace)
	return r
}

// Current reports whether a step of this operation and attempt may act.
func (r Retained) Current(operation string, attempt int) bool {
	return r.Phase == Removing && r.ID == operation && r.Attempt == attempt
}

// Held is until when a step may be calling the cloud.
func (r Retained) Held() time.Time { return r.Busy }

// Leased lets a step call the cloud until the time. No other step may begin before
// then.
func (r Retained) Leased(until time.Time) Retained {
	r.Busy = until
	if r.Due.Before(until) {
		r.Due = until
	}
	return r
}

// Given gives up a step's lease.
func (r Retained) Given() Retained {
	r.Busy = time.Time{}
	return r
}

// Looked records a step that found the removal in progress.
func (r Retained) Looked(now time.Time, after time.Duration) Retained {
	r.Faults, r.Fault = 0, ""
	if again := now.Add(after + Grace); r.Due.Before(again) {
		r.Due = again
	}
	return r
}

// The pauses between the attempts of a removal that meets faults. Its own execution
// waits out short ones, and the reaper starts it again after longer ones.
const (
	shortRemovalPause   = time.Second
	longestRemovalPause = 6 * time.Hour
	maxRemovalPauses    = 15 // doublings of the pause
	// removalPatience is the longest pause that its execution waits out.
	removalPatience = time.Minute
)

// Faulted records a step that failed. If waits is true, the execution waits for that
// long and tries again; otherwise it ends and the reaper starts the next one.
func (r Retained) Faulted(now time.Time, why error) (_ Retained, wait time.Duration, waits bool) {
	wait = min(shortRemovalPause<<min(r.Faults, maxRemovalPauses), longestRemovalPause)
	r.Faults++
	r.Fault = limits.Clip(why.Error(), limits.Description)
	if wait > removalPatience {
		r.Due = now.Add(wait)
		return r, 0, false
	}
	if again := now.Add(wait + Grace); r.Due.Before(again) {
		r.Due = again
	}
	return r, wait, true
}
