package lifecycle

import (
	"encoding/json"
	"time"

	"github.com/longshore/longshore/internal/limits"
)

// Sealed is something secret, sealed by the vault. It is safe to store and
// means nothing without the vault.
type Sealed []byte

// String keeps even the sealed form out of logs.
func (Sealed) String() string { return "[sealed]" }

// GoString keeps even the sealed form out of %#v.
func (Sealed) GoString() string { return "[sealed]" }

// Attributes are what a platform asked an instance to be, and what decides
// whether a repeated request is the same (PROV-09).
type Attributes struct {
	ServiceID        string `json:"service_id"`
	PlanID           string `json:"plan_id"`
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Parameters is the user's JSON object, sealed; nil if there is none.
	Parameters Sealed `json:"parameters,omitempty"`
	// Context is the platform's context object as it came.
	Context json.RawMessage `json:"context,omitempty"`
	// MaintenanceVersion is the plan's when it was provisioned or maintained.
	MaintenanceVersion string `json:"maintenance_version,omitempty"`
	// DashboardURL is where the user manages the instance; empty for nowhere.
	DashboardURL string `json:"dashboard_url,omitempty"`
}

// An Instance is the record of a service instance.
type Instance struct {
	Course
	// Incarnation is the id of the operation that created it: an id that is
	// used again after a deletion is another instance.
	Incarnation string `json:"incarnation,omitempty"`
	// Provider names what makes it, so that it can be removed after its plan
	// has left the catalog (CAT-28).
	Provider   string     `json:"provider,omitempty"`
	Attributes Attributes `json:"attributes,omitzero"`
	// Unusable says that a failed update left it so (UPD-24).
	Unusable bool      `json:"unusable,omitempty"`
	Created  time.Time `json:"created,omitzero"`
	Updated  time.Time `json:"updated,omitzero"`
}

// An Answer is what a request to a record comes to, when it is not refused.
type Answer int

// The answers.
const (
	Begin   Answer = iota + 1 // begin a new operation
	Join                      // the same operation runs already
	Stays                     // it has failed, and stays so until it is deleted
	Exists                    // it is so already
	Missing                   // nothing to delete
)

// OnProvision answers a PUT (checklist section 14.1). Same says whether the
// attributes equal the current ones; it means nothing where there are none.
// Permitted says that the client understands a 202.
func (i Instance) OnProvision(same, permitted bool, received, now time.Time) (Answer, error) {
	switch seen := i.Seen(); {
	case seen == Absent:
		return Begin, nil
	case seen != Deleted && !same:
		return 0, Refuse(Conflict, "A service instance with this id exists with other attributes; use another id or update it.")
	case permitted && i.FailedCreation() != nil:
		return Stays, nil
	}
	switch i.State {
	case Deleted:
		// A PUT that was sent before the deletion and arrives after it: the
		// platform believes the instance gone (ORB-03).
		if i.overtaken(received, now) {
			return 0, &Refusal{Reason: ConcurrencyError, Message: "A later request deleted this service instance."}
		}
		return Begin, nil
	case Creating:
		return Join, nil
	case CreateFailed:
		return Begin, nil
	case Ready:
		if i.Unusable {
			return 0, Refuse(Unprocessable, "The service instance is unusable since its last update failed; update it again or delete it.")
		}
		return Exists, nil
	case DeleteFailed:
		return 0, refuseHalfDeleted()
	default: // Updating, Deleting
		return 0, RefuseConcurrent()
	}
}

// OnUpdate answers a PATCH. Same says whether a running update leads to the
// attributes that the request asks for.
func (i Instance) OnUpdate(same bool, received, now time.Time) (Answer, error) {
	switch i.Seen() {
	case Absent, Deleted:
		return 0, refuseNoInstance()
	case Ready:
		if i.overtaken(received, now) {
			return 0, refuseEarlierInstance()
		}
		return Begin, nil // also after a failed update, to repair (UPD-25)
	case Updating:
		if same {
			return Join, nil
		}
		return 0, RefuseConcurrent()
	case CreateFailed:
		return 0, refuseHalfMade()
	case DeleteFailed:
		return 0, refuseHalfDeleted()
	default: // Creating, Deleting
		return 0, RefuseConcurrent()
	}
}

// OnDeprovision answers a DELETE: safe in every state (ORB-01), refused while an
// update runs (DEPR-09), and if it meant an earlier instance with this id. It is
// never answered 410 where there is one.
func (i Instance) OnDeprovision(received, now time.Time) (Answer, error) {
	switch i.State {
	case Absent, Deleted:
		return Missing, nil
	case Updating:
		return 0, RefuseConcurrent()
	case Deleting:
		return Join, nil
	case DeleteFailed: // it is to be deleted, whoever asks
		return Begin, nil
	default: // Creating, Ready, CreateFailed
		if i.overtaken(received, now) {
			return 0, refuseEarlierInstance()
		}
		return Begin, nil
	}
}

// OnRead answers a GET.
func (i Instance) OnRead() error {
	switch i.Seen() {
	case Ready, DeleteFailed:
		return nil
	case Updating, Deleting:
		return RefuseConcurrent()
	default: // Absent, Creating, CreateFailed, Deleted
		return refuseNoInstance()
	}
}

// OnBind says whether a new binding may begin. A request from before a deletion
// meant the instance that had this id then.
func (i Instance) OnBind(received, now time.Time) error {
	switch i.Seen() {
	case Absent, Deleted:
		return refuseNoInstance()
	case Ready:
		switch {
		case i.overtaken(received, now):
			return refuseEarlierInstance()
		case i.Unusable:
			return Refuse(Unprocessable, "The service instance is unusable since its last update failed; update it again or delete it.")
		}
		return nil
	case CreateFailed:
		return refuseHalfMade()
	case DeleteFailed:
		return refuseHalfDeleted()
	default: // Creating, Updating, Deleting
		return RefuseConcurrent()
	}
}

// OnUnbind says whether a binding may begin to be removed: also when the
// instance is not healthy (UNB-10), but not while it changes (CONC-08).
func (i Instance) OnUnbind() error {
	switch i.State {
	case Updating, Deleting:
		return RefuseConcurrent()
	}
	return nil
}

func refuseNoInstance() *Refusal {
	return Refuse(NotFound, "There is no service instance with this id.")
}

func refuseEarlierInstance() *Refusal {
	return &Refusal{Reason: ConcurrencyError, Message: "The request arrived before the one that made this service instance, " +
		"and meant an earlier one with this id, which was deleted; repeat it if it means this one."}
}

func refuseHalfMade() *Refusal {
	return Refuse(Unprocessable, "The service instance could not be created; delete it.")
}

func refuseHalfDeleted() *Refusal {
	return Refuse(Unprocessable, "The service instance could not be deleted completely; delete it again.")
}

// kept is a platform's context as a record holds it beside a new operation. One
// that an earlier program let in although it is too large would leave no room for
// that: it is dropped, since nothing but the comparison of requests reads it.
func kept(context json.RawMessage) json.RawMessage {
	if len(context) > limits.Context {
		return nil
	}
	return context
}

// BeginProvision starts the creation of an instance. It also gives the
// operation that the new one replaces in the record, to be remembered.
func (i Instance) BeginProvision(s Start, key Key, provider string, a Attributes) (Instance, *PastOperation, error) {
	state, err := instanceTransitions.next(i.State, BeginCreate)
	if err != nil {
		return i, nil, err
	}
	i.Course = i.clone()
	i.Key, i.State = key, state
	past := i.begin(s, Provision)
	i.Incarnation, i.Provider, i.Attributes = s.ID, provider, a
	i.Unusable, i.Created, i.Updated = false, i.Operation.Started, time.Time{}
	return i, past, nil
}

// BeginUpdate starts a change towards the target.
func (i Instance) BeginUpdate(s Start, target Attributes) (Instance, *PastOperation, error) {
	state, err := instanceTransitions.next(i.State, BeginUpdate)
	if err != nil {
		return i, nil, err
	}
	i.Course = i.clone()
	i.State = state
	past := i.begin(s, Update)
	i.Attributes.Context, target.Context = kept(i.Attributes.Context), kept(target.Context)
	i.Operation.Target = &target
	return i, past, nil
}

// BeginDeprovision starts the deletion, also of what is half made: it
// overtakes a creation that is still running.
func (i Instance) BeginDeprovision(s Start) (Instance, *PastOperation, error) {
	state, err := instanceTransitions.next(i.State, BeginDelete)
	if err != nil {
		return i, nil, err
	}
	i.Course = i.clone()
	i.State = state
	i.Attributes.Context = kept(i.Attributes.Context)
	return i, i.begin(s, Deprovision), nil
}

// Unbound records that its deprovision has found no binding left up to this id.
// None can begin there meanwhile, since the instance is not ready.
func (i Instance) Unbound(last string) Instance {
	i.Course = i.clone()
	i.Operation.Unbound = last
	return i
}

// Entomb records that the deletion of what does not exist was asked for.
func (i Instance) Entomb(key Key, now, received time.Time) (Instance, error) {
	if _, err := instanceTransitions.next(i.State, Entomb); err != nil {
		return i, err
	}
	i.Course = i.clone()
	i.Key, i.Failed = key, nil
	i.deleteReceived(received, now)
	i.entomb(now)
	return i.stripped(), nil
}

// stripped is a tombstone that keeps no user's data, but what it takes to look
// again, and to recognise the request that failed.
func (i Instance) stripped() Instance {
	i.Unusable = false
	if i.Failed == nil {
		i.Attributes = Attributes{ServiceID: i.Attributes.ServiceID, PlanID: i.Attributes.PlanID}
	}
	return i
}

// SetContext replaces the platform's context: no work, no operation (UPD-15).
func (i Instance) SetContext(context json.RawMessage, now time.Time) Instance {
	i.Attributes.Context, i.Updated = context, after(now, later(i.Updated, i.Created))
	return i
}

// Succeed settles the current operation well.
func (i Instance) Succeed(now time.Time) (Instance, error) {
	state, err := i.settling(Succeed)
	if err != nil {
		return i, err
	}
	i.Course = i.clone()
	i.State = state
	i.settle(now, Succeeded, "")
	switch i.Operation.Kind {
	case Update:
		i.Attributes, i.Operation.Target = *i.Operation.Target, nil
		i.Unusable, i.Updated = false, i.Operation.Settled
	case Deprovision:
		i = i.stripped()
	}
	return i, nil
}

// Fail settles the current operation badly. A failed update leaves the
// attributes as they were (UPD-23).
func (i Instance) Fail(now time.Time, f Failure) (Instance, error) {
	state, err := i.settling(Fail)
	if err != nil {
		return i, err
	}
	i.Course = i.clone()
	i.State = state
	i.fail(now, f)
	switch i.Operation.Kind {
	case Update:
		i.Operation.Target = nil
		i.Operation.InstanceUsable, i.Operation.UpdateRepeatable = f.InstanceUsable, f.UpdateRepeatable
		switch {
		case f.InstanceUsable != nil:
			i.Unusable = !*f.InstanceUsable
		case i.Unusable:
			// A repair that failed without a word repaired nothing, and
			// platforms take silence for usable (ERR-10).
			unusable := false
			i.Operation.InstanceUsable = &unusable
		}
	case Deprovision:
		// Part of it may be gone.
		unusable := false
		i.Operation.InstanceUsable = &unusable
	}
	return i, nil
}

func (i Instance) settling(e Event) (State, error) {
	if !i.InProgress() {
		return i.State, &IllegalTransition{State: i.State, Event: e}
	}
	return instanceTransitions.next(i.State, e)
}
