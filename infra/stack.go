package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/infra/outputs"
	"github.com/longshore/longshore/internal/app"
)

// envAccount stamps records with the account that they were made in; Lambda
// itself does not say.
const envAccount = "AWS_ACCOUNT_ID"

// NewStack puts the concerns together: what one is given of another stands
// here, and nothing else does.
func NewStack(scope constructs.Construct, s Settings) awscdk.Stack {
	props := &awscdk.StackProps{
		Description: jsii.String("Longshore, a service broker"),
		Tags:        &map[string]*string{"longshore:stack": &s.Stack},
	}
	if s.CLICredentials {
		props.Synthesizer = awscdk.NewCliCredentialsStackSynthesizer(nil)
	}
	stack := awscdk.NewStack(scope, &s.Stack, props)

	var state *State
	if s.Table == "" {
		state = NewState(stack, "State")
	} else {
		state = FoundState(stack, "State", s.Table, s.Key)
	}
	var secrets *Secrets
	if s.Secret == "" {
		secrets = NewSecrets(stack, "Secrets", &SecretsProps{Key: state.Key})
	} else {
		secrets = FoundSecrets(stack, s.Secret)
	}
	factory := &Factory{Settings: s, Account: stack.Account(), Broker: identity(stack, s.Broker)}
	demo := NewDemo(stack, s.Stack)
	dead := NewDeadLetters(stack, "DeadLetters")

	provisioner := factory.New(stack, &FunctionProps{
		Name: FunctionProvisioner, Description: "One step of one operation", Timeout: app.ProvisionerTimeout, MemoryMB: 256,
		Environment: map[string]*string{
			app.EnvTable: state.Table.TableName(), app.EnvKey: state.Key.KeyArn(),
			app.EnvDemoPrefix: &demo.Prefix, app.EnvDemoDelay: text(s.DemoDelay),
		},
		Grants:     grants(state.Records(), state.Bindings(), state.Removal(), state.Sealing(), demo.Things()),
		Exceptions: demo.Exceptions(),
	})
	workflow := NewWorkflow(stack, "Workflow", &WorkflowProps{Provisioner: provisioner, Tracing: s.Tracing})
	front := factory.New(stack, &FunctionProps{
		Name: FunctionAPI, Description: "The broker's HTTP API", Timeout: app.APITimeout, MemoryMB: 512,
		Environment: map[string]*string{
			app.EnvTable: state.Table.TableName(), app.EnvKey: state.Key.KeyArn(), app.EnvSecret: secrets.ARN,
			app.EnvStateMachine: workflow.StateMachine.StateMachineArn(), app.EnvProvisioner: provisioner.FunctionArn(),
			app.EnvMinRetryAfter: text(s.MinRetryAfter), app.EnvMaxRetryAfter: text(s.MaxRetryAfter),
		},
		Grants: grants(state.Records(), state.Sealing(), secrets.Reading(), workflow.Starting(), workflow.Finishing()),
	})
	reaper := factory.New(stack, &FunctionProps{
		Name: FunctionReaper, Description: "The scheduled sweep", Timeout: app.ReaperTimeout, MemoryMB: 256,
		// The next minute's sweep finds what this one left.
		NoRetry: true,
		Environment: map[string]*string{
			app.EnvTable: state.Table.TableName(), app.EnvStateMachine: workflow.StateMachine.StateMachineArn(),
			app.EnvDemoPrefix: &demo.Prefix, app.EnvReaperDryRun: text(s.ReaperDryRun),
		},
		Grants: grants(state.Records(), state.Due(), state.Removal(), workflow.Starting(), demo.Inventory(), dead.Sending()),
	})
	dead.OfFunction(reaper)
	dead.OfExecutions(workflow.StateMachine)
	NewSchedule(stack, "Schedule", &ScheduleProps{Reaper: reaper, DeadLetters: dead.Queue})
	api := NewAPI(stack, "API", &APIProps{Name: s.Stack, Function: front, Rate: s.ThrottleRate, Burst: s.ThrottleBurst, BasePath: s.BasePath, Tracing: s.Tracing})

	NewAlarms(stack, "Alarms", &AlarmsProps{
		Stack: s.Stack, REST: api.REST, Table: state.Table, DeadLetters: dead.Queue, Topic: s.AlarmTopic,
		Functions: map[string]awslambda.Function{FunctionAPI: front, FunctionProvisioner: provisioner, FunctionReaper: reaper},
	})

	output := func(name, description string, value *string) {
		awscdk.NewCfnOutput(stack, &name, &awscdk.CfnOutputProps{Description: &description, Value: value})
	}
	output(outputs.API, "Id of the REST API", api.REST.RestApiId())
	output(outputs.URL, "What the platform is given as the broker's URL", api.URL)
	output(outputs.Secret, "What holds the platform's user name and password, in Secrets Manager", secrets.ARN)
	output(outputs.Table, "What holds the broker's records", state.Table.TableName())
	output(outputs.Broker, "The broker's own identity, which all that it makes carries", factory.Broker)
	output(outputs.Key, "What the records are sealed and encrypted with", state.Key.KeyArn())
	output(outputs.StateMachine, "What drives operations", workflow.StateMachine.StateMachineArn())
	output(outputs.DeadLetters, "What tells of calls and executions that came to no end", dead.Queue.QueueUrl())
	output(outputs.Register, "Registers the broker with Cloud Foundry", secrets.Register(api.URL))
	return stack
}

// identity is the broker's own: the one that is given, or the random part of the
// stack's id, which no other stack has had or will have. It is known to the
// functions without reading anything, stands in the stack's outputs, and outlives
// an emptied table.
func identity(stack awscdk.Stack, given string) *string {
	if given != "" {
		return &given
	}
	return awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), stack.StackId(), nil))
}

// text is nil for what is not set.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
