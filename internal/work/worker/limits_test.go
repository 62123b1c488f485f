package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/longshore/longshore/internal/test/testkit"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/work/worker"
)

// A failure of any length ends the operation: it is not asked for again and
// again because its message does not fit into the record.
func TestALongFailureEndsTheOperation(t *testing.T) {
	w := newWorld(t)
	ref := refOf(w.must(provision), 1)
	calls := 0
	failing := w.with(func(context.Context) (provider.Status, error) {
		calls++
		return provider.Status{}, provider.Failf("no room: %s", strings.Repeat("ü", 200_000))
	})
	for range 2 {
		if outcome, err := failing.Step(context.Background(), ref); err != nil || !outcome.Settled {
			t.Fatalf("outcome %+v, error %v", outcome, err)
		}
	}
	i := w.instance()
	if calls != 1 || i.State != lifecycle.CreateFailed || !strings.HasPrefix(i.Operation.Description, "no room: ü") ||
		len(i.Operation.Description) > limits.Description {
		t.Errorf("after %d calls %q, a description of %d bytes", calls, i.State, len(i.Operation.Description))
	}
}

func TestALongProgressIsClipped(t *testing.T) {
	w := newWorld(t)
	ref := refOf(w.must(provision), 1)
	if _, err := w.with(func(context.Context) (provider.Status, error) {
		return provider.Status{Description: strings.Repeat("x", 20_000)}, nil
	}).Step(context.Background(), ref); err != nil {
		t.Fatal(err)
	}
	poll, err := w.broker().LastOperation(context.Background(), instanceKey, "")
	if err != nil || len(poll.Operation.Description) > limits.Description {
		t.Errorf("the platform reads %d bytes: %v", len(poll.Operation.Description), err)
	}
}

// A grant that a record cannot hold, or that could not be read again, fails the
// bind at once: it would be the same each time. The binding can be removed.
func TestAGrantThatIsTooLargeFailsTheBind(t *testing.T) {
	nested := any("x")
	for range 10_001 {
		nested = []any{nested}
	}
	for name, credentials := range map[string]map[string]any{
		"Larger":    {"x": strings.Repeat("x", limits.Grant)},
		"300KB":     {"x": strings.Repeat("x", 300_000)},
		"TooNested": {"x": nested},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done(provision)(w)
			ref := refOf(w.must(bind), 1)
			o := w.worker().Options
			o.Providers = testkit.AsDemo(generous{o.Providers["demo"].Provider.(cloud), credentials})
			if outcome, err := worker.New(o).Step(context.Background(), ref); err != nil || !outcome.Settled {
				t.Fatalf("outcome %+v, error %v", outcome, err)
			}
			b, err := w.ledger().Record(context.Background(), bindingKey, w.clock)
			if err != nil || b.State != lifecycle.CreateFailed || b.Grant != nil || len(b.Leases) != 0 {
				t.Errorf("the binding is %q, with a grant: %v, leases: %v: %v", b.State, b.Grant != nil, b.Leases, err)
			}
			done(unbind)(w)
			if w.held() != 1 {
				t.Errorf("after the unbind %d things are left, want the instance's", w.held())
			}
		})
	}
}

func TestTheLargestGrantIsKept(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	ref := refOf(w.must(bind), 1)
	credentials := map[string]any{"x": strings.Repeat("x", limits.Grant-len(`{"credentials":{"x":""}}`))}
	o := w.worker().Options
	o.Providers = testkit.AsDemo(generous{o.Providers["demo"].Provider.(cloud), credentials})
	if _, err := worker.New(o).Step(context.Background(), ref); err != nil {
		t.Fatal(err)
	}
	view, err := w.broker().Binding(context.Background(), broker.Caller{Platform: "p"}, "i", "b")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(credentials, view.Grant.Credentials); diff != "" {
		t.Errorf("credentials (-given +shown):\n%.500s", diff)
	}
}

// Two requests, each of which is within the limit, do not add up to more.
func TestMergedParametersAreBounded(t *testing.T) {
	w := newWorld(t)
	half := func(name string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{%q:%q}`, name, strings.Repeat("<", limits.Parameters/2)))
	}
	q := broker.ProvisionRequest{Caller: w.caller(), InstanceID: "i", ServiceID: service(), PlanID: planAsyncBind(), OrganizationGUID: "o",
		SpaceGUID: "s", Parameters: half("a")}
	if _, err := w.broker().Provision(context.Background(), q); err != nil {
		t.Fatal(err)
	}
	w.rest()
	before := w.instance().Version
	_, err := w.broker().Update(context.Background(),
		broker.UpdateRequest{Caller: w.caller(), InstanceID: "i", ServiceID: service(), Parameters: half("b")})
	var refusal *lifecycle.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != lifecycle.BadRequest || w.instance().Version != before {
		t.Errorf("%v; the record was written %d times", err, w.instance().Version-before)
	}
	w.must(update) // a small one fits beside what is there: markup does not count six times
}
