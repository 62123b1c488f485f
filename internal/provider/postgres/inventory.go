package postgres

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
)

// List implements provider.Inventory, target by target. A cursor is the name of a
// target, a slash, and the last name that was read there.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	return p.Accesses.List(ctx, cursor, p.Holdings)
}

// listAt is a page of one target; next is the name that it ends with.
func (p *Provider) listAt(ctx context.Context, target, after string) (page []provider.Holding, next string, err error) {
	s, _, _, done, err := p.Reach(provider.Target{Name: target})
	if err != nil {
		return nil, "", err
	}
	defer done()
	at, err := s.Identify(ctx, p.Broker, false)
	if err != nil {
		return nil, "", err
	}
	things, err := s.list(ctx, after, p.page)
	if err != nil {
		return nil, "", err
	}
	for _, t := range things {
		label, ok := (thing{comment: t.comment}).label()
		if !ok || label.Broker != p.Broker {
			continue
		}
		h := provider.Holding{
			Name: t.name, Tags: label.Tags, Created: label.Created.UTC(), PlanID: label.PlanID,
			Target: provider.Target{Name: target, Identity: at.Identity}, Epoch: at.Epoch,
		}
		if t.name == retainedNames(label.Tags).owner {
			h.RetainedUntil = factsOf(label).Until
		}
		page = append(page, h)
	}
	if len(things) == p.page {
		next = things[len(things)-1].name
	}
	return page, next, nil
}

// Holdings implements provider.Reconciler.
func (p *Provider) Holdings(ctx context.Context, target, cursor string) ([]provider.Holding, string, error) {
	page, next, err := p.listAt(ctx, target, cursor)
	return page, next, p.explain(target, err)
}

// Quarantine implements provider.Quarantiner.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.put(ctx, h, func(now standing) (decision, error) { return quarantine(h.Tags, now) })
}

// Release implements provider.Quarantiner.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error {
	return p.put(ctx, h, func(now standing) (decision, error) { return release(h.Tags, now) })
}

// put has a thing be in quarantine, or out of it.
func (p *Provider) put(ctx context.Context, h provider.Holding, next func(standing) (decision, error)) error {
	in := provider.Instance{Broker: h.Tags.Broker, Platform: h.Tags.Platform, ID: h.Tags.Instance, Target: h.Target, Epoch: h.Epoch}
	s, learnt, err := p.at(ctx, in)
	if err != nil || learnt != nil {
		return err // a server that does not know the broker holds nothing of it
	}
	defer s.Leave()
	_, unfinished, err := s.run(ctx, namesOf(h.Tags), next)
	if err == nil && unfinished != nil {
		err = errChanged
	}
	return err
}

// quarantine is what comes next until the thing opens to nobody.
func quarantine(tags provider.Tags, now standing) (decision, error) {
	if tags.Binding == "" {
		label, ours := now.owner.label()
		switch {
		case !ours || label.Tags != tags:
		case label.Locked == "" && now.database.exists():
			label.Locked = lockedQuarantine
			return decision{act: closeInstance{label.Text()}}, nil
		case label.Locked == lockedQuarantine && now.database.sessions > 0:
			return decision{act: endInstance{}}, nil
		}
		return decision{}, nil
	}
	label, ours := now.login.label()
	switch {
	case !ours || label.Tags != tags || label.Locked == lockedUnbind:
		return decision{}, nil
	case label.Locked == "":
		label.Locked = lockedQuarantine
		return decision{act: lockLogin{label: label.Text(), keep: true}}, nil
	case now.login.sessions > 0:
		return decision{act: endSessions{}}, nil
	}
	return decision{}, nil
}

// release is what comes next until the thing is as it was before.
func release(tags provider.Tags, now standing) (decision, error) {
	of := now.owner.thing
	if tags.Binding != "" {
		of = now.login.thing
	}
	label, ours := of.label()
	if !ours || label.Tags != tags || label.Locked != lockedQuarantine {
		return decision{}, nil
	}
	label.Locked = ""
	if tags.Binding != "" {
		return decision{act: unlockLogin{label: label.Text(), login: factsOf(label).Ready, readOnly: factsOf(label).ReadOnly}}, nil
	}
	return decision{act: openInstance{label.Text()}}, nil
}
