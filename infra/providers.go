package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/sorted"
)

// A providerRow describes a provider's needs on AWS. The rows of the same name below internal/app
// describe the provider for the programs.
type providerRow struct {
	// environment returns the variables that the provider's functions need, or the one that calls the provider
	// inside a VPC; nil for none. Empty ones are left out.
	environment func(s Settings, inside bool) map[string]string
	// things are the rights to make and remove the provider's things, and inventory the rights
	// to list them; nil for none.
	things, inventory rights
	// read reads further settings of the provider; nil if there are none.
	read func(s *Settings, r *reader, state string)
	// targets says that the provider uses servers or accounts, which may fail.
	targets bool
	// vpc says that the provider is always called inside a VPC; with vpcContext, it is called there
	// only if that context value is true.
	vpc        bool
	vpcContext string
}

// rights returns grants for a role.
type rights func(stack awscdk.Stack, s Settings) Grants

// providerRows are the rows of all providers, by name.
var providerRows = withHosted(map[string]providerRow{
	app.ProviderDemo: {
		environment: func(s Settings, _ bool) map[string]string { return map[string]string{app.EnvDemoDelay: s.DemoDelay} },
		vpcContext:  "demo-vpc", // for trying out calls inside a VPC
	},
	app.ProviderCloudFormation: servicesRow,
})

// The values of `-c NAME=`, which say whether a stack has a provider. Withdrawn is for a provider
// whose last instances are still to be deleted: none of its plans is offered.
const (
	Offered   = "true"
	Withdrawn = "withdrawn"
	Off       = "false"
)

// readProviders reads which providers the stack has, and their settings.
func (s *Settings) readProviders(r *reader) {
	for name, row := range sorted.Map(providerRows) {
		state := r.text(name, Off)
		if state != Offered && state != Withdrawn && state != Off {
			r.refuse(name, state, Offered+", "+Off+", or "+Withdrawn+" to offer it no more and be able to delete what exists")
		}
		s.Providers[name] = state
		if row.read != nil {
			row.read(s, r, state)
		}
		if row.vpc && state != Off || r.given[row.vpcContext] == true {
			s.InVPC = append(s.InVPC, name)
		}
		if s.Providers[name] == Off && slices.Contains(s.InVPC, name) {
			r.wrong("context %s: give %s=%s too: the stack has no such provider",
				row.vpcContext, name, Offered)
		}
	}
}

// providers returns the names of the providers in the stack, sorted.
func (s Settings) providers() []string {
	var names []string
	for name, state := range sorted.Map(s.Providers) {
		if state != Off {
			names = append(names, name)
		}
	}
	return names
}

// off returns the providers that are not offered, each with what to do to offer it.
func (s Settings) off() map[string]string {
	all := map[string]string{}
	for name, state := range s.Providers {
		if state != Offered {
			all[name] = fmt.Sprintf("deploy with -c %s=%s, or name another provider", name, Offered)
		}
	}
	return all
}

// environment adds the variables of the functions that call providers.
func (s Settings) environment(of map[string]*string) map[string]*string {
	names := s.providers()
	of[app.EnvProviders] = text(strings.Join(names, ","))
	return s.variables(names, false, of)
}

// variables adds the variables of some providers.
func (s Settings) variables(names []string, inside bool, to map[string]*string) map[string]*string {
	for _, name := range names {
		if its := providerRows[name].environment; its != nil {
			for variable, value := range its(s, inside) {
				to[variable] = text(value)
			}
		}
	}
	return to
}

// rights collects the rights of all providers in the stack: to make and remove things, or to list them.
func (s Settings) rights(stack awscdk.Stack, of func(providerRow) rights) (all Grants) {
	for _, name := range s.providers() {
		if its := of(providerRows[name]); its != nil {
			all = append(all, its(stack, s)...)
		}
	}
	return all
}
