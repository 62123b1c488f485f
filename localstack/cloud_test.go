//go:build deployed

package localstack_test

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// A cloud is the stack seen from the other side, where faults are made.
type cloud struct {
	lambda    *lambda.Client
	sfn       *sfn.Client
	sqs       *sqs.Client
	dynamo    *dynamodb.Client
	endpoint  string
	functions map[string]string // physical names, by the functions' folders
	machine   string            // ARN
	table     string
	letters   string // URL of the dead letters' queue
}

// theStack is the one that make has deployed.
var theStack = cmp.Or(os.Getenv("STACK"), "Longshore")

func resourcesOf(ctx context.Context, cfg aws.Config, stack string) ([]cfntypes.StackResource, error) {
	found, err := cloudformation.NewFromConfig(cfg).DescribeStackResources(ctx,
		&cloudformation.DescribeStackResourcesInput{StackName: &stack})
	if err != nil {
		return nil, err
	}
	return found.StackResources, nil
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	cfg := emulator.Config(t)
	c := &cloud{
		lambda: lambda.NewFromConfig(cfg), sfn: sfn.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg),
		dynamo: dynamodb.NewFromConfig(cfg), endpoint: *cfg.BaseEndpoint, functions: map[string]string{},
	}
	for _, r := range expect.Get(resourcesOf(t.Context(), cfg, theStack))(t) {
		id := aws.ToString(r.PhysicalResourceId)
		switch aws.ToString(r.ResourceType) {
		case "AWS::Lambda::Function":
			for _, name := range []string{"api", "provisioner", "reaper"} {
				if strings.HasPrefix(strings.ToLower(*r.LogicalResourceId), name+"function") {
					c.functions[name] = id
				}
			}
		case "AWS::StepFunctions::StateMachine":
			c.machine = id
		case "AWS::DynamoDB::Table":
			c.table = id
		case "AWS::SQS::Queue":
			c.letters = id
		}
	}
	if len(c.functions) != 3 || c.machine == "" || c.letters == "" || c.table == "" {
		t.Fatalf("stack %q has functions %v, state machine %q, dead letters %q and table %q", theStack, c.functions,
			c.machine, c.letters, c.table)
	}
	return c
}

func (c *cloud) configuration(t *testing.T, function string) *lambda.GetFunctionConfigurationOutput {
	t.Helper()
	return expect.Get(c.lambda.GetFunctionConfiguration(t.Context(),
		&lambda.GetFunctionConfigurationInput{FunctionName: aws.String(c.functions[function])}))(t, function)
}

func (c *cloud) environment(t *testing.T, function string) map[string]string {
	t.Helper()
	return c.configuration(t, function).Environment.Variables
}

// with changes a function's settings, and gives what undoes that. A timeout of zero leaves it as it is.
func (c *cloud) with(t *testing.T, function string, timeout time.Duration, change map[string]string) (undo func()) {
	t.Helper()
	name, was := c.functions[function], c.configuration(t, function)
	variables := maps.Clone(was.Environment.Variables)
	maps.Copy(variables, change)
	apply := func(ctx context.Context, variables map[string]string, seconds *int32) {
		t.Helper()
		_, err := c.lambda.UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{
			FunctionName: &name, Environment: &types.Environment{Variables: variables}, Timeout: seconds,
		})
		if err == nil {
			err = lambda.NewFunctionUpdatedV2Waiter(c.lambda).Wait(ctx,
				&lambda.GetFunctionInput{FunctionName: &name}, 5*time.Minute)
		}
		expect.OK(t, err, "changing", function)
	}
	seconds := was.Timeout
	if timeout != 0 {
		seconds = aws.Int32(int32(timeout / time.Second))
	}
	apply(t.Context(), variables, seconds)
	undone := false // sync.OnceFunc would panic where apply ends the test
	undo = func() {
		if !undone {
			undone = true
			apply(context.WithoutCancel(t.Context()), was.Environment.Variables, was.Timeout)
		}
	}
	t.Cleanup(undo)
	return undo
}

// records is the table.
func (c *cloud) records() *dynamo.Store {
	return dynamo.New(c.dynamo, c.table)
}

// execution is the state of the execution that first drove an operation; empty if there is none.
func (c *cloud) execution(t *testing.T, operation string) string {
	t.Helper()
	out, err := c.sfn.DescribeExecution(t.Context(),
		&sfn.DescribeExecutionInput{ExecutionArn: aws.String(c.executionARN(t, operation))})
	if isAbsent(err) {
		return ""
	}
	expect.OK(t, err, operation)
	return string(out.Status)
}

// waits reports whether the execution of the operation has come to a pause.
func (c *cloud) waits(t *testing.T, operation string) bool {
	t.Helper()
	history, err := c.sfn.GetExecutionHistory(t.Context(),
		&sfn.GetExecutionHistoryInput{ExecutionArn: aws.String(c.executionARN(t, operation))})
	if isAbsent(err) {
		return false
	}
	expect.OK(t, err, operation)
	return slices.ContainsFunc(history.Events, func(e sfntypes.HistoryEvent) bool {
		return e.Type == sfntypes.HistoryEventTypeWaitStateEntered
	})
}

// isAbsent reports whether there is no such execution.
func isAbsent(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ExecutionDoesNotExist")
}

func (c *cloud) executionARN(t *testing.T, operation string) string {
	t.Helper()
	return strings.Replace(c.machine, ":stateMachine:", ":execution:", 1) + ":" + lifeOf(t, operation) + "-1"
}

// eventually waits until something is so. It looks again after a quarter of the time that it has waited, and each two seconds
// at least: a look takes the emulator as much work as the step that is waited for, and the other tests wait for that.
func eventually(t *testing.T, what string, limit time.Duration, is func() bool) {
	t.Helper()
	pause, deadline := 50*time.Millisecond, time.Now().Add(limit)
	for ; !is(); pause = min(pause*5/4, 2*time.Second) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", limit, what)
		}
		time.Sleep(pause)
	}
}
