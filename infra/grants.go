package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// allow is a statement that allows actions on one resource, and says what for.
func allow(what string, resource *string, actions ...string) awsiam.PolicyStatement {
	return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: &what, Resources: &[]*string{resource}, Actions: jsii.Strings(actions...),
	})
}

// service is how a condition names a service that uses a key for its caller.
func service(scope constructs.IConstruct, name string) *string {
	stack := awscdk.Stack_Of(scope)
	return awscdk.Fn_Join(jsii.String("."), &[]*string{&name, stack.Region(), stack.UrlSuffix()})
}

// grants puts together what a function may do.
func grants(parts ...[]awsiam.PolicyStatement) []awsiam.PolicyStatement {
	return slices.Concat(parts...)
}

// policy is a document of statements.
func policy(statements []awsiam.PolicyStatement) awsiam.PolicyDocument {
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &statements})
}
