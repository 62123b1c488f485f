package stepfunctions

import (
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// Input is what an execution is started with and what the provisioner is
// given. It holds ids only.
type Input struct {
	Token   string `json:"token"`
	Attempt int    `json:"attempt"`
	// Until is when whoever waits for the answer gives up; zero if nobody waits, as in the
	// state machine. To that an unsettled outcome is thrown, as Pending, since each state
	// that it enters is billed: an execution that settles in its first step enters one.
	Until time.Time `json:"until,omitzero"`
	// Inquiry is set in a call that asks for facts, and is of no execution.
	Inquiry *workflow.Inquiry `json:"inquiry,omitempty"`
}

// Pending is the error that the provisioner throws if the execution is to go on later.
// Lambda reports the name of the type and the text of the error. The text is a time,
// since the state machine can read a time out of text, but no number.
type Pending struct{ Until time.Time }

// Error is the time, and nothing else.
func (p Pending) Error() string { return p.Until.UTC().Format(time.RFC3339) }

// errorPending is the name that Lambda gives to Pending.
const errorPending = "Pending"

// Output is what the provisioner answers.
type Output struct {
	// Settled says that there is nothing more to do for this execution.
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

// OutputOf is the output for the outcome of a step. A state machine waits whole
// seconds, and here at least one, so that no fault makes it spin.
func OutputOf(o workflow.Outcome) Output {
	if o.Settled {
		return Output{Settled: true}
	}
	return Output{WaitSeconds: max(1, seconds(o.Wait))}
}

// Answer is what the provisioner answers or throws at this time.
func Answer(in Input, o workflow.Outcome, now time.Time) (Output, error) {
	out := OutputOf(o)
	if in.Until.IsZero() && !out.Settled {
		// A fraction of a second is rounded up here too.
		return Output{}, Pending{Until: now.Add(out.Outcome().Wait + time.Second - 1).Truncate(time.Second)}
	}
	return out, nil
}

// Outcome is the outcome of the step.
func (o Output) Outcome() workflow.Outcome {
	if o.Settled {
		return workflow.Outcome{Settled: true}
	}
	return workflow.Outcome{Wait: time.Duration(max(1, o.WaitSeconds)) * time.Second}
}

// seconds is d rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
