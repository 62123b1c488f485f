package lifecycle

import "fmt"

// A State is the stage of an instance's or a binding's life.
type State string

// The states. Absent is the zero value: there is no record.
const (
	Absent       State = ""
	Creating     State = "creating"
	Ready        State = "ready"
	Updating     State = "updating" // instances only
	CreateFailed State = "create failed"
	Deleting     State = "deleting"
	DeleteFailed State = "delete failed"
	// Deleted is a tombstone. It outlasts the platform's retries, so that the broker
	// recognises late requests and late steps (ORB-05).
	Deleted State = "deleted"
	// Quarantined is a former life that is kept out of use until a date: see Kept.
	// Quarantining and Releasing are an orphan on the way there, and back into use.
	Quarantining State = "quarantining"
	Quarantined  State = "quarantined"
	Releasing    State = "releasing"
)

// An Event changes the state of an instance or a binding.
type Event string

// The events.
const (
	BeginCreate Event = "begin create"
	BeginUpdate Event = "begin update" // instances only
	BeginDelete Event = "begin delete"
	// Entomb records a deletion of something that does not exist, so that a request that was
	// sent before the deletion and arrives after it begins nothing.
	Entomb Event = "entomb"
	// BeginOrphanDeletion begins the deletion of an orphan.
	BeginOrphanDeletion Event = "begin orphan deletion"
	// BeginQuarantine begins to put an orphan out of use, and BeginRelease to put it back.
	BeginQuarantine Event = "begin quarantine"
	BeginRelease    Event = "begin release"
	Succeed         Event = "succeed"
	Fail            Event = "fail"
	// Keep ends a deletion that put the instance into quarantine in place of removing it.
	Keep Event = "keep" // instances only
	// Remove ends a binding together with its instance.
	Remove Event = "remove" // bindings only
)

// begins gives, for each event that begins an operation, the request and the answer that
// cause it, and the state that it leads to. Only an instance has a PATCH.
var begins = map[Event]struct {
	by     Request
	answer Answer
	to     State
}{
	BeginCreate:         {Put, Begin, Creating},
	BeginUpdate:         {Patch, Begin, Updating},
	BeginDelete:         {Delete, Begin, Deleting},
	Entomb:              {Delete, Missing, Deleted},
	BeginOrphanDeletion: {Delete, Missing, Deleting},
	BeginQuarantine:     {Delete, Missing, Quarantining},
}

// leads gives the states that the other events lead to, such as the end of an operation.
var leads = map[State]map[Event]State{
	Creating: {Succeed: Ready, Fail: CreateFailed},
	Updating: {Succeed: Ready, Fail: Ready},
	Deleting: {Succeed: Deleted, Fail: DeleteFailed, Keep: Quarantined},
	// Platforms do not know of these states.
	Quarantining: {Succeed: Quarantined, Fail: Quarantined, BeginDelete: Deleting, BeginRelease: Releasing},
	Quarantined:  {BeginDelete: Deleting, BeginRelease: Releasing},
	Releasing:    {Succeed: Ready, Fail: Quarantined, BeginDelete: Deleting},
}

// An IllegalTransition is an error of the caller: the record's state does not allow the event. The record is unchanged.
type IllegalTransition struct {
	State State
	Event Event
}

func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("event %q is not allowed in state %q", e.Event, e.State)
}

// next returns a copy of the record in the state after an event. An event that begins an operation is legal if
// the state leads there by itself, as quarantine does, or if a rule of decisions lets a request begin it.
func (r Record) next(e Event) (Record, error) {
	to, legal := leads[r.State][e]
	if b, begin := begins[e]; begin && !legal {
		to, legal = b.to, answers(b.by, b.answer, r.State) && (e != BeginUpdate || !r.IsBinding())
	}
	switch {
	case e == Remove:
		to, legal = Deleted, r.IsBinding() && r.Exists() && leads[r.State][BeginDelete] == ""
	case e == Keep:
		legal = legal && !r.IsBinding()
	}
	if !legal || r.State == Updating && r.IsBinding() {
		return r, &IllegalTransition{State: r.State, Event: e}
	}
	r = r.clone()
	r.State = to
	return r, nil
}
