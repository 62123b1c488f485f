// Package datakey seals under one data key of the table. The table holds that key sealed by
// another vault, which opens it once for each process: a list of a thousand names makes no
// calls to a key service. The package is for values that may be lost: names, askers, links and
// sessions. If the data key is lost, a new one takes its place.
package datakey

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// A Vault seals under the data key, in the form of a vault.Local.
type Vault struct {
	records *ledger.Ledger
	over    vault.Vault
	turn    chan struct{} // a lock for which a caller waits no longer than its context allows
	local   atomic.Pointer[vault.Local]
}

var _ vault.Vault = (*Vault)(nil)

// New returns a vault; over seals its data key. It calls nothing.
func New(records *ledger.Ledger, over vault.Vault) *Vault {
	return &Vault{records: records, over: over, turn: make(chan struct{}, 1)}
}

// label is the label to which the data key is bound.
var label = vault.Label{Member: vault.DataKey}

// key returns a vault with the data key. If no key opens, it makes one when a value is to be
// sealed. To open a value it makes none, since the other vault may be the wrong one by mistake.
func (v *Vault) key(ctx context.Context, seals bool) (*vault.Local, error) {
	if l := v.local.Load(); l != nil {
		return l, nil
	}
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l := v.local.Load()
	if l != nil { // another caller read the key meanwhile
		return l, nil
	}
	err := ledger.Again(ctx, func() (err error) {
		l, err = v.read(ctx, seals)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the table's data key: %w", err)
	}
	v.local.Store(l)
	return l, nil
}

func (v *Vault) read(ctx context.Context, seals bool) (*vault.Local, error) {
	kept, err := v.records.DataKey(ctx)
	if err != nil {
		return nil, err
	}
	if kept.Version != 0 {
		var l *vault.Local
		plain, err := v.over.Open(ctx, label, kept.Sealed)
		if err == nil {
			l, err = vault.NewLocal(plain)
		}
		if !errors.Is(err, vault.ErrSealed) && !errors.Is(err, vault.ErrKey) {
			return l, err
		}
	}
	if !seals {
		return nil, vault.ErrSealed
	}
	plain := make([]byte, vault.KeySize)
	_, _ = rand.Read(plain) // never fails: see crypto/rand
	if kept.Sealed, err = v.over.Seal(ctx, label, plain); err != nil {
		return nil, err
	}
	if err := v.records.Commit(ctx, ledger.Put(kept)); err != nil {
		return nil, err
	}
	return vault.NewLocal(plain)
}

// Seal implements vault.Vault.
func (v *Vault) Seal(ctx context.Context, label vault.Label, plaintext []byte) ([]byte, error) {
	if plaintext == nil {
		return nil, nil
	}
	l, err := v.key(ctx, true)
	if err != nil {
		return nil, err
	}
	return l.Seal(ctx, label, plaintext)
}

// Open implements vault.Vault.
func (v *Vault) Open(ctx context.Context, label vault.Label, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	l, err := v.key(ctx, false)
	if err != nil {
		return nil, err
	}
	return l.Open(ctx, label, sealed)
}

// Names opens the names of an instance. Lost names are empty.
func (v *Vault) Names(ctx context.Context, i lifecycle.Record) (n lifecycle.Names, err error) {
	err = v.opened(ctx, vault.Label{Key: i.Key, Member: vault.Names}, i.Attributes.Names, &n)
	return n, err
}

// opened decodes a sealed object into the value; it leaves the value as it is if the object is lost or absent.
func (v *Vault) opened(ctx context.Context, of vault.Label, sealed lifecycle.Sealed, into any) error {
	plain, err := v.Open(ctx, of, sealed)
	if errors.Is(err, vault.ErrSealed) {
		return nil
	}
	_ = json.Unmarshal(plain, into) // a platform's own object may have any members
	return err
}

// asker returns what the platform calls the user who asked for an entry's operation, names first;
// each text may be empty. All are empty if the platform did not say, or if the identity is lost.
func (v *Vault) asker(ctx context.Context, e lifecycle.Entry) ([]string, error) {
	var said struct {
		Username string `json:"username"`  // Kubernetes
		UserName string `json:"user_name"` // Cloud Foundry's UAA
		Email    string `json:"email"`
		UserID   string `json:"user_id"` // Cloud Foundry
		UID      string `json:"uid"`
	}
	err := v.opened(ctx, vault.Label{Key: e.Key, Member: vault.Identity}, e.Asker.Identity, &said)
	return []string{said.Username, said.UserName, said.Email, said.UserID, said.UID}, err
}

// Who returns who asked for an entry's operation: the name of the user, or else the id. It is
// empty if the platform did not say, or if the identity is lost.
func (v *Vault) Who(ctx context.Context, e lifecycle.Entry) (string, error) {
	said, err := v.asker(ctx, e)
	return cmp.Or(said...), err
}

// AskedBy reports whether the user with this name, email or id asked for an entry's operation.
func (v *Vault) AskedBy(ctx context.Context, e lifecycle.Entry, user string) (bool, error) {
	said, err := v.asker(ctx, e)
	return user != "" && slices.Contains(said, user), err
}
