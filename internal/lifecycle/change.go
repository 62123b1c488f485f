package lifecycle

import (
	"time"
)

// BeginCreate starts the creation that fresh describes. It takes fresh's provider,
// attributes, broker, target, origin and BindingOnly and, for an undelete, all that
// Undelete set. The commit also writes the former life: see SetAside.
func (r Record) BeginCreate(s Start, fresh Record) (Record, error) {
	r, err := r.begun(BeginCreate, s, r.either(Provision, Bind))
	if err != nil {
		return r, err
	}
	r.Incarnation, r.Created = s.ID, r.Operation.Started
	r.Provider, r.Attributes, r.InstanceOnly, r.BindingOnly = fresh.Provider, fresh.Attributes, InstanceOnly{}, fresh.BindingOnly
	r.Grant, r.Made = nil, Made{Broker: fresh.Made.Broker, Target: fresh.Made.Target, Origin: fresh.Made.Origin}
	r.Leases, r.Wary = nil, false // their steps cannot reach the things of the new life
	if fresh.Undeletes != nil {
		r.Undeletes, r.Made, r.Leases, r.Wary = fresh.Undeletes, fresh.Made, fresh.Leases, fresh.Wary
	}
	return r, nil
}

// SetAside returns the record of the id's former life, to be committed with the record of the
// next life; nil if the former life left nothing. From now on the reaper cleans up a failed
// creation, and a tombstone keeps its late look.
//
// Hazard: calls of the former life may yet take effect. They cannot touch the next life, whose
// things have other names, so nothing else would remove the things that they make.
func (r Record) SetAside(now time.Time) *Record {
	switch {
	case r.State == CreateFailed:
		r.Due, r.Failed, r.Operation = now, nil, nil
	case r.State == Deleted && !r.LateLook.IsZero() && !r.Forgotten(now):
		r.Failed = nil
		r = r.stripped()
	default:
		return nil
	}
	r.Key, r.Version = r.Key.Former(r.Incarnation), 0
	return &r
}

// BeginUpdate starts a change towards the target.
func (r Record) BeginUpdate(s Start, target Attributes) (Record, error) {
	r, err := r.begun(BeginUpdate, s, Update)
	if err == nil {
		r.Operation.Target = &target
	}
	return r, err
}

// BeginDelete starts the deletion. It overtakes a running creation.
func (r Record) BeginDelete(s Start) (Record, error) {
	unfinished := !r.IsBinding() && (r.Unfinished || r.State == Creating || r.State == CreateFailed)
	r, err := r.begun(BeginDelete, s, r.either(Deprovision, Unbind))
	if err == nil {
		r.Unfinished = unfinished
	}
	return r, err
}

// A Thing exists in the cloud, and its label describes it. Without a record, it is an orphan.
type Thing struct {
	Name        string
	Key         Key
	Incarnation string
	// Of is the incarnation of the instance that a binding was made for; empty for an instance.
	Of       string
	Provider string // the provider that made the thing
	// Broker is the identity of the broker that made the thing; empty if the label does not say.
	Broker string
	// Target is where the thing was made.
	Target Target
	// Origin is the life that the thing's name derives from, if not its own.
	Origin Origin
	// State is what the deletion of the thing needs beside the ids; nil for nothing.
	State   []byte
	Created time.Time
	// KeptUntil is the date on the label of a kept thing, which is not deleted before; zero for
	// any other thing. PlanID is the plan that its instance had.
	KeptUntil time.Time
	PlanID    string
}

// BeginOrphanDeletion gives an orphan the record of a former life, whose operation removes the
// orphan. An instance or binding that has the id now, or gets it meanwhile, is left alone.
func (r Record) BeginOrphanDeletion(s Start, orphan Thing) (Record, error) {
	r, err := r.begun(BeginOrphanDeletion, s, r.either(Deprovision, Unbind))
	if err == nil {
		r.orphaned(orphan)
	}
	return r, err
}

// orphaned gives the record the members that are known of an orphan.
func (r *Record) orphaned(of Thing) {
	r.Incarnation, r.Provider, r.Created, r.InstanceIncarnation = of.Incarnation, of.Provider, of.Created, of.Of
	r.Made = Made{Broker: of.Broker, Target: of.Target, Origin: of.Origin, Found: of.State}
}

// Unbound records how far a step has come with the bindings of the instance: up to last, a
// deprovision has left none, and no step of a binding is calling the cloud before an update. No bind
// can add one, since the instance is not ready.
func (r Record) Unbound(last string) Record {
	r = r.clone()
	r.Operation.Unbound = last
	return r
}

// Quieted records that no step of a binding of the instance is calling the cloud.
func (r Record) Quieted() Record {
	r = r.clone()
	r.Operation.Quiet = true
	return r
}

// TakenOver records that a deprovision removes the binding in place of the running unbind.
func (r Record) TakenOver(deprovision string) Record {
	r = r.clone()
	r.Operation.TakenBy = deprovision
	return r
}

// Entomb records that the deletion of something that does not exist was requested.
func (r Record) Entomb(now, received time.Time) (Record, error) {
	r, err := r.next(Entomb)
	if err != nil {
		return r, err
	}
	r.Failed = nil
	r.deleteReceived(received, now)
	r.entomb(now)
	return r.stripped(), nil
}

// stripped returns a tombstone without secrets and user data. It keeps the members that the
// late look needs, and those that identify a failed request.
func (r Record) stripped() Record {
	a, b := r.Attributes, r.BindingOnly
	r.Unusable, r.Secret, r.Grant, r.Made.State, r.Made.Found, r.Kept = false, nil, nil, nil, nil, nil
	if r.IsBinding() {
		r.Attributes.Context, r.Attributes.SealedContext = nil, nil // the context takes no part in the comparison
	}
	if r.Failed == nil {
		r.Attributes, r.BindingOnly = Attributes{ServiceID: a.ServiceID, PlanID: a.PlanID},
			BindingOnly{InstanceIncarnation: b.InstanceIncarnation}
	}
	return r
}

// SetContext takes the platform's context and the names from a. It starts no operation (UPD-15).
func (r Record) SetContext(a Attributes, now time.Time) Record {
	r.Attributes.SealedContext, r.Attributes.Context, r.Attributes.Names = a.SealedContext, a.Context, a.Names
	r.Updated = after(now, later(r.Updated, r.Created))
	return r
}

// Succeed settles the current operation as succeeded; grant is the sealed result of a bind.
func (r Record) Succeed(now time.Time, grant Sealed) (Record, error) {
	r, err := r.settling(Succeed)
	if err != nil {
		return r, err
	}
	r.settle(now, Succeeded, "")
	switch r.Operation.Kind {
	case Update:
		r.Attributes, r.Operation.Target = *r.Operation.Target, nil
		r.Unusable, r.Updated = false, r.Operation.Settled
	case Provision:
		r.Undeletes = nil
	case Bind:
		r.Grant = grant
	case Deprovision, Unbind:
		r = r.stripped()
	}
	return r, nil
}

// Fail settles the current operation as failed. A failed update leaves the attributes
// as they were (UPD-23). A deletion that was refused before anything was touched leaves
// the instance ready: users can bind it, to empty it, and the broker does not delete it
// by itself later. An instance that was never ready stays in a failed deletion.
//
// Hazard: a former life that became ready would be left for good, since no user can bind or
// delete it. So it stays in a failed deletion too, and the reaper tries again.
func (r Record) Fail(now time.Time, f Failure) (Record, error) {
	r, err := r.settling(Fail)
	if err != nil {
		return r, err
	}
	if r.Operation.Kind == Deprovision && f.Untouched && !r.Unfinished && r.Key.Life == "" {
		r.State = Ready
	}
	r.settle(now, Failed, f.Message)
	switch op := r.Operation; op.Kind {
	case Provision, Bind:
		if f.Reclaim {
			r.Due = now
		}
	case Update:
		op.Target = nil
		op.InstanceUsable, op.UpdateRepeatable = f.InstanceUsable, f.UpdateRepeatable
		switch {
		case f.InstanceUsable != nil:
			r.Unusable = !*f.InstanceUsable
		case r.Unusable:
			// A failed repair that says nothing of usability has repaired nothing, and
			// platforms take a missing flag for usable (ERR-10).
			op.InstanceUsable = new(false)
		}
	case Deprovision:
		op.InstanceUsable = new(r.State == Ready && !r.Unusable) // unless it is ready, part of it may be gone
	}
	return r, nil
}

// Remove ends a binding whose instance is being deleted; asked is when that deletion was
// requested. If an unbind of the binding is running it succeeds, and a running bind fails.
func (r Record) Remove(now, asked time.Time) (Record, error) {
	r, err := r.next(Remove)
	if err != nil {
		return r, err
	}
	r.Failed = nil
	r.deleteReceived(asked, now)
	if r.InProgress() {
		phase, description := Succeeded, ""
		if r.Operation.Kind == Bind {
			phase, description = Failed, "The service instance was deleted."
			r.Operation.Cancelled = true
		}
		r.settle(now, phase, description)
	} else {
		r.bury(now)
	}
	return r.stripped(), nil
}

// settling is next, for an event that ends a running operation.
func (r Record) settling(e Event) (Record, error) {
	if !r.InProgress() {
		return r, &IllegalTransition{State: r.State, Event: e}
	}
	return r.next(e)
}

// A Pointer says which instance a binding id belongs to: binding ids are
// unique on a platform (BIND-19).
type Pointer struct {
	Version int64 `json:"-"`
	Key     Key   `json:"key"`
}
