package platforms_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

func one(c platforms.Credential) platforms.Registry {
	return platforms.Registry{Platforms: []platforms.Platform{{ID: platforms.Default, Name: platforms.Default, Credential: c}}}
}

// lets requires that the password of u is let in, or that it is not.
func lets(t *testing.T, k *platforms.Kept, password string, want bool, when string) {
	t.Helper()
	if _, ok := k.Authenticate("u", password); ok != want {
		t.Fatalf("%s, %q is let in: %v", when, password, ok)
	}
}

// source is a secret that is counted, changed and broken.
type source struct {
	credential platforms.Credential
	err        error
	reads      int
}

func (s *source) fetch(context.Context) (platforms.Registry, error) {
	s.reads++
	return one(s.credential), s.err
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newKept(t *testing.T, s *source, log io.Writer) (*platforms.Kept, *clock) {
	t.Helper()
	c := &clock{epoch}
	return keeping(t, s.fetch, c.Now, log), c
}

// keeping keeps the registry that read reads.
func keeping(t *testing.T, read func(context.Context) (platforms.Registry, error), now func() time.Time,
	log io.Writer) *platforms.Kept {
	t.Helper()
	return expect.Get(platforms.NewKept(t.Context(), read, now, slog.New(slog.NewTextHandler(log, nil))))(t)
}

// Rotation loses no request: the new password works within seconds of its first use, the old one until the secret is read again.
func TestKeptFollowsARotation(t *testing.T) {
	s := &source{credential: login("u", "old")}
	k, c := newKept(t, s, io.Discard)
	for _, step := range []struct {
		what          string
		after         time.Duration
		set, password string // the secret's from now on, and what is tried
		want          bool
		reads         int
	}{
		{"kept: no reading", 30 * time.Second, "", "old", true, 1},
		{"a wrong one is looked up once", 0, "", "wrong", false, 2},
		{"and not again within five seconds", 4 * time.Second, "", "wrong", false, 2},
		{"rotated: the old one stays until it is read again", 0, "new", "old", true, 2},
		{"the new one is found by a failed login", time.Second, "", "new", true, 3},
		{"which ends the old one", 0, "", "old", false, 3},
		{"after a minute it is read again", time.Minute, "", "new", true, 4},
		{"a clock that is set back keeps no password until it has caught up", -time.Hour, "newest", "new", false, 5},
		{"but reads the secret at once", 0, "", "newest", true, 5},
	} {
		c.now = c.now.Add(step.after)
		if step.set != "" {
			s.credential.Password = step.set
		}
		if _, ok := k.Authenticate("u", step.password); ok != step.want || s.reads != step.reads {
			t.Fatalf("%s: got %v after %d readings, want %v after %d", step.what, ok, s.reads, step.want, step.reads)
		}
	}
}

func TestKeptOutlivesItsSource(t *testing.T) {
	var log bytes.Buffer
	s := &source{credential: login("u", "canary-1c")}
	k, c := newKept(t, s, &log)
	for name, broken := range map[string]func(){
		"Failing":    func() { s.err = errors.New("throttled") },
		"Incomplete": func() { s.err, s.credential = nil, platforms.Credential{Username: "u"} },
	} {
		broken()
		c.now = c.now.Add(2 * time.Minute)
		lets(t, k, "canary-1c", true, name)
	}
	expect.Says(t, "the log", log.String(), "throttled")
	expect.Never(t, "the log", log.String(), "canary")
	if _, err := platforms.NewKept(context.Background(), s.fetch, c.Now, slog.Default()); err == nil {
		t.Errorf("an incomplete credential was accepted at the start")
	}
}

// A source that hangs holds up one request, and those of the next seconds are judged by the last credential.
func TestASourceThatHangsIsLeftAlone(t *testing.T) {
	s := &source{credential: login("u", "canary-2d")}
	c := &clock{epoch}
	k := keeping(t, func(ctx context.Context) (platforms.Registry, error) {
		if s.err != nil {
			until, _ := ctx.Deadline()
			c.now = c.now.Add(time.Until(until).Round(time.Second))
		}
		return s.fetch(ctx)
	}, c.Now, io.Discard)
	s.err, c.now = context.DeadlineExceeded, c.now.Add(time.Hour)
	for range 3 {
		lets(t, k, "canary-2d", true, "meanwhile")
	}
	expect.Same(t, "the secret is read", 2, s.reads)
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	c := login("u", "canary-9b")
	var out bytes.Buffer
	r := one(c)
	r.Platforms[0].Previous = []platforms.Previous{{Password: "canary-8a"}}
	p := r.Platforms[0]
	for _, secret := range []any{c, p, r, p.Previous} {
		_, _ = fmt.Fprintf(&out, "%v %+v %#v %s", secret, secret, secret, secret)
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "c", c, "p", p)
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "c", c, "p", p, "r", r)
	expect.Never(t, "printed", out.String(), "canary")
}

// A login is current, old until a time, or unknown; a removed platform has none.
func TestUntilWhenALoginIsValid(t *testing.T) {
	r := one(login("u", "first"))
	for n, password := range []string{"second", "third"} {
		r = expect.Get(r.Rotate(platforms.Default, password, epoch, time.Duration(n+1)*time.Hour))(t)
	}
	p := r.Platforms[0]
	for name, c := range map[string]struct {
		username, password string
		until              time.Time
		known              bool
	}{
		"Current": {"u", "third", time.Time{}, true},
		"Old":     {"u", "second", epoch.Add(2 * time.Hour), true},
		"Older":   {"u", "first", epoch.Add(time.Hour), true},
		"Never":   {"u", "fourth", time.Time{}, false},
		"Other":   {"v", "third", time.Time{}, false},
		"Empty":   {"u", "", time.Time{}, false},
	} {
		if until, known := p.Until(c.username, c.password); !until.Equal(c.until) || known != c.known {
			t.Errorf("%s: %v, %v", name, until, known)
		}
	}
	p.Removed = epoch
	if _, known := p.Until("u", "third"); known {
		t.Error("a removed platform has a login")
	}
}
