package lifecycle

import (
	"slices"
	"time"
)

// A lost record is rebuilt from the labels of its thing. The user's parameters, the place
// where it was ordered and its credentials are lost for good. If only the vault's key was
// lost, the record stays without its sealed members.

// Rebuild returns the new record of an orphan. The plan of an instance comes from its labels,
// and the plan of a binding from its instance. The credentials of a binding are lost: the
// binding can be rotated or unbound, but not read.
func (r Record) Rebuild(found Thing, a Attributes, now time.Time) (Record, error) {
	if r.State != Absent {
		return r, &IllegalTransition{State: r.State, Event: "rebuild"}
	}
	is := Record{Version: r.Version, Key: r.Key, State: Ready, Rebuilt: now, Attributes: a}
	is.orphaned(found)
	return is, nil
}

// LostPlace reports whether the place where the instance was ordered is lost. A lost place
// takes no part in comparing requests: otherwise a platform that repeats its own request
// would get a conflict (PROV-07).
func (r Record) LostPlace() bool {
	return !r.Rebuilt.IsZero() && r.Attributes.OrganizationGUID == "" && r.Attributes.SpaceGUID == ""
}

// SamePlace reports whether a request names the place where the instance was
// ordered, as far as that is known.
func (r Record) SamePlace(asked Attributes) bool {
	known := r.Attributes
	if r.LostPlace() {
		known.OrganizationGUID, known.SpaceGUID = asked.OrganizationGUID, asked.SpaceGUID
	}
	return SamePlacement(asked, known)
}

// LostParameters reports whether the parameters are lost.
func (r Record) LostParameters() bool { return !r.Rebuilt.IsZero() && r.Attributes.Parameters == nil }

// LostGrant reports whether the record is that of a binding whose credentials are lost.
func (r Record) LostGrant() bool {
	return r.State == Ready && credentialsLost(r, Conditions{})
}

// LostWork reports whether the last operation failed because its sealed input is lost.
func (r Record) LostWork() bool {
	return r.Operation != nil && r.Operation.Phase == Failed && r.Operation.Description == lostWork
}

// Lose drops the sealed members that can no longer be opened. A running creation or update
// that needs one fails: it would make something else than was ordered. A binding whose
// credentials are lost can be rotated or unbound, but not read.
func (r Record) Lose(lost func(Sealed) bool, now time.Time) (Record, error) {
	op, needed := r.Operation, []Sealed{r.Attributes.Parameters, r.Secret}
	if op != nil && op.Target != nil {
		needed = []Sealed{op.Target.Parameters}
	}
	if r.InProgress() && !op.Kind.Deletes() && slices.ContainsFunc(needed, lost) {
		var err error
		if r, err = r.Fail(now, Failure{Message: lostWork}); err != nil {
			return r, err
		}
	}
	// The provider finds its things without the state, and the members of the context that are compared stay readable.
	for _, member := range []*Sealed{&r.Secret, &r.Made.State, &r.Attributes.SealedContext} {
		if lost(*member) {
			*member = nil
		}
	}
	if op := r.Operation; op != nil && op.Target != nil && lost(op.Target.SealedContext) {
		r = r.clone()
		without := *op.Target
		without.SealedContext = nil
		r.Operation.Target = &without
	}
	for _, member := range []*Sealed{&r.Grant, &r.Attributes.Parameters} {
		if lost(*member) {
			*member, r.Rebuilt = nil, now
		}
	}
	return r, nil
}

// lostWork is the failure of an operation whose sealed input is lost.
const lostWork = "The broker has lost the request. Delete what was being created and create it again, or repeat the update."
