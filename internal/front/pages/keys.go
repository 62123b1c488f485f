package pages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/vault"
)

// Lifetimes of links and sessions.
const (
	// LinkTime is how long a link can be exchanged for a session.
	LinkTime = 15 * time.Minute
	// SessionTime is how long a session lasts.
	SessionTime = 15 * time.Minute
)

// A Scope is the part of the pages that a session opens: the page of one instance, or the
// operator's console.
type Scope struct {
	// Platform and Instance are the ids of the instance; both are empty for the console.
	Platform string `json:"p,omitempty"`
	Instance string `json:"i,omitempty"`
	// Console opens the operator's console.
	Console bool `json:"c,omitempty"`
	// Acts also permits the actions of the scope's pages that change something.
	Acts bool `json:"a,omitempty"`
}

// ScopeOf returns the scope of an instance's page.
func ScopeOf(k lifecycle.Key) Scope { return Scope{Platform: k.Platform, Instance: k.Instance} }

// sum identifies a scope in a session and in the name of its cookie.
func (s Scope) sum() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%t:%t:%d:%s%s", s.Console, s.Acts, len(s.Platform), s.Platform, s.Instance))
}

// path returns the first page of a scope.
func (s Scope) path() string {
	if s.Console {
		return pathOverview
	}
	return InstancePath(lifecycle.Key{Platform: s.Platform, Instance: s.Instance})
}

// A Link opens a scope, and can be used once.
type Link struct {
	Scope
	ID    string    `json:"id"`
	Until time.Time `json:"u"`
}

func seal(ctx context.Context, in vault.Vault, purpose vault.Member, plain []byte) (string, error) {
	sealed, err := in.Seal(ctx, vault.Label{Member: purpose}, plain)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

// errToken says that this broker did not seal a link or a cookie.
var errToken = errors.New("not sealed by this broker")

func open(ctx context.Context, in vault.Vault, purpose vault.Member, text string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, errToken
	}
	plain, err := in.Open(ctx, vault.Label{Member: purpose}, sealed)
	if errors.Is(err, vault.ErrSealed) {
		return nil, errToken
	}
	return plain, err
}

// Seal returns the sealed text of a link.
func (l Link) Seal(ctx context.Context, in vault.Vault) (string, error) {
	plain, _ := json.Marshal(l) // of texts, flags and a time of now: these can always be encoded
	return seal(ctx, in, vault.Link, plain)
}

func linkIn(ctx context.Context, in vault.Vault, text string) (l Link, err error) {
	plain, err := open(ctx, in, vault.Link, text)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(plain, &l)
}

// A session opens one scope to a browser until a given time. Its sealed form is shorter than 400
// bytes, however long the ids are.
type session struct {
	scope  [sha256.Size]byte
	until  time.Time
	person string // the login's id of the person who signed on; empty if a link opened the session, or the id exceeds maxPerson
}

// maxPerson bounds the id of a person, in bytes.
const maxPerson = 128

func (s session) seal(ctx context.Context, in vault.Vault) (string, error) {
	plain := binary.BigEndian.AppendUint64(bytes.Clone(s.scope[:]), uint64(s.until.Unix()))
	if len(s.person) <= maxPerson {
		plain = append(plain, s.person...)
	}
	return seal(ctx, in, vault.Session, plain)
}

func sessionIn(ctx context.Context, in vault.Vault, text string) (s session, _ error) {
	plain, err := open(ctx, in, vault.Session, text)
	if err != nil {
		return s, err
	}
	const whole = len(s.scope) + 8
	if len(plain) < whole {
		return s, errToken
	}
	copy(s.scope[:], plain)
	s.until, s.person = time.Unix(int64(binary.BigEndian.Uint64(plain[len(s.scope):])), 0), string(plain[whole:])
	return s, nil
}
