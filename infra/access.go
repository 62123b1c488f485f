package main

import (
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

// windowSeconds is the time over which AWS WAF counts requests; it offers no shorter one.
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
		arn = newRateACL(scope, s.PlatformRate).AttrArn()
	}
	awswafv2.NewCfnWebACLAssociation(scope, new("Association"), &awswafv2.CfnWebACLAssociationProps{
		WebAclArn: arn, ResourceArn: stage.StageArn(),
	})
	return true
}

func newRateACL(scope constructs.Construct, rate int) awswafv2.CfnWebACL {
	const tooMany = "TooMany"
	unseen := func(name string) *awswafv2.CfnWebACL_VisibilityConfigProperty {
		// Metrics of the ACL's own would cost money, and samples would show logins.
		return &awswafv2.CfnWebACL_VisibilityConfigProperty{
			MetricName: &name, CloudWatchMetricsEnabled: new(false), SampledRequestsEnabled: new(false),
		}
	}
	return awswafv2.NewCfnWebACL(scope, new("ACL"), &awswafv2.CfnWebACLProps{
		Scope:            new("REGIONAL"),
		Description:      new("Limits the requests of each platform"),
		DefaultAction:    &awswafv2.CfnWebACL_DefaultActionProperty{Allow: &awswafv2.CfnWebACL_AllowActionProperty{}},
		VisibilityConfig: unseen("longshore"),
		CustomResponseBodies: &map[string]any{tooMany: &awswafv2.CfnWebACL_CustomResponseBodyProperty{
			ContentType: new("APPLICATION_JSON"),
			Content:     new(describing("This platform sends too many requests. Repeat this one after a minute.")),
		}},
		Rules: &[]any{&awswafv2.CfnWebACL_RuleProperty{
			Name: new("each-login"), Priority: jsii.Number(0), VisibilityConfig: unseen("each-login"),
			Action: &awswafv2.CfnWebACL_RuleActionProperty{Block: &awswafv2.CfnWebACL_BlockActionProperty{
				CustomResponse: &awswafv2.CfnWebACL_CustomResponseProperty{
					ResponseCode: jsii.Number(429), CustomResponseBodyKey: new(tooMany),
					ResponseHeaders: &[]any{&awswafv2.CfnWebACL_CustomHTTPHeaderProperty{
						Name: new("Retry-After"), Value: new("60"),
					}},
				},
			}},
			Statement: &awswafv2.CfnWebACL_StatementProperty{RateBasedStatement: &awswafv2.CfnWebACL_RateBasedStatementProperty{
				Limit: jsii.Number(rate * windowSeconds), EvaluationWindowSec: jsii.Number(windowSeconds),
				AggregateKeyType: new("CUSTOM_KEYS"),
				CustomKeys: &[]any{&awswafv2.CfnWebACL_RateBasedStatementCustomKeyProperty{
					Header: &awswafv2.CfnWebACL_RateLimitHeaderProperty{
						Name: new("authorization"),
						TextTransformations: &[]any{&awswafv2.CfnWebACL_TextTransformationProperty{
							Priority: jsii.Number(0), Type: new("NONE"),
						}},
					}}},
			}},
		}},
	})
}
