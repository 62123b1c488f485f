package main

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/stepfunctions"
)

// stackIdentity is the random part of the stack's id.
const stackIdentity = `{"Fn::Select":[2,{"Fn::Split":["/",{"Ref":"AWS::StackId"}]}]}`

func TestOutputs(t *testing.T) {
	made := must(t, usual)
	got := map[string]string{}
	for name, o := range made.Outputs {
		got[name] = plain(o.Value)
	}
	if url := got[outputs.URL]; strings.HasSuffix(url, "/") ||
		!strings.HasPrefix(url, "https://<APIREST>.execute-api.<AWS::Region>.<AWS::URLSuffix>/") {
		t.Errorf("the URL is %q", url)
	}
	delete(got, outputs.URL)
	delete(got, outputs.Register) // of what follows
	expect.Same(t, "outputs", map[string]string{outputs.API: "<APIREST>", outputs.Secret: "<SecretsPlatform.Id>",
		outputs.Table: "<StateTable>", outputs.Key: "<StateKey.Arn>", outputs.Broker: stackIdentity,
		outputs.StateMachine: "<WorkflowStateMachine>", outputs.DeadLetters: "<DeadLettersQueue>"}, got)
}

// The command is run as an operator would, with commands in the place of those that it calls.
func TestTheRegisterCommand(t *testing.T) {
	made := must(t, usual)
	value := func(name string) string {
		return strings.NewReplacer("<AWS::Region>", "eu-central-1", "<AWS::URLSuffix>", "amazonaws.com", "<APIREST>", "abc123",
			"<SecretsPlatform.Id>", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:Platform-AbC").
			Replace(plain(made.Outputs[name].Value))
	}
	const stubs = `
cf() { printf 'cf'; printf ' [%s]' "$@"; echo; }
aws() { [ "$*" = "$WANT" ] || { echo "aws $*" >&2; exit 1; }; echo '{"username":"cf user","password":"Pass word"}'; }
jq() { sed "s/.*\"${2#.}\":\"\([^\"]*\)\".*/\1/"; }
`
	command := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+stubs+value(outputs.Register))
	command.Env = []string{"PATH=/usr/bin:/bin", "WANT=secretsmanager get-secret-value --region eu-central-1" +
		" --secret-id " + value(outputs.Secret) + " --query SecretString --output text"}
	out := expect.Get(command.CombinedOutput())(t)
	expect.Same(t, "what it calls", "cf [create-service-broker] [longshore] [cf user] [Pass word] ["+value(outputs.URL)+"]\n",
		string(out))
}

// The queue takes dead letters from those alone who may send them.
func TestDeadLetters(t *testing.T) {
	made := must(t, usual)
	senders := map[string]bool{}
	for _, s := range list(at(made.one(t, "AWS::SQS::QueuePolicy", ""), "PolicyDocument", "Statement")) {
		switch {
		case at(s, "Effect") == "Deny":
			if plain(at(s, "Condition", "Bool", "aws:SecureTransport")) != "false" {
				t.Errorf("what is refused: %s", plain(s))
			}
		case plain(at(s, "Principal", "Service")) == "events.amazonaws.com":
			senders[plain(at(s, "Condition", "ArnEquals", "aws:SourceArn"))] = true
		default:
			t.Errorf("somebody else may write: %s", plain(s))
		}
	}
	expect.Same(t, "rules that may write", map[string]bool{"<DeadLettersAbandoned.Arn>": true, "<ScheduleRule.Arn>": true},
		senders)
}

// A reference to the secret would be replaced by the secret itself, wherever it stands.
func TestThePasswordStandsNowhere(t *testing.T) {
	for name, variant := range variants {
		text := string(expect.Get(json.Marshal(must(t, variant)))(t))
		expect.Never(t, name, text, "{{resolve:", "SecretString:")
	}
}

// The stack deploys the whole definition, for the deployed provisioner, with limits that hold.
// Package stepfunctions tests what the definition does.
func TestTheStateMachineIsTheWorkflows(t *testing.T) {
	made := must(t, usual)
	machine := made.one(t, "AWS::StepFunctions::StateMachine", "")
	want := stepfunctions.Definition("<ProvisionerFunction.Arn>", stepLimit, executionLimit)
	expect.Same(t, "definition", want, plain(machine["DefinitionString"]))
	// A week is what stays within an execution's history.
	if executionLimit > 7*24*time.Hour {
		t.Errorf("an execution may take %v", executionLimit)
	}
}

func TestNothingOfAnExecutionIsLogged(t *testing.T) {
	for name, variant := range variants {
		machine := must(t, variant).one(t, "AWS::StepFunctions::StateMachine", "")
		for member := range machine {
			if !slices.Contains([]string{"DefinitionString", "RoleArn", "StateMachineType", "TracingConfiguration"}, member) {
				t.Errorf("%s: the state machine has %s: %s", name, member, plain(machine[member]))
			}
		}
	}
}
