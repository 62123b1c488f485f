package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// A step is one step of an operation.
type step struct {
	*Worker
	ref workflow.Ref
	reading
}

// A task is one call of a provider, and the commit that follows it.
type task interface {
	// question builds the call.
	question(ctx context.Context) (question, error)
	// answered returns the step's record after the answer, and the other changes of its commit.
	// After a conflict it is called again, with the records read anew.
	answered(ctx context.Context, a answer, now time.Time) (lifecycle.Record, []ledger.Change, error)
}

// step does one step: it loads the records, asks the gate, takes the lease, calls the
// provider, and commits the verdict.
func (w *Worker) step(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	loaded, err := w.read(ctx, ref.Token.Key)
	if err != nil {
		return workflow.Outcome{}, err
	}
	s := &step{w, ref, loaded}
	switch {
	case s.looksLate():
		if !s.record.Busy(ref.Token.Operation, s.at, s.witness()).IsZero() {
			return settled, nil // another step may be calling the cloud: the reaper looks again
		}
		return s.perform(ctx, late{s})
	case !s.record.Current(ref.Token.Operation, ref.Attempt):
		return settled, nil // overtaken, settled, or taken over by a later attempt
	}
	op := s.record.Operation
	logs.AddRequest(ctx, op.Asker.Request)
	wait := s.leaseWait()
	switch s.gate() {
	case stop:
		return settled, nil
	case failInstance:
		return s.change(ctx, func(r lifecycle.Record, now time.Time) (lifecycle.Record, error) {
			return r.Fail(now, lifecycle.Failure{Message: "The service instance is being deleted."})
		})
	case failSource:
		return s.unanswered(ctx, nil)
	case waitUpdate:
		if op.Overdue(s.at) { // the update may take a week
			return s.unanswered(ctx, nil)
		}
		wait = max(wait, instanceWait)
	case waitDeletion:
		wait = max(wait, pause(s.at.Sub(op.Started)))
	}
	switch {
	case wait > 0:
		return s.wait(ctx, wait)
	case s.record.Adopts():
		return s.perform(ctx, adoption{s})
	case op.Kind == lifecycle.Deprovision:
		return s.deprovision(ctx)
	case op.Kind == lifecycle.Update && !op.Quiet:
		return s.firstUpdate(ctx)
	}
	return s.perform(ctx, own{s})
}

func (s *step) looksLate() bool { return s.record.LooksLate(s.ref.Token.Operation, s.ref.Attempt) }

// current reports whether the step may still act: its operation is running, and is not stopped by the
// deletion of its instance, or its late look is still to be taken.
func (s *step) current() bool {
	return s.looksLate() || s.record.Current(s.ref.Token.Operation, s.ref.Attempt) && s.gate() != stop
}

// perform does a task under a lease on the step's record.
func (s *step) perform(ctx context.Context, t task) (workflow.Outcome, error) {
	q, err := t.question(ctx)
	switch {
	case err != nil && s.record.InProgress() && s.record.Operation.Overdue(s.at):
		return s.unanswered(ctx, err) // the operation must end all the same
	case err != nil:
		return workflow.Outcome{}, err
	}
	holder, over := s.begins()
	defer over()
	if ok, err := s.lease(ctx, holder); err != nil || !ok {
		return workflow.Outcome{Wait: raceWait}, err
	}
	a := answer{began: s.at, instance: s.instance.Version}
	a.status, a.err = s.call(ctx, s.record.Provider, q)
	return s.conclude(ctx, t, a, held{holder, timedOut(a.err)})
}

// unanswered ends an operation that is overdue or whose source has changed, or records a fault, without an answer from
// the provider.
func (s *step) unanswered(ctx context.Context, fault error) (workflow.Outcome, error) {
	return s.conclude(ctx, own{s}, answer{err: fault, began: s.at, instance: s.instance.Version}, held{})
}

// conclude commits the meaning of an answer. An overdue operation ends even if the answer cannot be recorded.
func (s *step) conclude(ctx context.Context, t task, a answer, lease held) (workflow.Outcome, error) {
	return s.commit(ctx, lease, func(ctx context.Context, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		next, more, err := t.answered(ctx, a, now)
		if err != nil && s.record.Operation.Overdue(a.began) {
			return s.judged(ctx, s.record, answer{err: err, began: a.began}.judge(s.record.Operation, now), now)
		}
		return next, more, err
	})
}

// own is the task of doing the record's own operation.
type own struct{ *step }

func (t own) question(ctx context.Context) (question, error) {
	return t.step.question(ctx, t.reading, t.record.Operation)
}

// lease records that this step may call the cloud. False means that another writer was faster,
// and the step must look again.
func (s *step) lease(ctx context.Context, holder string) (ok bool, err error) {
	leased := s.record.Leased(holder, s.at, s.at.Add(s.HardTimeout+leaseMargin), s.witness())
	err = s.Records.Commit(ctx, ledger.Put(leased), s.check())
	if errors.Is(err, ledger.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.record = leased
	s.record.Version++
	return true, nil
}

// commit writes the record that write returns, and gives the lease up. The same commit checks
// that the records that the operation depends on have not changed. If the operation is no
// longer current, or its instance is being deleted, commit only gives the lease up: the
// overtaking operation waits for this sign that no call is under way. Commit outlives the step's
// context, since the cloud's answer must be recorded.
func (s *step) commit(
	ctx context.Context, lease held, write func(context.Context, time.Time) (lifecycle.Record, []ledger.Change, error),
) (workflow.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	outcome, again := settled, false
	err := ledger.Again(ctx, func() (err error) {
		if again {
			if s.reading, err = s.read(ctx, s.ref.Token.Key); err != nil {
				return err
			}
		}
		again = true
		if !s.current() {
			outcome = settled
			return s.giveUp(ctx, lease)
		}
		now := s.Now()
		next, more, err := write(ctx, now)
		if err != nil { // the call has ended, so the operation's next step need not wait for the lease
			return errors.Join(fmt.Errorf("recording a step of %q: %w", s.ref.Name(), err), s.giveUp(ctx, lease))
		}
		next = lease.of(next)
		if outcome = settled; next.InProgress() {
			outcome = workflow.Outcome{Wait: max(next.Operation.Next.Sub(now), 0)}
		}
		ended := next.Ended(s.record)
		more = append(more, ledger.Put(next), s.check(), ledger.FirstTargetUse(s.record, next, now))
		if err := s.Records.Commit(ctx, more...); err != nil {
			return err
		}
		if ended != nil {
			s.recorded(ctx, next.Attributes.ServiceID, next.Attributes.PlanID, next.Operation)
		}
		return nil
	})
	return outcome, err
}

// giveUp gives the lease up and changes nothing else. The lease of a call that timed out stays.
func (s *step) giveUp(ctx context.Context, lease held) error {
	if lease.timedOut || !s.record.Holds(lease.holder) {
		return nil
	}
	return s.Records.Commit(ctx, ledger.Put(s.record.Released(lease.holder)))
}

// change commits the record that to returns, without a call of the provider.
func (s *step) change(
	ctx context.Context, to func(r lifecycle.Record, now time.Time) (lifecycle.Record, error),
) (workflow.Outcome, error) {
	return s.commit(ctx, held{}, func(_ context.Context, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		r, err := to(s.record, now)
		return r, nil, err
	})
}

// wait ends the step until a later look. It writes only if the reaper would otherwise restart
// the operation before that look.
func (s *step) wait(ctx context.Context, wait time.Duration) (workflow.Outcome, error) {
	if !s.record.Due.Before(s.Now().Add(wait + lifecycle.Grace)) {
		return workflow.Outcome{Wait: wait}, nil
	}
	return s.change(ctx, func(r lifecycle.Record, now time.Time) (lifecycle.Record, error) {
		return r.Looked(now, lifecycle.Look{After: wait}), nil
	})
}

// deprovision removes the bindings of an instance, one in each step, and then the instance
// itself; if its plan keeps the data, it puts the instance into quarantine instead.
//
// Hazard: an instance whose deletion the provider refuses stays, and must lose no binding. So a step
// asks before it removes the first one, and before it passes the tombstones that precede it.
func (s *step) deprovision(ctx context.Context) (workflow.Outcome, error) {
	op := s.record.Operation
	b, passed, err := s.Records.NextBinding(ctx, s.record.Key, op.Unbound)
	switch {
	case err != nil && op.Overdue(s.at):
		return s.unanswered(ctx, err) // a damaged record may stay damaged
	case err != nil:
		return workflow.Outcome{}, err
	}
	if b != nil && op.Unbound == "" {
		if refusal := s.refusal(ctx, op); refusal != nil {
			return s.unanswered(ctx, refusal)
		}
		s.at = s.Now() // the provider may have taken its time
	}
	s.record = s.record.Unbound(passed) // committed with this step's changes
	if b != nil {
		return s.removeBinding(ctx, *b)
	}
	if until := s.record.KeepsUntil(check.RetentionOf(s.snapshot(s.record.Attributes))); !until.IsZero() {
		return s.perform(ctx, keeping{s, until})
	}
	return s.perform(ctx, own{s})
}

// firstUpdate does the first step of an update. It waits until no step of a binding can be
// calling the cloud, since such a call is meant for the instance before the update.
func (s *step) firstUpdate(ctx context.Context) (workflow.Outcome, error) {
	op := s.record.Operation
	passed, until, err := s.bindingsBusy(ctx)
	var pause time.Duration
	if !until.IsZero() && until.After(s.at) {
		pause = leasePause(op, until, s.at)
	}
	switch {
	case op.Overdue(s.at) && (err != nil || !until.IsZero()):
		return s.unanswered(ctx, err)
	case err != nil:
		return workflow.Outcome{}, err
	case until.IsZero():
	case passed == op.Unbound:
		return s.wait(ctx, pause)
	default: // the next step continues from the bindings passed so far
		return s.change(ctx, func(r lifecycle.Record, now time.Time) (lifecycle.Record, error) {
			return r.Unbound(passed).Looked(now, lifecycle.Look{After: pause}), nil
		})
	}
	s.record = s.record.Quieted() // committed with the lease
	return s.perform(ctx, own{s})
}

// leaseWait returns how long the operation waits before it looks again at the leases of other
// operations and its own; zero if it may call the cloud.
func (s *step) leaseWait() time.Duration {
	op := s.record.Operation
	until := s.record.Busy(op.ID, s.at, s.witness())
	switch {
	case until.IsZero():
		return 0
	case s.record.BusyItself(op.ID, s.at, s.witness()):
		return max(leasePause(op, until, s.at), ownLeaseWait)
	default:
		return leasePause(op, until, s.at)
	}
}

// mostLooks is how many bindings a step looks at: the step has to end in time, however many bindings an instance has.
const mostLooks = 500

// bindingsBusy returns the time until which a step of one of the instance's bindings may be
// calling the cloud, or zero, and the last binding up to which no step is. If there are more
// bindings than a step can look at, the time is now.
func (s *step) bindingsBusy(ctx context.Context) (passed string, until time.Time, err error) {
	passed = s.record.Operation.Unbound
	for range mostLooks {
		b, dead, err := s.Records.NextBinding(ctx, s.record.Key, passed)
		if b == nil || err != nil {
			return passed, time.Time{}, err
		}
		passed = dead
		if until = b.Busy(s.record.Operation.ID, s.at, s.witness()); !until.IsZero() {
			return passed, until, nil
		}
		passed = b.Key.Binding
	}
	return passed, s.at, nil
}
