package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// removeRetained does one step of removing a retained thing whose time is over. The
// thing has a record of its own, since its id may be that of another instance by now.
func (w *Worker) removeRetained(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	key, incarnation, _ := ref.Token.Key.OfRetained()
	return stepAside(ctx, w, ref, asideSteps[lifecycle.Retained]{
		read: func(ctx context.Context) (lifecycle.Retained, bool, error) {
			r, err := w.Records.Retained(ctx, key, incarnation)
			return r, r.Version > 0, err
		},
		put: ledger.Put[lifecycle.Retained], call: w.callRetainer, came: w.removedRetained,
	})
}

// removedRetained is what is written once the provider has answered a removal.
func (w *Worker) removedRetained(ctx context.Context, r lifecycle.Retained, s provider.Status,
	err error) (ledger.Change, workflow.Outcome) {
	now := w.Now()
	switch {
	case err != nil:
		r, wait, waits := r.Faulted(now, err)
		if !w.logTrouble(ctx, r.Provider, err) {
			w.Log.WarnContext(ctx, "removing a retained thing met a fault and will be tried again", "thing", r.Name, "provider", r.Provider,
				"until", r.Until, "faults", r.Faults, "error", err)
		}
		return ledger.Put(r), workflow.Outcome{Settled: !waits, Wait: wait}
	case !s.Done:
		after := s.After
		if after <= 0 {
			after = pause(0)
		}
		return ledger.Put(r.Looked(now, after)), workflow.Outcome{Wait: min(after, maxPause)}
	}
	w.Log.InfoContext(ctx, "a retained thing is removed", "thing", r.Name, "provider", r.Provider, "until", r.Until)
	return ledger.Delete(r), settled
}

// errNoRetainer says that the provider cannot remove what it has retained. Its program
// is of another version than the one that did.
var errNoRetainer = errors.New("its provider does not remove what it has retained: the program may be of another version")

func (w *Worker) callRetainer(ctx context.Context, r lifecycle.Retained) (provider.Status, error) {
	state, err := w.stateOf(ctx, r.Key, r.Made, true)
	if err != nil {
		return provider.Status{}, err
	}
	h := holdingOf(r.Name, r.Key, r.Incarnation, "", r.Made, state, r.Created)
	h.PlanID, h.RetainedUntil = r.PlanID, r.Until
	return w.call(ctx, r.Provider, question{h.Target, func(ctx context.Context, p provider.Wired, at provider.Epoch) (provider.Status, error) {
		can, ok := p.Provider.(provider.Retainer)
		if !ok {
			return provider.Status{}, errNoRetainer
		}
		h.Epoch = at
		return can.RemoveRetained(ctx, h)
	}, false})
}

// retainedFor is what the provider is told of a retained thing while an instance is
// made from it, or while that instance is deleted before it was ready.
func (w *Worker) retainedFor(ctx context.Context, r lifecycle.Retained, op *lifecycle.Operation) (*provider.Source, error) {
	state, err := w.stateOf(ctx, r.Key, r.Made, op.Kind.Deletes())
	return &provider.Source{
		Platform: r.Key.Platform, ID: r.Key.Instance, Incarnation: r.Incarnation, Snapshot: r.Snapshot, Target: provider.Target(r.Made.Target),
		State: state, Retained: &provider.Retained{Name: r.Name, Until: r.Until},
	}, err
}

// givesBack is what is written with the tombstone of an instance that was to be made
// from a retained thing.
func (w *Worker) givesBack(ctx context.Context, r lifecycle.Record, _ *provider.Retained, now time.Time) (ledger.Change, error) {
	kept, err := w.Records.Retained(ctx, r.Undeletes.Key(r.Key), r.Undeletes.Incarnation)
	if err != nil || !kept.TakenBy(r.Key) {
		return ledger.Change{}, err
	}
	kept = kept.GivenBack(now)
	w.Log.InfoContext(ctx, "what was retained did not become another instance, and is retained again", "thing", kept.Name, "provider",
		kept.Provider, "until", kept.Until)
	return ledger.Put(kept), nil
}

// errRetained ends a deprovision: asked again, the provider would answer the same.
var errRetained = errors.New("a provider has retained something, and does not say what, or until when")

// retains is what is written with the tombstone of an instance whose provider has
// retained something.
func (w *Worker) retains(ctx context.Context, r lifecycle.Record, kept *provider.Retained, now time.Time) (ledger.Change, error) {
	if kept == nil || r.IsBinding() {
		return ledger.Change{}, nil
	}
	if kept.Name == "" || len(kept.Name) > limits.Identifier || kept.Until.IsZero() {
		return ledger.Change{}, errRetained
	}
	was, err := w.Records.Retained(ctx, r.Key, r.Incarnation)
	if err != nil || was.Version > 0 { // it is on record, and may be given back or removed by now
		return ledger.Change{}, err
	}
	next := r.Retain(kept.Name, kept.Until.UTC(), now)
	w.Log.InfoContext(ctx, "what a platform has deleted is retained", "thing", next.Name, "provider", next.Provider, "until", next.Until)
	return ledger.Put(next), nil
}
