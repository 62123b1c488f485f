// Package valkey makes what apps use of a shared Valkey server: an instance is a
// prefix of keys and channels, a binding is a user of its own who may do nothing
// beyond it. What is made, and whose it is, stands in the server's own list of
// users, and nowhere else. Reaching the server is hosted's; decision 0037 says why
// it is so.
package valkey

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Options are what a provider is made with.
type Options struct {
	// Broker is whose things the inventory lists.
	Broker string
	// Accesses are today's servers.
	Accesses hosted.Accesses
	Now      func() time.Time
	Log      *slog.Logger
	// Pool is how many connections to a server may be kept for the steps to come; 0 to
	// close each with its step, as a function does that may be frozen after it. One that
	// takes several steps at once is enough.
	Pool int
}

// A Provider makes instances and bindings on shared servers.
type Provider struct {
	o    Options
	dial func(ctx context.Context, a hosted.Access) (conn, error)

	mu   sync.Mutex
	warm map[string]conn // by the target's name, where there is a pool
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Inventory   = (*Provider)(nil)
	_ provider.Quarantiner = (*Provider)(nil)
	_ provider.Retainer    = (*Provider)(nil)
	_ provider.Reconciler  = (*Provider)(nil)
)

// New makes a provider. It calls no server.
func New(o Options) *Provider { return &Provider{o: o, dial: dial} }

// Close ends the connections that are kept.
func (p *Provider) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.warm {
		c.close()
	}
	clear(p.warm)
}

// connect is the connection of a step, or the warm one of all steps. Hazard: tenants can
// hold all connections of a server (maxclients), and then nobody gets a new one, not even
// to shut a tenant out.
func (p *Provider) connect(ctx context.Context, target string, access hosted.Access) (conn, error) {
	if p.o.Pool == 0 {
		return p.dial(ctx, access)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.warm[target]; c != nil {
		return kept{c}, nil
	}
	c, err := p.dial(ctx, access)
	if err != nil {
		return nil, err
	}
	if p.warm == nil {
		p.warm = map[string]conn{}
	}
	p.warm[target] = c
	return kept{c}, nil
}

// A kept connection does not end with the step. One that was cut opens itself anew.
type kept struct{ conn }

func (kept) close() {}

// on makes a step on the server that the target names: it is the one that is recorded,
// is as it was at an epoch or later, and takes writes. One that only finds the server
// makes nothing. Anything else is a passing error.
func (p *Provider) on(
	ctx context.Context, t provider.Target, was provider.Epoch, work func(*server) (provider.Status, error),
) (provider.Status, error) {
	name, access, err := p.o.Accesses.Reach(t)
	if err != nil {
		return provider.Status{}, err
	}
	s, err := p.open(ctx, name, access)
	if err != nil {
		return provider.Status{}, err
	}
	defer s.close()
	identity, err := s.identity(ctx)
	if err == nil && identity == "" && t.Identity == "" {
		if err = s.sound(ctx); err == nil {
			identity, err = s.name(ctx, rand.Text())
		}
		if err == nil {
			p.o.Log.Info("named a Valkey server that had no identity", "target", name, "identity", identity)
		}
	}
	var learnt *provider.Status
	if err == nil {
		learnt, err = hosted.Learn(t, name, identity)
	}
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	if _, err = s.epochs(ctx); err == nil {
		err = s.epoch.Check(name, was)
	}
	if err != nil {
		return provider.Status{}, err
	}
	return work(s)
}

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if in.Source != nil && in.Source.Retained == nil {
		return provider.Status{}, provider.Failf("An instance of this service cannot be restored from another one. Order an empty one.")
	}
	return p.on(ctx, in.Target, in.Epoch, func(s *server) (provider.Status, error) { return p.provision(ctx, s, in) })
}

func (p *Provider) provision(ctx context.Context, s *server, in provider.Instance) (provider.Status, error) {
	if err := s.sound(ctx); err != nil {
		return provider.Status{}, err
	}
	tags := provider.TagsOf(in)
	l := label{Label: hosted.Label{Tags: tags, Created: p.o.Now()}}
	if in.Source != nil {
		return s.take(ctx, in, l)
	}
	made, err := s.own(ctx, tags)
	if err != nil {
		return provider.Status{}, err
	}
	// A call of a life that is over and retained comes late: its keys are not to be opened.
	if kept, err := s.retained(ctx, tags); err != nil || kept.exists {
		return provider.Status{}, cmp.Or(err, notOurs())
	}
	if !made.exists {
		err = s.label(ctx, name(tags), l.ofPlan(in))
	}
	if err != nil {
		return provider.Status{}, err
	}
	return done(s.save(ctx))
}

// Update implements provider.Provider. Plans differ in nothing that the server
// could hold an instance to, so that only the record of the plan changes.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.on(ctx, in.Target, in.Epoch, func(s *server) (provider.Status, error) { return p.update(ctx, s, in) })
}

func (p *Provider) update(ctx context.Context, s *server, in provider.Instance) (provider.Status, error) {
	made, err := s.instance(ctx, in)
	if err == nil {
		err = s.label(ctx, made.name, made.label.ofPlan(in))
	}
	if err != nil {
		return provider.Status{}, err
	}
	return done(s.save(ctx))
}

// ofPlan is the label of an instance that is brought to what in says.
func (l label) ofPlan(in provider.Instance) label {
	digest := sha256.Sum256(in.Snapshot)
	l.PlanID, l.Settings = in.PlanID, hex.EncodeToString(digest[:8])
	return l
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.on(ctx, in.Target, in.Epoch, func(s *server) (provider.Status, error) { return p.deprovision(ctx, s, in) })
}

func (p *Provider) deprovision(ctx context.Context, s *server, in provider.Instance) (provider.Status, error) {
	days, err := retainDays(in.Snapshot)
	if err != nil {
		return provider.Status{}, err
	}
	switch r := hosted.RetainingOf(in, days, p.o.Now()); {
	case r == nil:
		return s.erase(ctx, in)
	case !r.Back:
		return s.retain(ctx, in, *r)
	}
	u, err := s.user(ctx, name(provider.TagsOf(in)))
	if err == nil && u.label.Tags == provider.TagsOf(in) && u.label.Was != nil {
		err = s.giveBack(ctx, u)
	}
	if err != nil {
		return provider.Status{}, err
	}
	return s.erase(ctx, in)
}

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.on(ctx, b.Instance.Target, b.Instance.Epoch, func(s *server) (provider.Status, error) { return p.bind(ctx, s, b) })
}

func (p *Provider) bind(ctx context.Context, s *server, b provider.Binding) (provider.Status, error) {
	if err := s.sound(ctx); err != nil {
		return provider.Status{}, err
	}
	role, err := roleOf(b.Parameters)
	if err != nil {
		return provider.Status{}, err
	}
	of, err := s.instance(ctx, b.Instance)
	if err != nil {
		return provider.Status{}, err
	}
	tags := provider.BindingTagsOf(b)
	made, err := s.own(ctx, tags)
	if err != nil {
		return provider.Status{}, err
	}
	l := label{Label: hosted.Label{Tags: tags, PlanID: b.Instance.PlanID, Created: p.o.Now()}}
	l.Home = of.label.Home
	if made.exists {
		l = made.label
	}
	if l.Locked != "" || of.label.Locked != "" {
		return provider.Status{}, errQuarantine
	}
	user := name(tags)
	password, err := hosted.Password(b.Secret, user)
	if err != nil {
		return provider.Status{}, err
	}
	if err := s.admit(ctx, user, l, role, password); err != nil {
		return provider.Status{}, err
	}
	st, err := done(s.save(ctx))
	if err == nil {
		st.Grant = &provider.Grant{Credentials: credentials(s.access, user, password, prefix(l))}
	}
	return st, err
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.on(ctx, b.Instance.Target, b.Instance.Epoch, func(s *server) (provider.Status, error) {
		return s.forget(ctx, provider.BindingTagsOf(b))
	})
}

func done(err error) (provider.Status, error) {
	if err != nil {
		return provider.Status{}, err
	}
	return provider.Status{Done: true, Percent: 100}, nil
}

func or(st *provider.Status) provider.Status {
	if st == nil {
		return provider.Status{}
	}
	return *st
}

func notOurs() error {
	return provider.Failf("The name that this would have is taken by something else, which was left as it is: ask the broker's operator")
}
