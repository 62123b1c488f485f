// Package platforms knows who may use the broker. It compares the platforms' credentials in
// constant time, and reads them again while requests are served, so that a password can be rotated.
// Where the credentials are kept is up to its caller.
package platforms

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/secret"
)

// A Credential is what a platform authenticates with.
type Credential struct {
	secret.Holder
	Username string `json:"username"`
	Password string `json:"password"`
}

// matches compares in constant time: it compares hashes, which all have one length, and always both
// halves. An empty password matches nothing.
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

// An Identity is the platform that a request comes from.
type Identity struct {
	ID        string
	Path      string   // stands before /v2 in its URL; empty for none
	Offerings []string // the offerings it may see; empty for all
	SignOn    *SignOn  // the sign-on by its login; nil for none
}

// authenticate finds the platform with these credentials. It compares them with those of every
// platform, even after one has matched.
func (r Registry) authenticate(username, password string, now time.Time) (Identity, bool) {
	var id Identity
	found := false
	for _, p := range r.Platforms {
		if p.matches(username, password, now) {
			id, found = Identity{ID: p.ID, Path: p.Path, Offerings: p.Offerings, SignOn: p.SignOn.usable()}, true
		}
	}
	return id, found
}

const (
	// keep is how long a registry is used before it is read again.
	keep = time.Minute
	// betweenReads is the least time between two reads that failed logins cause, and after a read that
	// has failed: a new password works at once, and wrong ones do not overload the source.
	betweenReads = 5 * time.Second
	// fetchTimeout bounds a read.
	fetchTimeout = 5 * time.Second
)

// Spread is how long it takes until every process knows of a change to the registry.
const Spread = keep + fetchTimeout

// A Kept is a registry that is read from a source and kept for a minute.
type Kept struct {
	fetch func(ctx context.Context) (Registry, error)
	now   func() time.Time
	log   *slog.Logger

	mu      sync.Mutex
	current Registry
	read    time.Time // when current was read; zero before the first read
	tried   time.Time
}

// NewKept reads the registry once, so that the broker does not start if the source cannot be read.
func NewKept(ctx context.Context, fetch func(ctx context.Context) (Registry, error), now func() time.Time,
	log *slog.Logger) (*Kept, error) {
	k := &Kept{fetch: fetch, now: now, log: log}
	if err := k.readAgain(ctx); err != nil {
		return nil, fmt.Errorf("reading the platforms' credentials: %w", err)
	}
	return k, nil
}

// Authenticate implements osb.Authenticator. While the source cannot be read, the last registry
// stays valid.
func (k *Kept) Authenticate(username, password string) (Identity, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.refreshed()
	if id, ok := k.current.authenticate(username, password, now); ok {
		return id, true
	}
	if username == "" || password == "" || !due(k.tried, now, betweenReads) {
		return Identity{}, false
	}
	k.refresh()
	return k.current.authenticate(username, password, now)
}

// Registry returns the registry, which is at most a minute old as long as its source can be read.
func (k *Kept) Registry() Registry {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refreshed()
	return k.current
}

// refreshed reads the registry again if it is due, and returns the time.
func (k *Kept) refreshed() (now time.Time) {
	if now = k.now(); due(k.read, now, keep) && due(k.tried, now, betweenReads) {
		k.refresh()
	}
	return now
}

// due reports whether the given time has passed, or the clock was set back: a password must not
// stay valid until the clock has caught up.
func due(since, now time.Time, after time.Duration) bool {
	passed := now.Sub(since)
	return passed < 0 || passed >= after
}

func (k *Kept) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTimeout)
	defer cancel()
	if err := k.readAgain(ctx); err != nil {
		k.tried = k.now() // a source that hangs does not hold up each request
		k.log.Error("the platforms' credentials cannot be read; the last ones stay valid", "error", err)
	}
}

func (k *Kept) readAgain(ctx context.Context) error {
	k.tried = k.now()
	r, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	k.current, k.read = r, k.tried
	return nil
}
