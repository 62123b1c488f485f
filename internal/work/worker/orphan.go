package worker

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// locking is the task of putting an orphan into quarantine, or of releasing it. If the provider
// has no quarantine, the thing stays in use.
type locking struct{ *step }

func (t locking) question(context.Context) (question, error) {
	r := t.record
	state, err := provider.ParseState(r.Made.Found)
	h := provider.Holding{
		Name: r.Kept.Name, Created: r.Created, Target: r.Made.Target, State: state, Tags: provider.Tags{
			Broker: r.Made.Broker, Platform: r.Key.Platform, Instance: r.Key.Instance, Binding: r.Key.Binding,
			Incarnation: r.Incarnation, Of: r.InstanceIncarnation, Origin: r.Made.Origin,
		},
	}
	releases := r.Operation.Kind == lifecycle.Release
	in := provider.Instance{Target: h.Target}
	return question{in, func(ctx context.Context, p wired.Provider, at target.Epoch) (provider.Status, error) {
		done := provider.Status{Done: true}
		h.Epoch = at
		switch {
		case p.Quarantiner == nil:
			return done, nil
		case releases:
			return done, p.Quarantiner.Release(ctx, h)
		default:
			return done, p.Quarantiner.Quarantine(ctx, h)
		}
	}, r.IsBinding() && !releases}, err
}

// answered implements task.
func (t locking) answered(ctx context.Context, a answer, now time.Time) (lifecycle.Record, []ledger.Change, error) {
	return t.judged(ctx, t.record, a.judge(t.record.Operation, now), now)
}
