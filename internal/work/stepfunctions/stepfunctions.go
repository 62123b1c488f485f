// Package stepfunctions drives operations on AWS: in the background with a state machine of Step Functions,
// and while a request waits by calling the provisioner function directly. It owns the definition of the state
// machine and the payloads of the provisioner. The provisioner decides what a step does.
//
// The package needs the right to start executions of that state machine and to invoke that
// function. It sends ids only.
package stepfunctions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// A Starter is the method of *sfn.Client that an Engine calls. Starting an execution again
// under the name of a running one, with the same input, changes nothing.
type Starter interface {
	StartExecution(ctx context.Context, in *sfn.StartExecutionInput,
		opts ...func(*sfn.Options)) (*sfn.StartExecutionOutput, error)
}

// An Invoker is the method of *lambda.Client that an Engine calls. It blocks until the function
// has answered. The call may be repeated, since a step may be done twice.
type Invoker interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// Options configure an Engine.
type Options struct {
	// StateMachine is the ARN of the state machine.
	StateMachine string
	// Provisioner is the ARN of the function that carries out the steps.
	Provisioner string
	// Sleep waits for d or until ctx is done, and then returns its error.
	// Default: a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Log gets a line for each execution that ends with an error while a request waits for
	// it; nil if Finish is never called.
	Log *slog.Logger
}

// An Engine is a workflow.Engine. It is stateless.
type Engine struct {
	starter Starter
	invoker Invoker
	Options
}

// New returns an engine. It calls nothing.
func New(starter Starter, invoker Invoker, o Options) *Engine {
	if o.Sleep == nil {
		o.Sleep = waiting.For
	}
	return &Engine{starter: starter, invoker: invoker, Options: o}
}

// Start implements workflow.Engine with one StartExecution. If the name was used before, Start succeeds however
// that execution ended: the name holds the attempt, which is recorded before its execution is started.
func (e *Engine) Start(ctx context.Context, ref workflow.Ref) error {
	name := ref.Name()
	_, err := e.starter.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: &e.StateMachine, Name: &name, Input: aws.String(string(InputOf(ref).encode())),
	})
	if err != nil && !errors.As(err, new(*sfntypes.ExecutionAlreadyExists)) {
		return fmt.Errorf("starting execution %q: %w", name, err)
	}
	return nil
}

// Finish implements workflow.Engine with one Invoke, and more if the provisioner answers before
// the operation is settled. If ctx is done first, or the provisioner cannot be invoked, Finish
// adds one StartExecution, so that the operation goes on in the background.
func (e *Engine) Finish(ctx context.Context, ref workflow.Ref) error {
	in := InputOf(ref)
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Hour) // zero would mean that no caller waits
	}
	in.Until = deadline.UTC()
	for ctx.Err() == nil {
		out, err := e.invoke(ctx, in)
		switch {
		case errors.Is(err, errThrown):
			// As in the state machine, a thrown error ends the execution.
			e.Log.ErrorContext(ctx, "execution ended; the reaper will start the operation again", "execution", ref.Name(),
				"error", err)
			return nil
		case err != nil && ctx.Err() == nil:
			return errors.Join(fmt.Errorf("finishing execution %q: %w", ref.Name(), err), e.handOver(ctx, ref))
		case err != nil:
			continue // the time is up
		case out.Settled:
			return nil
		}
		if e.Sleep(ctx, out.Wait()) != nil {
			break
		}
	}
	return e.handOver(ctx, ref)
}

// Inquire asks for facts in the background with one Invoke. Lambda answers as soon as it has accepted the call.
func (e *Engine) Inquire(ctx context.Context, q workflow.Inquiry) error {
	_, err := e.invoker.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &e.Provisioner, InvocationType: lambdatypes.InvocationTypeEvent, Payload: Input{Inquiry: &q}.encode(),
	})
	if err != nil {
		return fmt.Errorf("having the provisioner ask for facts: %w", err)
	}
	return nil
}

// handOver starts an execution that continues the work in the background.
func (e *Engine) handOver(ctx context.Context, ref workflow.Ref) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), workflow.HandOver)
	defer cancel()
	return e.Start(ctx, ref)
}

func (e *Engine) invoke(ctx context.Context, in Input) (Output, error) {
	answer, err := e.invoker.Invoke(ctx, &lambda.InvokeInput{
		FunctionName: &e.Provisioner, InvocationType: lambdatypes.InvocationTypeRequestResponse, Payload: in.encode(),
	})
	if err != nil {
		return Output{}, fmt.Errorf("invoking the provisioner: %w", err)
	}
	if answer.FunctionError != nil {
		var thrown struct {
			Type string `json:"errorType"`
		}
		// An answer without a type is an error as well.
		_ = json.Unmarshal(answer.Payload, &thrown)
		return Output{}, fmt.Errorf("%w: %s %s", errThrown, strings.ToLower(*answer.FunctionError), thrown.Type)
	}
	var out Output
	if err := json.Unmarshal(answer.Payload, &out); err != nil {
		return Output{}, fmt.Errorf("decoding the provisioner's output: %w", err)
	}
	return out, nil
}

// errThrown is an error that the provisioner has thrown. Its text has only the type; the
// provisioner's own log has the rest.
var errThrown = errors.New("provisioner failed")
