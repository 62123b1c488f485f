package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

func (w *Worker) step(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	now := w.Now()
	s, err := w.read(ctx, ref.Token.Key, now)
	if err != nil {
		return workflow.Outcome{}, err
	}
	r := s.record
	if r.LooksLate(ref.Token.Operation, ref.Attempt) {
		return w.lookLate(ctx, ref, s)
	}
	if !r.Current(ref.Token.Operation, ref.Attempt) {
		return settled, nil // overtaken, settled, or taken over by a later attempt
	}
	op := r.Operation
	logs.AddRequest(ctx, op.Asker.Request)
	wait := w.leaseWait(r, now)
	switch s.standing() {
	case over:
		return settled, nil
	case broken:
		return w.fails(ctx, ref, s, lifecycle.Failure{Message: "The service instance is being deleted."})
	case lost:
		return w.fails(ctx, ref, s, lifecycle.SourceLost())
	case changes:
		if op.Overdue(now) { // the update may take a week
			return w.answered(ctx, ref, s, answer{})
		}
		wait = max(wait, instanceWait)
	case taken:
		wait = max(wait, pause(now.Sub(op.Started)))
	}
	if wait > 0 {
		return w.wait(ctx, ref, s, wait)
	}
	switch {
	case op.Kind == lifecycle.Deprovision:
		return w.deprovision(ctx, ref, s)
	case op.Kind == lifecycle.Update && !op.Quiet:
		return w.firstUpdate(ctx, ref, s)
	}
	return w.ask(ctx, ref, s, s, w.answered)
}

// deprovision removes the bindings of an instance, one at each step, and then the
// instance.
func (w *Worker) deprovision(ctx context.Context, ref workflow.Ref, s subject) (workflow.Outcome, error) {
	op := s.record.Operation
	b, passed, err := w.Records.NextBinding(ctx, s.record.Key, op.Unbound)
	if err != nil && op.Overdue(s.at) {
		return w.answered(ctx, ref, s, answer{err: err}) // a damaged record may stay damaged
	}
	if err != nil {
		return workflow.Outcome{}, err
	}
	s.record = s.record.Unbound(passed) // written with whatever this step writes
	if b != nil {
		return w.firstBindings(ctx, ref, s, *b)
	}
	return w.ask(ctx, ref, s, s, w.answered)
}

// firstUpdate asks for an update for the first time. It waits until no step of a
// binding can be calling the cloud, since such a call is for the instance as it was.
func (w *Worker) firstUpdate(ctx context.Context, ref workflow.Ref, s subject) (workflow.Outcome, error) {
	op := s.record.Operation
	passed, until, err := w.bindingsBusy(ctx, s)
	var pause time.Duration
	if !until.IsZero() && until.After(s.at) {
		pause = leasePause(op, until, s.at)
	}
	switch {
	case op.Overdue(s.at) && (err != nil || !until.IsZero()):
		return w.answered(ctx, ref, s, answer{err: err})
	case err != nil:
		return workflow.Outcome{}, err
	case until.IsZero():
	case passed == op.Unbound:
		return w.wait(ctx, ref, s, pause)
	default: // the next step goes on from there
		return w.record(ctx, ref, s, held{}, func(_ context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
			return s.record.Unbound(passed).Looked(now, lifecycle.Look{After: pause}), nil, nil
		})
	}
	s.record = s.record.Quieted() // written with the lease
	return w.ask(ctx, ref, s, s, w.answered)
}

// fails ends an operation without asking its provider.
func (w *Worker) fails(ctx context.Context, ref workflow.Ref, s subject, f lifecycle.Failure) (workflow.Outcome, error) {
	return w.record(ctx, ref, s, held{}, func(_ context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		r, err := s.record.Fail(now, f)
		return r, nil, err
	})
}

// leaseWait is how long the operation waits before it looks again at the leases of
// others, and at its own; zero if it may call the cloud.
func (w *Worker) leaseWait(r lifecycle.Record, now time.Time) time.Duration {
	until := r.Busy(r.Operation.ID, now, w.witness())
	switch {
	case until.IsZero():
		return 0
	case r.BusyItself(r.Operation.ID, now, w.witness()):
		return max(leasePause(r.Operation, until, now), ownLeaseWait)
	default:
		return leasePause(r.Operation, until, now)
	}
}

// mostLooks is how many bindings a step looks at: it has to end in time, however many
// an instance has.
const mostLooks = 500

// bindingsBusy gives the time until which a step of one of the instance's bindings
// may be calling the cloud, or zero, and up to which binding none is. If there are more
// than a step can look at, the time is now.
func (w *Worker) bindingsBusy(ctx context.Context, s subject) (passed string, until time.Time, err error) {
	passed = s.record.Operation.Unbound
	for range mostLooks {
		b, dead, err := w.Records.NextBinding(ctx, s.record.Key, passed)
		if b == nil || err != nil {
			return passed, time.Time{}, err
		}
		passed = dead
		if until = b.Busy(s.record.Operation.ID, s.at, w.witness()); !until.IsZero() {
			return passed, until, nil
		}
		passed = b.Key.Binding
	}
	return passed, s.at, nil
}

// ask asks the provider to do the operation of s to the record of what, under a lease
// on the record of s, and gives the answer to came. The two differ where a binding
// is removed for the deletion of its instance.
func (w *Worker) ask(
	ctx context.Context, ref workflow.Ref, s, what subject,
	came func(context.Context, workflow.Ref, subject, answer) (workflow.Outcome, error),
) (workflow.Outcome, error) {
	op := s.record.Operation
	ask, err := w.question(ctx, what, op)
	if err != nil && op.Overdue(s.at) {
		return w.answered(ctx, ref, s, answer{err: err}) // it must end all the same
	}
	if err != nil {
		return workflow.Outcome{}, err
	}
	holder := w.begins()
	defer w.over(holder)
	s, ok, err := w.lease(ctx, holder, s)
	if err != nil || !ok {
		return workflow.Outcome{Wait: raceWait}, err
	}
	status, callErr := w.call(ctx, what.record.Provider, ask)
	return came(ctx, ref, s, answer{lease: answeredBy(holder, callErr), status: status, err: callErr})
}

// question is what the provider is to do for an operation on the record.
func (w *Worker) question(ctx context.Context, s subject, op *lifecycle.Operation) (question, error) {
	if s.record.IsBinding() {
		in, err := w.bindingFor(ctx, s.instance, s.record, op)
		if err != nil {
			return question{}, err
		}
		return question{in.Instance.Target, func(ctx context.Context, p provider.Wired, at provider.Epoch) (provider.Status, error) {
			in.Instance.Epoch = at
			if op.Kind == lifecycle.Bind {
				return p.Provider.Bind(ctx, in)
			}
			return p.Provider.Unbind(ctx, in)
		}, op.Kind != lifecycle.Bind}, err
	}
	in, err := w.instanceFor(ctx, s.record, op)
	switch {
	case err != nil:
	case s.retained.Version > 0:
		in.Source, err = w.retainedFor(ctx, s.retained, op)
	case op.Source != nil:
		in.Source, err = w.sourceFor(ctx, s.source, op)
	}
	return question{in.Target, func(ctx context.Context, p provider.Wired, at provider.Epoch) (provider.Status, error) {
		in.Epoch = at
		switch op.Kind {
		case lifecycle.Provision:
			return p.Provider.Provision(ctx, in)
		case lifecycle.Update:
			return p.Provider.Update(ctx, in)
		default:
			return p.Provider.Deprovision(ctx, in)
		}
	}, false}, err
}

// lease records that this step may call the cloud. False means that another
// writer was faster: look again.
func (w *Worker) lease(ctx context.Context, holder string, s subject) (_ subject, ok bool, err error) {
	s.record = s.record.Leased(holder, s.at, w.until(s.at), w.witness())
	err = w.Records.Commit(ctx, ledger.Put(s.record), s.check(s.record))
	if errors.Is(err, ledger.ErrConflict) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	s.record.Version++
	return s, true, nil
}

// wait ends the step until a later look. It writes nothing unless the operation
// would be overdue by then, and be started again by the reaper.
func (w *Worker) wait(ctx context.Context, ref workflow.Ref, s subject, wait time.Duration) (workflow.Outcome, error) {
	if !s.record.Due.Before(w.Now().Add(wait + lifecycle.Grace)) {
		return workflow.Outcome{Wait: wait}, nil
	}
	return w.record(ctx, ref, s, held{}, func(_ context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		return s.record.Looked(now, lifecycle.Look{After: wait}), nil, nil
	})
}

// record writes what apply makes of the record, checks in the same commit what the
// operation depends on, and gives up the lease. If the operation is no longer the
// current one, or its instance is being deleted, it only gives up the lease: whoever
// overtook the operation waits for that, as a sign that no call is on its way.
func (w *Worker) record(
	ctx context.Context, ref workflow.Ref, s subject, lease held,
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
			if !lease.frees(s.record) {
				return nil
			}
			return w.Records.Commit(ctx, ledger.Put(lease.of(s.record)))
		}
		next, more, err := apply(ctx, s, now)
		if err != nil {
			return w.unrecorded(ctx, s.record, lease, fmt.Errorf("recording a step of %q: %w", ref.Name(), err))
		}
		next = lease.of(next)
		outcome = outcomeOf(next, now)
		more = append(more, ledger.Put(next), s.check(next), ledger.FirstTargetUse(s.record, next, now))
		if err := w.Records.Commit(ctx, more...); err != nil {
			return err
		}
		w.recorded(ctx, next.Attributes.ServiceID, next.Attributes.PlanID, next.Operation)
		return nil
	})
	return outcome, err
}

// unrecorded gives up the lease of a call whose answer cannot be recorded: the call
// has ended, so the operation's next step need not wait for it.
func (w *Worker) unrecorded(ctx context.Context, r lifecycle.Record, lease held, err error) error {
	if !lease.frees(r) {
		return err
	}
	return errors.Join(err, w.Records.Commit(ctx, ledger.Put(lease.of(r))))
}

func outcomeOf(r lifecycle.Record, now time.Time) workflow.Outcome {
	if !r.InProgress() {
		return settled
	}
	return workflow.Outcome{Wait: max(r.Operation.Next.Sub(now), 0)}
}
