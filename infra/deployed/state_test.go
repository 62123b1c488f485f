package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
)

// a cloud has one stack, with what it says and the template that it is of.
type cloud struct {
	stacks
	template string
}

func (c cloud) DescribeStacks(ctx context.Context, in *cloudformation.DescribeStacksInput,
	opts ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	if _, ok := c.stacks[*in.StackName]; !ok {
		return nil, &smithy.GenericAPIError{Code: "ValidationError",
			Message: "Stack with id " + *in.StackName + " does not exist"}
	}
	return c.stacks.DescribeStacks(ctx, in, opts...)
}

func (c cloud) GetTemplate(context.Context, *cloudformation.GetTemplateInput,
	...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error) {
	return &cloudformation.GetTemplateOutput{TemplateBody: &c.template}, nil
}

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

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw := expect.Get(json.Marshal(v))(t)
	return string(raw)
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
	own := map[string]any{"Fn::Select": []any{2, "x"}} // the stack's own id
	tests := map[string]struct {
		reason, template string
		stacks           stacks
		want             string
	}{
		"Own": {"a state of its own is in its template", deployedAs(t, own, ownState), stacks{"S": saidOf()}, ""},
		"Taken": {"all that it took over is told", deployedAs(t, "identity-of-the-broker", nil), stacks{"S": saidOf()},
			takenOver + " -c broker=identity-of-the-broker\n"},
		"NoBroker": {"an identity of its own is not", deployedAs(t, own, nil), stacks{"S": saidOf()}, takenOver + "\n"},
		"Secret": {
			"nor a secret of its own", deployedAs(t, own, map[string]string{"AWS::SecretsManager::Secret": "Retain"}),
			stacks{"S": saidOf()}, "-c table=records -c key=arn:aws:kms:eu-central-1:111122223333:key/k\n",
		},
		"None":   {"what does not exist has none", "", stacks{"Other": saidOf()}, ""},
		"Failed": {"nor has what failed to be made", "", stacks{"S": {}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, diagnostics bytes.Buffer
			expect.OK(t, state(t.Context(), cloud{test.stacks, test.template}, "S", &out, &diagnostics), test.reason)
			expect.Same(t, test.reason, test.want, out.String())
			if (diagnostics.Len() > 0) != (test.want != "") {
				t.Errorf("%s: whoever deploys is told %q", test.reason, diagnostics.String())
			}
		})
	}
	// A stack that cannot be asked is no reason to make a new state.
	away := errors.New("no credentials")
	if err := state(t.Context(), awayStacks{away}, "S", &bytes.Buffer{}, &bytes.Buffer{}); !errors.Is(err, away) {
		t.Errorf("error %v, want %v", err, away)
	}
	for _, template := range []string{"Resources: {}", "{}"} {
		err := state(t.Context(), cloud{stacks{"S": saidOf()}, template}, "S", &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil {
			t.Errorf("%s: a template that cannot be read is taken for one without a state", template)
		} else if strings.Contains(err.Error(), "%!") {
			t.Errorf("%s: it is said by %q", template, err)
		}
	}
}

type awayStacks struct{ err error }

func (a awayStacks) DescribeStacks(context.Context, *cloudformation.DescribeStacksInput,
	...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	return nil, a.err
}

func (a awayStacks) GetTemplate(context.Context, *cloudformation.GetTemplateInput,
	...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error) {
	return &cloudformation.GetTemplateOutput{TemplateBody: new("{}")}, a.err
}

// Kept prints what the next deployment takes, and names the parts that the removal would delete.
func TestKeptSaysHowToGoOn(t *testing.T) {
	unkept := maps.Clone(ownState)
	unkept["AWS::SecretsManager::Secret"] = ""
	tests := map[string]struct {
		reason    string
		said      map[string]string
		resources map[string]string
		want      string
		err       string
	}{
		"All": {"it is told with all that stays", saidOf(), ownState, takenOver + " -c broker=identity-of-the-broker", ""},
		"Taken": {"what it took over is not its own to delete", saidOf(), nil,
			takenOver + " -c broker=identity-of-the-broker", ""},
		"Unkept": {
			"what the deployed template deletes is not told, and ends the command", saidOf(), unkept,
			"-c table=records -c key=arn:aws:kms:eu-central-1:111122223333:key/k -c broker=identity-of-the-broker",
			"the secret that the platforms log in with, secret-arn. Deploy once more",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := kept(t.Context(), cloud{template: deployedAs(t, "x", test.resources)}, "S", test.said, &out)
			if want := `make deploy STACK=S CONTEXT="` + test.want + `"`; !strings.Contains(out.String(), want) {
				t.Errorf("%s: want %s in\n%s", test.reason, want, out.String())
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.err)
			}
		})
	}
}
