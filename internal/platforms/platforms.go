// Package platforms knows who may use the broker: the platforms' credentials,
// compared in constant time, and read again from where they are kept so that a
// password can be rotated while requests are served. Where they are kept is
// left to the caller.
package platforms

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// A Credential is what a platform authenticates with.
type Credential struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

// String keeps a Credential out of logs.
func (Credential) String() string { return "[redacted credential]" }

// GoString keeps a Credential out of %#v.
func (Credential) GoString() string { return "[redacted credential]" }

// LogValue keeps a Credential out of structured logs.
func (Credential) LogValue() slog.Value { return slog.StringValue("[redacted credential]") }

// matches compares in constant time: hashes have one length, and both halves
// are always compared. An empty password matches nothing.
func (c Credential) matches(username, password string) bool {
	if c.Username == "" || c.Password == "" {
		return false
	}
	return same(username, c.Username)&same(password, c.Password) == 1
}

func same(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

// One is a single platform whose credential never changes while the process
// runs.
type One struct {
	Platform   string // its immutable id
	Credential Credential
}

// Authenticate implements osb.Authenticator.
func (o One) Authenticate(username, password string) (string, bool) {
	return o.Platform, o.Credential.matches(username, password)
}

const (
	// keep is how long a credential is believed to be valid without reading
	// it again.
	keep = time.Minute
	// again is the least time between two readings that failed logins cause:
	// a new password works at once, and wrong ones do not load the source.
	again = 5 * time.Second
	// fetchTimeout bounds a reading.
	fetchTimeout = 5 * time.Second
)

// A Kept platform's credential is read from a source and kept for a minute.
type Kept struct {
	platform string
	fetch    func(ctx context.Context) (Credential, error)
	now      func() time.Time
	log      *slog.Logger

	mu      sync.Mutex
	current Credential
	read    time.Time // of current; zero before the first
	tried   time.Time
}

var errIncomplete = errors.New("credential has no user name or no password")

// NewKept reads the credential once, so that a source that cannot be read is
// seen at the start.
func NewKept(ctx context.Context, platform string, fetch func(ctx context.Context) (Credential, error), now func() time.Time, log *slog.Logger) (*Kept, error) {
	k := &Kept{platform: platform, fetch: fetch, now: now, log: log}
	if err := k.readAgain(ctx); err != nil {
		return nil, fmt.Errorf("reading the credential of platform %q: %w", platform, err)
	}
	return k, nil
}

// Authenticate implements osb.Authenticator. While the source cannot be read,
// what was read last goes on being valid.
func (k *Kept) Authenticate(username, password string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if now.Sub(k.read) >= keep && now.Sub(k.tried) >= again {
		k.refresh()
	}
	if k.current.matches(username, password) {
		return k.platform, true
	}
	if username == "" || password == "" || now.Sub(k.tried) < again {
		return k.platform, false
	}
	k.refresh()
	return k.platform, k.current.matches(username, password)
}

func (k *Kept) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	if err := k.readAgain(ctx); err != nil {
		k.log.Error("the platform's credential cannot be read; the last one stays valid", "platform", k.platform, "error", err)
	}
}

func (k *Kept) readAgain(ctx context.Context) error {
	k.tried = k.now()
	c, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	if c.Username == "" || c.Password == "" {
		return errIncomplete
	}
	k.current, k.read = c, k.tried
	return nil
}
