// Package cloudtest is a cloud that chooses its own secrets, as AWS IAM does,
// and the reference provider over it, which plays the demo's part: how long its
// work takes, and what fails, is what the demo would do. The cloud shows a secret
// once, allows two for each principal, and tells who it is. Tests of whoever calls
// providers use both.
package cloudtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/providertest"
)

// The refusals of the cloud.
var (
	ErrNotFound = errors.New("there is no such thing")
	ErrExists   = errors.New("there is such a thing already")
	ErrChanged  = errors.New("the thing was changed in between")
	ErrLimit    = errors.New("a principal has two keys at most")
	ErrInUse    = errors.New("a thing with keys cannot be deleted")
)

const (
	maxKeys = 2
	// PageSize is how many things a page of the inventory holds at most.
	PageSize = 3
)

// A Cloud is some accounts, each with its own things, by the endpoints at which
// they answer.
type Cloud struct {
	// Effect is called around each change that a provider makes, with the name of the
	// call; nil for nothing.
	Effect func(name string, do func() error) error

	now      func() time.Time
	mu       sync.Mutex
	accounts map[string]map[string]*thing
	serial   int // of things, of their revisions and of keys
}

// NewCloud makes an empty one.
func NewCloud(now func() time.Time) *Cloud {
	return &Cloud{now: now, accounts: map[string]map[string]*thing{}}
}

// Clone makes another cloud that is the same, with a clock of its own.
func (c *Cloud) Clone(now func() time.Time) *Cloud {
	c.mu.Lock()
	defer c.mu.Unlock()
	other := NewCloud(now)
	other.serial = c.serial
	for endpoint, things := range c.accounts {
		for name, t := range things {
			other.account(endpoint)[name] = &thing{t.Thing, maps.Clone(t.secrets)}
		}
	}
	return other
}

// A Thing is a resource or a principal, as the cloud tells of it: never a secret.
type Thing struct {
	Name         string
	Tags         provider.Tags
	Created      time.Time
	Plan, Config string
	// On is the resource that a principal opens.
	On     string
	Locked bool
	// RetainedUntil is set on what is retained.
	RetainedUntil time.Time
	Source        string
	Keys          []string

	id, revision int // neither is ever another thing's
}

type thing struct {
	Thing
	secrets map[string]string // by the keys' ids
}

func (t *thing) told() Thing {
	out := t.Thing
	out.Keys = slices.Sorted(maps.Keys(t.secrets))
	return out
}

// Things are those of all accounts, by name.
func (c *Cloud) Things() (all []Thing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, endpoint := range slices.Sorted(maps.Keys(c.accounts)) {
		for _, name := range slices.Sorted(maps.Keys(c.accounts[endpoint])) {
			all = append(all, c.accounts[endpoint][name].told())
		}
	}
	return all
}

// Opens reports whether any account accepts the grant's credentials.
func (c *Cloud) Opens(g *provider.Grant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, _ := g.Credentials["username"].(string)
	key, _ := g.Credentials["key"].(string)
	secret, _ := g.Credentials["password"].(string)
	for _, things := range c.accounts {
		if accepts(things, name, key, secret) {
			return true
		}
	}
	return false
}

func accepts(things map[string]*thing, name, key, secret string) bool {
	t := things[name]
	return t != nil && !t.Locked && things[t.On] != nil && !things[t.On].Locked && secret != "" && t.secrets[key] == secret
}

// Secrets counts the keys that any account accepts at a name.
func (c *Cloud) Secrets(name string) (n int) {
	for _, t := range c.Things() {
		if t.Name == name && !t.Locked {
			n += len(t.Keys)
		}
	}
	return n
}

// Look tells what stands at a name, wherever; empty if nothing does.
func (c *Cloud) Look(name string) (text string) {
	for _, t := range c.Things() {
		if t.Name == name {
			text += fmt.Sprintf("%+v %v %s %s\n", t.Tags, t.Created, t.Plan, t.Config)
		}
	}
	return text
}

// Plant makes a thing without asking anybody.
func (c *Cloud) Plant(endpoint string, t Thing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(c.account(endpoint), &thing{t, map[string]string{}})
}

// Take removes what stands at a name, without asking anybody.
func (c *Cloud) Take(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, things := range c.accounts {
		delete(things, name)
	}
}

func (c *Cloud) put(things map[string]*thing, t *thing) {
	c.serial++
	t.id, t.revision = c.serial, c.serial
	if t.Created.IsZero() {
		t.Created = c.now().UTC()
	}
	things[t.Name] = t
}

func (c *Cloud) account(endpoint string) map[string]*thing {
	if c.accounts[endpoint] == nil {
		c.accounts[endpoint] = map[string]*thing{}
	}
	return c.accounts[endpoint]
}

// A client is one process' way to one account.
type client struct {
	cloud    *Cloud
	calls    *providertest.Calls
	endpoint string
	mutant   string
}

// foreign reports whether a thing is of another owner.
func (c client) foreign(v Thing, tags provider.Tags) bool {
	return v.Tags.Owner() != tags.Owner() && c.mutant != "forgets-incarnation"
}

// call makes a call to the cloud.
func (c client) call(ctx context.Context, do func() error) error {
	if c.mutant == "ignores-cancelling" {
		ctx = context.WithoutCancel(ctx)
	}
	err := c.calls.Call(ctx, do)
	if errors.Is(err, providertest.ErrFault) && c.mutant == "fails-by-fault" {
		return provider.Failf("fault")
	}
	return err
}

// read makes a call that changes nothing.
func (c client) read(ctx context.Context, call func(things map[string]*thing) error) error {
	return c.call(ctx, func() error { return c.whole(call) })
}

// change makes a call that is whole or not at all.
func (c client) change(ctx context.Context, name string, call func(things map[string]*thing) error) error {
	return c.call(ctx, func() error {
		if c.cloud.Effect == nil {
			return c.whole(call)
		}
		return c.cloud.Effect(name, func() error { return c.whole(call) })
	})
}

func (c client) whole(call func(things map[string]*thing) error) error {
	c.cloud.mu.Lock()
	defer c.cloud.mu.Unlock()
	return call(c.cloud.account(c.endpoint))
}

// whoAmI tells the account's identity.
func (c client) whoAmI(ctx context.Context) (identity string, err error) {
	err = c.read(ctx, func(map[string]*thing) error { identity = "account of " + c.endpoint; return nil })
	return identity, err
}

func (c client) get(ctx context.Context, name string) (out Thing, err error) {
	err = c.read(ctx, func(things map[string]*thing) error {
		if things[name] == nil {
			return ErrNotFound
		}
		out = things[name].told()
		return nil
	})
	return out, err
}

// create makes a thing. When it was made is when the provider asked for it, however
// late that comes.
func (c client) create(ctx context.Context, t Thing) error {
	t.Created = c.cloud.now().UTC()
	return c.change(ctx, "create "+t.Name, func(things map[string]*thing) error {
		if things[t.Name] != nil && c.mutant == "looks-then-makes" {
			t.Name += "-2"
		}
		if things[t.Name] != nil {
			return ErrExists
		}
		c.cloud.put(things, &thing{t, map[string]string{}})
		return nil
	})
}

// on changes a thing by its id: a late call never hits a successor.
func (c client) on(ctx context.Context, verb string, v Thing, call func(things map[string]*thing, t *thing) error) error {
	return c.change(ctx, verb+" "+v.Name, func(things map[string]*thing) error {
		t := things[v.Name]
		if t == nil || t.id != v.id {
			return ErrNotFound
		}
		return call(things, t)
	})
}

// replace has the thing be as v is, if it is as it was when v was read.
func (c client) replace(ctx context.Context, v Thing) error {
	return c.on(ctx, "replace", v, func(_ map[string]*thing, t *thing) error {
		if t.revision != v.revision {
			return ErrChanged
		}
		c.cloud.serial++
		t.Thing = v
		t.revision = c.cloud.serial
		return nil
	})
}

// createKey shows the secret this once.
func (c client) createKey(ctx context.Context, v Thing) (id, secret string, err error) {
	err = c.on(ctx, "key of", v, func(_ map[string]*thing, t *thing) error {
		if len(t.secrets) == maxKeys {
			return ErrLimit
		}
		c.cloud.serial++
		id, secret = fmt.Sprintf("key-%d", c.cloud.serial), fmt.Sprintf("chosen by the cloud: %d", c.cloud.serial)
		t.secrets[id] = secret
		return nil
	})
	return id, secret, err
}

// setKey has a key have this secret.
func (c client) setKey(ctx context.Context, v Thing, id, secret string) error {
	return c.on(ctx, "secret of", v, func(_ map[string]*thing, t *thing) error { t.secrets[id] = secret; return nil })
}

func (c client) deleteKey(ctx context.Context, v Thing, id string) error {
	return c.on(ctx, "revoke", v, func(_ map[string]*thing, t *thing) error { delete(t.secrets, id); return nil })
}

// logIn reports whether the account accepts the key.
func (c client) logIn(ctx context.Context, name, id, secret string) (ok bool, err error) {
	err = c.read(ctx, func(things map[string]*thing) error { ok = accepts(things, name, id, secret); return nil })
	return ok, err
}

func (c client) delete(ctx context.Context, v Thing) error {
	return c.on(ctx, "delete", v, func(things map[string]*thing, t *thing) error {
		if len(t.secrets) > 0 {
			return ErrInUse
		}
		delete(things, v.Name)
		return nil
	})
}

func (c client) list(ctx context.Context, after string) (page []Thing, next string, err error) {
	err = c.read(ctx, func(things map[string]*thing) error {
		for _, name := range slices.Sorted(maps.Keys(things)) {
			if name > after && len(page) < PageSize {
				page = append(page, things[name].told())
			} else if len(page) == PageSize {
				next = page[PageSize-1].Name
				break
			}
		}
		return nil
	})
	return page, next, err
}
