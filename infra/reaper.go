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

// schedule calls the reaper each minute. A call that cannot be made becomes a dead letter.
func schedule(scope constructs.Construct, reaper awslambda.Function, deadLetters awssqs.IQueue) {
	scope = subscope(scope, "Schedule")
	minute := awscdk.Duration_Minutes(jsii.Number(1))
	awsevents.NewRule(scope, new("Rule"), &awsevents.RuleProps{
		Description: new("Starts a sweep of the reaper"),
		Schedule:    awsevents.Schedule_Rate(minute),
		Targets: &[]awsevents.IRuleTarget{awseventstargets.NewLambdaFunction(reaper, &awseventstargets.LambdaFunctionProps{
			RetryAttempts: jsii.Number(0), MaxEventAge: minute, DeadLetterQueue: deadLetters,
		})},
	})
}
