package stepfunctions

import (
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/workflow"
)

// Input is what an execution is started with and what the provisioner is
// given. It holds ids only.
type Input struct {
	Token   string `json:"token"`
	Attempt int    `json:"attempt"`
	// Until is when whoever waits for the answer gives up; zero if nobody waits,
	// as in the state machine.
	Until time.Time `json:"until,omitzero"`
}

// Output is what the provisioner answers.
type Output struct {
	// Settled: there is nothing more to do for this execution.
	Settled bool `json:"settled"`
	// WaitSeconds is how long to wait before the next step.
	WaitSeconds int `json:"wait_seconds"`
}

// InputOf is the input for one step of the execution.
func InputOf(ref workflow.Ref) Input {
	return Input{Token: ref.Token.String(), Attempt: ref.Attempt}
}

// Ref is the execution that the input is of.
func (i Input) Ref() (workflow.Ref, error) {
	token, err := lifecycle.ParseToken(i.Token)
	if err != nil {
		return workflow.Ref{}, fmt.Errorf("reading the input: %w", err)
	}
	if i.Attempt < 1 {
		return workflow.Ref{}, fmt.Errorf("reading the input: attempt is %d, not 1 or more", i.Attempt)
	}
	return workflow.Ref{Token: token, Attempt: i.Attempt}, nil
}

// OutputOf is the output for what a step tells its engine. A state machine
// waits whole seconds, and here one at least, so that no fault can make it
// spin.
func OutputOf(o workflow.Outcome) Output {
	if o.Settled {
		return Output{Settled: true}
	}
	return Output{WaitSeconds: max(1, seconds(o.Wait))}
}

// Outcome is what the step told.
func (o Output) Outcome() workflow.Outcome {
	if o.Settled {
		return workflow.Outcome{Settled: true}
	}
	return workflow.Outcome{Wait: time.Duration(max(1, o.WaitSeconds)) * time.Second}
}

// seconds is d rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
