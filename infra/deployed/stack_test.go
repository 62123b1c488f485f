package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
)

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	return string(expect.Get(json.Marshal(v))(t))
}

// A cloud has stacks, each with its outputs, and the template that all are of.
type cloud struct {
	stacks   map[string]map[string]string
	template string
	away     error // which every call meets
}

func (c cloud) DescribeStacks(_ context.Context, in *cloudformation.DescribeStacksInput,
	_ ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	said, ok := c.stacks[*in.StackName]
	if !ok && c.away == nil {
		return nil, &smithy.GenericAPIError{Code: "ValidationError",
			Message: "Stack with id " + *in.StackName + " does not exist"}
	}
	stack := types.Stack{StackName: in.StackName}
	for key, value := range said {
		stack.Outputs = append(stack.Outputs, types.Output{OutputKey: &key, OutputValue: &value})
	}
	return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{stack}}, c.away
}

func (c cloud) GetTemplate(context.Context, *cloudformation.GetTemplateInput,
	...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error) {
	return &cloudformation.GetTemplateOutput{TemplateBody: &c.template}, c.away
}

func TestOutputs(t *testing.T) {
	type stacks = map[string]map[string]string
	without := func(name string) map[string]string {
		all := maps.Clone(said)
		delete(all, name)
		return all
	}
	more, empty := maps.Clone(said), maps.Clone(said)
	more[outputs.Register], more["Unknown"], empty[outputs.Table] = "cf create-service-broker", "x", ""
	for name, test := range map[string]struct {
		reason string
		stacks stacks
		want   map[string]string
		err    string // part of it; empty for none
	}{
		"Whole":   {"a broker's stack says all", stacks{"Longshore": said}, said, ""},
		"More":    {"what it says beside is let through", stacks{"Longshore": more, "Other": nil}, more, ""},
		"NoStack": {"its name is wrong, or the region", stacks{"Other": said}, nil, `stack "Longshore" cannot be read`},
		"Foreign": {"a stack of another kind has no table to be asked", stacks{"Longshore": {"Bucket": "b"}}, nil,
			`stack "Longshore" has no output "ApiId": it is not a broker's, or its last deployment has failed`},
		"Nothing":  {"a first deployment that failed leaves nothing", stacks{"Longshore": nil}, nil, `has no output "ApiId"`},
		"NoAPI":    {"each is needed", stacks{"Longshore": without(outputs.API)}, nil, `has no output "ApiId"`},
		"NoURL":    {"each is needed", stacks{"Longshore": without(outputs.URL)}, nil, `has no output "BrokerUrl"`},
		"NoSecret": {"each is needed", stacks{"Longshore": without(outputs.Secret)}, nil, `has no output "SecretId"`},
		"NoTable":  {"each is needed", stacks{"Longshore": without(outputs.Table)}, nil, `has no output "TableName"`},
		"Empty":    {"a table without a name is none", stacks{"Longshore": empty}, nil, `has no output "TableName"`},
	} {
		got, err := outputs.Of(t.Context(), cloud{stacks: test.stacks}, "Longshore")
		expect.Same(t, name+": "+test.reason, test.want, got)
		fails(t, name+": "+test.reason, test.err, err)
	}
}

// fails requires an error with some words, or none without words.
func fails(t *testing.T, reason, words string, err error) {
	t.Helper()
	if (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
		t.Errorf("%s: error %v, want %q", reason, err, words)
	}
}

// Nothing is asked of AWS for a command line that asks nothing.
func TestMisuse(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Nothing": {"it does not guess", nil, "say what to ask"},
		"Unknown": {"nor take another question for one it knows", []string{"destroy", "--stack", "Longshore"},
			`unknown question "destroy"`},
		"NoStack":  {"a stack is never meant by itself", []string{"kept"}, "--stack NAME is needed"},
		"Flag":     {"a flag may be misspelt", []string{"env", "--stak", "x"}, "-stak"},
		"Argument": {"the name is given by its flag", []string{"kept", "--stack", "Longshore", "Other"}, `["Other"] is too much`},
	} {
		var out bytes.Buffer
		err := run(t.Context(), test.args, &out, io.Discard)
		if _, ok := errors.AsType[misuse](err); !ok {
			t.Errorf("%s: error %v", name+": "+test.reason, err)
		}
		expect.Says(t, name+": "+test.reason, fmt.Sprint(err), test.want, "deployed env --stack NAME")
		expect.Same(t, "what it printed", "", out.String())
	}
}
