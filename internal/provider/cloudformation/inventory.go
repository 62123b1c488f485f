package cloudformation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A sweep is the cursor of an inventory. In each target, the stacks come first and then the
// principals.
type sweep struct {
	Target     string `json:"target"`
	Principals bool   `json:"principals,omitempty"`
	Cursor     string `json:"cursor,omitempty"`
}

// List implements provider.Inventory. It lists one target after the other.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	names := p.Options.Targets.Names()
	at := sweep{Target: names[0]}
	if cursor != "" {
		if err := json.Unmarshal([]byte(cursor), &at); err != nil {
			return nil, "", fmt.Errorf("reading the cursor of an inventory: %w", err)
		}
	}
	s, err := p.reach(ctx, at.Target)
	var page []provider.Holding
	var next sweep
	if err == nil {
		page, next, err = p.page(ctx, s, at)
	}
	switch n := slices.Index(names, at.Target) + 1; {
	case err == nil && next != (sweep{}):
	case ctx.Err() != nil: // what is left is not listed
		return nil, "", cmp.Or(err, ctx.Err())
	case n > 0 && n < len(names): // the next target is listed also if this one cannot be reached
		next = sweep{Target: names[n]}
	default:
		return page, "", err
	}
	raw, _ := json.Marshal(next) // three texts always encode
	return page, string(raw), err
}

// page reads a page of one target. next is zero after the target's last page.
func (p *Provider) page(ctx context.Context, s *site, at sweep) (page []provider.Holding, next sweep, err error) {
	next = at
	if at.Principals {
		page, next.Cursor, err = s.principals.List(ctx, at.Cursor)
		for i := range page {
			page[i].Target = s.recorded()
		}
		if next.Cursor == "" {
			next = sweep{}
		}
		return page, next, s.explain(ctx, err)
	}
	stacks, cursor, err := s.list(ctx, func(name string) bool { return strings.HasPrefix(name, p.Scope.Stacks()) }, at.Cursor)
	if err != nil {
		return nil, sweep{}, s.explain(ctx, err)
	}
	for _, found := range stacks {
		space, ours := p.Scope.SpaceIn(found.name, found.tags)
		if found.tags.Broker != p.Broker || !ours {
			continue
		}
		id, err := label.Decode(found.labels[plan.LabelPlan])
		if err != nil {
			id = ""
		}
		page = append(page, provider.Holding{
			Name: found.name, Tags: found.tags, Created: found.created.UTC(), PlanID: id, Target: s.recorded(),
			State: *instanceState{Space: space, Stack: found.id}.state(),
		})
	}
	next.Cursor = cursor
	if next.Principals = cursor == ""; next.Principals && len(page) == 0 {
		return p.page(ctx, s, next)
	}
	return page, next, nil
}

// Quarantine implements provider.Quarantiner. It makes the keys of a principal inactive. A stack
// stays as it is: only principals reach its contents, and they are quarantined themselves.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.hold(ctx, h, provider.Quarantiner.Quarantine)
}

// Release implements provider.Quarantiner.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error {
	return p.hold(ctx, h, provider.Quarantiner.Release)
}

// hold applies act to a principal. It does nothing with a stack.
func (p *Provider) hold(ctx context.Context, h provider.Holding,
	act func(provider.Quarantiner, context.Context, provider.Holding) error) error {
	if h.Tags.Binding == "" || strings.HasPrefix(h.Name, p.Scope.Stacks()) {
		return ctx.Err()
	}
	s, learnt, err := p.at(ctx, provider.Instance{Target: h.Target})
	switch {
	case err != nil:
		return err
	case learnt != nil:
		return fmt.Errorf("the target of %q is not known", h.Name)
	}
	return s.explain(ctx, act(s.principals, ctx, h))
}
