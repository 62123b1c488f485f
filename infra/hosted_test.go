package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/app/providers"
	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/hosted/secrets"
	"github.com/longshore/longshore/internal/test/expect"
)

const (
	serverSecret = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:pg/main-AbC123"
	otherSecret  = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:pg/big-DeF456"
	serverKey    = "arn:aws:kms:eu-central-1:111122223333:key/0a1b2c3d"
)

// hostedInside are choices with a provider on shared servers: two of them, whose secrets are under a key of the operator's.
var hostedInside = map[string]any{
	"demo": "false", "postgres": "true", "postgres-secrets": "default=" + serverSecret + ", big=" + otherSecret,
	"postgres-secret-key": serverKey, ContextSubnets: "subnet-0123456789abcdef0",
	ContextSecurityGroups: "sg-0123456789abcdef0", ContextAlarmTopic: "arn:aws:sns:eu-central-1:111122223333:operators",
}

var hostedStack = sync.OnceValues(func() (template, error) { return synthesized(hostedInside) })

// Who has the calls made may read the servers' secrets, those alone, and their key by
// way of Secrets Manager; the function that makes them is told of none.
func TestServersOfAStack(t *testing.T) {
	made := must(t, hostedStack)
	through := "kms:EncryptionContext:SecretARN StringEquals " + otherSecret + " " + serverSecret +
		" and kms:ViaService StringEquals secretsmanager.<AWS::Region>.<AWS::URLSuffix>"
	reads := []string{
		"kms:Decrypt on " + serverKey + " if " + through,
		"secretsmanager:GetSecretValue on " + otherSecret, "secretsmanager:GetSecretValue on " + serverSecret,
	}
	for _, id := range made.of("AWS::IAM::Role") {
		role := unhashed(id)
		if role == "CallsFunctionRole" {
			continue // it may do nothing: another test says so of each that there is
		}
		var may []string
		for _, g := range grantsOf(t, made, role) {
			if strings.Contains(g.String(), "111122223333") {
				may = append(may, g.String())
			}
		}
		slices.Sort(may)
		expect.Same(t, "how "+role+" reads them",
			map[string][]string{"ProvisionerFunctionRole": reads, "ReaperFunctionRole": reads}[role], may)
	}
	secrets := "big=" + otherSecret + ",default=" + serverSecret
	for function, told := range map[string]string{"Provisioner": secrets, "Reaper": secrets, "Calls": "", "Api": ""} {
		p := made.one(t, "AWS::Lambda::Function", function+"Function")
		expect.Same(t, function+" is told", told, variables(p)[providers.Servers()["postgres"].EnvSecrets()])
	}
	// Operators' commands find the secrets by the outputs.
	expect.Same(t, "the outputs", []any{secrets, "postgres"},
		[]any{made.Outputs[outputs.Secrets("postgres")].Value, made.Outputs[outputs.InVPC].Value})
	noRights(t, made)
}

func TestServerSettings(t *testing.T) {
	whole := func(change map[string]any) map[string]any {
		context := map[string]any{"postgres": "true", ContextSubnets: "subnet-0123456789abcdef0",
			ContextSecurityGroups: "sg-0123456789abcdef0"}
		maps.Copy(context, change)
		return context
	}
	for name := range providers.Servers() { // each alone
		context := whole(map[string]any{"postgres": "false", name + "-secret": serverSecret})
		context[name] = "true"
		given, err := settingsOf(context)
		if err != nil || given.Servers[name].Secrets.String() != "default="+serverSecret || len(given.Servers) != 1 {
			t.Errorf("%s alone: %v %v", name, given.Servers, err)
		}
	}
	refused(t, map[string]refusal{
		"None": {whole(nil), "context postgres-secret: give the ARN"},
		"Both": {whole(map[string]any{"postgres-secret": serverSecret, "postgres-secrets": "a=" + serverSecret}),
			"give one of them"},
		"NotWhole": {whole(map[string]any{"postgres-secret": "pg/main"}), "context postgres-secret"},
		"Names":    {whole(map[string]any{"postgres-secrets": "A=" + serverSecret}), "names of lower-case letters"},
		"Twice":    {whole(map[string]any{"postgres-secrets": "a=" + serverSecret + ",a=" + otherSecret}), `names "a" twice`},
		"Key":      {whole(map[string]any{"postgres-secret": serverSecret, "postgres-secret-key": "alias/x"}), "ARNs of keys"},
		"Off":      {map[string]any{"postgres-secret": serverSecret}, "give postgres=true too"},
		"NoVPC": {map[string]any{"postgres": "true", "postgres-secret": serverSecret},
			"the provider postgres is called inside a VPC"},
	})
}

// A refusal is a context, and words of the error that it meets.
type refusal struct {
	context map[string]any
	want    string
}

func refused(t *testing.T, all map[string]refusal) {
	t.Helper()
	for name, test := range all {
		expect.Says(t, name, fmt.Sprint(expect.Err(settingsOf(test.context))), test.want)
	}
}

// A plan of a server that the stack does not have is found at deploy.
func TestPlansNameServersThatThereAre(t *testing.T) {
	plans := func(target any) []catalog.Offering {
		mine := catalog.Plan{Name: "p", Unpublished: catalog.Unpublished{Settings: map[string]any{"target": target}}}
		return []catalog.Offering{
			{Name: "mine", Provider: "postgres", Plans: []catalog.Plan{mine}},
			{Name: "demo", Provider: "demo", Plans: []catalog.Plan{{Name: "sync"}}},
		}
	}
	for text, bad := range map[string]map[any]bool{
		"default=" + serverSecret: {nil: false, "default": false, "big": true},
		"big=" + serverSecret:     {nil: true, "big": false},
	} {
		parsed := expect.Get(secrets.Parse("context", text))(t)
		s := Settings{Servers: map[string]Servers{"postgres": {Secrets: parsed}}}
		for target, want := range bad {
			if err := s.checkTargets(plans(target)); (err != nil) != want ||
				want && !strings.Contains(err.Error(), "-c postgres-secrets=") {
				t.Errorf("%s, target %v: %v", text, target, err)
			}
		}
	}
}
