package lifecycle

import "time"

// A record that was lost is derived again from the thing that exists: what its
// tags say, and no more. The user's parameters, where it was ordered and its
// credentials are lost for good. Where only the vault's key was lost, the record
// stays, and loses what was sealed with it.

// Rebuild is the record of an instance that exists and is not recorded.
func (i Instance) Rebuild(found Stray, a Attributes, now time.Time) (Instance, error) {
	if i.State != Absent {
		return i, &IllegalTransition{State: i.State, Event: "rebuild"}
	}
	return Instance{
		Course:      Course{Version: i.Version, Key: found.Key, State: Ready, Rebuilt: now},
		Incarnation: found.Incarnation, Provider: found.Provider, Attributes: a, Created: found.Created,
	}, nil
}

// LostPlace reports whether it is not known any more where the instance was
// ordered. What is lost takes no part in whether a request is the same: a
// platform that repeats its own request would be told of a conflict (PROV-07).
func (i Instance) LostPlace() bool {
	a := i.Attributes
	return !i.Rebuilt.IsZero() && a.OrganizationGUID == "" && a.SpaceGUID == "" && a.Context == nil
}

// LostParameters reports the same of the parameters.
func (i Instance) LostParameters() bool { return !i.Rebuilt.IsZero() && i.Attributes.Parameters == nil }

// LostParameters reports the same of a binding's.
func (b Binding) LostParameters() bool { return !b.Rebuilt.IsZero() && b.Parameters == nil }

// Rebuild is the record of a binding that exists and is not recorded. Its
// credentials are lost: it can be rotated or unbound, and not be read.
func (b Binding) Rebuild(found Stray, instance Instance, now time.Time) (Binding, error) {
	if b.State != Absent {
		return b, &IllegalTransition{State: b.State, Event: "rebuild"}
	}
	return Binding{
		Course:      Course{Version: b.Version, Key: found.Key, State: Ready, Rebuilt: now},
		Incarnation: found.Incarnation, InstanceIncarnation: instance.Incarnation, Provider: found.Provider,
		ServiceID: instance.Attributes.ServiceID, PlanID: instance.Attributes.PlanID, Created: found.Created,
	}, nil
}

// Lose drops what is sealed in the record and cannot be opened any more. A
// creation or an update that needs it fails: without it, something else would
// be made than was ordered.
func (i Instance) Lose(lost func(Sealed) bool, now time.Time) (Instance, error) {
	op, needed := i.Operation, i.Attributes.Parameters
	if op != nil && op.Target != nil {
		needed = op.Target.Parameters
	}
	if i.InProgress() && !op.Kind.Deletes() && lost(needed) {
		var err error
		if i, err = i.Fail(now, failLost()); err != nil {
			return i, err
		}
	}
	if lost(i.Attributes.Parameters) {
		i.Attributes.Parameters, i.Rebuilt = nil, now
	}
	return i, nil
}

// Lose does the same for a binding. One whose credentials are lost can be
// rotated or unbound, and not be read.
func (b Binding) Lose(lost func(Sealed) bool, now time.Time) (Binding, error) {
	if b.InProgress() && !b.Operation.Kind.Deletes() && (lost(b.Secret) || lost(b.Parameters)) {
		var err error
		if b, err = b.Fail(now, failLost()); err != nil {
			return b, err
		}
	}
	if lost(b.Secret) {
		b.Secret = nil
	}
	if lost(b.Grant) {
		b.Grant, b.Rebuilt = nil, now
	}
	if lost(b.Parameters) {
		b.Parameters, b.Rebuilt = nil, now
	}
	return b, nil
}

func failLost() Failure {
	return Failure{Message: "The broker has lost what was asked for. Delete what was to be created and create it again, or repeat the update."}
}
