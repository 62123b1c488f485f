package main

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

const (
	// executionLimit bounds the polling of an operation in one execution. The reaper starts a
	// longer operation again, in another execution.
	executionLimit = 7 * 24 * time.Hour
	// stepLimit is longer than the provisioner may run, so that the provisioner ends by itself.
	stepLimit = app.ProvisionerTimeout + 30*time.Second
)

// Workflow drives operations. Executions are not logged: the provisioner logs what it does, and
// executions contain only ids.
type Workflow struct {
	StateMachine awsstepfunctions.StateMachine
	provisioner  awslambda.Function
}

// NewWorkflow makes the state machine and its role, which may call the provisioner.
func NewWorkflow(scope constructs.Construct, provisioner awslambda.Function, tracing Tracing) *Workflow {
	scope = subscope(scope, "Workflow")
	w := &Workflow{provisioner: provisioner}
	states := awsiam.NewServicePrincipal(new("states.amazonaws.com"), &awsiam.ServicePrincipalOpts{
		// No other account's state machine may take this role.
		Conditions: &map[string]any{
			"StringEquals": map[string]*string{"aws:SourceAccount": awscdk.Stack_Of(scope).Account()},
		},
	})
	role := NewRole(scope, "Drives the broker's operations", states, "Steps", w.Finishing(),
		tracing.Grants("xray:GetSamplingRules", "xray:GetSamplingTargets"))
	definition := stepfunctions.Definition(*provisioner.FunctionArn(), stepLimit, executionLimit)
	w.StateMachine = awsstepfunctions.NewStateMachine(scope, new("StateMachine"), &awsstepfunctions.StateMachineProps{
		StateMachineType: awsstepfunctions.StateMachineType_STANDARD,
		DefinitionBody:   awsstepfunctions.DefinitionBody_FromString(&definition),
		Role:             role,
	})
	unlogged := []exception{
		{rule: "AwsSolutions-SF1",
			reason: "The provisioner logs each step, and Step Functions keeps the history of each execution for " +
				"90 days: a log would say the same again, and cost for each poll."},
	}
	if tracing {
		w.StateMachine.Node().DefaultChild().(awsstepfunctions.CfnStateMachine).SetTracingConfiguration(
			&awsstepfunctions.CfnStateMachine_TracingConfigurationProperty{Enabled: new(true)})
	} else {
		unlogged = append(unlogged,
			exception{rule: "AwsSolutions-SF2",
				reason: "Whoever deployed it chose to have nothing traced; the history of each execution is kept for 90 days."})
	}
	except(w.StateMachine, unlogged...)
	return w
}

// Starting returns the rights to start executions.
func (w *Workflow) Starting() Grants {
	return allow("Start", w.StateMachine.StateMachineArn(), "states:StartExecution")
}

// Finishing returns the rights to call the provisioner, and to wait for it.
func (w *Workflow) Finishing() Grants {
	return allow("Step", w.provisioner.FunctionArn(), "lambda:InvokeFunction")
}
