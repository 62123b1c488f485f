// Package worker does one step of one operation: it reads the records, checks that the step
// may still act, takes a lease, calls the provider, and commits the verdict. It needs
// records, a vault, the settings of plans and the providers. It knows neither HTTP nor the
// engine that calls it.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/metrics"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// Records are the methods of the ledger that the worker needs; the ledger documents them.
type Records interface {
	Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error)
	NextBinding(ctx context.Context, instance lifecycle.Key, after string) (next *lifecycle.Record, passed string, err error)
	Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error)
	Epoch(ctx context.Context, provider, identity string) (ledger.TargetEpoch, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}

// Plans looks up an offering and its plan; false once the plan has left the catalog.
type Plans interface {
	Plan(serviceID, planID string) (catalog.Offering, catalog.Plan, bool)
}

// Options configure a Worker.
type Options struct {
	Records   Records
	Vault     vault.Vault
	Plans     Plans
	Providers map[string]wired.Provider
	Now       func() time.Time
	NewID     func() string // different at each call
	Log       *slog.Logger
	Metrics   *metrics.Metrics
	// HardTimeout is the time after which the process that runs a step is certainly dead. A
	// provider's call ends earlier, so that time is left to record its answer.
	HardTimeout time.Duration
	// Alone says that no other process takes leases while this one lives. The worker then knows
	// the live steps without a clock.
	Alone bool
}

const (
	// leaseMargin covers the difference between two clocks.
	leaseMargin = time.Minute
	// recordTimeout is the time for recording an answer, even after the step's own context has ended.
	recordTimeout = 10 * time.Second
	// raceWait is the pause after losing a race for the lease.
	raceWait = 100 * time.Millisecond
	// maxLeasePause is the longest pause between two looks at a lease.
	maxLeasePause = 10 * time.Second
	// ownLeaseWait is the pause of a step that finds its own operation leased. It is longer
	// than the pauses that Drive waits out, since the waiting of a function is billed.
	ownLeaseWait = Patience + time.Second
	// instanceWait is the pause of a bind while its instance changes.
	instanceWait = 2 * time.Second
)

// A Worker does steps. It remembers its live steps, its last raise of each target, and when it
// logged each trouble; all of this may be lost in a restart.
type Worker struct {
	Options
	mark     string        // the prefix of the name of each holder of a lease
	living   sync.Map      // the holders whose steps live
	longest  time.Duration // the longest that a call may take
	troubles sync.Map      // when each trouble was last logged
	raises   sync.Map      // each target's *raising, by the provider's name and the target's identity
}

// New returns a worker.
func New(o Options) *Worker {
	w := &Worker{Options: o, mark: o.NewID() + "."}
	for _, p := range o.Providers {
		w.longest = max(w.longest, p.Timeout())
	}
	return w
}

var settled = workflow.Outcome{Settled: true}

// Step does one step of the execution; it is a workflow.Step. An error means
// that the records could not be read or written.
func (w *Worker) Step(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	ctx = logs.Begin(ctx)
	logs.AddSubject(ctx, ref.Token.Key.Platform, ref.Token.Key.Instance, ref.Token.Key.Binding)
	logs.AddOperation(ctx, ref.Token)
	return w.step(ctx, ref)
}

// call proves the target, and asks the provider for a change. A completed change counts only
// after a raise of the target, so no record is ever ahead of its target's epoch.
func (w *Worker) call(ctx context.Context, name string, q question) (provider.Status, error) {
	return w.within(ctx, name, func(ctx context.Context, p wired.Provider) (provider.Status, error) {
		switch learnt, err := p.Prove(ctx, q.in); {
		case err != nil:
			return provider.Status{}, err
		case learnt != nil:
			return *learnt, nil
		}
		at, err := w.raise(ctx, name, q.in.Target, false)
		if err != nil && q.evicts && !outOfHand(err) {
			var known ledger.TargetEpoch
			known, err = w.Records.Epoch(ctx, name, q.in.Target.Identity)
			at = known.Epoch
		}
		if err != nil {
			return provider.Status{}, err
		}
		q.in.Epoch = at
		status, err := q.ask(ctx, p, q.in)
		if err == nil && status.Done {
			_, err = w.raise(ctx, name, q.in.Target, true)
		}
		return status, err
	})
}

// outOfHand reports whether someone else has changed the target: it was restored, or two
// brokers use it.
func outOfHand(err error) bool {
	trouble, ok := errors.AsType[*target.Trouble](err)
	return ok && (trouble.Kind == target.Doubled || trouble.Kind == target.Restored)
}

// within gives a call of a provider a deadline earlier than that of the step, so that there is
// always time left to record the answer, also if the step has made another call before.
func (w *Worker) within(ctx context.Context, name string,
	call func(context.Context, wired.Provider) (provider.Status, error)) (provider.Status, error) {
	p, err := w.provider(name)
	if err != nil {
		return provider.Status{}, err
	}
	limited, cancel := context.WithTimeout(ctx, p.Timeout())
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		limited, cancel = context.WithDeadline(limited, deadline.Add(-recordTimeout))
		defer cancel()
	}
	status, err := call(limited, p)
	if err != nil && limited.Err() != nil && !errors.As(err, new(*provider.Failure)) {
		err = errors.Join(err, limited.Err()) // the call may still take effect, whatever error the provider returned
	}
	return status, err
}

func (w *Worker) provider(name string) (wired.Provider, error) {
	p, ok := w.Providers[name]
	if !ok {
		return p, fmt.Errorf("provider %q is not part of this program", name)
	}
	return p, p.Absent
}

// recorded counts an operation that a step has ended.
func (w *Worker) recorded(ctx context.Context, serviceID, planID string, op *lifecycle.Operation) {
	w.Metrics.Write(
		metrics.Labels{
			{Name: metrics.DimensionKind, Value: string(op.Kind)}, {Name: metrics.DimensionResult, Value: string(op.Phase)},
		},
		map[string]string{"service": serviceID, "plan": planID},
		metrics.Value{Name: metrics.Settled, N: 1},
		metrics.Value{Name: metrics.Duration, N: float64(op.Settled.Sub(op.Started).Milliseconds()), Unit: metrics.Milliseconds},
	)
	w.Log.InfoContext(ctx, "operation settled", "kind", string(op.Kind), "result", string(op.Phase),
		"service", serviceID, "plan", planID, "milliseconds", op.Settled.Sub(op.Started).Milliseconds())
}

// A held is the lease that a step holds; the zero held is no lease.
type held struct {
	holder string
	// timedOut says that the call got no answer in time. The call may still take effect, so the
	// lease stays: an overtaking operation waits until the lease runs out, and the step's own
	// operation goes on.
	timedOut bool
}

// timedOut reports whether a call ended because its time was up.
func timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// of returns the record with the lease given up or, if the call timed out, kept.
func (h held) of(r lifecycle.Record) lifecycle.Record {
	if h.timedOut {
		return r.TimedOut(h.holder)
	}
	return r.Released(h.holder)
}

const maxPause = 5 * time.Minute

// pause returns the wait before the next look if the provider gives none. It grows from 10 s to 60 s in the
// first hour and is 300 s after that, so that a week of waiting fits into the history of one execution.
func pause(age time.Duration) time.Duration {
	if age >= time.Hour {
		return maxPause
	}
	// If the clock stepped back, the age of the operation is negative.
	return 10*time.Second + time.Duration(float64(50*time.Second)*float64(max(age, 0))/float64(time.Hour))
}

// leasePause returns how long an operation waits before it looks again at another's lease. A live step gives
// its lease up long before the end, and a request may be waiting, so the pauses begin short and grow.
func leasePause(op *lifecycle.Operation, until, now time.Time) time.Duration {
	age := now.Sub(op.Started)
	if age < 0 { // the clock stepped back, so the age is unknown
		age = 2 * time.Second
	}
	pause := max(raceWait, min(age/2, maxLeasePause))
	return min(pause, until.Sub(now))
}

// snapshot returns the snapshot of its plan that an instance recorded. A rebuilt record has none,
// so today's plan counts.
func (w *Worker) snapshot(a lifecycle.Attributes) json.RawMessage {
	if a.Snapshot != nil {
		return a.Snapshot
	}
	_, plan, _ := w.Plans.Plan(a.ServiceID, a.PlanID)
	return plan.Snapshot
}

func (w *Worker) open(ctx context.Context, key lifecycle.Key, member vault.Member, sealed lifecycle.Sealed) ([]byte, error) {
	plain, err := w.Vault.Open(ctx, vault.Label{Key: key, Member: member}, sealed)
	if err != nil {
		return nil, fmt.Errorf("opening sealed %s: %w", member, err)
	}
	return plain, nil
}
