package principaltest

import (
	"context"
	"encoding/json"
	"slices"
	"unicode"

	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
)

// Policy implements principal.Policies.
func (c *Client) Policy(ctx context.Context, kind plan.Principal, name, policy string) (document string, err error) {
	err = c.on(ctx, "Policy", kind, name, func(_ *Fake, e *entity) error {
		var ok bool
		if document, ok = e.policies[policy]; !ok {
			return said("NoSuchEntity", "The %s policy with name %s cannot be found.", kind, policy)
		}
		return nil
	})
	return document, err
}

// PutPolicy implements principal.Policies.
func (c *Client) PutPolicy(ctx context.Context, kind plan.Principal, name, policy, document string) error {
	return c.on(ctx, "PutPolicy", kind, name, func(_ *Fake, e *entity) error {
		size := letters(document)
		for other, text := range e.policies {
			if other != policy {
				size += letters(text)
			}
		}
		switch {
		case size > inlineLimit[kind]:
			return said("LimitExceeded", "Maximum policy size of %d bytes exceeded for %s %s", inlineLimit[kind], kind, name)
		case !json.Valid([]byte(document)):
			return said("MalformedPolicyDocument", "the policy is not JSON")
		}
		e.policies[policy] = document
		return nil
	})
}

// letters counts what IAM counts: all but white space.
func letters(document string) (n int) {
	for _, r := range document {
		if !unicode.IsSpace(r) {
			n++
		}
	}
	return n
}

// DeletePolicy implements principal.Policies.
func (c *Client) DeletePolicy(ctx context.Context, kind plan.Principal, name, policy string) error {
	return c.on(ctx, "DeletePolicy", kind, name, func(_ *Fake, e *entity) error {
		if _, ok := e.policies[policy]; !ok {
			return said("NoSuchEntity", "The %s policy with name %s cannot be found.", kind, policy)
		}
		delete(e.policies, policy)
		return nil
	})
}

// Attachments implements principal.Policies.
func (c *Client) Attachments(ctx context.Context, kind plan.Principal, name string) (all []principal.Detach, err error) {
	err = c.on(ctx, "Attachments", kind, name, func(_ *Fake, e *entity) error {
		for policy := range e.policies {
			all = append(all, func(ctx context.Context) error {
				return c.on(ctx, "Detach", kind, name, func(_ *Fake, e *entity) error { delete(e.policies, policy); return nil })
			})
		}
		return nil
	})
	return all, err
}

// Keys implements principal.Keys.
func (c *Client) Keys(ctx context.Context, user string) (keys []principal.KeyInfo, err error) {
	err = c.on(ctx, "Keys", plan.User, user, func(f *Fake, e *entity) error {
		for _, k := range e.keys {
			if !f.now().Before(k.created.Add(f.Lags)) {
				keys = append(keys, principal.KeyInfo{ID: k.id, Active: k.active})
			}
		}
		return nil
	})
	return keys, err
}

// CreateKey implements principal.Keys.
func (c *Client) CreateKey(ctx context.Context, user string) (made principal.Key, err error) {
	err = c.on(ctx, "CreateKey", plan.User, user, func(f *Fake, e *entity) error {
		if len(e.keys) == maxKeys {
			return said("LimitExceeded", "Cannot exceed quota for AccessKeysPerUser: %d", maxKeys)
		}
		k := f.add(e)
		made = principal.Key{ID: k.id, Secret: k.secret}
		return nil
	})
	return made, err
}

// SetKey implements principal.Keys.
func (c *Client) SetKey(ctx context.Context, user, id string, active bool) error {
	return c.on(ctx, "SetKey", plan.User, user, func(_ *Fake, e *entity) error {
		for _, k := range e.keys {
			if k.id == id {
				k.active = active
				return nil
			}
		}
		return said("NoSuchEntity", "The Access Key with id %s cannot be found.", id)
	})
}

// DeleteKey implements principal.Keys.
func (c *Client) DeleteKey(ctx context.Context, user, id string) error {
	return c.on(ctx, "DeleteKey", plan.User, user, func(_ *Fake, e *entity) error {
		before := len(e.keys)
		e.keys = slices.DeleteFunc(e.keys, func(k *key) bool { return k.id == id })
		if len(e.keys) == before {
			return said("NoSuchEntity", "The Access Key with id %s cannot be found.", id)
		}
		return nil
	})
}

// Usage implements principal.Keys.
func (c *Client) Usage(ctx context.Context, kind plan.Principal) (made, most int, err error) {
	err = c.do(ctx, "Usage", func(f *Fake) error {
		made, most = len(f.standing[kind]), rolesQuota
		if kind == plan.User {
			most = usersQuota
			if f.Quota > 0 {
				most = f.Quota
			}
		}
		return nil
	})
	return made, most, err
}

// Prove implements principal.Prover. A proof needs the plan's policy; asking whose the
// key is needs none.
func (c *Client) Prove(
	ctx context.Context, k principal.Key, proof *plan.Proof, _ map[string]string,
) (ok bool, why string, err error) {
	err = c.do(ctx, "Prove", func(f *Fake) error {
		ok, why = f.prove(k, proof)
		return nil
	})
	return ok, why, err
}

func (f *Fake) prove(try principal.Key, proof *plan.Proof) (bool, string) {
	for _, e := range f.standing[plan.User] {
		for _, k := range e.keys {
			if k.id != try.ID || !k.active {
				continue
			}
			f.proofs++
			age := f.now().Sub(k.created)
			switch {
			case k.secret != try.Secret:
				return false, "403 SignatureDoesNotMatch"
			case age < f.Settles, age < 2*f.Settles && f.proofs%2 == 0:
				return false, "403 InvalidClientTokenId"
			case proof != nil && !e.allows():
				return false, "403 AccessDenied"
			}
			return true, ""
		}
	}
	return false, "403 InvalidClientTokenId"
}
