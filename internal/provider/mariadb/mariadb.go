// Package mariadb makes databases on a MariaDB server that many share: for an
// instance a database, for a binding an account of its own. It decides what comes
// next (next.go) from what stands on the server (server.go), and leaves the
// statements to one file (statements.go). How the server is reached is its caller's.
package mariadb

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Options are what a Provider is made with.
type Options struct {
	// Broker is the broker's identity.
	Broker string
	// Accesses are today's targets. Access.Database is the broker's own.
	Accesses hosted.Accesses
	Now      func() time.Time
	// Log is told what an operator has to know; nil for nothing.
	Log *slog.Logger
	// Pool is how many connections are kept for the steps to come; 0 to close each
	// with its step, as a function does that may be frozen after it.
	Pool int
}

// pageSize is how much a page of the inventory holds.
const pageSize = 200

// A Provider is the adapter.
type Provider struct {
	broker   string
	accesses hosted.Accesses
	now      func() time.Time
	log      *slog.Logger
	pool     int
	page     int
	// open is the way to a server; a test has another one.
	open func(access hosted.Access, pool int) (server, error)

	mu   sync.Mutex
	kept map[string]server // by the target's name, where there is a pool
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Inventory   = (*Provider)(nil)
	_ provider.Quarantiner = (*Provider)(nil)
	_ provider.Retainer    = (*Provider)(nil)
)

// New makes a provider. It reaches no server yet. Close it in the end.
func New(o Options) *Provider {
	return &Provider{
		broker: o.Broker, accesses: o.Accesses, now: o.Now, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), pool: o.Pool,
		page: pageSize, open: openSQL, kept: map[string]server{},
	}
}

// Close ends the connections that are kept.
func (p *Provider) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.kept {
		s.close()
	}
	clear(p.kept)
}

// reach is the way to a target, and what ends it with the step.
func (p *Provider) reach(t provider.Target) (s server, name string, access hosted.Access, done func(), err error) {
	name, access, err = p.accesses.Reach(t)
	if err != nil {
		return nil, name, access, nil, err
	}
	if p.pool == 0 {
		if s, err = p.open(access, 0); err != nil {
			return nil, name, access, nil, err
		}
		return s, name, access, s.close, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.kept[name]
	if !ok {
		if s, err = p.open(access, p.pool); err != nil {
			return nil, name, access, nil, err
		}
		p.kept[name] = s
	}
	return s, name, access, func() {}, nil
}

// A site is a server whose identity is proven, in one step.
type site struct {
	server
	access hosted.Access
	tls    bool // it is reached by TLS, and so are its users to be
	close  func()
	log    *slog.Logger
}

// at reaches the server that a thing is on. The first step of an instance learns
// its identity and makes nothing: what it makes is looked for there.
func (p *Provider) at(ctx context.Context, t provider.Target) (*site, *provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s, name, access, done, err := p.reach(t)
	if err != nil {
		return nil, nil, err
	}
	who, err := s.identify(ctx, p.broker, true)
	if err != nil {
		done()
		return nil, nil, explain(err)
	}
	learnt, err := hosted.Learn(t, name, who)
	if err != nil || learnt != nil {
		done()
		return nil, learnt, err
	}
	return &site{server: s, access: access, tls: access.TLS != hosted.TLSDisable, close: done, log: p.log}, nil, nil
}

// maxActs is how many changes one step makes at most.
const maxActs = 16

// Pauses between steps.
const (
	busyPause = time.Second
	lockPause = 5 * time.Second
)

// run looks and acts until there is nothing to do. Whoever else works at the same
// thing is met with another look; a lock that somebody else holds, with a pause.
// It ends with what stands then.
func (s *site) run(ctx context.Context, n names, next func(standing) (act, error)) (now standing, _ *provider.Status, _ error) {
	for range maxActs {
		now, err := s.look(ctx, n)
		if err != nil {
			return now, nil, explain(err)
		}
		a, err := next(now)
		if err != nil || a == nil {
			return now, nil, err
		}
		err = s.do(ctx, n, now, a)
		switch {
		case err == nil || errors.Is(err, errChanged):
		case errors.Is(err, errSessions):
			return now, &provider.Status{Percent: 50, Description: "Waiting for connections to end", After: busyPause}, nil
		case meaningOf(err) == meansLocked:
			s.log.Warn("a lock on the server holds a step up; if it stays, look for a prepared transaction with XA RECOVER, and roll it back",
				"database", now.name)
			return now, &provider.Status{Percent: 50, Description: "Waiting for somebody's lock", After: lockPause}, nil
		case meaningOf(err) != meansBusy:
			return now, nil, explain(err)
		}
	}
	return now, &provider.Status{Percent: 50, Description: "Working", After: busyPause}, nil
}

// settle is the rest of a step: unfinished is its answer, else done is.
func settle(unfinished *provider.Status, err error, done provider.Status) (provider.Status, error) {
	switch {
	case err != nil:
		return provider.Status{}, err
	case unfinished != nil:
		return *unfinished, nil
	}
	done.Done, done.Percent = true, 100
	return done, nil
}

// step is one of an instance or a binding.
func (p *Provider) step(
	ctx context.Context, t provider.Target, work func(*site) (*provider.Status, error),
) (provider.Status, error) {
	s, learnt, err := p.at(ctx, t)
	if err != nil || learnt != nil {
		return settle(learnt, err, provider.Status{})
	}
	defer s.close()
	unfinished, err := work(s)
	return settle(unfinished, err, provider.Status{})
}

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, in.Target, func(s *site) (*provider.Status, error) {
		w, err := p.wanted(ctx, s, in)
		if err != nil {
			return nil, err
		}
		next := w.provision
		if from := in.Source; from != nil {
			next = w.move(ctx, s, *from)
		}
		_, unfinished, err := s.run(ctx, w.names, next)
		return unfinished, err
	})
}

// Update implements provider.Provider.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, in.Target, func(s *site) (*provider.Status, error) {
		w, err := p.wanted(ctx, s, in)
		if err == nil {
			var unfinished *provider.Status
			if _, unfinished, err = s.run(ctx, w.names, w.update); err == nil {
				return unfinished, nil
			}
		}
		if f, ok := errors.AsType[*provider.Failure](err); ok { // it is as it was, and another update may be tried
			f.InstanceUsable, f.UpdateRepeatable = new(true), new(true)
		}
		return nil, err
	})
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	var kept *provider.Retained
	st, err := p.step(ctx, in.Target, func(s *site) (unfinished *provider.Status, err error) {
		unfinished, kept, err = p.deprovision(ctx, s, in)
		return unfinished, err
	})
	st.Retained = kept
	return st, err
}

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	w, err := p.wantedBinding(b)
	if err != nil {
		return provider.Status{}, cmp.Or(ctx.Err(), err)
	}
	var grant *provider.Grant
	st, err := p.step(ctx, b.Instance.Target, func(s *site) (*provider.Status, error) {
		w.tls = s.tls
		now, unfinished, err := s.run(ctx, w.names, w.bind)
		if err == nil && unfinished == nil {
			grant = grantOf(s.access, s.tls, now, w.password)
		}
		return unfinished, err
	})
	st.Grant = grant
	return st, err
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.step(ctx, b.Instance.Target, func(s *site) (*provider.Status, error) {
		tags := provider.BindingTagsOf(b)
		n := namesOf(tags)
		n.leaving = true
		_, unfinished, err := s.run(ctx, n, func(now standing) (act, error) { return unbind(tags, now) })
		return unfinished, err
	})
}
