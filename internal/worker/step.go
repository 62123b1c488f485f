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

// A subject is the record that a step is for, and the instance that it belongs
// to, as they were read. The record of an instance belongs to itself.
type subject struct{ record, instance lifecycle.Record }

func (w *Worker) read(ctx context.Context, key lifecycle.Key, now time.Time) (s subject, err error) {
	if s.record, err = w.Records.Record(ctx, key, now); err != nil || !key.IsBinding() {
		return subject{s.record, s.record}, err
	}
	s.instance, err = w.Records.Record(ctx, key.InstanceKey(), now)
	return s, err
}

// A standing says what the instance allows a bind to do.
type standing int

const (
	free    standing = iota // the instance is the same and ready
	changes                 // wait: the instance is being updated
	broken                  // fail: the instance could not be deleted
	over                    // stop: its deletion removes the binding
)

// standing tells how an operation stands with the instance: only a bind depends
// on it, an unbind never (UNB-10).
func (s subject) standing() standing {
	switch {
	case s.record.Operation.Kind != lifecycle.Bind:
		return free
	case s.instance.Incarnation != s.record.InstanceIncarnation:
		return over
	}
	switch s.instance.State {
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

// check requires in the same commit that the instance is as it was read: a bind
// cannot outlive its instance.
func (s subject) check() ledger.Change {
	if s.record.Operation.Kind != lifecycle.Bind {
		return ledger.Change{}
	}
	return ledger.Check(s.instance)
}

func (w *Worker) step(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	now := w.Now()
	s, err := w.read(ctx, ref.Token.Key, now)
	if err != nil {
		return workflow.Outcome{}, err
	}
	r := s.record
	if r.LooksLate(ref.Token.Operation, ref.Attempt) {
		return w.lookLate(ctx, ref, r)
	}
	if !r.Current(ref.Token.Operation, ref.Attempt) {
		return settled, nil // overtaken, settled, or driven again by another
	}
	op := r.Operation
	logs.AddRequest(ctx, op.Asker.Request)
	wait := time.Duration(0)
	if until := r.Busy(op.ID, now, w.witness()); !until.IsZero() {
		wait = leasePause(op, until, now)
	}
	switch s.standing() {
	case over:
		return settled, nil
	case broken:
		return w.record(ctx, ref, s, "", func(_ context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
			r, err := s.record.Fail(now, lifecycle.Failure{Message: "The service instance is being deleted."})
			return r, nil, err
		})
	case changes:
		if op.Overdue(now) { // the update may take a week
			return w.answered(ctx, ref, s, "", now, provider.Status{}, nil)
		}
		wait = max(wait, instanceWait)
	}
	if wait > 0 {
		return w.wait(ctx, ref, s, wait)
	}
	if op.Kind == lifecycle.Deprovision {
		b, passed, err := w.Records.NextBinding(ctx, r.Key, op.Unbound)
		if err != nil && op.Overdue(now) {
			return w.answered(ctx, ref, s, "", now, provider.Status{}, err) // a record may be damaged, and stay so
		}
		if err != nil {
			return workflow.Outcome{}, err
		}
		s.record = r.Unbound(passed) // written with whatever this step writes
		if b != nil {
			return w.removeBinding(ctx, ref, s, *b)
		}
	}
	return w.ask(ctx, ref, s, now)
}

// ask calls the provider, and records what it answers.
func (w *Worker) ask(ctx context.Context, ref workflow.Ref, s subject, now time.Time) (workflow.Outcome, error) {
	ask, err := w.question(ctx, s, s.record.Operation)
	if err != nil && s.record.Operation.Overdue(now) {
		return w.answered(ctx, ref, s, "", now, provider.Status{}, err) // it must end all the same
	}
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := w.begins()
	defer w.over(holder)
	s, ok, err := w.lease(ctx, holder, s, now)
	if err != nil || !ok {
		return workflow.Outcome{Wait: raceWait}, err
	}
	status, callErr := w.call(ctx, s.record.Provider, ask)
	return w.answered(ctx, ref, s, holder, now, status, callErr)
}

// A question is one call of a provider.
type question func(context.Context, provider.Provider) (provider.Status, error)

// question is what the provider is to do for an operation on the record.
func (w *Worker) question(ctx context.Context, s subject, op *lifecycle.Operation) (question, error) {
	if s.record.IsBinding() {
		in, err := w.bindingFor(ctx, s.instance, s.record, op)
		return func(ctx context.Context, p provider.Provider) (provider.Status, error) {
			if op.Kind == lifecycle.Bind {
				return p.Bind(ctx, in)
			}
			return p.Unbind(ctx, in)
		}, err
	}
	in, err := w.instanceFor(ctx, s.record, op)
	return func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		switch op.Kind {
		case lifecycle.Provision:
			return p.Provision(ctx, in)
		case lifecycle.Update:
			return p.Update(ctx, in)
		default:
			return p.Deprovision(ctx, in)
		}
	}, err
}

// lease records that this step may call the cloud. False means that another
// writer was faster: look again.
func (w *Worker) lease(ctx context.Context, holder string, s subject, now time.Time) (_ subject, ok bool, err error) {
	s.record = s.record.Leased(holder, now, w.until(now), w.witness())
	err = w.Records.Commit(ctx, ledger.Put(s.record), s.check())
	if errors.Is(err, ledger.ErrConflict) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	s.record.Version++
	return s, true, nil
}

// answered records what a provider answered to a look that began at a time.
func (w *Worker) answered(
	ctx context.Context, ref workflow.Ref, s subject, holder string, began time.Time, status provider.Status, callErr error,
) (workflow.Outcome, error) {
	return w.record(ctx, ref, s, onItsWay(holder, callErr), func(ctx context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		next, more, err := w.judged(ctx, ref, s.record, w.judge(s.record.Operation, status, callErr, began, now), now)
		if err != nil && s.record.Operation.Overdue(began) { // it must end all the same
			return w.judged(ctx, ref, s.record, w.judge(s.record.Operation, provider.Status{}, err, began, now), now)
		}
		return next, more, err
	})
}

// judged is the record after a provider's answer, and what is written with it.
func (w *Worker) judged(ctx context.Context, ref workflow.Ref, r lifecycle.Record, v verdict, now time.Time) (_ lifecycle.Record, more []ledger.Change, err error) {
	if v.fault != nil {
		w.logFault(ctx, ref, r.Operation, v.fault)
	}
	switch {
	case v.failure != nil:
		r, err = r.Fail(now, *v.failure)
	case v.fault != nil:
		r = r.Faulted(now, backoff(r.Operation.Faults))
	case v.done && r.Operation.Kind.Deletes():
		seen, proven := r.AbsenceSeen(r.Operation.ID, now, w.witness())
		if !proven {
			return seen.Looked(now, lifecycle.Look{After: lifecycle.SecondLook}), nil, nil
		}
		var pointer lifecycle.Pointer
		if pointer, err = w.pointerOf(ctx, r.Key); err != nil {
			return r, nil, err
		}
		r, err = seen.Succeed(now, nil)
		more = []ledger.Change{ledger.DeletePointer(pointer)}
	case v.done && r.Operation.Kind == lifecycle.Bind:
		r, err = w.bound(ctx, ref, r, v.grant, now)
	case v.done:
		r, err = r.Succeed(now, nil)
	default:
		r = r.Looked(now, v.look)
	}
	return r, more, err
}

// bound is the record of a binding after its provider has given the grant.
func (w *Worker) bound(ctx context.Context, ref workflow.Ref, r lifecycle.Record, g *provider.Grant, now time.Time) (lifecycle.Record, error) {
	plain, ok := encodeGrant(g)
	if !ok { // the same again, however often it is asked
		w.Log.ErrorContext(ctx, "a provider gave credentials that cannot be kept", "execution", ref.Name(), "provider", r.Provider, "bytes", len(plain))
		return r.Fail(now, lifecycle.Failure{Message: "The service gave credentials that this broker cannot keep. Ask the operator of the service."})
	}
	sealed, err := w.Vault.Seal(ctx, vault.Label{Key: r.Key, Member: vault.Grant}, plain)
	if err != nil {
		return r, fmt.Errorf("sealing a grant: %w", err)
	}
	return r.Succeed(now, sealed)
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

// wait records only what must be: the due time, if it would pass.
func (w *Worker) wait(ctx context.Context, ref workflow.Ref, s subject, wait time.Duration) (workflow.Outcome, error) {
	if !s.record.Due.Before(w.Now().Add(wait + lifecycle.Grace)) {
		return workflow.Outcome{Wait: wait}, nil
	}
	return w.record(ctx, ref, s, "", func(_ context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		return s.record.Looked(now, lifecycle.Look{After: wait}), nil, nil
	})
}

// record writes what apply makes of the record, checks the instance in the same
// commit, and gives up the lease. If the operation is no longer the current one,
// or the instance no longer allows it, only the lease is given up: that is what
// tells whoever overtook it that no call is on its way.
func (w *Worker) record(
	ctx context.Context, ref workflow.Ref, s subject, holder string,
	apply func(ctx context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error),
) (workflow.Outcome, error) {
	outcome := settled
	err := repeat(ctx, func(ctx context.Context, first bool) error {
		now := w.Now()
		var err error
		if !first {
			if s, err = w.read(ctx, ref.Token.Key, now); err != nil {
				return err
			}
		}
		if !s.record.Current(ref.Token.Operation, ref.Attempt) || s.standing() == over {
			outcome = settled
			if !s.record.Holds(holder) {
				return nil
			}
			return w.Records.Commit(ctx, ledger.Put(s.record.Released(holder)))
		}
		next, more, err := apply(ctx, s, now)
		if err != nil {
			return fmt.Errorf("recording a step of %q: %w", ref.Name(), err)
		}
		next = next.Released(holder)
		outcome = outcomeOf(next, now)
		if err := w.Records.Commit(ctx, append(more, ledger.Put(next), s.check())...); err != nil {
			return err
		}
		w.recorded(ctx, next.Attributes.ServiceID, next.Attributes.PlanID, next.Operation)
		return nil
	})
	return outcome, err
}

func outcomeOf(r lifecycle.Record, now time.Time) workflow.Outcome {
	if !r.InProgress() {
		return settled
	}
	return workflow.Outcome{Wait: max(r.Operation.Next.Sub(now), 0)}
}

// removeBinding removes one binding of an instance that is being deleted. No
// new one can begin: beginning one checks that the instance is ready. One that
// had begun has stopped, or waits for its lease to be given up or run out. An
// unbind that runs already is left to end: two deletions of one thing, each of
// which begins anew what the other has begun, would never end.
func (w *Worker) removeBinding(ctx context.Context, ref workflow.Ref, s subject, b lifecycle.Record) (workflow.Outcome, error) {
	now, op := w.Now(), s.record.Operation
	if until := b.Busy(op.ID, now, w.witness()); !until.IsZero() {
		return w.wait(ctx, ref, s, leasePause(op, until, now))
	}
	if unbinds := b.InProgress() && b.Operation.Kind == lifecycle.Unbind && !b.Operation.Overdue(now); unbinds && op.Overdue(now) {
		return w.answered(ctx, ref, s, "", now, provider.Status{}, nil) // it has waited long enough
	} else if unbinds {
		return w.wait(ctx, ref, s, leasePause(op, b.Operation.Deadline, now))
	}
	ask, err := w.question(ctx, subject{b, s.record}, op)
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := w.begins()
	defer w.over(holder)
	s, ok, err := w.lease(ctx, holder, s, now)
	if err != nil || !ok {
		return workflow.Outcome{Wait: raceWait}, err
	}
	status, callErr := w.call(ctx, b.Provider, ask)
	began := now
	return w.record(ctx, ref, s, onItsWay(holder, callErr), func(ctx context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		i := s.record
		v := w.judge(i.Operation, status, callErr, began, now)
		if !v.done {
			return w.judged(ctx, ref, i, v, now)
		}
		next, changes, err := w.unboundFrom(ctx, i, b.Key, now)
		if err != nil && i.Operation.Overdue(began) { // it must end all the same
			return w.judged(ctx, ref, i, w.judge(i.Operation, provider.Status{}, err, began, now), now)
		}
		return next, changes, err
	})
}

// unboundFrom is what is written once a binding of an instance that is being
// deleted was seen to be absent.
func (w *Worker) unboundFrom(ctx context.Context, i lifecycle.Record, key lifecycle.Key, now time.Time) (lifecycle.Record, []ledger.Change, error) {
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

// removed is what is written when a binding ends with its instance, whose deletion
// was asked for then.
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

// pointerOf reads the pointer to a binding; version 0 if it points elsewhere, and
// for an instance, which has none.
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
