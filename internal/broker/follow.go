package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// An Effect is the outcome of a request that was not refused.
type Effect int

// The effects.
const (
	Created  Effect = iota + 1 // the instance or binding was made now
	Done                       // the requested state is reached, or was before
	Accepted                   // an operation is running
)

// A Result answers a request that changes something.
type Result struct {
	Effect Effect
	// Token and RetryAfter come with Accepted.
	Token      lifecycle.Token
	RetryAfter time.Duration
	// DashboardURL is the instance's address after a provision (PROV-24), and its new one after
	// an update (UPD-27); empty for none.
	DashboardURL string
	// Grant comes with a bind that is Created or Done.
	Grant *provider.Grant
}

// A decision is the answer to a request after one look at the records, together with the record.
type decision struct {
	Result                  // the answer; if an operation runs, the answer once it has succeeded
	record lifecycle.Record // as it was read or written
	runs   bool             // the record's operation is the request's
	later  bool             // the request is answered 202 and does not wait
}

// decide calls once, which reads, decides on the request and writes, and repeats it after a conflict,
// within the time that a request has for its records. A user sees a conflict, as a ConcurrencyError,
// only if it lasts all that time.
func decide[Q, T any](ctx context.Context, b *Broker, once func(context.Context, Q) (T, error), on Q) (out T, _ error) {
	limited, cancel := b.limited(ctx)
	defer cancel()
	err := ledger.Again(limited, func() (err error) {
		out, err = once(limited, on)
		return err
	})
	switch {
	case !errors.Is(err, ledger.ErrConflict):
		return out, err
	case ctx.Err() != nil:
		return out, ctx.Err()
	}
	return out, lifecycle.RefuseConcurrent()
}

// waits decides whether the request itself waits for the work. It does if no plan allows a 202,
// or the client does not permit it.
func waits(permitted bool, modes ...catalog.Mode) (bool, error) {
	never := true
	for _, m := range modes {
		if m == catalog.Required && !permitted {
			return false, lifecycle.RefuseAsyncRequired()
		}
		never = never && m == catalog.Never
	}
	return never || !permitted, nil
}

// begin commits the intent together with the other changes, and starts the operation
// unless its request waits for it.
func (b *Broker) begin(
	ctx context.Context, r lifecycle.Record, success Effect, also ...ledger.Change,
) (*decision, error) {
	if err := b.Records.Commit(ctx, append(also, ledger.Put(r))...); err != nil {
		return nil, err
	}
	b.Metrics.Count(metrics.Accepted, metrics.DimensionKind, string(r.Operation.Kind))
	if !r.Operation.Synchronous {
		b.launch(ctx, r)
	}
	return &decision{Result: Result{Effect: success}, record: r, runs: true, later: !r.Operation.Synchronous}, nil
}

// launch starts the operation that was just committed. If the start fails, the request still succeeds:
// the intent is durable, and the reaper starts the operation. The start has its own time limit, so that
// an engine that hangs does not hold it up, and a client that has gone does not stop it.
func (b *Broker) launch(ctx context.Context, r lifecycle.Record) {
	logs.AddOperation(ctx, r.Token())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	ref := workflow.Of(r)
	if err := b.Engine.Start(ctx, ref); err != nil {
		b.Log.WarnContext(ctx, "operation will be started by the reaper", "execution", ref.Name(), "error", err)
	}
}

// repeated answers a PUT of what exists, is being created, or has failed to be created.
func (b *Broker) repeated(answer lifecycle.Answer, r lifecycle.Record, permitted bool) (*decision, error) {
	switch answer {
	case lifecycle.Exists:
		return &decision{Result: Result{Effect: Done}, record: r}, nil
	case lifecycle.Stays:
		return b.stays(r), nil
	}
	return join(r, permitted)
}

// join makes a repeated request follow the running operation. A request that permits a 202 gets the
// same token (PROV-10). A request that does not permit it waits if the first request waits too, or
// if the broker began the operation; otherwise it is told to ask asynchronously (PROV-12, DEPR-07).
func join(r lifecycle.Record, permitted bool) (*decision, error) {
	if op := r.Operation; !permitted && !op.Synchronous && !op.Own {
		return nil, lifecycle.RefuseAsyncRequired()
	}
	return &decision{Result: Result{Effect: Done}, record: r, runs: true, later: permitted}, nil
}

// follow carries out a decision. A request that waits is answered with the outcome of its
// operation. An operation that outlasts the wait is answered 202 if the client permits that;
// otherwise it goes on, and the error says so. Only a creation is undone, since the platform
// deletes the instance after an error anyway. The returned record is the one that was read last.
func (b *Broker) follow(ctx context.Context, c Caller, d *decision) (Result, lifecycle.Record, error) {
	r, t := d.record, d.record.Token()
	if !d.runs {
		return d.Result, r, nil
	}
	logs.AddOperation(ctx, t)
	var err error
	if !d.later {
		b.await(ctx, r)
		limited, cancel := b.limited(ctx)
		defer cancel()
		if r, err = b.record(limited, t.Key); err != nil {
			return Result{}, r, err
		}
	}
	if r.Runs(t) && c.AcceptsIncomplete {
		if r, err = b.promise(ctx, r); err != nil {
			return Result{}, r, err
		}
		if r.Runs(t) {
			return Result{Effect: Accepted, Token: t, RetryAfter: b.retryAfter(r.Operation), DashboardURL: d.DashboardURL}, r, nil
		}
	}
	if failed := r.FailedCreation(); failed != nil && failed.ID == t.Operation && c.AcceptsIncomplete {
		result := b.stays(r).Result // another request has the token (PROV-30)
		result.DashboardURL = d.DashboardURL
		return result, r, nil
	}
	outlasted := r.Runs(t)
	if outlasted && r.Operation.Kind.Creates() {
		if r, err = b.undo(ctx, c, t); err != nil {
			return Result{}, r, fmt.Errorf("turning a creation that took too long into a deletion: %w", err)
		}
	}
	limited, cancel := b.limited(ctx)
	defer cancel()
	op, err := b.operationIn(limited, r, t)
	if err == nil && outlasted && op.Cancelled {
		err = lifecycle.RefuseUndone.Because(errTooSlow, r.Noun())
	} else if err == nil {
		err = outcome(op)
	}
	if err != nil {
		return Result{}, r, err
	}
	return d.Result, r, nil
}

// await lets the engine finish the operation, for as long as the request waits.
func (b *Broker) await(ctx context.Context, r lifecycle.Record) {
	wait, cancel := context.WithTimeout(ctx, cmp.Or(b.Waits[r.Provider], b.SynchronousWait))
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		wait, cancel = context.WithDeadline(wait, deadline.Add(-TimeToAnswer))
		defer cancel()
	}
	ref := workflow.Of(r)
	if err := b.Engine.Finish(wait, ref); err != nil {
		b.Log.WarnContext(ctx, "operation will be finished by the reaper", "execution", ref.Name(), "error", err)
	}
}

// promise records a creation as asynchronous before another request gets its token. Polls with
// that token are then answered even if the creation fails (PROV-30).
func (b *Broker) promise(ctx context.Context, r lifecycle.Record) (lifecycle.Record, error) {
	if _, changes := r.Promised(); !changes {
		return r, nil
	}
	return decide(ctx, b, func(limited context.Context, t lifecycle.Token) (lifecycle.Record, error) {
		r, err := b.record(limited, t.Key)
		next, changes := r.Promised()
		if err != nil || !changes || !r.Runs(t) {
			return r, err
		}
		return next, b.Records.Commit(limited, ledger.Put(next))
	}, r.Token())
}

// errTooSlow says that the operation outlasted the request's wait.
var errTooSlow = errors.New("operation did not settle in time")

// outcome returns the refusal of a request whose operation has not succeeded; nil if it has.
func outcome(op lifecycle.Operation) error {
	switch {
	case op.Cancelled:
		return lifecycle.RefuseCancelled()
	case op.Phase == lifecycle.Failed:
		failed := lifecycle.RefuseFailed(op.Description)
		failed.InstanceUsable, failed.UpdateRepeatable = op.InstanceUsable, op.UpdateRepeatable
		return failed
	case op.Phase == lifecycle.InProgress:
		return lifecycle.RefuseLong.Because(errTooSlow, op.Kind)
	}
	return nil
}

// stays answers a repeated creation with the token of the failed one, until the platform
// deletes the instance (PROV-30). If each repetition were a new attempt, a platform that
// repeats before it polls would make and fail real things without end.
func (b *Broker) stays(r lifecycle.Record) *decision {
	return &decision{record: r, Result: Result{
		Effect: Accepted, RetryAfter: b.MinRetryAfter,
		Token: lifecycle.Token{Operation: r.FailedCreation().ID, Key: r.Key},
	}}
}

// retryAfter returns how long to wait until the next poll (FAC-16), within the bounds: until the next
// step, since nothing changes before it, or until the expected end of the operation if that is later.
func (b *Broker) retryAfter(op *lifecycle.Operation) time.Duration {
	now := b.Now()
	wait := max(op.Next.Sub(now), op.Started.Add(op.Expected).Sub(now))
	return max(b.MinRetryAfter, min(b.MaxRetryAfter, wait))
}

// undo turns a creation that took too long into a deletion, unless the creation has settled or
// been overtaken meanwhile. It spares a creation whose token another request has: an accepted
// order must not be lost because this request cannot wait.
func (b *Broker) undo(ctx context.Context, c Caller, t lifecycle.Token) (lifecycle.Record, error) {
	c.Received = time.Time{} // no request asks for this deletion
	return decide(ctx, b, func(limited context.Context, t lifecycle.Token) (lifecycle.Record, error) {
		r, err := b.record(limited, t.Key)
		if err != nil || !r.Runs(t) || r.Operation.Asynchronous() {
			return r, err
		}
		return b.overtake(limited, c, r)
	}, t)
}

// overtake begins the deletion of r in place of its running creation.
func (b *Broker) overtake(ctx context.Context, c Caller, r lifecycle.Record) (lifecycle.Record, error) {
	start := b.start(ctx, c, r.Key, catalog.Plan{}, false, nil)
	start.Own = true // no DELETE asked for it
	next, err := r.BeginDelete(start)
	if err != nil {
		return r, err
	}
	_, err = b.begin(ctx, next, Done)
	return next, err
}
