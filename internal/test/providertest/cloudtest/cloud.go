// Package cloudtest is a cloud that chooses its own secrets, as AWS IAM does,
// and the reference provider over it: the shortest that keeps the contract for
// such clouds. The cloud shows a secret once, allows two for each principal,
// and tells who it is. Tests of whoever calls providers use both.
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

// What the cloud refuses.
var (
	ErrNotFound = errors.New("there is no such thing")
	ErrExists   = errors.New("there is such a thing already")
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
	now      func() time.Time
	mu       sync.Mutex
	accounts map[string]map[string]*thing
	keys     int // that there ever were
}

// NewCloud makes an empty one.
func NewCloud(now func() time.Time) *Cloud {
	return &Cloud{now: now, accounts: map[string]map[string]*thing{}}
}

// A thing is a resource or a principal.
type thing struct {
	tags    provider.Tags
	created time.Time
	config  string
	secrets map[string]string // by the keys' ids
	locked  bool
}

// A view is what the cloud tells of a thing: never a secret.
type view struct {
	name    string
	tags    provider.Tags
	created time.Time
	keys    []string
}

func (t *thing) view(name string) view {
	return view{name: name, tags: t.tags, created: t.created, keys: slices.Sorted(maps.Keys(t.secrets))}
}

// Opens reports whether any account accepts the key.
func (c *Cloud) Opens(name, id, secret string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, things := range c.accounts {
		if things[name].accepts(id, secret) {
			return true
		}
	}
	return false
}

func (t *thing) accepts(id, secret string) bool {
	return t != nil && !t.locked && secret != "" && t.secrets[id] == secret
}

// Secrets counts the keys that any account accepts at a name.
func (c *Cloud) Secrets(name string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, things := range c.accounts {
		if t := things[name]; t != nil && !t.locked {
			n += len(t.secrets)
		}
	}
	return n
}

// Look tells what stands at a name, wherever; empty if nothing does.
func (c *Cloud) Look(name string) (text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, endpoint := range slices.Sorted(maps.Keys(c.accounts)) {
		if t := c.accounts[endpoint][name]; t != nil {
			text += fmt.Sprintf("%s: %+v %s\n", endpoint, t.tags, t.config)
		}
	}
	return text
}

// Plant makes a thing without asking anybody.
func (c *Cloud) Plant(endpoint, name string, owner provider.Tags) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.account(endpoint)[name] = &thing{tags: owner, created: c.now(), secrets: map[string]string{}}
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
}

// do makes one call, which is whole or not at all.
func (c client) do(ctx context.Context, call func(things map[string]*thing) error) error {
	return c.calls.Call(ctx, func() error {
		c.cloud.mu.Lock()
		defer c.cloud.mu.Unlock()
		return call(c.cloud.account(c.endpoint))
	})
}

// whoAmI tells the account's identity.
func (c client) whoAmI(ctx context.Context) (identity string, err error) {
	err = c.do(ctx, func(map[string]*thing) error { identity = "account of " + c.endpoint; return nil })
	return identity, err
}

func (c client) create(ctx context.Context, name string, tags provider.Tags, config string) error {
	return c.do(ctx, func(things map[string]*thing) error {
		if things[name] != nil {
			return ErrExists
		}
		things[name] = &thing{tags: tags, created: c.cloud.now(), config: config, secrets: map[string]string{}}
		return nil
	})
}

// on makes a call about a thing that exists.
func (c client) on(ctx context.Context, name string, call func(*thing) error) error {
	return c.do(ctx, func(things map[string]*thing) error {
		if things[name] == nil {
			return ErrNotFound
		}
		return call(things[name])
	})
}

func (c client) get(ctx context.Context, name string) (v view, err error) {
	err = c.on(ctx, name, func(t *thing) error { v = t.view(name); return nil })
	return v, err
}

func (c client) configure(ctx context.Context, name, config string) error {
	return c.on(ctx, name, func(t *thing) error { t.config = config; return nil })
}

func (c client) lock(ctx context.Context, name string, locked bool) error {
	return c.on(ctx, name, func(t *thing) error { t.locked = locked; return nil })
}

// createKey shows the secret this once.
func (c client) createKey(ctx context.Context, name string) (id, secret string, err error) {
	err = c.on(ctx, name, func(t *thing) error {
		if len(t.secrets) == maxKeys {
			return ErrLimit
		}
		c.cloud.keys++
		id, secret = fmt.Sprintf("key-%d", c.cloud.keys), fmt.Sprintf("chosen by the cloud: %d", c.cloud.keys)
		t.secrets[id] = secret
		return nil
	})
	return id, secret, err
}

func (c client) deleteKey(ctx context.Context, name, id string) error {
	return c.on(ctx, name, func(t *thing) error { delete(t.secrets, id); return nil })
}

// logIn reports whether the account accepts the key.
func (c client) logIn(ctx context.Context, name, id, secret string) (ok bool, err error) {
	err = c.on(ctx, name, func(t *thing) error { ok = t.accepts(id, secret); return nil })
	return ok, err
}

func (c client) delete(ctx context.Context, name string) error {
	return c.do(ctx, func(things map[string]*thing) error {
		switch t := things[name]; {
		case t == nil:
			return ErrNotFound
		case len(t.secrets) > 0:
			return ErrInUse
		}
		delete(things, name)
		return nil
	})
}

func (c client) list(ctx context.Context, after string) (page []view, next string, err error) {
	err = c.do(ctx, func(things map[string]*thing) error {
		for _, name := range slices.Sorted(maps.Keys(things)) {
			if name > after && len(page) < PageSize {
				page = append(page, things[name].view(name))
			} else if len(page) == PageSize {
				next = page[PageSize-1].name
				break
			}
		}
		return nil
	})
	return page, next, err
}
