package postgres

import (
	"context"

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
	if m.name == "trusts-absence" && is.Identity != "" {
		is.Identity = "any"
	}
	return is, err
}

func (m mutant) look(ctx context.Context, n names) (standing, error) {
	now, err := m.server.look(ctx, n)
	if l, ok := now.login.label(); m.name == "leaves-logins" && ok && l.Locked == lockedUnbind {
		now.login = role{}
	}
	return now, err
}

func (m mutant) do(ctx context.Context, n names, seen standing, a act) error {
	switch made := a.(type) {
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
		if err := m.server.do(ctx, n, seen, made); err != nil {
			return err
		}
		now, err := m.server.look(ctx, n)
		if err != nil {
			return err
		}
		return m.server.do(ctx, n, now, unlockLogin{label: label, login: made.verifier != ""})
	}
	return m.server.do(ctx, n, seen, a)
}

func (m mutant) list(ctx context.Context, after string, limit int) ([]listed, error) {
	all, err := m.server.list(ctx, after, limit)
	for i := range all {
		if l, ok := hosted.ParseLabel(all[i].comment); m.name == "lists-all" && ok {
			l.Broker = m.broker
			all[i].comment = l.Text()
		}
	}
	return all, err
}
