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
	"github.com/longshore/longshore/internal/work/worker"
)

// A failure of any length ends the operation: it is not asked for again and
// again because its message does not fit into the record.
func TestALongFailureEndsTheOperation(t *testing.T) {
	w := newWorld(t)
	ref, calls := w.asks(provision), 0
	failing := w.with(func(context.Context) (provider.Status, error) {
		calls++
		return provider.Status{}, provider.Failf("no room: %s", strings.Repeat("ü", 200_000))
	})
	w.settles(failing, ref)
	w.settles(failing, ref)
	i := w.instance()
	if calls != 1 || i.State != lifecycle.CreateFailed || !strings.HasPrefix(i.Operation.Description, "no room: ü") ||
		len(i.Operation.Description) > limits.Description {
		t.Errorf("after %d calls %q, a description of %d bytes", calls, i.State, len(i.Operation.Description))
	}
}

// generous is a worker whose provider makes a binding, and gives credentials of its own for it.
func (w *world) generous(credentials map[string]any) *worker.Worker {
	cloud := w.cloud()
	return w.by(stub{cloud: cloud, bind: func(ctx context.Context, b provider.Binding) (provider.Status, error) {
		_, err := cloud.Bind(ctx, b)
		return provider.Status{Done: true, Grant: &provider.Grant{Credentials: credentials}}, err
	}})
}

type quoting string

func (q quoting) MarshalJSON() ([]byte, error) { return nil, errors.New("cannot encode " + string(q)) }

// A grant that a record cannot hold, that could not be read again, or that JSON cannot hold, fails the bind at once: it
// would be the same each time. Nobody learns a part of it, nothing is kept of it, and the binding can be removed.
func TestGrantsThatCannotBeEncoded(t *testing.T) {
	const canary = "canary-c40a"
	nested := any("x")
	for range 10_001 {
		nested = []any{nested}
	}
	for name, bad := range map[string]any{
		"Larger": strings.Repeat("x", limits.Grant), "300KB": strings.Repeat("x", 300_000), "TooNested": nested,
		"Function": func() {}, "NotNumber": math.Inf(1), "Quoting": quoting(canary),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done(provision)(w)
			var log bytes.Buffer
			by := w.generous(map[string]any{"password": canary, "bad": bad})
			by.Log = slog.New(logs.Handler{Handler: slog.NewTextHandler(&log, nil)})
			w.settles(by, w.asks(bind))
			expect.Never(t, "the step's log", log.String(), canary)
			w.left("after the bind", bindingKey, lifecycle.CreateFailed, 2)
			expect.Same(t, "the grant", nil, w.recorded(bindingKey).Grant)
			done(unbind)(w)
			w.left("after the unbind", bindingKey, lifecycle.Deleted, 1)
		})
	}
}

func TestTheLargestGrantIsKept(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	credentials := map[string]any{"x": strings.Repeat("x", limits.Grant-len(`{"credentials":{"x":""}}`))}
	w.step(w.generous(credentials), w.asks(bind))
	view := expect.Get(w.broker().View(context.Background(), broker.Caller{Platform: "p"}, "i", "b"))(t)
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
	err := expect.Err(updates(string(half("b")))(w, w.broker()))
	if reason(err) != lifecycle.BadRequest || w.instance().Version != before {
		t.Errorf("%v; the record was written %d times", err, w.instance().Version-before)
	}
	w.must(update) // a small one fits beside what is there: markup does not count six times
}
