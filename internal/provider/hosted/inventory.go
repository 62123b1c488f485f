package hosted

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// List implements provider.Inventory, target by target. A cursor is a target's name, a slash, and
// the last name that was read there, which has no slash. List skips a target that cannot be listed,
// and returns its error.
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
	case !found: // this is the first page, or the target has left the settings since the last one
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

// quarantined is the value of Locked in the label of a thing in quarantine.
const quarantined = "quarantine"

// Quarantine implements provider.Quarantiner: it admits nobody any more, and ends the sessions.
func (p *Provider[C, V]) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.relock(ctx, h, quarantined)
}

// Release implements provider.Quarantiner.
func (p *Provider[C, V]) Release(ctx context.Context, h provider.Holding) error {
	h.RetainedUntil = time.Time{}
	return p.relock(ctx, h, "")
}

// relock writes into a label why the thing is locked, if it is, and until when it is retained, and
// makes the server enforce that. A quarantine without a date leaves the date of a retained instance.
// relock leaves a thing alone that is gone or belongs to another owner.
func (p *Provider[C, V]) relock(ctx context.Context, h provider.Holding, locked string) error {
	return p.put(ctx, h, func(seen V) (any, error) {
		l, _ := seen.Label(h.Tags)
		if l.Owner() != h.Tags.Owner() {
			return nil, nil
		}
		to := l
		to.Locked = locked
		if locked == "" || !h.RetainedUntil.IsZero() {
			to.RetainedUntil = h.RetainedUntil
		}
		if to.Text() != l.Text() {
			return seen.Relabel(h.Tags, to), nil
		}
		return seen.Enforce(h.Tags, l), nil
	})
}

// Adopt implements provider.Adopter.
func (p *Provider[C, V]) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) error {
	if h.Target.Identity == "" { // nothing was ever made for it
		return Gone()
	}
	return p.put(ctx, h, func(seen V) (any, error) {
		if p.Engine.Adopt != nil {
			return p.Engine.Adopt(seen, h.Tags, former)
		}
		l, _ := seen.Label(h.Tags)
		switch {
		case l.Instance == "":
			return nil, Gone()
		case l.Owner() == h.Tags.Owner():
			return nil, nil
		case l.Owner() != former.Owner():
			return nil, NotOurs()
		}
		l.Tags = h.Tags
		return seen.Relabel(h.Tags, l), nil
	})
}

// put makes the whole change of a thing, or returns a passing error.
func (p *Provider[C, V]) put(ctx context.Context, h provider.Holding, next Decide[V]) error {
	if h.Target.Identity == "" {
		return nil // nothing was ever made for it
	}
	at, err := p.At(ctx, h.Target, h.Epoch)
	if err != nil {
		return err
	}
	defer at.Leave()
	_, err = at.Run(ctx, h.Tags, next)
	if _, unfinished := errors.AsType[*Later](err); unfinished {
		return ErrChanged
	}
	return err
}
