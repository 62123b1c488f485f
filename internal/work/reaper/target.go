package reaper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// targets notes each target that a record names and no provider lists by today's settings: the
// pass has not seen its things, which may exist all the same.
func (p *part) targets(ctx context.Context) error {
	listed := map[string][]string{}
	for provider, l := range p.Listers {
		if l.Targets == nil {
			continue
		}
		names, err := l.Targets(ctx)
		if err != nil {
			p.unreached(provider, fmt.Errorf("which targets it has: %w", err))
		}
		listed[provider] = names
	}
	for at, elsewhere := (lifecycle.TargetUse{}), false; ; {
		next, err := p.InventoryOptions.Records.NextTargetUse(ctx, at, elsewhere)
		if next == nil || err != nil {
			return err
		}
		at, elsewhere = *next, slices.Contains(listed[next.Provider], next.Target)
		switch {
		case elsewhere:
			continue
		case !p.timeLeft(ctx):
			p.unreached(at.Provider, errors.New("no time was left to check that all targets in use are listed"))
			return nil
		}
		holds, err := p.holds(ctx, at, p.Now())
		if err != nil {
			return err
		}
		if elsewhere = holds; holds {
			p.unreached(at.Provider, fmt.Errorf("the target %q, where instance %q of platform %q is, is not in today's "+
				"settings: put it back, or delete what is in it", at.Target, at.Key.Instance, at.Key.Platform))
		}
	}
}

// holds reports whether an instance is still in a target; if not, it deletes the record of that use.
func (r *Reaper) holds(ctx context.Context, u lifecycle.TargetUse, now time.Time) (bool, error) {
	for _, key := range []lifecycle.Key{u.Key, u.Key.Former(u.Incarnation)} {
		c, err := r.Records.Record(ctx, key, now)
		if err != nil || c.Uses(u) {
			return err == nil, err
		}
	}
	if err := r.Records.Commit(ctx, ledger.Delete(u)); err != nil && !errors.Is(err, ledger.ErrConflict) {
		return false, fmt.Errorf("forgetting a target that is not used any more: %w", err)
	}
	return false, nil
}

// use checks whether an instance is still in a target, and if so plans the next check.
func (r *Reaper) use(ctx context.Context, u lifecycle.TargetUse, now time.Time) error {
	holds, err := r.holds(ctx, u, now)
	if !holds || err != nil {
		return err
	}
	return r.Records.Commit(ctx, ledger.Put(u.Held(now)))
}
