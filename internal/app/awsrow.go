package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// cloudformationRow is the provider of AWS services. The check of its plans reads YAML,
// so it is added where offerings are compiled.
func cloudformationRow() row {
	return row{
		onRequest: true,
		settings: func(getenv func(string) string) error {
			_, err := awsSettings(getenv)
			return err
		},
		help: EnvAWS + "\n" +
			"      true is --aws: AWS services are offered, in the account and the region that\n" +
			"      the SDK's usual settings lead to (AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL)\n" +
			"  " + EnvAWSTargets + "\n" +
			"      other accounts, regions and networks, and which plans and platforms use them:\n" +
			"      JSON, or the path of a file that holds it\n" +
			"  " + EnvAWSEmulated + "\n" +
			"      true for an emulated AWS that puts no tokens on the events of stacks",
		names:    func(of string, t provider.Tags) []string { return plan.ScopeOf(of).Names(t) },
		deployed: cloudformationDeployed,
		outside: func(_ string, said map[string]string) map[string]string {
			if targets := said[outputs.AWSTargets]; targets != "" {
				return map[string]string{EnvAWSTargets: targets}
			}
			return nil
		},
	}
}

// targetsOf are the targets in the terms of the provider. Rules name plans by name; without
// a catalog, as for a command that only lists, there are no rules.
func targetsOf(t bootstrap.Targets, offered *catalog.Catalog, log *slog.Logger) cloudformation.Targets {
	out := cloudformation.Targets{Named: t.Targets}
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
			log.Warn("a rule of "+EnvAWSTargets+" is of a plan that is not offered", "plan", r.Plan, "target", r.Target)
			continue
		}
		out.Rules = append(out.Rules, plan.TargetRule{Platform: r.Platform, Plan: ids[r.Plan], Target: r.Target})
	}
	return out
}

// awsWired is the provider as programs use it.
func awsWired(o cloudformation.Options) wired.Provider {
	made := cloudformation.New(o)
	w := wired.Of(made)
	w.Targets, w.Wait = made.Targets, waits[ProviderCloudFormation]
	return w
}

// cloudformationDeployed is the provider in a function: its account was prepared with
// the stack.
func cloudformationDeployed(d Deployed) (wired.Provider, error) {
	set, err := d.required(EnvStack, EnvBroker)
	if err != nil {
		return wired.Provider{}, err
	}
	s, err := awsSettings(d.Getenv)
	if err != nil {
		return wired.Provider{}, err
	}
	var offered *catalog.Catalog
	file := func(string) ([]byte, bool) { return nil, false }
	if d.Offered != nil {
		if offered, err = d.Offered(); err != nil {
			return wired.Provider{}, err
		}
		file = offered.File
	}
	o := cloudformation.Options{
		Broker: set[EnvBroker], Scope: ScopeOfStack(set[EnvStack]),
		Targets: targetsOf(s.targets, offered, d.Log), Config: d.Config,
		Emulated: s.emulated, File: file, Now: now, Log: d.Log,
	}
	if d.lists {
		o.Session = account.Listing(o.Scope)
	}
	return awsWired(o), nil
}

// awsLook is how long the embedded broker tries to reach AWS before it starts without
// it.
const awsLook = 20 * time.Second

// cloudformationEmbedded is the provider in the embedded broker, if it is asked for and
// its account is prepared. If the provider was used before and AWS does not answer now, or
// refuses, it is wired all the same: its operations wait, and each step checks the account
// anew.
func cloudformationEmbedded(e embedding) (wired.Provider, error) {
	s, err := awsSettings(e.getenv)
	if err != nil {
		return wired.Provider{}, err
	}
	if !s.on {
		return wired.Provider{}, unavailable{advice.For("--aws", "is not given", "give it, or "+EnvAWS+"=true")}
	}
	ctx, cancel := context.WithTimeout(context.Background(), awsLook)
	defer cancel()
	scope := plan.ScopeOf(e.broker)
	var at bootstrap.Session
	err = whileRefused(ctx, e.wait, func() (err error) {
		if at, err = bootstrap.Load(ctx); err == nil {
			err = prepared(ctx, at, scope, s.targets, e)
		}
		return err
	})
	switch {
	case err == nil:
		e.log.Info("AWS services are made here", "account", at.Account, "region", at.Region, "as", at.Caller,
			"names", string(scope)+"-*")
	case e.used && at.Config.Region != "":
		e.log.Warn("AWS does not answer, or refuses: what is asked of it waits", "error", err)
	default:
		if awsRefuses(err) {
			e.log.Warn("AWS refuses the broker: its services are not offered until the broker is started again", "error", err)
		}
		return wired.Provider{}, unavailable{err}
	}
	return awsWired(cloudformation.Options{
		Broker: e.broker, Scope: scope, Targets: targetsOf(s.targets, e.offered, e.log), Config: at.Config, Emulated: s.emulated,
		File: e.offered.File, Now: e.now, Log: e.log,
	}), nil
}

// awsRefuses reports whether AWS has answered, and not as was asked.
func awsRefuses(err error) bool {
	_, is := errors.AsType[smithy.APIError](err)
	return is
}

// whileRefused looks again where AWS refuses, as long as there is time: a key that is new
// is not known everywhere yet, and what is throttled passes. The error is that of the last
// look.
func whileRefused(ctx context.Context, wait func(context.Context, time.Duration) error, look func() error) error {
	err := look()
	for next := time.Second; awsRefuses(err) && wait(ctx, next) == nil; next *= 2 {
		if seen := look(); seen == nil || ctx.Err() == nil {
			err = seen
		}
	}
	return err
}

// prepared checks that the broker's own account is prepared, and warns of other targets
// that are not.
func prepared(ctx context.Context, own bootstrap.Session, scope plan.Scope, targets bootstrap.Targets, e embedding) error {
	if err := preparedAt(ctx, own, scope, hosted.DefaultTarget, e); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(targets.Targets)) {
		if name == hosted.DefaultTarget {
			continue
		}
		other, err := own.In(ctx, scope, targets.Targets[name])
		if err == nil {
			err = preparedAt(ctx, other, scope, name, e)
		}
		if err != nil {
			e.log.Warn("a target cannot be used: what is asked of it waits", "target", name, "error", err)
		}
	}
	return nil
}

func preparedAt(ctx context.Context, p bootstrap.Session, scope plan.Scope, target string, e embedding) error {
	command := "longshore aws bootstrap --data " + e.folder
	if target != hosted.DefaultTarget {
		command += " --target " + target
	}
	has, found, err := p.Prepared(ctx, scope)
	if err != nil {
		return err
	}
	lacks, err := has.Lacks(scope, e.offered)
	switch {
	case err != nil:
		return err
	case !found:
		return advice.For(fmt.Sprintf("account %s in %s", p.Account, p.Region), "is not prepared for this broker", "run "+command)
	case lacks != nil:
		e.log.Warn("the account is not prepared for all that is offered: run "+command, "target", target,
			"offerings", strings.Join(lacks, ", "))
	}
	return nil
}
