package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
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
		w.settles(failing, ref)
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
	w.step(w.with(answers(provider.Status{Description: strings.Repeat("x", 20_000)}, nil)), ref)
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
			w.settles(w.by(generous{w.kit().Providers["demo"].(cloud), credentials}), ref)
			b := w.recorded(bindingKey)
			if b.State != lifecycle.CreateFailed || b.Grant != nil || len(b.Leases) != 0 {
				t.Errorf("the binding is %q, with a grant: %v, leases: %v", b.State, b.Grant != nil, b.Leases)
			}
			done(unbind)(w)
			expect.Same(t, "things that are left after the unbind", 1, w.held())
		})
	}
}

func TestTheLargestGrantIsKept(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	ref := refOf(w.must(bind), 1)
	credentials := map[string]any{"x": strings.Repeat("x", limits.Grant-len(`{"credentials":{"x":""}}`))}
	w.step(w.by(generous{w.kit().Providers["demo"].(cloud), credentials}), ref)
	view, err := w.broker().Binding(context.Background(), broker.Caller{Platform: "p"}, "i", "b")
	expect.OK(t, err)
	if diff := cmp.Diff(credentials, view.Grant.Credentials); diff != "" {
		t.Errorf("credentials (-given +shown):\n%.500s", diff)
	}
}

// Two requests, each of which is within the limit, do not add up to more.
func TestMergedParametersAreBounded(t *testing.T) {
	w := newWorld(t)
	half := func(name string) []byte {
		return fmt.Appendf(nil, `{%q:%q}`, name, strings.Repeat("<", limits.Parameters/2))
	}
	done(orders("i", "async-bind", half("a")))(w)
	before := w.instance().Version
	_, err := w.broker().Update(context.Background(),
		broker.UpdateRequest{Caller: w.caller(), InstanceID: "i", ServiceID: service(), Parameters: half("b")})
	var refusal *lifecycle.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != lifecycle.BadRequest || w.instance().Version != before {
		t.Errorf("%v; the record was written %d times", err, w.instance().Version-before)
	}
	w.must(update) // a small one fits beside what is there: markup does not count six times
}

// generous makes a binding, and gives credentials of its own for it.
type generous struct {
	cloud
	credentials map[string]any
}

func (g generous) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	if _, err := g.cloud.Bind(ctx, b); err != nil {
		return provider.Status{}, err
	}
	return provider.Status{Done: true, Grant: &provider.Grant{Credentials: g.credentials}}, nil
}

type quoting string

func (q quoting) MarshalJSON() ([]byte, error) { return nil, errors.New("cannot encode " + string(q)) }

// A provider that gives what JSON cannot hold: the bind fails, nobody learns a
// part of it, nothing is kept of it, and the binding can be removed.
func TestGrantsThatCannotBeEncoded(t *testing.T) {
	const canary = "canary-c40a"
	for name, credentials := range map[string]map[string]any{
		"Function":  {"password": canary, "bad": func() {}},
		"NotNumber": {"password": canary, "bad": math.Inf(1)},
		"Quoting":   {"password": quoting(canary)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done(provision)(w)
			ref := refOf(w.must(bind), 1)
			var log bytes.Buffer
			o := w.worker().Options
			o.Log = slog.New(logs.Handler{Handler: slog.NewTextHandler(&log, nil)})
			o.Providers = testkit.AsDemo(generous{o.Providers["demo"].Provider.(cloud), credentials})
			_, err := worker.New(o).Step(context.Background(), ref)
			if err != nil || strings.Contains(log.String(), canary) {
				t.Errorf("the step's error is %v, its log\n%s", err, log.String())
			}
			b := w.recorded(bindingKey)
			if b.State != lifecycle.CreateFailed || b.Grant != nil {
				t.Errorf("the binding is %q with a grant: %v: %v", b.State, b.Grant != nil, err)
			}
			if n := w.held(); n != 2 {
				t.Fatalf("%d things exist, want the instance's and the binding's: the test proves nothing", n)
			}
			done(unbind)(w)
			if b = w.recorded(bindingKey); b.State != lifecycle.Deleted || w.held() != 1 {
				t.Errorf("after the unbind the binding is %q, and %d things are left: %v", b.State, w.held(), err)
			}
		})
	}
}
