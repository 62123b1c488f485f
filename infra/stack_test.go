package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
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
