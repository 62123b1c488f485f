package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/sorted"
)

// A providerRow is the part of a provider on AWS. The rows of the same name below internal/app
// have the part of the programs.
type providerRow struct {
	// contexts are its settings that are chosen at deploy: the names of variables, by the
	// names of context values.
	contexts map[string]string
	// environment are others that its functions need; nil for none.
	environment func(s Settings) map[string]string
	// things are the rights to make and remove what it makes, and inventory those to list
	// it; nil for none.
	things, inventory rights
	// read reads further settings of the provider; nil for none.
	read func(s *Settings, r *reader, state string)
	// targets says that it uses servers or accounts, which may fail.
	targets bool
	// vpc has the provider always called inside a VPC; vpcContext only where that context value
	// is true.
	vpc        bool
	vpcContext string
}

// rights are grants, with the exceptions of the role that has them.
type rights func(stack awscdk.Stack, s Settings) (Grants, []exception)

// providerRows are all providers.
var providerRows = withHosted(map[string]providerRow{
	app.ProviderDemo: {
		contexts:   map[string]string{"demo-delay": app.EnvDemoDelay},
		vpcContext: "demo-vpc", // so that the way can be tried
	},
	app.ProviderCloudFormation: servicesRow,
})

// Whether a stack has a provider, as `-c NAME=` says. Withdrawn is for one whose
// last instances are still to be deleted: none of its plans is offered.
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
		for context, variable := range sorted.Map(row.contexts) {
			if value := r.text(context, ""); value != "" {
				s.ProviderSettings[variable] = value
				r.check(context, map[string]string{variable: value})
			}
		}
		if row.read != nil {
			row.read(s, r, state)
		}
		if row.vpc && state != Off || row.vpcContext != "" && r.flag(row.vpcContext, false) {
			s.InVPC = append(s.InVPC, name)
		}
		if s.Providers[name] == Off && slices.Contains(s.InVPC, name) {
			r.wrong("context %s: give %s=%s too: the stack has no such provider",
				row.vpcContext, name, Offered)
		}
	}
}

// providers are the names of the providers in the stack, in order.
func (s Settings) providers() []string {
	var names []string
	for name, state := range sorted.Map(s.Providers) {
		if state != Off {
			names = append(names, name)
		}
	}
	return names
}

// off are the providers that are not offered, and how to have them offered.
func (s Settings) off() map[string]string {
	all := map[string]string{}
	for name, state := range s.Providers {
		if state != Offered {
			all[name] = fmt.Sprintf("deploy with -c %s=%s, or name another provider", name, Offered)
		}
	}
	return all
}

// environment adds the settings of the functions that call providers.
func (s Settings) environment(of map[string]*string) map[string]*string {
	if names := s.providers(); len(names) > 0 {
		of[app.EnvProviders] = new(strings.Join(names, ","))
	}
	for _, name := range s.providers() {
		if its := providerRows[name].environment; its != nil {
			for variable, value := range its(s) {
				of[variable] = &value
			}
		}
	}
	return s.chosen(s.providers(), of)
}

// chosen adds the settings that were chosen for some of the providers.
func (s Settings) chosen(names []string, to map[string]*string) map[string]*string {
	for _, name := range names {
		for _, variable := range providerRows[name].contexts {
			to[variable] = text(s.ProviderSettings[variable])
		}
	}
	return to
}

// rights are the rights of all providers of the stack: to make and remove things, or to list
// them.
func (s Settings) rights(stack awscdk.Stack, of func(providerRow) rights) (all Grants, exceptions []exception) {
	for _, name := range s.providers() {
		if its := of(providerRows[name]); its != nil {
			statements, more := its(stack, s)
			all, exceptions = append(all, statements...), append(exceptions, more...)
		}
	}
	return all, exceptions
}
