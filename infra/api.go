package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore/longshore/internal/gateway"
)

// Stage is the first part of every path of the broker's URL.
const Stage = "prod"

// APIProps are what an API needs.
type APIProps struct {
	Name     string
	Function awslambda.Function
	Tracing  Tracing
	// Rate is how many requests a second it takes on average, Burst how many
	// at once.
	Rate, Burst int
	// BasePath is what clients put before the broker's paths, if that is
	// neither the stage's name nor nothing. In it, {api} stands for the id of
	// the REST API.
	BasePath string
}

// apiPlace stands for the id of the REST API in a base path.
const apiPlace = "{api}"

// API is the broker's HTTPS end. It gives every request to the function as it
// came, and decides nothing.
type API struct {
	REST awsapigateway.RestApi
	// URL is what a platform is given. It has no slash at its end.
	URL *string
}

// NewAPI makes the REST API and its one stage.
func NewAPI(scope constructs.Construct, id string, props *APIProps) *API {
	scope = constructs.NewConstruct(scope, &id)
	rest := awsapigateway.NewRestApi(scope, jsii.String("REST"), &awsapigateway.RestApiProps{
		RestApiName:   &props.Name,
		Description:   jsii.String("The service broker's HTTP API"),
		EndpointTypes: &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		// That role would be the account's, not this stack's.
		CloudWatchRole: jsii.Bool(false),
		DeployOptions: &awsapigateway.StageOptions{
			StageName:            jsii.String(Stage),
			ThrottlingRateLimit:  jsii.Number(props.Rate),
			ThrottlingBurstLimit: jsii.Number(props.Burst),
			// Requests and answers hold secrets.
			DataTraceEnabled: jsii.Bool(false),
			LoggingLevel:     awsapigateway.MethodLoggingLevel_OFF,
			TracingEnabled:   jsii.Bool(bool(props.Tracing)),
			MetricsEnabled:   jsii.Bool(false),
		},
	})
	if props.BasePath != "" {
		var parts []*string
		for i, part := range strings.Split(props.BasePath, apiPlace) {
			if i > 0 {
				parts = append(parts, rest.RestApiId())
			}
			parts = append(parts, &part)
		}
		value := awscdk.Fn_Join(jsii.String(""), &parts)
		rest.DeploymentStage().Node().DefaultChild().(awsapigateway.CfnStage).SetVariables(&map[string]*string{gateway.BasePathVariable: value})
	}
	// Its own output says the same as ours, with a slash at the end.
	rest.Node().TryRemoveChild(jsii.String("Endpoint"))
	integration := awsapigateway.NewLambdaIntegration(props.Function, &awsapigateway.LambdaIntegrationOptions{
		Proxy: jsii.Bool(true), AllowTestInvoke: jsii.Bool(false),
	})
	rest.Root().AddMethod(jsii.String("ANY"), integration, nil)
	rest.Root().AddProxy(&awsapigateway.ProxyResourceOptions{AnyMethod: jsii.Bool(true), DefaultIntegration: integration})
	for _, r := range refusals() {
		rest.AddGatewayResponse(jsii.String("Refusal-"+*r.kind.ResponseType()), &awsapigateway.GatewayResponseOptions{
			Type: r.kind,
			// As in the broker's own answers (RID-01); of a request without one
			// it is left out.
			ResponseHeaders: &map[string]*string{
				"X-Broker-API-Request-Identity": jsii.String("method.request.header.X-Broker-API-Request-Identity"),
				"Cache-Control":                 jsii.String("'no-store'"),
			},
			Templates: &map[string]*string{"application/json": jsii.String(r.body())},
		})
	}
	exceptOfAPI(rest)
	stack := awscdk.Stack_Of(scope)
	host := awscdk.Fn_Join(jsii.String("."), &[]*string{rest.RestApiId(), jsii.String("execute-api"), stack.Region(), stack.UrlSuffix()})
	return &API{REST: rest, URL: awscdk.Fn_Join(jsii.String(""), &[]*string{jsii.String("https://"), host, jsii.String("/" + Stage)})}
}

// exceptOfAPI says why the gateway decides, records and inspects nothing.
func exceptOfAPI(rest awsapigateway.RestApi) {
	const logs = "Logs of the gateway need a role for CloudWatch that belongs to the whole account and its region, " +
		"which a stack must neither set for the account's other APIs nor take away when it goes. "
	except(rest, exception{rule: "AwsSolutions-APIG2", reason: "The function checks requests: what the specification wants answered to " +
		"a bad one depends on the API version and the offering, and is no model of the gateway."})
	except(rest.DeploymentStage(),
		exception{rule: "AwsSolutions-APIG1", reason: logs + "The function logs each request, with ids and without secrets."},
		exception{rule: "AwsSolutions-APIG3", reason: "A web ACL costs money while nothing is asked. The stage is throttled, every " +
			"request needs the platform's password, and an operator may put an ACL of the account before the stage."},
		exception{rule: "AwsSolutions-APIG6", reason: logs + "What the gateway would log of an execution may hold secrets."},
	)
	for _, method := range *rest.Methods() {
		except(method,
			exception{rule: "AwsSolutions-APIG4", reason: "Platforms log in by HTTP basic authentication, which the specification asks for " +
				"and the function checks, in constant time, before anything else."},
			exception{rule: "AwsSolutions-COG4", reason: "Platforms log in by HTTP basic authentication; they are no users of a Cognito pool " +
				"and have no tokens of one."},
		)
	}
}

// A refusal is what the gateway answers by itself, before the function is
// called or after it has failed. Platforms read the broker's own form of an
// error only: JSON with a description.
type refusal struct {
	kind        awsapigateway.ResponseType
	description string
}

func (r refusal) body() string {
	body, err := json.Marshal(map[string]string{"description": r.description})
	if err != nil {
		panic(fmt.Sprintf("encoding a refusal: %v", err)) // it is text
	}
	return string(body)
}

// refusals are all that the gateway knows. Their status codes stay what AWS
// makes them.
func refusals() []refusal {
	const (
		notForUs = "The request is not one that this service broker takes."
		failed   = "The service broker has failed. Whether the request had an effect is not known."
		broken   = "The service broker is not set up as it should be."
	)
	return []refusal{
		{awsapigateway.ResponseType_DEFAULT_4XX(), notForUs},
		{awsapigateway.ResponseType_DEFAULT_5XX(), failed},
		{awsapigateway.ResponseType_INTEGRATION_FAILURE(), failed},
		{awsapigateway.ResponseType_INTEGRATION_TIMEOUT(), "The service broker did not answer in time. Whether the request had an effect is not known."},
		{awsapigateway.ResponseType_API_CONFIGURATION_ERROR(), broken},
		{awsapigateway.ResponseType_AUTHORIZER_CONFIGURATION_ERROR(), broken},
		{awsapigateway.ResponseType_AUTHORIZER_FAILURE(), broken},
		{awsapigateway.ResponseType_THROTTLED(), "There are too many requests at once. Repeat this one after some seconds."},
		{awsapigateway.ResponseType_QUOTA_EXCEEDED(), "There were too many requests. Repeat this one later."},
		{awsapigateway.ResponseType_REQUEST_TOO_LARGE(), "The request is too large."},
		{awsapigateway.ResponseType_UNSUPPORTED_MEDIA_TYPE(), "The request's body is not JSON."},
		{awsapigateway.ResponseType_BAD_REQUEST_BODY(), "The request's body is not valid."},
		{awsapigateway.ResponseType_BAD_REQUEST_PARAMETERS(), "The request's parameters are not valid."},
		{awsapigateway.ResponseType_RESOURCE_NOT_FOUND(), "There is nothing at this path."},
		{awsapigateway.ResponseType_MISSING_AUTHENTICATION_TOKEN(), "There is nothing at this path, or not by this method."},
		{awsapigateway.ResponseType_UNAUTHORIZED(), "The request has no valid credentials."},
		{awsapigateway.ResponseType_ACCESS_DENIED(), "The request is not allowed."},
		{awsapigateway.ResponseType_WAF_FILTERED(), "The request is not allowed."},
		{awsapigateway.ResponseType_INVALID_API_KEY(), "The request is not allowed."},
		{awsapigateway.ResponseType_INVALID_SIGNATURE(), "The request's credentials are not in the form that this service broker takes."},
		{awsapigateway.ResponseType_EXPIRED_TOKEN(), "The request's credentials have expired."},
	}
}
