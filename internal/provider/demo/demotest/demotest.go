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
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/providertest"
)

// start is what the clock shows first.
var start = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)

var errFault = errors.New("the things answered with a fault")

// Run proves the demo over the things that a world makes. A world gives the
// same things, opened again, each time it is asked.
func Run(t *testing.T, pageSize int, world func(*testing.T) (reopen func(testing.TB) demo.Things)) {
	providertest.Run(t, Factory(pageSize, world))
}

// Factory makes the harnesses that Run runs the suite on.
func Factory(pageSize int, world func(*testing.T) (reopen func(testing.TB) demo.Things)) providertest.Factory {
	return func(t *testing.T) *providertest.Harness {
		reopen := world(t)
		things := &faltering{Things: reopen(t)}
		clock := providertest.NewClock(start)
		opts := demo.Options{Delay: 3 * time.Second, Now: clock.Now}
		p := demo.New(things, opts)
		return &providertest.Harness{
			Provider:  p,
			Inventory: p,
			Clock:     clock,
			ServiceID: "demo-id",
			PlanID:    "small-id",
			Settings:  map[string]any{"size": "small"},
			Parameters: func(canary string) json.RawMessage {
				return json.RawMessage(fmt.Sprintf(`{"note":%q}`, canary))
			},
			Fail: func(_ testing.TB, kind provider.Kind) map[string]any {
				return map[string]any{"fail": []any{string(kind)}}
			},
			Plant: func(t testing.TB, at, owner provider.Tags) {
				t.Helper()
				if err := things.Create(t.Context(), demo.Thing{Name: Name(at), Tags: owner, Created: start, Ready: start}); err != nil {
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
			Falter: things.arm,
			Reopen: func(t testing.TB) (provider.Provider, provider.Inventory) {
				t.Helper()
				p := demo.New(reopen(t), opts)
				return p, p
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

// faltering is things of which one call answers with a fault.
type faltering struct {
	demo.Things
	mu     sync.Mutex
	left   int // calls until the fault; 0 for none
	worked bool
	struck bool
}

// arm makes the nth call from now answer with a fault.
func (f *faltering) arm(n int, worked bool) (disarm func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.worked, f.struck = n, worked, false
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.left = 0
		return f.struck
	}
}

func (f *faltering) call(do func() error) error {
	f.mu.Lock()
	strikes := f.left == 1
	f.struck = f.struck || strikes
	f.left = max(f.left-1, 0)
	worked := f.worked
	f.mu.Unlock()
	if !strikes {
		return do()
	}
	if worked {
		_ = do()
	}
	return errFault
}

func (f *faltering) Create(ctx context.Context, t demo.Thing) error {
	return f.call(func() error { return f.Things.Create(ctx, t) })
}

func (f *faltering) Get(ctx context.Context, name string) (t demo.Thing, err error) {
	err = f.call(func() error { t, err = f.Things.Get(ctx, name); return err })
	return t, err
}

func (f *faltering) Replace(ctx context.Context, t demo.Thing) error {
	return f.call(func() error { return f.Things.Replace(ctx, t) })
}

func (f *faltering) Delete(ctx context.Context, t demo.Thing) error {
	return f.call(func() error { return f.Things.Delete(ctx, t) })
}

func (f *faltering) List(ctx context.Context, cursor string) (page []demo.Thing, next string, err error) {
	err = f.call(func() error { page, next, err = f.Things.List(ctx, cursor); return err })
	return page, next, err
}
