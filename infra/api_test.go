package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/front/gateway"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestTheGatewayGivesEverythingToTheFunction(t *testing.T) {
	made := must(t, usual)
	resource := made.id(t, "AWS::ApiGateway::Resource", "")
	if p := made.Resources[resource].Properties; p["PathPart"] != "{proxy+}" ||
		plain(p["ParentId"]) != "<APIREST.RootResourceId>" {
		t.Errorf("resource %q below %s", p["PathPart"], plain(p["ParentId"]))
	}
	var places []string
	for id, p := range made.all("AWS::ApiGateway::Method") {
		places = append(places, plain(p["ResourceId"]))
		expect.Same(t, fmt.Sprintf("method %q", id), map[string]string{
			// The function authenticates.
			"Method": "ANY", "Authorization": "NONE", "APIKey": "", "Type": "AWS_PROXY", "By": "POST",
			"To": "arn:<AWS::Partition>:apigateway:<AWS::Region>:lambda:path/2015-03-31/functions/<ApiFunction.Arn>/invocations",
		}, map[string]string{
			"Method": plain(p["HttpMethod"]), "Authorization": plain(p["AuthorizationType"]),
			"APIKey": plain(p["ApiKeyRequired"]), "Type": plain(at(p, "Integration", "Type")),
			"By": plain(at(p, "Integration", "IntegrationHttpMethod")), "To": plain(at(p, "Integration", "Uri")),
		})
	}
	slices.Sort(places)
	expect.Same(t, "where there are methods", []string{"<APIREST.RootResourceId>", "<" + unhashed(resource) + ">"}, places)
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
		made := expect.Get(synthesized(map[string]any{ContextBasePath: path}))(t)
		stage := made.one(t, "AWS::ApiGateway::Stage", "")
		expect.Same(t, path+": the variable is", want, plain(at(stage, "Variables", gateway.BasePathVariable)))
	}
}

// NFR-03: what the gateway answers is JSON too.
func TestTheGatewayRefusesAsTheBrokerDoes(t *testing.T) {
	made := must(t, usual)
	var kinds []string
	for _, p := range made.all("AWS::ApiGateway::GatewayResponse") {
		kind := plain(p["ResponseType"])
		kinds = append(kinds, kind)
		expect.Same(t, kind+" is of API", "<APIREST>", plain(p["RestApiId"]))
		// An API's own status is what platforms have rules for.
		if p["StatusCode"] != nil {
			t.Errorf("%s has status %s", kind, plain(p["StatusCode"]))
		}
		// RID-01: of the request's headers, the identity alone is repeated.
		want := map[string]any{
			"gatewayresponse.header.X-Broker-API-Request-Identity": "method.request.header.X-Broker-API-Request-Identity",
			"gatewayresponse.header.Cache-Control":                 "'no-store'",
		}
		if kind == "THROTTLED" {
			want["gatewayresponse.header.Retry-After"] = "'5'"
		}
		expect.Same(t, "headers of "+kind, want, asMap(p["ResponseParameters"]))
		templates := asMap(p["ResponseTemplates"])
		text, _ := templates["application/json"].(string)
		// In a template these begin a variable, which could repeat the request, or be text that breaks the JSON, and a directive.
		if len(templates) != 1 || strings.ContainsAny(text, "$#") {
			t.Errorf("%s is no plain text as JSON alone: %s", kind, plain(templates))
		}
		var body map[string]string
		if err := json.Unmarshal([]byte(text), &body); err != nil || len(body) != 1 ||
			!strings.HasSuffix(body["description"], ".") || len(body["description"]) < 20 {
			t.Errorf("%s does not say in words what is wrong: %q: %v", kind, text, err)
		}
	}
	slices.Sort(kinds)
	// A refusal without an entry has the answer of its class.
	expect.Same(t, "kinds of refusals", []string{"DEFAULT_4XX", "DEFAULT_5XX", "THROTTLED"}, kinds)
}

// A deployment keeps the policy of its time: another policy asks for another deployment.
func TestAnotherPolicyIsDeployed(t *testing.T) {
	ids := map[string]bool{}
	for _, cidrs := range []string{"192.0.2.0/24", "198.51.100.0/24"} {
		made := expect.Get(synthesized(map[string]any{ContextAllowCIDRs: cidrs}))(t)
		ids[made.id(t, "AWS::ApiGateway::Deployment", "")] = true
	}
	if len(ids) != 2 {
		t.Errorf("both have the deployment %v", ids)
	}
}

func TestAWebACLStandsBeforeTheStage(t *testing.T) {
	const arn = "arn:aws:wafv2:eu-central-1:111122223333:regional/webacl/mine/1234-5678"
	for name, test := range map[string]struct {
		reason string
		acl    any
		want   string // what is associated; empty for nothing
		built  bool
	}{
		"None":  {"it costs while nothing is asked", nil, "", false},
		"Named": {"one that exists is used", arn, arn, false},
		"Built": {"or one that bounds each login is made", WebACLBuilt, "<APIWebACL.Arn>", true},
	} {
		made := expect.Get(synthesized(map[string]any{ContextWebACL: test.acl, ContextPlatformRate: "7"}))(t)
		var got string
		for _, p := range made.all("AWS::WAFv2::WebACLAssociation") {
			if got += plain(p["WebACLArn"]); !strings.HasSuffix(plain(p["ResourceArn"]),
				":/restapis/<APIREST>/stages/<APIRESTDeploymentStageprod>") {
				t.Errorf("%s: it stands before %s", name+": "+test.reason, plain(p["ResourceArn"]))
			}
		}
		if got != test.want || len(made.of("AWS::WAFv2::WebACL")) > 0 != test.built {
			t.Errorf("%s: associated %q, want %q", name+": "+test.reason, got, test.want)
		}
	}
}

// The ACL that is built answers as the broker does.
func TestTheAnswerToAHurriedLogin(t *testing.T) {
	acl := must(t, chosen).one(t, "AWS::WAFv2::WebACL", "")
	answer := at(list(acl["Rules"])[0], "Action", "Block", "CustomResponse")
	body := plain(at(acl, "CustomResponseBodies", plain(at(answer, "CustomResponseBodyKey")), "Content"))
	var said map[string]string
	if err := json.Unmarshal([]byte(body), &said); err != nil || said["description"] == "" {
		t.Errorf("it answers %q: %v", body, err)
	}
}

func TestADomainOfOnesOwn(t *testing.T) {
	const domain, certificate = "broker.example.com", "arn:aws:acm:eu-central-1:111122223333:certificate/c"
	for name, test := range map[string]struct{ reason, base, zone, url, mapped, record string }{
		"Root": {"the broker is all that the name is for", "", "", "https://broker.example.com", "", ""},
		"Base": {"or one thing of several", "/broker", "", "https://broker.example.com/broker", "broker", ""},
		"Zone": {"its record can be made too", "", "Z1", "https://broker.example.com", "",
			"Z1 " + domain + " A <APIDomainName.RegionalDomainName>"},
	} {
		context := map[string]any{ContextDomain: domain, ContextCertificate: certificate, ContextBasePath: test.base,
			ContextHostedZone: test.zone}
		maps.DeleteFunc(context, func(_ string, value any) bool { return value == "" })
		made := expect.Get(synthesized(context))(t)
		for place, want := range map[string]string{
			"DomainName DomainName": domain, "DomainName RegionalCertificateArn": certificate,
			"DomainName SecurityPolicy": "TLS_1_2", "BasePathMapping BasePath": test.mapped,
			"BasePathMapping RestApiId": "<APIREST>", "BasePathMapping Stage": "<APIRESTDeploymentStageprod>",
		} {
			expect.Same(t, name+": "+test.reason+": "+place, want, made.value(t, "ApiGateway::"+place))
		}
		record := ""
		for _, member := range []string{"HostedZoneId", "Name", "Type", "AliasTarget.DNSName"} {
			record += " " + made.value(t, "Route53::RecordSet "+member)
		}
		expect.Same(t, name+": the URL, where the name has to lead, and its record",
			[]string{test.url, "<APIDomainName.RegionalDomainName>", test.record},
			[]string{plain(made.Outputs[outputs.URL].Value), plain(made.Outputs[outputs.DomainTarget].Value),
				strings.TrimSpace(record)})
	}
}

// A deployment is a picture of the API as it is at that moment: what is made after it is not served.
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
