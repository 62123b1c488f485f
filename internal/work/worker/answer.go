package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// An answer is a provider's answer to a call. A step that made no call has the zero status: nothing is done yet.
type answer struct {
	status provider.Status
	err    error
	// began is when the step read the records, and instance the version that the instance's record then had.
	began    time.Time
	instance int64
}

// A verdict is the meaning of an answer for the operation: the status, unless the operation has failed or met a fault.
type verdict struct {
	provider.Status
	failure *lifecycle.Failure
	fault   error // a passing error
}

// An overdue operation whose calls end in faults fails only after lastFaults faults in a row, and
// lastLooks after its deadline. As long as no call is answered, the operation may have succeeded.
const (
	lastFaults = 3
	lastLooks  = 15 * time.Minute
)

// judge returns the verdict on an answer. It fails an operation as overdue only if the step
// began after the deadline: an outage may have kept all steps away until then, and the
// operation may be done by now.
func (a answer) judge(op *lifecycle.Operation, now time.Time) verdict {
	status, err := a.status, a.err
	var failure *provider.Failure
	overdue := lifecycle.Overdue()
	switch last := op.Overdue(a.began); {
	case errors.As(err, &failure):
		return verdict{failure: &lifecycle.Failure{
			Message: failure.Message, InstanceUsable: failure.InstanceUsable, UpdateRepeatable: failure.UpdateRepeatable,
			Untouched: failure.Untouched,
		}, Status: provider.Status{State: failure.State}}
	case last && err != nil && op.Faults >= lastFaults && !now.Before(op.Deadline.Add(lastLooks)):
		return verdict{fault: err, failure: &overdue}
	case err != nil:
		return verdict{fault: err}
	case status.Done:
		return verdict{Status: status}
	case last:
		return verdict{Status: status, failure: &overdue}
	case status.After <= 0:
		status.After = pause(now.Sub(op.Started))
	}
	status.After = min(status.After, maxPause)
	return verdict{Status: status}
}

// answered implements task. If the instance has changed since the call, the answer does not end
// a bind: the grant was made for the instance before the change, so neither the grant nor its
// state is recorded, and the next step asks again.
func (t own) answered(ctx context.Context, a answer, now time.Time) (lifecycle.Record, []ledger.Change, error) {
	v := a.judge(t.record.Operation, now)
	if ends := v.Done || v.failure != nil; ends && t.record.Operation.Kind == lifecycle.Bind && t.instance.Version != a.instance {
		again := provider.Status{After: instanceWait}
		if !v.Done {
			again.State = v.State
		}
		v = verdict{Status: again}
	}
	if t.gate() == failSource { // the state is recorded with the failure: the deletion needs it to find its things
		failure := lifecycle.SourceLost()
		v.failure, v.fault = &failure, nil
	}
	return t.judged(ctx, t.record, v, now)
}

// judged returns the record after a verdict, and the other changes of the commit.
func (s *step) judged(
	ctx context.Context, r lifecycle.Record, v verdict, now time.Time,
) (_ lifecycle.Record, _ []ledger.Change, err error) {
	if v.fault != nil && !s.logTrouble(ctx, r.Provider, v.fault) {
		s.Log.WarnContext(ctx, "step met a fault and will be repeated", "execution", s.ref.Name(),
			"kind", string(r.Operation.Kind), "faults", r.Operation.Faults+1, "error", v.fault)
	}
	r, err = s.remembers(ctx, r, v)
	switch {
	case errors.Is(err, errStateSize):
		r, err = s.unrecordable(ctx, r, now, "a state", "error", err)
	case err != nil:
	case v.failure != nil:
		r, err = r.Fail(now, *v.failure)
	case v.fault != nil:
		r = r.Faulted(now, faultOf(v.fault, r.Operation.Faults))
	case v.Done && r.Operation.Kind.Deletes():
		seen, proven := r.AbsenceSeen(r.Operation.ID, now, s.witness())
		if !proven {
			return seen.Looked(now, lifecycle.Look{After: lifecycle.SecondLook}), nil, nil
		}
		pointer, err := s.pointerOf(ctx, r.Key)
		if err != nil {
			return r, nil, err
		}
		r, err = seen.Succeed(now, nil)
		return r, []ledger.Change{ledger.Delete(pointer)}, err
	case v.Done && r.Operation.Kind == lifecycle.Bind:
		r, err = s.bound(ctx, r, v.Grant, now)
	case v.Done:
		r, err = r.Succeed(now, nil)
	default:
		r = r.Looked(now, lifecycle.Look{Percent: v.Percent, Description: v.Description, After: v.After})
	}
	return r, nil, err
}

// faultOf returns a fault in the form that the record keeps. A trouble's message is for the
// operator; the user gets a description that names no server.
func faultOf(fault error, faults int) lifecycle.Fault {
	f := lifecycle.Fault{After: backoff(fault, faults)}
	if trouble, ok := errors.AsType[*target.Trouble](fault); ok {
		f.Trouble = fmt.Sprintf("%s: target %q: %s", trouble.Kind, trouble.Target, trouble.Message)
		f.Description = "The server of this service cannot be used at the moment. The operation goes on by itself when it can."
	}
	return f
}

// unrecordable fails an operation whose provider gave something that a record cannot hold. Asking
// again would give the same.
func (s *step) unrecordable(
	ctx context.Context, r lifecycle.Record, now time.Time, what string, why ...any,
) (lifecycle.Record, error) {
	s.Log.ErrorContext(ctx, "a provider gave "+what+" that no record can hold",
		append([]any{"execution", s.ref.Name(), "provider", r.Provider}, why...)...)
	return r.Fail(now, lifecycle.Failure{
		Message: "The service gave " + what + " that this broker cannot keep. Ask the operator of the service.",
	})
}

// backoff returns the pause after the n-th fault in a row, from 1 s to 1 min. A call that timed out may still
// take effect: the pause is long enough for the next step to find what the call made.
func backoff(fault error, faults int) time.Duration {
	pause := min(time.Second<<min(faults, 6), time.Minute)
	if timedOut(fault) {
		return max(pause, lifecycle.SecondLook)
	}
	return pause
}

// bound returns the record of a binding after its provider has given the grant.
func (s *step) bound(ctx context.Context, r lifecycle.Record, g *provider.Grant, now time.Time) (lifecycle.Record, error) {
	plain, ok := encodeGrant(g)
	if !ok {
		return s.unrecordable(ctx, r, now, "credentials", "bytes", len(plain))
	}
	sealed, err := s.Vault.Seal(ctx, vault.Label{Key: r.Key, Member: vault.Grant}, plain)
	if err != nil {
		return r, fmt.Errorf("sealing a grant: %w", err)
	}
	if g != nil {
		r.ExpiresAt, r.RenewBefore = g.ExpiresAt, g.RenewBefore
	}
	return r.Succeed(now, sealed)
}

// encodeGrant encodes a grant, and reports whether a record can hold it and it can be decoded
// again. It returns no error, since an error could quote a credential.
func encodeGrant(g *provider.Grant) (plain []byte, ok bool) {
	if g == nil {
		g = &provider.Grant{}
	}
	plain, err := json.Marshal(g)
	return plain, err == nil && len(plain) <= limits.Grant && json.Valid(plain)
}
