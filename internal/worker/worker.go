// Package worker does one step of one operation: it reads the record, makes
// sure that the step may still act, says in the record that it is about to
// call the cloud, asks the provider, and records what came of it. It needs
// records, a vault, the plans' settings and the providers; it does not know
// what drives it, nor HTTP.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/logs"
	"github.com/longshore/longshore/internal/metrics"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/vault"
	"github.com/longshore/longshore/internal/workflow"
)

// Records is what the worker needs of the ledger, which documents it.
type Records interface {
	Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error)
	NextBinding(ctx context.Context, instance lifecycle.Key, after string) (next *lifecycle.Record, passed string, err error)
	Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error)
	Quarantine(ctx context.Context, provider, name string) (lifecycle.Quarantine, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}

// Plans looks up what the operator fixed in a plan; false when the plan has
// left the catalog.
type Plans interface {
	Plan(serviceID, planID string) (catalog.Offering, catalog.Plan, bool)
}

// Options are what a Worker is made of.
type Options struct {
	Records   Records
	Vault     vault.Vault
	Plans     Plans
	Providers map[string]provider.Provider
	// Inventories are the providers', of which some can put a thing out of use.
	Inventories map[string]provider.Inventory
	Now         func() time.Time
	NewID       func() string // different at each call
	Log         *slog.Logger
	Metrics     *metrics.Metrics
	// CallTimeout ends a call to the cloud. HardTimeout is when whatever runs
	// a step is certainly dead; between the two there is time to record what
	// happened.
	CallTimeout, HardTimeout time.Duration
	// Alone says that no other process takes leases while this one lives: it
	// then knows which steps live, and needs no clock for that.
	Alone bool
}

const (
	// leaseMargin covers the difference of two clocks.
	leaseMargin = time.Minute
	// recordTimeout is for recording a result, which also happens when the
	// step's own context has ended.
	recordTimeout = 10 * time.Second
	// raceWait is the pause after losing a race for the lease.
	raceWait = 100 * time.Millisecond
	// maxLeasePause is the longest pause between two looks at a lease.
	maxLeasePause = 10 * time.Second
	// instanceWait is the pause of a bind while its instance changes.
	instanceWait = 2 * time.Second
)

// A Worker does steps. It has no state of its own but which of them live.
type Worker struct {
	Options
	steps steps
}

// New makes a worker.
func New(o Options) *Worker {
	return &Worker{Options: o, steps: steps{mark: o.NewID() + ".", living: map[string]bool{}}}
}

var settled = workflow.Outcome{Settled: true}

// Step does one step of the execution; it is a workflow.Step. An error means
// that the records could not be read or written.
func (w *Worker) Step(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	ctx = logs.Begin(ctx)
	logs.AddSubject(ctx, ref.Token.Key.Platform, ref.Token.Key.Instance, ref.Token.Key.Binding)
	logs.AddOperation(ctx, ref.Token)
	if _, _, is := ref.Token.Key.OfQuarantine(); is {
		return w.quarantine(ctx, ref)
	}
	return w.step(ctx, ref)
}

// call asks the provider, with a deadline of its own that ends before the
// step's: there is always time left to record the result.
func (w *Worker) call(ctx context.Context, name string, ask question) (provider.Status, error) {
	p, ok := w.Providers[name]
	if !ok {
		return provider.Status{}, fmt.Errorf("provider %q is not part of this program", name)
	}
	ctx, cancel := context.WithTimeout(ctx, w.CallTimeout)
	defer cancel()
	return ask(ctx, p)
}

// recorded counts an operation that a step has ended.
func (w *Worker) recorded(ctx context.Context, serviceID, planID string, op *lifecycle.Operation) {
	if op.Phase == lifecycle.InProgress {
		return
	}
	w.Metrics.Write(
		map[string]string{metrics.DimensionKind: string(op.Kind), metrics.DimensionResult: string(op.Phase)},
		map[string]string{"service": serviceID, "plan": planID},
		metrics.Value{Name: metrics.Settled, N: 1},
		metrics.Value{Name: metrics.Duration, N: float64(op.Settled.Sub(op.Started).Milliseconds()), Unit: "Milliseconds"},
	)
	w.Log.InfoContext(ctx, "operation settled", "kind", string(op.Kind), "result", string(op.Phase), "service", serviceID, "plan", planID,
		"milliseconds", op.Settled.Sub(op.Started).Milliseconds())
}

// onItsWay gives the holder of a lease that is to be given up once a call has
// been answered: none, if the call ended without an answer because its time was
// up. It may still land, and whoever overtakes waits until the lease runs out.
func onItsWay(holder string, callErr error) string {
	if errors.Is(callErr, context.DeadlineExceeded) || errors.Is(callErr, context.Canceled) {
		return ""
	}
	return holder
}

// A verdict is what the answer of a provider means for the operation.
type verdict struct {
	done    bool
	failure *lifecycle.Failure
	fault   error // passing
	look    lifecycle.Look
	grant   *provider.Grant
}

// Of an operation past its deadline that meets nothing but faults, it is not known
// what has become of it: it is looked at so often, and for so long, before it fails.
const (
	lastFaults = 3
	lastLooks  = 15 * time.Minute
)

// judge tells what an answer means to a look that began at a time. From its
// deadline on, an operation that is not seen to be done has failed: an outage may
// have kept it from being looked at for long, and it may have been done since.
func (w *Worker) judge(op *lifecycle.Operation, status provider.Status, err error, began, now time.Time) verdict {
	var failure *provider.Failure
	overdue := lifecycle.Overdue()
	switch last := op.Overdue(began); {
	case errors.As(err, &failure):
		return verdict{failure: &lifecycle.Failure{
			Message: failure.Message, InstanceUsable: failure.InstanceUsable, UpdateRepeatable: failure.UpdateRepeatable,
		}}
	case last && err != nil && op.Faults >= lastFaults && !now.Before(op.Deadline.Add(lastLooks)):
		return verdict{fault: err, failure: &overdue}
	case err != nil:
		return verdict{fault: err}
	case status.Done:
		return verdict{done: true, grant: status.Grant}
	case last:
		return verdict{failure: &overdue}
	}
	after := status.After
	if after <= 0 {
		after = pause(now.Sub(op.Started))
	}
	return verdict{look: lifecycle.Look{Percent: status.Percent, Description: status.Description, After: min(after, maxPause)}}
}

const maxPause = 5 * time.Minute

// pause is how long to wait between looks when the provider does not say: it
// grows from 10 s to 60 s in the first hour and is 300 s after it, so that a
// week of waiting stays within what one execution may record.
func pause(age time.Duration) time.Duration {
	if age >= time.Hour {
		return maxPause
	}
	// A clock that stepped back makes an operation younger than new.
	return 10*time.Second + time.Duration(float64(50*time.Second)*float64(max(age, 0))/float64(time.Hour))
}

// backoff is the pause after the n-th fault in a row, from 1 s to 1 min.
func backoff(faults int) time.Duration {
	return min(time.Second<<min(faults, 6), time.Minute)
}

func (w *Worker) logFault(ctx context.Context, ref workflow.Ref, op *lifecycle.Operation, err error) {
	w.Log.WarnContext(ctx, "step met a fault and will be repeated", "execution", ref.Name(), "kind", string(op.Kind),
		"faults", op.Faults+1, "error", err)
}

// until is when a lease taken now ends.
func (w *Worker) until(now time.Time) time.Time { return now.Add(w.HardTimeout + leaseMargin) }

// leasePause is how long an operation waits before it looks again at another's
// lease. A step that is alive gives its lease up as soon as it has recorded
// its result, which is long before the lease runs out: the pauses begin short,
// since somebody may be waiting for the answer, and grow.
func leasePause(op *lifecycle.Operation, until, now time.Time) time.Duration {
	age := now.Sub(op.Started)
	if age < 0 { // the clock stepped back, and how long it waits is not known
		age = 2 * time.Second
	}
	pause := max(raceWait, min(age/2, maxLeasePause))
	return min(pause, until.Sub(now))
}

// repeat runs write until it does not meet a conflict. It outlives the step's
// context: what the cloud has done must be recorded.
func repeat(ctx context.Context, write func(ctx context.Context, first bool) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	first := true
	return ledger.Again(ctx, func(ctx context.Context) error {
		err := write(ctx, first)
		first = false
		return err
	})
}

func (w *Worker) settings(serviceID, planID string) map[string]any {
	_, plan, ok := w.Plans.Plan(serviceID, planID)
	if !ok {
		return nil
	}
	return plan.Settings
}

func (w *Worker) open(ctx context.Context, key lifecycle.Key, member vault.Member, sealed lifecycle.Sealed) ([]byte, error) {
	plain, err := w.Vault.Open(ctx, vault.Label{Key: key, Member: member}, sealed)
	if err != nil {
		return nil, fmt.Errorf("opening sealed %s: %w", member, err)
	}
	return plain, nil
}

func operationFor(op *lifecycle.Operation) provider.Operation {
	return provider.Operation{ID: op.ID, Kind: op.Kind, Started: op.Started, Synchronous: op.Synchronous}
}

// instanceFor is what the provider is told of an instance: for an update, what
// it is to become. For a deletion nothing sealed is opened, here and below: it
// must work when the key is lost, or the record damaged.
func (w *Worker) instanceFor(ctx context.Context, i lifecycle.Record, op *lifecycle.Operation) (provider.Instance, error) {
	a := i.Attributes
	if op.Kind == lifecycle.Update && op.Target != nil {
		a = *op.Target
	}
	in := provider.Instance{
		Platform: i.Key.Platform, ID: i.Key.Instance, Incarnation: i.Incarnation,
		ServiceID: a.ServiceID, PlanID: a.PlanID, Operation: operationFor(op), Settings: w.settings(a.ServiceID, a.PlanID),
	}
	if op.Kind.Deletes() {
		return in, nil
	}
	var err error
	in.Parameters, err = w.open(ctx, i.Key, vault.Parameters, a.Parameters)
	return in, err
}

// bindingFor is what the provider is told of a binding.
func (w *Worker) bindingFor(ctx context.Context, i, b lifecycle.Record, op *lifecycle.Operation) (provider.Binding, error) {
	in, err := w.instanceFor(ctx, i, op)
	if err != nil {
		return provider.Binding{}, err
	}
	// The binding's own plan is the one it was made with: it may differ from
	// the instance's since an update.
	in.Incarnation, in.ServiceID, in.PlanID = b.InstanceIncarnation, b.Attributes.ServiceID, b.Attributes.PlanID
	in.Settings = w.settings(in.ServiceID, in.PlanID)
	in.Platform, in.ID = b.Key.Platform, b.Key.Instance
	out := provider.Binding{
		Instance: in, ID: b.Key.Binding, Incarnation: b.Incarnation, AppGUID: b.AppGUID, Route: b.Route,
	}
	if op.Kind.Deletes() {
		return out, nil
	}
	if out.Parameters, err = w.open(ctx, b.Key, vault.Parameters, b.Attributes.Parameters); err != nil {
		return provider.Binding{}, err
	}
	out.Secret, err = w.open(ctx, b.Key, vault.Secret, b.Secret)
	return out, err
}
