package worker

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
)

// quarantine does one step of putting an orphan out of use, or into use again.
func (w *Worker) quarantine(ctx context.Context, ref workflow.Ref) (workflow.Outcome, error) {
	providerName, name, _ := ref.Token.Key.OfQuarantine()
	return stepAside(ctx, w, ref, asideSteps[lifecycle.Quarantine]{
		read: func(ctx context.Context) (lifecycle.Quarantine, bool, error) {
			q, err := w.Records.Quarantine(ctx, providerName, name)
			return q, q.Version > 0, err
		},
		put: ledger.Put[lifecycle.Quarantine], call: w.callQuarantiner,
		came: func(ctx context.Context, q lifecycle.Quarantine, _ provider.Status, err error) (ledger.Change, workflow.Outcome) {
			if err != nil {
				after := backoff(q.Faults)
				if !w.logTrouble(ctx, providerName, err) {
					w.Log.WarnContext(ctx, "a quarantine met a fault and will be tried again", "thing", name, "provider", providerName, "error", err)
				}
				return ledger.Put(q.Faulted(w.Now(), after)), workflow.Outcome{Wait: after}
			}
			q = q.Moved(w.Now())
			w.Log.InfoContext(ctx, "a quarantine is as it is to be", "thing", name, "provider", providerName, "phase", string(q.Phase))
			return ledger.Put(q), settled
		},
	})
}

// callQuarantiner asks the provider to put the thing out of use, or into use again. If
// the provider cannot do that, the thing stays in use.
func (w *Worker) callQuarantiner(ctx context.Context, q lifecycle.Quarantine) (provider.Status, error) {
	state, err := provider.ParseState(q.State)
	if err != nil {
		return provider.Status{}, err
	}
	h := listedHolding(q.Name, q.Key, q.Incarnation, q.Of, lifecycle.Made{Broker: q.Broker, Target: q.Target,
		Origin: q.Origin}, state,
		q.Created)
	return w.call(ctx, q.Provider, question{h.Target, func(ctx context.Context, p provider.Wired, at provider.Epoch) (provider.Status, error) {
		done := provider.Status{Done: true}
		h.Epoch = at
		switch can, ok := p.Inventory.(provider.Quarantiner); {
		case !ok:
			return done, nil
		case q.Phase == lifecycle.Releasing:
			return done, can.Release(ctx, h)
		default:
			return done, can.Quarantine(ctx, h)
		}
	}, h.Tags.Binding != "" && q.Phase != lifecycle.Releasing})
}
