package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/policytest"
)

// awsTargets are another account, and another region of it.
const awsTargets = `{"targets":{"big":{"account":"222233334444","region":"eu-west-1","external_id":"ours",` +
	`"role":"arn:aws:iam::222233334444:role/longshore/broker"}}}`

// serving are choices with the provider that makes AWS services.
var serving = map[string]any{
	"demo": "false", app.ProviderCloudFormation: "true", contextTargets: awsTargets,
	ContextAlarmTopic: "arn:aws:sns:eu-central-1:111122223333:operators",
}

var servingStack = sync.OnceValues(func() (template, error) { return synthesized(serving) })

// policyOf is what a role may do, in the words of package iampolicy.
func policyOf(t *testing.T, made template, role string) (d iampolicy.Document) {
	t.Helper()
	for _, p := range list(made.one(t, "AWS::IAM::Role", role)["Policies"]) {
		raw := expect.Get(json.Marshal(inPlace(at(p, "PolicyDocument"))))(t)
		one := expect.Get(iampolicy.Parse(raw))(t, role, string(raw))
		d.Version, d.Statement = one.Version, append(d.Statement, one.Statement...)
	}
	return d
}

// inPlace puts an account into what refers to one, as plain writes it.
func inPlace(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if len(v) == 1 && (v["Ref"] != nil || v["Fn::GetAtt"] != nil || v["Fn::Join"] != nil) {
			place := strings.NewReplacer("<AWS::Partition>", "aws", "<AWS::Region>", "eu-central-1", "<AWS::AccountId>",
				"111122223333")
			return place.Replace(plain(v))
		}
		out := map[string]any{}
		for key, part := range v {
			out[key] = inPlace(part)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, part := range v {
			out[i] = inPlace(part)
		}
		return out
	}
	return value
}

// Only the provisioner makes services, only the reaper lists them beside it, and the
// API, which is what strangers reach, can do nothing of it.
func TestWhoMakesServices(t *testing.T) {
	made := must(t, servingStack)
	scope := plan.ScopeOf("Longshore")
	here := plan.Location{Partition: "aws", Account: "111122223333", Region: "eu-central-1"}
	role, bound := scope.ServiceRoleARN(here, "s3"), scope.BoundaryARN(here, "s3")
	user := "arn:aws:iam::111122223333:user" + scope.Path() + "a/b/" + string(scope) + "-b-a"
	stack := "arn:aws:cloudformation:eu-central-1:111122223333:stack/" + string(scope) + "-i-a/*"
	calls := map[string]policytest.Request{
		"make": {Action: "cloudformation:CreateStack", Resource: stack,
			Context: map[string][]string{"cloudformation:RoleArn": {role}}},
		"pass": {Action: "iam:PassRole", Resource: role,
			Context: map[string][]string{"iam:PassedToService": {"cloudformation.amazonaws.com"}}},
		"user": {Action: "iam:CreateUser", Resource: user, Context: map[string][]string{"iam:PermissionsBoundary": {bound}}},
		"key":  {Action: "iam:CreateAccessKey", Resource: user},
		"list": {Action: "iam:ListUsers", Resource: "*"},
		"take": {Action: "sts:AssumeRole", Resource: "arn:aws:iam::222233334444:role/longshore/broker"},
		// No function may do these.
		"alone": {Action: "cloudformation:CreateStack", Resource: stack},
		"free":  {Action: "iam:CreateUser", Resource: user},
		"wider": {Action: "iam:CreatePolicyVersion", Resource: bound},
		"admin": {Action: "sts:AssumeRole", Resource: "arn:aws:iam::111122223333:role/Admin"},
	}
	for function, want := range map[string][]string{
		"ProvisionerFunctionRole": {"key", "list", "make", "pass", "take", "user"}, "ReaperFunctionRole": {"list", "take"},
		"ApiFunctionRole": {}, "WorkflowRole": {},
	} {
		d := policyOf(t, made, function)
		may := slices.DeleteFunc(slices.Sorted(maps.Keys(calls)),
			func(name string) bool { return !policytest.Allows(calls[name], []iampolicy.Document{d}) })
		expect.Same(t, function+" may", want, may)
		raw := expect.Get(json.Marshal(d))(t)
		const most = 10_240 // which IAM takes inside a role
		if len(raw) > most*9/10 {
			t.Errorf("%s has a policy of %d bytes, and %d is the end", function, len(raw), most)
		}
	}
	for _, g := range grantsOf(t, made, "ApiFunctionRole") {
		if slices.Contains([]string{"iam", "cloudformation", "sts", "s3", "tag"}, g.service()) {
			t.Errorf("the API may %s", g)
		}
	}
}

// The functions that call the provider know the targets, and no other does.
func TestTargetsOfAStack(t *testing.T) {
	made := must(t, servingStack)
	for function, want := range map[string]bool{"Provisioner": true, "Reaper": true, "Api": false} {
		told := variables(made.one(t, "AWS::Lambda::Function", function+"Function"))[app.EnvAWSTargets]
		expect.Same(t, function+" is told "+told, want, strings.Contains(told, "222233334444"))
	}
}

func TestServicesSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "targets.json")
	expect.OK(t, os.WriteFile(file, []byte(awsTargets), 0o600))
	role := []string{"arn:aws:iam::222233334444:role/longshore/broker"}
	with := func(state, targets string) map[string]any {
		return map[string]any{app.ProviderCloudFormation: state, contextTargets: targets}
	}
	for name, test := range map[string]struct {
		context map[string]any
		roles   []string
	}{
		"None":       {map[string]any{app.ProviderCloudFormation: "true"}, nil},
		"JSON":       {with("true", awsTargets), role},
		"File":       {with("withdrawn", file), role},
		"OnEmulator": {map[string]any{app.ProviderCloudFormation: "true", contextEmulator: emulatorMiniStack}, nil},
	} {
		s := expect.Get(settingsOf(test.context))(t, name)
		// Package account tests what this leaves out.
		expect.Same(t, name+": it is for an emulator", name == "OnEmulator", s.Services.Emulated)
		expect.Same(t, name+": roles", test.roles, s.Services.Access)
	}
	refused(t, map[string]refusal{
		"Broken":   {with("true", `{"target":{}}`), contextTargets},
		"NoFile":   {with("true", "gone.json"), contextTargets},
		"Off":      {with("false", awsTargets), "too"},
		"Emulator": {map[string]any{app.ProviderCloudFormation: "true", contextEmulator: "moto"}, contextEmulator},
	})
}
