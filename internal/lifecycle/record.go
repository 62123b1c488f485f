package lifecycle

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/secret"
)

// A Record is everything that the broker keeps of a service instance or a service binding:
// the order, the current or last operation, and the leases of steps that may be calling the
// cloud. Its key says which of the two it is.
type Record struct {
	// Version is the version that was read; 0 if it was never recorded.
	Version int64 `json:"-"`
	Key
	State     State      `json:"state"`
	Operation *Operation `json:"operation,omitempty"`
	Leases    []Lease    `json:"leases,omitempty"`
	// Failed is a creation that failed asynchronously, and that the broker has begun to
	// clean up. The platform sees the failure until it deletes the instance (PROV-30).
	Failed *FailedOperation `json:"failed,omitempty"`
	// Wary says that a call of an overtaken operation may still take effect, since its
	// lease ran out before it was answered. One look then does not prove an absence.
	Wary bool `json:"wary,omitempty"`
	// AbsentSince is when a wary deletion first saw the absence.
	AbsentSince time.Time `json:"absent_since,omitzero"`
	// Due is when the reaper is to look at the record; zero for never.
	Due time.Time `json:"due,omitzero"`
	// Expires is when a tombstone is forgotten.
	Expires time.Time `json:"expires,omitzero"`
	// LateLook is when a tombstone's late look is due; zero for never, or no longer.
	LateLook time.Time `json:"late_look,omitzero"`
	// LateAttempt is the attempt of the late look's execution.
	LateAttempt int `json:"late_attempt,omitempty"`
	// Unknown holds the members that only a newer program knows.
	Unknown Unknown `json:"-"`
	// Rebuilt is when the record was rebuilt from its thing, or lost a sealed member; zero
	// if it never lost anything.
	Rebuilt time.Time `json:"rebuilt,omitzero"`
	// CreateReceived is when the request that created this incarnation arrived.
	CreateReceived time.Time `json:"create_received,omitzero"`
	// DeleteReceived is when the last request to delete this id arrived; zero if none is known.
	// If the record exists, that request deleted an earlier incarnation.
	DeleteReceived time.Time `json:"delete_received,omitzero"`
	// Incarnation is the id of the operation that created the instance or binding. An id that
	// is used again after a deletion names another one.
	Incarnation string `json:"incarnation,omitempty"`
	// Provider is the name of the provider. With it, the instance can be removed after its plan
	// has left the catalog (CAT-28).
	Provider   string     `json:"provider,omitempty"`
	Attributes Attributes `json:"attributes,omitzero"`
	// Made tells the provider, together with the ids, where its things are.
	Made    Made      `json:"made,omitzero"`
	Created time.Time `json:"created,omitzero"`
	// Kept says until when a former life is, or was, in quarantine; nil if it never was.
	Kept *Kept `json:"kept,omitempty"`
	InstanceOnly
	BindingOnly
}

// Made is passed to the provider in each operation. A tombstone keeps all of it but the state.
type Made struct {
	// Broker is the identity of the broker that made the thing.
	Broker string `json:"broker,omitempty"`
	// Target is the server or account that holds the thing; a binding has its instance's.
	Target Target `json:"target,omitzero"`
	// Origin is the life that the thing was made for, if not this one; a binding has its instance's.
	Origin Origin `json:"origin,omitzero"`
	// State is the provider's own data about the thing, sealed.
	State Sealed `json:"state,omitempty"`
	// Found replaces State for an orphan: the inventory read it from the cloud, where it
	// is not secret.
	Found []byte `json:"found,omitempty"`
}

// InstanceOnly holds the members that only the record of an instance has.
type InstanceOnly struct {
	// Unusable says that a failed update left the instance unusable (UPD-24).
	Unusable bool `json:"unusable,omitempty"`
	// Unfinished says that the instance being deleted was never ready: nobody has used it, so its plan keeps no data.
	Unfinished bool `json:"unfinished,omitempty"`
	// Undeletes is the kept life that this instance takes over, until it is ready; nil for
	// none.
	Undeletes *Undeletion `json:"undeletes,omitempty"`
	Updated   time.Time   `json:"updated,omitzero"`
}

// BindingOnly holds the members that only the record of a binding has.
type BindingOnly struct {
	// InstanceIncarnation is the incarnation of the instance that it was made for: a
	// binding never passes to a later instance with the same id.
	InstanceIncarnation string `json:"instance_incarnation,omitempty"`
	AppGUID             string `json:"app_guid,omitempty"` // empty for a service key
	Route               string `json:"route,omitempty"`
	// Predecessor is the binding that this one was rotated from (ROT-01).
	Predecessor string `json:"predecessor,omitempty"`
	// Secret is random and recorded with the intent. Generated passwords derive from it,
	// so that a repeated step gives the same credentials.
	Secret Sealed `json:"secret,omitempty"`
	// Grant is what the application gets, once the bind has succeeded.
	Grant Sealed `json:"grant,omitempty"`
	// ExpiresAt and RenewBefore are copied from the grant in clear, since pages open no grant;
	// zero for credentials that do not expire (BIND-27, BIND-28).
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
	RenewBefore time.Time `json:"renew_before,omitzero"`
}

// Attributes are the order of an instance or a binding. They decide whether a repeated request
// is the same (PROV-09). A binding keeps the plan that it was made with: the plan of its
// instance may have changed since.
type Attributes struct {
	ServiceID        string `json:"service_id,omitempty"`
	PlanID           string `json:"plan_id,omitempty"`
	OrganizationGUID string `json:"organization_guid,omitempty"`
	SpaceGUID        string `json:"space_guid,omitempty"`
	// Parameters is the user's JSON object, sealed; nil if there is none.
	Parameters Sealed `json:"parameters,omitempty"`
	// SealedContext is the platform's whole context object. Context holds the compared
	// members in clear (see Stable).
	SealedContext Sealed          `json:"sealed_context,omitempty"`
	Context       json.RawMessage `json:"context,omitempty"`
	// Names are an instance's Names, sealed under the table's data key.
	Names Sealed `json:"names,omitempty"`
	// MaintenanceVersion is the maintenance version of the plan when the instance was
	// provisioned or last maintained.
	MaintenanceVersion string `json:"maintenance_version,omitempty"`
	// Snapshot is the provider's reading of the plan at that time, made when the catalog
	// was compiled.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	// DashboardURL is where the user manages the instance; empty for nowhere.
	DashboardURL string `json:"dashboard_url,omitempty"`
}

// Sealed is a secret, sealed by the vault. It is safe to store, and useless without the
// vault; even the sealed form stays out of logs.
type Sealed = secret.Bytes

// Unknown holds the members of a record that this program does not know, and writes back unchanged.
// While a broker's functions are being replaced, old programs change records that new ones have written.
type Unknown map[string]json.RawMessage

// A Lease says that a step may be calling the cloud. A token cannot stop a call that was
// already sent, so an overtaking operation waits for the lease.
type Lease struct {
	Holder    string    `json:"holder"` // one step, never two
	Operation string    `json:"operation"`
	Taken     time.Time `json:"taken"`
	// Until is later than any moment at which the step can still be running.
	Until time.Time `json:"until"`
	// TimedOut says that the step's call timed out: it may still take effect, but no step
	// waits for its answer.
	TimedOut bool `json:"timed_out,omitempty"`
}

// InProgress reports whether an operation is running.
func (r Record) InProgress() bool {
	return r.Operation != nil && r.Operation.Phase == InProgress
}

// Token returns the token of the current operation.
func (r Record) Token() Token {
	if r.Operation == nil {
		return Token{}
	}
	return Token{Operation: r.Operation.ID, Key: r.Key}
}

// Current reports whether a step of this operation and attempt may act. It fences off
// late workers (CONC-09).
func (r Record) Current(operation string, attempt int) bool {
	return r.InProgress() && r.Operation.ID == operation && r.Operation.Attempt == attempt
}

// Runs reports whether the token's operation is in progress here.
func (r Record) Runs(t Token) bool { return r.InProgress() && r.Operation.ID == t.Operation }

// Forgotten reports whether a tombstone has expired. Stores may drop it then, but no code
// relies on that (NFR-08).
func (r Record) Forgotten(now time.Time) bool {
	return r.State == Deleted && !r.Expires.IsZero() && !now.Before(r.Expires)
}

// FailedCreation returns the failed creation whose token the platform has; nil if there is
// none. A repeated request gets that token until the platform deletes the instance (PROV-30).
func (r Record) FailedCreation() *Operation {
	if op := r.Operation; r.State == CreateFailed && op != nil && op.Asynchronous() { // a former life that was set aside has none
		return op
	}
	return r.Failed.operation()
}

// Seen returns the state as the platform sees it: a failed creation stays failed while the
// broker cleans up after it.
func (r Record) Seen() State {
	if r.Failed != nil {
		return CreateFailed
	}
	return r.State
}

// Promised records that another request got the token of a creation that was begun
// synchronously: from then on the creation fails asynchronously. It reports whether the
// record changed.
func (r Record) Promised() (Record, bool) {
	if !r.InProgress() || !r.Operation.Kind.Creates() || r.Operation.Asynchronous() {
		return r, false
	}
	r = r.clone()
	r.Operation.Promised = true
	return r, true
}

// clone copies the operation and the leases, so that no method changes those of its receiver.
func (r Record) clone() Record {
	if r.Operation != nil {
		op := *r.Operation
		r.Operation = &op
	}
	r.Leases = slices.Clone(r.Leases)
	return r
}

// begun returns the record after an event that makes a new operation the current one.
func (r Record) begun(e Event, s Start, kind Kind) (Record, error) {
	r, err := r.next(e)
	if err != nil {
		return r, err
	}
	r.Failed = r.failedBefore(s, kind)
	r.Operation = &Operation{
		ID: s.ID, Kind: kind, Phase: InProgress, Started: after(s.Now, r.last()), Deadline: s.Now.Add(s.Timeout),
		Attempt: 1, Next: s.Now, Synchronous: s.Synchronous, Own: s.Own, Asker: s.Asker, Expected: s.Expected, Source: s.Source,
		Parameters: s.Parameters,
	}
	r.AbsentSince = time.Time{}
	r.Expires, r.LateLook, r.LateAttempt = time.Time{}, time.Time{}, 0
	if kind.Creates() {
		r.Rebuilt = time.Time{}
	}
	r.Due = s.Now.Add(Grace)
	switch {
	case kind.Deletes():
		r.deleteReceived(s.Received, s.Now)
	case kind.Creates():
		r.CreateReceived = after(earlier(s.Received, s.Now), later(r.CreateReceived, r.DeleteReceived))
	}
	return r, nil
}

// failedBefore returns the failed creation to remember beside a new operation. There is one
// only if the new operation is a deletion that the broker begins by itself.
func (r Record) failedBefore(s Start, kind Kind) *FailedOperation {
	if !s.Own || !kind.Deletes() {
		return nil
	}
	op := r.Operation
	if op == nil || !op.Kind.Creates() || op.Phase != Failed || !op.Asynchronous() {
		return r.Failed
	}
	return &FailedOperation{
		ID: op.ID, Kind: op.Kind, Percent: op.Percent, Description: op.Description, Started: op.Started, Settled: op.Settled,
	}
}

// Past returns the PastOperation that remembers the operation that r, which has just begun another one, replaced in the
// record before it; nil if it replaced none. The Next of an operation that has just begun is when it began, whereas its
// Started may be later: see after.
func (r Record) Past(before Record) *PastOperation {
	if !r.replaced(before) || before.Forgotten(r.Operation.Next) {
		return nil
	}
	op := r.cancelled(*before.Operation)
	op.Target, op.Source, op.Unbound, op.TakenBy, op.Before, op.Parameters = nil, nil, "", "", "", nil
	return &PastOperation{Key: r.Key, Operation: op, Expires: r.Operation.Next.Add(Retention)}
}

// replaced reports whether a later operation took the place of the one of the record before: it begins after all times of
// that one (see begun). A former life remembers none: its operations were remembered when it was set aside, and no platform
// knows of later ones.
func (r Record) replaced(before Record) bool {
	return r.Key.Life == "" && r.Operation != nil && before.Operation != nil && r.Operation.Started.After(before.last())
}

// cancelled returns an operation that the current one replaced, as cancelled if it was still running (LOP-16).
func (r Record) cancelled(op Operation) Operation {
	if op.Phase == InProgress {
		op.Phase, op.Settled, op.Cancelled = Failed, r.Operation.Started, true
		op.Next, op.Faults, op.Trouble = time.Time{}, 0, ""
		op.Description = "The operation was cancelled by a later deletion."
	}
	return op
}

// settle ends the current operation.
func (r *Record) settle(now time.Time, phase Phase, description string) {
	op := r.Operation
	op.Phase, op.Settled, op.Next, op.Faults, op.Trouble, op.Before = phase, after(now, op.Started), time.Time{}, 0, "", ""
	op.Description = limits.Clip(description, limits.Description)
	if phase == Succeeded {
		op.Percent = 100
	}
	r.Due = time.Time{}
	switch r.State {
	case CreateFailed, DeleteFailed:
		r.Due = now.Add(ReclaimAfter)
	case Deleted:
		r.bury(now)
	case Quarantined:
		r.Due = r.Kept.Until
	case Ready:
		if r.Kept != nil { // the thing was released
			r.Due = now.Add(releasedLook)
		}
	}
}

// entomb gives a tombstone its time to live.
func (r *Record) entomb(now time.Time) {
	r.State = Deleted
	r.Expires = now.Add(Retention)
	r.Due = r.Expires
	if !r.LateLook.IsZero() {
		r.Due = r.LateLook
	}
	r.Wary, r.AbsentSince = false, time.Time{}
}

// bury makes a tombstone with a late look. A rebuilt record has no operation for the late look;
// the inventory finds things that appear late. Leases stay: another step of the deletion may
// still be calling the cloud.
func (r *Record) bury(now time.Time) {
	if r.Operation != nil {
		r.LateLook = now.Add(LateLook)
	}
	r.entomb(now)
}

// Looked records that a step found the work in progress. It moves the due time only if the
// next look comes after it, since each move costs an index write. Neither Looked nor the
// methods below change a settled operation (LOP-19).
func (r Record) Looked(now time.Time, l Look) Record {
	if !r.InProgress() {
		return r
	}
	r = r.clone()
	r.Operation.mend()
	r.Operation.Faults = 0
	r.plan(now, l)
	return r
}

// mend clears a trouble and restores the description that it replaced.
func (op *Operation) mend() {
	if op.Trouble != "" {
		op.Description, op.Before, op.Trouble = op.Before, "", ""
	}
}

// A Fault is a step's failure to learn the state of the work.
type Fault struct {
	After time.Duration // until the next look
	// Trouble is for the operator and Description for the platform's user; both are empty
	// for a fault that needs no person.
	Trouble, Description string
}

// Faulted records a step that met a passing fault.
func (r Record) Faulted(now time.Time, f Fault) Record {
	if !r.InProgress() {
		return r
	}
	r = r.clone()
	r.Operation.mend()
	r.Operation.Faults++
	if f.Trouble != "" {
		r.Operation.Trouble = limits.Clip(f.Trouble, limits.Trouble)
		r.Operation.Before = limits.Clip(r.Operation.Description, limits.Before)
	}
	r.plan(now, Look{After: f.After, Description: f.Description})
	return r
}

func (r *Record) plan(now time.Time, l Look) {
	op := r.Operation
	op.Next = now.Add(l.After)
	if l.Percent > op.Percent {
		op.Percent = min(l.Percent, 99)
	}
	if l.Description != "" {
		op.Description = limits.Clip(l.Description, limits.Description)
	}
	if r.Due.Before(op.Next.Add(Grace)) {
		r.Due = op.Next.Add(2 * Grace)
	}
}
