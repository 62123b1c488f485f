package main

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/front/gateway"
)

// Stage is the first part of every path of the broker's URL.
const Stage = "prod"

// apiPlace is the placeholder for the id of the REST API in a base path.
const apiPlace = "{api}"

// API is the HTTPS endpoint of the broker. It passes every request to the function
// unchanged, and decides nothing.
type API struct {
	REST awsapigateway.RestApi
	// URL is the address that a platform registers, without a slash at its end.
	URL *string
	// DomainTarget is the name to which the operator's own domain must point; nil without a domain.
	DomainTarget *string
}

// NewAPI makes the REST API and its one stage.
func NewAPI(scope constructs.Construct, s Settings, function awslambda.Function) *API {
	scope = subscope(scope, "API")
	rest := awsapigateway.NewRestApi(scope, new("REST"), &awsapigateway.RestApiProps{
		RestApiName:   &s.Stack,
		Description:   new("The service broker's HTTP API"),
		EndpointTypes: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		// Hazard: that role would be set for the whole account, not for this stack.
		CloudWatchRole: new(false),
		Policy:         onlyFrom(s.Allowed),
		DeployOptions: &awsapigateway.StageOptions{
			StageName:            new(Stage),
			ThrottlingRateLimit:  jsii.Number(s.ThrottleRate),
			ThrottlingBurstLimit: jsii.Number(s.ThrottleBurst),
			// Requests and answers contain secrets.
			DataTraceEnabled: new(false),
			LoggingLevel:     awsapigateway.MethodLoggingLevel_OFF,
			TracingEnabled:   new(bool(s.Tracing)),
			MetricsEnabled:   new(false),
		},
	})
	if s.BasePath != "" {
		rest.DeploymentStage().Node().DefaultChild().(awsapigateway.CfnStage).SetVariables(&map[string]*string{
			gateway.BasePathVariable: new(strings.ReplaceAll(s.BasePath, apiPlace, *rest.RestApiId())),
		})
	}
	// The CDK's own output would repeat ours, with a slash at the end.
	rest.Node().TryRemoveChild(new("Endpoint"))
	integration := awsapigateway.NewLambdaIntegration(function, &awsapigateway.LambdaIntegrationOptions{
		Proxy: new(true), AllowTestInvoke: new(false),
	})
	rest.Root().AddMethod(new("ANY"), integration, nil)
	rest.Root().AddProxy(&awsapigateway.ProxyResourceOptions{AnyMethod: new(true), DefaultIntegration: integration})
	addRefusals(rest)
	acl := NewWebACL(scope, rest.DeploymentStage(), s)
	exceptOfAPI(rest, acl)
	api := &API{REST: rest}
	if s.Domain != "" {
		api.DomainTarget = mapDomain(scope, rest, s)
		api.URL = new("https://" + s.Domain + s.BasePath)
		return api
	}
	api.URL = new("https://" + *rest.RestApiId() + "." + *service(scope, "execute-api") + "/" + Stage)
	return api
}

// exceptOfAPI records the reasons why the gateway does not authorize, log or inspect requests.
func exceptOfAPI(rest awsapigateway.RestApi, guarded bool) {
	const logs = "Logs of the gateway need a role for CloudWatch that belongs to the whole account and its region, " +
		"which a stack must neither set for the account's other APIs nor take away when it goes. "
	except(rest, exception{rule: "AwsSolutions-APIG2",
		reason: "The function checks requests: what the specification wants answered to " +
			"a bad one depends on the API version and the offering, and is no model of the gateway."})
	ofStage := []exception{
		{rule: "AwsSolutions-APIG1", reason: logs + "The function logs each request, with ids and without secrets."},
		{rule: "AwsSolutions-APIG6", reason: logs + "What the gateway would log of an execution may hold secrets."},
	}
	if !guarded {
		ofStage = append(ofStage, exception{rule: "AwsSolutions-APIG3",
			reason: "A web ACL costs money while nothing is asked. The stage is " +
				"throttled, every request needs the platform's password, and an operator may ask for an ACL."})
	}
	except(rest.DeploymentStage(), ofStage...)
	for _, method := range *rest.Methods() {
		except(method,
			exception{rule: "AwsSolutions-APIG4",
				reason: "Platforms log in by HTTP basic authentication, which the specification asks for " +
					"and the function checks, in constant time, before anything else."},
			exception{rule: "AwsSolutions-COG4",
				reason: "Platforms log in by HTTP basic authentication; they are no users of a Cognito pool " +
					"and have no tokens of one."},
		)
	}
}
