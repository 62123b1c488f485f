package cloudtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/providertest"
)

// The roles of things.
const (
	roleInstance = "instance"
	roleBinding  = "binding"
)

// defaultTarget is where things are made unless the operator says otherwise.
const defaultTarget = "east"

// stateFormat is the version of what remembered is written as.
const stateFormat = 1

// A Provider is the reference: each binding is a principal with one key, which
// the cloud chooses.
type Provider struct {
	Cloud *Cloud
	// Broker is whose things the inventory lists.
	Broker string
	// Endpoints are today's settings: where the target of a name answers.
	Endpoints map[string]string
	// Calls are those to the cloud; those of one process.
	Calls *providertest.Calls
	// Mutant is what a test breaks; empty for the sound one.
	Mutant string
}

// New makes a provider with one target, which is called east and is the default.
func New(cloud *Cloud, broker string) *Provider {
	return &Provider{Cloud: cloud, Broker: broker, Endpoints: map[string]string{defaultTarget: "east"}, Calls: &providertest.Calls{}}
}

var (
	_ provider.Provider    = (*Provider)(nil)
	_ provider.Inventory   = (*Provider)(nil)
	_ provider.Quarantiner = (*Provider)(nil)
)

// remembered is what the state of a binding holds.
type remembered struct {
	Key    string `json:"key,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Failed is the operation that has failed for good.
	Failed string `json:"failed,omitempty"`
}

func (r remembered) state() *provider.State {
	data, _ := json.Marshal(r) // texts only
	return &provider.State{Format: stateFormat, Data: data}
}

func recall(s provider.State) (r remembered, err error) {
	switch s.Format {
	case 0:
		return r, nil
	case stateFormat:
		return r, json.Unmarshal(s.Data, &r)
	default: // of a later program: a deploy is under way
		return r, fmt.Errorf("state has format %d, and this program knows %d", s.Format, stateFormat)
	}
}

// at is the way to a target whose identity is proven. The first step of an
// instance learns it and makes nothing: what it makes is looked for there.
func (p *Provider) at(ctx context.Context, t provider.Target) (client, *provider.Status, error) {
	if p.Mutant != "orphan-untold" {
		t.Name = cmp.Or(t.Name, defaultTarget)
	}
	endpoint, ok := p.Endpoints[t.Name]
	if !ok {
		return client{}, nil, fmt.Errorf("target %q is not in today's settings", t.Name)
	}
	c := client{cloud: p.Cloud, calls: p.Calls, endpoint: endpoint}
	identity, err := c.whoAmI(ctx)
	switch {
	case err != nil:
		return c, nil, err
	case t.Identity == "":
		learnt := provider.Target{Name: t.Name, Identity: identity}
		return c, &provider.Status{Target: &learnt, Description: "Found the account", After: time.Second}, nil
	case t.Identity != identity && p.Mutant != "trusts-absence":
		return c, nil, fmt.Errorf("target %q is %q, and this is made at %q", t.Name, identity, t.Identity)
	}
	return c, nil, nil
}

// Name is the name of what is made for the tags.
func (p *Provider) Name(tags provider.Tags) string {
	role := roleInstance
	if tags.Binding != "" {
		role = roleBinding
	}
	if p.Mutant == "no-broker" {
		tags.Broker = ""
	}
	return provider.Name("fake", role, tags)
}

// asked is the failure that the settings ask for, or that is on record.
func asked(in provider.Instance, was remembered) error {
	if in.Settings["fail"] != string(in.Operation.Kind) && was.Failed != in.Operation.ID {
		return nil
	}
	was.Failed = in.Operation.ID
	f := provider.Failf("asked to fail")
	f.State = was.state()
	return f
}

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	c, learnt, err := p.at(ctx, in.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	was, err := recall(in.State)
	if err != nil {
		return provider.Status{}, err
	}
	if err := asked(in, was); err != nil {
		return provider.Status{}, err
	}
	return c.ensure(ctx, p.Name(provider.TagsOf(in)), provider.TagsOf(in), config(in))
}

func or(st *provider.Status) provider.Status {
	if st == nil {
		return provider.Status{}
	}
	return *st
}

func config(in provider.Instance) string {
	return fmt.Sprintf("%s %s %s", in.PlanID, in.Snapshot, in.Parameters)
}

// ensure makes a thing, or finds it made; done when it was found.
func (c client) ensure(ctx context.Context, name string, tags provider.Tags, config string) (provider.Status, error) {
	again := provider.Status{Percent: 50, Description: "Creating", After: time.Second}
	v, err := c.get(ctx, name)
	switch {
	case errors.Is(err, ErrNotFound):
		if err := c.create(ctx, name, tags, config); !errors.Is(err, ErrExists) {
			return again, err
		}
		return again, nil
	case err != nil:
		return provider.Status{}, err
	case v.tags != tags:
		return provider.Status{}, notOurs()
	}
	return provider.Status{Done: true, Percent: 100}, nil
}

func notOurs() error {
	return provider.Failf("the name is taken by something else, which was left as it is")
}

// remove deletes the keys of a thing and then the thing.
func (c client) remove(ctx context.Context, v view) error {
	for _, key := range v.keys {
		if err := c.deleteKey(ctx, v.name, key); err != nil {
			return err
		}
	}
	return c.delete(ctx, v.name)
}

// Update implements provider.Provider.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	c, learnt, err := p.at(ctx, in.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	if err := p.usable(ctx, c, in); err != nil {
		return provider.Status{}, err
	}
	was, err := recall(in.State)
	if err != nil {
		return provider.Status{}, err
	}
	if err := asked(in, was); err != nil {
		return provider.Status{}, err
	}
	if err := c.configure(ctx, p.Name(provider.TagsOf(in)), config(in)); err != nil {
		return provider.Status{}, err
	}
	return provider.Status{Done: true, Percent: 100}, nil
}

// usable fails a step that needs the instance and does not find it.
func (p *Provider) usable(ctx context.Context, c client, in provider.Instance) error {
	v, err := c.get(ctx, p.Name(provider.TagsOf(in)))
	switch {
	case errors.Is(err, ErrNotFound):
		return provider.Failf("there is no such instance")
	case err == nil && v.tags != provider.TagsOf(in):
		return notOurs()
	}
	return err
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if p.Mutant == "needs-parameters" && in.Parameters == nil {
		return provider.Status{}, provider.Failf("no parameters")
	}
	return p.end(ctx, in, in.State, provider.TagsOf(in))
}

// end removes a thing, until it is seen to be absent.
func (p *Provider) end(ctx context.Context, in provider.Instance, s provider.State, tags provider.Tags) (provider.Status, error) {
	c, learnt, err := p.at(ctx, in.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	was, err := recall(s)
	if err != nil {
		return provider.Status{}, err
	}
	v, err := c.get(ctx, p.Name(tags))
	switch {
	case errors.Is(err, ErrNotFound):
		return provider.Status{Done: true, Percent: 100, State: &provider.State{}}, nil
	case err != nil:
		return provider.Status{}, err
	case v.tags != tags:
		return provider.Status{}, notOurs()
	}
	if err := asked(in, was); err != nil {
		return provider.Status{}, err
	}
	return provider.Status{Percent: 50, Description: "Deleting", After: time.Second}, c.remove(ctx, v)
}

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	c, learnt, err := p.at(ctx, b.Instance.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	if err := p.usable(ctx, c, b.Instance); err != nil {
		return provider.Status{}, err
	}
	was, err := recall(b.State)
	if err != nil {
		return provider.Status{}, err
	}
	if err := asked(b.Instance, was); err != nil {
		return provider.Status{}, err
	}
	name := p.Name(provider.BindingTagsOf(b))
	if st, err := c.ensure(ctx, name, provider.BindingTagsOf(b), ""); err != nil || !st.Done {
		return st, err
	}
	return p.key(ctx, c, name, was)
}

// key gives the binding its one key: made in a first step and returned as state,
// granted in a later one, which finds it recorded.
func (p *Provider) key(ctx context.Context, c client, name string, was remembered) (provider.Status, error) {
	v, err := c.get(ctx, name)
	if err != nil {
		return provider.Status{}, err
	}
	for _, key := range v.keys { // one that was never recorded is known to nobody
		if key != was.Key && p.Mutant != "leftover-key" {
			if err := c.deleteKey(ctx, name, key); err != nil {
				return provider.Status{}, err
			}
		}
	}
	ok := false
	if was.Secret != "" {
		if ok, err = c.logIn(ctx, name, was.Key, was.Secret); err != nil {
			return provider.Status{}, err
		}
	}
	if !ok || p.Mutant == "ignores-state" || p.Mutant == "grants-another" {
		if err := c.deleteKey(ctx, name, was.Key); err != nil {
			return provider.Status{}, err
		}
		key, secret, err := c.createKey(ctx, name)
		if err != nil {
			return provider.Status{}, err
		}
		made := remembered{Key: key, Secret: secret}
		if p.Mutant != "grants-another" {
			return provider.Status{State: made.state(), Percent: 80, Description: "Creating the key", After: time.Second}, nil
		}
		was = made
	}
	st := provider.Status{Done: true, Percent: 100, State: remembered{Key: was.Key}.state(), Grant: &provider.Grant{
		Credentials: map[string]any{"username": name, "key": was.Key, "password": was.Secret},
	}}
	if p.Mutant == "keeps-secret" {
		st.State = was.state()
	}
	return st, nil
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.end(ctx, b.Instance, b.State, provider.BindingTagsOf(b))
}

// List implements provider.Inventory, over the one target.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	c, learnt, err := p.at(ctx, provider.Target{Name: defaultTarget})
	if err != nil {
		return nil, "", err
	}
	views, next, err := c.list(ctx, cursor)
	var page []provider.Holding
	for _, v := range views {
		if v.tags.Broker != p.Broker && p.Mutant != "lists-all" {
			continue
		}
		h := provider.Holding{Name: v.name, Tags: v.tags, Created: v.created, Target: *learnt.Target}
		if p.Mutant == "orphan-untold" {
			h.Target = provider.Target{}
		}
		page = append(page, h)
	}
	return page, next, err
}

// Quarantine implements provider.Quarantiner.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	c, _, err := p.at(ctx, h.Target)
	if err != nil || p.Mutant == "open-in-quarantine" {
		return err
	}
	return gone(c.lock(ctx, h.Name, true))
}

// Release implements provider.Quarantiner.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error {
	c, _, err := p.at(ctx, h.Target)
	if err != nil || p.Mutant == "never-released" {
		return err
	}
	return gone(c.lock(ctx, h.Name, false))
}

// gone takes what is not there for done.
func gone(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
