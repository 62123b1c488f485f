package cloudformation

import (
	"context"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/test/crashtest"
	"github.com/longshore/longshore/internal/test/testkit"
)

// histories are a subject over CloudFormation in memory.
func histories() crashtest.Subject {
	type onFake struct {
		planned
		fake *fake
	}
	return crashtest.Subject{
		Name: "cloudformation", Settings: map[string]any{"size": "small"}, Others: map[string]any{"size": "large"},
		Sparse: 401,
		Opens: func(p provider.Provider, g *provider.Grant) (bool, error) {
			key, _ := g.Credentials["access_key_id"].(string)
			secret, _ := g.Credentials["secret_access_key"].(string)
			return fakeClient{fake: p.(onFake).fake}.opens(key, secret), nil
		},
		New: func(now func() time.Time, effect crashtest.Effect) (provider.Provider, provider.Inventory) {
			f := newFake(now)
			f.takes = 200 * time.Millisecond
			p := onFake{planned{f.over(testkit.Identity, here, func(_ context.Context, name string, do func() error) error {
				if name == "look" || name == "list" || name == "identify" { // reading is no effect
					return do()
				}
				return effect(name, do)
			})}, f}
			return p, p
		},
	}
}

// Whole histories of a platform and a broker, with processes that die between any two
// calls that change something, and within one.
func TestHistories(t *testing.T) { crashtest.Run(t, histories(), 60) }
