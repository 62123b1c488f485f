package providers

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/reaper"
)

// inventoryEvery is the time between two comparisons of the existing things with the records.
const inventoryEvery = time.Hour

// Inventory returns options that let the reaper list the providers' things, and do nothing else with them.
func Inventory(
	records *ledger.Ledger, whose ledger.Identity, dryRun bool, wired map[string]wired.Provider,
) *reaper.InventoryOptions {
	o := &reaper.InventoryOptions{
		Records: records, Listers: map[string]reaper.Lister{}, Whose: whose, Every: inventoryEvery, DryRun: dryRun,
		Targets: map[string]func(context.Context) ([]string, error){},
	}
	for name, holds := range Inventories(records, wired) {
		o.Listers[name] = lister{holds}
		if targets := wired[name].Targets; targets != nil {
			o.Targets[name] = targets
		}
	}
	return o
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

// A lister presents a provider's inventory in the reaper's terms.
type lister struct{ provider.Inventory }

// List implements reaper.Lister.
func (l lister) List(ctx context.Context, cursor string) ([]lifecycle.Thing, string, error) {
	page, next, err := l.Inventory.List(ctx, cursor)
	things := make([]lifecycle.Thing, 0, len(page))
	for _, h := range page {
		things = append(things, lifecycle.Thing{
			Name: h.Name, Broker: h.Tags.Broker, Incarnation: h.Tags.Incarnation, Of: h.Tags.Of,
			Target: h.Target, State: h.State.Encode(),
			Origin: h.Tags.Origin, Created: h.Created, KeptUntil: h.RetainedUntil, PlanID: h.PlanID,
			Key: lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding},
		})
	}
	return things, next, err
}
