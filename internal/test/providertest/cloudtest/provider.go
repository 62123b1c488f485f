package cloudtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/test/providertest"
)

const (
	namePrefix = "longshore-demo"
	// The roles of things.
	roleInstance = "instance"
	roleBinding  = "binding"

	// defaultTarget is where things are made unless the operator says otherwise.
	defaultTarget = "east"

	// stateFormat is the version of what remembered is written as.
	stateFormat = 1

	// maxTries bounds how often one step looks again at what it has changed.
	maxTries = 4

	// givenKey is the key of a secret that the broker has chosen.
	givenKey = "given"
)

// A Provider is the reference: each binding is a principal with one key.
type Provider struct {
	Cloud *Cloud
	// SecretOf says who chooses the keys' secrets, cloud or broker, where the plan's
	// setting "secret" does not.
	SecretOf string
	// Script says how long each operation takes, and which one fails.
	Script provider.Provider
	// Broker is whose things the inventory lists; empty for everyone's.
	Broker string
	// Endpoints are today's settings: where the target of a name answers. Nil for a
	// provider that makes all things in one place.
	Endpoints map[string]string
	// Calls are those to the cloud; those of one process.
	Calls *providertest.Calls
	// Mutant is what a test breaks; empty for the sound one. Mutants remember what they have seen.
	Mutant string
	seen   sync.Map
}

// New makes a provider with one target, which is called east and is the default.
func New(cloud *Cloud, broker string) *Provider {
	p := Demo(cloud, 0)
	p.Broker, p.SecretOf, p.Endpoints = broker, "cloud", map[string]string{defaultTarget: "east"}
	return p
}

// Demo makes a provider that does what the demo does, with things in one place. Delay
// is how long an asynchronous operation takes.
func Demo(cloud *Cloud, delay time.Duration) *Provider {
	return &Provider{Cloud: cloud, Script: demo.New(delay, cloud.now), Calls: &providertest.Calls{}}
}

var (
	_ provider.Provider  = (*Provider)(nil)
	_ provider.Inventory = (*Provider)(nil)
	_ provider.Adopter   = (*Provider)(nil)
	_ provider.Describer = (*Provider)(nil)
)

// remembered is what the state of a binding holds.
type remembered struct {
	Key    string `json:"key,omitempty"`
	Secret string `json:"secret,omitempty"`
	// Script is the state of the script.
	Script []byte `json:"script,omitempty"`
}

func (r remembered) state() *provider.State {
	data, _ := json.Marshal(r) // texts only
	return &provider.State{Format: stateFormat, Data: data}
}

// recall reads the state, and gives that of the script, too.
func recall(s provider.State) (r remembered, script provider.State, err error) {
	switch s.Format {
	case 0:
		return r, script, nil
	case stateFormat:
		if err = json.Unmarshal(s.Data, &r); err == nil {
			script, err = provider.ParseState(r.Script)
		}
		return r, script, err
	default: // of a later program: a deploy is under way
		return r, script, fmt.Errorf("state has format %d, and this program knows %d", s.Format, stateFormat)
	}
}

// scripted has the script play a step of a binding.
func scripted(
	ctx context.Context, b provider.Binding, play func(context.Context, provider.Binding) (provider.Status, error),
) (provider.Status, remembered, error) {
	was, script, err := recall(b.State)
	if err != nil {
		return provider.Status{}, was, err
	}
	b.State = script
	st, err := play(ctx, b)
	said := &st.State
	if f, failed := errors.AsType[*provider.Failure](err); failed {
		said = &f.State
	}
	if *said != nil {
		was.Script = (*said).Encode()
		*said = was.state()
	}
	return st, was, err
}

// at is the way to a target whose identity is proven. The first step of an
// instance learns it and makes nothing: what it makes is looked for there.
func (p *Provider) at(ctx context.Context, t provider.Target) (client, *provider.Status, error) {
	c := client{cloud: p.Cloud, calls: p.Calls, mutant: p.Mutant}
	if p.Endpoints == nil {
		return c, nil, ctx.Err()
	}
	if p.Mutant != "orphan-untold" {
		t.Name = cmp.Or(t.Name, defaultTarget)
	}
	endpoint, ok := p.Endpoints[t.Name]
	if !ok {
		return client{}, nil, fmt.Errorf("target %q is not in today's settings", t.Name)
	}
	c.endpoint = endpoint
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
	switch p.Mutant {
	case "joined-ids":
		return role + tags.Platform + tags.Instance + tags.Binding
	case "no-broker":
		tags.Broker = ""
	case "no-platform":
		tags.Platform = ""
	case "one-life", "forgets-incarnation":
		tags.Incarnation, tags.Of = "", ""
	}
	return provider.Name(namePrefix, role, tags)
}

func or(st *provider.Status) provider.Status {
	if st == nil {
		return provider.Status{}
	}
	return *st
}

// wanted is the thing of an instance as it is to be.
func (p *Provider) wanted(in provider.Instance) Thing {
	tags := provider.TagsOf(in)
	return Thing{Name: p.Name(tags), Tags: tags, Plan: in.PlanID, Config: fmt.Sprintf("%s %s", in.Snapshot, in.Parameters)}
}

// Provision implements provider.Provider.
func (p *Provider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	c, learnt, err := p.at(ctx, in.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	want := p.wanted(in)
	_, done := p.seen.Load(want.Name)
	switch p.Mutant {
	case "changes-input":
		in.Settings["seen"] = in.Operation.ID
	case "forgets-at-restart":
		began, _ := p.seen.LoadOrStore(in.Operation.ID, p.Cloud.now())
		in.Operation.Started = began.(time.Time)
	case "exists-is-failure":
		if done {
			return provider.Status{}, provider.Failf("it exists already")
		}
	}
	v, err := c.get(ctx, want.Name)
	switch {
	case in.Origin == (provider.Origin{}) || p.Mutant == "makes-anew":
		v, err = c.ensure(ctx, want)
	case errors.Is(err, ErrNotFound):
		err = goneForGood()
	case err == nil && c.foreign(v, want.Tags):
		err = notOurs()
	}
	if err == nil {
		err = v.inUse()
	}
	if err != nil {
		return provider.Status{}, err
	}
	st, err := p.Script.Provision(ctx, in)
	if st.Done && p.Mutant != "" {
		p.seen.Store(want.Name, true)
	}
	if err != nil || !st.Done || in.Origin == (provider.Origin{}) {
		return st, err
	}
	return st, c.configure(ctx, v, want)
}

// configure has a thing be as it is wanted.
func (c client) configure(ctx context.Context, is, want Thing) error {
	if is.Plan == want.Plan && is.Config == want.Config {
		return nil
	}
	is.Plan, is.Config = want.Plan, want.Config
	return c.replace(ctx, is)
}

// inUse fails a step that needs what is retained: its instance is deleted.
func (t Thing) inUse() error {
	if !t.RetainedUntil.IsZero() {
		return provider.Failf("there is no such instance")
	}
	return nil
}

// ensure makes a thing, or finds it made.
func (c client) ensure(ctx context.Context, want Thing) (Thing, error) {
	for range maxTries {
		v, err := c.get(ctx, want.Name)
		switch {
		case errors.Is(err, ErrNotFound):
			err = c.create(ctx, want)
		case err != nil:
		case c.foreign(v, want.Tags) && c.mutant != "adopts-foreign":
			err = notOurs()
		default:
			return v, nil
		}
		if err != nil && !errors.Is(err, ErrExists) {
			return v, err
		}
	}
	return want, ErrChanged
}

func notOurs() error {
	return provider.Failf("the name is taken by something else, which was left as it is")
}

// remove deletes the keys of a thing and then the thing.
func (c client) remove(ctx context.Context, v Thing) error {
	for _, key := range v.Keys {
		if err := c.deleteKey(ctx, v, key); err != nil {
			return gone(err)
		}
	}
	return gone(c.delete(ctx, v))
}

// gone takes what is not there for done.
func gone(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Update implements provider.Provider.
func (p *Provider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	c, learnt, err := p.at(ctx, in.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	want := p.wanted(in)
	is, err := c.usable(ctx, want)
	if err != nil && p.Mutant == "update-creates" {
		return p.Provision(ctx, in)
	}
	if err != nil {
		return provider.Status{}, err
	}
	st, err := p.Script.Update(ctx, in)
	if _, failed := errors.AsType[*provider.Failure](err); failed && p.Mutant != "" {
		_, again := p.seen.LoadOrStore(in.Operation.ID, true)
		switch {
		case p.Mutant == "failure-is-not-final" && again:
			return provider.Status{Done: true}, nil
		case p.Mutant == "failed-update-counts":
			err = errors.Join(err, c.configure(ctx, is, want))
		case p.Mutant == "tells-parameters":
			err = provider.Failf("cannot use %s", in.Parameters)
		}
	}
	if err != nil || !st.Done {
		return st, err
	}
	return st, c.configure(ctx, is, want)
}

// Describe implements provider.Describer.
func (p *Provider) Describe(ctx context.Context, in provider.Instance) (facts provider.Facts, err error) {
	c, learnt, err := p.at(ctx, in.Target)
	if err != nil || learnt != nil {
		return facts, cmp.Or(err, error(provider.Failf("there is no such instance")))
	}
	is, err := c.usable(ctx, p.wanted(in))
	if p.Mutant == "describes-foreign" {
		is, err = c.get(ctx, p.wanted(in).Name)
	}
	if err == nil {
		facts = provider.Facts{Engine: "Cloud", Address: is.Name, Size: new(int64(len(is.Config)))}
	}
	return facts, err
}

// usable finds the instance, and fails a step that needs it and does not.
func (c client) usable(ctx context.Context, want Thing) (Thing, error) {
	v, err := c.get(ctx, want.Name)
	switch {
	case errors.Is(err, ErrNotFound):
		return v, provider.Failf("there is no such instance")
	case err == nil && c.foreign(v, want.Tags):
		return v, notOurs()
	case err == nil:
		err = v.inUse()
	}
	return v, err
}

// Deprovision implements provider.Provider.
func (p *Provider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if p.Mutant == "needs-parameters" && in.Parameters == nil {
		return provider.Status{}, provider.Failf("no parameters")
	}
	return p.end(ctx, in, provider.TagsOf(in), func() (provider.Status, error) {
		return p.Script.Deprovision(ctx, in)
	})
}

// Unbind implements provider.Provider.
func (p *Provider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.end(ctx, b.Instance, provider.BindingTagsOf(b), func() (provider.Status, error) {
		for _, t := range p.Cloud.Things() {
			if t.Tags.Instance == b.Instance.ID && t.Tags.Binding != "" && p.Mutant == "unbinds-all" {
				p.Cloud.Take(t.Name)
			}
		}
		st, _, err := scripted(ctx, b, p.Script.Unbind)
		return st, err
	})
}

// end removes a thing, until it is seen to be absent.
func (p *Provider) end(
	ctx context.Context, in provider.Instance, tags provider.Tags, play func() (provider.Status, error),
) (provider.Status, error) {
	c, learnt, err := p.at(ctx, in.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	for range maxTries {
		v, err := c.get(ctx, p.Name(tags))
		_, done := p.seen.Load(v.Name)
		switch {
		case errors.Is(err, ErrNotFound) && p.Mutant == "absent-is-failure":
			return provider.Status{}, provider.Failf("there is no such thing")
		case errors.Is(err, ErrNotFound), !done && p.Mutant == "leaves-half-made":
			return provider.Status{Done: true, Percent: 100, Description: "It is deleted."}, nil
		case err != nil:
			return provider.Status{}, err
		case c.foreign(v, tags) && p.Mutant != "deletes-foreign":
			return provider.Status{}, notOurs()
		}
		if st, err := play(); err != nil || !st.Done {
			st.Done = err == nil && p.Mutant == "done-too-early"
			return st, err
		}
		if err := c.remove(ctx, v); err != nil {
			return provider.Status{}, err
		}
	}
	return provider.Status{Percent: 99, Description: "Deleting", After: time.Second}, nil
}

// List implements provider.Inventory, over the one target.
func (p *Provider) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	c, learnt, err := p.at(ctx, provider.Target{Name: defaultTarget})
	if err != nil {
		return nil, "", err
	}
	things, next, err := c.list(ctx, cursor)
	if p.Mutant == "loses-pages" {
		next = ""
	}
	var page []provider.Holding
	for _, t := range things {
		_, done := p.seen.Load(t.Name)
		if p.Broker != "" && t.Tags.Broker != p.Broker && p.Mutant != "lists-all" || !done && p.Mutant == "hides-half-made" {
			continue
		}
		h := provider.Holding{Name: t.Name, Tags: t.Tags, Created: t.Created, PlanID: t.Plan, RetainedUntil: t.RetainedUntil}
		if learnt != nil && p.Mutant != "orphan-untold" {
			h.Target = *learnt.Target
		}
		page = append(page, h)
	}
	return page, next, err
}
