package lifecycle

import "fmt"

// A State is how far an instance or a binding is in its life.
type State string

// The states. Absent is the zero value: what was never recorded.
const (
	Absent       State = ""
	Creating     State = "creating"
	Ready        State = "ready"
	Updating     State = "updating" // instances only
	CreateFailed State = "create failed"
	Deleting     State = "deleting"
	DeleteFailed State = "delete failed"
	// Deleted is a tombstone: it is kept past the platform's retry window so
	// that late requests and late workers are recognised (ORB-05).
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
	// Entomb records the deletion of something that does not exist, so that a request
	// which was sent before it and arrives after it begins nothing.
	Entomb Event = "entomb"
	// BeginOrphanDeletion begins the deletion of something that no record knows of.
	BeginOrphanDeletion Event = "begin orphan deletion"
	// BeginQuarantine begins to put out of use what no record knows of, and BeginRelease to
	// put it into use again.
	BeginQuarantine Event = "begin quarantine"
	BeginRelease    Event = "begin release"
	Succeed         Event = "succeed"
	Fail            Event = "fail"
	// Keep ends a deletion that has put out of use what it is of, in place of removing it.
	Keep Event = "keep" // instances only
	// Remove ends a binding together with its instance.
	Remove Event = "remove" // bindings only
)

// begins has, for each event that begins something, the request and answer that it
// comes from, and the state that it leads to. Only an instance has a PATCH.
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

// leads is the state that other events lead to, such as the end of an operation.
var leads = map[State]map[Event]State{
	Creating: {Succeed: Ready, Fail: CreateFailed},
	Updating: {Succeed: Ready, Fail: Ready},
	Deleting: {Succeed: Deleted, Fail: DeleteFailed, Keep: Quarantined},
	// No platform knows of these.
	Quarantining: {Succeed: Quarantined, Fail: Quarantined, BeginDelete: Deleting, BeginRelease: Releasing},
	Quarantined:  {BeginDelete: Deleting, BeginRelease: Releasing},
	Releasing:    {Succeed: Ready, Fail: Quarantined, BeginDelete: Deleting},
}

// An IllegalTransition is a fault of the caller: the record's state does not allow the
// event. Nothing was changed.
type IllegalTransition struct {
	State State
	Event Event
}

func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("event %q is not allowed in state %q", e.Event, e.State)
}

// next is the state after an event. An event that begins something is legal only if a
// rule of decisions lets a request begin it.
func (r Record) next(e Event) (State, error) {
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
		return r.State, &IllegalTransition{State: r.State, Event: e}
	}
	return to, nil
}
