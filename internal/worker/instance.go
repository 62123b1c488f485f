package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/logs"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/workflow"
)

func (w *Worker) stepInstance(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	now := w.Now()
	i, err := w.Records.Instance(ctx, ref.Token.Key, now)
	if err != nil {
		return workflow.Outcome{}, err
	}
	if i.LooksLate(ref.Token.Operation, ref.Attempt) {
		return w.lookLateAtInstance(ctx, ref, i)
	}
	if !i.Current(ref.Token.Operation, ref.Attempt) {
		return settled, nil // overtaken, settled, or driven again by another
	}
	op := i.Operation
	logs.AddRequest(ctx, op.Asker.Request)
	if until := i.Busy(op.ID, now, w.witness()); !until.IsZero() {
		return w.waitInstance(ctx, ref, i, leasePause(op, until, now))
	}
	if op.Kind == lifecycle.Deprovision {
		b, passed, err := w.Records.NextBinding(ctx, i.Key, op.Unbound)
		if err != nil && op.Overdue(now) {
			return w.answered(ctx, ref, i, "", now, provider.Status{}, err) // a record may be damaged, and stay so
		}
		if err != nil {
			return workflow.Outcome{}, err
		}
		i = i.Unbound(passed) // written with whatever this step writes
		if b != nil {
			return w.removeBinding(ctx, ref, i, *b)
		}
	}

	in, err := w.instanceFor(ctx, i, op)
	if err != nil && op.Overdue(now) {
		return w.answered(ctx, ref, i, "", now, provider.Status{}, err) // it must end all the same
	}
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := w.begins()
	defer w.over(holder)
	i, ok, err := w.leaseInstance(ctx, holder, i, now)
	if err != nil || !ok {
		return workflow.Outcome{Wait: raceWait}, err
	}
	status, callErr := w.call(ctx, i.Provider, func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		switch op.Kind {
		case lifecycle.Provision:
			return p.Provision(ctx, in)
		case lifecycle.Update:
			return p.Update(ctx, in)
		default:
			return p.Deprovision(ctx, in)
		}
	})
	return w.answered(ctx, ref, i, holder, now, status, callErr)
}

// answered records what a provider answered to a look that began at a time.
func (w *Worker) answered(
	ctx context.Context, ref workflow.Ref, i lifecycle.Instance, holder string, began time.Time, status provider.Status, callErr error,
) (workflow.Outcome, error) {
	return w.recordInstance(ctx, ref, i, onItsWay(holder, callErr), func(i lifecycle.Instance, now time.Time) (lifecycle.Instance, []ledger.Change, error) {
		next, err := w.judgedInstance(ctx, ref, i, w.judge(i.Operation, status, callErr, began, now), now)
		return next, nil, err
	})
}

// judgedInstance is the record after a provider's answer.
func (w *Worker) judgedInstance(ctx context.Context, ref workflow.Ref, i lifecycle.Instance, v verdict, now time.Time) (lifecycle.Instance, error) {
	if v.fault != nil {
		w.logFault(ctx, ref, i.Operation, v.fault)
	}
	switch {
	case v.failure != nil:
		return i.Fail(now, *v.failure)
	case v.fault != nil:
		i.Course = i.Faulted(now, backoff(i.Operation.Faults))
		return i, nil
	case v.done && i.Operation.Kind == lifecycle.Deprovision:
		course, proven := i.AbsenceSeen(i.Operation.ID, now, w.witness())
		if i.Course = course; !proven {
			i.Course = i.Looked(now, lifecycle.Look{After: lifecycle.SecondLook})
			return i, nil
		}
		return i.Succeed(now)
	case v.done:
		return i.Succeed(now)
	default:
		i.Course = i.Looked(now, v.look)
		return i, nil
	}
}

// leaseInstance records that this step may call the cloud. False means that
// another writer was faster: look again.
func (w *Worker) leaseInstance(ctx context.Context, holder string, i lifecycle.Instance, now time.Time) (_ lifecycle.Instance, ok bool, err error) {
	i.Course = i.Leased(holder, now, w.until(now), w.witness())
	err = w.Records.Commit(ctx, ledger.PutInstance(i))
	if errors.Is(err, ledger.ErrConflict) {
		return i, false, nil
	}
	if err != nil {
		return i, false, err
	}
	i.Version++
	return i, true, nil
}

// waitInstance records only what must be: the due time, if it would pass.
func (w *Worker) waitInstance(ctx context.Context, ref workflow.Ref, i lifecycle.Instance, wait time.Duration) (workflow.Outcome, error) {
	if !i.Due.Before(w.Now().Add(wait + lifecycle.Grace)) {
		return workflow.Outcome{Wait: wait}, nil
	}
	return w.recordInstance(ctx, ref, i, "", func(i lifecycle.Instance, now time.Time) (lifecycle.Instance, []ledger.Change, error) {
		i.Course = i.Looked(now, lifecycle.Look{After: wait})
		return i, nil, nil
	})
}

// recordInstance writes what apply makes of the record and gives up the lease.
// If the operation is no longer the current one, it only gives up the lease:
// that is what tells whoever overtook it that no call is on its way.
func (w *Worker) recordInstance(
	ctx context.Context, ref workflow.Ref, i lifecycle.Instance, holder string,
	apply func(i lifecycle.Instance, now time.Time) (lifecycle.Instance, []ledger.Change, error),
) (workflow.Outcome, error) {
	outcome := settled
	err := repeat(ctx, func(ctx context.Context, first bool) error {
		now := w.Now()
		var err error
		if !first {
			if i, err = w.Records.Instance(ctx, ref.Token.Key, now); err != nil {
				return err
			}
		}
		if !i.Current(ref.Token.Operation, ref.Attempt) {
			outcome = settled
			if !i.Holds(holder) {
				return nil
			}
			i.Course = i.Released(holder)
			return w.Records.Commit(ctx, ledger.PutInstance(i))
		}
		next, more, err := apply(i, now)
		if err != nil {
			return fmt.Errorf("recording a step of %q: %w", ref.Name(), err)
		}
		next.Course = next.Released(holder)
		outcome = outcomeOf(next.Course, now)
		if err := w.Records.Commit(ctx, append(more, ledger.PutInstance(next))...); err != nil {
			return err
		}
		w.recorded(ctx, next.Attributes.ServiceID, next.Attributes.PlanID, next.Operation)
		return nil
	})
	return outcome, err
}

func outcomeOf(c lifecycle.Course, now time.Time) workflow.Outcome {
	if !c.InProgress() {
		return settled
	}
	return workflow.Outcome{Wait: max(c.Operation.Next.Sub(now), 0)}
}

// removeBinding removes one binding of an instance that is being deleted. No
// new one can begin: beginning one checks that the instance is ready. One that
// had begun has stopped, or waits for its lease to be given up or run out. An
// unbind that runs already is left to end: two deletions of one thing, each of
// which begins anew what the other has begun, would never end.
func (w *Worker) removeBinding(ctx context.Context, ref workflow.Ref, i lifecycle.Instance, b lifecycle.Binding) (workflow.Outcome, error) {
	now, op := w.Now(), i.Operation
	if until := b.Busy(op.ID, now, w.witness()); !until.IsZero() {
		return w.waitInstance(ctx, ref, i, leasePause(op, until, now))
	}
	if unbinds := b.InProgress() && b.Operation.Kind == lifecycle.Unbind && !b.Operation.Overdue(now); unbinds && op.Overdue(now) {
		return w.answered(ctx, ref, i, "", now, provider.Status{}, nil) // it has waited long enough
	} else if unbinds {
		return w.waitInstance(ctx, ref, i, leasePause(op, b.Operation.Deadline, now))
	}
	in, err := w.bindingFor(ctx, i, b, op)
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := w.begins()
	defer w.over(holder)
	i, ok, err := w.leaseInstance(ctx, holder, i, now)
	if err != nil || !ok {
		return workflow.Outcome{Wait: raceWait}, err
	}
	status, callErr := w.call(ctx, b.Provider, func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		return p.Unbind(ctx, in)
	})
	began := now
	return w.recordInstance(ctx, ref, i, onItsWay(holder, callErr), func(i lifecycle.Instance, now time.Time) (lifecycle.Instance, []ledger.Change, error) {
		v := w.judge(i.Operation, status, callErr, began, now)
		if !v.done {
			next, err := w.judgedInstance(ctx, ref, i, v, now)
			return next, nil, err
		}
		next, changes, err := w.unboundFrom(ctx, i, b.Key, now)
		if err != nil && i.Operation.Overdue(began) { // it must end all the same
			next, err = w.judgedInstance(ctx, ref, i, w.judge(i.Operation, provider.Status{}, err, began, now), now)
		}
		return next, changes, err
	})
}

// unboundFrom is what is written once a binding of an instance that is being
// deleted was seen to be absent.
func (w *Worker) unboundFrom(ctx context.Context, i lifecycle.Instance, key lifecycle.Key, now time.Time) (lifecycle.Instance, []ledger.Change, error) {
	b, err := w.Records.Binding(ctx, key, now)
	if err != nil {
		return i, nil, err
	}
	course, proven := b.AbsenceSeen(i.Operation.ID, now, w.witness())
	if b.Course = course; !proven {
		i.Course = i.Looked(now, lifecycle.Look{After: lifecycle.SecondLook})
		return i, []ledger.Change{ledger.PutBinding(b)}, nil
	}
	changes, err := w.removed(ctx, b, i.DeleteReceived, now)
	if err != nil {
		return i, nil, err
	}
	i.Course = i.Looked(now, lifecycle.Look{})
	return i.Unbound(key.Binding), changes, nil
}

// removed is what is written when a binding ends with its instance, whose deletion
// was asked for then.
func (w *Worker) removed(ctx context.Context, b lifecycle.Binding, asked, now time.Time) ([]ledger.Change, error) {
	if b.State == lifecycle.Absent || b.State == lifecycle.Deleted {
		return nil, nil // an unbind that was under way has ended it
	}
	gone, err := b.Remove(now, asked)
	if err != nil {
		return nil, err
	}
	pointer, err := w.pointerOf(ctx, b)
	return []ledger.Change{ledger.PutBinding(gone), ledger.DeletePointer(pointer)}, err
}

// pointerOf reads the pointer to a binding; version 0 if it points elsewhere.
func (w *Worker) pointerOf(ctx context.Context, b lifecycle.Binding) (lifecycle.Pointer, error) {
	p, err := w.Records.Pointer(ctx, b.Key.Platform, b.Key.Binding)
	if err != nil || p.Key != b.Key {
		return lifecycle.Pointer{}, err
	}
	return p, nil
}
