package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/reaper"
)

// A Rebuilt is what was derived again, and what could not be.
type Rebuilt struct {
	Instances []string `json:"instances,omitempty"`
	// Rotate are bindings whose credentials are lost: applications go on with
	// what they have, and nobody can fetch it any more.
	Rotate []string `json:"rotate,omitempty"`
	// Kept counts what has a record already.
	Kept int `json:"kept"`
	// Gone are instances that have a record, and do not exist: they were deleted
	// after the time to which the table was restored.
	Gone []string `json:"gone,omitempty"`
	// Unknown are things of which too little is said, and why.
	Unknown []string `json:"unknown,omitempty"`
}

// Rebuild gives a record to everything that exists and has none, as their tags
// and plans say. What has a record is left as it is. In the end the table says
// whose it is: the reaper goes on.
func (c *Console) Rebuild(ctx context.Context) (out Rebuilt, _ error) {
	before, err := c.Records.Scan(ctx)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil { // what cannot be read is beside the rest
		out.Unknown = append(out.Unknown, fmt.Sprintf("records that cannot be read: %v", err))
	}
	holdings := map[string][]provider.Holding{}
	for name, inventory := range c.Inventories {
		for cursor := ""; ; {
			page, next, err := inventory.List(ctx, cursor)
			if err != nil {
				return out, fmt.Errorf("listing what provider %q holds: %w", name, err)
			}
			holdings[name] = append(holdings[name], page...)
			if cursor = next; cursor == "" {
				break
			}
		}
	}
	// Instances first: a binding is of the incarnation that its instance has.
	for _, bindings := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(holdings)) {
			for _, h := range holdings[name] {
				if (h.Tags.Binding != "") != bindings {
					continue
				}
				if err := c.rebuild(ctx, name, h, &out); err != nil {
					return out, err
				}
			}
		}
	}
	if err := c.gone(ctx, before.Instances, holdings, &out); err != nil {
		return out, err
	}
	return out, reaper.Resume(ctx, c.Records, c.Deployment, c.Now())
}

// gone finds the instances that were ready before anything was listed, are so
// still, and were not in any list.
func (c *Console) gone(ctx context.Context, before []lifecycle.Instance, holdings map[string][]provider.Holding, out *Rebuilt) error {
	exists := map[lifecycle.Key]bool{}
	for _, of := range holdings {
		for _, h := range of {
			exists[lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding}] = true
		}
	}
	for _, was := range before {
		if _, listed := holdings[c.providerOf(was)]; !listed || was.State != lifecycle.Ready || exists[was.Key] {
			continue
		}
		i, err := c.Records.Instance(ctx, was.Key, c.Now())
		if err != nil {
			return err
		}
		if i.State == lifecycle.Ready && i.Incarnation == was.Incarnation {
			out.Gone = append(out.Gone, was.Key.Instance)
		}
	}
	return nil
}

// providerOf names the provider that an instance is of; empty if its plan has
// left the catalog.
func (c *Console) providerOf(i lifecycle.Instance) string {
	offering, _, _ := c.Catalog(i.Attributes.ServiceID, i.Attributes.PlanID)
	return offering.Provider
}

func (c *Console) rebuild(ctx context.Context, providerName string, h provider.Holding, out *Rebuilt) error {
	now := c.Now()
	found := lifecycle.Stray{
		Key:         lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding},
		Incarnation: h.Tags.Incarnation, Provider: providerName, Created: h.Created,
	}
	if found.Key.Platform == "" || found.Key.Instance == "" || found.Incarnation == "" {
		out.Unknown = append(out.Unknown, h.Name+": its tags do not say whose it is")
		return nil
	}
	i, err := c.Records.Instance(ctx, found.Key.InstanceKey(), now)
	if err != nil {
		return err
	}
	if found.Key.IsBinding() {
		return c.rebuildBinding(ctx, found, i, h, out)
	}
	if i.State != lifecycle.Absent {
		out.Kept++
		return nil
	}
	service, ok := c.ServiceOf(h.PlanID)
	if !ok {
		out.Unknown = append(out.Unknown, fmt.Sprintf("%s: no offering has its plan %q", h.Name, h.PlanID))
		return nil
	}
	offering, _, _ := c.Catalog(service, h.PlanID)
	i, err = i.Rebuild(found, lifecycle.Attributes{ServiceID: service, PlanID: h.PlanID, DashboardURL: offering.DashboardOf(found.Key.Instance)}, now)
	if err == nil {
		err = c.Records.Commit(ctx, ledger.PutInstance(i))
	}
	if errors.Is(err, ledger.ErrConflict) {
		out.Kept++
		return nil
	}
	out.Instances = append(out.Instances, found.Key.Instance)
	return err
}

func (c *Console) rebuildBinding(ctx context.Context, found lifecycle.Stray, i lifecycle.Instance, h provider.Holding, out *Rebuilt) error {
	b, err := c.Records.Binding(ctx, found.Key, c.Now())
	if err != nil {
		return err
	}
	pointer, err := c.Records.Pointer(ctx, found.Key.Platform, found.Key.Binding)
	switch {
	case err != nil:
		return err
	case b.State != lifecycle.Absent:
		out.Kept++
		return nil
	case i.State != lifecycle.Ready:
		out.Unknown = append(out.Unknown, h.Name+": its instance does not exist, or changes just now")
		return nil
	case pointer.Version > 0 && pointer.Key != found.Key:
		out.Unknown = append(out.Unknown, h.Name+": another instance has a binding with its id")
		return nil
	}
	b, err = b.Rebuild(found, i, c.Now())
	if err == nil {
		err = c.Records.Commit(ctx, ledger.PutBinding(b), ledger.PutPointer(lifecycle.Pointer{Version: pointer.Version, Key: found.Key}), ledger.CheckInstance(i))
	}
	if errors.Is(err, ledger.ErrConflict) {
		out.Kept++
		return nil
	}
	out.Rotate = append(out.Rotate, found.Key.Instance+"/"+found.Key.Binding)
	return err
}
