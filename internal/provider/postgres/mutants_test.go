package postgres

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Mutate has the provider make a mistake of that name; none for the empty one.
func (p *Provider) Mutate(name string) {
	if name == "" {
		return
	}
	open := p.Open
	p.Open = func(access hosted.Access, pool int) (server, error) {
		s, err := open(access, pool)
		return mutant{s, name, p.Broker}, err
	}
}

// A mutant is a server that is asked for something else than it should be.
type mutant struct {
	server
	name, broker string
}

func (m mutant) Identify(ctx context.Context, broker string, write bool) (hosted.Said, error) {
	is, err := m.server.Identify(ctx, broker, write)
	if m.name == "trusts-absence" {
		is.Identity = "any"
	}
	return is, err
}

func (m mutant) Look(ctx context.Context, t provider.Tags) (seen, error) {
	now, err := m.server.Look(ctx, t)
	if l, ok := now.login.label(); m.name == "leaves-logins" && ok && l.Locked == lockedUnbind {
		now.login = role{}
	}
	return now, err
}

func (m mutant) Do(ctx context.Context, t provider.Tags, was seen, a any) error {
	switch made := a.(type) {
	case relabel:
		if m.name == "keeps-members" {
			made.retained = false
			a = made
		}
	case lockLogin:
		if m.name == "open-in-quarantine" && made.keep {
			a = unlockLogin{label: made.label, login: true}
		}
	case unlockLogin:
		if m.name == "never-released" {
			made.login = false
			a = made
		}
	case openLogin:
		if m.name == "no-password" {
			made.verifier = ""
			a = made
		}
	case createLogin:
		if m.name == "no-password" {
			made.verifier = ""
			a = made
		}
		if m.name != "labels-later" {
			break
		}
		label := made.label
		made.label = ""
		if err := m.server.Do(ctx, t, was, made); err != nil {
			return err
		}
		now, err := m.server.Look(ctx, t)
		if err != nil {
			return err
		}
		return m.server.Do(ctx, t, now, unlockLogin{label: label, login: made.verifier != ""})
	}
	return m.server.Do(ctx, t, was, a)
}

func (m mutant) List(ctx context.Context, broker, after string, limit int) ([]hosted.Listed, string, error) {
	if m.name != "lists-all" {
		return m.server.List(ctx, broker, after, limit)
	}
	page, last, err := m.server.List(ctx, "", after, limit)
	for i := range page {
		page[i].Label.Broker = m.broker
	}
	return page, last, err
}
