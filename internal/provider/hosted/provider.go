package hosted

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
)

// Options configure a Provider.
type Options struct {
	// Broker is the identity of the broker.
	Broker string
	// Accesses are today's targets.
	Accesses Accesses
	Now      func() time.Time
	// Log is the operators' log; nil for none.
	Log *slog.Logger
	// Pool is the number of connections that are kept for later steps. With 0, each step closes its
	// connections, as it must in a function that may be frozen between steps.
	Pool int
	// Page is the most things on a page of the inventory; 0 for usualPage.
	Page int
}

// usualPage is the size of a page of the inventory unless the options set one.
const usualPage = 200

// A Provider makes instances and bindings on shared servers of one engine.
type Provider[C Host[V], V Seen] struct {
	Options
	Engine[C, V]

	mu   sync.Mutex
	kept map[string]C // with a pool, the ways to servers by their targets' names
}

// The provider of each engine embeds a Provider, and so has all of these abilities.
var _ interface {
	provider.Provider
	provider.Adopter
	provider.Describer
	wired.Reconciler
} = (*Provider[Host[Seen], Seen])(nil)

// New makes a provider. It reaches no server yet. Close closes its connections.
func New[C Host[V], V Seen](o Options, e Engine[C, V]) *Provider[C, V] {
	o.Log, o.Page = cmp.Or(o.Log, slog.New(slog.DiscardHandler)), cmp.Or(o.Page, usualPage)
	return &Provider[C, V]{Options: o, Engine: e, kept: map[string]C{}}
}

// NoInstance returns the failure of a step that needs an instance.
func NoInstance() error {
	return provider.Failf("There is no such instance on the server any more. Delete it, and order another one.")
}

// Gone returns the failure of an instance that was to take over a retained thing which is gone.
// Nothing is made in its place.
func Gone() error {
	return provider.Failf("The retained data of the deleted instance no longer exists. Delete this instance.")
}

// NotOurs returns the failure of a step that finds something of another owner in its way.
func NotOurs() error {
	return provider.Failf("Something else on the server has the name that this would have, and was left alone. " +
		"Ask the operator of the service to look at it.")
}

// A Check judges the label of what its owner has; the label is zero if nothing stands.
type Check func(owner provider.Tags, l Label) error

// Owned returns a Decide that fails if something of another owner stands, or if the label does not
// pass the check. Otherwise it asks next.
func Owned[V Seen](owner provider.Tags, check Check, next Decide[V]) Decide[V] {
	return func(seen V) (any, error) {
		l, stands := seen.Label(owner)
		if stands && l.Owner() != owner.Owner() {
			return nil, NotOurs()
		}
		if err := check(owner, l); err != nil {
			return nil, err
		}
		return next(seen)
	}
}

// Any is the Check that takes every label, and none.
func Any(provider.Tags, Label) error { return nil }

// Used is the Check that fails unless the instance is there and in use.
func Used(_ provider.Tags, l Label) error {
	if l.Instance == "" || !l.InUse() {
		return NoInstance()
	}
	return nil
}

// Free is the Check that fails if something is in the way of a new instance, such as a retained one.
func Free(owner provider.Tags, l Label) error {
	switch {
	case !l.InUse():
		return NoInstance()
	case l.Instance == "" && Undeleted(owner):
		return Gone()
	}
	return nil
}

// Undeleted reports whether the things of an instance were made for another one.
func Undeleted(t provider.Tags) bool { return t.Origin != provider.Origin{} }

// BindingTags returns the tags of a binding with the origin of its instance, from which its names
// derive.
func BindingTags(b provider.Binding) provider.Tags {
	t := provider.BindingTagsOf(b)
	t.Origin = b.Instance.Origin
	return t
}

// step works on the server of an instance once the server has proven its identity: the recorded one, or
// for an instance without, the one that its plan names. The step is done unless an error says otherwise.
func (p *Provider[C, V]) step(
	ctx context.Context, of provider.Instance, work func(*Site[C, V]) error,
) (provider.Status, error) {
	t := of.Target
	if t.Name == "" {
		t.Name = TargetIn(of.Snapshot)
	}
	at, err := p.At(ctx, t, of.Epoch)
	if err == nil {
		defer at.Leave()
		err = work(at)
	}
	if later, ok := errors.AsType[*Later](err); ok {
		return later.Status, nil
	}
	if err != nil {
		return provider.Status{}, err
	}
	return provider.Status{Done: true, Percent: 100}, nil
}

// change is a step of an instance by a verb of the engine, if the instance's label passes the check.
func (p *Provider[C, V]) change(
	ctx context.Context, in provider.Instance, check Check,
	verb func(context.Context, *Site[C, V], provider.Instance) (Decide[V], error),
) (provider.Status, error) {
	t := provider.TagsOf(in)
	return p.step(ctx, in, func(at *Site[C, V]) error {
		next, err := verb(ctx, at, in)
		if err == nil {
			_, err = at.Run(ctx, t, Owned(t, check, next))
		}
		return err
	})
}

// Provision implements provider.Provider.
func (p *Provider[C, V]) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	switch {
	case in.Source == nil:
		return p.change(ctx, in, Free, p.Engine.Provision)
	case p.Restore == nil:
		return provider.Status{}, provider.Failf("An instance of this service cannot be made from another one. Order an empty " +
			"one, and copy the data.")
	}
	return p.step(ctx, in, func(at *Site[C, V]) error { return p.Restore(ctx, at, in) })
}

// Update implements provider.Provider. An update that fails leaves the instance unchanged, and may
// be tried again.
func (p *Provider[C, V]) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	st, err := p.change(ctx, in, Used, p.Engine.Update)
	if f, ok := errors.AsType[*provider.Failure](err); ok {
		f.InstanceUsable, f.UpdateRepeatable = new(true), new(true)
	}
	return st, err
}

// Deprovision implements provider.Provider.
func (p *Provider[C, V]) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.change(ctx, in, Any, p.Engine.Deprovision)
}

// Bind implements provider.Provider.
func (p *Provider[C, V]) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	t := BindingTags(b)
	bound := provider.Status{Done: true, Percent: 100}
	st, err := p.step(ctx, b.Instance, func(at *Site[C, V]) error {
		next, grant, err := p.Engine.Bind(ctx, at, b)
		if err != nil {
			return err
		}
		seen, err := at.Run(ctx, t, Owned(provider.TagsOf(b.Instance), Used, Owned(t, Any, next)))
		if bound.Grant = grant; err == nil && p.Remark != nil {
			bound.Description = p.Remark(ctx, at.Server, t, seen)
		}
		return err
	})
	if st.Done {
		st = bound
	}
	return st, err
}

// Describe implements provider.Describer. It describes only the owner's thing: the names that it
// asks for derive from the owner's tags.
func (p *Provider[C, V]) Describe(ctx context.Context, in provider.Instance) (facts provider.Facts, err error) {
	at, err := p.at(ctx, in.Target, in.Epoch, false)
	if err != nil {
		return facts, err
	}
	defer at.Leave()
	t := provider.TagsOf(in)
	seen, err := at.Server.Look(ctx, t)
	if err != nil {
		return facts, at.Explain(err)
	}
	if _, err = Owned(t, Used, func(V) (any, error) { return nil, nil })(seen); err != nil {
		return facts, err
	}
	facts, err = p.Facts(ctx, at.Server, t, seen)
	facts.Address = at.Access.address()
	return facts, at.Explain(err)
}

// maxExpels is how many times an unbind ends the sessions that block it.
const maxExpels = 5

// Unbind implements provider.Provider.
func (p *Provider[C, V]) Unbind(ctx context.Context, b provider.Binding) (st provider.Status, err error) {
	t := BindingTags(b)
	for range maxExpels {
		st, err = p.step(ctx, b.Instance, func(at *Site[C, V]) error {
			next, err := p.Engine.Unbind(ctx, at, b)
			if err == nil {
				_, err = at.Run(ctx, t, Owned(t, Any, next))
			}
			return err
		})
		if err == nil || p.Expel == nil || !p.Expel(ctx, b, err) {
			break
		}
	}
	return st, err
}
