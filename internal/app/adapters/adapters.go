// Package adapters opens the providers: it links the code of all of them, with the drivers of their servers. Only programs
// that call providers, or check plans, import it.
package adapters

import (
	"context"
	"encoding/json"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/provider/remote"
	"github.com/longshore/longshore/internal/provider/valkey"
)

// A row describes a provider.
type row struct {
	// check checks each plan when the catalog is compiled. The check of AWS services reads
	// YAML, so it is not here but where offerings are compiled.
	check check.Func
	// names returns the names that a thing with these tags has where it was made.
	names func(t provider.Tags) []string
	// open makes a provider on shared servers, whose connections Close ends; nil for a provider
	// on no shared server. It calls no server.
	open func(o Options) wired.Provider
}

// rows returns all providers, by their names in offering files. Of is what the names of AWS services derive from: the
// stack, or the identity of an embedded broker.
func rows(of string) map[string]row {
	return map[string]row{
		app.ProviderCloudFormation: {names: plan.ScopeOf(of).Names},
		app.ProviderDemo:           {check: demo.Check, names: demo.Names},
		app.ProviderMariaDB: {mariadb.Check, mariadb.Names, func(o Options) wired.Provider {
			return closing(mariadb.New(o.Options))
		}},
		app.ProviderPostgres: {postgres.Check, postgres.Names, openPostgres},
		app.ProviderValkey: {valkey.Check, valkey.Names, func(o Options) wired.Provider {
			return closing(valkey.New(o.Options))
		}},
	}
}

// Options configure a provider on shared servers.
type Options struct {
	hosted.Options
	// Copies says that the provider may copy databases with the engine's own programs, which
	// are in the folder Programs or on the PATH.
	Copies   bool
	Programs string
}

// Open opens a provider on shared servers.
func Open(name string, o Options) wired.Provider { return rows("")[name].open(o) }

// Inside opens a provider for one call, in the function inside a VPC: the provider's
// connections end with the call.
func Inside(name string, p deployed.Parts) remote.Open {
	if name == app.ProviderDemo {
		return func(json.RawMessage) (wired.Provider, error) { return providers.Demo(p.Getenv, app.Now) }
	}
	return func(reach json.RawMessage) (wired.Provider, error) {
		var accesses hosted.Accesses
		if json.Unmarshal(reach, &accesses) != nil {
			return wired.Provider{}, advice.For("the access to the servers", "cannot be read",
				"deploy all functions of one version")
		}
		return Open(name, Options{Options: hosted.Options{
			Broker: p.Getenv(app.EnvBroker), Accesses: accesses, Now: app.Now, Log: p.Log,
		}}), nil
	}
}

// Checks returns the checks of plans in offering files, by the names of the providers; nil for no check.
func Checks() map[string]check.Func {
	all := map[string]check.Func{}
	for name, r := range rows("") {
		all[name] = r.check
	}
	return all
}

// Names returns functions that give the names that things have where they were made, by provider.
func Names(of string) map[string]func(provider.Tags) []string {
	all := map[string]func(provider.Tags) []string{}
	for name, r := range rows(of) {
		all[name] = r.names
	}
	return all
}

// openPostgres makes the provider. If the programs for copying are not found, the provider
// refuses copies and says so.
func openPostgres(o Options) wired.Provider {
	options := postgres.Options{Options: o.Options}
	if o.Copies {
		options.Programs, _ = pgcopy.Find(context.Background(), o.Programs)
	}
	return closing(postgres.New(options))
}

// closing wires a provider that keeps connections.
func closing(made interface {
	provider.Provider
	Close()
}) wired.Provider {
	w := wired.Of(made)
	w.Close = made.Close
	return w
}
