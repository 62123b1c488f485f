// Package mariadb makes databases on a shared MariaDB server: for an instance a database, for a binding an
// account of its own. It decides what comes next (next.go) from what it sees on the server (look.go), and
// keeps the statements in one file (statements.go). Package hosted does the rest.
package mariadb

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Options are the arguments of New. Access.Database is the broker's own database.
type Options = hosted.Options

// A Provider implements provider.Provider for MariaDB.
type Provider = hosted.Provider[server, seen]

type (
	site   = hosted.Site[server, seen]
	decide = hosted.Decide[seen]
)

// New makes a provider without reaching any server. The caller ends it with Close.
func New(o Options) *Provider {
	p := hosted.New(o, hosted.Engine[server, seen]{
		Open: openSQL, Close: server.Close, Class: classOf, Told: told,
		Provision: provision, Update: update, Deprovision: deprovision, Bind: bind, Unbind: unbind,
		Facts: facts, Surveyed: surveyed,
	})
	p.Expel = func(ctx context.Context, b provider.Binding, cause error) bool { return expel(ctx, p, b, cause) }
	return p
}

// A server is a hosted.Host with a few more questions.
type server interface {
	hosted.Host[seen]
	Close()

	// collation reports whether the server has the collation for utf8mb4.
	collation(ctx context.Context, name string) (bool, error)

	// usage returns the server's version and the size of a database in bytes; size is nil if the server takes
	// too long to compute it.
	usage(ctx context.Context, database string) (version string, size *int64, err error)

	// expel ends the sessions of an account, if the server's identity is as given; otherwise it returns
	// errOther. It needs neither a table nor a file of the server.
	expel(ctx context.Context, identity, account string) error

	// links reports whether the server follows symbolic links.
	links(ctx context.Context) (bool, error)
}

func provision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	w, err := want(ctx, at, in)
	return w.provision, err
}

func update(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	w, err := want(ctx, at, in)
	return w.update, err
}

func deprovision(context.Context, *site, provider.Instance) (decide, error) {
	return remove, nil
}

func bind(_ context.Context, at *site, b provider.Binding) (decide, *provider.Grant, error) {
	w, err := wantBinding(at, b)
	return w.bind, grantOf(at.Access, w.names, w.password), err
}

func unbind(context.Context, *site, provider.Binding) (decide, error) {
	return func(now seen) (any, error) { return now.logins[0].end(true), nil }, nil
}

// expelPause is how long an unbind waits for ended sessions to let go of what they held.
const expelPause = 50 * time.Millisecond

// expel ends the sessions of a binding before anything is read or changed. Hazard: those sessions may hold
// all files or memory of the server, and an unbind needs some to begin.
func expel(ctx context.Context, p *Provider, b provider.Binding, cause error) bool {
	if class := classOf(cause); class != hosted.Full && class != unopened {
		return false
	}
	at, err := p.Reach(b.Instance.Target)
	if err != nil {
		return false
	}
	defer at.Leave()
	err = at.Server.expel(ctx, b.Instance.Target.Identity, namesOf(provider.BindingTagsOf(b)).login)
	return err == nil && waiting.For(ctx, expelPause) == nil
}

// facts returns the facts about a database. Its connection limit is the sum of its accounts' limits.
func facts(ctx context.Context, s server, t provider.Tags, now seen) (f provider.Facts, err error) {
	f.Connections = new(int64)
	for _, l := range now.logins {
		*f.Connections += int64(l.sessions)
		if l.exists && !l.goes() {
			f.ConnectionLimit += int64(l.limits.Connections)
		}
	}
	version, size, err := s.usage(ctx, namesOf(t).database)
	f.Engine, f.Size = "MariaDB "+version, size
	return f, err
}

// surveyed logs a warning if the server is set up so that tenants can harm others.
func surveyed(ctx context.Context, at *site) {
	if follows, err := at.Server.links(ctx); err == nil && follows {
		at.Log.Warn("tenants can have the server write into folders that are not its own, by DATA DIRECTORY: start it with "+
			"skip-symbolic-links", "target", at.Name)
	}
}
