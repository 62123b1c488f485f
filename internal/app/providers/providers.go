// Package providers holds what programs know about each provider without the code that calls
// its servers: how a stack wires it, where its servers are, and its settings on AWS. The
// drivers of servers are in package adapters, which the reaper does not link.
package providers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/remote"
)

// A row describes a provider of a stack. The rows of the same name in the packages adapters and
// embedded, and in infra, hold the rest.
type row struct {
	// deployed builds the provider in a function outside of a VPC.
	deployed func(p deployed.Parts) (wired.Provider, error)
	// output is the stack's output that tells an operator's command the setting env of those
	// functions; both are empty for a provider that holds no things.
	output, env string
	// inVPC says that the provider may be called inside a VPC.
	inVPC bool
}

// rows returns all providers, by their names in offering files.
func rows() map[string]row {
	all := map[string]row{
		app.ProviderDemo: {
			deployed: demoDeployed,
			inVPC:    true, // for tests of such calls
		},
		app.ProviderCloudFormation: {
			deployed: cloudformationDeployed, output: outputs.AWSTargets, env: app.EnvAWSTargets,
		},
	}
	for name, s := range Servers() {
		all[name] = row{deployed: s.deployed, output: outputs.Secrets(name), env: s.EnvSecrets(), inVPC: true}
	}
	return all
}

// Demo wires the demo provider.
func Demo(getenv func(string) string, now func() time.Time) (wired.Provider, error) {
	delay, err := app.DemoDelay(getenv)
	return wired.Of(demo.New(delay, now)), err
}

// demoDeployed builds the provider in a function, and has it called inside a VPC if the stack says so.
func demoDeployed(p deployed.Parts) (wired.Provider, error) {
	w, err := Demo(p.Getenv, app.Now)
	if err != nil || !inside(p, app.ProviderDemo) {
		return w, err
	}
	return called(p, remote.Options{Provider: app.ProviderDemo, Outside: w})
}

// inside reports whether the stack has the provider called inside a VPC.
func inside(p deployed.Parts, name string) bool {
	return slices.Contains(strings.Split(p.Getenv(app.EnvInVPC), ","), name)
}

// called returns a provider that is called through the function inside the VPC.
func called(p deployed.Parts, o remote.Options) (wired.Provider, error) {
	o.Function = p.Getenv(app.EnvCalls)
	return remote.New(p.Invoker, o), p.Required(app.EnvCalls)
}

// Names returns the names of all providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(rows())) }

// Wired builds the stack's providers.
func Wired(p deployed.Parts) (map[string]wired.Provider, error) {
	if _, err := InVPC(p.Getenv); err != nil {
		return nil, err
	}
	providers, all := map[string]wired.Provider{}, rows()
	for name := range strings.SplitSeq(p.Getenv(app.EnvProviders), ",") {
		r, known := all[name]
		if name == "" {
			continue
		}
		if !known {
			return nil, advice.For(app.EnvProviders, fmt.Sprintf("names an unknown provider %q", name),
				"deploy all functions of one version")
		}
		w, err := r.deployed(p)
		if err != nil {
			return nil, err
		}
		providers[name] = w
	}
	return providers, wired.Check(providers, app.ProvisionerTimeout)
}

// InVPC returns the names of the providers that are called inside a VPC.
func InVPC(getenv func(string) string) ([]string, error) {
	text := getenv(app.EnvInVPC)
	if text == "" {
		return nil, nil
	}
	names, all := strings.Split(text, ","), rows()
	for _, name := range names {
		if !all[name].inVPC {
			return nil, advice.For(app.EnvInVPC, fmt.Sprintf("names %q, which no function inside a VPC can call", name),
				"deploy all functions of one version")
		}
	}
	return names, nil
}

// CheckSettings checks the settings that the functions pass to providers.
func CheckSettings(getenv func(string) string) error {
	_, demoErr := app.DemoDelay(getenv)
	_, servicesErr := ReadServices(getenv)
	problems := []error{servicesErr, demoErr}
	for _, s := range sorted.Map(Servers()) {
		_, err := s.Secrets(getenv)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// FromOutputs returns, for an operator's command, the environment of a stack's functions, as far as
// the command needs it and the stack's outputs tell it.
func FromOutputs(stack string, said map[string]string) map[string]string {
	set := map[string]string{
		app.EnvStack: stack, app.EnvBroker: said[outputs.Broker], app.EnvCalls: said[outputs.Calls],
		app.EnvInVPC: said[outputs.InVPC], app.EnvTable: said[outputs.Table], app.EnvKey: said[outputs.Key],
		app.EnvStateMachine: said[outputs.StateMachine],
	}
	var has []string
	for name, r := range sorted.Map(rows()) {
		if said[r.output] != "" {
			has = append(has, name)
			set[r.env] = said[r.output]
		}
	}
	set[app.EnvProviders] = strings.Join(has, ",")
	return set
}
