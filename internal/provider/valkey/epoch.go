package valkey

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// The epoch of a server is the greatest that the name of a user says, one that can do
// nothing: a file of users that was put back has a lesser one. A name is never given
// another meaning, so that a command that comes late lowers nothing. Each broker has its
// own: what others have changed since the file was put back says nothing of what it lost.
func (s *server) epochPrefix() string {
	return userIdentity + "." + hosted.Name("", provider.Tags{Broker: s.broker}) + "."
}

// epochOf reads the name of such a user; zero if it is none.
func (s *server) epochOf(name string) (at provider.Epoch) {
	first, mark, _ := strings.Cut(strings.TrimPrefix(name, s.epochPrefix()), ".")
	if count, err := strconv.ParseInt(first, 10, 64); err == nil {
		at = provider.Epoch{Count: count, Mark: mark}
	}
	return at
}

// epochs reads where the server is; zero if it never said. Two brokers that have raised
// it at once leave two marks of one count: it is at neither.
func (s *server) epochs(ctx context.Context) (names []string, err error) {
	names, err = s.users(ctx, s.epochPrefix())
	slices.Sort(names)
	s.epoch = provider.Epoch{}
	for _, name := range names {
		switch at := s.epochOf(name); {
		case at.Count > s.epoch.Count:
			s.epoch = at
		case at.Count == s.epoch.Count && at.Count > 0:
			s.epoch.Mark += "+" + at.Mark
		}
	}
	return names, err
}

// advance has the server be at an epoch, and keep that. There is no command that makes a
// user only if another one is there: of two brokers at once, one finds both of them after
// it has made its own, which it takes back.
func (s *server) advance(ctx context.Context, to provider.Epoch) error {
	name := fmt.Sprintf("%s%d.%s", s.epochPrefix(), to.Count, to.Mark)
	if _, err := s.do(ctx, "ACL", "SETUSER", name, "reset", "off"); err != nil {
		return err
	}
	names, err := s.epochs(ctx)
	if err != nil {
		return err
	}
	passed := slices.DeleteFunc(names, func(one string) bool {
		n := s.epochOf(one).Count
		return n == 0 || n >= to.Count
	})
	if s.epoch != to {
		passed = []string{name}
	}
	if err := s.remove(ctx, passed...); err != nil {
		return err
	}
	if s.epoch != to {
		_, err = s.epochs(ctx)
	}
	return s.keep(ctx, err)
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
		_, err = s.epochs(ctx)
	}
	return t, s.epoch, err
}

// Advance implements provider.Reconciler.
func (p *Provider) Advance(ctx context.Context, t provider.Target, from, to provider.Epoch) (at provider.Epoch, err error) {
	_, err = p.on(ctx, t, provider.Epoch{}, func(s *server) (st provider.Status, err error) {
		if s.epoch == from && from != to {
			err = s.advance(ctx, to)
		}
		at = s.epoch
		return st, err
	})
	return at, err
}
