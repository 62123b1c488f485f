// Package valkey makes instances on a shared Valkey server: an instance is a prefix of keys and
// channels, and a binding a user that may use nothing else. The server's own list of users says what is
// made, and whose it is (docs/decisions/0012-shared-servers.md says why). The package decides what comes
// next (next.go) from the users that stand (users.go). Package hosted has the rest.
package valkey

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Options are what a provider is made with. With a pool, it keeps one connection, which serves several
// steps at once.
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
	_ provider.Provider  = (*Provider)(nil)
	_ provider.Adopter   = (*Provider)(nil)
	_ provider.Describer = (*Provider)(nil)
	_ wired.Reconciler   = (*Provider)(nil)
)

// pageSize is the number of the server's users that one page looks at.
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
		Facts: facts, Label: labelOf, Stands: stands, Relabel: relabel, Enforce: enforce, Adopt: adopt,
		Keep: func(ctx context.Context, s *server) error { return s.save(ctx) },
	})
	return p
}

// Check is a check.Func. A plan has only the settings of deletion: the server limits nothing but a user's
// rights.
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
	return func(now seen) (any, error) { return now.provision(l, in) }, nil
}

// update changes only the plan in the label: plans differ in nothing that the server could enforce.
func (p *Provider) update(_ context.Context, _ *site, in provider.Instance) (decide, error) {
	return func(now seen) (any, error) { return now.update(in) }, nil
}

// deprovision removes the users of bindings first, so that nobody writes any more, then the keys,
// and last the label, by which all of it is found. Where another owner has a label, the keys are
// that owner's.
func (p *Provider) deprovision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	erased := false
	return func(now seen) (any, error) {
		if len(now.bindings) > 0 {
			return act{removed(now.bindings...)}, nil
		}
		if !erased && len(now.others) == 0 {
			if err := at.Server.erase(ctx, in, prefix(now.home)+"*"); err != nil {
				return nil, at.Explain(err)
			}
			erased = true
		}
		if now.own.exists {
			return act{removed(now.own)}, nil
		}
		return nil, nil
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
	next := func(now seen) (any, error) {
		if made {
			return nil, nil
		}
		label, err := now.bind(l)
		made = err == nil // its user is made anew once, whatever state it was in
		return admit(n, label, role, password), err
	}
	return next, func(context.Context, seen) provider.Status {
		return provider.Status{Grant: &provider.Grant{
			Credentials: credentials(at.Access, n.binding, password, prefix(n.home)),
		}}
	}, nil
}

// unbind removes the binding's user, with which the server ends the user's sessions: also those
// that listen, that wait for a key, and that are in a transaction.
func (p *Provider) unbind(context.Context, *site, provider.Binding) (decide, error) {
	return func(now seen) (any, error) {
		if !now.binding.exists {
			return nil, nil
		}
		return act{removed(now.binding)}, nil
	}, nil
}

// facts returns the facts of an instance. Its size is not known: the server would have to look at
// the keys of all instances.
func facts(ctx context.Context, s *server, t provider.Tags, _ seen) (f provider.Facts, err error) {
	hello, err := s.do(ctx, "HELLO")
	if err != nil {
		return f, err
	}
	about, _ := hello.AsMap()
	f.Engine = "Valkey " + text(about["version"])
	clients, err := s.do(ctx, "CLIENT", "LIST")
	if word(err) == "NOPERM" { // a login of the time before facts
		return f, nil
	}
	f.Connections = new(int64)
	for field := range strings.FieldsSeq(text(clients)) { // none that a tenant chooses has a space in it
		if strings.HasPrefix(field, "user="+namesOf(t).prefix) {
			*f.Connections++
		}
	}
	return f, err
}
