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
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/waiting"
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

// A Provider is the adapter. That it reaches and surveys servers is what it has in common
// with others.
type Provider struct {
	hosted.Servers[server]
	now  func() time.Time
	log  *slog.Logger
	page int
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Inventory   = (*Provider)(nil)
	_ provider.Quarantiner = (*Provider)(nil)
	_ provider.Retainer    = (*Provider)(nil)
	_ provider.Reconciler  = (*Provider)(nil)
)

// New makes a provider. It reaches no server yet. Close it in the end.
func New(o Options) *Provider {
	return &Provider{
		Servers: hosted.Servers[server]{Broker: o.Broker, Accesses: o.Accesses, Pool: o.Pool, Open: openSQL, Explain: explain},
		now:     o.Now, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), page: pageSize,
	}
}

// A site is a server whose identity is proven, in one step.
type site struct {
	*hosted.Site[server]
	tls bool // it is reached by TLS, and so are its users to be
	log *slog.Logger
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
		now, err := s.Server.look(ctx, n)
		if err != nil {
			return now, nil, s.Explain(err)
		}
		a, err := next(now)
		if err != nil || a == nil {
			return now, nil, err
		}
		switch err = s.Server.do(ctx, n, now, a); {
		case err == nil || errors.Is(err, errChanged):
		case errors.Is(err, errSessions):
			return now, &provider.Status{Percent: 50, Description: "Waiting for connections to end", After: busyPause}, nil
		case meaningOf(err) == meansLocked:
			s.log.Warn("a lock on the server holds a step up; if it stays, look for a prepared transaction with XA RECOVER, and roll it back",
				"database", now.name)
			return now, &provider.Status{Percent: 50, Description: "Waiting for somebody's lock", After: lockPause}, nil
		case meaningOf(err) != meansBusy:
			return now, nil, s.Explain(err)
		}
	}
	return now, &provider.Status{Percent: 50, Description: "Working", After: busyPause}, nil
}

// step is one of an instance or a binding, on a target that has been at an epoch.
func (p *Provider) step(
	ctx context.Context, t provider.Target, was provider.Epoch, work func(*site) (*provider.Status, error),
) (provider.Status, error) {
	at, learnt, err := p.At(ctx, t, was)
	if err != nil || learnt != nil {
		return hosted.Settle(learnt, err, provider.Status{})
	}
	defer at.Leave()
	unfinished, err := work(&site{Site: at, tls: at.Access.TLS != hosted.TLSDisable, log: p.log})
	return hosted.Settle(unfinished, err, provider.Status{})
}

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, in.Target, in.Epoch, func(s *site) (*provider.Status, error) {
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
	return p.step(ctx, in.Target, in.Epoch, func(s *site) (*provider.Status, error) {
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
	st, err := p.step(ctx, in.Target, in.Epoch, func(s *site) (unfinished *provider.Status, err error) {
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
	st, err := p.step(ctx, b.Instance.Target, b.Instance.Epoch, func(s *site) (*provider.Status, error) {
		w.tls = s.tls
		now, unfinished, err := s.run(ctx, w.names, w.bind)
		if err == nil && unfinished == nil {
			grant = grantOf(s.Access, s.tls, now, w.password)
		}
		return unfinished, err
	})
	st.Grant = grant
	return st, err
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	st, err := p.unbind(ctx, b)
	for try := 0; exhausted(err) && try < maxExpels; try++ {
		if p.expel(ctx, b) != nil || waiting.For(ctx, expelPause) != nil {
			break
		}
		st, err = p.unbind(ctx, b)
	}
	return st, err
}

func (p *Provider) unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.step(ctx, b.Instance.Target, b.Instance.Epoch, func(s *site) (*provider.Status, error) {
		tags := provider.BindingTagsOf(b)
		n := namesOf(tags)
		n.leaving = true
		_, unfinished, err := s.run(ctx, n, func(now standing) (act, error) { return unbind(tags, now) })
		return unfinished, err
	})
}

// An unbind ends the sessions of its binding so often, and goes on so much later.
const (
	maxExpels  = 5
	expelPause = 50 * time.Millisecond
)

// exhausted reports whether a server lacks what sessions may hold.
func exhausted(err error) bool { return meaningOf(err) == meansFull || meaningOf(err) == meansUnopened }

// expel ends the sessions of a binding before anything is read or changed. Hazard: they
// may hold all files or memory of the server, which an unbind needs to begin.
func (p *Provider) expel(ctx context.Context, b provider.Binding) error {
	one, _, _, done, err := p.Reach(b.Instance.Target)
	if err != nil {
		return err
	}
	defer done()
	return one.expel(ctx, b.Instance.Target.Identity, namesOf(provider.BindingTagsOf(b)).login)
}

// Survey implements provider.Reconciler, and warns of what the server lets tenants do to
// others.
func (p *Provider) Survey(ctx context.Context, target string) (provider.Target, provider.Epoch, error) {
	t, at, err := p.Servers.Survey(ctx, target)
	if err != nil {
		return t, at, err
	}
	one, _, _, done, err := p.Reach(t)
	if err != nil {
		return t, at, err
	}
	defer done()
	if follows, err := one.links(ctx); err == nil && follows {
		p.log.Warn("tenants can have the server write into folders that are not its own, by DATA DIRECTORY: start it with "+
			"skip-symbolic-links", "target", t.Name)
	}
	return t, at, nil
}
