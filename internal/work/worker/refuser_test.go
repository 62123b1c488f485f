package worker_test

import (
	"context"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// refusing is a provider that refuses deletions.
type refusing struct{ cloud }

func (refusing) Refuses(context.Context, provider.Instance) error {
	return &provider.Failure{Message: "it is not empty", InstanceUsable: new(true), Untouched: true}
}

// A deletion that the provider refuses takes no binding away: the instance is ready
// as before, can be bound so that it can be emptied, and is deleted when it is empty.
func TestARefusedDeletionTakesNothing(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	done(bind)(w)
	ref := refOf(w.must(deprovision), 1)
	o := w.worker().Options
	o.Providers = testkit.AsDemo(refusing{cloud{w, nil}})
	if outcome, err := worker.New(o).Step(t.Context(), ref); err != nil || !outcome.Settled {
		t.Fatalf("%+v %v", outcome, err)
	}
	i := w.instance()
	if op := i.Operation; i.State != lifecycle.Ready || op.Phase != lifecycle.Failed || op.InstanceUsable == nil || !*op.InstanceUsable ||
		op.Description != "it is not empty" {
		t.Errorf("state %q, operation %+v", i.State, op)
	}
	if b, err := w.ledger().Record(t.Context(), bindingKey, w.clock); err != nil || b.State != lifecycle.Ready || b.Grant == nil {
		t.Errorf("the binding is %q: %v", b.State, err)
	}
	w.must(bind) // the same again: there it is
	w.must(deprovision)
	w.rest()
	if state, n := w.instance().State, w.held(); state != lifecycle.Deleted || n != 0 {
		t.Errorf("once it is empty: %q, and %d things are left", state, n)
	}
}
