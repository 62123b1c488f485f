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

// fakeAccess is how the provider reaches a server in memory.
var fakeAccess = hosted.Access{Host: "fake", Port: 1}

// overFake is a harness over a server in memory, every call to which can go wrong.
func overFake(t *testing.T) *providertest.Harness {
	t.Helper()
	clock, calls := newClock(), &providertest.Calls{}
	open := func(f *postgres.Fake) func(string) *postgres.Provider {
		return func(broker string) *postgres.Provider {
			p := postgres.New(postgres.Options{Options: hosted.Options{Broker: broker, Accesses: hosted.Accesses{hosted.DefaultTarget: fakeAccess}, Now: clock.Now}})
			p.Page = suitePage
			p.Fake(f)
			p.Mutate(os.Getenv(providertest.MutantVariable))
			return p
		}
	}
	f := postgres.NewFake("one", clock.Now)
	f.Leaves = true
	f.Effect = func(ctx context.Context, _ string, do func() error) error { return calls.Call(ctx, do) }
	h := harnessOf(open(f)("broker-1"), "broker-1", clock, calls, open(f), open(postgres.NewFake("other", clock.Now)))
	h.Plant = func(_ testing.TB, at, owner provider.Tags) { f.Plant(roleAt(at), labelBy(owner, clock.Now())) }
	h.Look = func(_ testing.TB, at provider.Tags) string { return f.Tell(roleAt(at), databaseAt(at)) }
	h.Opens = func(_ testing.TB, g *provider.Grant) bool { return opensFake(f, g) }
	h.Secrets = func(_ testing.TB, at provider.Tags) int { return f.Secrets(roleAt(at)) }
	return h
}

func opensFake(f *postgres.Fake, g *provider.Grant) bool {
	of := func(name string) string {
		text, _ := g.Credentials[name].(string)
		return text
	}
	return f.Opens(of("username"), of("password"), of("name"))
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

// histories are a subject over servers in memory.
func histories() crashtest.Subject {
	type onFake struct {
		*postgres.Provider
		fake *postgres.Fake
	}
	return crashtest.Subject{
		Name: "postgres", Settings: map[string]any{"connection_limit": 5}, Others: map[string]any{"connection_limit": 9},
		Sparse: 29,
		Opens: func(p provider.Provider, g *provider.Grant) (bool, error) {
			return opensFake(p.(onFake).fake, g), nil
		},
		New: func(now func() time.Time, effect crashtest.Effect) (provider.Provider, provider.Inventory) {
			f := postgres.NewFake("one", now)
			f.Leaves = true
			f.Effect = func(_ context.Context, name string, do func() error) error {
				if name == "look" || name == "list" || name == "identify" { // reading is no effect
					return do()
				}
				return effect(strings.TrimPrefix(name, "postgres."), do)
			}
			p := onFake{postgres.New(optionsOf(testkit.Identity, fakeAccess, now)), f}
			p.Fake(f)
			return p, p
		},
	}
}

// Whole histories of a platform and a broker, with processes that die between any two changes of the server, and within one.
func TestHistories(t *testing.T) {
	t.Parallel()
	crashtest.Run(t, histories(), 150)
}
