package main

import (
	"fmt"
	"maps"
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
	made := must(t, called)
	p, usual := made.one(t, "AWS::Lambda::Function", "CallsFunction"), made.one(t, "AWS::Lambda::Function", "ProvisionerFunction")
	for name, want := range map[string]any{
		"VpcConfig": map[string]any{
			"SubnetIds": []any{"subnet-0123456789abcdef0", "subnet-01234567"}, "SecurityGroupIds": []any{"sg-0123456789abcdef0"},
		},
		"Code": usual["Code"], "Timeout": app.CallsTimeout.Seconds(), "TracingConfig": nil, "DeadLetterConfig": nil,
	} {
		expect.Same(t, name, want, p[name])
	}
	told := variables(p)
	for _, name := range []string{app.EnvStack, app.EnvBroker, envAccount} { // of all functions
		delete(told, name)
	}
	expect.Same(t, "what it is told", map[string]string{app.EnvRole: app.RoleCalls, app.EnvInVPC: "demo"}, told)
	for _, function := range []string{"ProvisionerFunction", "ReaperFunction"} {
		told := variables(made.one(t, "AWS::Lambda::Function", function))
		expect.Same(t, function+" is told", []string{"<CallsFunction.Arn>", "demo", ""},
			[]string{told[app.EnvCalls], told[app.EnvInVPC], told[app.EnvRole]})
	}
	expect.Same(t, "the outputs tell operators' commands where to call", []any{"<CallsFunction.Arn>", "demo"},
		[]any{plain(made.Outputs[outputs.Calls].Value), made.Outputs[outputs.InVPC].Value})
}

func TestTheFunctionInsideTheVPCHasNoRights(t *testing.T) { noRights(t, must(t, called)) }

// noRights requires that the function writes its log, Lambda manages its network interfaces, and the program may do nothing
// at all: what it is allowed for Lambda, it is denied.
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
	for id, p := range made.all("AWS::Lambda::Permission") {
		expect.Never(t, id, plain(p["FunctionName"]), "CallsFunction")
	}
}

// Where no provider needs a VPC there is no function for it, and nothing of it. TestEnvironment has all that functions are told.
func TestNoVPCUnlessAProviderNeedsOne(t *testing.T) {
	for name, variant := range variants {
		made := must(t, variant)
		for id := range made.Resources {
			expect.Never(t, name, id, "Calls")
		}
		expect.Same(t, name+": the outputs that tell of a function", []any{nil, nil},
			[]any{made.Outputs[outputs.Calls].Value, made.Outputs[outputs.InVPC].Value})
	}
}

func TestVPCSettings(t *testing.T) {
	const subnets, groups = "subnet-0123456789abcdef0", "sg-0123456789abcdef0"
	inside := func(subnets, groups string) map[string]any {
		context := map[string]any{"demo": "true", "demo-vpc": "true", "subnets": subnets, "security-groups": groups}
		maps.DeleteFunc(context, func(_ string, value any) bool { return value == "" })
		return context
	}
	refused(t, map[string]refusal{
		"NoSubnets": {inside("", groups), "context subnets and security-groups: give both, since the provider demo"},
		"NoGroups":  {inside(subnets, ""), "context subnets and security-groups: give both, since the provider demo"},
		"NotNeeded": {map[string]any{"subnets": subnets, "security-groups": groups},
			"leave them out, since no provider is called inside a VPC"},
		"Subnet": {inside(subnets+",vpc-0123456789abcdef0", groups),
			`context subnets is "vpc-0123456789abcdef0": give ids of subnets`},
		"Group":     {inside(subnets, "default"), `context security-groups is "default": give ids of security groups`},
		"DemoOrNot": {map[string]any{"demo-vpc": "perhaps"}, "context demo-vpc is"},
	})
}
