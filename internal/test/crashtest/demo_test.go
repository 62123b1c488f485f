package crashtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/test/crashtest"
	"github.com/longshore/longshore/internal/test/demotest"
)

// things are the demo's, each change of which is an effect.
type things struct {
	*demotest.Memory
	effect crashtest.Effect
}

func (c things) Create(ctx context.Context, t demo.Thing) error {
	return c.effect("create "+t.Name, func() error { return c.Memory.Create(ctx, t) })
}

func (c things) Replace(ctx context.Context, t demo.Thing) error {
	return c.effect("replace "+t.Name, func() error { return c.Memory.Replace(ctx, t) })
}

func (c things) Delete(ctx context.Context, t demo.Thing) error {
	return c.effect("delete "+t.Name, func() error { return c.Memory.Delete(ctx, t) })
}

// In the first plan the cloud chooses the secrets, which takes two recorded steps.
var subject = crashtest.Subject{Name: "demo", Settings: map[string]any{"secret": "cloud"},
	Opens: func(p provider.Provider, g *provider.Grant) (bool, error) {
		username, _ := g.Credentials["username"].(string)
		password, _ := g.Credentials["password"].(string)
		return p.(*demo.Provider).Accepts(context.Background(), username, password)
	},
	New: func(now func() time.Time, effect crashtest.Effect) (provider.Provider, provider.Inventory) {
		p := demo.New(things{demotest.NewMemory(), effect}, demo.Options{Delay: 3 * time.Second, Now: now})
		return p, p
	}}

func TestHistories(t *testing.T) { crashtest.Run(t, subject, 3000) }

// Each safeguard would be missed.
func TestSafeguardsAreNeeded(t *testing.T) {
	for _, g := range []crashtest.Safeguard{crashtest.Lease, crashtest.Fence, crashtest.Incarnation, crashtest.Tombstone,
		crashtest.Memory} {
		t.Run(string(g), func(t *testing.T) {
			t.Parallel()
			err := crashtest.Without(subject, g, 20000)
			if err == nil {
				t.Fatal("without it, nothing went wrong")
			}
			t.Log(err)
		})
	}
}
