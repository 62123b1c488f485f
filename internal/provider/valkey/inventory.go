package valkey

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
)

// pageSize is how many users of a server one page looks at.
const pageSize = 40

// List implements provider.Inventory. A cursor is a target and the last user that
// was looked at there.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	return p.o.Accesses.List(ctx, cursor, p.Holdings)
}

// Holdings implements provider.Reconciler. It lists one server from a user on; more is
// the last that was looked at, if others follow.
func (p *Provider) Holdings(ctx context.Context, target, after string) (page []provider.Holding, more string, err error) {
	_, access, err := p.o.Accesses.Reach(provider.Target{Name: target})
	if err != nil {
		return nil, "", err
	}
	s, err := p.open(ctx, target, access)
	if err != nil {
		return nil, "", err
	}
	defer s.close()
	identity, err := s.identity(ctx)
	if err != nil || identity == "" { // without one, nothing was made here
		return nil, "", err
	}
	if _, err := s.epochs(ctx); err != nil {
		return nil, "", err
	}
	users, err := s.users(ctx, namePrefix)
	if err != nil {
		return nil, "", err
	}
	users = slices.DeleteFunc(users, func(name string) bool { return name <= after })
	if len(users) > pageSize {
		users, more = users[:pageSize], users[pageSize-1]
	}
	for _, name := range users {
		u, err := s.user(ctx, name)
		if err != nil {
			return nil, "", err
		}
		if !u.exists || u.label.Instance == "" || u.label.Broker != p.o.Broker || u.label.Taken != nil {
			continue
		}
		h := provider.Holding{
			Name: name, Tags: u.label.Tags, Created: u.label.Created, PlanID: u.label.PlanID,
			Target: provider.Target{Name: target, Identity: identity}, Epoch: s.epoch,
		}
		if strings.Contains(name, retainedMark) {
			h.RetainedUntil = u.label.Until
		}
		page = append(page, h)
	}
	return page, more, nil
}

// locked is what a label says of what is in quarantine.
const locked = "quarantine"

var errQuarantine = errors.New("this is in quarantine: release it, or have it deleted")

// Quarantine implements provider.Quarantiner. An instance is put out of use with
// all its bindings, and its keys stay.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.lock(ctx, h, locked)
}

// Release implements provider.Quarantiner. A binding that was put out of use by
// itself stays so when its instance is released.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error { return p.lock(ctx, h, "") }

func (p *Provider) lock(ctx context.Context, h provider.Holding, as string) error {
	_, err := p.on(ctx, h.Target, h.Epoch, func(s *server) (provider.Status, error) { return provider.Status{}, s.lock(ctx, h, as) })
	return err
}

func (s *server) lock(ctx context.Context, h provider.Holding, as string) error {
	u, err := s.user(ctx, name(h.Tags))
	if err != nil || u.label.Tags != h.Tags { // it is gone, or another one
		return err
	}
	u.label.Locked = as
	if h.Tags.Binding != "" {
		instance, err := s.user(ctx, name(h.Tags.OfInstance()))
		if err == nil {
			err = s.bar(ctx, u, as != "" || instance.label.Locked != "")
		}
		return s.keep(ctx, err)
	}
	if err := s.label(ctx, u.name, u.label); err != nil {
		return err
	}
	users, err := s.users(ctx, bindings(h.Tags))
	if err != nil {
		return err
	}
	for _, name := range users {
		b, err := s.user(ctx, name)
		if err == nil && b.label.Binding != "" {
			err = s.bar(ctx, b, as != "" || b.label.Locked != "")
		}
		if err != nil {
			return err
		}
	}
	return s.save(ctx)
}

// bar shuts a binding's user out, or lets it in again. Its sessions end.
func (s *server) bar(ctx context.Context, u user, out bool) error {
	if !out {
		return s.set(ctx, u.name, append([]string{"on"}, channels(u.label)...)...)
	}
	if err := s.set(ctx, u.name, append([]string{"off"}, channels(u.label)...)...); err != nil {
		return err
	}
	return s.kick(ctx, u.name)
}

// keep saves what was changed without an error.
func (s *server) keep(ctx context.Context, err error) error {
	if err != nil {
		return err
	}
	return s.save(ctx)
}
