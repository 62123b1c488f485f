package provider

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Guard gives an inventory that leaves out what is in a target that was restored, and
// says so beside the rest, as of a target that cannot be reached: what such a target
// holds, and what it lacks, says nothing of what should be there. Known looks up the
// epoch that the target of an identity has been at; nothing calls it where there are
// no epochs.
func Guard(i Inventory, known func(ctx context.Context, identity string) (Epoch, error)) Inventory {
	return guarded{i, known}
}

type guarded struct {
	Inventory
	known func(ctx context.Context, identity string) (Epoch, error)
}

// List implements Inventory. A step may have gone on, and be known to, after the page
// was listed: what is known is to be read before.
func (g guarded) List(ctx context.Context, cursor string) ([]Holding, string, error) {
	known := map[string]Epoch{}
	for {
		page, next, err := g.Inventory.List(ctx, cursor)
		restored, read := map[string]error{}, false
		for _, h := range page {
			if h.Epoch == (Epoch{}) {
				continue
			}
			was, ok := known[h.Target.Identity]
			if !ok {
				var failed error
				if was, failed = g.known(ctx, h.Target.Identity); failed != nil {
					return nil, "", failed
				}
				known[h.Target.Identity], read = was, true
			}
			if behind := h.Epoch.Check(h.Target.Name, was); behind != nil {
				restored[h.Target.Name] = behind
			}
		}
		if len(restored) == 0 {
			return page, next, err
		}
		if read {
			continue
		}
		page = slices.DeleteFunc(page, func(h Holding) bool { return restored[h.Target.Name] != nil })
		for _, name := range slices.Sorted(maps.Keys(restored)) {
			err = errors.Join(err, restored[name])
		}
		return page, next, err
	}
}
