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
	if w.lacks(Tombstone) {
		return forgetful{w.ledger}
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
func (w *world) provider() provider.Provider { return crashingProvider{w.cloud, w} }

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
