package worker

import (
	"context"
	"errors"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/workflow"
)

// quarantine does one step of putting an orphan out of use, or into use again. It
// takes a lease as the steps of operations do: a call that is on its way must not
// lock what another one has just released.
func (w *Worker) quarantine(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	providerName, name, _ := ref.Token.Key.OfQuarantine()
	now := w.Now()
	q, err := w.Records.Quarantine(ctx, providerName, name)
	switch {
	case err != nil:
		return workflow.Outcome{}, err
	case !q.Current(ref.Token.Operation, ref.Attempt):
		return settled, nil
	case q.Busy.After(now):
		return workflow.Outcome{Wait: min(q.Busy.Sub(now), maxLeasePause)}, nil
	}
	q = q.Leased(w.until(now))
	mine := q.Busy // of another step, if that one has outlived it
	switch err := w.Records.Commit(ctx, ledger.PutQuarantine(q)); {
	case errors.Is(err, ledger.ErrConflict):
		return workflow.Outcome{Wait: raceWait}, nil
	case err != nil:
		return workflow.Outcome{}, err
	}
	callErr := w.callQuarantiner(ctx, q)
	outcome := settled
	err = repeat(ctx, func(ctx context.Context, _ bool) error {
		q, err := w.Records.Quarantine(ctx, providerName, name)
		if err != nil || q.Version == 0 {
			return err
		}
		if q.Busy.Equal(mine) && !answeredBy(name, callErr).timedOut {
			q = q.Given()
		}
		switch {
		case !q.Current(ref.Token.Operation, ref.Attempt): // the other way round by now
		case callErr != nil:
			after := backoff(q.Faults)
			q, outcome = q.Faulted(w.Now(), after), workflow.Outcome{Wait: after}
			if !w.logTrouble(ctx, providerName, callErr) {
				w.Log.WarnContext(ctx, "a quarantine met a fault and will be tried again", "thing", name, "provider", providerName, "error", callErr)
			}
		default:
			q = q.Moved(w.Now())
			w.Log.InfoContext(ctx, "a quarantine is as it is to be", "thing", name, "provider", providerName, "phase", string(q.Phase))
		}
		return w.Records.Commit(ctx, ledger.PutQuarantine(q))
	})
	return outcome, err
}

// callQuarantiner has the provider put the thing out of use, or into use again. Of
// a provider that cannot do that, the thing stays in use.
func (w *Worker) callQuarantiner(ctx context.Context, q lifecycle.Quarantine) error {
	state, err := provider.ParseState(q.State)
	if err != nil {
		return err
	}
	h := provider.Holding{
		Name: q.Name, Created: q.Created, Target: provider.Target(q.Target), State: state,
		Tags: provider.Tags{
			Broker: q.Broker, Platform: q.Key.Platform, Instance: q.Key.Instance, Binding: q.Key.Binding, Incarnation: q.Incarnation,
		},
	}
	if _, h.Epoch, err = w.epochOf(ctx, q.Provider, h.Target); err != nil {
		return err
	}
	_, err = w.within(ctx, q.Provider, func(ctx context.Context, p provider.Wired) (provider.Status, error) {
		switch can, ok := p.Inventory.(provider.Quarantiner); {
		case !ok:
			return provider.Status{}, nil
		case q.Phase == lifecycle.Releasing:
			return provider.Status{}, can.Release(ctx, h)
		default:
			return provider.Status{}, can.Quarantine(ctx, h)
		}
	})
	return err
}
