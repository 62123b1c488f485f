package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
)

// inside are choices for which a provider is called inside a VPC. That executions
// are traced is chosen too, since the function there must not be.
var inside = map[string]any{
	"demo": "true", "demo-vpc": "true", ContextSubnets: "subnet-0123456789abcdef0, subnet-01234567",
	ContextSecurityGroups: "sg-0123456789abcdef0",
	ContextTracing:        "true", ContextAlarmTopic: "arn:aws:sns:eu-central-1:111122223333:operators",
}

var called = sync.OnceValues(func() (template, error) { return synthesized(inside) })

// The function stands where it was told, is the provisioner's program, and is
// certainly dead before the lease of whoever calls it is over.
func TestTheFunctionInsideTheVPC(t *testing.T) {
	p := must(t, called).one(t, "AWS::Lambda::Function", "CallsFunction")
	usual := must(t, called).one(t, "AWS::Lambda::Function", "ProvisionerFunction")
	want := map[string]any{
		"VpcConfig": map[string]any{
			"SubnetIds": []any{"subnet-0123456789abcdef0", "subnet-01234567"}, "SecurityGroupIds": []any{"sg-0123456789abcdef0"},
		},
		"Code": usual["Code"], "Timeout": app.CallsTimeout.Seconds(), "TracingConfig": nil, "DeadLetterConfig": nil,
	}
	for name, want := range want {
		expect.Same(t, name, want, p[name])
	}
	environment := map[string]string{}
	for name, value := range asMap(at(p, "Environment", "Variables")) {
		environment[name] = plain(value)
	}
	for _, name := range []string{app.EnvStack, app.EnvBroker, envAccount} { // of all functions
		delete(environment, name)
	}
	expect.Same(t, "what it is told", map[string]string{app.EnvRole: app.RoleCalls, app.EnvInVPC: "demo"}, environment)
	for name, function := range map[string]string{"provisioner": "ProvisionerFunction", "reaper": "ReaperFunction"} {
		told := at(must(t, called).one(t, "AWS::Lambda::Function", function), "Environment", "Variables")
		if plain(at(told, app.EnvCalls)) != "<CallsFunction.Arn>" || at(told, app.EnvInVPC) != "demo" ||
			at(told, app.EnvRole) != nil {
			t.Errorf("the %s is told %s", name, plain(told))
		}
	}
	if made := must(t, called); plain(made.Outputs[outputs.Calls].Value) != "<CallsFunction.Arn>" ||
		made.Outputs[outputs.InVPC].Value != "demo" {
		t.Error("the outputs do not tell operators' commands where to call")
	}
}

// It writes its log, Lambda manages its network interfaces, and the program may
// do nothing at all: what it is allowed for Lambda, it is denied.
func TestTheFunctionInsideTheVPCHasNoRights(t *testing.T) { noRights(t, must(t, called)) }

func noRights(t *testing.T, made template) {
	t.Helper()
	role := made.one(t, "AWS::IAM::Role", "CallsFunctionRole")
	if role["ManagedPolicyArns"] != nil {
		t.Errorf("managed policies: %s", plain(role["ManagedPolicyArns"]))
	}
	may := map[string][]string{}
	for _, p := range list(role["Policies"]) {
		for _, s := range list(at(p, "PolicyDocument", "Statement")) {
			what := fmt.Sprintf("%v on %s if %s", at(s, "Effect"), plain(at(s, "Resource")), plain(at(s, "Condition")))
			for _, action := range list(at(s, "Action")) {
				may[what] = append(may[what], action.(string))
			}
		}
	}
	interfaces := []string{
		"ec2:AssignPrivateIpAddresses", "ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface",
		"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:UnassignPrivateIpAddresses",
	}
	expect.Same(t, "what in the VPC is allowed", map[string][]string{
		"Allow on <CallsFunctionLog.Arn> if ":                        {"logs:CreateLogStream", "logs:PutLogEvents"},
		"Allow on * if ":                                             interfaces,
		`Deny on * if {"Null":{"lambda:SourceFunctionArn":"false"}}`: interfaces,
	}, may)
}

// The functions that drive providers may call it, and no other.
func TestWhoMayCallInsideTheVPC(t *testing.T) {
	made := must(t, called)
	var callers []string
	for _, id := range made.of("AWS::IAM::Role") {
		if role := unhashed(id); role != "CallsFunctionRole" {
			for _, g := range grantsOf(t, made, role) {
				if g.action == "lambda:InvokeFunction" && g.resource == "<CallsFunction.Arn>" {
					callers = append(callers, role)
				} else if strings.Contains(g.resource, "CallsFunction") && g.service() != "logs" {
					t.Errorf("role %q may do %s", role, g)
				}
			}
		}
	}
	slices.Sort(callers)
	expect.Same(t, "roles of functions in the VPC", []string{"ProvisionerFunctionRole", "ReaperFunctionRole"}, callers)
	for _, id := range made.of("AWS::Lambda::Permission") {
		expect.Never(t, id, plain(made.Resources[id].Properties["FunctionName"]), "CallsFunction")
	}
}

// Where no provider needs a VPC there is no function for it, and nothing of it.
func TestNoVPCUnlessAProviderNeedsOne(t *testing.T) {
	for name, variant := range variants {
		made := must(t, variant)
		for id := range made.Resources {
			expect.Never(t, name, id, "Calls")
		}
		for function, p := range functions(t, made) {
			if told := at(p, "Environment", "Variables"); at(told, app.EnvCalls) != nil || at(told, app.EnvInVPC) != nil {
				t.Errorf("%s: function %q is told %s", name, function, plain(told))
			}
		}
		if made.Outputs[outputs.Calls].Value != nil || made.Outputs[outputs.InVPC].Value != nil {
			t.Errorf("%s: the outputs tell of a function", name)
		}
	}
}

func TestVPCSettings(t *testing.T) {
	const subnets, groups = "subnet-0123456789abcdef0", "sg-0123456789abcdef0"
	tests := map[string]struct {
		context map[string]any
		want    string // in the error
	}{
		"NoSubnets": {map[string]any{"demo": "true", "demo-vpc": "true", "security-groups": groups},
			"context subnets and security-groups: give both, since the provider demo"},
		"NoGroups": {map[string]any{"demo": "true", "demo-vpc": "true", "subnets": subnets},
			"context subnets and security-groups: give both, since the provider demo"},
		"NotNeeded": {map[string]any{"subnets": subnets, "security-groups": groups},
			"leave them out, since no provider is called inside a VPC"},
		"Subnet": {map[string]any{"demo": "true", "demo-vpc": "true", "subnets": subnets + ",vpc-0123456789abcdef0",
			"security-groups": groups}, `context subnets is "vpc-0123456789abcdef0": give ids of subnets`},
		"Group": {map[string]any{"demo": "true", "demo-vpc": "true", "subnets": subnets, "security-groups": "default"},
			`context security-groups is "default": give ids of security groups`},
		"DemoOrNot": {map[string]any{"demo-vpc": "perhaps"}, "context demo-vpc is"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := settingsOf(test.context); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
