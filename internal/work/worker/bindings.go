package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// removeBinding removes one binding of an instance that is being deleted. No binding can be added
// meanwhile, since a bind checks that the instance is ready. It first waits until the lease of a
// running bind or unbind is given up or has run out.
//
// It takes over a running unbind, and can do more, since it need not hand the binding's objects over
// to the instance. Hazard: two deletions of one thing that each undo the other's start would never
// end. So the unbind waits from this commit on. If a step of the unbind read the record earlier, its
// commit fails, and it does not get the lease.
func (s *step) removeBinding(ctx context.Context, b lifecycle.Record) (workflow.Outcome, error) {
	op := s.record.Operation
	if until := b.Busy(op.ID, s.at, s.witness()); !until.IsZero() {
		return s.wait(ctx, leasePause(op, until, s.at))
	}
	if b.InProgress() && b.Operation.Kind == lifecycle.Unbind && b.Operation.TakenBy != op.ID {
		err := s.Records.Commit(ctx, ledger.Put(b.TakenOver(op.ID)))
		if errors.Is(err, ledger.ErrConflict) {
			err = nil
		}
		return workflow.Outcome{Wait: raceWait}, err
	}
	return s.perform(ctx, removal{s, b})
}

// refusal asks the provider whether it refuses the deletion of the instance. It needs no
// lease, since it changes nothing.
func (s *step) refusal(ctx context.Context, op *lifecycle.Operation) error {
	in, err := s.instanceFor(ctx, s.record, op)
	if err != nil {
		return nil // the deletion itself will meet and report the error
	}
	_, err = s.within(ctx, s.record.Provider, func(ctx context.Context, p wired.Provider) (provider.Status, error) {
		if p.Refuser == nil {
			return provider.Status{}, nil
		}
		if _, err := p.Prove(ctx, in); err != nil {
			return provider.Status{}, err
		}
		return provider.Status{}, p.Refuser.Refuses(ctx, in)
	})
	return err
}

// A removal is the task of removing a binding for the deletion of its instance.
type removal struct {
	*step
	binding lifecycle.Record
}

func (t removal) question(ctx context.Context) (question, error) {
	return t.step.question(ctx, reading{at: t.at, record: t.binding, instance: t.record}, t.record.Operation)
}

// answered implements task. It changes the records of the binding and of its instance. While the
// provider still has the binding, its state goes into the binding's record, and everything else into
// the record of the instance.
func (t removal) answered(ctx context.Context, a answer, now time.Time) (lifecycle.Record, []ledger.Change, error) {
	v := a.judge(t.record.Operation, now)
	if v.Done {
		return t.gone(ctx, now)
	}
	var more []ledger.Change
	if v.State != nil {
		b, err := t.Records.Record(ctx, t.binding.Key, now)
		if err != nil {
			return t.record, nil, err
		}
		if b.Exists() { // otherwise an unbind that was under way has ended it
			if b, err = t.remembers(ctx, b, verdict{Status: provider.Status{State: v.State}}); err != nil {
				return t.record, nil, err
			}
			more = []ledger.Change{ledger.Put(b)}
		}
	}
	v.State, v.Target = nil, nil
	next, _, err := t.judged(ctx, t.record, v, now)
	return next, more, err
}

// gone returns the changes once the provider no longer has the binding.
func (t removal) gone(ctx context.Context, now time.Time) (lifecycle.Record, []ledger.Change, error) {
	i := t.record
	b, err := t.Records.Record(ctx, t.binding.Key, now)
	if err != nil {
		return i, nil, err
	}
	seen, proven := b.AbsenceSeen(i.Operation.ID, now, t.witness())
	if !proven {
		return i.Looked(now, lifecycle.Look{After: lifecycle.SecondLook}), []ledger.Change{ledger.Put(seen)}, nil
	}
	var changes []ledger.Change
	if b.Exists() { // otherwise an unbind that was under way has ended it
		dead, err := seen.Remove(now, i.DeleteReceived)
		if err != nil {
			return i, nil, err
		}
		pointer, err := t.pointerOf(ctx, b.Key)
		if err != nil {
			return i, nil, err
		}
		changes = []ledger.Change{ledger.Put(dead), ledger.Delete(pointer)}
	}
	return i.Looked(now, lifecycle.Look{}).Unbound(b.Key.Binding), changes, nil
}

// pointerOf reads the pointer to a binding. The pointer has version 0 if it names a binding of
// another instance, or if the key is that of an instance, which has no pointer.
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
