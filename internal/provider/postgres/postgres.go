// Package postgres makes databases on a shared PostgreSQL server: for an instance, a database and a role that
// owns its content; for a binding, a login that works as that role. It decides what comes next (next.go) from
// what it sees on the server (server.go), and keeps the statements in a few files (statements.go, logins.go,
// disown.go). Package hosted does the rest. The caller knows how the server is reached, and who started it.
package postgres

import (
	"context"
	"crypto/rand"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
)

// Options are the arguments of New.
type Options struct {
	hosted.Options
	// Programs copy databases; nil if the broker can neither restore a database from another one nor save
	// one.
	Programs *pgcopy.Programs
}

// A Provider implements provider.Provider for PostgreSQL.
type Provider struct {
	*hosted.Provider[server, seen]

	process  string // identifies this process as the one that runs its copies
	programs *pgcopy.Programs
	copier   copier
}

type (
	site   = hosted.Site[server, seen]
	decide = hosted.Decide[seen]
)

// New makes a provider without reaching any server. The caller ends it with Close.
func New(o Options) *Provider {
	p := &Provider{process: rand.Text(), programs: o.Programs}
	p.Provider = hosted.New(o.Options, hosted.Engine[server, seen]{
		Open:  func(a hosted.Access, pool int) (server, error) { return openSQL(a, pool, p.Log) },
		Close: server.Close, Class: classOf, Detail: p.detail,
		Provision: p.provision, Update: p.update, Deprovision: p.deprovision, Bind: p.bind, Unbind: p.unbind, Restore: p.restore,
		Facts: facts, Expel: p.expel, Remark: p.warn,
	})
	return p
}

// Close stops the running copies and closes the kept connections.
func (p *Provider) Close() {
	p.copier.close()
	p.Provider.Close()
}

func (p *Provider) provision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	w, err := p.wanted(ctx, at, in)
	return w.provision, err
}

func (p *Provider) update(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	w, err := p.wanted(ctx, at, in)
	// The former plan does not say where the instance is: a rebuilt record has none.
	if err == nil && at.Name != hosted.TargetIn(in.Snapshot) {
		err = provider.Failf("The new plan's databases are on another server, and a database cannot be moved. " +
			"Order a new instance of that plan, and copy the data.")
	}
	return w.update, err
}

func (p *Provider) deprovision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	return p.removing(ctx, at, provider.TagsOf(in)), nil
}

// removing returns a Decide that ends the copies of the instance and then removes the instance.
func (p *Provider) removing(ctx context.Context, at *site, t provider.Tags) decide {
	ended := false
	return hosted.Owned(t, hosted.Any, func(now seen) (any, error) {
		if !ended {
			if err := p.endCopies(ctx, at, t, nil); err != nil {
				return nil, err
			}
			ended = true
		}
		return remove(now)
	})
}

func (p *Provider) bind(_ context.Context, at *site, b provider.Binding) (decide, *provider.Grant, error) {
	w, err := p.wantedBinding(b)
	return w.bind, w.grant(at.Access, namesOf(w.label.Tags)), err
}

// unbind drops the database first if the instance is being deleted: handing over the binding's things in the
// database would take long, or wait for locks.
func (p *Provider) unbind(ctx context.Context, at *site, b provider.Binding) (decide, error) {
	of := provider.TagsOf(b.Instance)
	goes := b.Instance.Operation.Kind == operation.Deprovision && check.RetentionOf(b.Instance.Snapshot) == 0 &&
		!hosted.Undeleted(of)
	removing := p.removing(ctx, at, of)
	return func(now seen) (any, error) {
		act, err := unbind(of, now)
		if _, empties := act.(emptyLogin); goes && empties && now.database.exists() {
			return removing(now)
		}
		return act, err
	}, nil
}

// facts returns the facts about a database. Its plan may state the size that it is meant for, which the
// server does not enforce.
func facts(ctx context.Context, s server, t provider.Tags, now seen) (provider.Facts, error) {
	u, err := s.usage(ctx, namesOf(t).database)
	return provider.Facts{
		Engine: "PostgreSQL " + u.version, Size: &u.size, SizeLimit: now.owner.details().Warn,
		Connections: &u.sessions, ConnectionLimit: int64(max(now.database.limit, 0)),
	}, err
}
