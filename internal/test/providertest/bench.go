package providertest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
)

// A Shared is a provider on servers that it shares with others.
type Shared interface {
	provider.Provider
	provider.Adopter
	provider.Inventory
	wired.Reconciler
}

// A Bench is a provider at work on one server, with no suite around it: it asks and records as a worker does.
type Bench[P Shared] struct {
	T      testing.TB
	P      P
	Clock  *Clock
	Broker string
	Target provider.Target
	Plan   string // the snapshot of instances
}

// NewBench makes one whose target is known.
func NewBench[P Shared](t testing.TB, p P, clock *Clock, broker, plan string) *Bench[P] {
	t.Helper()
	b := &Bench[P]{T: t, P: p, Clock: clock, Broker: broker, Plan: plan}
	st, err := p.Provision(t.Context(), b.Instance("learns"))
	if err != nil || st.Target == nil {
		t.Fatalf("the first step: %+v, %v", st, err)
	}
	b.Target = *st.Target
	return b
}

// Operation is a new one.
func (b *Bench[P]) Operation(kind operation.Kind) provider.Operation {
	return provider.Operation{ID: rand.Text(), Kind: kind, Started: b.Clock.Now()}
}

// Instance is one that is ordered.
func (b *Bench[P]) Instance(id string) provider.Instance {
	return provider.Instance{
		Broker: b.Broker, Platform: "platform-1", ID: id, Incarnation: "of " + id, ServiceID: "s", PlanID: "p",
		Operation: b.Operation(operation.Provision), Snapshot: json.RawMessage(b.Plan), Target: b.Target,
	}
}

// Binding is one that is ordered, of an incarnation of its own.
func (b *Bench[P]) Binding(in provider.Instance, id, parameters string) provider.Binding {
	in.Operation, in.Parameters = b.Operation(operation.Bind), nil
	made := provider.Binding{Instance: in, ID: id, Incarnation: rand.Text(), Secret: []byte(rand.Text() + rand.Text())}
	if parameters != "" {
		made.Parameters = json.RawMessage(parameters)
	}
	return made
}

// Provision drives it to its good end, as the methods below do.
func (b *Bench[P]) Provision(in provider.Instance) {
	b.T.Helper()
	run(b, b.P.Provision, in)
}

func (b *Bench[P]) Update(in provider.Instance) {
	b.T.Helper()
	run(b, b.P.Update, in)
}

func (b *Bench[P]) Deprovision(in provider.Instance) {
	b.T.Helper()
	run(b, b.P.Deprovision, in)
}

func (b *Bench[P]) Bind(binding provider.Binding) *provider.Grant {
	b.T.Helper()
	return run(b, b.P.Bind, binding).Grant
}

func (b *Bench[P]) Unbind(binding provider.Binding) {
	b.T.Helper()
	run(b, b.P.Unbind, binding)
}

// Fails makes a step that has to fail for good.
func (b *Bench[P]) Fails(
	verb func(context.Context, provider.Instance) (provider.Status, error), in provider.Instance,
) *provider.Failure {
	b.T.Helper()
	st, err := verb(b.T.Context(), in)
	f, failed := errors.AsType[*provider.Failure](err)
	if !failed {
		b.T.Fatalf("%s: %+v, error %v; want a failure", in.ID, st, err)
	}
	return f
}

func run[P Shared, T any](b *Bench[P], verb func(context.Context, T) (provider.Status, error), of T) provider.Status {
	b.T.Helper()
	return Must(b.T, b.Clock, func(ctx context.Context) (provider.Status, error) {
		st, err := verb(ctx, of)
		if in, is := any(&of).(*provider.Instance); is {
			Keep(in, st, err)
		}
		return st, err
	})
}

// Provisioned makes an instance that ends with the test.
func (b *Bench[P]) Provisioned(id string) provider.Instance {
	b.T.Helper()
	in := b.Instance(id)
	b.Provision(in)
	b.T.Cleanup(func() {
		for range 20 {
			if st, err := b.P.Deprovision(context.Background(), in); err == nil && st.Done {
				break
			}
		}
	})
	return in
}

// Held is the whole inventory.
func (b *Bench[P]) Held() (all []provider.Holding) {
	b.T.Helper()
	for cursor := ""; ; {
		page, next, err := b.P.List(b.T.Context(), cursor)
		if err != nil {
			b.T.Fatal(err)
		}
		all = append(all, page...)
		if cursor = next; next == "" {
			return all
		}
	}
}

// Put drives what an inventory does with a thing to its good end.
func (b *Bench[P]) Put(act func(context.Context, provider.Holding) error, h provider.Holding) {
	b.T.Helper()
	Must(b.T, b.Clock, putting(act, h))
}

// Retained deletes an instance as the worker does whose plan retains it, and gives what the inventory lists of it.
func (b *Bench[P]) Retained(in provider.Instance) provider.Holding {
	b.T.Helper()
	h := provider.Holding{Tags: provider.TagsOf(in), Target: b.Target, RetainedUntil: b.Clock.Now().Add(retention)}
	b.Put(b.P.Quarantine, h)
	for _, listed := range b.Held() {
		if listed.Tags == h.Tags && listed.RetainedUntil.Equal(h.RetainedUntil) {
			b.T.Cleanup(func() { _, _ = b.P.Deprovision(context.Background(), in) })
			return listed
		}
	}
	b.T.Fatalf("retained, it lists %+v", b.Held())
	panic("unreachable")
}

// Back is the instance that is to have what is retained of another one.
func (b *Bench[P]) Back(in provider.Instance, id string) provider.Instance {
	out := b.Instance(id)
	out.Origin = in.Origin
	if in.Origin == (provider.Origin{}) {
		out.Origin = provider.Origin{Instance: in.ID, Incarnation: in.Incarnation}
	}
	return out
}

// Adopt has an instance take what is retained of another one, and releases it.
func (b *Bench[P]) Adopt(in provider.Instance, h provider.Holding, back provider.Instance) {
	b.T.Helper()
	h.Tags = provider.TagsOf(back)
	b.Put(adopting(b.P, provider.TagsOf(in)), h)
	b.Put(b.P.Release, h)
}

// Undeleted makes an instance of what is retained.
func (b *Bench[P]) Undeleted(in provider.Instance, h provider.Holding, id string) provider.Instance {
	b.T.Helper()
	back := b.Back(in, id)
	b.Adopt(in, h, back)
	b.Provision(back)
	return back
}

// At is where the server is now.
func (b *Bench[P]) At() target.Epoch {
	b.T.Helper()
	return At(b.T, b.P, b.Target)
}

// Raise has the server be at a later epoch.
func (b *Bench[P]) Raise() target.Epoch {
	b.T.Helper()
	return Raise(b.T, b.P, b.Target)
}

// Restored puts a server back as it was before a binding was removed, whose login it has again then. Nothing is changed on
// it until each such login is shut. Save keeps how the server is, and gives what puts that back.
func (b *Bench[P]) Restored(opens func(*provider.Grant) bool, save func() (restore func())) {
	t := b.T
	t.Helper()
	in := b.Instance("i")
	b.Provision(in)
	removed, kept := b.Binding(in, "removed", ""), b.Binding(in, "kept", "")
	gone, stays := b.Bind(removed), b.Bind(kept)
	restore := save()
	b.Unbind(removed)
	if opens(gone) {
		t.Error("a login survives its unbind")
	}
	known := b.Raise()
	restore()
	if !opens(gone) {
		t.Fatal("the restored server lacks the login, so that nothing is shown")
	}
	in.Epoch, kept.Instance.Epoch = known, known
	page, _, err := b.P.Holdings(t.Context(), b.Target.Name, "")
	if err != nil || len(page) != 3 {
		t.Fatalf("it lists %+v: %v", page, err)
	}
	RefusesAll(t, b.P, in, b.Binding(in, "next", ""), kept)
	first := page[0]
	first.Epoch = known
	Troubled(t, "Quarantine", target.Restored, b.P.Quarantine(t.Context(), first))
	Troubled(t, "Adopt", target.Restored, b.P.Adopt(t.Context(), first, provider.TagsOf(in)))
	next := GoesOn(t, b.P, b.Target, known)
	for _, h := range page {
		if h.Epoch = next; h.Tags.Binding == "removed" {
			if err := b.P.Quarantine(t.Context(), h); err != nil {
				t.Error(err)
			}
		}
	}
	if in.Epoch = next; opens(gone) || !opens(stays) {
		t.Error("want the login that was removed shut, and that of a live binding open")
	}
	for _, h := range b.Held() {
		if h.Epoch != next {
			t.Errorf("%s is listed at %v, want %v", h.Name, h.Epoch, next)
		}
	}
	b.Bind(b.Binding(in, "next", ""))
	b.Deprovision(in)
}
