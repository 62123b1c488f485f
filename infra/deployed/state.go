package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/outputs"
)

// Stacks is the part of *cloudformation.Client that this program calls.
type Stacks interface {
	outputs.Stacks
	GetTemplate(ctx context.Context, in *cloudformation.GetTemplateInput,
		opts ...func(*cloudformation.Options)) (*cloudformation.GetTemplateOutput, error)
}

// A part is a resource of a stack that outlives the stack.
type part struct {
	// name is for people; context is the context value that tells a deployment about the part.
	name, context string
	// output is the stack's output that identifies the part, and kind its type in a template.
	output, kind string
}

var parts = []part{
	{"its table", "table", outputs.Table, "AWS::DynamoDB::Table"},
	{"the key of that", "key", outputs.Key, "AWS::KMS::Key"},
	{"the secret that the platforms log in with", "secret", outputs.Secret, "AWS::SecretsManager::Secret"},
}

// A template is the template of a deployed stack.
type template struct {
	Resources map[string]struct{ Type, DeletionPolicy string }
	Outputs   map[string]struct{ Value any }
}

// policy returns the deletion policy of the part, and whether the stack owns the part.
func (t template) policy(p part) (deletion string, owned bool) {
	for _, r := range t.Resources {
		if r.Type == p.kind {
			return r.DeletionPolicy, true
		}
	}
	return "", false
}

func templateOf(ctx context.Context, client Stacks, stack string) (template, error) {
	var t template
	out, err := client.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: &stack})
	if err != nil {
		return t, fmt.Errorf("reading the template of stack %q: %w", stack, err)
	}
	err = json.Unmarshal([]byte(aws.ToString(out.TemplateBody)), &t)
	if err == nil && len(t.Resources) == 0 {
		err = errors.New("it has no resources")
	}
	if err != nil {
		return t, fmt.Errorf("the template of stack %q is none that this program deploys: %w", stack, err)
	}
	return t, nil
}

// state prints the context values with which the stack goes on with its state. A stack that took over
// the state of another one must be told about it at each deployment: otherwise it would get a new table,
// and know nothing. A stack that does not exist yet, or whose first deployment failed, has no state.
func state(ctx context.Context, client Stacks, stack string, out, diagnostics io.Writer) error {
	said, err := outputs.Of(ctx, client, stack)
	if awserr.Is(err, awserr.Absent) || errors.Is(err, outputs.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	t, err := templateOf(ctx, client, stack)
	if err != nil {
		return err
	}
	var told []string
	for _, p := range parts {
		if _, owned := t.policy(p); !owned {
			told = append(told, "-c "+p.context+"="+said[p.output])
		}
	}
	if given, ok := t.Outputs[outputs.Broker].Value.(string); ok {
		told = append(told, "-c broker="+given)
	}
	if len(told) == 0 {
		return nil
	}
	line := strings.Join(told, " ")
	if _, err := fmt.Fprintf(diagnostics, "stack %s goes on with what it took over: %s\n", stack, line); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, line)
	return err
}

// kept prints which parts outlive the stack, and how another stack goes on with them, since the
// stack's outputs disappear with it. It returns an error if a part would be deleted.
func kept(ctx context.Context, client Stacks, stack string, said map[string]string, out io.Writer) error {
	t, err := templateOf(ctx, client, stack)
	if err != nil {
		return err
	}
	var stay, told, lost []string
	for _, p := range parts {
		deletion, owned := t.policy(p)
		if owned && !strings.HasPrefix(deletion, "Retain") {
			lost = append(lost, fmt.Sprintf("%s, %s", p.name, said[p.output]))
			continue
		}
		stay, told = append(stay, p.name), append(told, "-c "+p.context+"="+said[p.output])
	}
	told = append(told, "-c broker="+said[outputs.Broker])
	if _, err := fmt.Fprintf(out, `What stays when stack %[1]s is gone: %[2]s.
A stack that goes on with that knows every instance and every platform again:

  make deploy STACK=%[1]s CONTEXT="%[3]s"

`, stack, strings.Join(stay, ", "), strings.Join(told, " ")); err != nil {
		return err
	}
	if lost != nil {
		return fmt.Errorf("what goes with stack %q, as its last deployment said: %s. Deploy once more by this version to keep it",
			stack,
			strings.Join(lost, "; "))
	}
	return nil
}
