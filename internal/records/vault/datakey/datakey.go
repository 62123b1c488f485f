// Package datakey seals under one data key of the table, which the table keeps sealed by
// another vault. That vault opens it once for each process, so that a list of a thousand names
// calls no key service. It is for what may be lost: names, who asked, links and sessions.
// Where the data key is lost, another one takes its place.
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

// Records are what a Vault needs of the ledger.
type Records interface {
	DataKey(ctx context.Context) (ledger.DataKey, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}

// A Vault seals under the data key.
type Vault struct {
	records Records
	over    vault.Vault
	turn    chan struct{} // a lock that a caller waits for no longer than its context
	cipher  atomic.Pointer[vault.Cipher]
}

var _ vault.Vault = (*Vault)(nil)

// New makes a vault; over seals its data key. It calls nothing.
func New(records Records, over vault.Vault) *Vault {
	return &Vault{records: records, over: over, turn: make(chan struct{}, 1)}
}

// format is the first byte of what is sealed.
const format = 1

// label is what the data key is bound to.
var label = vault.Label{Member: vault.DataKey}

// key gives the data key's cipher. If there is no key that opens, it makes one for what is to
// be sealed; opening makes none, since the vault may be another one by mistake.
func (v *Vault) key(ctx context.Context, seals bool) (vault.Cipher, error) {
	if c := v.cipher.Load(); c != nil {
		return *c, nil
	}
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return vault.Cipher{}, ctx.Err()
	}
	if c := v.cipher.Load(); c != nil { // made meanwhile
		return *c, nil
	}
	var c vault.Cipher
	err := ledger.Again(ctx, func(ctx context.Context) (err error) {
		c, err = v.read(ctx, seals)
		return err
	})
	if err != nil {
		return c, fmt.Errorf("reading the table's data key: %w", err)
	}
	v.cipher.Store(&c)
	return c, nil
}

func (v *Vault) read(ctx context.Context, seals bool) (c vault.Cipher, _ error) {
	kept, err := v.records.DataKey(ctx)
	if err != nil {
		return c, err
	}
	if kept.Version != 0 {
		plain, err := v.over.Open(ctx, label, kept.Sealed)
		if err == nil {
			c, err = vault.NewCipher(plain)
		}
		if !errors.Is(err, vault.ErrSealed) && !errors.Is(err, vault.ErrKey) {
			return c, err
		}
	}
	if !seals {
		return c, vault.ErrSealed
	}
	plain := make([]byte, vault.KeySize)
	_, _ = rand.Read(plain) // never fails: see crypto/rand
	if kept.Sealed, err = v.over.Seal(ctx, label, plain); err != nil {
		return c, err
	}
	if err := v.records.Commit(ctx, ledger.Put(kept)); err != nil {
		return c, err
	}
	return vault.NewCipher(plain)
}

// Seal implements vault.Vault.
func (v *Vault) Seal(ctx context.Context, label vault.Label, plaintext []byte) ([]byte, error) {
	if plaintext == nil {
		return nil, nil
	}
	c, err := v.key(ctx, true)
	if err != nil {
		return nil, err
	}
	return c.Seal([]byte{format}, plaintext, label.Bytes()), nil
}

// Open implements vault.Vault.
func (v *Vault) Open(ctx context.Context, label vault.Label, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	if len(sealed) == 0 || sealed[0] != format {
		return nil, vault.ErrSealed
	}
	c, err := v.key(ctx, false)
	if err != nil {
		return nil, err
	}
	return c.Open(sealed[1:], label.Bytes())
}

// Names opens what people call an instance. Names that are lost are none.
func (v *Vault) Names(ctx context.Context, i lifecycle.Record) (n lifecycle.Names, err error) {
	err = v.opened(ctx, vault.Label{Key: i.Key, Member: vault.Names}, i.Attributes.Names, &n)
	return n, err
}

// opened reads a sealed object; nothing of one that is lost, or none.
func (v *Vault) opened(ctx context.Context, of vault.Label, sealed lifecycle.Sealed, into any) error {
	plain, err := v.Open(ctx, of, sealed)
	if errors.Is(err, vault.ErrSealed) {
		return nil
	}
	_ = json.Unmarshal(plain, into) // a platform's own object may have any members
	return err
}

// asker gives what the platform calls the user who asked for what an entry tells of, each of
// which may be empty: the names first. It is none where nobody said, and where it is lost.
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

// Who tells who asked for what an entry tells of: the name of the user, or else the id. It is
// empty where nobody said, and where it is lost.
func (v *Vault) Who(ctx context.Context, e lifecycle.Entry) (string, error) {
	said, err := v.asker(ctx, e)
	return cmp.Or(said...), err
}

// AskedBy reports whether the user with this name, email or id asked for what an entry tells of.
func (v *Vault) AskedBy(ctx context.Context, e lifecycle.Entry, user string) (bool, error) {
	said, err := v.asker(ctx, e)
	return user != "" && slices.Contains(said, user), err
}
