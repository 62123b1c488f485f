// Package demotest owns the proof that the demo is a provider like others
// whatever it keeps its things in: an adapter of demo.Things gives a way to
// open its things again, and Run does the rest.
package demotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/test/providertest"
)

const broker = "broker-1"

// start is what the clock shows first.
var start = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)

// Run proves the demo over the things that a world makes: with passwords that
// are derived, and with those that it chooses itself. A world gives the same
// things, opened again, each time it is asked.
func Run(t *testing.T, pageSize int, world func(*testing.T) (reopen func(testing.TB) demo.Things)) {
	for _, secret := range []string{"broker", "cloud"} {
		t.Run("SecretOf="+secret, func(t *testing.T) { providertest.Run(t, Factory(pageSize, secret, world)) })
	}
}

// Factory makes the harnesses that Run runs the suite on, half of them: the
// plan's setting "secret" is as given. Over a slow world, that of the cloud is
// enough, which asks more of it.
func Factory(pageSize int, secret string, world func(*testing.T) (reopen func(testing.TB) demo.Things)) providertest.Factory {
	return func(t *testing.T) *providertest.Harness {
		reopen := world(t)
		things := &faltering{Things: reopen(t)}
		clock := providertest.NewClock(start)
		opts := demo.Options{Broker: broker, Delay: 3 * time.Second, Now: clock.Now}
		p := demo.New(things, opts)
		return &providertest.Harness{
			Provider:  p,
			Inventory: p,
			Broker:    broker,
			Clock:     clock,
			ServiceID: "demo-id",
			PlanID:    "small-id",
			Settings:  map[string]any{"secret": secret},
			Parameters: func(canary string) json.RawMessage {
				return json.RawMessage(fmt.Sprintf(`{"note":%q}`, canary))
			},
			Fail: func(_ testing.TB, kind provider.Kind) map[string]any {
				return map[string]any{"secret": secret, "fail": []any{string(kind)}}
			},
			Plant: func(t testing.TB, at, owner provider.Tags) {
				t.Helper()
				if err := things.Create(t.Context(),
					demo.Thing{Name: Name(at), Tags: owner, Created: start, Ready: start}); err != nil {
					t.Fatal(err)
				}
			},
			Look: func(t testing.TB, at provider.Tags) string {
				t.Helper()
				thing, err := things.Get(t.Context(), Name(at))
				if errors.Is(err, demo.ErrNotFound) {
					return ""
				}
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintf("%+v %v %s %s", thing.Tags, thing.Created, thing.Plan, lastUpdate(thing))
			},
			Opens: func(t testing.TB, g *provider.Grant) bool {
				t.Helper()
				return Accepts(t, p, g)
			},
			Secrets: func(t testing.TB, at provider.Tags) int {
				t.Helper()
				thing, err := things.Get(t.Context(), Name(at))
				if err != nil && !errors.Is(err, demo.ErrNotFound) {
					t.Fatal(err)
				}
				if thing.Verifier != nil {
					return 1 + len(thing.Keys)
				}
				return len(thing.Keys)
			},
			Falter: things.calls.Arm,
			Open: func(t testing.TB, broker string) (provider.Provider, provider.Inventory) {
				t.Helper()
				p := demo.New(reopen(t), demo.Options{Broker: broker, Delay: opts.Delay, Now: opts.Now})
				return p, p
			},
			Retaining: func() (map[string]any, json.RawMessage) {
				return map[string]any{"secret": secret, "retain_days": 7},
					json.RawMessage(fmt.Sprintf(`{"secret":%q,"retain_days":7}`, secret))
			},
			PageSize: pageSize,
		}
	}
}

// lastUpdate is the operation that made the thing what it is; empty if it is as
// it was made.
func lastUpdate(t demo.Thing) string {
	for _, p := range slices.Backward(t.Past) {
		if p.Kind == provider.KindUpdate && !p.Failed {
			return p.Operation
		}
	}
	return ""
}

// Accepts reports whether the demo lets in who has the grant.
func Accepts(t testing.TB, p *demo.Provider, g *provider.Grant) bool {
	t.Helper()
	username, _ := g.Credentials["username"].(string)
	password, _ := g.Credentials["password"].(string)
	ok, err := p.Accepts(t.Context(), username, password)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// Name is the name that the demo gives to the thing of these tags.
func Name(tags provider.Tags) string {
	role := "instance"
	if tags.Binding != "" {
		role = "binding"
	}
	return provider.Name("longshore-demo", role, tags)
}

// faltering is things of which a call can go wrong.
type faltering struct {
	demo.Things
	calls providertest.Calls
}

func (f *faltering) Create(ctx context.Context, t demo.Thing) error {
	return f.calls.Call(ctx, func() error { return f.Things.Create(ctx, t) })
}

func (f *faltering) Get(ctx context.Context, name string) (t demo.Thing, err error) {
	err = f.calls.Call(ctx, func() error { t, err = f.Things.Get(ctx, name); return err })
	return t, err
}

func (f *faltering) Replace(ctx context.Context, t demo.Thing) error {
	return f.calls.Call(ctx, func() error { return f.Things.Replace(ctx, t) })
}

func (f *faltering) Delete(ctx context.Context, t demo.Thing) error {
	return f.calls.Call(ctx, func() error { return f.Things.Delete(ctx, t) })
}

func (f *faltering) List(ctx context.Context, cursor string) (page []demo.Thing, next string, err error) {
	err = f.calls.Call(ctx, func() error { page, next, err = f.Things.List(ctx, cursor); return err })
	return page, next, err
}
