package lifecycle

import (
	"slices"
	"time"
)

// A Request is a kind of request that a platform makes for an instance or a binding.
type Request string

// The requests. A PUT of a binding is also a BindOn of its instance, and a DELETE of a
// binding an UnbindOn.
const (
	Put      Request = "put"
	Patch    Request = "patch"
	Delete   Request = "delete"
	Get      Request = "get"
	BindOn   Request = "bind"
	UnbindOn Request = "unbind"
)

// An Answer is the broker's answer to a request that it does not refuse.
type Answer int

// The answers.
const (
	Begin   Answer = iota + 1 // begin a new operation
	Join                      // the requested operation is already running
	Stays                     // the creation has failed, and stays failed until the platform deletes the instance or binding
	Exists                    // the requested instance or binding exists
	Missing                   // there is nothing to delete
)

// Conditions decide on a request, beside the record.
type Conditions struct {
	// Same says that a request repeats the recorded one, or that an update has the target
	// of the running update. It means nothing if there is no record.
	Same bool
	// Permitted says that the client understands a 202.
	Permitted bool
	// Invalid is the catalog's refusal; nil if the request is valid. It is a 400, and goes
	// before every refusal by the record but a 404 (CLI-07). A repeated request is valid
	// whatever the catalog holds (CAT-28).
	Invalid error
	// Received is when the request arrived, and Now when it is decided.
	Received, Now time.Time
}

// A rule decides on a request to a record whose own state is in the list is, and whose
// state as the platform sees it is in the list seen. An empty list allows any state.
type rule struct {
	is, seen []State
	when     func(Record, Conditions) bool // nil: always
	answer   Answer
	refuse   Text // in place of an answer; Conditions.Invalid if both are missing
}

func (d rule) holds(r Record, c Conditions) bool {
	return (d.is == nil || slices.Contains(d.is, r.State)) && (d.seen == nil || slices.Contains(d.seen, r.Seen())) &&
		(d.when == nil || d.when(r, c))
}

// decisions is the table of decisions (IDEM-01, IDEM-07): the first rule that holds
// decides. A state change that begins an operation is legal only where a rule answers
// Begin.
var decisions = map[Request][]rule{
	Put: {
		{is: []State{Absent}, answer: Begin},
		{when: invalid},
		{seen: []State{Ready}, when: credentialsLost, refuse: RefuseLost}, // the order to compare the request with is lost too
		{seen: recorded, when: otherInstance, refuse: RefuseOtherInstance},
		{seen: recorded, when: otherBinding, refuse: RefuseOtherBinding},
		{when: failedForGood, answer: Stays},
		// A PUT that was sent before the deletion and arrives after it: the platform
		// counts the instance or binding as deleted (ORB-03).
		{is: []State{Deleted}, when: overtaken, refuse: RefuseDeletedLater},
		{is: []State{Deleted, CreateFailed}, answer: Begin},
		{is: []State{Creating}, answer: Join},
		{is: []State{Ready}, when: unusable, refuse: RefuseUnusable},
		{is: []State{Ready}, answer: Exists},
		{is: []State{DeleteFailed}, refuse: RefuseHalfDeleted},
		{is: []State{Updating, Deleting}, refuse: RefuseConcurrent},
	},
	Patch: {
		{seen: gone, refuse: RefuseMissing},
		{when: invalid},
		{seen: []State{Ready}, when: overtaken, refuse: RefuseEarlier},
		{seen: []State{Ready}, answer: Begin}, // also after a failed update, to repair (UPD-25)
		{seen: []State{Updating}, when: same, answer: Join},
		{seen: []State{CreateFailed}, refuse: RefuseHalfMade},
		{seen: []State{DeleteFailed}, refuse: RefuseHalfDeleted},
		{seen: []State{Creating, Updating, Deleting}, refuse: RefuseConcurrent},
	},
	// A DELETE works in every state (ORB-01, ORB-02). It is refused while an update
	// runs (DEPR-09), and if it meant an earlier incarnation. It is never answered
	// 410 while something exists.
	Delete: {
		{is: gone, answer: Missing},
		{when: invalid},
		{is: []State{Updating}, refuse: RefuseConcurrent},
		{is: []State{Deleting}, answer: Join},
		{is: []State{DeleteFailed}, answer: Begin}, // it is to be deleted, whatever the request meant
		{when: overtaken, refuse: RefuseEarlier},
		{is: []State{Creating, Ready, CreateFailed}, answer: Begin},
	},
	// A GET is not answered 404 while a deletion runs: a platform that trusts the GET would
	// forget the instance, and the deletion may yet fail (GETI-05, GETB-03). Nor is it answered
	// 404 when the credentials are lost: they still work.
	Get: {
		{seen: []State{Ready, DeleteFailed}, when: credentialsLost, refuse: RefuseLost},
		{seen: []State{Ready, DeleteFailed}, answer: Exists},
		{seen: []State{Updating, Deleting}, refuse: RefuseConcurrent},
		{seen: []State{Absent, Creating, CreateFailed, Deleted}, refuse: RefuseMissing},
	},
	BindOn: {
		{seen: gone, refuse: RefuseMissing},
		{when: invalid},
		{seen: []State{Ready}, when: overtaken, refuse: RefuseEarlier},
		{seen: []State{Ready}, when: unusable, refuse: RefuseUnusable},
		{seen: []State{Ready}, answer: Begin},
		{seen: []State{CreateFailed}, refuse: RefuseHalfMade},
		{seen: []State{DeleteFailed}, refuse: RefuseHalfDeleted},
		{seen: []State{Creating, Updating, Deleting}, refuse: RefuseConcurrent},
	},
	// An unbind works when the instance is not healthy (UNB-10), but not while it
	// changes (CONC-08).
	UnbindOn: {
		{is: []State{Updating, Deleting}, refuse: RefuseConcurrent},
		{answer: Begin},
	},
}

var (
	gone     = []State{Absent, Deleted}
	recorded = []State{Creating, Ready, Updating, CreateFailed, Deleting, DeleteFailed}
)

func invalid(_ Record, c Conditions) bool       { return c.Invalid != nil && !c.Same }
func same(_ Record, c Conditions) bool          { return c.Same }
func otherInstance(r Record, c Conditions) bool { return !c.Same && !r.IsBinding() }
func otherBinding(r Record, c Conditions) bool  { return !c.Same && r.IsBinding() }
func failedForGood(r Record, c Conditions) bool { return c.Permitted && r.FailedCreation() != nil }
func overtaken(r Record, c Conditions) bool     { return r.overtaken(c.Received, c.Now) }
func unusable(r Record, _ Conditions) bool      { return r.Unusable }
func credentialsLost(r Record, _ Conditions) bool {
	return r.IsBinding() && r.Grant == nil && !r.Rebuilt.IsZero()
}

// Answer decides on a request. The error is a *Refusal.
func (r Record) Answer(q Request, c Conditions) (Answer, error) {
	for _, d := range decisions[q] {
		switch {
		case !d.holds(r, c):
		case d.answer != 0:
			return d.answer, nil
		case d.refuse != nil:
			return 0, d.refuse(r.Noun())
		default:
			return 0, c.Invalid
		}
	}
	return 0, Refuse(Internal, "No rule decides on %q in state %q.", q, r.State)
}

// answers reports whether a rule gives the request this answer in the state.
func answers(q Request, a Answer, s State) bool {
	return slices.ContainsFunc(decisions[q], func(d rule) bool {
		return d.answer == a && (slices.Contains(d.is, s) || slices.Contains(d.seen, s))
	})
}

// OnSucceed decides whether another binding of the instance may be rotated from this one.
// Both stay valid (ROT-03, ROT-04, ROT-06).
func (r Record) OnSucceed(instance string) error {
	switch seen := r.Seen(); {
	case seen == Ready && r.InstanceIncarnation == instance:
		return nil
	case seen == Creating, seen == Deleting:
		return RefuseConcurrent()
	default: // Absent, CreateFailed, DeleteFailed, Deleted, or a binding of an earlier instance
		return RefuseNoPredecessor()
	}
}

// Of drops the failed creation from a binding whose instance is gone.
func (r Record) Of(i Record) Record {
	if !i.Exists() || i.Incarnation != r.InstanceIncarnation {
		r.Failed = nil
	}
	return r
}

// Exists reports whether the instance or binding exists, in any state.
func (r Record) Exists() bool { return r.State != Absent && r.State != Deleted }
