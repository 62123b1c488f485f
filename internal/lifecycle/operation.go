package lifecycle

import (
	"time"

	"github.com/longshore/longshore/internal/base/operation"
)

// Kind is what an operation does, also to providers. A Target is a server or an account on which a provider
// makes things, and an Origin the life that a thing was made for.
type (
	Kind   = operation.Kind
	Target = operation.Target
	Origin = operation.Origin
)

// The kinds.
const (
	Provision   = operation.Provision
	Update      = operation.Update
	Deprovision = operation.Deprovision
	Bind        = operation.Bind
	Unbind      = operation.Unbind
	Quarantine  = operation.Quarantine
	Release     = operation.Release
)

// Phase is the progress of an operation. Its values are those of the API (LOP-01).
type Phase string

// The phases. Succeeded and Failed never change again (LOP-19).
const (
	InProgress Phase = "in progress"
	Succeeded  Phase = "succeeded"
	Failed     Phase = "failed"
)

// Durations of the lifecycle.
const (
	// Retention is how long finished operations and tombstones are kept: longer than a
	// platform polls (one week, LOP-13) and than it repeats deletions (34 hours, ORB-05).
	Retention = 8 * 24 * time.Hour
	// ReclaimAfter is when the broker itself removes the leftovers of a failed provision
	// or deletion that no platform has deleted (ORB-04). By then no platform polls the
	// failure any more.
	ReclaimAfter = Retention
	// SecondLook is how long a deletion that overtook another operation waits
	// between the two looks that together prove an absence.
	SecondLook = 10 * time.Second
	// LateLook is the time between a deletion and its late look: a call that timed out may
	// take effect after the deletion.
	LateLook = 15 * time.Minute
	// LateLookAgain is the pause between late looks, until one sees the absence.
	LateLookAgain = 5 * time.Minute
	// Grace is how long after its planned next look an operation counts as abandoned, so
	// that the reaper restarts it.
	Grace = time.Minute
)

// An Operation is one change to an instance or binding. It moves forward only: once it has
// succeeded or failed it never changes again, except for its Asker.
type Operation struct {
	ID          string    `json:"id"`
	Kind        Kind      `json:"kind"`
	Phase       Phase     `json:"phase"`
	Description string    `json:"description,omitempty"` // for the platform's user
	Percent     int       `json:"percent,omitempty"`
	Started     time.Time `json:"started"`
	// Deadline ends an unsettled operation: the first step that begins later and does not find
	// the work done fails the operation (LOP-20).
	Deadline time.Time `json:"deadline"`
	Settled  time.Time `json:"settled,omitzero"`
	// Attempt counts the executions of the operation, from 1; a step of an older attempt
	// does nothing.
	Attempt int `json:"attempt"`
	// Next is when the next look is planned.
	Next time.Time `json:"next,omitzero"`
	// Faults counts the passing faults since a step last got an answer.
	Faults int `json:"faults,omitempty"`
	// Trouble tells operators, and nobody else, what they must mend before the operation
	// can go on; empty for nothing.
	Trouble string `json:"trouble,omitempty"`
	// Synchronous says that the platform's request waits for the result.
	Synchronous bool `json:"synchronous,omitempty"`
	// Promised says that another request was given the operation's token.
	Promised bool `json:"promised,omitempty"`
	// Own says that the broker began the operation by itself, so no platform polls it.
	Own bool `json:"own,omitempty"`
	// Expected is the duration expected when the operation began; zero if unknown.
	Expected time.Duration `json:"expected,omitempty"`
	// Asker is who asked for the operation, for audit.
	Asker Asker `json:"asker,omitzero"`
	// Parameters are the names of the parameters that the request gave.
	Parameters []string `json:"parameters,omitempty"`
	// Target is what an update changes the attributes to; they change only when it
	// succeeds (UPD-23).
	Target *Attributes `json:"target,omitempty"`
	// Source is the instance that a provision restores; nil if it restores none.
	Source *Source `json:"source,omitempty"`
	// Unbound is the progress of a deprovision: no binding is left whose id is at most Unbound,
	// in byte order. In an update, no step of those bindings is calling the cloud.
	Unbound string `json:"unbound,omitempty"`
	// Before is the start of the Description that the Trouble's description replaced.
	Before string `json:"before_trouble,omitempty"`
	// TakenBy is the deprovision that removes the binding in place of this unbind. The unbind
	// waits while the deprovision runs.
	TakenBy string `json:"taken_by,omitempty"`
	// Quiet says that the update has found no step of a binding of the instance calling
	// the cloud. No bind can begin one, since the instance is not ready.
	Quiet bool `json:"quiet,omitempty"`
	// InstanceUsable and UpdateRepeatable come with a failed update or
	// deprovision (ERR-10).
	InstanceUsable   *bool `json:"instance_usable,omitempty"`
	UpdateRepeatable *bool `json:"update_repeatable,omitempty"`
	// Cancelled says that a later deletion overtook the operation.
	Cancelled bool `json:"cancelled,omitempty"`
	// Unknown holds the members that only a newer program knows.
	Unknown Unknown `json:"-"`
}

// Overdue reports whether the operation is past its deadline.
func (op *Operation) Overdue(now time.Time) bool { return !now.Before(op.Deadline) }

// Asynchronous reports whether a platform has the operation's token, and so polls it for the outcome.
func (op *Operation) Asynchronous() bool { return !op.Synchronous || op.Promised }

// A FailedOperation keeps the members of a failed operation that a platform can poll.
type FailedOperation struct {
	ID          string    `json:"id"`
	Kind        Kind      `json:"kind"`
	Percent     int       `json:"percent,omitempty"`
	Description string    `json:"description,omitempty"`
	Started     time.Time `json:"started"`
	Settled     time.Time `json:"settled"`
}

// operation returns f as an operation; nil for nil.
func (f *FailedOperation) operation() *Operation {
	if f == nil {
		return nil
	}
	return &Operation{
		ID: f.ID, Kind: f.Kind, Phase: Failed, Percent: f.Percent, Description: f.Description, Started: f.Started,
		Settled: f.Settled,
	}
}

// An Asker is who asked for an operation. It may be erased once the operation has ended: after
// that, only people read it.
type Asker struct {
	// IdentityPlatform and Identity are the originating identity (OID-02). Identity is its
	// decoded JSON object, which may be personal data.
	IdentityPlatform string `json:"identity_platform,omitempty"`
	Identity         Sealed `json:"identity,omitempty"`
	// Request is the request identity (RID-02).
	Request string `json:"request,omitempty"`
}

// IsZero makes omitzero leave out an empty Asker.
func (a Asker) IsZero() bool {
	return a.IdentityPlatform == "" && len(a.Identity) == 0 && a.Request == ""
}

// A Start holds the members that an operation begins with.
type Start struct {
	ID          string
	Now         time.Time
	Received    time.Time // when the request arrived at the edge; zero if the broker begins the operation by itself
	Timeout     time.Duration
	Synchronous bool
	Own         bool // the broker begins the operation by itself
	Asker       Asker
	// Expected is how long such operations take; zero if that is not known.
	Expected time.Duration
	Source   *Source // the instance that a provision restores; nil for none
	// Parameters are the names of the parameters that the request gives.
	Parameters []string
}

// A Look is a step's view of work in progress.
type Look struct {
	Percent     int
	Description string
	After       time.Duration // until the next look
}

// A Failure says how an operation failed. Its message is safe for the platform's user.
type Failure struct {
	Message          string
	InstanceUsable   *bool
	UpdateRepeatable *bool
	// Untouched says that a deletion was refused before anything was removed.
	Untouched bool
	// Reclaim says that the broker is to remove at once what a failed creation has made so far:
	// the creation may yet be completed, and nobody would use the result.
	Reclaim bool
}

// Overdue returns the failure of an operation that was found unfinished after its deadline.
func Overdue() Failure {
	return Failure{
		Message: "The operation did not finish in the time allowed; try again, or delete what it was creating.",
		Reclaim: true,
	}
}

// A PastOperation is an operation that a later one replaced in its record. The broker keeps
// it so that its token is still answered (LOP-06).
type PastOperation struct {
	Version   int64     `json:"-"`
	Key       Key       `json:"key"`
	Operation Operation `json:"operation"`
	Expires   time.Time `json:"expires"`
}
