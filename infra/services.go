package main

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// The context values of the provider of AWS services. Its service roles and boundaries are not in a stack
// of the CDK: an instance needs them as long as it exists, and `longshore aws bootstrap` makes them.
const (
	contextTargets  = "cloudformation-targets"
	contextEmulator = "cloudformation-emulator"
)

// The emulators that a stack can be deployed to.
const (
	emulatorMiniStack  = "ministack"  // enforces policies, but does not know all condition keys
	emulatorLocalStack = "localstack" // puts no tokens on events
)

// servicesRow is the row of the provider of AWS services.
var servicesRow = providerRow{
	read: readServices, targets: true,
	environment: func(s Settings, _ bool) map[string]string {
		all := map[string]string{app.EnvAWSTargets: s.Services.Targets}
		if s.Services.Emulator == emulatorLocalStack {
			all[app.EnvAWSEmulated] = "true"
		}
		return all
	},
	things: rightsOf(account.Rights), inventory: rightsOf(account.Inventory),
}

// rightsOf adapts rights of package account.
func rightsOf(all func(plan.Scope, account.Options) []iampolicy.Statement) rights {
	return func(stack awscdk.Stack, s Settings) Grants {
		return statements(stack, all(plan.ScopeOf(s.Stack), s.Services.Options))
	}
}

// Services are the settings of AWS services.
type Services struct {
	// Targets are the accounts and regions, as JSON for the functions; empty if there are none but the
	// stack's own.
	Targets string
	// Emulator is the emulator that the stack is deployed to; empty on AWS.
	Emulator string
	account.Options
}

// readServices reads the settings of AWS services. It copies the content of a local file into the
// settings of the functions.
func readServices(s *Settings, r *reader, state string) {
	targets, emulator := r.text(contextTargets, ""), r.text(contextEmulator, "")
	if state == Off {
		if targets != "" {
			r.refuse(contextTargets, targets, app.ProviderCloudFormation+"="+Offered+" too: the stack has no such provider")
		}
		return
	}
	if emulator != "" && emulator != emulatorMiniStack && emulator != emulatorLocalStack {
		r.refuse(contextEmulator, emulator, emulatorMiniStack+" or "+emulatorLocalStack+", and nothing on AWS")
	}
	s.Services.Emulator, s.Services.Emulated = emulator, emulator != ""
	if targets == "" {
		return
	}
	if !strings.HasPrefix(targets, "{") && !filepath.IsAbs(targets) {
		targets = filepath.Join(repository, targets)
	}
	all, err := bootstrap.ParseTargets("context "+contextTargets, targets)
	if err != nil {
		r.problems = append(r.problems, err)
		return
	}
	its := account.OptionsFor(all)
	s.Services.Access, s.Services.Regions = its.Access, its.Regions
	text, _ := json.Marshal(all) // it was read from JSON
	s.Services.Targets = string(text)
}

// statements returns statements of package account, with the partition, account and region of the stack filled in.
func statements(stack awscdk.Stack, all []iampolicy.Statement) (out Grants) {
	here := plan.Location{Partition: *stack.Partition(), Account: *stack.Account(), Region: *stack.Region()}
	for i, s := range account.Fill(all, here) {
		props := map[string]any{"Sid": s.Sid, "Effect": s.Effect, "Action": []string(s.Action), "Resource": []string(s.Resource)}
		if len(s.Condition) > 0 {
			props["Condition"] = s.Condition
		}
		g := Grant{PolicyStatement: awsiam.PolicyStatement_FromJson(props)}
		for _, r := range all[i].Resource {
			if strings.Contains(r, "*") {
				g.reason, g.stars = starred, append(g.stars, "Resource::"+strings.NewReplacer("${", "<", "}", ">").Replace(r))
			}
		}
		out = append(out, g)
	}
	return out
}

// starred says why names have stars.
const starred = "Stacks, users, roles and buckets of instances are made while the broker runs. Their names begin with a prefix " +
	"that no other broker has, and the rights end with it. Actions that list the account know no resource."
