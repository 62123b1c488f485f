package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/longshore/longshore/internal/base/outputs"
	"github.com/longshore/longshore/internal/test/expect"
)

func jsonText(t *testing.T, s string) string {
	t.Helper()
	text := expect.Get(json.Marshal(s))(t)
	return string(text)
}

var errNoStack = errors.New("ValidationError: Stack with id Missing does not exist")

// stacks are the outputs of stacks, by their names.
type stacks map[string]map[string]string

func (s stacks) DescribeStacks(_ context.Context, in *cloudformation.DescribeStacksInput,
	_ ...func(*cloudformation.Options)) (*cloudformation.DescribeStacksOutput, error) {
	name := aws.ToString(in.StackName)
	said, ok := s[name]
	if !ok {
		return nil, errNoStack
	}
	stack := types.Stack{StackName: &name}
	for key, value := range said {
		stack.Outputs = append(stack.Outputs, types.Output{OutputKey: &key, OutputValue: &value})
	}
	return &cloudformation.DescribeStacksOutput{Stacks: []types.Stack{stack}}, nil
}

func TestOutputs(t *testing.T) {
	more := maps.Clone(said)
	more[outputs.Register], more["Unknown"] = "cf create-service-broker", "x"
	without := func(name string) map[string]string {
		some := maps.Clone(said)
		delete(some, name)
		return some
	}
	empty := maps.Clone(said)
	empty[outputs.Table] = ""
	tests := map[string]struct {
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
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := outputs.Of(t.Context(), test.stacks, "Longshore")
			expect.Same(t, test.reason, test.want, got)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.err)
			}
		})
	}
}

// Nothing is asked of AWS for a command line that asks nothing.
func TestMisuse(t *testing.T) {
	tests := map[string]struct {
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
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), test.args, &out, io.Discard)
			var wrong misuse
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), "deployed env --stack NAME") {
				t.Errorf("%s: error %v, want %q and how to ask", test.reason, err, test.want)
			}
			if out.Len() > 0 {
				t.Errorf("%s: it printed %q", test.reason, out.String())
			}
		})
	}
}
