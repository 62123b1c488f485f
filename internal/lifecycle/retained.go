package lifecycle

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/limits"
)

// A Retained is what is kept of an instance that its platform has deleted, by a
// rule of its plan. It is renamed with its incarnation: for its former id, it is
// absent, and another instance may have that. Only who may order in the same place
// may have it back: platform, organization and space are kept for that.
type Retained struct {
	// Version is the one that was read; 0 for what is not retained.
	Version     int64  `json:"-"`
	Key         Key    `json:"key"` // of the instance, when it lived
	Incarnation string `json:"incarnation"`
	Provider    string `json:"provider"`
	// Name is the thing's, as its provider lists it since it was renamed.
	Name             string `json:"name"`
	ServiceID        string `json:"service_id"`
	PlanID           string `json:"plan_id"`
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Context is what else says where it was ordered; see SamePlacement.
	Context json.RawMessage `json:"context,omitempty"`
	Created time.Time       `json:"created"`
	Deleted time.Time       `json:"deleted"`
	// Until is when it is to be removed, and Due when the reaper is to look.
	Until time.Time `json:"until"`
	Due   time.Time `json:"due"`
	// Made and Snapshot are what its provider needs to remove it, or to have
	// another instance be it, as they were in the instance's record.
	Made     Made            `json:"made,omitzero"`
	Snapshot json.RawMessage `json:"snapshot,omitempty"`

	Phase RetainedPhase `json:"phase,omitempty"`
	// Freed is when an operator allowed that it is given back; zero if none did.
	Freed time.Time `json:"freed,omitzero"`
	// Into is the instance that is being made of it, and By the operation that
	// makes it: while these are set, nobody else takes or removes it.
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

// A RetainedPhase is what becomes of a retained thing. Whichever of the two others
// is recorded first wins.
type RetainedPhase string

// The phases.
const (
	Keeping   RetainedPhase = ""
	Restoring RetainedPhase = "restoring" // another instance is being made of it
	Removing  RetainedPhase = "removing"  // its time is over; there is no way back
)

// Retain is what is kept of an instance until a time: to be committed with the
// tombstone that its deletion leaves, of which r is the record before it.
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

// Handle is how it is named to whoever is to have it back: unlike the instance's id,
// it names this one life.
func (r Retained) Handle() string { return r.Key.Instance + handleMark + r.Incarnation }

// ParseHandle reads what Handle gives; ok is false for what cannot be one.
func ParseHandle(text string) (instance, incarnation string, ok bool) {
	at := strings.LastIndex(text, handleMark)
	if at <= 0 || at == len(text)-len(handleMark) {
		return "", "", false
	}
	return text[:at], text[at+len(handleMark):], true
}

// undeleteTime is the least that there is to have a thing back once it is allowed.
const undeleteTime = 24 * time.Hour

// Free allows that it is given back. It reports false for what is on its way back,
// or is being removed.
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

// AsSource is it for an instance that is ordered with the attributes, of a provider;
// nil if that is not to have it. Nobody who asks may learn why.
func (r Retained) AsSource(provider string, a Attributes) *Source {
	was := Attributes{OrganizationGUID: r.OrganizationGUID, SpaceGUID: r.SpaceGUID, Context: r.Context}
	if r.Version == 0 || r.Phase != Keeping || r.Freed.IsZero() || r.Provider != provider || r.SpaceGUID == "" || !SamePlacement(was, a) {
		return nil
	}
	return &Source{Instance: r.Key.Instance, Incarnation: r.Incarnation, Retained: true}
}

// restoringLook is how often the reaper looks whether an instance is still being
// made of it.
const restoringLook = time.Hour

// Taken has an instance be made of it by an operation, to be committed with the
// beginning of that one.
func (r Retained) Taken(into Key, operation string, now time.Time) Retained {
	r.Phase, r.Into, r.By, r.Due = Restoring, into, operation, now.Add(restoringLook)
	return r
}

// TakenBy reports whether it becomes the instance.
func (r Retained) TakenBy(into Key) bool {
	return r.Version > 0 && r.Phase == Restoring && r.Into == into
}

// Awaited has the reaper look again whether it is still being made an instance.
func (r Retained) Awaited(now time.Time) Retained {
	r.Due = now.Add(restoringLook)
	return r
}

// GivenBack is it once the instance that it was to become is deleted: it may become
// another one.
func (r Retained) GivenBack(now time.Time) Retained {
	r.Phase, r.Into, r.By = Keeping, Key{}, ""
	return r.atLeast(now)
}

// StandsRetained reports whether the operation still has the thing for itself.
func (s Source) StandsRetained(r Retained, operation string) bool {
	return r.Version > 0 && r.Phase == Restoring && r.By == operation
}

// RetainedFound is the record of a retained thing that has lost it: what the thing
// itself says. Where it was ordered is lost. Somebody is to have the time to miss it.
func RetainedFound(o Orphan, name, planID string, until, now time.Time) Retained {
	r := Retained{
		Key: o.Key.InstanceKey(), Incarnation: o.Incarnation, Provider: o.Provider, Name: name, PlanID: planID, Created: o.Created,
		Deleted: now, Until: later(until, now.Add(QuarantineTime)), Made: o.made(),
	}
	r.Due = r.Until
	return r
}

// retained stands before the platform in the tokens of removals. No platform has
// such an id.
const retained = "#retained#"

// Token names the execution that removes it. There is no record under its key.
func (r Retained) Token() Token {
	return Token{Operation: r.ID, Key: Key{Platform: retained + r.Key.Platform, Instance: r.Key.Instance, Binding: r.Incarnation}}
}

// OfRetained reports whether the key is of the removal of a retained thing, and of
// which instance that was.
func (k Key) OfRetained() (key Key, incarnation string, is bool) {
	platform, is := strings.CutPrefix(k.Platform, retained)
	return Key{Platform: platform, Instance: k.Instance}, k.Binding, is
}

// BeginRemoval begins to remove what is past its time; id is that of a new
// operation.
func (r Retained) BeginRemoval(id string, now time.Time) Retained {
	r.Phase, r.ID, r.Faults, r.Fault = Removing, id, 0, ""
	r.Attempt = 0
	return r.Redriven(now)
}

// Redriven is the next attempt of a removal that has stopped on its way.
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

// Leased lets a step call the cloud until the time. No other one may begin before.
func (r Retained) Leased(until time.Time) Retained {
	r.Busy = until
	if r.Due.Before(until) {
		r.Due = until
	}
	return r
}

// Given gives a step's lease up.
func (r Retained) Given() Retained {
	r.Busy = time.Time{}
	return r
}

// Looked records a step that has seen work go on.
func (r Retained) Looked(now time.Time, after time.Duration) Retained {
	r.Faults, r.Fault = 0, ""
	if again := now.Add(after + Grace); r.Due.Before(again) {
		r.Due = again
	}
	return r
}

// How the pauses of a removal grow that meets faults. It is repeated by its own
// execution at first, and then left to the reaper.
const (
	shortRemovalPause   = time.Second
	longestRemovalPause = 6 * time.Hour
	maxRemovalPauses    = 15 // beyond which they are as long as the longest
	// removalPatience is the longest pause that its execution waits out.
	removalPatience = time.Minute
)

// Faulted records a step that failed, and tells how long its execution waits for
// the next one: not at all where that is left to the reaper.
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
