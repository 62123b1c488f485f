// Package valkey makes instances on a shared Valkey server. An instance is a prefix of keys and channels;
// a binding is a user that may use only this prefix. The server's list of users is the only record of the
// instances, the bindings and their owners (docs/decisions/0012-shared-servers.md gives the reasons).
// users.go reads the users, and next.go chooses the next commands. Package hosted does the rest.
package valkey

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Options configure a Provider. With a pool, the provider keeps one connection, and several steps use it at
// the same time.
type Options = hosted.Options

// A Provider makes instances and bindings on shared servers.
type Provider = hosted.Provider[*server, seen]

type (
	site   = hosted.Site[*server, seen]
	decide = hosted.Decide[seen]
)

// pageSize is the number of users that List reads for one page.
const pageSize = 40

// New makes a provider. It calls no server.
func New(o Options) *Provider {
	o.Page = cmp.Or(o.Page, pageSize)
	return hosted.New(o, hosted.Engine[*server, seen]{
		Open:  func(a hosted.Access, _ int) (*server, error) { return &server{access: a, dial: dial}, nil },
		Close: (*server).Close, Class: classOf, Told: told,
		Provision: provision, Update: update, Deprovision: deprovision, Bind: bind, Unbind: unbind,
		Facts: facts, Adopt: adopt,
		Keep: func(ctx context.Context, s *server) error { return s.save(ctx) },
	})
}

//go:embed settings.schema.json
var settingsText []byte

var readSettings = schema.Settings[hosted.Deletion]("a Valkey plan", settingsText)

// Check is a check.Func. It accepts only the settings of deletion: Valkey can limit the rights of a user, but
// neither its memory nor its connections.
func Check(plan check.Plan) (json.RawMessage, error) {
	d, problems := readSettings(plan.Settings)
	if problems != nil || d.RetainDays == 0 {
		return nil, errors.Join(problems...)
	}
	return json.Marshal(d)
}

func provision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
	if err := at.Server.sound(ctx); err != nil {
		return nil, at.Explain(err)
	}
	l := label{Label: hosted.Label{Tags: provider.TagsOf(in), Created: at.Now()}}.ofPlan(in)
	return func(now seen) (any, error) { return now.provision(l, in) }, nil
}

// update writes the plan to the label and changes nothing else: the server enforces no setting of a plan.
func update(_ context.Context, _ *site, in provider.Instance) (decide, error) {
	return func(now seen) (any, error) { return now.update(in) }, nil
}

// deprovision removes the users of the bindings first, so that no client writes any more, and then the keys.
// It removes the label last, because a repeated step finds the rest by the label. If another owner has a
// label for the same keys, deprovision leaves the keys to that owner.
func deprovision(ctx context.Context, at *site, in provider.Instance) (decide, error) {
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

func bind(ctx context.Context, at *site, b provider.Binding) (decide, *provider.Grant, error) {
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
	l := label{Label: hosted.Label{Tags: tags, PlanID: b.Instance.PlanID, Created: at.Now()}}
	made := false
	next := func(now seen) (any, error) {
		if made {
			return nil, nil
		}
		label, err := now.bind(l)
		made = err == nil // a step writes the user once, whatever its state was
		return admit(n, label, role, password), err
	}
	return next, &provider.Grant{Credentials: credentials(at.Access, n.binding, password, prefix(n.home))}, nil
}

// unbind removes the binding's user. The server then ends all sessions of that user, including sessions that
// are subscribed, wait for a key or have a transaction open.
func unbind(context.Context, *site, provider.Binding) (decide, error) {
	return func(now seen) (any, error) {
		if !now.binding.exists {
			return nil, nil
		}
		return act{removed(now.binding)}, nil
	}, nil
}

// facts returns the facts of an instance, except its size: to measure it, the server would read the keys of
// all instances.
func facts(ctx context.Context, s *server, t provider.Tags, _ seen) (f provider.Facts, err error) {
	hello, err := s.do(ctx, "HELLO")
	if err != nil {
		return f, err
	}
	about, _ := hello.AsMap()
	f.Engine = "Valkey " + text(about["version"])
	clients, err := s.do(ctx, "CLIENT", "LIST")
	if word(err) == "NOPERM" { // the broker's login was made before facts needed this right
		return f, nil
	}
	f.Connections = new(int64)
	for field := range strings.FieldsSeq(text(clients)) { // no field that a tenant sets contains a space
		if strings.HasPrefix(field, "user="+namesOf(t).prefix) {
			*f.Connections++
		}
	}
	return f, err
}
