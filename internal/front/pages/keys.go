package pages

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
)

// Durations of links and sessions.
const (
	// LinkTime is how long a link can be exchanged.
	LinkTime = 15 * time.Minute
	// SessionTime is how long a session lasts.
	SessionTime = 15 * time.Minute
)

// A Scope is what a session opens: the page of one instance, or the operator's console.
type Scope struct {
	// Platform and Instance are the instance's; both are empty for the console.
	Platform string `json:"p,omitempty"`
	Instance string `json:"i,omitempty"`
	// Console opens the console, and Acts what changes something there.
	Console bool `json:"c,omitempty"`
	Acts    bool `json:"a,omitempty"`
}

// ScopeOf is the page of an instance.
func ScopeOf(k lifecycle.Key) Scope { return Scope{Platform: k.Platform, Instance: k.Instance} }

// sum names a scope in a session and its cookie.
func (s Scope) sum() [sha256.Size]byte {
	switch {
	case s.Console && s.Acts:
		return sha256.Sum256([]byte("console+act"))
	case s.Console:
		return sha256.Sum256([]byte("console"))
	}
	return sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(s.Platform), s.Platform, s.Instance))
}

// path is the page that a scope begins with.
func (s Scope) path() string {
	if s.Console {
		return pathOverview
	}
	return InstancePath(lifecycle.Key{Platform: s.Platform, Instance: s.Instance})
}

// A Link opens a scope, once.
type Link struct {
	Scope
	ID    string    `json:"id"`
	Until time.Time `json:"u"`
}

// Keyring is what Keys need of the ledger.
type Keyring interface {
	PagesKey(ctx context.Context) (ledger.PagesKey, error)
	Commit(ctx context.Context, changes ...ledger.Change) error
}

// Keys seals links and sessions under one data key, which the table keeps sealed by the
// vault. The vault opens it once for each process: checking a session calls no key service.
type Keys struct {
	Records Keyring
	Vault   vault.Vault

	mu   sync.Mutex
	aead cipher.AEAD
}

// label is what the vault binds the data key to.
var label = vault.Label{Member: vault.Pages}

const keySize = 32

// key gives the data key, and makes it at the first call of the first process.
func (k *Keys) key(ctx context.Context) (cipher.AEAD, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.aead != nil {
		return k.aead, nil
	}
	var plain []byte
	err := ledger.Again(ctx, func(ctx context.Context) (err error) {
		plain, err = k.read(ctx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the key of the pages: %w", err)
	}
	block, err := aes.NewCipher(plain)
	if err != nil {
		return nil, err
	}
	k.aead, err = cipher.NewGCMWithRandomNonce(block)
	return k.aead, err
}

// read reads the data key. A lost vault's key ends all sessions: another data key is made.
func (k *Keys) read(ctx context.Context) ([]byte, error) {
	kept, err := k.Records.PagesKey(ctx)
	if err != nil {
		return nil, err
	}
	if kept.Version != 0 {
		plain, err := k.Vault.Open(ctx, label, kept.Sealed)
		if err == nil && len(plain) == keySize || err != nil && !errors.Is(err, vault.ErrSealed) {
			return plain, err
		}
	}
	plain := make([]byte, keySize)
	_, _ = rand.Read(plain) // never fails: see crypto/rand
	if kept.Sealed, err = k.Vault.Seal(ctx, label, plain); err != nil {
		return nil, err
	}
	return plain, k.Records.Commit(ctx, ledger.Put(kept))
}

// Purposes keep what is sealed for one from being taken for the other.
var (
	forLink    = []byte("longshore link 1")
	forSession = []byte("longshore session 1")
)

func (k *Keys) seal(ctx context.Context, purpose, plain []byte) (string, error) {
	aead, err := k.key(ctx)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, purpose)), nil
}

// errToken says that a link or a cookie is not one of this broker.
var errToken = errors.New("not sealed by this broker")

func (k *Keys) open(ctx context.Context, purpose []byte, text string) ([]byte, error) {
	aead, err := k.key(ctx)
	if err != nil {
		return nil, err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errToken
	}
	plain, err := aead.Open(nil, nil, sealed, purpose)
	if err != nil {
		return nil, errToken
	}
	return plain, nil
}

// Link seals a link.
func (k *Keys) Link(ctx context.Context, l Link) (string, error) {
	plain, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	return k.seal(ctx, forLink, plain)
}

func (k *Keys) link(ctx context.Context, text string) (l Link, err error) {
	plain, err := k.open(ctx, forLink, text)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(plain, &l)
}

// A session opens one scope to a browser until a time. Its sealed form has always the same
// length, below 400 bytes, however long the ids are.
type session struct {
	scope [sha256.Size]byte
	until time.Time
}

func (k *Keys) session(ctx context.Context, s session) (string, error) {
	return k.seal(ctx, forSession, binary.BigEndian.AppendUint64(bytes.Clone(s.scope[:]), uint64(s.until.Unix())))
}

func (k *Keys) sessionIn(ctx context.Context, text string) (s session, _ error) {
	plain, err := k.open(ctx, forSession, text)
	if err != nil {
		return s, err
	}
	if len(plain) != len(s.scope)+8 {
		return s, errToken
	}
	copy(s.scope[:], plain)
	s.until = time.Unix(int64(binary.BigEndian.Uint64(plain[len(s.scope):])), 0)
	return s, nil
}
