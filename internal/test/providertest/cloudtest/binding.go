package cloudtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// Bind implements provider.Provider.
func (p *Provider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	c, learnt, err := p.at(ctx, b.Instance.Target)
	if err != nil || learnt != nil {
		return or(learnt), err
	}
	owner, err := c.usable(ctx, p.wanted(b.Instance))
	if err != nil {
		return provider.Status{}, err
	}
	tags := provider.BindingTagsOf(b)
	v, err := c.ensure(ctx, Thing{Name: p.Name(tags), Tags: tags, Plan: b.Instance.PlanID, On: owner.Name})
	if err != nil {
		return provider.Status{}, err
	}
	st, was, err := scripted(ctx, b, p.Script.Bind)
	if err != nil || !st.Done || st.Grant.Credentials["password"] == nil {
		return st, err
	}
	if p.Mutant != "" {
		p.seen.Store(v.Name, true)
	}
	grant := st.Grant.Credentials
	of, _ := b.Instance.Settings["secret"].(string)
	switch p.Mutant {
	case "shared-credentials":
		of, grant["password"] = "broker", "password of "+b.Instance.ID
	case "tells-secret":
		st.Description += hex.EncodeToString(b.Secret)
	}
	if was.Key == "" && cmp.Or(of, p.SecretOf) != "cloud" {
		grant["key"] = givenKey
		return st, c.setKey(ctx, v, givenKey, grant["password"].(string))
	}
	made, err := p.key(ctx, c, v, was)
	if err != nil || !made.Done {
		return made, err
	}
	grant["username"], grant["key"], grant["password"] = v.Name, made.Grant.Credentials["key"], made.Grant.Credentials["password"]
	if p.Mutant == "random-password" {
		grant["password"] = rand.Text()
	}
	st.State = made.State
	return st, nil
}

// key gives the binding its one key: made in a first step and returned as state,
// granted in a later one, which finds it recorded.
func (p *Provider) key(ctx context.Context, c client, v Thing, was remembered) (st provider.Status, err error) {
	for _, key := range v.Keys { // one that was never recorded is known to nobody
		if key != was.Key && p.Mutant != "leftover-key" {
			if err := c.deleteKey(ctx, v, key); err != nil {
				return st, err
			}
		}
	}
	ok := false
	if was.Secret != "" {
		if ok, err = c.logIn(ctx, v.Name, was.Key, was.Secret); err != nil {
			return st, err
		}
	}
	if !ok || p.Mutant == "ignores-state" || p.Mutant == "grants-another" {
		if err := c.deleteKey(ctx, v, was.Key); err != nil {
			return st, err
		}
		was.Key, was.Secret, err = c.createKey(ctx, v)
		if err != nil {
			return st, err
		}
		if p.Mutant != "grants-another" {
			return provider.Status{State: was.state(), Percent: 80, Description: "Creating the key", After: time.Second}, nil
		}
	}
	st = provider.Status{Done: true, Grant: &provider.Grant{Credentials: map[string]any{"key": was.Key, "password": was.Secret}}}
	if p.Mutant != "keeps-secret" {
		was.Secret = ""
	}
	st.State = was.state()
	return st, nil
}
