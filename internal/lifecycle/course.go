package lifecycle

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/limits"
)

// A Course is what instances and bindings have in common: the operation that
// they are in, or were in last, and who may be touching the cloud for it.
type Course struct {
	// Version is the one that was read; 0 for what was never recorded.
	Version int64 `json:"-"`
	Key
	State     State      `json:"state"`
	Operation *Operation `json:"operation,omitempty"`
	Leases    []Lease    `json:"leases,omitempty"`
	// Failed is a creation that failed asynchronously, and that another operation
	// has taken the place of which the broker began by itself: to the platform,
	// what it asked for has failed, until it deletes it (PROV-30).
	Failed *FailedOperation `json:"failed,omitempty"`
	// Wary says that a call of an overtaken operation may have been on its
	// way when its lease ran out: one look does not prove an absence.
	Wary bool `json:"wary,omitempty"`
	// AbsentSince is when a deletion that is wary first saw the absence.
	AbsentSince time.Time `json:"absent_since,omitzero"`
	// Due is when the reaper is to look at the record; zero never.
	Due time.Time `json:"due,omitzero"`
	// Expires is when a tombstone is forgotten.
	Expires time.Time `json:"expires,omitzero"`
	// LateLook is when a tombstone is to be looked at again; zero for never,
	// or never more.
	LateLook time.Time `json:"late_look,omitzero"`
	// LateAttempt is that of the execution that looks.
	LateAttempt int `json:"late_attempt,omitempty"`
	// Unknown are members of the record that only a newer program knows.
	Unknown Unknown `json:"-"`
	// Rebuilt is when the record was derived again from what exists, or lost what
	// is sealed in it; zero for one that never lost anything.
	Rebuilt time.Time `json:"rebuilt,omitzero"`
	// CreateReceived is when the request arrived that made this incarnation.
	CreateReceived time.Time `json:"create_received,omitzero"`
	// DeleteReceived is when the last request to delete what has this id
	// arrived. On a record of what lives, that was an earlier life; zero if it
	// lives for the first time, as far as is known.
	DeleteReceived time.Time `json:"delete_received,omitzero"`
}

// Unknown are members of a record that this program does not know, and writes
// back as they were: while the functions of a broker are being replaced, old
// ones change what new ones have written.
type Unknown map[string]json.RawMessage

// A Lease says that a step may be calling the cloud. A token alone cannot
// fence a call that is already on its way; whoever overtakes waits for this.
type Lease struct {
	Holder    string    `json:"holder"` // one step, never two
	Operation string    `json:"operation"`
	Taken     time.Time `json:"taken"`
	// Until is past any moment at which the step can still be running.
	Until time.Time `json:"until"`
}

// InProgress reports whether an operation is running.
func (c Course) InProgress() bool {
	return c.Operation != nil && c.Operation.Phase == InProgress
}

// Token is the token of the current operation.
func (c Course) Token() Token {
	if c.Operation == nil {
		return Token{}
	}
	return Token{Operation: c.Operation.ID, Key: c.Key}
}

// Current reports whether a step of this operation and attempt may act: the
// fence against late workers (CONC-09).
func (c Course) Current(operation string, attempt int) bool {
	return c.InProgress() && c.Operation.ID == operation && c.Operation.Attempt == attempt
}

// Runs reports whether the token's operation is in progress here.
func (c Course) Runs(t Token) bool { return c.InProgress() && c.Operation.ID == t.Operation }

// Forgotten reports whether a tombstone's time is over. Stores may drop it
// then, but nobody relies on that (NFR-08).
func (c Course) Forgotten(now time.Time) bool {
	return c.State == Deleted && !c.Expires.IsZero() && !now.Before(c.Expires)
}

// FailedCreation is the creation that failed and that the platform was told of
// by its token: repeating it is answered with that token until the platform has
// deleted what failed (PROV-30). Nil if there is none.
func (c Course) FailedCreation() *Operation {
	if op := c.Operation; c.State == CreateFailed && op.Asynchronous() {
		return op
	}
	return c.remembered().operation()
}

// remembered is Failed where it counts. Otherwise a program that does not know
// it has let it stand, and begun something else.
func (c Course) remembered() *FailedOperation {
	if op := c.Operation; op == nil || !op.Own || !op.Kind.Deletes() {
		return nil
	}
	return c.Failed
}

// Seen is the state as the platform sees it: what failed to be created stays so,
// whatever the broker itself does about it.
func (c Course) Seen() State {
	if c.remembered() != nil {
		return CreateFailed
	}
	return c.State
}

// Promised records that a request was answered with the token of a creation that
// another one waits for: what fails then fails asynchronously. It reports whether
// that changes anything.
func (c Course) Promised() (Course, bool) {
	if !c.InProgress() || !c.Operation.Kind.Creates() || c.Operation.Asynchronous() {
		return c, false
	}
	c = c.clone()
	c.Operation.Promised = true
	return c, true
}

// clone copies what methods change, so that no method changes its receiver's
// operation or leases.
func (c Course) clone() Course {
	if c.Operation != nil {
		op := *c.Operation
		c.Operation = &op
	}
	c.Leases = slices.Clone(c.Leases)
	return c
}

// begin makes op the current operation and gives back the one it replaces.
func (c *Course) begin(s Start, kind Kind) *PastOperation {
	past, started := c.past(s.Now), after(s.Now, c.last())
	c.Failed = c.failedBefore(s, kind)
	c.Operation = s.operation(kind)
	c.Operation.Started = started
	c.AbsentSince = time.Time{}
	c.Expires, c.LateLook, c.LateAttempt = time.Time{}, time.Time{}, 0
	if kind == Provision || kind == Bind {
		c.Rebuilt = time.Time{}
	}
	c.Due = s.Now.Add(Grace)
	switch {
	case kind.Deletes():
		c.deleteReceived(s.Received, s.Now)
	case kind != Update:
		c.createReceived(s.Received, s.Now)
	}
	return past
}

// failedBefore is the failed creation that is to be remembered beside an
// operation that begins: only one of the broker's own deletions leaves it so.
func (c Course) failedBefore(s Start, kind Kind) *FailedOperation {
	if !s.Own || !kind.Deletes() {
		return nil
	}
	op := c.Operation
	if op == nil || !op.Kind.Creates() || op.Phase != Failed || !op.Asynchronous() {
		return c.remembered()
	}
	return &FailedOperation{
		ID: op.ID, Kind: op.Kind, Percent: op.Percent, Description: op.Description, Started: op.Started, Settled: op.Settled,
	}
}

// past is the operation as it is remembered once another takes its place: one
// that was still running has been cancelled (LOP-16).
func (c *Course) past(now time.Time) *PastOperation {
	if c.Operation == nil {
		return nil
	}
	op := *c.Operation
	if op.Phase == InProgress {
		op.Phase, op.Settled, op.Cancelled = Failed, after(now, op.Started), true
		op.Next, op.Faults = time.Time{}, 0
		op.Description = "The operation was cancelled by a later deletion."
	}
	op.Target, op.Unbound = nil, ""
	return &PastOperation{Key: c.Key, Operation: op, Expires: now.Add(Retention)}
}

// settle ends the current operation.
func (c *Course) settle(now time.Time, phase Phase, description string) {
	op := c.Operation
	op.Phase, op.Settled, op.Next, op.Faults = phase, after(now, op.Started), time.Time{}, 0
	op.Description = limits.Clip(description, limits.Description)
	if phase == Succeeded {
		op.Percent = 100
	}
	c.Due = time.Time{}
	switch c.State {
	case CreateFailed, DeleteFailed:
		c.Due = now.Add(ReclaimAfter)
	case Deleted:
		c.bury(now)
	}
}

// fail ends the current operation badly.
func (c *Course) fail(now time.Time, f Failure) {
	c.settle(now, Failed, f.Message)
	if f.Reclaim && c.State == CreateFailed {
		c.Due = now
	}
}

// entomb gives a tombstone its time to live.
func (c *Course) entomb(now time.Time) {
	c.State = Deleted
	c.Expires = now.Add(Retention)
	c.Due = c.Expires
	if !c.LateLook.IsZero() {
		c.Due = c.LateLook
	}
	c.Wary, c.AbsentSince = false, time.Time{}
}

// bury makes a tombstone of what existed: it is looked at once more, by an
// execution of its last operation, if it has one: of a record that was rebuilt,
// the inventory finds what came late. Leases stay: another step of the deletion may still be calling the cloud, and would take
// what is made next with this id for what it is to remove.
func (c *Course) bury(now time.Time) {
	if c.Operation != nil {
		c.LateLook = now.Add(LateLook)
	}
	c.entomb(now)
}

// Looked records a good look at work that goes on. The due time is rewritten
// only when it would pass before the next look, since that costs an index
// write. What has settled stays as it is, here and below (LOP-19).
func (c Course) Looked(now time.Time, l Look) Course {
	if !c.InProgress() {
		return c
	}
	c = c.clone()
	op := c.Operation
	op.Faults = 0
	c.plan(now, l)
	return c
}

// Faulted records a look that met a passing fault.
func (c Course) Faulted(now time.Time, after time.Duration) Course {
	if !c.InProgress() {
		return c
	}
	c = c.clone()
	c.Operation.Faults++
	c.plan(now, Look{After: after})
	return c
}

func (c *Course) plan(now time.Time, l Look) {
	op := c.Operation
	op.Next = now.Add(l.After)
	if l.Percent > op.Percent {
		op.Percent = min(l.Percent, 99)
	}
	if l.Description != "" {
		op.Description = limits.Clip(l.Description, limits.Description)
	}
	if c.Due.Before(op.Next.Add(Grace)) {
		c.Due = op.Next.Add(2 * Grace)
	}
}

// Redriven is the next attempt of an operation whose execution is gone.
func (c Course) Redriven(now time.Time) Course {
	if !c.InProgress() {
		return c
	}
	c = c.clone()
	c.Operation.Attempt++
	c.Operation.Next = now
	c.Due = now.Add(Grace)
	return c
}

// A Life is what is known of the step that took a lease.
type Life int

// The lives.
const (
	MayLive Life = iota // until its lease runs out
	Alive               // its lease counts, whatever the time
	Dead                // its lease means nothing, whatever the time
)

// A Witness tells of a lease's holder whether it lives. A process that has its
// records for itself knows that of its own steps, and that all others are dead;
// nil is one that does not.
type Witness func(holder string) Life

func (w Witness) of(l Lease) Life {
	if w == nil || l.Holder == nobody {
		return MayLive
	}
	return w(l.Holder)
}

// runs reports whether the step may be calling the cloud.
func (l Lease) runs(now time.Time, w Witness) bool {
	life := w.of(l)
	return life == Alive || life == MayLive && l.Until.After(now)
}

// lost reports whether the step has ended without giving its lease up.
func (l Lease) lost(now time.Time, w Witness) bool {
	return w.of(l) == MayLive && !l.Until.After(now)
}

// Busy gives the time until which a step of another operation than this one
// may be calling the cloud, or zero. How long one goes on that lives although its
// lease has run out, because the machine slept, is not known: look again soon.
func (c Course) Busy(operation string, now time.Time, w Witness) time.Time {
	var until time.Time
	for _, l := range c.Leases {
		switch {
		case l.Operation == operation || !l.runs(now, w):
		case l.Until.After(now):
			until = later(until, l.Until)
		default:
			until = later(until, now.Add(time.Second))
		}
	}
	return until
}

// Unsure reports whether a call of another operation than this one may have
// been lost on its way: its lease ran out without being given up.
func (c Course) Unsure(operation string, now time.Time, w Witness) bool {
	return c.Wary || slices.ContainsFunc(c.Leases, func(l Lease) bool { return l.Operation != operation && l.lost(now, w) })
}

// Leased lets a step of the current operation call the cloud until the time.
// Leases that no longer count are dropped, and what they leave unsure is kept:
// a lost call of the operation itself, too, unless it deletes. Its own later
// steps need not know, but a deletion that overtakes them must.
func (c Course) Leased(holder string, now, until time.Time, w Witness) Course {
	c = c.clone()
	c.Wary = c.Unsure(c.Operation.ID, now, w) || !c.Operation.Kind.Deletes() && c.Unsure("", now, w)
	c.Leases = slices.DeleteFunc(c.Leases, func(l Lease) bool { return !l.runs(now, w) })
	c.Leases = merged(append(c.Leases, Lease{Holder: holder, Operation: c.Operation.ID, Taken: now, Until: until}))
	if c.Due.Before(until) {
		c.Due = until
	}
	return c
}

// nobody holds what is left of leases that were merged.
const nobody = "nobody"

// merged keeps as many leases as a record holds: the two oldest become one that
// lasts as long as both, that no operation may take for its own unless both are
// its own, and that nobody gives up, since one of the two calls may go on.
func merged(leases []Lease) []Lease {
	for len(leases) > limits.Leases {
		a, b := leases[0], &leases[1]
		b.Holder = nobody
		if a.Operation != b.Operation {
			b.Operation = ""
		}
		if a.Taken.After(b.Taken) {
			b.Taken = a.Taken
		}
		if a.Until.After(b.Until) {
			b.Until = a.Until
		}
		leases = leases[1:]
	}
	return leases
}

// Released gives a step's lease up: its call has been answered.
func (c Course) Released(holder string) Course {
	c = c.clone()
	c.Leases = slices.DeleteFunc(c.Leases, func(l Lease) bool { return l.Holder == holder })
	if len(c.Leases) == 0 {
		c.Leases = nil
	}
	return c
}

// Holds reports whether the lease has not been given up or dropped.
func (c Course) Holds(holder string) bool {
	return slices.ContainsFunc(c.Leases, func(l Lease) bool { return l.Holder == holder })
}

// AbsenceSeen records that a deletion saw nothing left, and reports whether
// that proves it: at once, unless a call of an overtaken operation may still
// land; then only a second look, some time after the first, does.
func (c Course) AbsenceSeen(operation string, now time.Time, w Witness) (Course, bool) {
	if !c.Unsure(operation, now, w) {
		return c, true
	}
	c = c.clone()
	c.Wary = true
	if c.AbsentSince.IsZero() {
		c.AbsentSince = now
	}
	return c, !now.Before(c.AbsentSince.Add(SecondLook))
}
