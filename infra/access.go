package main

import (
	_ "embed"
	"encoding/json"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awswafv2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// onlyFrom returns the policy of an API that answers only requests from these addresses; nil for
// all addresses. Other requests get a 403 before anything else happens.
func onlyFrom(cidrs []string) awsiam.PolicyDocument {
	if len(cidrs) == 0 {
		return nil
	}
	statement := func(effect awsiam.Effect, conditions *map[string]any) Grant {
		return Grant{PolicyStatement: awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Effect: effect, Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()}, Conditions: conditions,
			Actions: jsii.Strings("execute-api:Invoke"), Resources: jsii.Strings("execute-api:/*"),
		})}
	}
	elsewhere := map[string]any{"NotIpAddress": map[string]any{"aws:SourceIp": cidrs}}
	return policy(Grants{statement(awsiam.Effect_ALLOW, nil), statement(awsiam.Effect_DENY, &elsewhere)})
}

// WebACLBuilt stands in place of an ARN for a web ACL that the stack makes.
const WebACLBuilt = "rate"

// windowSeconds is the time over which AWS WAF counts requests, as webacl.json says; it offers no shorter one.
const windowSeconds = 60

// NewWebACL puts a web ACL before the stage, and reports whether there is one. The stack's own ACL
// limits each login separately: AWS WAF counts requests by their Authorization header, before they
// reach the stage or a function.
func NewWebACL(scope constructs.Construct, stage awsapigateway.Stage, s Settings) bool {
	if s.WebACL == "" {
		return false
	}
	scope = subscope(scope, "WebACL")
	arn := &s.WebACL
	if s.WebACL == WebACLBuilt {
		arn = newRateACL(scope, s.PlatformRate)
	}
	awswafv2.NewCfnWebACLAssociation(scope, new("Association"), &awswafv2.CfnWebACLAssociationProps{
		WebAclArn: arn, ResourceArn: stage.StageArn(),
	})
	return true
}

//go:embed webacl.json
var rateACL []byte

// newRateACL makes the ACL of webacl.json, whose properties are those of CloudFormation, and returns its ARN.
// The ACL keeps no metrics, which would cost money, and no samples, which would show logins.
func newRateACL(scope constructs.Construct, rate int) *string {
	var properties map[string]any
	_ = json.Unmarshal(rateACL, &properties) // it is an object
	acl := awscdk.NewCfnResource(scope, new("ACL"), &awscdk.CfnResourceProps{
		Type: new("AWS::WAFv2::WebACL"), Properties: &properties,
	})
	acl.AddPropertyOverride(new("Rules.0.Statement.RateBasedStatement.Limit"), rate*windowSeconds)
	return acl.GetAtt(new("Arn"), awscdk.ResolutionTypeHint_STRING).ToString()
}
