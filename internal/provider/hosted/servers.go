package hosted

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/longshore/longshore/internal/base/provider"
)

// A Server is what every engine tells of itself, on the connections that it has. Each
// method may be repeated at any time; errors are in the engine's own words.
type Server interface {
	// Identify tells who this server is to the broker: a random text, which the first
	// call writes, unless it may not write: then it is empty.
	Identify(ctx context.Context, broker string, write bool) (Said, error)

	// Advance has the epoch be of the count and the mark of another one, if it is still
	// of those that were seen. Of several at once, one does. False for none of it.
	Advance(ctx context.Context, broker string, seen, to provider.Epoch) (bool, error)

	// Close ends its connections.
	Close()
}

// Said is what a server says of itself to a broker.
type Said struct {
	Identity string
	Epoch    provider.Epoch
}

// Servers are the ways to those of a provider, which are opened when they are needed.
type Servers[S Server] struct {
	// Broker is the broker's identity.
	Broker string
	// Accesses are today's targets.
	Accesses Accesses
	// Pool is how many connections are kept for the steps to come; 0 to close each with
	// its step.
	Pool int
	// Open prepares the way to one; it reaches nothing yet.
	Open func(access Access, pool int) (S, error)
	// Explain says of an error of a target what an operator does about it.
	Explain func(target string, err error) error

	mu   sync.Mutex
	kept map[string]S // by the target's name, where there is a pool
}

// Close ends the connections that are kept.
func (s *Servers[S]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.kept {
		one.Close()
	}
	clear(s.kept)
}

// Reach is the way to a target, and what ends it with the step.
func (s *Servers[S]) Reach(t provider.Target) (one S, name string, access Access, done func(), err error) {
	name, access, err = s.Accesses.Reach(t)
	if err != nil {
		return one, name, access, nil, err
	}
	if s.Pool == 0 {
		if one, err = s.Open(access, 0); err != nil {
			return one, name, access, nil, err
		}
		return one, name, access, one.Close, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.kept[name]
	if !ok {
		if one, err = s.Open(access, s.Pool); err != nil {
			return one, name, access, nil, err
		}
		if s.kept == nil {
			s.kept = map[string]S{}
		}
		s.kept[name] = one
	}
	return one, name, access, func() {}, nil
}

// A Site is a server whose identity and epoch are proven, in one step.
type Site[S Server] struct {
	Server S
	Name   string // of the target
	Access Access
	// Leave ends the step's way to it.
	Leave func()

	servers *Servers[S]
}

// At reaches the server that a thing is on, and changes nothing if that was restored to
// an earlier epoch than it has been at. The first step of an instance learns its
// identity and makes nothing: what it makes is looked for there.
func (s *Servers[S]) At(ctx context.Context, t provider.Target, was provider.Epoch) (*Site[S], *provider.Status, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	one, name, access, done, err := s.Reach(t)
	if err != nil {
		return nil, nil, err
	}
	now, err := one.Identify(ctx, s.Broker, true)
	if err != nil {
		done()
		return nil, nil, s.Explain(name, err)
	}
	learnt, err := Learn(t, name, now.Identity)
	if err == nil && learnt == nil {
		err = now.Epoch.Check(name, was)
	}
	if err != nil || learnt != nil {
		done()
		return nil, learnt, err
	}
	return &Site[S]{Server: one, Name: name, Access: access, Leave: done, servers: s}, nil, nil
}

// Explain says of an error what an operator does about it.
func (s *Site[S]) Explain(err error) error { return s.servers.Explain(s.Name, err) }

// Settle is what a step answers: unfinished, else done.
func Settle(unfinished *provider.Status, err error, done provider.Status) (provider.Status, error) {
	if err != nil {
		return provider.Status{}, err
	}
	done.Done, done.Percent = true, 100
	if unfinished != nil {
		done = *unfinished
	}
	return done, nil
}

// Survey is a provider.Reconciler's.
func (s *Servers[S]) Survey(ctx context.Context, target string) (provider.Target, provider.Epoch, error) {
	t := provider.Target{Name: target}
	one, name, _, done, err := s.Reach(t)
	if err != nil {
		return t, provider.Epoch{}, err
	}
	defer done()
	now, err := one.Identify(ctx, s.Broker, false)
	return provider.Target{Name: name, Identity: now.Identity}, now.Epoch, s.Explain(name, err)
}

// Advance is a provider.Reconciler's.
func (s *Servers[S]) Advance(ctx context.Context, t provider.Target, from, to provider.Epoch) (provider.Epoch, error) {
	one, name, _, done, err := s.Reach(t)
	if err != nil {
		return provider.Epoch{}, err
	}
	defer done()
	for {
		said, err := one.Identify(ctx, s.Broker, false)
		if err != nil {
			return provider.Epoch{}, s.Explain(name, err)
		}
		if _, err = Learn(t, name, said.Identity); err != nil || said.Epoch != from || from == to {
			return said.Epoch, err
		}
		switch did, err := one.Advance(ctx, s.Broker, from, to); {
		case err != nil:
			return provider.Epoch{}, s.Explain(name, err)
		case did:
			return to, nil
		} // else somebody has, since it was looked at
	}
}

// List is a provider.Inventory's, target by target, of what listed reads of one after
// a name; more is the last name of a page that is not the target's last. A cursor is a
// target's name and what was read last of it, which has no slash. A target that cannot
// be listed is left out, with its error.
func (a Accesses) List(
	ctx context.Context, cursor string,
	listed func(ctx context.Context, target, after string) (page []provider.Holding, more string, err error),
) (page []provider.Holding, next string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	names := a.Names()
	target, after := cursor, ""
	if cut := strings.LastIndex(cursor, "/"); cut >= 0 {
		target, after = cursor[:cut], cursor[cut+1:]
	}
	i, found := slices.BinarySearch(names, target)
	switch {
	case i == len(names):
		return nil, "", nil
	case !found: // it has left the settings while they were read, or this is the first
		after = ""
	}
	page, more, err := listed(ctx, names[i], after)
	switch {
	case err == nil && more != "":
		next = names[i] + "/" + more
	case i+1 < len(names):
		next = names[i+1] + "/"
	}
	return page, next, err
}
