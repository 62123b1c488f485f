package worker

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
)

// locking builds the call that puts an orphan into quarantine, or releases it. If the provider has
// no quarantine, the thing stays in use.
func locking(r lifecycle.Record) (question, error) {
	state, err := provider.ParseState(r.Made.Found)
	h := provider.Holding{
		Name: r.Kept.Name, Created: r.Created, Target: r.Made.Target, State: state, Tags: provider.Tags{
			Broker: r.Made.Broker, Platform: r.Key.Platform, Instance: r.Key.Instance, Binding: r.Key.Binding,
			Incarnation: r.Incarnation, Of: r.InstanceIncarnation, Origin: r.Made.Origin,
		},
	}
	releases := r.Operation.Kind == lifecycle.Release
	about := provider.Instance{Target: h.Target}
	return question{about, func(ctx context.Context, p wired.Provider, in provider.Instance) (provider.Status, error) {
		done := provider.Status{Done: true}
		h.Epoch = in.Epoch
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
