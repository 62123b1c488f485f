// Package acts implements what an operator may do to one record: start its operation again or
// end it, and release or delete a thing in quarantine. Each act is a commit with an entry in
// the history; the engine does the rest. The package needs records and a way to start
// executions. Its caller decides who may act.
package acts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// Acts carries out what operators ask for.
type Acts struct {
	Records *ledger.Ledger
	// Start starts an execution of an operation; see workflow.Engine. It is nil if no broker
	// runs: operations then wait until the broker is started.
	Start func(ctx context.Context, ref workflow.Ref) error
	Now   func() time.Time
	NewID func() string
	// OperationTimeout is the deadline of deletions that Retry begins.
	OperationTimeout time.Duration
}

// Done is a record after an act. Note says how the work goes on, if that needs saying.
type Done struct {
	Record lifecycle.Record
	Note   string
}

// A Refusal says why nothing was done, and what to do.
type Refusal struct{ Message string }

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a Refusal.
func Refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// Find reads the record that a token belongs to.
func (a Acts) Find(ctx context.Context, token string) (t lifecycle.Token, r lifecycle.Record, err error) {
	if t, err = lifecycle.ParseToken(token); err != nil {
		return t, r, Refuse("%q is no operation: `longshore operations -o wide` lists their tokens", token)
	}
	r, err = a.Records.Record(ctx, t.Key, a.Now())
	return t, r, err
}

// latest reads the record whose latest operation has the token, and refuses any other.
func (a Acts) latest(ctx context.Context, token string) (lifecycle.Record, error) {
	t, r, err := a.Find(ctx, token)
	if err == nil && (r.Operation == nil || r.Operation.ID != t.Operation) {
		err = Refuse("another operation has replaced this one, so nothing was done: `longshore operations` lists the latest")
	}
	return r, err
}

// Begin returns the start of an operation that an operator asks for.
func (a Acts) Begin(timeout time.Duration) lifecycle.Start {
	return lifecycle.Start{ID: a.NewID(), Now: a.Now(), Timeout: timeout, Own: true}
}

// Retry starts a running operation again, as a new attempt. If a creation or a deletion has
// failed, Retry begins the deletion. A platform that polls a failed creation sees it as failed
// until it deletes the instance (PROV-30). Seen is the operation as the operator saw it: if it has
// got another attempt or has ended since, nothing is done, so that asking twice starts one attempt,
// and a form that starts it again never deletes anything. Nil takes the operation as it is.
func (a Acts) Retry(ctx context.Context, token string, seen *lifecycle.Operation) (Done, error) {
	return Decide(ctx, func() (Done, error) {
		r, err := a.latest(ctx, token)
		if err != nil {
			return Done{}, err
		}
		switch {
		case seen == nil:
		case r.Operation.Phase != seen.Phase:
			return Done{}, Refuse("it has %s meanwhile, so nothing was done: look at it again", r.Operation.Phase)
		case r.Operation.Attempt != seen.Attempt:
			return Done{}, Refuse("it was started again meanwhile, so nothing was done: look at it again")
		}
		r, err = r.Restarted(a.Begin(a.OperationTimeout))
		if errors.As(err, new(*lifecycle.IllegalTransition)) {
			err = Refuse("the %s is %q: only a running operation can be started again, and only what a failed "+
				"creation or deletion left can be deleted by a retry", r.Noun(), r.State)
		}
		if err != nil {
			return Done{}, err
		}
		return a.Drive(ctx, "retry", r)
	})
}

// Settle ends a running operation as failed, with a message for the platform's user. The things
// that it has made so far are handled as after any failure.
func (a Acts) Settle(ctx context.Context, token, message string) (Done, error) {
	return Decide(ctx, func() (Done, error) {
		r, err := a.latest(ctx, token)
		if err != nil {
			return Done{}, err
		}
		if !r.InProgress() {
			return Done{}, Refuse("the operation has %s already: nothing was done", r.Operation.Phase)
		}
		failed, err := r.Fail(a.Now(), lifecycle.Failure{Message: message})
		if err == nil {
			err = a.Records.Commit(ctx, ledger.Put(failed), a.acted("settle", r))
		}
		return Done{Record: failed}, err
	})
}

// Release puts a thing in quarantine back into use. From then on the thing is left alone,
// whether it has a record or not.
func (a Acts) Release(ctx context.Context, key lifecycle.Key) (Done, error) {
	return Decide(ctx, func() (Done, error) {
		former, err := a.orphan(ctx, key)
		if err != nil {
			return Done{}, err
		}
		name := former.Kept.Name
		former, err = former.BeginRelease(a.Begin(a.OperationTimeout))
		if errors.As(err, new(*lifecycle.IllegalTransition)) {
			return Done{}, Refuse("%q was released before", name)
		}
		return a.Drive(ctx, "release", former)
	})
}

// Discard at once begins the deletion of a thing that is in quarantine, or was released from it.
func (a Acts) Discard(ctx context.Context, key lifecycle.Key) (Done, error) {
	return Decide(ctx, func() (Done, error) {
		former, err := a.orphan(ctx, key)
		if err != nil {
			return Done{}, err
		}
		is, err := a.Records.Record(ctx, key.Current(), a.Now())
		if err != nil {
			return Done{}, err
		}
		if is.Exists() && is.Incarnation == former.Incarnation {
			return Done{}, Refuse("the owner of %q has a record, which is %q: have its platform delete it",
				former.Kept.Name, is.State)
		}
		if former, err = former.BeginDelete(a.Begin(a.OperationTimeout)); err != nil {
			return Done{}, err
		}
		return a.Drive(ctx, "delete from quarantine", former, ledger.Check(is))
	})
}

// orphan reads the record of an orphan that is in quarantine or was released from it, and refuses any other record.
func (a Acts) orphan(ctx context.Context, key lifecycle.Key) (lifecycle.Record, error) {
	r, err := a.Records.Record(ctx, key, a.Now())
	if err == nil && !r.OrphanStands() {
		err = Refuse("it is not in quarantine any more: `longshore reaper quarantine` lists what is there")
	}
	return r, err
}

// Drive commits the change that an operator asked for, and starts its execution.
func (a Acts) Drive(ctx context.Context, act string, r lifecycle.Record, with ...ledger.Change) (Done, error) {
	if err := a.Records.Commit(ctx, append(with, ledger.Put(r), a.acted(act, r))...); err != nil {
		return Done{}, err
	}
	done := Done{Record: r}
	if a.Start == nil {
		done.Note = "goes on when the broker is started"
	} else if err := a.Start(ctx, workflow.Of(r)); err != nil {
		done.Note = "could not be started now; the reaper starts it"
	}
	return done, nil
}

// acted returns the change that adds an operator's act to the history of the instance.
func (a Acts) acted(act string, r lifecycle.Record) ledger.Change {
	return ledger.Put(r.Acted(act, a.NewID(), a.Now()))
}

// decideTimeout bounds how long a decision is repeated while others write the same record.
const decideTimeout = 10 * time.Second

// Decide calls once again as long as others write the same record.
func Decide[T any](ctx context.Context, once func() (T, error)) (out T, _ error) {
	ctx, cancel := context.WithTimeout(ctx, decideTimeout)
	defer cancel()
	err := ledger.Again(ctx, func() (err error) {
		out, err = once()
		return err
	})
	if errors.Is(err, ledger.ErrConflict) {
		return out, Refuse("its record keeps changing: look at it again, and decide again")
	}
	return out, err
}
