package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// DeadLetters is a queue with a message for each call of the reaper that got no answer, and for
// each execution that ended without settling its operation. The messages are for reading, not for
// replaying: the next sweep repairs what these failures left. A message contains only ids, as the
// input of an execution does.
type DeadLetters struct {
	Queue awssqs.Queue
	scope constructs.Construct
}

// NewDeadLetters makes the queue.
func NewDeadLetters(scope constructs.Construct) *DeadLetters {
	scope = subscope(scope, "DeadLetters")
	return &DeadLetters{scope: scope, Queue: awssqs.NewQueue(scope, new("Queue"), &awssqs.QueueProps{
		RetentionPeriod: awscdk.Duration_Days(jsii.Number(14)),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      new(true),
	})}
}

// Sending returns the rights of a function whose failed calls go to the queue.
func (d *DeadLetters) Sending() Grants {
	return allow("DeadLetters", d.Queue.QueueArn(), "sqs:SendMessage")
}

// OfFunction sends the failed calls of a function to the queue, if nobody waits for these calls.
func (d *DeadLetters) OfFunction(f awslambda.Function) {
	f.Node().DefaultChild().(awslambda.CfnFunction).SetDeadLetterConfig(
		&awslambda.CfnFunction_DeadLetterConfigProperty{TargetArn: d.Queue.QueueArn()})
}

// OfExecutions sends the executions that did not succeed to the queue.
func (d *DeadLetters) OfExecutions(machine awsstepfunctions.StateMachine) {
	awsevents.NewRule(d.scope, new("Abandoned"), &awsevents.RuleProps{
		Description: new("Reports executions that ended without settling their operation"),
		EventPattern: &awsevents.EventPattern{
			Source:     jsii.Strings("aws.states"),
			DetailType: jsii.Strings("Step Functions Execution Status Change"),
			Detail: &map[string]any{
				"status":          jsii.Strings("FAILED", "TIMED_OUT", "ABORTED"),
				"stateMachineArn": &[]*string{machine.StateMachineArn()},
			},
		},
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewSqsQueue(d.Queue, nil)},
	})
}
