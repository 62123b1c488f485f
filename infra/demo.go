package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/app"
)

// Demo is where the demo's things are: parameters of SSM under one path, which
// is the stack's own.
type Demo struct {
	// Prefix begins with a slash and does not end with one.
	Prefix string
	stack  awscdk.Stack
}

// NewDemo makes nothing: parameters need no place to be made first.
func NewDemo(scope constructs.Construct, stack string) *Demo {
	return &Demo{Prefix: app.DemoPrefix(stack), stack: awscdk.Stack_Of(scope)}
}

// Things is for making and removing the demo's parameters.
func (d *Demo) Things() []awsiam.PolicyStatement {
	below := awscdk.Fn_Join(jsii.String(""), &[]*string{d.path(), jsii.String("/*")})
	return []awsiam.PolicyStatement{
		// A parameter is made together with its tags.
		allow("DemoThings", below, "ssm:AddTagsToResource", "ssm:DeleteParameter", "ssm:GetParameter", "ssm:PutParameter"),
	}
}

// Inventory is for listing them.
func (d *Demo) Inventory() []awsiam.PolicyStatement {
	return []awsiam.PolicyStatement{allow("DemoInventory", d.path(), "ssm:GetParametersByPath")}
}

func (d *Demo) path() *string {
	return d.stack.FormatArn(&awscdk.ArnComponents{
		Service: jsii.String("ssm"), Resource: jsii.String("parameter"), ResourceName: jsii.String(d.Prefix[1:]),
	})
}

// Exceptions say why whoever has Things may reach more than one parameter.
func (d *Demo) Exceptions() []exception {
	return []exception{{
		rule: "AwsSolutions-IAM5",
		reason: "The demo makes parameters while it runs, under names that come from the platform's ids. " +
			"They all lie under one path, which is this stack's own.",
		findings: []string{"Resource::arn:<AWS::Partition>:ssm:<AWS::Region>:<AWS::AccountId>:parameter" + d.Prefix + "/*"},
	}}
}
