// Package example is the smallest provider that keeps the contract. It makes boxes in a service with an HTTP API, and for
// each binding a user with a key. The service keeps tags, refuses to change an older version, and shows a secret once.
package example

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// A Provider makes boxes and users for a broker.
type Provider struct {
	HTTP        *http.Client
	URL, Broker string
}

// A thing is a box, or a user of one. Project pays for a change of it.
type thing struct {
	Name, Plan string
	Tags       provider.Tags
	Settings   json.RawMessage
	Project    any
	Created    time.Time
	Version    int // another one after each change
}

// box is the thing of an instance as it is to be.
func box(in provider.Instance) thing {
	text, _ := json.Marshal([]json.RawMessage{in.Snapshot, in.Parameters}) // each valid JSON, or nil
	t := thing{Plan: in.PlanID, Settings: text, Project: in.Settings["project"], Created: in.Operation.Started}
	return t.of(provider.TagsOf(in))
}

func (t thing) of(tags provider.Tags) thing {
	t.Name, t.Tags = provider.Name("longshore", "box", tags), tags
	return t
}

func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return provider.Status{Done: true}, p.ensure(ctx, box(in))
}

// ensure makes a thing, or finds it made.
func (p *Provider) ensure(ctx context.Context, want thing) error {
	_, err := call[any](ctx, p, "POST", "/things", want)
	if err == conflict {
		_, err = p.find(ctx, want, absent)
	}
	return err
}

// find reads a thing. The error is gone where there is none, and a failure where the name is somebody else's.
func (p *Provider) find(ctx context.Context, want thing, gone error) (thing, error) {
	is, err := call[thing](ctx, p, "GET", "/things/"+want.Name, nil)
	if err == absent {
		err = gone
	} else if err == nil && is.Tags != want.Tags {
		err = provider.Failf("The name of this box is taken by something else. Ask the operator of the service.")
	}
	return is, err
}

func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	is, err := p.find(ctx, box(in), noBox)
	if want := box(in); err == nil && (is.Plan != want.Plan || !bytes.Equal(is.Settings, want.Settings)) {
		want.Version, want.Created = is.Version, is.Created
		_, err = call[any](ctx, p, "PUT", "/things/"+want.Name, want)
	}
	return provider.Status{Done: true}, err
}

func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.remove(ctx, box(in))
}

func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.remove(ctx, box(b.Instance).of(provider.BindingTagsOf(b)))
}

// remove deletes a thing, and is done when it has seen that the thing is gone.
func (p *Provider) remove(ctx context.Context, t thing) (provider.Status, error) {
	is, err := p.find(ctx, t, absent)
	if err == absent {
		return provider.Status{Done: true}, nil
	}
	if err == nil {
		is.Project = t.Project
		_, err = call[any](ctx, p, "DELETE", "/things/"+is.Name, is)
	}
	return provider.Status{Description: "Deleting", After: time.Second}, err
}

func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	user := box(b.Instance).of(provider.BindingTagsOf(b))
	_, err := p.find(ctx, box(b.Instance), noBox)
	if err == nil {
		err = p.ensure(ctx, user)
	}
	if err != nil {
		return provider.Status{}, err
	}
	path := "/things/" + user.Name + "/keys"
	st, key, err := OneKey(ctx, b.State, Keys{
		List:   func(ctx context.Context) ([]string, error) { return call[[]string](ctx, p, "GET", path, nil) },
		Create: func(ctx context.Context) (Key, error) { return call[Key](ctx, p, "POST", path, nil) },
		Opens: func(ctx context.Context, k Key) (bool, error) {
			return call[bool](ctx, p, "POST", "/login", k)
		},
		Delete: func(ctx context.Context, id string) error {
			_, err := call[any](ctx, p, "DELETE", path+"/"+id, nil)
			return err
		},
	})
	if st.Done {
		st.Grant = &provider.Grant{Credentials: map[string]any{"url": p.URL, "username": key.ID, "password": key.Secret}}
	}
	return st, err
}

func (p *Provider) Identify(ctx context.Context, in provider.Instance) (provider.Target, error) {
	account, err := call[string](ctx, p, "GET", "/account", nil)
	return provider.Target{Name: in.Target.Name, Identity: account}, err
}

func (p *Provider) List(ctx context.Context, cursor string) (page []provider.Holding, next string, err error) {
	at, err := p.Identify(ctx, provider.Instance{})
	if err != nil {
		return nil, "", err
	}
	things, err := call[[]thing](ctx, p, "GET", "/things?broker="+p.Broker+"&after="+cursor, nil)
	for _, t := range things {
		next = t.Name
		page = append(page, provider.Holding{Name: next, Tags: t.Tags, PlanID: t.Plan, Created: t.Created, Target: at})
	}
	return page, next, err
}

// A refusal is an answer of the service, by its status.
type refusal int

const absent, conflict = refusal(http.StatusNotFound), refusal(http.StatusConflict) // it exists, or was changed since it was read

var noBox = provider.Failf("The box does not exist any more. Delete this instance, and create another one.")

func (r refusal) Error() string { return "the service answered " + http.StatusText(int(r)) }

// call makes one request. Its errors are passing, except what the service forbids.
func call[T any](ctx context.Context, p *Provider, method, path string, in any) (out T, err error) {
	body, _ := json.Marshal(in) // texts, numbers, and what was JSON before
	r, err := http.NewRequestWithContext(ctx, method, p.URL+path, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	response, err := p.HTTP.Do(r)
	if err != nil {
		return out, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusForbidden {
		return out, provider.Failf("The project that pays for this plan may make no changes. Ask the operator of the service.")
	} else if response.StatusCode != http.StatusOK {
		return out, refusal(response.StatusCode)
	}
	err = json.NewDecoder(response.Body).Decode(&out)
	return out, err
}
