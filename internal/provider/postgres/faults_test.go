package postgres_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/crashtest"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/testkit"
)

// overFake is a harness over a server in memory, every call to which can go wrong.
func overFake(t *testing.T) *providertest.Harness {
	t.Helper()
	clock, calls := providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)), &providertest.Calls{}
	f, other := postgres.NewFake("one", clock.Now), postgres.NewFake("other", clock.Now)
	f.Leaves = true
	open := func(broker string, f *postgres.Fake) *postgres.Provider {
		p := postgres.New(postgres.Options{Options: hosted.Options{Broker: broker, Accesses: hosted.Accesses{hosted.DefaultTarget: hosted.Access{Host: "fake", Port: 1}},
			Now: clock.Now}})
		p.SetPage(suitePage)
		p.Fake(f)
		p.Mutate(os.Getenv(providertest.MutantVariable))
		return p
	}
	f.Effect = func(ctx context.Context, _ string, do func() error) error { return calls.Call(ctx, do) }
	p := open("broker-1", f)
	return &providertest.Harness{
		Provider: failing{p}, Inventory: p, Broker: "broker-1", Target: provider.Target{Name: hosted.DefaultTarget},
		Elsewhere: func(testing.TB) (provider.Provider, provider.Inventory) {
			p := open("broker-1", other)
			return p, p
		},
		Clock: clock, ServiceID: "service-1", PlanID: "plan-1", Settings: map[string]any{"connection_limit": 5},
		Parameters: providertest.Note, Fail: providertest.FailBySetting,
		Plant: func(_ testing.TB, at, owner provider.Tags) {
			_, name, login := namesAt(at)
			comment := ""
			if owner != (provider.Tags{}) {
				comment = hosted.Label{Tags: owner, Created: clock.Now()}.Text()
			}
			if login != "" {
				name = login
			}
			f.Plant(name, comment)
		},
		Look: func(_ testing.TB, at provider.Tags) string {
			database, owner, login := namesAt(at)
			if login != "" {
				database, owner = "", login
			}
			return f.Tell(owner, database)
		},
		Opens: func(_ testing.TB, g *provider.Grant) bool { return opensFake(f, g) },
		Secrets: func(_ testing.TB, at provider.Tags) int {
			_, _, login := namesAt(at)
			return f.Secrets(login)
		},
		Falter: calls.Arm, PageSize: suitePage,
		Open: func(_ testing.TB, broker string) (provider.Provider, provider.Inventory) {
			p := open(broker, f)
			return failing{p}, p
		},
	}
}

func opensFake(f *postgres.Fake, g *provider.Grant) bool {
	login, _ := g.Credentials["username"].(string)
	password, _ := g.Credentials["password"].(string)
	database, _ := g.Credentials["name"].(string)
	return f.Opens(login, password, database)
}

// The whole suite, with each call refused, lost, late or the last one. In the
// subprocesses of TestMutants the provider is not sound.
func TestSound(t *testing.T) {
	t.Parallel()
	providertest.Run(t, overFake)
}

// Each mutant of the provider is caught by its case.
func TestMutants(t *testing.T) {
	t.Parallel()
	providertest.RunMutants(t, map[string]providertest.Mutant{
		"labels-later":       {Reason: "what is made says in the same change whose it is", Caught: "Faults"},
		"keeps-members":      {Reason: "what was deleted opens to nobody, also undeleted", Caught: "Undeletes"},
		"leaves-logins":      {Reason: "an unbind is done when the login is gone", Caught: "Lifecycle"},
		"lists-all":          {Reason: "the inventory lists nothing of another broker", Caught: "Brokers"},
		"never-released":     {Reason: "what is released opens as before", Caught: "Quarantine"},
		"no-password":        {Reason: "a grant opens", Caught: "Lifecycle"},
		"open-in-quarantine": {Reason: "what is in quarantine opens to nobody", Caught: "Quarantine"},
		"trusts-absence":     {Reason: "no absence counts at the wrong target", Caught: "WrongTarget"},
	})
}

// fakes are those of the histories, by the provider that speaks to each.
var opening = func(f func(provider.Provider) *postgres.Fake) func(provider.Provider, *provider.Grant) (bool, error) {
	return func(p provider.Provider, g *provider.Grant) (bool, error) { return opensFake(f(p), g), nil }
}

// histories are a subject over servers in memory.
func histories() crashtest.Subject {
	type onFake struct {
		*postgres.Provider
		fake *postgres.Fake
	}
	return crashtest.Subject{
		Name: "postgres", Settings: map[string]any{"connection_limit": 5}, Others: map[string]any{"connection_limit": 9},
		Sparse: 29,
		Opens:  opening(func(p provider.Provider) *postgres.Fake { return p.(onFake).fake }),
		New: func(now func() time.Time, effect crashtest.Effect) (provider.Provider, provider.Inventory) {
			f := postgres.NewFake("one", now)
			f.Leaves = true
			f.Effect = func(_ context.Context, name string, do func() error) error {
				if name == "look" || name == "list" || name == "identify" { // reading is no effect
					return do()
				}
				return effect(strings.TrimPrefix(name, "postgres."), do)
			}
			p := onFake{postgres.New(postgres.Options{Options: hosted.Options{Broker: testkit.Identity, Now: now,
				Accesses: hosted.Accesses{hosted.DefaultTarget: hosted.Access{Host: "fake", Port: 1}}}}), f}
			p.Fake(f)
			return p, p
		},
	}
}

// Whole histories of a platform and a broker, with processes that die between any two changes of the server, and within one.
func TestHistories(t *testing.T) { crashtest.Run(t, histories(), 150) }
