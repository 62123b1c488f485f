package hosted

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
)

// Options are what a Provider is made with.
type Options struct {
	// Broker is the broker's identity.
	Broker string
	// Accesses are today's targets.
	Accesses Accesses
	Now      func() time.Time
	// Log is told what an operator has to know; nil for nothing.
	Log *slog.Logger
	// Pool is how many connections are kept for the steps to come; 0 to close each with
	// its step, as a function does that may be frozen after it.
	Pool int
	// Page is how much a page of the inventory holds at most; 0 for a usual size.
	Page int
}

// usualPage is how much a page of the inventory holds unless the options say otherwise.
const usualPage = 200

// A Provider makes instances and bindings on shared servers of one engine.
type Provider[C Host[V], V any] struct {
	Options
	Engine[C, V]

	mu   sync.Mutex
	kept map[string]C // the ways to servers, by the target's name, where there is a pool
}

// New makes a provider. It reaches no server yet. Close it in the end.
func New[C Host[V], V any](o Options, e Engine[C, V]) *Provider[C, V] {
	o.Log, o.Page = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Page, usualPage)
	return &Provider[C, V]{Options: o, Engine: e, kept: map[string]C{}}
}

// What users are told of a step that fails: something else stands in its way, it needs an
// instance that there is not, or what was retained is to become another instance, and
// nothing is made in its place.
const (
	notOurs = "The name that this would have on the server is taken by something else, which was left as it is. " +
		"Ask the operator of the service to look at it."
	noInstance = "There is no such instance on the server any more. Delete it, and order another one."
	gone       = "What was retained of the deleted instance is not there any more. Delete this instance."
)

// NoInstance fails a step that needs an instance.
func NoInstance() error { return provider.Failf(noInstance) }

// Gone fails an instance that was to have what was retained.
func Gone() error { return provider.Failf(gone) }

// NotOurs fails a step in whose way something else stands.
func NotOurs() error { return provider.Failf(notOurs) }

// ours gives the label of what is the owner's, the zero one if there is nothing.
func (p *Provider[C, V]) ours(seen V, owner provider.Tags) (Label, error) {
	l, ok := p.Label(seen, owner)
	if ok && l.Owner() != owner.Owner() || !ok && p.Stands(seen, owner) {
		return l, NotOurs()
	}
	return l, nil
}

// Using asks for what comes next if the instance is the owner's, and in use.
func (p *Provider[C, V]) Using(owner provider.Tags, next Decide[V]) Decide[V] {
	return func(seen V) (Next, error) {
		l, err := p.ours(seen, owner)
		if err == nil && (l.Instance == "" || !l.InUse()) {
			err = NoInstance()
		}
		if err != nil {
			return Next{}, err
		}
		return next(seen)
	}
}

// Own asks for what comes next if there is nothing of another owner.
func (p *Provider[C, V]) Own(owner provider.Tags, next Decide[V]) Decide[V] {
	return func(seen V) (Next, error) {
		if _, err := p.ours(seen, owner); err != nil {
			return Next{}, err
		}
		return next(seen)
	}
}

// Making asks for what comes next if nothing is in the way of an instance. Nothing is made
// in the place of what was retained.
func (p *Provider[C, V]) Making(owner provider.Tags, next Decide[V]) Decide[V] {
	return func(seen V) (Next, error) {
		l, err := p.ours(seen, owner)
		switch {
		case err != nil:
			return Next{}, err
		case !l.InUse():
			return Next{}, NoInstance()
		case l.Instance == "" && Undeleted(owner):
			return Next{}, Gone()
		}
		return next(seen)
	}
}

// Undeleted reports whether an instance has what was made for another one.
func Undeleted(t provider.Tags) bool { return t.Origin != provider.Origin{} }

// BindingTags are a binding's, with the origin of its instance: its names derive from them.
func BindingTags(b provider.Binding) provider.Tags {
	t := provider.BindingTagsOf(b)
	t.Origin = b.Instance.Origin
	return t
}

// step is one of a verb, on a target that has been at an epoch: what comes next is
// decided once the server is proven to be the one.
func (p *Provider[C, V]) step(
	ctx context.Context, of provider.Instance, t provider.Tags,
	decide func(*Site[C, V]) (Decide[V], error), done func(V) provider.Status,
) (provider.Status, error) {
	at, learnt, err := p.At(ctx, of.Target, of.Epoch)
	if err != nil || learnt != nil {
		return answer(learnt, err)
	}
	defer at.Leave()
	next, err := decide(at)
	if err != nil {
		return provider.Status{}, err
	}
	seen, wait, err := at.Run(ctx, t, next)
	if err != nil || wait != nil {
		return answer(wait, err)
	}
	var st provider.Status
	if done != nil {
		st = done(seen)
	}
	st.Done, st.Percent = true, 100
	return st, nil
}

// answer is that of a step which is not done.
func answer(wait *provider.Status, err error) (provider.Status, error) {
	if err != nil || wait == nil {
		return provider.Status{}, err
	}
	return *wait, nil
}

// Provision implements provider.Provider.
func (p *Provider[C, V]) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if in.Source != nil {
		return p.restore(ctx, in)
	}
	t := provider.TagsOf(in)
	return p.step(ctx, in, t, func(at *Site[C, V]) (Decide[V], error) {
		next, err := p.Engine.Provision(ctx, at, in)
		return p.Making(t, next), err
	}, nil)
}

// restore is a step of an instance that is made from another one.
func (p *Provider[C, V]) restore(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if p.Restore == nil {
		return provider.Status{}, provider.Failf("An instance of this service cannot be made from another one. Order an empty " +
			"one, and copy the data.")
	}
	at, learnt, err := p.At(ctx, in.Target, in.Epoch)
	if err != nil || learnt != nil {
		return answer(learnt, err)
	}
	defer at.Leave()
	wait, err := p.Restore(ctx, at, in)
	if err != nil || wait != nil {
		return answer(wait, err)
	}
	return provider.Status{Done: true, Percent: 100}, nil
}

// Update implements provider.Provider. One that fails leaves the instance as it was, and
// another one may be tried.
func (p *Provider[C, V]) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	t := provider.TagsOf(in)
	st, err := p.step(ctx, in, t, func(at *Site[C, V]) (Decide[V], error) {
		next, err := p.Engine.Update(ctx, at, in)
		return p.Using(t, next), err
	}, nil)
	if f, ok := errors.AsType[*provider.Failure](err); ok {
		f.InstanceUsable, f.UpdateRepeatable = new(true), new(true)
	}
	return st, err
}

// Deprovision implements provider.Provider.
func (p *Provider[C, V]) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	t := provider.TagsOf(in)
	return p.step(ctx, in, t, func(at *Site[C, V]) (Decide[V], error) {
		next, err := p.Engine.Deprovision(ctx, at, in)
		return p.Own(t, next), err
	}, nil)
}

// Bind implements provider.Provider.
func (p *Provider[C, V]) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	var granted Granted[V]
	t := BindingTags(b)
	return p.step(ctx, b.Instance, t, func(at *Site[C, V]) (next Decide[V], err error) {
		next, granted, err = p.Engine.Bind(ctx, at, b)
		return p.Using(provider.TagsOf(b.Instance), p.Own(t, next)), err
	}, func(seen V) provider.Status { return granted(ctx, seen) })
}

// maxExpels is how often an unbind ends sessions that keep it from being made.
const maxExpels = 5

// Unbind implements provider.Provider.
func (p *Provider[C, V]) Unbind(ctx context.Context, b provider.Binding) (st provider.Status, err error) {
	t := BindingTags(b)
	for range maxExpels {
		st, err = p.step(ctx, b.Instance, t, func(at *Site[C, V]) (Decide[V], error) {
			next, err := p.Engine.Unbind(ctx, at, b)
			return p.Own(t, next), err
		}, nil)
		if err == nil || p.Expel == nil || !p.Expel(ctx, b, err) {
			break
		}
	}
	return st, err
}
