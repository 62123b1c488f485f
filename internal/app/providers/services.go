package providers

import (
	"errors"
	"log/slog"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/deployed"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// ServicesSettings are the settings of the provider of AWS services. The SDK's own settings,
// such as AWS_PROFILE and AWS_REGION, determine the account and identity.
type ServicesSettings struct {
	On       bool // the embedded broker offers AWS services
	Emulated bool
	Targets  plan.Targets
}

// ReadServices reads and checks the settings.
func ReadServices(getenv func(string) string) (ServicesSettings, error) {
	on, err1 := app.Flag(getenv, app.EnvAWS)
	emulated, err2 := app.Flag(getenv, app.EnvAWSEmulated)
	targets, err3 := bootstrap.ParseTargets(app.EnvAWSTargets, getenv(app.EnvAWSTargets))
	return ServicesSettings{on, emulated, targets}, errors.Join(err1, err2, err3)
}

// TargetsOf returns the targets in the provider's terms. Rules name plans by name; without a
// catalog, as in a command that only lists, there are no rules.
func TargetsOf(t plan.Targets, offered *catalog.Catalog, log *slog.Logger) plan.Targets {
	out := plan.Targets{Targets: t.Targets}
	if offered == nil {
		return out
	}
	ids := map[string]string{}
	for _, o := range offered.Offerings() {
		for _, p := range o.Plans {
			ids[o.Name+"/"+p.Name] = p.ID
		}
	}
	for _, r := range t.Rules {
		if r.Plan != "" && ids[r.Plan] == "" {
			log.Warn("a rule of "+app.EnvAWSTargets+" is of a plan that is not offered", "plan", r.Plan, "target", r.Target)
			continue
		}
		out.Rules = append(out.Rules, plan.TargetRule{Platform: r.Platform, Plan: ids[r.Plan], Target: r.Target})
	}
	return out
}

// Wired wires the provider of AWS services by its settings. Without what is offered, as in a command that only lists, it has
// no files, and no rules.
func (s ServicesSettings) Wired(o cloudformation.Options, offered *catalog.Catalog) wired.Provider {
	o.Emulated, o.Targets = s.Emulated, TargetsOf(s.Targets, offered, o.Log)
	o.File = func(string) ([]byte, bool) { return nil, false }
	if offered != nil {
		o.File = offered.File
	}
	made := cloudformation.New(o)
	w := wired.Of(made)
	w.Targets = made.Targets
	return w
}

// cloudformationDeployed builds the provider in a function, whose account the stack has prepared.
func cloudformationDeployed(p deployed.Parts) (wired.Provider, error) {
	if err := p.Required(app.EnvStack, app.EnvBroker); err != nil {
		return wired.Provider{}, err
	}
	s, err := ReadServices(p.Getenv)
	if err != nil {
		return wired.Provider{}, err
	}
	var offered *catalog.Catalog
	if p.Offered != nil {
		if offered, err = p.Offered(); err != nil {
			return wired.Provider{}, err
		}
	}
	o := cloudformation.Options{
		Broker: p.Getenv(app.EnvBroker), Scope: plan.ScopeOf(p.Getenv(app.EnvStack)), Config: p.Config, Now: app.Now, Log: p.Log,
	}
	if p.Lists {
		o.Session = account.Listing(o.Scope)
	}
	return s.Wired(o, offered), nil
}
