package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/gateway"
)

func TestTheGatewayGivesEverythingToTheFunction(t *testing.T) {
	made := must(t, usual)
	resource := made.id(t, "AWS::ApiGateway::Resource", "")
	if p := made.Resources[resource].Properties; p["PathPart"] != "{proxy+}" || plain(p["ParentId"]) != "<APIREST.RootResourceId>" {
		t.Errorf("resource %q below %s", p["PathPart"], plain(p["ParentId"]))
	}
	var places []string
	for _, id := range made.of("AWS::ApiGateway::Method") {
		p := made.Resources[id].Properties
		places = append(places, plain(p["ResourceId"]))
		if d := cmp.Diff(map[string]string{
			// The function authenticates.
			"Method": "ANY", "Authorization": "NONE", "APIKey": "", "Type": "AWS_PROXY", "By": "POST",
			"To": "arn:<AWS::Partition>:apigateway:<AWS::Region>:lambda:path/2015-03-31/functions/<ApiFunction.Arn>/invocations",
		}, map[string]string{
			"Method": plain(p["HttpMethod"]), "Authorization": plain(p["AuthorizationType"]), "APIKey": plain(p["ApiKeyRequired"]),
			"Type": plain(at(p, "Integration", "Type")), "By": plain(at(p, "Integration", "IntegrationHttpMethod")), "To": plain(at(p, "Integration", "Uri")),
		}); d != "" {
			t.Errorf("method %q (-want +got):\n%s", id, d)
		}
	}
	slices.Sort(places)
	if d := cmp.Diff([]string{"<APIREST.RootResourceId>", "<" + unhashed(resource) + ">"}, places); d != "" {
		t.Errorf("where there are methods (-want +got):\n%s", d)
	}
}

func TestTheAPIIsARegionalRESTAPI(t *testing.T) {
	for name, stack := range map[string]string{"Usual": "Longshore", "Chosen": "Other"} {
		made := must(t, variants[name])
		rest := made.one(t, "AWS::ApiGateway::RestApi", "")
		if types := plain(at(rest, "EndpointConfiguration", "Types")); types != "REGIONAL" || rest["Name"] != stack {
			t.Errorf("%s: API %q, %s", name, rest["Name"], types)
		}
		// A policy could refuse, and types of bodies could change, what is the
		// function's to decide.
		for _, member := range []string{"Policy", "BinaryMediaTypes", "MinimumCompressionSize", "Body", "ApiKeySourceType"} {
			if rest[member] != nil {
				t.Errorf("%s: the API has %s: %s", name, member, plain(rest[member]))
			}
		}
	}
}

// Requests and answers hold passwords and credentials.
func TestTheStageIsThrottledAndSaysNothing(t *testing.T) {
	tests := map[string]struct {
		reason      string
		rate, burst float64
	}{
		"Usual":  {"a platform's usual load is far below it", 50, 100},
		"Chosen": {"what is chosen is taken", 5, 9},
	}
	for name, test := range tests {
		stage := must(t, variants[name]).one(t, "AWS::ApiGateway::Stage", "")
		if d := cmp.Diff(any([]any{map[string]any{
			"HttpMethod": "*", "ResourcePath": "/*", "ThrottlingRateLimit": test.rate, "ThrottlingBurstLimit": test.burst,
			"DataTraceEnabled": false, "LoggingLevel": "OFF", "MetricsEnabled": false,
		}}), stage["MethodSettings"]); d != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, test.reason, d)
		}
		// A trace shows how long what took, and nothing of what was said.
		if stage["TracingEnabled"] != (name == "Usual") || stage["AccessLogSetting"] != nil || stage["CacheClusterEnabled"] != nil {
			t.Errorf("%s: the stage traces, logs or caches: %s", name, plain(stage))
		}
	}
}

// NFR-04. The gateway's own URL needs no word; the function reads the rest.
func TestTheStageSaysWhatStandsBeforeThePaths(t *testing.T) {
	if got := must(t, usual).one(t, "AWS::ApiGateway::Stage", "")["Variables"]; got != nil {
		t.Errorf("variables %s, want none", plain(got))
	}
	for path, want := range map[string]string{
		"/broker":                 "/broker",
		"/restapis/{api}/prod/_x": "/restapis/<APIREST>/prod/_x",
		"/{api}/{api}":            "/<APIREST>/<APIREST>",
	} {
		made, err := synthesized(map[string]any{ContextBasePath: path})
		if err != nil {
			t.Fatal(err)
		}
		stage := made.one(t, "AWS::ApiGateway::Stage", "")
		if got := plain(at(stage, "Variables", gateway.BasePathVariable)); got != want {
			t.Errorf("%s: the variable is %q, want %q", path, got, want)
		}
	}
}

// responseTypes are all that the gateway answers by itself, as AWS lists them
// in "Gateway response types" of the API Gateway developer guide.
var responseTypes = []string{
	"ACCESS_DENIED", "API_CONFIGURATION_ERROR", "AUTHORIZER_CONFIGURATION_ERROR", "AUTHORIZER_FAILURE", "BAD_REQUEST_BODY",
	"BAD_REQUEST_PARAMETERS", "DEFAULT_4XX", "DEFAULT_5XX", "EXPIRED_TOKEN", "INTEGRATION_FAILURE", "INTEGRATION_TIMEOUT",
	"INVALID_API_KEY", "INVALID_SIGNATURE", "MISSING_AUTHENTICATION_TOKEN", "QUOTA_EXCEEDED", "REQUEST_TOO_LARGE",
	"RESOURCE_NOT_FOUND", "THROTTLED", "UNAUTHORIZED", "UNSUPPORTED_MEDIA_TYPE", "WAF_FILTERED",
}

// NFR-03: what the gateway answers is JSON too.
func TestTheGatewayRefusesAsTheBrokerDoes(t *testing.T) {
	made := must(t, usual)
	var kinds []string
	for _, id := range made.of("AWS::ApiGateway::GatewayResponse") {
		p := made.Resources[id].Properties
		kind := plain(p["ResponseType"])
		kinds = append(kinds, kind)
		if plain(p["RestApiId"]) != "<APIREST>" {
			t.Errorf("%s is of API %s", kind, plain(p["RestApiId"]))
		}
		// An API's own status is what platforms have rules for.
		if p["StatusCode"] != nil {
			t.Errorf("%s has status %s", kind, plain(p["StatusCode"]))
		}
		// RID-01: of the request's headers, the identity alone is repeated.
		if d := cmp.Diff(map[string]any{
			"gatewayresponse.header.X-Broker-API-Request-Identity": "method.request.header.X-Broker-API-Request-Identity",
			"gatewayresponse.header.Cache-Control":                 "'no-store'",
		}, asMap(p["ResponseParameters"])); d != "" {
			t.Errorf("headers of %s (-want +got):\n%s", kind, d)
		}
		templates := asMap(p["ResponseTemplates"])
		text, _ := templates["application/json"].(string)
		if len(templates) != 1 || text == "" {
			t.Errorf("%s has no body as JSON: %s", kind, plain(templates))
			continue
		}
		// In a template these begin a variable, which could repeat the request,
		// or be text that breaks the JSON, and a directive.
		if strings.ContainsAny(text, "$#") {
			t.Errorf("%s is no plain text: %s", kind, text)
		}
		var body map[string]string
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Errorf("%s: decoding %q: %v", kind, text, err)
		}
		if len(body) != 1 || !strings.HasSuffix(body["description"], ".") || len(body["description"]) < 20 {
			t.Errorf("%s does not say in words what is wrong: %s", kind, text)
		}
	}
	slices.Sort(kinds)
	if d := cmp.Diff(responseTypes, kinds); d != "" {
		t.Errorf("-what AWS knows +what is said:\n%s", d)
	}
}

// A deployment is a picture of the API as it is at that moment: what is made
// after it is not served.
func TestTheDeploymentComesLast(t *testing.T) {
	made := must(t, usual)
	deployment := made.Resources[made.id(t, "AWS::ApiGateway::Deployment", "")]
	for _, kind := range []string{"AWS::ApiGateway::Method", "AWS::ApiGateway::Resource", "AWS::ApiGateway::GatewayResponse"} {
		for _, id := range made.of(kind) {
			if !slices.Contains(deployment.DependsOn, id) {
				t.Errorf("the deployment does not wait for %q", id)
			}
		}
	}
}
