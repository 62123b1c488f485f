package main

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
)

// deployedAs is a template with these resources, of a type and what becomes of them, and the value of the output Broker.
func deployedAs(t *testing.T, broker any, resources map[string]string) string {
	t.Helper()
	made := map[string]any{"Function": map[string]string{"Type": "AWS::Lambda::Function"}}
	for kind, deletion := range resources {
		made[strings.ReplaceAll(kind, ":", "")] = map[string]string{"Type": kind, "DeletionPolicy": deletion}
	}
	return jsonOf(t, map[string]any{"Resources": made,
		"Outputs": map[string]any{outputs.Broker: map[string]any{"Value": broker}}})
}

// saidOf is what a stack with a whole state says.
func saidOf() map[string]string {
	all := maps.Clone(said)
	all[outputs.Key], all[outputs.Broker] = "arn:aws:kms:eu-central-1:111122223333:key/k", "identity-of-the-broker"
	return all
}

var ownState = map[string]string{"AWS::DynamoDB::Table": "Retain", "AWS::KMS::Key": "Retain",
	"AWS::SecretsManager::Secret": "RetainExceptOnCreate"}

const takenOver = "-c table=records -c key=arn:aws:kms:eu-central-1:111122223333:key/k -c secret=secret-arn"

// A stack that took over a state is deployed with it again, whether or not whoever deploys remembers.
func TestStateIsNotForgotten(t *testing.T) {
	type stacks = map[string]map[string]string
	whole := stacks{"S": saidOf()}
	own := map[string]any{"Fn::Select": []any{2, "x"}} // the stack's own id
	for name, test := range map[string]struct {
		reason, template string
		stacks           stacks
		want             string
	}{
		"Own": {"a state of its own is in its template", deployedAs(t, own, ownState), whole, ""},
		"Taken": {"all that it took over is told", deployedAs(t, "identity-of-the-broker", nil), whole,
			takenOver + " -c broker=identity-of-the-broker\n"},
		"NoBroker": {"an identity of its own is not", deployedAs(t, own, nil), whole, takenOver + "\n"},
		"Secret": {"nor a secret of its own", deployedAs(t, own, map[string]string{"AWS::SecretsManager::Secret": "Retain"}),
			whole, "-c table=records -c key=arn:aws:kms:eu-central-1:111122223333:key/k\n"},
		"None":   {"what does not exist has none", "", stacks{"Other": saidOf()}, ""},
		"Failed": {"nor has what failed to be made", "", stacks{"S": {}}, ""},
	} {
		var out, diagnostics bytes.Buffer
		deployed := cloud{stacks: test.stacks, template: test.template}
		expect.OK(t, state(t.Context(), deployed, "S", &out, &diagnostics), name+": "+test.reason)
		expect.Same(t, name+": "+test.reason, test.want, out.String())
		if (diagnostics.Len() > 0) != (test.want != "") {
			t.Errorf("%s: whoever deploys is told %q", name+": "+test.reason, diagnostics.String())
		}
	}
	// A stack that cannot be asked is no reason to make a new state.
	away := errors.New("no credentials")
	expect.Fails(t, "without an answer", away, state(t.Context(), cloud{away: away}, "S", io.Discard, io.Discard))
	for _, template := range []string{"Resources: {}", "{}"} {
		err := state(t.Context(), cloud{stacks: whole, template: template}, "S", io.Discard, io.Discard)
		if err == nil || strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: of a template that cannot be read it is said %v", template, err)
		}
	}
}

// Kept prints what the next deployment takes, and names the parts that the removal would delete.
func TestKeptSaysHowToGoOn(t *testing.T) {
	unkept := maps.Clone(ownState)
	unkept["AWS::SecretsManager::Secret"] = ""
	for name, test := range map[string]struct {
		reason    string
		resources map[string]string
		want      string
		err       string
	}{
		"All":   {"it is told with all that stays", ownState, takenOver + " -c broker=identity-of-the-broker", ""},
		"Taken": {"what it took over is not its own to delete", nil, takenOver + " -c broker=identity-of-the-broker", ""},
		"Unkept": {"what the deployed template deletes is not told, and ends the command", unkept,
			"-c table=records -c key=arn:aws:kms:eu-central-1:111122223333:key/k -c broker=identity-of-the-broker",
			"the secret that the platforms log in with, secret-arn. Deploy once more"},
	} {
		var out bytes.Buffer
		err := kept(t.Context(), cloud{template: deployedAs(t, "x", test.resources)}, "S", saidOf(), &out)
		expect.Says(t, name+": "+test.reason, out.String(), `make deploy STACK=S CONTEXT="`+test.want+`"`)
		fails(t, name+": "+test.reason, test.err, err)
	}
}
