package cloudtest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/demo"
)

// settings are what instances record of a plan.
type settings struct {
	// RetainDays is how long what is deleted is retained, as the plan's setting
	// retain_days says; zero for not at all.
	RetainDays float64 `json:"retain_days,omitempty"`
}

// Check is the demo's, which knows the settings retain_days and secret, too.
func Check(plan check.Plan) (json.RawMessage, error) {
	var recorded settings
	plan.Settings = maps.Clone(plan.Settings)
	recorded.RetainDays, _ = plan.Settings["retain_days"].(float64)
	delete(plan.Settings, "retain_days")
	delete(plan.Settings, "secret")
	if _, err := demo.Check(plan); err != nil {
		return nil, err
	}
	return json.Marshal(recorded)
}

// Quarantine implements provider.Quarantiner. What is retained opens to no principal that
// it has now, also once it is released: its owner is another one then.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	if p.Mutant == "open-in-quarantine" {
		return nil
	}
	if err := p.relabel(ctx, h, func(v *Thing) {
		v.Locked = true
		if !h.RetainedUntil.IsZero() || p.Mutant == "forgets-date" {
			v.RetainedUntil = h.RetainedUntil
		}
	}); err != nil || h.RetainedUntil.IsZero() {
		return err
	}
	return p.shut(ctx, h)
}

// Release implements provider.Quarantiner.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error {
	if p.Mutant == "never-released" {
		return nil
	}
	return p.relabel(ctx, h, func(v *Thing) { v.Locked, v.RetainedUntil = false, time.Time{} })
}

// relabel changes what the thing says of itself, if it is of the owner and not as change
// has it.
func (p *Provider) relabel(ctx context.Context, h provider.Holding, change func(*Thing)) error {
	c, _, err := p.at(ctx, h.Target)
	if err != nil {
		return err
	}
	v, err := c.get(ctx, p.Name(h.Tags))
	if err != nil || v.Tags.Owner() != h.Tags.Owner() {
		return gone(err)
	}
	to := v
	change(&to)
	if to.Locked == v.Locked && to.RetainedUntil.Equal(v.RetainedUntil) {
		return nil
	}
	return gone(c.replace(ctx, to))
}

// shut locks all principals of what is retained.
func (p *Provider) shut(ctx context.Context, h provider.Holding) error {
	c, _, err := p.at(ctx, h.Target)
	for cursor := ""; err == nil; {
		var page []Thing
		if page, cursor, err = c.list(ctx, cursor); err != nil {
			break
		}
		for _, v := range page {
			if v.On != p.Name(h.Tags) || v.Tags.OfInstance() != h.Tags.Owner() || v.Locked || p.Mutant == "keeps-keys" {
				continue
			}
			v.Locked = true
			if err := gone(c.replace(ctx, v)); err != nil {
				return err
			}
		}
		if cursor == "" {
			return nil
		}
	}
	return err
}

// Adopt implements provider.Adopter.
func (p *Provider) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) error {
	c, _, err := p.at(ctx, h.Target)
	if err != nil {
		return err
	}
	v, err := c.get(ctx, p.Name(h.Tags))
	switch {
	case errors.Is(err, ErrNotFound):
		return goneForGood()
	case err != nil:
		return err
	case v.Tags.Owner() == h.Tags.Owner():
		return nil
	case v.Tags.Owner() != former.Owner() && p.Mutant != "adopts-any":
		return notOurs()
	}
	v.Tags = h.Tags
	return c.replace(ctx, v)
}

// goneForGood fails what was to have something of a deleted instance.
func goneForGood() error {
	return provider.Failf("The retained data of the deleted instance no longer exists. Delete this instance.")
}
