package hosted

import (
	"context"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
)

// A Server tells its identity and its epoch. Each method may be repeated at any time; its errors
// are those of the engine.
type Server interface {
	// Identify reads the identity that the server has for the broker, a random text. The first call
	// that may write chooses it; until then it is empty.
	Identify(ctx context.Context, broker string, write bool) (Said, error)

	// Advance sets the count and the mark of the epoch, unless they have changed since they were
	// seen. It reports whether it did: of several concurrent calls, one does.
	Advance(ctx context.Context, broker string, seen, to target.Epoch) (bool, error)
}

// Said is what a server tells a broker about itself.
type Said struct {
	Identity string
	Epoch    target.Epoch
}

// Close closes the kept connections.
func (p *Provider[C, V]) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.kept {
		p.Engine.Close(one)
	}
	clear(p.kept)
}

// Reach returns the site of a target. It calls no server.
func (p *Provider[C, V]) Reach(t provider.Target) (*Site[C, V], error) {
	name, access, err := p.Accesses.Reach(t)
	if err != nil {
		return nil, err
	}
	at := &Site[C, V]{Provider: p, Name: name, Access: access}
	if p.Pool == 0 {
		at.Server, err = p.Open(access, 0)
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

// visit reaches a target and asks for its identity.
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

// At reaches the server of a thing, and fails if the server was restored to an earlier epoch than
// the given one. The first step of an instance ends with a Later that records the server's
// identity, and makes nothing: later steps look for what they make under that identity.
func (p *Provider[C, V]) At(ctx context.Context, t provider.Target, was target.Epoch) (*Site[C, V], error) {
	return p.at(ctx, t, was, t.Identity == "")
}

func (p *Provider[C, V]) at(ctx context.Context, t provider.Target, was target.Epoch, write bool) (*Site[C, V], error) {
	at, err := p.visit(ctx, t, write)
	if err != nil {
		return nil, err
	}
	if err = learn(t, at.Name, at.said.Identity); err == nil {
		err = at.said.Epoch.Check(at.Name, was)
	}
	if err != nil {
		at.Leave()
		return nil, err
	}
	return at, nil
}

// Survey implements wired.Reconciler.
func (p *Provider[C, V]) Survey(ctx context.Context, name string) (provider.Target, target.Epoch, error) {
	t := provider.Target{Name: name}
	at, err := p.visit(ctx, t, false)
	if err != nil {
		return t, target.Epoch{}, err
	}
	defer at.Leave()
	if p.Surveyed != nil {
		p.Surveyed(ctx, at)
	}
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
		if err = learn(t, at.Name, at.said.Identity); err != nil || at.said.Epoch != from || from == to {
			return at.said.Epoch, err
		}
		switch did, err := at.Server.Advance(ctx, p.Broker, from, to); {
		case err != nil:
			return target.Epoch{}, at.Explain(err)
		case did:
			return to, nil
		} // else another caller has advanced it since
		if at.said, err = at.Server.Identify(ctx, p.Broker, false); err != nil {
			return target.Epoch{}, at.Explain(err)
		}
	}
}
