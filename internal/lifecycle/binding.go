package lifecycle

import (
	"encoding/json"
	"time"
)

// A Binding is the record of a service binding.
type Binding struct {
	Course
	// Incarnation is the id of the operation that created it.
	Incarnation string `json:"incarnation,omitempty"`
	// InstanceIncarnation is the instance's that it was made for: a binding
	// never passes to another instance that uses the same id.
	InstanceIncarnation string          `json:"instance_incarnation,omitempty"`
	Provider            string          `json:"provider,omitempty"`
	ServiceID           string          `json:"service_id,omitempty"`
	PlanID              string          `json:"plan_id,omitempty"`
	AppGUID             string          `json:"app_guid,omitempty"` // empty for a service key
	Route               string          `json:"route,omitempty"`
	Context             json.RawMessage `json:"context,omitempty"`
	Parameters          Sealed          `json:"parameters,omitempty"`
	// Predecessor is the binding that this one was rotated from (ROT-01).
	Predecessor string `json:"predecessor,omitempty"`
	// Secret is random, chosen with the intent: generated passwords derive
	// from it, so that a repeated step gives the same credentials.
	Secret Sealed `json:"secret,omitempty"`
	// Grant is what the application gets, once it is bound.
	Grant   Sealed    `json:"grant,omitempty"`
	Created time.Time `json:"created,omitzero"`
}

// OnBind answers a PUT of a binding (checklist section 14.2). Same says
// whether the request equals the recorded one, permitted that the client
// understands a 202.
func (b Binding) OnBind(same, permitted bool, received, now time.Time) (Answer, error) {
	switch seen := b.Seen(); {
	case seen == Absent:
		return Begin, nil
	case seen == Ready && b.lost(): // and with it what the request would be compared to
		return 0, refuseLost()
	case seen != Deleted && !same:
		return 0, Refuse(Conflict, "A service binding with this id exists with other attributes; use another id.")
	case permitted && b.FailedCreation() != nil:
		return Stays, nil
	}
	switch b.State {
	case Deleted:
		if b.overtaken(received, now) {
			return 0, &Refusal{Reason: ConcurrencyError, Message: "A later request deleted this service binding."}
		}
		return Begin, nil
	case Creating:
		return Join, nil
	case CreateFailed:
		return Begin, nil
	case Ready:
		return Exists, nil
	case DeleteFailed:
		return 0, Refuse(Unprocessable, "The service binding could not be deleted completely; delete it again.")
	default: // Deleting
		return 0, RefuseConcurrent()
	}
}

// OnUnbind answers a DELETE of a binding: safe in every state (ORB-02), refused
// only if it meant an earlier binding with this id. It is never answered 410
// where there is one.
func (b Binding) OnUnbind(received, now time.Time) (Answer, error) {
	switch b.State {
	case Absent, Deleted:
		return Missing, nil
	case Deleting:
		return Join, nil
	case DeleteFailed: // it is to be deleted, whoever asks
		return Begin, nil
	default: // Creating, Ready, CreateFailed
		if b.overtaken(received, now) {
			return 0, &Refusal{Reason: ConcurrencyError, Message: "The request arrived before the one that made this service binding, " +
				"and meant an earlier one with this id, which was deleted; repeat it if it means this one."}
		}
		return Begin, nil
	}
}

// Of is the binding as it stands with its instance: what failed on one that is
// gone is forgotten with it.
func (b Binding) Of(i Instance) Binding {
	if i.State == Absent || i.State == Deleted || i.Incarnation != b.InstanceIncarnation {
		b.Failed = nil
	}
	return b
}

// OnSucceed answers whether another binding of the instance may succeed this
// one, which goes on being valid beside it (ROT-03, ROT-04, ROT-06).
func (b Binding) OnSucceed(instance string) error {
	switch seen := b.Seen(); {
	case seen == Ready && b.InstanceIncarnation == instance:
		return nil
	case seen == Creating, seen == Deleting:
		return RefuseConcurrent()
	default: // Absent, CreateFailed, DeleteFailed, Deleted; what an earlier instance had
		return Refuse(BadRequest, "There is no service binding with the id of predecessor_binding_id on this service instance.")
	}
}

// OnRead answers a GET of a binding (GETB-01 to GETB-03). Of one that is being
// removed it does not say that there is none: platforms that go by a GET would
// forget it, and its removal may yet fail.
func (b Binding) OnRead() error {
	switch b.Seen() {
	case Ready, DeleteFailed:
		if b.lost() {
			return refuseLost()
		}
		return nil
	case Deleting:
		return RefuseConcurrent()
	default: // Absent, Creating, CreateFailed, Deleted
		return Refuse(NotFound, "There is no service binding with this id.")
	}
}

// lost reports whether the credentials of a binding that exists are not known
// any more.
func (b Binding) lost() bool { return b.Grant == nil && !b.Rebuilt.IsZero() }

// refuseLost is not a 404, though there is nothing to show: platforms that go by
// that would forget a binding that exists, and whose credentials still work.
func refuseLost() *Refusal {
	return Refuse(Unprocessable, "The credentials of this service binding were lost; rotate it, or unbind it and bind again.")
}

// BeginBind starts a binding as fresh describes it: of fresh, everything but
// the Course and Incarnation is taken.
func (b Binding) BeginBind(s Start, key Key, fresh Binding) (Binding, *PastOperation, error) {
	state, err := bindingTransitions.next(b.State, BeginCreate)
	if err != nil {
		return b, nil, err
	}
	fresh.Course = b.clone()
	fresh.Key, fresh.State = key, state
	past := fresh.begin(s, Bind)
	fresh.Incarnation, fresh.Created = s.ID, fresh.Operation.Started
	return fresh, past, nil
}

// BeginUnbind starts the removal, also of what is half made.
func (b Binding) BeginUnbind(s Start) (Binding, *PastOperation, error) {
	state, err := bindingTransitions.next(b.State, BeginDelete)
	if err != nil {
		return b, nil, err
	}
	b.Course = b.clone()
	b.State = state
	b.Context = kept(b.Context)
	return b, b.begin(s, Unbind), nil
}

// Entomb records that the deletion of what does not exist was asked for.
func (b Binding) Entomb(key Key, now, received time.Time) (Binding, error) {
	if _, err := bindingTransitions.next(b.State, Entomb); err != nil {
		return b, err
	}
	b.Course = b.clone()
	b.Key, b.Failed = key, nil
	b.deleteReceived(received, now)
	b.entomb(now)
	return b.stripped(), nil
}

// Succeed settles the current operation well; grant is what a bind gave.
func (b Binding) Succeed(now time.Time, grant Sealed) (Binding, error) {
	state, err := b.settling(Succeed)
	if err != nil {
		return b, err
	}
	b.Course = b.clone()
	b.State = state
	if b.Operation.Kind == Unbind {
		b = b.stripped()
	} else {
		b.Grant = grant
	}
	b.settle(now, Succeeded, "")
	return b, nil
}

// Fail settles the current operation badly.
func (b Binding) Fail(now time.Time, f Failure) (Binding, error) {
	state, err := b.settling(Fail)
	if err != nil {
		return b, err
	}
	b.Course = b.clone()
	b.State = state
	b.fail(now, f)
	return b, nil
}

// Remove ends the binding with its instance, whose deletion was asked for then:
// what was made for it is gone. An operation that still ran ends with it, an
// unbind well and a bind badly.
func (b Binding) Remove(now, asked time.Time) (Binding, error) {
	state, err := bindingTransitions.next(b.State, Remove)
	if err != nil {
		return b, err
	}
	b.Course = b.clone()
	b.State, b.Failed = state, nil
	b.deleteReceived(asked, now)
	if b.InProgress() {
		phase, description := Succeeded, ""
		if b.Operation.Kind == Bind {
			phase, description = Failed, "The service instance was deleted."
			b.Operation.Cancelled = true
		}
		b.settle(now, phase, description)
	} else {
		b.bury(now)
	}
	return b.stripped(), nil
}

// stripped is a tombstone that keeps no secret and no user's data, but what it
// takes to recognise the request that failed.
func (b Binding) stripped() Binding {
	b.Secret, b.Grant, b.Context = nil, nil, nil
	if b.Failed == nil {
		b.Parameters, b.AppGUID, b.Route, b.Predecessor = nil, "", "", ""
	}
	return b
}

func (b Binding) settling(e Event) (State, error) {
	if !b.InProgress() {
		return b.State, &IllegalTransition{State: b.State, Event: e}
	}
	return bindingTransitions.next(b.State, e)
}

// A Pointer says which instance a binding id belongs to: binding ids are
// unique on a platform (BIND-19).
type Pointer struct {
	Version int64 `json:"-"`
	Key     Key   `json:"key"`
}
