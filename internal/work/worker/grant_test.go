package worker_test

import (
	"bytes"
	"context"
	"errors"
	"github.com/longshore/longshore/internal/test/testkit"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/work/worker"
)

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
			b, err := w.ledger().Record(context.Background(), bindingKey, w.clock)
			if err != nil || b.State != lifecycle.CreateFailed || b.Grant != nil {
				t.Errorf("the binding is %q with a grant: %v: %v", b.State, b.Grant != nil, err)
			}
			if n := w.held(); n != 2 {
				t.Fatalf("%d things exist, want the instance's and the binding's: the test proves nothing", n)
			}
			done(unbind)(w)
			if b, err = w.ledger().Record(context.Background(), bindingKey, w.clock); err != nil || b.State != lifecycle.Deleted || w.held() != 1 {
				t.Errorf("after the unbind the binding is %q, and %d things are left: %v", b.State, w.held(), err)
			}
		})
	}
}
