package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Grants are statements of a policy.
type Grants []awsiam.PolicyStatement

// allow allows actions on one resource, and says what for.
func allow(what string, resource *string, actions ...string) Grants {
	return Grants{awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: &what, Resources: &[]*string{resource}, Actions: jsii.Strings(actions...),
	})}
}

// when bounds what allow has allowed by a condition.
func (g Grants) when(operator string, keys map[string]any) Grants {
	g[0].AddCondition(&operator, keys)
	return g
}

// service is how a condition names a service that uses a key for its caller.
func service(scope constructs.IConstruct, name string) *string {
	stack := awscdk.Stack_Of(scope)
	return awscdk.Fn_Join(new("."), &[]*string{&name, stack.Region(), stack.UrlSuffix()})
}

// policy is a document of all these grants.
func policy(parts ...Grants) awsiam.PolicyDocument {
	all := []awsiam.PolicyStatement(slices.Concat(parts...))
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &all})
}

// subscope is a scope of its own inside another.
func subscope(scope constructs.Construct, id string) constructs.Construct {
	return constructs.NewConstruct(scope, &id)
}
