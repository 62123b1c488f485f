package hosted

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// A Server is what every engine tells of itself, on the connections that it has. Each
// method may be repeated at any time; errors are in the engine's own words.
type Server interface {
	// Identify tells who this server is to the broker: a random text, which the first
	// call writes, unless it may not write: then it is empty.
	Identify(ctx context.Context, broker string, write bool) (Said, error)

	// Advance has the epoch be of the count and the mark of another one, if it is still
	// of those that were seen. Of several at once, one does. False for none of it.
	Advance(ctx context.Context, broker string, seen, to target.Epoch) (bool, error)
}

// Said is what a server says of itself to a broker.
type Said struct {
	Identity string
	Epoch    target.Epoch
}

// Close ends the connections that are kept.
func (p *Provider[C, V]) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.kept {
		p.Engine.Close(one)
	}
	clear(p.kept)
}

// Reach is the way to a target. It calls nothing.
func (p *Provider[C, V]) Reach(t provider.Target) (*Site[C, V], error) {
	name, access, err := p.Accesses.Reach(t)
	if err != nil {
		return nil, err
	}
	at := &Site[C, V]{Name: name, Access: access, Leave: func() {}, provider: p}
	if p.Pool == 0 {
		at.Server, err = p.Open(access, 0)
		at.Leave = func() { p.Engine.Close(at.Server) }
		return at, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one, ok := p.kept[name]
	if !ok {
		if one, err = p.Open(access, p.Pool); err != nil {
			return nil, err
		}
		p.kept[name] = one
	}
	at.Server = one
	return at, nil
}

// visit reaches a target and asks who it is.
func (p *Provider[C, V]) visit(ctx context.Context, t provider.Target, write bool) (*Site[C, V], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	at, err := p.Reach(t)
	if err != nil {
		return nil, err
	}
	if at.said, err = at.Server.Identify(ctx, p.Broker, write); err != nil {
		at.Leave()
		return nil, at.Explain(err)
	}
	return at, nil
}

// At reaches the server that a thing is on, and changes nothing if that was restored to
// an earlier epoch than it has been at. The first step of an instance learns its
// identity and makes nothing: what it makes is looked for there.
func (p *Provider[C, V]) At(ctx context.Context, t provider.Target, was target.Epoch) (*Site[C, V], *provider.Status, error) {
	at, err := p.visit(ctx, t, t.Identity == "")
	if err != nil {
		return nil, nil, err
	}
	learnt, err := learn(t, at.Name, at.said.Identity)
	if err == nil && learnt == nil {
		err = at.said.Epoch.Check(at.Name, was)
	}
	if err != nil || learnt != nil {
		at.Leave()
		return nil, learnt, err
	}
	return at, nil, nil
}

// Survey implements wired.Reconciler.
func (p *Provider[C, V]) Survey(ctx context.Context, name string) (provider.Target, target.Epoch, error) {
	t := provider.Target{Name: name}
	at, err := p.visit(ctx, t, false)
	if err != nil {
		return t, target.Epoch{}, err
	}
	defer at.Leave()
	return provider.Target{Name: at.Name, Identity: at.said.Identity}, at.said.Epoch, nil
}

// Advance implements wired.Reconciler.
func (p *Provider[C, V]) Advance(ctx context.Context, t provider.Target, from, to target.Epoch) (target.Epoch, error) {
	at, err := p.visit(ctx, t, false)
	if err != nil {
		return target.Epoch{}, err
	}
	defer at.Leave()
	for {
		if _, err = learn(t, at.Name, at.said.Identity); err != nil || at.said.Epoch != from || from == to {
			return at.said.Epoch, err
		}
		switch did, err := at.Server.Advance(ctx, p.Broker, from, to); {
		case err != nil:
			return target.Epoch{}, at.Explain(err)
		case did:
			return to, nil
		} // else somebody has, since it was looked at
		if at.said, err = at.Server.Identify(ctx, p.Broker, false); err != nil {
			return target.Epoch{}, at.Explain(err)
		}
	}
}
