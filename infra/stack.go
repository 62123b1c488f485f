package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/outputs"
)

// envAccount is the environment variable with the account of the stack, which is written into
// records; Lambda itself does not provide the account.
const envAccount = "AWS_ACCOUNT_ID"

// NewStack makes the stack from its parts, and passes to each part what it needs of the others.
func NewStack(scope constructs.Construct, s Settings) awscdk.Stack {
	props := &awscdk.StackProps{
		Description: new("Longshore, a service broker"),
		Tags:        &map[string]*string{"longshore:stack": &s.Stack},
	}
	if s.CLICredentials {
		props.Synthesizer = awscdk.NewCliCredentialsStackSynthesizer(nil)
	}
	stack := awscdk.NewStack(scope, &s.Stack, props)

	state := NewState(stack, s)
	secrets := NewSecrets(stack, s, state.Key)
	dead := NewDeadLetters(stack)
	made := newFunctions(stack, s, state, secrets, dead)
	dead.OfFunction(made.reaper)
	dead.OfExecutions(made.workflow.StateMachine)
	schedule(stack, made.reaper, dead.Queue)
	api := NewAPI(stack, s, made.api)
	alarms := NewAlarms(stack, s, api.REST, made.reaper, NewTopic(stack, s, state.Key))
	if s.Dashboard {
		NewDashboard(stack, s.Stack, alarms, dead.Queue, made.api, made.provisioner, made.reaper)
	}
	say(stack, s, state, secrets, api, made, dead)
	return stack
}

// deployed are the three functions, and the parts that drive operations between them.
type deployed struct {
	api, provisioner, reaper awslambda.Function
	workflow                 *Workflow
	calls                    Calls
}

// newFunctions makes the functions, each with its rights.
func newFunctions(stack awscdk.Stack, s Settings, state *State, secrets *Secrets, dead *DeadLetters) deployed {
	things := s.rights(stack, func(row providerRow) rights { return row.things })
	inventory := s.rights(stack, func(row providerRow) rights { return row.inventory })
	d := deployed{calls: NewCalls(stack, s)}
	d.provisioner = NewFunction(stack, s, &FunctionProps{
		Name: FunctionProvisioner, Description: "One step of one operation", Timeout: app.ProvisionerTimeout, MemoryMB: 256,
		// An inquiry has no waiting caller: the next page makes it again.
		NoRetry: true,
		Environment: s.environment(map[string]*string{
			app.EnvTable: state.Table.TableName(), app.EnvKey: state.Key.KeyArn(), app.EnvCalls: d.calls.ARN,
			app.EnvInVPC: d.calls.Providers,
		}),
		Grants: slices.Concat(state.Records(), state.Lists(), state.Removal(), state.Sealing(), things, d.calls.Calling()),
	})
	d.workflow = NewWorkflow(stack, d.provisioner, s.Tracing)
	d.api = NewFunction(stack, s, &FunctionProps{
		Name: FunctionAPI, Description: "The broker's HTTP API", Timeout: app.APITimeout, MemoryMB: 512,
		Environment: map[string]*string{
			app.EnvTable: state.Table.TableName(), app.EnvKey: state.Key.KeyArn(), app.EnvSecret: secrets.ARN,
			app.EnvStateMachine: d.workflow.StateMachine.StateMachineArn(), app.EnvProvisioner: d.provisioner.FunctionArn(),
			app.EnvMinRetryAfter: text(s.MinRetryAfter), app.EnvMaxRetryAfter: text(s.MaxRetryAfter),
			app.EnvPlatformRate: new(strconv.Itoa(s.PlatformRate)),
		},
		// An order that takes over what was kept, or that repeats a failed creation, removes records.
		Grants: slices.Concat(state.Records(), state.Lists(), state.Due(), state.Removal(), state.Sealing(), secrets.Reading(),
			d.workflow.Starting(), d.workflow.Finishing()),
	})
	d.reaper = NewFunction(stack, s, &FunctionProps{
		Name: FunctionReaper, Description: "The scheduled sweep", Timeout: app.ReaperTimeout, MemoryMB: 256,
		// The next sweep, a minute later, repairs what this one left.
		NoRetry: true,
		Environment: s.environment(map[string]*string{
			app.EnvTable: state.Table.TableName(), app.EnvStateMachine: d.workflow.StateMachine.StateMachineArn(),
			app.EnvReaperDryRun: text(s.ReaperDryRun), app.EnvCalls: d.calls.ARN, app.EnvInVPC: d.calls.Providers,
		}),
		Grants: slices.Concat(state.Records(), state.Due(), state.Reapers(), state.Removal(), d.workflow.Starting(),
			inventory, d.calls.Calling(), dead.Sending()),
	})
	return d
}

// say writes the outputs of the stack.
func say(stack awscdk.Stack, s Settings, state *State, secrets *Secrets, api *API, made deployed, dead *DeadLetters) {
	output := func(name, description string, value *string) {
		awscdk.NewCfnOutput(stack, &name, &awscdk.CfnOutputProps{Description: &description, Value: value})
	}
	output(outputs.API, "Id of the REST API", api.REST.RestApiId())
	output(outputs.URL, "The broker's URL, to register with the platform", api.URL)
	output(outputs.Secret, "The secret with the platform's user name and password", secrets.ARN)
	output(outputs.Table, "The table with the broker's records", state.Table.TableName())
	output(outputs.Broker, "The broker's identity, which labels everything that it makes", identity(stack, s.Broker))
	output(outputs.Key, "The key that seals and encrypts the records", state.Key.KeyArn())
	output(outputs.StateMachine, "The state machine that drives operations", made.workflow.StateMachine.StateMachineArn())
	output(outputs.DeadLetters, "The queue with failed calls and executions", dead.Queue.QueueUrl())
	output(outputs.Register, "The command that registers the broker with Cloud Foundry", secrets.Register(api.URL))
	if made.calls.ARN != nil {
		output(outputs.Calls, "The function that calls providers inside the VPC", made.calls.ARN)
		output(outputs.InVPC, "The providers that this function calls", made.calls.Providers)
	}
	for _, name := range s.providers() {
		if secrets := s.Servers[name].Secrets; secrets != nil {
			output(outputs.Secrets(name), "The secrets with the addresses and logins of the "+name+" servers",
				new(secrets.String()))
		}
	}
	if slices.Contains(s.providers(), app.ProviderCloudFormation) {
		targets := cmp.Or(s.Services.Targets, "{}") // the output tells the operators' commands that there may be such instances
		output(outputs.AWSTargets, "The accounts and regions for AWS services, beside the stack's own", &targets)
	}
	if api.DomainTarget != nil {
		output(outputs.DomainTarget, "The name that the DNS record of the broker's domain must point at", api.DomainTarget)
	}
}

// identity returns the identity of the broker: the given one, or the random part of the stack's id,
// which no other stack has. The functions know it without reading anything, the outputs of the
// stack show it, and it survives if the table is emptied.
func identity(stack awscdk.Stack, given string) *string {
	if given != "" {
		return &given
	}
	return awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(new("/"), stack.StackId(), nil))
}

// text returns a pointer to the text; nil if it is empty.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
