package demo

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
)

// A plan whose setting "secret" is "cloud" has passwords that are not derived:
// what the demo stands on chooses one, as clouds choose access keys, shows it
// once, keeps a verifier of it, and allows two for each binding.

// maxKeys is how many keys a binding's thing has at most.
const maxKeys = 2

// A Key recognises a password that the demo has chosen: a salt, a dot, and the
// HMAC-SHA256 of the password keyed by the salt, both in base64url. It is short
// because a thing must fit an SSM parameter.
type Key string

// newKey chooses a password and shows it this once.
func newKey() (key Key, password string) {
	random := make([]byte, 36)
	_, _ = rand.Read(random) // which never fails
	salt := base64.RawURLEncoding.EncodeToString(random[:12])
	password = base64.RawURLEncoding.EncodeToString(random[12:])
	return keyOf(salt, password), password
}

func keyOf(salt, password string) Key {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(password))
	return Key(salt + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)))
}

func (k Key) accepts(password string) bool {
	salt, _, _ := strings.Cut(string(k), ".")
	return password != "" && hmac.Equal([]byte(k), []byte(keyOf(salt, password)))
}

// stateFormat is the version in which a chosen is written.
const stateFormat = 1

// A chosen key is what the state of a binding holds: the password only until it
// is granted.
type chosen struct {
	Key      Key    `json:"key"`
	Password string `json:"password,omitempty"`
}

func (c chosen) state() *provider.State {
	data, _ := json.Marshal(c) // texts only
	return &provider.State{Format: stateFormat, Data: data}
}

func chosenOf(s provider.State) (c chosen, err error) {
	switch s.Format {
	case 0:
		return c, nil
	case stateFormat:
		if err = json.Unmarshal(s.Data, &c); err != nil {
			err = errors.New("the binding's state is damaged") // the cause may quote it
		}
		return c, err
	default: // a deploy is under way
		return c, fmt.Errorf("the binding's state has format %d, and this program knows %d", s.Format, stateFormat)
	}
}

// secretByCloud reports whether the plan leaves the secret to the cloud: as it
// meant when the instance was made, or, where that was not recorded, as it does
// today. A binding with a state has begun so.
func secretByCloud(b provider.Binding) bool {
	var recorded settings
	if json.Unmarshal(b.Instance.Snapshot, &recorded) == nil {
		return recorded.Secret == secretCloud
	}
	return b.State.Format != 0 || b.Instance.Settings["secret"] == secretCloud
}

// key gives the binding's thing its one key: made in one step and returned as
// state, verified in a later one, which finds it recorded. A key that was never
// recorded is known to nobody: it is revoked.
func (p *Provider) key(ctx context.Context, s step, was chosen) (provider.Status, error) {
	for range maxTries {
		t, err := p.things.Get(ctx, s.wanted.Name)
		if err != nil {
			return provider.Status{}, err
		}
		if t.Tags != s.wanted.Tags {
			return provider.Status{}, s.contended()
		}
		known := t.Keys
		t.Keys = slices.DeleteFunc(slices.Clone(t.Keys), func(k Key) bool { return k != was.Key })
		made := chosen{}
		switch {
		case len(t.Keys) < len(known):
		case len(t.Keys) > 0 && t.Keys[0].accepts(was.Password):
			st := s.done()
			st.State = chosen{Key: was.Key}.state()
			return st, nil
		case len(t.Keys) < maxKeys:
			made.Key, made.Password = newKey()
			t.Keys = append(t.Keys, made.Key)
		}
		err = p.things.Replace(ctx, t)
		if err != nil && !errors.Is(err, ErrChanged) {
			return provider.Status{}, err
		}
		if err == nil && made.Key != "" {
			return provider.Status{Percent: 90, Description: "Creating the password", After: minAfter, State: made.state()}, nil
		}
	}
	return provider.Status{}, s.contended()
}

// Quarantine marks a thing: its passwords open no more.
func (p *Provider) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.quarantine(ctx, h, true)
}

// Release implements provider.Quarantiner.
func (p *Provider) Release(ctx context.Context, h provider.Holding) error {
	return p.quarantine(ctx, h, false)
}

func (p *Provider) quarantine(ctx context.Context, h provider.Holding, in bool) error {
	for range maxTries {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := p.things.Get(ctx, h.Name)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if t.Tags != h.Tags || t.Quarantined == in {
			return nil // it is so, or it is another one by now
		}
		t.Quarantined = in
		if err = p.things.Replace(ctx, t); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return fmt.Errorf("thing %q was changed by others %d times", h.Name, maxTries)
}
