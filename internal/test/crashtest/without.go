package crashtest

import (
	"context"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/worker"
)

// brokersRecords are the ledger, or one that knows of no tombstones.
func (w *world) brokersRecords() broker.Records {
	switch {
	case w.lacks(Tombstone):
		return forgetful{w.ledger}
	case w.lacks(FormerLease):
		return careless{w.ledger}
	}
	return w.ledger
}

// forgetful reads what was deleted without when that was asked for.
type forgetful struct{ *ledger.Ledger }

func (f forgetful) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	r, err := f.Ledger.Record(ctx, key, now)
	if r.State == lifecycle.Deleted {
		r.DeleteReceived = time.Time{}
	}
	return r, err
}

// careless reads a former life without the steps that may be calling the cloud for it.
type careless struct{ *ledger.Ledger }

func (c careless) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	r, err := c.Ledger.Record(ctx, key, now)
	if key.Life != "" {
		r.Leases, r.Wary = nil, false
	}
	return r, err
}

// workersRecords are the ledger, or one that knows of no leases, or hides that
// an operation was overtaken.
func (w *world) workersRecords() worker.Records {
	switch {
	case w.lacks(Lease):
		return unleased{w.ledger}
	case w.lacks(Fence):
		return &unfenced{Ledger: w.ledger, w: w, first: map[string]lifecycle.Record{}}
	default:
		return w.ledger
	}
}

type unleased struct{ *ledger.Ledger }

func (u unleased) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	r, err := u.Ledger.Record(ctx, key, now)
	r.Leases, r.Wary = nil, false
	return r, err
}

func (u unleased) NextBinding(ctx context.Context, key lifecycle.Key, after string) (*lifecycle.Record, string, error) {
	next, passed, err := u.Ledger.NextBinding(ctx, key, after)
	if next != nil {
		next.Leases, next.Wary = nil, false
	}
	return next, passed, err
}

// unfenced shows each step the instance as it was when its operation was first
// looked at, at the version that it is now.
type unfenced struct {
	*ledger.Ledger
	w     *world
	first map[string]lifecycle.Record
}

func (u *unfenced) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	i, err := u.Ledger.Record(ctx, key, now)
	if err != nil || key.IsBinding() || i.Operation == nil {
		return i, err
	}
	if _, ok := u.first[i.Operation.ID]; !ok && i.InProgress() {
		u.first[i.Operation.ID] = i
	}
	if was, ok := u.first[stepOf(ctx)]; ok && was.Operation.ID != i.Operation.ID {
		was.Version = i.Version
		return was, nil
	}
	return i, nil
}

// stepKey carries the operation that a step is of.
type stepKey struct{}

func stepOf(ctx context.Context) string {
	id, _ := ctx.Value(stepKey{}).(string)
	return id
}

func (w *world) stepped(ref workflow.Ref) (workflow.Outcome, error) {
	return w.worker.Step(context.WithValue(context.Background(), stepKey{}, ref.Token.Operation), ref)
}

// provider is the subject, each call of which is an effect.
func (w *world) provider() provider.Provider {
	p := crashingProvider{w.cloud, w}
	if can, ok := w.holds.(provider.Adopter); ok && w.subject.Keeps != nil {
		return crashingAdopter{p, w.holds, can}
	}
	return p
}

// crashingAdopter is a subject that keeps what is deleted. Its calls may land late, as a
// whole.
type crashingAdopter struct {
	crashingProvider
	provider.Inventory
	can provider.Adopter
}

// land makes a call, now or when nobody waits for it any more.
func (c crashingAdopter) land(ctx context.Context, name string, call func(context.Context) error) error {
	return c.w.cloudEffect(name, func() error {
		if c.w.current == nil {
			ctx = context.WithoutCancel(ctx)
		}
		return call(ctx)
	})
}

func (c crashingAdopter) Quarantine(ctx context.Context, h provider.Holding) error {
	return c.land(ctx, "quarantine", func(ctx context.Context) error {
		if c.w.blunt {
			h.Tags = c.owner(h)
		}
		return c.can.Quarantine(ctx, h)
	})
}

func (c crashingAdopter) Release(ctx context.Context, h provider.Holding) error {
	return c.land(ctx, "release", func(ctx context.Context) error { return c.can.Release(ctx, h) })
}

func (c crashingAdopter) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) error {
	return c.land(ctx, "adopt", func(ctx context.Context) error {
		if c.w.lacks(Owner) {
			former = c.owner(h)
		}
		return c.can.Adopt(ctx, h, former)
	})
}

// owner is whose the thing of that origin is now.
func (c crashingAdopter) owner(h provider.Holding) provider.Tags {
	for _, is := range c.w.holdings() {
		if is.Tags.Binding == "" && origin(is.Tags) == origin(h.Tags) {
			return is.Tags
		}
	}
	return h.Tags
}

func origin(t provider.Tags) provider.Origin {
	if t.Origin != (provider.Origin{}) {
		return t.Origin
	}
	return provider.Origin{Instance: t.Instance, Incarnation: t.Incarnation}
}

type crashingProvider struct {
	provider.Provider
	w *world
}

func (c crashingProvider) call(name string, do func() (provider.Status, error)) (s provider.Status, err error) {
	err = c.w.effect(name, func() error { s, err = do(); return err })
	return s, err
}

// as is the instance as the provider is told of it: without incarnations, every
// one is the same.
func (c crashingProvider) as(in provider.Instance) provider.Instance {
	if c.w.lacks(Incarnation) {
		in.Incarnation = "one"
	}
	return in
}

func (c crashingProvider) of(b provider.Binding) provider.Binding {
	b.Instance = c.as(b.Instance)
	if c.w.lacks(Incarnation) {
		b.Incarnation = "one"
	}
	return b
}

func (c crashingProvider) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return c.call("provision", func() (provider.Status, error) { return c.Provider.Provision(ctx, c.as(in)) })
}

func (c crashingProvider) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return c.call("update", func() (provider.Status, error) { return c.Provider.Update(ctx, c.as(in)) })
}

func (c crashingProvider) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return c.call("deprovision", func() (provider.Status, error) { return c.Provider.Deprovision(ctx, c.as(in)) })
}

func (c crashingProvider) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return c.call("bind", func() (provider.Status, error) { return c.Provider.Bind(ctx, c.of(b)) })
}

func (c crashingProvider) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return c.call("unbind", func() (provider.Status, error) { return c.Provider.Unbind(ctx, c.of(b)) })
}
