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
// to, as they were read. The record of an instance belongs to itself. One that is
// being restored from another has that as its source, and one that what was retained
// becomes, that.
type subject struct {
	record, instance, source lifecycle.Record
	kept                     lifecycle.Retained
}

func (w *Worker) read(ctx context.Context, key lifecycle.Key, now time.Time) (s subject, err error) {
	if s.record, err = w.Records.Record(ctx, key, now); err != nil {
		return s, err
	}
	if !key.IsBinding() {
		s.instance = s.record
		if of := s.record.Undeletes; of != nil {
			s.kept, err = w.Records.Retained(ctx, of.Key(key), of.Incarnation)
			return s, err
		}
		if op := s.record.Operation; s.record.InProgress() && op.Source != nil {
			s.source, err = w.Records.Record(ctx, op.Source.Key(key), now)
		}
		return s, err
	}
	s.instance, err = w.Records.Record(ctx, key.InstanceKey(), now)
	return s, err
}

// A standing says what the instance allows a bind to do, and its source a provision.
type standing int

const (
	free    standing = iota // the instance, or the source, is the same and ready
	changes                 // wait: the instance is being updated
	broken                  // fail: the instance could not be deleted
	over                    // stop: its deletion removes the binding
	lost                    // fail: the source is not what it was
)

// standing tells how an operation stands with the instance: only a bind depends
// on it, an unbind never (UNB-10). A provision depends on its source alone.
func (s subject) standing() standing {
	switch source := s.record.Operation.Source; {
	case source == nil:
	case source.Retained && !source.StandsRetained(s.kept, s.record.Operation.ID):
		return lost
	case !source.Retained && !source.Stands(s.source):
		return lost
	}
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
// cannot outlive its instance. Nor is anything restored from a source that changes;
// one that has changed is lost for good. What was retained is so no more once it is
// the instance that is written next.
func (s subject) check(next lifecycle.Record) ledger.Change {
	source := s.record.Operation.Source
	switch stands := source != nil && s.standing() == free; {
	case stands && source.Retained && next.State == lifecycle.Ready:
		return ledger.DeleteRetained(s.kept)
	case stands && source.Retained:
		return ledger.CheckRetained(s.kept)
	case stands:
		return ledger.Check(s.source)
	}
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
		return w.lookLate(ctx, ref, s)
	}
	if !r.Current(ref.Token.Operation, ref.Attempt) {
		return settled, nil // overtaken, settled, or driven again by another
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
			return w.answered(ctx, ref, s, held{}, now, provider.Status{}, nil)
		}
		wait = max(wait, instanceWait)
	}
	if wait > 0 {
		return w.wait(ctx, ref, s, wait)
	}
	if op.Kind == lifecycle.Deprovision {
		b, passed, err := w.Records.NextBinding(ctx, r.Key, op.Unbound)
		if err != nil && op.Overdue(now) {
			return w.answered(ctx, ref, s, held{}, now, provider.Status{}, err) // a record may be damaged, and stay so
		}
		if err != nil {
			return workflow.Outcome{}, err
		}
		s.record = r.Unbound(passed) // written with whatever this step writes
		if b != nil {
			return w.firstBindings(ctx, ref, s, *b, now)
		}
	}
	if op.Kind == lifecycle.Update && !op.Quiet {
		until, err := w.bindingsBusy(ctx, s, now)
		switch {
		case op.Overdue(now) && (err != nil || !until.IsZero()): // it has asked for nothing yet
			return w.answered(ctx, ref, s, held{}, now, provider.Status{}, err)
		case err != nil:
			return workflow.Outcome{}, err
		case !until.IsZero():
			return w.wait(ctx, ref, s, leasePause(op, until, now))
		}
		s.record = r.Quieted() // written with the lease
	}
	return w.ask(ctx, ref, s, now)
}

// firstBindings removes a binding of an instance that is to be deleted, unless the
// provider refuses the deletion before the first of them is.
func (w *Worker) firstBindings(
	ctx context.Context, ref workflow.Ref, s subject, b lifecycle.Record, now time.Time,
) (workflow.Outcome, error) {
	if op := s.record.Operation; op.Unbound == "" {
		if refusal := w.refusal(ctx, s, op); refusal != nil {
			return w.answered(ctx, ref, s, held{}, now, provider.Status{}, refusal)
		}
	}
	return w.removeBinding(ctx, ref, s, b)
}

// refusal asks the provider whether it would refuse the deletion: nothing is to be
// removed of an instance that stays. It needs no lease, since it changes nothing.
func (w *Worker) refusal(ctx context.Context, s subject, op *lifecycle.Operation) error {
	in, err := w.instanceFor(ctx, s.record, op)
	if err != nil {
		return nil // the deletion says what is wrong
	}
	epoch, err := w.tellsEpoch(ctx, s.record.Provider, &in)
	if err != nil {
		return err
	}
	_, err = w.call(ctx, s.record.Provider, question{func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		if can, ok := p.(provider.Refuser); ok {
			return provider.Status{}, can.Refuses(ctx, in)
		}
		return provider.Status{}, nil
	}, epoch})
	return err
}

// fails ends an operation without asking its provider.
func (w *Worker) fails(ctx context.Context, ref workflow.Ref, s subject, f lifecycle.Failure) (workflow.Outcome, error) {
	return w.record(ctx, ref, s, held{}, func(_ context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		r, err := s.record.Fail(now, f)
		return r, nil, err
	})
}

// leaseWait is how long the record's operation waits before it looks again at the
// leases of others, and of its own; zero if it may call the cloud.
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

// bindingsBusy gives the time until which a step of one of the instance's bindings
// may be calling the cloud, or zero.
func (w *Worker) bindingsBusy(ctx context.Context, s subject, now time.Time) (until time.Time, err error) {
	for after := ""; until.IsZero(); {
		b, _, err := w.Records.NextBinding(ctx, s.record.Key, after)
		if b == nil || err != nil {
			return until, err
		}
		until, after = b.Busy(s.record.Operation.ID, now, w.witness()), b.Key.Binding
	}
	return until, nil
}

// ask calls the provider, and records what it answers.
func (w *Worker) ask(ctx context.Context, ref workflow.Ref, s subject, now time.Time) (workflow.Outcome, error) {
	ask, err := w.question(ctx, s, s.record.Operation)
	if err != nil && s.record.Operation.Overdue(now) {
		return w.answered(ctx, ref, s, held{}, now, provider.Status{}, err) // it must end all the same
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
	return w.answered(ctx, ref, s, answeredBy(holder, callErr), now, status, callErr)
}

// A question is one call of a provider, and what the target that it is about is
// known to have said.
type question struct {
	ask   func(context.Context, provider.Provider) (provider.Status, error)
	epoch lifecycle.TargetEpoch
}

// question is what the provider is to do for an operation on the record.
func (w *Worker) question(ctx context.Context, s subject, op *lifecycle.Operation) (question, error) {
	if s.record.IsBinding() {
		in, err := w.bindingFor(ctx, s.instance, s.record, op)
		if err != nil {
			return question{}, err
		}
		epoch, err := w.tellsEpoch(ctx, s.record.Provider, &in.Instance)
		return question{func(ctx context.Context, p provider.Provider) (provider.Status, error) {
			if op.Kind == lifecycle.Bind {
				return p.Bind(ctx, in)
			}
			return p.Unbind(ctx, in)
		}, epoch}, err
	}
	in, err := w.instanceFor(ctx, s.record, op)
	switch {
	case err != nil:
	case s.kept.Version > 0:
		in.Source, err = w.retainedFor(ctx, s.kept, op)
	case op.Source != nil:
		in.Source, err = w.sourceFor(ctx, s.source, op)
	}
	if err != nil {
		return question{}, err
	}
	epoch, err := w.tellsEpoch(ctx, s.record.Provider, &in)
	return question{func(ctx context.Context, p provider.Provider) (provider.Status, error) {
		switch op.Kind {
		case lifecycle.Provision:
			return p.Provision(ctx, in)
		case lifecycle.Update:
			return p.Update(ctx, in)
		default:
			return p.Deprovision(ctx, in)
		}
	}, epoch}, err
}

// lease records that this step may call the cloud. False means that another
// writer was faster: look again.
func (w *Worker) lease(ctx context.Context, holder string, s subject, now time.Time) (_ subject, ok bool, err error) {
	s.record = s.record.Leased(holder, now, w.until(now), w.witness())
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

// answered records what a provider answered to a look that began at a time. A
// bind whose instance has changed since does not end by it, and is looked at again:
// what was granted for the instance as it was is not recorded, nor what the
// provider remembers with the grant, which no longer holds the secret.
func (w *Worker) answered(
	ctx context.Context, ref workflow.Ref, s subject, lease held, began time.Time, status provider.Status, callErr error,
) (workflow.Outcome, error) {
	asked := s.instance.Version
	return w.record(ctx, ref, s, lease, func(ctx context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		v := w.judge(s.record.Operation, status, callErr, began, now)
		if ends := v.done || v.failure != nil; ends && s.record.Operation.Kind == lifecycle.Bind && s.instance.Version != asked {
			again := verdict{look: lifecycle.Look{After: instanceWait}}
			if !v.done {
				again.state = v.state
			}
			v = again
		}
		if s.standing() == lost { // what was made of it is kept with the failure, for the deletion
			failure := lifecycle.SourceLost()
			v = verdict{failure: &failure, state: v.state, target: v.target}
		}
		next, more, err := w.judged(ctx, ref, s.record, v, now)
		if err != nil && s.record.Operation.Overdue(began) { // it must end all the same
			return w.judged(ctx, ref, s.record, w.judge(s.record.Operation, provider.Status{}, err, began, now), now)
		}
		return next, more, err
	})
}

// judged is the record after a provider's answer, and what is written with it.
func (w *Worker) judged(ctx context.Context, ref workflow.Ref, r lifecycle.Record, v verdict,
	now time.Time) (_ lifecycle.Record, more []ledger.Change, err error) {
	if v.fault != nil {
		w.logFault(ctx, ref, r, v.fault)
	}
	r, err = w.remembers(ctx, r, v)
	if errors.Is(err, errStateSize) {
		return w.unkept(ctx, ref, r, err, now)
	}
	if err != nil {
		return r, nil, err
	}
	switch {
	case v.failure != nil:
		r, err = r.Fail(now, *v.failure)
	case v.fault != nil:
		r = r.Faulted(now, faultOf(v.fault, r.Operation.Faults))
	case v.done && r.Operation.Kind.Deletes():
		seen, proven := r.AbsenceSeen(r.Operation.ID, now, w.witness())
		if !proven {
			return seen.Looked(now, lifecycle.Look{After: lifecycle.SecondLook}), nil, nil
		}
		return w.deleted(ctx, ref, seen, v, now)
	case v.done && r.Operation.Kind == lifecycle.Bind:
		r, err = w.bound(ctx, ref, r, v.grant, now)
	case v.done:
		r, err = r.Succeed(now, nil)
	default:
		r = r.Looked(now, v.look)
	}
	return r, more, err
}

// faultOf is what a record keeps of a fault: the operator's words of a trouble, and
// other ones for the user.
func faultOf(fault error, faults int) lifecycle.Fault {
	f := lifecycle.Fault{After: patience(fault, faults)}
	if trouble := (*provider.Trouble)(nil); errors.As(fault, &trouble) {
		f.Trouble = fmt.Sprintf("%s: target %q: %s", trouble.Kind, trouble.Target, trouble.Message)
		f.Description = "The server of this service cannot be used at the moment. The operation goes on by itself when it can."
	}
	return f
}

// deleted is the tombstone of what was seen to be absent, and what is written with
// it.
func (w *Worker) deleted(ctx context.Context, ref workflow.Ref, r lifecycle.Record, v verdict,
	now time.Time) (_ lifecycle.Record, more []ledger.Change, err error) {
	pointer, err := w.pointerOf(ctx, r.Key)
	if err != nil {
		return r, nil, err
	}
	retains := w.retains
	if r.Undeletes != nil {
		retains = w.givesBack
	}
	kept, err := retains(ctx, r, v.kept, now)
	if errors.Is(err, errRetained) {
		return w.unkept(ctx, ref, r, err, now)
	}
	if err != nil {
		return r, nil, err
	}
	gone, err := r.Succeed(now, nil)
	return gone, []ledger.Change{ledger.DeletePointer(pointer), kept}, err
}

// unkept fails an operation whose provider gave what cannot be recorded: the same
// would come again, however often it is asked.
func (w *Worker) unkept(ctx context.Context, ref workflow.Ref, r lifecycle.Record, why error,
	now time.Time) (lifecycle.Record, []ledger.Change, error) {
	w.Log.ErrorContext(ctx, "a provider gave what cannot be kept", "execution", ref.Name(), "provider", r.Provider, "error", why)
	r, err := r.Fail(now, lifecycle.Failure{Message: "The service gave a state that this broker cannot keep. Ask the operator of the " +
		"service."})
	return r, nil, err
}

// patience is the pause after a fault. A call that timed out may still land: the
// next step takes what it then finds for what nobody recorded.
func patience(fault error, faults int) time.Duration {
	pause := backoff(faults)
	if errors.Is(fault, context.DeadlineExceeded) || errors.Is(fault, context.Canceled) {
		return max(pause, lifecycle.SecondLook)
	}
	return pause
}

// bound is the record of a binding after its provider has given the grant.
func (w *Worker) bound(ctx context.Context, ref workflow.Ref, r lifecycle.Record, g *provider.Grant,
	now time.Time) (lifecycle.Record, error) {
	plain, ok := encodeGrant(g)
	if !ok { // the same again, however often it is asked
		w.Log.ErrorContext(ctx, "a provider gave credentials that cannot be kept", "execution", ref.Name(), "provider", r.Provider, "bytes",
			len(plain))
		return r.Fail(now, lifecycle.Failure{Message: "The service gave credentials that this broker cannot keep. Ask the operator of the " +
			"service."})
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
	return w.record(ctx, ref, s, held{}, func(_ context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
		return s.record.Looked(now, lifecycle.Look{After: wait}), nil, nil
	})
}

// record writes what apply makes of the record, checks the instance in the same
// commit, and gives up the lease. If the operation is no longer the current one,
// or the instance no longer allows it, only the lease is given up: that is what
// tells whoever overtook it that no call is on its way.
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
		if err := w.Records.Commit(ctx, append(more, ledger.Put(next), s.check(next), usesTarget(s.record, next, now))...); err != nil {
			return err
		}
		w.recorded(ctx, next.Attributes.ServiceID, next.Attributes.PlanID, next.Operation)
		return nil
	})
	return outcome, err
}

// unrecorded gives up the lease of a call that has been answered, although the
// answer cannot be recorded: the operation's next step need not wait for it.
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
		return w.answered(ctx, ref, s, held{}, now, provider.Status{}, nil) // it has waited long enough
	} else if unbinds {
		return w.wait(ctx, ref, s, leasePause(op, b.Operation.Deadline, now))
	}
	ask, err := w.question(ctx, subject{record: b, instance: s.record}, op)
	if err != nil && op.Overdue(now) {
		return w.answered(ctx, ref, s, held{}, now, provider.Status{}, err) // it must end all the same
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
	status, callErr := w.call(ctx, b.Provider, ask)
	began := now
	return w.record(ctx, ref, s, answeredBy(holder, callErr),
		func(ctx context.Context, s subject, now time.Time) (lifecycle.Record, []ledger.Change, error) {
			i := s.record
			v := w.judge(i.Operation, status, callErr, began, now)
			var next lifecycle.Record
			var changes []ledger.Change
			var err error
			if v.done {
				next, changes, err = w.unboundFrom(ctx, i, b.Key, now)
			} else {
				next, changes, err = w.unbinding(ctx, ref, i, b.Key, v, now)
			}
			if err != nil && i.Operation.Overdue(began) { // it must end all the same
				return w.judged(ctx, ref, i, w.judge(i.Operation, provider.Status{}, err, began, now), now)
			}
			return next, changes, err
		})
}

// unbinding is what is written while a binding of an instance that is being
// deleted is not yet seen to be absent: the state is the binding's.
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

// unboundFrom is what is written once a binding of an instance that is being
// deleted was seen to be absent.
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
