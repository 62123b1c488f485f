package postgres

import (
	"context"
	"log/slog"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// over has the provider speak to what instead makes of each server.
func (p *Provider) over(instead func(server) server) {
	open := p.Open
	p.Open = func(access hosted.Access, pool int) (server, error) {
		s, err := open(access, pool)
		return instead(s), err
	}
}

// SetStatementTimeout has the server end statements after that, from the next step on of a provider that keeps no connections.
func (p *Provider) SetStatementTimeout(long string) {
	p.over(func(s server) server {
		if real, ok := s.(*sqlServer); ok {
			real.cfg.RuntimeParams["statement_timeout"] = long
		}
		return s
	})
}

// A Caller makes a call, which do does, or has it go wrong.
type Caller func(ctx context.Context, do func() error) error

// Wrap has each call to a server go through a caller.
func (p *Provider) Wrap(call Caller) {
	p.over(func(s server) server { return wrapped{s, call} })
}

// wrapped is a server whose calls go through a caller.
type wrapped struct {
	server
	call Caller
}

func (w wrapped) Identify(ctx context.Context, broker string, write bool) (is hosted.Said, err error) {
	err = w.call(ctx, func() (err error) { is, err = w.server.Identify(ctx, broker, write); return err })
	return is, err
}

func (w wrapped) Advance(ctx context.Context, broker string, seen, to target.Epoch) (did bool, err error) {
	err = w.call(ctx, func() (err error) { did, err = w.server.Advance(ctx, broker, seen, to); return err })
	return did, err
}

func (w wrapped) Look(ctx context.Context, t provider.Tags) (now seen, err error) {
	err = w.call(ctx, func() (err error) { now, err = w.server.Look(ctx, t); return err })
	return now, err
}

// Do of a call that is late is made after its step, whose connections are closed.
func (w wrapped) Do(ctx context.Context, t provider.Tags, was seen, act any) error {
	return w.call(ctx, func() error { return w.server.Do(context.WithoutCancel(ctx), t, was, act) })
}

func (w wrapped) List(ctx context.Context, broker, after string, limit int) (page []hosted.Listed, last string, err error) {
	err = w.call(ctx, func() (err error) { page, last, err = w.server.List(ctx, broker, after, limit); return err })
	return page, last, err
}

// Undone has a session give up a batch that the server has refused; by wraps its connection.
func Undone(ctx context.Context, a hosted.Access, by func(net.Conn) net.Conn) error {
	s, err := openSQL(a, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer s.Close()
	s.cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		return by(c), err
	}
	return s.with(ctx, func(c sqlSession) error {
		return (&emptying{work: work{sqlSession: c}, in: c}).undone(&pgconn.PgError{Code: "42501"})
	})
}

// Mutate has the provider make a mistake of that name; none for the empty one.
func (p *Provider) Mutate(name string) {
	p.over(func(s server) server { return mutant{s, name, p.Broker} })
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
		made.retained = made.retained && m.name != "keeps-members"
		a = made
	case lockLogin:
		if m.name == "open-in-quarantine" && made.keep {
			a = unlockLogin{label: made.label, login: true}
		}
	case unlockLogin:
		made.login = made.login && m.name != "never-released"
		a = made
	case openLogin:
		made.verifier = m.verifier(made.verifier)
		a = made
	case createLogin:
		label := made.label
		made.verifier = m.verifier(made.verifier)
		if m.name != "labels-later" {
			return m.server.Do(ctx, t, was, made)
		}
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

func (m mutant) verifier(given string) string {
	if m.name == "no-password" {
		return ""
	}
	return given
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
