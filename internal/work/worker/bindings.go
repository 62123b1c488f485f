package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// firstBindings removes a binding of an instance that is being deleted. Before the
// first one it asks whether the provider refuses the deletion: nothing is removed of
// an instance that stays.
func (w *Worker) firstBindings(ctx context.Context, ref workflow.Ref, s subject, b lifecycle.Record) (workflow.Outcome, error) {
	if op := s.record.Operation; op.Unbound == "" {
		if refusal := w.refusal(ctx, s, op); refusal != nil {
			return w.answered(ctx, ref, s, answer{err: refusal})
		}
	}
	s.at = w.Now() // the provider may have taken its time
	return w.removeBinding(ctx, ref, s, b)
}

// refusal asks the provider whether it refuses the deletion of the instance. It needs
// no lease, since the question changes nothing.
func (w *Worker) refusal(ctx context.Context, s subject, op *lifecycle.Operation) error {
	in, err := w.instanceFor(ctx, s.record, op)
	if err != nil {
		return nil // the deletion itself will say what is wrong
	}
	_, err = w.within(ctx, s.record.Provider, func(ctx context.Context, p provider.Wired) (provider.Status, error) {
		if can, ok := p.Provider.(provider.Refuser); ok {
			return provider.Status{}, can.Refuses(ctx, in)
		}
		return provider.Status{}, nil
	})
	return err
}

// removeBinding removes one binding of an instance that is being deleted. None can
// be added meanwhile: a bind checks that the instance is ready. A bind or an unbind that
// runs has stopped, or this waits until its lease is given up or has run out.
func (w *Worker) removeBinding(ctx context.Context, ref workflow.Ref, s subject, b lifecycle.Record) (workflow.Outcome, error) {
	op := s.record.Operation
	if until := b.Busy(op.ID, s.at, w.witness()); !until.IsZero() {
		return w.wait(ctx, ref, s, leasePause(op, until, s.at))
	}
	if b.InProgress() && b.Operation.Kind == lifecycle.Unbind && b.Operation.TakenBy != op.ID {
		return w.takeOver(ctx, b, op.ID)
	}
	return w.ask(ctx, ref, s, subject{record: b, instance: s.record},
		func(ctx context.Context, ref workflow.Ref, s subject, a answer) (workflow.Outcome, error) {
			return w.bindingAnswered(ctx, ref, s, b.Key, a)
		})
}

// takeOver has the deprovision remove a binding in place of an unbind that runs. The
// deprovision can do what the unbind cannot: of an instance that goes, nothing need be
// handed over.
//
// Hazard: two deletions of the same thing, each beginning again what the other has begun,
// would never end. So the unbind waits from this commit on. A step of it that read the
// record before loses its own commit, which takes the lease.
func (w *Worker) takeOver(ctx context.Context, b lifecycle.Record, deprovision string) (workflow.Outcome, error) {
	err := w.Records.Commit(ctx, ledger.Put(b.TakenOver(deprovision)))
	if err != nil && !errors.Is(err, ledger.ErrConflict) {
		return workflow.Outcome{}, err
	}
	return workflow.Outcome{Wait: raceWait}, nil
}

// bindingAnswered records what a provider answered to the removal of a binding, in the
// records of the binding and of its instance.
func (w *Worker) bindingAnswered(ctx context.Context, ref workflow.Ref, s subject, key lifecycle.Key, a answer) (workflow.Outcome, error) {
	began := s.at
	return w.record(ctx, ref, s, a.lease,
		func(ctx context.Context, s subject, now time.Time) (next lifecycle.Record, more []ledger.Change, err error) {
			i := s.record
			if v := a.judge(i.Operation, began, now); v.done {
				next, more, err = w.unboundFrom(ctx, i, key, now)
			} else {
				next, more, err = w.unbinding(ctx, ref, i, key, v, now)
			}
			if err != nil && i.Operation.Overdue(began) { // it must end all the same
				return w.judged(ctx, ref, i, answer{err: err}.judge(i.Operation, began, now), now)
			}
			return next, more, err
		})
}

// unbinding is what is written while the provider still has a binding of an instance
// that is being deleted: its state goes into the binding's record, all else into the
// instance's.
func (w *Worker) unbinding(ctx context.Context, ref workflow.Ref, i lifecycle.Record, key lifecycle.Key, v verdict,
	now time.Time) (lifecycle.Record, []ledger.Change, error) {
	var more []ledger.Change
	if v.state != nil {
		b, err := w.Records.Record(ctx, key, now)
		if err != nil {
			return i, nil, err
		}
		if b.Exists() { // else an unbind that was under way has ended it
			if b, err = w.remembers(ctx, b, verdict{state: v.state}); err != nil {
				return i, nil, err
			}
			more = []ledger.Change{ledger.Put(b)}
		}
	}
	v.state, v.target = nil, nil
	next, _, err := w.judged(ctx, ref, i, v, now)
	return next, more, err
}

// unboundFrom is what is written once the provider no longer has a binding of an
// instance that is being deleted.
func (w *Worker) unboundFrom(ctx context.Context, i lifecycle.Record, key lifecycle.Key,
	now time.Time) (lifecycle.Record, []ledger.Change, error) {
	b, err := w.Records.Record(ctx, key, now)
	if err != nil {
		return i, nil, err
	}
	seen, proven := b.AbsenceSeen(i.Operation.ID, now, w.witness())
	if !proven {
		return i.Looked(now, lifecycle.Look{After: lifecycle.SecondLook}), []ledger.Change{ledger.Put(seen)}, nil
	}
	changes, err := w.removed(ctx, seen, i.DeleteReceived, now)
	if err != nil {
		return i, nil, err
	}
	return i.Looked(now, lifecycle.Look{}).Unbound(key.Binding), changes, nil
}

// removed is what is written when a binding ends with its instance; asked is when the
// instance's deletion was requested.
func (w *Worker) removed(ctx context.Context, b lifecycle.Record, asked, now time.Time) ([]ledger.Change, error) {
	if !b.Exists() {
		return nil, nil // an unbind that was under way has ended it
	}
	gone, err := b.Remove(now, asked)
	if err != nil {
		return nil, err
	}
	pointer, err := w.pointerOf(ctx, b.Key)
	return []ledger.Change{ledger.Put(gone), ledger.DeletePointer(pointer)}, err
}

// pointerOf reads the pointer to a binding. It has version 0 if it points to another
// instance's binding, or if the key is an instance's, which has none.
func (w *Worker) pointerOf(ctx context.Context, key lifecycle.Key) (lifecycle.Pointer, error) {
	if !key.IsBinding() {
		return lifecycle.Pointer{}, nil
	}
	p, err := w.Records.Pointer(ctx, key.Platform, key.Binding)
	if err != nil || p.Key != key {
		return lifecycle.Pointer{}, err
	}
	return p, nil
}
