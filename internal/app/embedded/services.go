package embedded

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/base/shell"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/provider/cloudformation"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// servicesSettings explains the settings of the provider of AWS services.
const servicesSettings = app.EnvAWS + "\n" +
	"      true is --aws: AWS services are offered, in the account and the region that\n" +
	"      the SDK's usual settings lead to (AWS_PROFILE, AWS_REGION, AWS_ENDPOINT_URL)\n" +
	"  " + app.EnvAWSTargets + "\n" +
	"      other accounts, regions and networks, and which plans and platforms use them:\n" +
	"      JSON, or the path of a file that holds it\n" +
	"  " + app.EnvAWSEmulated + "\n" +
	"      true for an emulated AWS that puts no tokens on the events of stacks"

// awsLook is how long the embedded broker tries to reach AWS before it starts without it.
const awsLook = 20 * time.Second

// cloudformationEmbedded builds the provider if the settings ask for it and the account is
// prepared. If the provider was used before, it is built even while AWS does not answer or
// refuses the broker: its operations wait, and each step checks the account again.
func cloudformationEmbedded(e embedding) (wired.Provider, error) {
	s, err := providers.ReadServices(e.getenv)
	if err != nil {
		return wired.Provider{}, err
	}
	if !s.On {
		return wired.Absent(advice.For("--aws", "is not given", "give it, or "+app.EnvAWS+"=true")), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), awsLook)
	defer cancel()
	scope := plan.ScopeOf(e.broker)
	var at bootstrap.Session
	err = whileRefused(ctx, e.wait, func() (err error) {
		if at, err = bootstrap.Load(ctx); err == nil {
			err = prepared(ctx, at, scope, s.Targets, e)
		}
		return err
	})
	switch {
	case err == nil:
		e.log.Info("AWS services are made in this account", "account", at.Account, "region", at.Region, "as", at.Caller,
			"names", string(scope)+"-*")
	case e.used && at.Config.Region != "":
		e.log.Warn("AWS does not answer, or refuses the broker: operations on it wait", "error", err)
	default:
		if awsRefuses(err) {
			e.log.Warn("AWS refuses the broker: its services are not offered until the broker is started again", "error", err)
		}
		return wired.Absent(err), nil
	}
	return s.Wired(cloudformation.Options{
		Broker: e.broker, Scope: scope, Config: at.Config, Now: e.now, Log: e.log,
	}, e.offered), nil
}

// awsRefuses reports whether AWS has answered with an error.
func awsRefuses(err error) bool {
	_, is := errors.AsType[smithy.APIError](err)
	return is
}

// whileRefused repeats a look that AWS refuses, as long as there is time: a new key is not
// known everywhere at once, and throttling passes. It returns the error of the last look.
func whileRefused(ctx context.Context, wait func(context.Context, time.Duration) error, look func() error) error {
	err := look()
	for next := time.Second; awsRefuses(err) && wait(ctx, next) == nil; next *= 2 {
		if seen := look(); seen == nil || ctx.Err() == nil {
			err = seen
		}
	}
	return err
}

// prepared checks that the broker's own account is prepared, and warns of other targets that are not prepared.
func prepared(ctx context.Context, own bootstrap.Session, scope plan.Scope, targets plan.Targets, e embedding) error {
	if err := preparedAt(ctx, own, scope, hosted.DefaultTarget, "", e); err != nil {
		return err
	}
	for name, t := range sorted.Map(targets.Targets) {
		if name == hosted.DefaultTarget {
			continue
		}
		// Without a role, the target is another region of the broker's own account, which the command takes for no target.
		access := ""
		if t.Role != "" {
			access = " --target " + shell.Word(name) + " --trust " + own.Account
		}
		other, err := own.In(ctx, scope, t)
		if err == nil {
			err = preparedAt(ctx, other, scope, name, access, e)
		}
		if err != nil {
			e.log.Warn("a target cannot be used: its operations wait", "target", name, "error", err)
		}
	}
	return nil
}

// preparedAt names the command that prepares a location. Access is what the command is told of another account.
func preparedAt(ctx context.Context, p bootstrap.Session, scope plan.Scope, target, access string, e embedding) error {
	command := "AWS_REGION=" + p.Region + " longshore aws bootstrap --data " + shell.Word(e.folder)
	if e.offerings != "" {
		command += " --offerings " + shell.Word(e.offerings)
	}
	command += access
	lacks, prepared, err := p.Lacks(ctx, scope, e.offered)
	switch {
	case err != nil:
		return err
	case !prepared:
		return advice.For(fmt.Sprintf("account %s in %s", p.Account, p.Region), "is not prepared for this broker", "run "+command)
	case lacks != nil:
		e.log.Warn("the account is not prepared for every offering: run "+command, "target", target,
			"offerings", strings.Join(lacks, ", "))
	}
	return nil
}

// Scope returns the prefix of the names of all AWS services that the broker over a data folder
// makes. It sets the folder up if there is none; a broker may be running on the folder.
func Scope(dir string) (plan.Scope, error) {
	broker, err := folder.Broker(dir, inputs)
	if err != nil {
		return "", err
	}
	return plan.ScopeOf(broker), nil
}
