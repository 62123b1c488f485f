package wired

import (
	"context"
	"errors"
	"slices"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/sorted"
)

// A Guarded is an inventory that skips, with an error, each target that was restored or that
// another broker changes, as if the target could not be reached: what such a target holds or
// lacks says nothing about what it should hold.
type Guarded struct {
	provider.Inventory
	// Known looks up the recorded epoch of the target with an identity; it is not called for a
	// target without epochs.
	Known func(ctx context.Context, identity string) (target.Known, error)
}

// List implements provider.Inventory. Steps may raise the target meanwhile, so the epoch that
// was recorded before the list decides whether the target was restored, and the epoch that is
// recorded after it decides who raised the target.
func (g Guarded) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	known := map[string]target.Known{}
	for {
		page, next, err := g.Inventory.List(ctx, cursor)
		restored, read := map[string]error{}, false
		for _, h := range page {
			if h.Epoch == (target.Epoch{}) {
				continue
			}
			was, ok := known[h.Target.Identity]
			if !ok {
				var failed error
				if was, failed = g.Known(ctx, h.Target.Identity); failed != nil {
					return nil, "", failed
				}
				known[h.Target.Identity], read = was, true
			}
			behind := h.Epoch.Check(h.Target.Name, was.Epoch)
			if behind == nil && was.Foreign(h.Epoch) {
				if was, behind = g.Known(ctx, h.Target.Identity); behind != nil {
					return nil, "", behind
				}
				if was.Foreign(h.Epoch) {
					behind = target.Copied(h.Target.Name)
				}
			}
			if behind != nil {
				restored[h.Target.Name] = behind
			}
		}
		if len(restored) == 0 {
			return page, next, err
		}
		if read {
			continue
		}
		page = slices.DeleteFunc(page, func(h provider.Holding) bool { return restored[h.Target.Name] != nil })
		for _, behind := range sorted.Map(restored) {
			err = errors.Join(err, behind)
		}
		return page, next, err
	}
}
