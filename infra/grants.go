package main

import (
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// A Grant is a statement of a policy. It may name resources with a star, which a rule of cdk-nag
// forbids.
type Grant struct {
	awsiam.PolicyStatement
	// reason is the explanation for readers of the template, in plain words, and stars are those names, as cdk-nag
	// finds them; none if there are no such names.
	reason string
	stars  []string
}

// Grants are the statements of a policy.
type Grants []Grant

// allow allows actions on one resource; what names the statement after its purpose.
func allow(what string, resource *string, actions ...string) Grants {
	return Grants{{PolicyStatement: awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: &what, Resources: &[]*string{resource}, Actions: jsii.Strings(actions...),
	})}}
}

// allowAll allows actions on all resources, for a reason.
func allowAll(what, reason string, actions ...string) Grants {
	all := allow(what, new("*"), actions...)
	all[0].reason, all[0].stars = reason, []string{"Resource::*"}
	return all
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
	var all []awsiam.PolicyStatement
	for _, g := range slices.Concat(parts...) {
		all = append(all, g.PolicyStatement)
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &all})
}

// subscope returns a scope of its own within another.
func subscope(scope constructs.Construct, id string) constructs.Construct {
	return constructs.NewConstruct(scope, &id)
}

// NewRole makes a role with all its rights in one policy.
func NewRole(scope constructs.Construct, description string, by awsiam.IPrincipal, name string, parts ...Grants) awsiam.Role {
	role := awsiam.NewRole(scope, new("Role"), &awsiam.RoleProps{
		Description: &description, AssumedBy: by,
		InlinePolicies: &map[string]awsiam.PolicyDocument{name: policy(parts...)},
	})
	stars := exception{rule: "AwsSolutions-IAM5"}
	for _, g := range slices.Concat(parts...) {
		if !strings.Contains(stars.reason, g.reason) {
			stars.reason = strings.TrimSpace(stars.reason + " " + g.reason)
		}
		stars.findings = append(stars.findings, g.stars...)
	}
	if stars.findings != nil {
		slices.Sort(stars.findings)
		stars.findings = slices.Compact(stars.findings)
		except(role, stars)
	}
	return role
}
