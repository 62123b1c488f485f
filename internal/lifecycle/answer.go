package lifecycle

import (
	"slices"
	"time"
)

// A Request is what a platform asks of an instance or a binding.
type Request string

// The requests. BindOn and UnbindOn are what a PUT and a DELETE of a binding ask
// of its instance.
const (
	Put      Request = "put"
	Patch    Request = "patch"
	Delete   Request = "delete"
	Get      Request = "get"
	BindOn   Request = "bind"
	UnbindOn Request = "unbind"
)

// An Answer is how a request is answered that is not refused.
type Answer int

// The answers.
const (
	Begin   Answer = iota + 1 // begin a new operation
	Join                      // the same operation is running
	Stays                     // it has failed, and stays so until it is deleted
	Exists                    // what is asked for exists
	Missing                   // there is nothing to delete
)

// Facts are what is known of a request beside the record.
type Facts struct {
	// Same says that the request asks for what the record has, or an update for what the
	// running update leads to. It means nothing if there is no record.
	Same bool
	// Permitted says that the client understands a 202.
	Permitted bool
	// Invalid is the refusal by the catalog; nil if the request is valid. It is a 400,
	// which comes before everything that the record says but a 404 (CLI-07). A request for
	// what the record has is valid whatever is in the catalog (CAT-28).
	Invalid error
	// Received is when the request arrived, and Now when it is decided.
	Received, Now time.Time
}

// A rule decides on a request to a record whose state is among is, and is among seen as
// the platform sees it. An empty list allows any state.
type rule struct {
	is, seen []State
	when     func(Record, Facts) bool // nil: whatever the facts are
	answer   Answer
	refuse   Text // in place of an answer; Facts.Invalid if both are missing
}

func (d rule) holds(r Record, f Facts) bool {
	return (d.is == nil || slices.Contains(d.is, r.State)) && (d.seen == nil || slices.Contains(d.seen, r.Seen())) &&
		(d.when == nil || d.when(r, f))
}

// decisions is the table of decisions (IDEM-01, IDEM-07): the first rule that holds
// decides on a request. A state change that begins an operation is legal only where a rule answers
// Begin.
var decisions = map[Request][]rule{
	Put: {
		{is: []State{Absent}, answer: Begin},
		{when: invalid},
		{seen: []State{Ready}, when: credentialsLost, refuse: RefuseLost}, // so is what the request would be compared with
		{seen: recorded, when: otherInstance, refuse: RefuseOtherInstance},
		{seen: recorded, when: otherBinding, refuse: RefuseOtherBinding},
		{when: failedForGood, answer: Stays},
		// A PUT that was sent before the deletion and arrives after it: to the
		// platform, what it asks for is deleted (ORB-03).
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
		{is: []State{DeleteFailed}, answer: Begin}, // it is to be deleted, whoever asks
		{when: overtaken, refuse: RefuseEarlier},
		{is: []State{Creating, Ready, CreateFailed}, answer: Begin},
	},
	// A GET is not answered 404 while a deletion runs: platforms that go by a GET would
	// forget what is being deleted, and the deletion may yet fail (GETI-05, GETB-03).
	// Nor is it when credentials are lost: they still work.
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

func invalid(_ Record, f Facts) bool       { return f.Invalid != nil && !f.Same }
func same(_ Record, f Facts) bool          { return f.Same }
func otherInstance(r Record, f Facts) bool { return !f.Same && !r.IsBinding() }
func otherBinding(r Record, f Facts) bool  { return !f.Same && r.IsBinding() }
func failedForGood(r Record, f Facts) bool { return f.Permitted && r.FailedCreation() != nil }
func overtaken(r Record, f Facts) bool     { return r.overtaken(f.Received, f.Now) }
func unusable(r Record, _ Facts) bool      { return r.Unusable }
func credentialsLost(r Record, _ Facts) bool {
	return r.IsBinding() && r.Grant == nil && !r.Rebuilt.IsZero()
}

// Answer decides on a request. The error is a *Refusal.
func (r Record) Answer(q Request, f Facts) (Answer, error) {
	for _, d := range decisions[q] {
		switch {
		case !d.holds(r, f):
		case d.answer != 0:
			return d.answer, nil
		case d.refuse != nil:
			return 0, d.refuse(r.Noun())
		default:
			return 0, f.Invalid
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

// OnSucceed decides whether another binding of the instance may be rotated from this
// one, which stays valid beside it (ROT-03, ROT-04, ROT-06).
func (r Record) OnSucceed(instance string) error {
	switch seen := r.Seen(); {
	case seen == Ready && r.InstanceIncarnation == instance:
		return nil
	case seen == Creating, seen == Deleting:
		return RefuseConcurrent()
	default: // Absent, CreateFailed, DeleteFailed, Deleted; what an earlier instance had
		return RefuseNoPredecessor()
	}
}

// Of is the binding without the failures that are forgotten because its instance is
// gone.
func (r Record) Of(i Record) Record {
	if !i.Exists() || i.Incarnation != r.InstanceIncarnation {
		r.Failed = nil
	}
	return r
}

// Exists reports whether there is something, in whatever state it is.
func (r Record) Exists() bool { return r.State != Absent && r.State != Deleted }
