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

// SetPage sets how much a page of the inventory holds.
func (p *Provider) SetPage(n int) { p.Page = n }

// SetStatementTimeout has the server end statements after that, from the next step on of
// a provider that keeps no connections.
func (p *Provider) SetStatementTimeout(long string) {
	open := p.Open
	p.Open = func(access hosted.Access, pool int) (server, error) {
		s, err := open(access, pool)
		if real, ok := s.(*sqlServer); ok {
			real.cfg.RuntimeParams["statement_timeout"] = long
		}
		return s, err
	}
}

// A Caller makes a call, which do does, or has it go wrong.
type Caller func(ctx context.Context, do func() error) error

// Wrap has each call to a server go through a caller.
func (p *Provider) Wrap(call Caller) {
	open := p.Open
	p.Open = func(access hosted.Access, pool int) (server, error) {
		s, err := open(access, pool)
		return wrapped{s, call}, err
	}
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
