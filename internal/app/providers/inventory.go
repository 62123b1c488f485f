package providers

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/reaper"
)

// Inventory returns options that let the reaper list the providers' things, and do nothing else with them.
func Inventory(
	records *ledger.Ledger, whose ledger.Identity, dryRun bool, wired map[string]wired.Provider,
) *reaper.InventoryOptions {
	listers := map[string]reaper.Lister{}
	for name, holds := range Inventories(records, wired) {
		listers[name] = reaper.Lister{Targets: wired[name].Targets, List: func(ctx context.Context, cursor string) (
			things []lifecycle.Thing, next string, err error,
		) {
			page, next, err := holds.List(ctx, cursor)
			for _, h := range page {
				things = append(things, thingOf(h))
			}
			return things, next, err
		}}
	}
	return &reaper.InventoryOptions{Records: records, Listers: listers, Whose: whose, DryRun: dryRun}
}

// Inventories returns the providers' inventories, without targets that were restored or that another broker changes.
func Inventories(records *ledger.Ledger, providers map[string]wired.Provider) map[string]provider.Inventory {
	holds := map[string]provider.Inventory{}
	for name, w := range providers {
		if w.Inventory == nil { // the provider holds no things
			continue
		}
		known := func(ctx context.Context, identity string) (target.Known, error) {
			known, err := records.Epoch(ctx, name, identity)
			return known.Known, err
		}
		holds[name] = wired.Guarded{Inventory: w.Inventory, Known: known}
	}
	return holds
}

// thingOf describes a thing of an inventory in the reaper's terms.
func thingOf(h provider.Holding) lifecycle.Thing {
	return lifecycle.Thing{
		Name: h.Name, Broker: h.Tags.Broker, Incarnation: h.Tags.Incarnation, Of: h.Tags.Of,
		Target: h.Target, State: h.State.Encode(),
		Origin: h.Tags.Origin, Created: h.Created, KeptUntil: h.RetainedUntil, PlanID: h.PlanID,
		Key: lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding},
	}
}
