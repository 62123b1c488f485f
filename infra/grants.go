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

// allow allows actions on one resource; what names the statement after its purpose.
func allow(what string, resource *string, actions ...string) Grants {
	return Grants{awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: &what, Resources: &[]*string{resource}, Actions: jsii.Strings(actions...),
	})}
}

// when adds a condition to the statement that allow has made.
func (g Grants) when(operator string, keys map[string]any) Grants {
	g[0].AddCondition(&operator, keys)
	return g
}

// service returns the name of a service of AWS in the stack's region. A condition refers by it to one that uses a key
// for its caller.
func service(scope constructs.IConstruct, name string) *string {
	stack := awscdk.Stack_Of(scope)
	return new(name + "." + *stack.Region() + "." + *stack.UrlSuffix())
}

// policy returns a policy document with all the grants.
func policy(parts ...Grants) awsiam.PolicyDocument {
	all := []awsiam.PolicyStatement(slices.Concat(parts...))
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &all})
}

// subscope returns a scope of its own within another.
func subscope(scope constructs.Construct, id string) constructs.Construct {
	return constructs.NewConstruct(scope, &id)
}
