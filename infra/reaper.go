package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// ScheduleProps are what a Schedule needs.
type ScheduleProps struct {
	Reaper awslambda.Function
	// DeadLetters receives calls that could not be made.
	DeadLetters awssqs.IQueue
}

// Schedule calls the reaper.
type Schedule struct{ Rule awsevents.Rule }

// NewSchedule calls the reaper each minute.
func NewSchedule(scope constructs.Construct, id string, props *ScheduleProps) *Schedule {
	scope = constructs.NewConstruct(scope, &id)
	minute := awscdk.Duration_Minutes(jsii.Number(1))
	return &Schedule{Rule: awsevents.NewRule(scope, jsii.String("Rule"), &awsevents.RuleProps{
		Description: jsii.String("Has what is past due looked at"),
		Schedule:    awsevents.Schedule_Rate(minute),
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(props.Reaper, &awseventstargets.LambdaFunctionProps{
			RetryAttempts: jsii.Number(0), MaxEventAge: minute, DeadLetterQueue: props.DeadLetters,
		})},
	})}
}
