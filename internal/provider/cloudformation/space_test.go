package cloudformation

import (
	"testing"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
)

// The space of the order counts for the instance's whole life, and is recorded before anything is made.
func TestTheSpaceOfTheOrderCounts(t *testing.T) {
	b := newBench(t)
	in := b.instance(operation.Provision)
	in.Place = provider.Place{Organization: "o", Space: "s"}
	name := nameIn(b.Scope, in)
	st, err := b.Provision(t.Context(), in)
	if err != nil || st.State == nil || st.Target == nil {
		t.Fatalf("the first step: %+v, %v", st, err)
	}
	if all := b.fake.account(here).stacks; len(all) != 0 {
		t.Fatalf("the first step made %d stacks", len(all))
	}
	in.State, in.Target = *st.State, *st.Target
	for _, kind := range []operation.Kind{operation.Provision, operation.Update, operation.Deprovision} {
		in.Place.Space += "x" // it moves with each operation
		if _, f := b.drive(&in); f != nil {
			t.Fatalf("%s: %v", kind, f)
		}
		if all := b.fake.account(here).stacks; len(all) != 1 || all[0].name != name {
			t.Fatalf("%s: there are %d stacks, the first %q, want %q", kind, len(all), all[0].name, name)
		}
		next := b.instance(map[operation.Kind]operation.Kind{
			operation.Provision: operation.Update, operation.Update: operation.Deprovision}[kind])
		next.State, next.Target, next.Former, next.Place = in.State, in.Target, in.Snapshot, in.Place
		in = next
	}
}

// Where the state is lost, each operation finds the stack that there is, whatever the platform says of the place by now.
func TestStacksWithoutState(t *testing.T) {
	for _, kind := range []operation.Kind{operation.Provision, operation.Update, operation.Deprovision} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			for range suitePage + 1 { // more than a page of others
				other := b.instance(operation.Provision)
				other.ID = other.Operation.ID
				b.must(&other)
			}
			in := b.ready(kind)
			if kind == operation.Provision {
				in.Operation.ID, in.Former = in.Incarnation, nil
			}
			in.State, in.Place = provider.State{}, provider.Place{Organization: "moved", Space: "moved"}
			b.must(&in)
			stands := b.stack() != nil
			if all := b.fake.account(here).stacks; len(all) != suitePage+2 || stands == (kind == operation.Deprovision) {
				t.Errorf("there are %d stacks, and the instance's is there: %v", len(all), stands)
			}
		})
	}
}
