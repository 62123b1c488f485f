package hosted

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// List implements provider.Inventory, target by target. A cursor is a target's name and
// what was read last of it, which has no slash. A target that cannot be listed is left
// out, with its error.
func (p *Provider[C, V]) List(ctx context.Context, cursor string) (page []provider.Holding, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	names := p.Accesses.Names()
	target, after := cursor, ""
	if cut := strings.LastIndex(cursor, "/"); cut >= 0 {
		target, after = cursor[:cut], cursor[cut+1:]
	}
	i, found := slices.BinarySearch(names, target)
	switch {
	case i == len(names):
		return nil, "", nil
	case !found: // it has left the settings while they were read, or this is the first
		after = ""
	}
	page, more, err := p.Holdings(ctx, names[i], after)
	switch {
	case err == nil && more != "":
		next = names[i] + "/" + more
	case i+1 < len(names):
		next = names[i+1] + "/"
	}
	return page, next, err
}

// Holdings implements wired.Reconciler.
func (p *Provider[C, V]) Holdings(ctx context.Context, target, after string) (page []provider.Holding, last string, err error) {
	at, err := p.visit(ctx, provider.Target{Name: target}, false)
	if err != nil {
		return nil, "", err
	}
	defer at.Leave()
	if at.said.Identity == "" { // nothing was ever made there
		return nil, "", nil
	}
	all, last, err := at.Server.List(ctx, p.Broker, after, p.Page)
	if err != nil {
		return nil, "", at.Explain(err)
	}
	for _, l := range all {
		h := provider.Holding{
			Name: l.Name, Tags: l.Label.Tags, Created: l.Label.Created.UTC(), PlanID: l.Label.PlanID,
			RetainedUntil: l.Label.RetainedUntil, Epoch: at.said.Epoch,
			Target: provider.Target{Name: target, Identity: at.said.Identity},
		}
		if h.Tags.Binding != "" { // its label has the origin of its instance
			h.Tags = h.Tags.Owner()
		}
		page = append(page, h)
	}
	return page, last, nil
}

// quarantined is what a label says of what is in quarantine.
const quarantined = "quarantine"

// Quarantine implements provider.Quarantiner: nobody gets in any more, nor does anything
// run.
func (p *Provider[C, V]) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.relock(ctx, h, func(l Label) Label {
		l.Locked = quarantined
		if !h.RetainedUntil.IsZero() {
			l.RetainedUntil = h.RetainedUntil
		}
		return l
	})
}

// Release implements provider.Quarantiner.
func (p *Provider[C, V]) Release(ctx context.Context, h provider.Holding) error {
	return p.relock(ctx, h, func(l Label) Label {
		l.Locked, l.RetainedUntil = "", time.Time{}
		return l
	})
}

// relock changes a label, and has the server be as it says then. What is gone, or of
// another owner, is left as it is.
func (p *Provider[C, V]) relock(ctx context.Context, h provider.Holding, change func(Label) Label) error {
	return p.put(ctx, h, func(seen V) (Next, error) {
		l, ok := p.Label(seen, h.Tags)
		if !ok || l.Owner() != h.Tags.Owner() {
			return Next{}, nil
		}
		if to := change(l); to.Text() != l.Text() {
			return Next{Act: p.Relabel(seen, h.Tags, to)}, nil
		}
		return Next{Act: p.Enforce(seen, h.Tags, l)}, nil
	})
}

// Adopt implements provider.Adopter.
func (p *Provider[C, V]) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) error {
	if h.Target.Identity == "" { // nothing was ever made for it
		return Gone()
	}
	return p.put(ctx, h, func(seen V) (Next, error) {
		if p.Engine.Adopt != nil {
			return p.Engine.Adopt(seen, h.Tags, former)
		}
		l, ok := p.Label(seen, h.Tags)
		switch {
		case !ok:
			return Next{}, Gone()
		case l.Owner() == h.Tags.Owner():
			return Next{}, nil
		case l.Owner() != former.Owner():
			return Next{}, NotOurs()
		}
		l.Tags = h.Tags
		return Next{Act: p.Relabel(seen, h.Tags, l)}, nil
	})
}

// put makes a change of a thing, as a whole: what is not done is an error that passes.
func (p *Provider[C, V]) put(ctx context.Context, h provider.Holding, next Decide[V]) error {
	at, learnt, err := p.At(ctx, h.Target, h.Epoch)
	if err != nil || learnt != nil {
		return err // a server that does not know the broker holds nothing of it
	}
	defer at.Leave()
	_, wait, err := at.Run(ctx, h.Tags, next)
	if err == nil && wait != nil {
		err = ErrChanged
	}
	return err
}
