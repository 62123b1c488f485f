package lifecycle

import "fmt"

// A State is where an instance or a binding stands.
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
)

// States lists every state, for tables that must be complete.
func States() []State {
	return []State{Absent, Creating, Ready, Updating, CreateFailed, Deleting, DeleteFailed, Deleted}
}

// An Event is what can happen to an instance or a binding.
type Event string

// The events.
const (
	BeginCreate Event = "begin create"
	BeginUpdate Event = "begin update" // instances only
	BeginDelete Event = "begin delete"
	// Entomb records the deletion of what does not exist, so that a request
	// that was sent before it and arrives after it begins nothing.
	Entomb Event = "entomb"
	// BeginOrphanDeletion begins the deletion of what exists although no record
	// knows of it.
	BeginOrphanDeletion Event = "begin orphan deletion"
	Succeed             Event = "succeed"
	Fail                Event = "fail"
	// Remove ends a binding together with its instance.
	Remove Event = "remove" // bindings only
)

// Events lists every event, for tables that must be complete.
func Events() []Event {
	return []Event{BeginCreate, BeginUpdate, BeginDelete, Entomb, BeginOrphanDeletion, Succeed, Fail, Remove}
}

// transitions is all that can ever happen. What is not in it is refused by next,
// wherever it was asked for.
var transitions = map[State]map[Event]State{
	Absent:       {BeginCreate: Creating, Entomb: Deleted, BeginOrphanDeletion: Deleting},
	Creating:     {Succeed: Ready, Fail: CreateFailed, BeginDelete: Deleting, Remove: Deleted},
	Ready:        {BeginUpdate: Updating, BeginDelete: Deleting, Remove: Deleted},
	Updating:     {Succeed: Ready, Fail: Ready},
	CreateFailed: {BeginCreate: Creating, BeginDelete: Deleting, Remove: Deleted},
	Deleting:     {Succeed: Deleted, Fail: DeleteFailed, Remove: Deleted},
	DeleteFailed: {BeginDelete: Deleting, Remove: Deleted},
	Deleted:      {BeginCreate: Creating, Entomb: Deleted, BeginOrphanDeletion: Deleting},
}

// onlyOf says of which kind of record an event is that the other never meets.
var onlyOf = map[Event]struct{ binding bool }{BeginUpdate: {false}, Remove: {true}}

// An IllegalTransition is a fault of the caller: it asked for an event that
// the record's state does not allow. Nothing was changed.
type IllegalTransition struct {
	State State
	Event Event
}

func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("event %q is not allowed in state %q", e.Event, e.State)
}

func (r Record) next(e Event) (State, error) {
	to, legal := transitions[r.State][e]
	only, limited := onlyOf[e]
	if !legal || limited && only.binding != r.IsBinding() || r.State == Updating && r.IsBinding() {
		return r.State, &IllegalTransition{State: r.State, Event: e}
	}
	return to, nil
}
