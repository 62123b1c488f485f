package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/limits"
	"github.com/longshore/longshore/internal/logs"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/vault"
	"github.com/longshore/longshore/internal/workflow"
)

// bound is a binding with the instance it belongs to, as they were read.
type bound struct {
	binding  lifecycle.Binding
	instance lifecycle.Instance
}

func (w *Worker) readBound(ctx context.Context, key lifecycle.Key, now time.Time) (r bound, err error) {
	if r.binding, err = w.Records.Binding(ctx, key, now); err != nil {
		return r, err
	}
	r.instance, err = w.Records.Instance(ctx, key.InstanceKey(), now)
	return r, err
}

// A standing says what the instance allows a bind to do.
type standing int

const (
	free    standing = iota // the instance is the same and ready
	changes                 // wait: the instance is being updated
	broken                  // fail: the instance could not be deleted
	over                    // stop: its deletion removes the binding
)

// standingOf tells how an operation on a binding stands with its instance. An
// unbind never depends on it (UNB-10).
func standingOf(r bound) standing {
	if r.binding.Operation.Kind == lifecycle.Unbind {
		return free
	}
	if r.instance.Incarnation != r.binding.InstanceIncarnation {
		return over
	}
	switch r.instance.State {
	case lifecycle.Ready:
		return free
	case lifecycle.Updating:
		return changes
	case lifecycle.DeleteFailed:
		return broken
	default:
		return over
	}
}

func (w *Worker) stepBinding(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	now := w.Now()
	r, err := w.readBound(ctx, ref.Token.Key, now)
	if err != nil {
		return workflow.Outcome{}, err
	}
	b := r.binding
	if b.LooksLate(ref.Token.Operation, ref.Attempt) {
		return w.lookLateAtBinding(ctx, ref, b)
	}
	if !b.Current(ref.Token.Operation, ref.Attempt) {
		return settled, nil
	}
	op := b.Operation
	logs.AddRequest(ctx, op.Asker.Request)
	wait := time.Duration(0)
	if until := b.Busy(op.ID, now, w.witness()); !until.IsZero() {
		wait = leasePause(op, until, now)
	}
	switch standingOf(r) {
	case over:
		return settled, nil
	case broken:
		return w.recordBinding(ctx, ref, r, "", func(_ context.Context, r bound, now time.Time) (lifecycle.Binding, []ledger.Change, error) {
			b, err := r.binding.Fail(now, lifecycle.Failure{Message: "The service instance is being deleted."})
			return b, nil, err
		})
	case changes:
		if op.Overdue(now) { // the update may take a week
			return w.answeredBinding(ctx, ref, r, "", now, provider.Status{}, nil)
		}
		wait = max(wait, instanceWait)
	}
	if wait > 0 && !b.Due.Before(now.Add(wait+lifecycle.Grace)) {
		return workflow.Outcome{Wait: wait}, nil // nothing that must be recorded
	}
	if wait > 0 {
		return w.recordBinding(ctx, ref, r, "", func(_ context.Context, r bound, now time.Time) (lifecycle.Binding, []ledger.Change, error) {
			r.binding.Course = r.binding.Looked(now, lifecycle.Look{After: wait})
			return r.binding, nil, nil
		})
	}

	in, err := w.bindingFor(ctx, r.instance, b, op)
	if err != nil && op.Overdue(now) {
		return w.answeredBinding(ctx, ref, r, "", now, provider.Status{}, err)
	}
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := w.begins()
	defer w.over(holder)
	b.Course = b.Leased(holder, now, w.until(now), w.witness())
	err = w.Records.Commit(ctx, ledger.PutBinding(b), check(r))
	if errors.Is(err, ledger.ErrConflict) {
		return workflow.Outcome{Wait: raceWait}, nil
	}
	if err != nil {
		return workflow.Outcome{}, err
	}
	b.Version++
	r.binding = b
	status, callErr := w.call(ctx, b.Provider, func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		if op.Kind == lifecycle.Bind {
			return p.Bind(ctx, in)
		}
		return p.Unbind(ctx, in)
	})
	return w.answeredBinding(ctx, ref, r, holder, now, status, callErr)
}

// answeredBinding records what a provider answered, as answered does.
func (w *Worker) answeredBinding(
	ctx context.Context, ref workflow.Ref, r bound, holder string, began time.Time, status provider.Status, callErr error,
) (workflow.Outcome, error) {
	return w.recordBinding(ctx, ref, r, onItsWay(holder, callErr), func(ctx context.Context, r bound, now time.Time) (lifecycle.Binding, []ledger.Change, error) {
		next, more, err := w.judgedBinding(ctx, ref, r.binding, w.judge(r.binding.Operation, status, callErr, began, now), now)
		if err != nil && r.binding.Operation.Overdue(began) { // it must end all the same
			return w.judgedBinding(ctx, ref, r.binding, w.judge(r.binding.Operation, provider.Status{}, err, began, now), now)
		}
		return next, more, err
	})
}

// check requires in the same commit that the instance is as it was read: a
// bind cannot outlive its instance.
func check(r bound) ledger.Change {
	if r.binding.Operation.Kind == lifecycle.Unbind {
		return ledger.Change{}
	}
	return ledger.CheckInstance(r.instance)
}

// judgedBinding is the record after a provider's answer.
func (w *Worker) judgedBinding(ctx context.Context, ref workflow.Ref, b lifecycle.Binding, v verdict, now time.Time) (lifecycle.Binding, []ledger.Change, error) {
	if v.fault != nil {
		w.logFault(ctx, ref, b.Operation, v.fault)
	}
	switch {
	case v.failure != nil:
		b, err := b.Fail(now, *v.failure)
		return b, nil, err
	case v.fault != nil:
		b.Course = b.Faulted(now, backoff(b.Operation.Faults))
		return b, nil, nil
	case v.done && b.Operation.Kind == lifecycle.Unbind:
		course, proven := b.AbsenceSeen(b.Operation.ID, now, w.witness())
		if b.Course = course; !proven {
			b.Course = b.Looked(now, lifecycle.Look{After: lifecycle.SecondLook})
			return b, nil, nil
		}
		pointer, err := w.pointerOf(ctx, b)
		if err != nil {
			return b, nil, err
		}
		b, err := b.Succeed(now, nil)
		return b, []ledger.Change{ledger.DeletePointer(pointer)}, err
	case v.done:
		plain, ok := encodeGrant(v.grant)
		if !ok { // the same again, however often it is asked
			w.Log.ErrorContext(ctx, "a provider gave credentials that cannot be kept", "execution", ref.Name(), "provider", b.Provider, "bytes", len(plain))
			b, err := b.Fail(now, lifecycle.Failure{Message: "The service gave credentials that this broker cannot keep. Ask the operator of the service."})
			return b, nil, err
		}
		sealed, err := w.Vault.Seal(ctx, vault.Label{Key: b.Key, Member: vault.Grant}, plain)
		if err != nil {
			return b, nil, fmt.Errorf("sealing a grant: %w", err)
		}
		b, err := b.Succeed(now, sealed)
		return b, nil, err
	default:
		b.Course = b.Looked(now, v.look)
		return b, nil, nil
	}
}

// encodeGrant is what is sealed of a grant, and whether a record can hold it and
// JSON can be read of it again. What is wrong with it may quote a credential.
func encodeGrant(g *provider.Grant) (plain []byte, ok bool) {
	if g == nil {
		g = &provider.Grant{}
	}
	plain, err := json.Marshal(g)
	return plain, err == nil && len(plain) <= limits.Grant && json.Valid(plain)
}

// recordBinding writes as recordInstance does, and checks the instance in the
// same commit. When the instance no longer allows it, only the lease is given
// up: the instance's deletion waits for that.
func (w *Worker) recordBinding(
	ctx context.Context, ref workflow.Ref, r bound, holder string,
	apply func(ctx context.Context, r bound, now time.Time) (lifecycle.Binding, []ledger.Change, error),
) (workflow.Outcome, error) {
	outcome := settled
	err := repeat(ctx, func(ctx context.Context, first bool) error {
		now := w.Now()
		var err error
		if !first {
			if r, err = w.readBound(ctx, ref.Token.Key, now); err != nil {
				return err
			}
		}
		if !r.binding.Current(ref.Token.Operation, ref.Attempt) || standingOf(r) == over {
			outcome = settled
			if !r.binding.Holds(holder) {
				return nil
			}
			r.binding.Course = r.binding.Released(holder)
			return w.Records.Commit(ctx, ledger.PutBinding(r.binding))
		}
		next, more, err := apply(ctx, r, now)
		if err != nil {
			return fmt.Errorf("recording a step of %q: %w", ref.Name(), err)
		}
		next.Course = next.Released(holder)
		outcome = outcomeOf(next.Course, now)
		if err := w.Records.Commit(ctx, append(more, ledger.PutBinding(next), check(r))...); err != nil {
			return err
		}
		w.recorded(ctx, r.binding.ServiceID, r.binding.PlanID, next.Operation)
		return nil
	})
	return outcome, err
}
