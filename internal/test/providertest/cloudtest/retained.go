package cloudtest

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
)

// settings are what instances record of a plan.
type settings struct {
	// RetainDays is how long what is deleted is retained, as the plan's setting
	// retain_days says; zero for not at all.
	RetainDays float64 `json:"retain_days,omitempty"`
}

// Check is the demo's, which knows the settings retain_days and secret, too.
func Check(plan provider.Checked) (json.RawMessage, error) {
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

// movedFrom is the retained thing that the instance is made of, and is to become
// again if it never is ready; its name is empty for none.
func movedFrom(in provider.Instance) (t Thing) {
	if from := in.Source; from != nil && from.Retained != nil {
		t = Thing{Name: from.Retained.Name, Tags: from.Tags(in.Broker), RetainedUntil: from.Retained.Until}
	}
	return t
}

// keptOf is as what a deleted instance is retained; its name is empty for not at all.
func (p *Provider) keptOf(in provider.Instance) Thing {
	if t := movedFrom(in); t.Name != "" {
		return t
	}
	var recorded settings
	if in.Unfinished || in.PlanID == "" || json.Unmarshal(in.Snapshot, &recorded) != nil || recorded.RetainDays == 0 {
		return Thing{}
	}
	tags := provider.TagsOf(in)
	keep := time.Duration(recorded.RetainDays * float64(24*time.Hour))
	name := provider.Name(namePrefix, "retained", tags.Retained())
	return Thing{Name: name, Tags: tags, RetainedUntil: p.Cloud.now().UTC().Add(keep)}
}

// retain has the thing be under the name of what is retained.
func (c client) retain(ctx context.Context, v, kept Thing) error {
	v.Tags, v.RetainedUntil, v.Source = kept.Tags, kept.RetainedUntil, ""
	return c.replace(ctx, v, kept.Name)
}

// move has the retained thing be the wanted one.
func (c client) move(ctx context.Context, want, kept Thing) error {
	v, err := c.retained(ctx, kept)
	if errors.Is(err, ErrNotFound) {
		return provider.Failf("What was retained of the deleted instance is not there any more. Delete this instance.")
	}
	if err != nil {
		return err
	}
	v.Tags, v.Plan, v.Config, v.Source, v.RetainedUntil = want.Tags, want.Plan, want.Config, kept.Name, time.Time{}
	return c.replace(ctx, v, want.Name)
}

// retained finds what is retained under the name and tags.
func (c client) retained(ctx context.Context, of Thing) (Thing, error) {
	v, err := c.get(ctx, of.Name)
	if err == nil && (v.Tags != of.Tags || v.RetainedUntil.IsZero()) {
		return v, notOurs()
	}
	return v, err
}

// isRetained answers for a deletion that finds nothing any more.
func (c client) isRetained(ctx context.Context, in provider.Instance, kept Thing) (provider.Status, error) {
	st := provider.Status{Done: true, Percent: 100, Description: "It is deleted."}
	if kept.Name == "" || movedFrom(in).Name != "" {
		return st, nil
	}
	v, err := c.retained(ctx, kept)
	if err == nil {
		st.Retained = &provider.Retained{Name: v.Name, Until: v.RetainedUntil}
	}
	return st, gone(err)
}

// RemoveRetained implements provider.Retainer.
func (p *Provider) RemoveRetained(ctx context.Context, h provider.Holding) (provider.Status, error) {
	c, _, err := p.at(ctx, h.Target)
	if err != nil {
		return provider.Status{}, err
	}
	for range maxTries {
		v, err := c.retained(ctx, Thing{Name: h.Name, Tags: h.Tags})
		if errors.Is(err, ErrNotFound) {
			return provider.Status{Done: true, Percent: 100, Description: "What was retained is removed."}, nil
		}
		if err != nil {
			return provider.Status{}, err
		}
		if err := c.remove(ctx, v); err != nil {
			return provider.Status{}, err
		}
	}
	return provider.Status{}, ErrChanged
}
