package valkey

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// The epoch of a server is the greatest that the name of a user says, one that can do
// nothing: a file of users that was put back has a lesser one. A name is never given
// another meaning, so that a command that comes late lowers nothing. Each broker has its
// own: what others have changed since the file was put back says nothing of what it lost.
func (s *server) epochPrefix() string {
	return userIdentity + "." + hosted.Name("", provider.Tags{Broker: s.broker}) + "."
}

// raiseEvery is how much time passes at least until the epoch is raised again: the server
// writes all of its users down each time.
const raiseEvery = 10 * time.Second

// epochOf reads the name of such a user; zero if it is none.
func (s *server) epochOf(name string) (count int64, raised time.Time) {
	first, second, _ := strings.Cut(strings.TrimPrefix(name, s.epochPrefix()), ".")
	count, err1 := strconv.ParseInt(first, 10, 64)
	ms, err2 := strconv.ParseInt(second, 10, 64)
	if err1 != nil || err2 != nil {
		return 0, time.Time{}
	}
	return count, time.UnixMilli(ms).UTC()
}

// epochs reads where the server is; zero if it never said.
func (s *server) epochs(ctx context.Context) error {
	names, err := s.users(ctx, s.epochPrefix())
	for _, name := range names {
		if count, raised := s.epochOf(name); count > s.epoch.Count {
			s.epoch.Count, s.raised = count, raised
		}
	}
	return err
}

// changes is called before each change: the first one of a step raises the epoch, unless
// that was done a moment ago.
func (s *server) changes(ctx context.Context) error {
	if since := s.now().Sub(s.raised); since >= 0 && since < raiseEvery {
		return nil
	}
	return s.raise(ctx, s.epoch.Count+1)
}

// raise has the server be at a count, and keep that.
func (s *server) raise(ctx context.Context, count int64) error {
	before, err := s.users(ctx, s.epochPrefix())
	if err != nil {
		return err
	}
	s.epoch.Count, s.raised = count, s.now()
	name := fmt.Sprintf("%s%d.%d", s.epochPrefix(), count, s.raised.UnixMilli())
	if _, err := s.do(ctx, "ACL", "SETUSER", name, "reset", "off"); err != nil {
		return err
	}
	before = slices.DeleteFunc(before, func(one string) bool {
		n, _ := s.epochOf(one)
		return n == 0 || n >= count
	})
	if len(before) > 0 {
		if _, err := s.do(ctx, append([]string{"ACL", "DELUSER"}, before...)...); err != nil {
			return err
		}
	}
	return s.save(ctx)
}

// Survey implements provider.Reconciler.
func (p *Provider) Survey(ctx context.Context, target string) (provider.Target, provider.Epoch, error) {
	t := provider.Target{Name: target}
	name, access, err := p.o.Accesses.Reach(t)
	if err != nil {
		return t, provider.Epoch{}, err
	}
	s, err := p.open(ctx, name, access)
	if err != nil {
		return t, provider.Epoch{}, err
	}
	defer s.close()
	t.Name = name
	if t.Identity, err = s.identity(ctx); err == nil {
		err = s.epochs(ctx)
	}
	return t, s.epoch, err
}

// Advance implements provider.Reconciler.
func (p *Provider) Advance(ctx context.Context, t provider.Target, now, was provider.Epoch) (provider.Epoch, error) {
	next := provider.Epoch{Line: now.Line, Count: max(now.Count, was.Count) + 1}
	_, err := p.on(ctx, t, provider.Epoch{}, func(s *server) (provider.Status, error) {
		if s.epoch != now {
			return provider.Status{}, fmt.Errorf("target %q is at another epoch by now: look again", s.target)
		}
		return provider.Status{}, s.raise(ctx, next.Count)
	})
	return next, err
}
