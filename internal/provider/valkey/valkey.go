// Package valkey makes what apps use of a shared Valkey server: an instance is a
// prefix of keys and channels, a binding is a user of its own who may do nothing
// beyond it. What is made, and whose it is, stands in the server's own list of
// users, and nowhere else (docs/decisions/0012-shared-servers.md). It decides what
// comes next (next.go) from the users that are there (users.go). The rest is
// hosted's.
package valkey

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Options are what a provider is made with. Of a pool, one connection is used, which
// takes several steps at once.
type Options = hosted.Options

// A Provider makes instances and bindings on shared servers.
type Provider struct {
	*hosted.Provider[*server, seen]
	dial func(ctx context.Context, a hosted.Access) (conn, error)
}

type (
	site    = hosted.Site[*server, seen]
	decide  = hosted.Decide[seen]
	granted = hosted.Granted[seen]
)

var (
	_ provider.Provider = (*Provider)(nil)
	_ provider.Adopter  = (*Provider)(nil)
	_ wired.Reconciler  = (*Provider)(nil)
)

// pageSize is how many users of a server one page looks at.
const pageSize = 40

// New makes a provider. It calls no server.
func New(o Options) *Provider {
	p := &Provider{dial: dial}
	o.Page = cmp.Or(o.Page, pageSize)
	p.Provider = hosted.New(o, hosted.Engine[*server, seen]{
		Open: func(a hosted.Access, _ int) (*server, error) {
			return &server{dial: func(ctx context.Context) (conn, error) { return p.dial(ctx, a) }}, nil
		},
		Close: (*server).Close, Class: classOf, Told: told,
		Provision: p.provision, Update: p.update, Deprovision: p.deprovision, Bind: p.bind, Unbind: p.unbind,
		Label: labelOf, Stands: stands, Relabel: relabel, Enforce: enforce, Adopt: adopt,
		Keep: func(ctx context.Context, s *server) error { return s.save(ctx) },
	})
	return p
}

// Check is a check.Func. A plan says no more than what becomes of what is deleted:
// the server holds a user to nothing but its rights.
func Check(plan check.Plan) (json.RawMessage, error) {
	var d hosted.Deletion
	for _, name := range slices.Sorted(maps.Keys(plan.Settings)) {
		if name != "retain_days" && name != "on_delete" {
			return nil, advice.For(name, "is no setting of a Valkey plan", "leave it out: Valkey limits neither memory nor "+
				"connections of a user")
		}
	}
	if err := hosted.ReadSettings(plan.Settings, &d, nil); err != nil || d.RetainDays == 0 {
		return nil, err
	}
	return json.Marshal(d)
}

func (p *Provider) provision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	if err := at.Server.sound(ctx); err != nil {
		return nil, at.Explain(err)
	}
	l := label{Label: hosted.Label{Tags: provider.TagsOf(in), Created: p.Now()}}.ofPlan(in)
	return func(now seen) (hosted.Next, error) { return now.provision(l, in) }, nil
}

// update changes the record of the plan alone: plans differ in nothing that the server
// could hold an instance to.
func (p *Provider) update(_ context.Context, _ *site, in provider.Instance) (decide, error) {
	return func(now seen) (hosted.Next, error) { return now.update(in) }, nil
}

func (p *Provider) deprovision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	erased := false
	return func(now seen) (hosted.Next, error) {
		next, err := now.remove(erased)
		if _, keys := next.Act.(eraseKeys); !keys {
			return next, err
		}
		wait, err := at.Server.erase(ctx, in, prefix(now.home)+"*")
		if err != nil || wait != nil {
			return hosted.Next{Wait: wait}, at.Explain(err)
		}
		erased = true
		return now.remove(erased)
	}, nil
}

func (p *Provider) bind(ctx context.Context, at *site, b provider.Binding) (decide, granted, error) {
	if err := at.Server.sound(ctx); err != nil {
		return nil, nil, at.Explain(err)
	}
	role, err := roleOf(b.Parameters)
	if err != nil {
		return nil, nil, err
	}
	tags := hosted.BindingTags(b)
	n := namesOf(tags)
	password, err := hosted.Password(b.Secret, n.binding)
	if err != nil {
		return nil, nil, err
	}
	l := label{Label: hosted.Label{Tags: tags, PlanID: b.Instance.PlanID, Created: p.Now()}}
	made := false
	next := func(now seen) (hosted.Next, error) {
		if made {
			return done, nil
		}
		label, err := now.bind(l)
		made = err == nil // as it was, whatever has become of it
		return hosted.Next{Act: admit(n, label, role, password)}, err
	}
	return next, func(context.Context, seen) provider.Status {
		return provider.Status{Grant: &provider.Grant{
			Credentials: credentials(at.Access, n.binding, password, prefix(n.home)),
		}}
	}, nil
}

func (p *Provider) unbind(context.Context, *site, provider.Binding) (decide, error) {
	return seen.unbind, nil
}
