package cloudtest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/test/providertest"
)

// Factory makes harnesses over a fake cloud with two accounts, for the reference
// provider or a mutant of it. Secret is who chooses the secrets: cloud or broker.
func Factory(secret, mutant string) providertest.Factory {
	return func(*testing.T) *providertest.Harness {
		clock := providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
		cloud := NewCloud(clock.Now)
		open := func(broker string) *Provider {
			p := New(cloud, broker)
			p.Script, p.Mutant = demo.New(3*time.Second, clock.Now), mutant
			return p
		}
		settings := func(more string, value any) map[string]any { return map[string]any{"secret": secret, more: value} }
		p := open("broker-1")
		return &providertest.Harness{
			Provider: p, Inventory: p, Broker: "broker-1", Clock: clock,
			Target: provider.Target{Name: "east"},
			Elsewhere: func(testing.TB) (provider.Provider, provider.Inventory) {
				p := open("broker-1")
				p.Endpoints = map[string]string{"east": "west"}
				return p, p
			},
			ServiceID: "service-1", PlanID: "plan-1", Settings: settings("size", "small"),
			Parameters: func(canary string) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"note":%q}`, canary)) },
			Fail:       func(_ testing.TB, kind operation.Kind) map[string]any { return settings("fail", []any{string(kind)}) },
			Plant:      func(_ testing.TB, at, owner provider.Tags) { cloud.Plant("east", Thing{Name: p.Name(at), Tags: owner}) },
			Look:       func(_ testing.TB, at provider.Tags) string { return cloud.Look(p.Name(at)) },
			Secrets:    func(_ testing.TB, at provider.Tags) int { return cloud.Secrets(p.Name(at)) },
			Opens:      func(_ testing.TB, g *provider.Grant) bool { return mutant == "keeps-open" || cloud.Opens(g) },
			Falter:     p.Calls.Arm,
			Open: func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) {
				p := open(broker)
				return p, p
			},
			PageSize: PageSize,
		}
	}
}
