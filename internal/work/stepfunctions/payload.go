package stepfunctions

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
)

// Input is the input of an execution and of the provisioner. It holds ids only.
type Input struct {
	Token   string `json:"token"`
	Attempt int    `json:"attempt"`
	// Until is when the caller stops waiting for the answer; zero if no caller waits, as in the
	// state machine. The state machine gets an unsettled outcome as an error, Pending, because each
	// state that it enters is billed: an execution that settles in its first step enters only one.
	Until time.Time `json:"until,omitzero"`
	// Inquiry is set in a call that asks for facts; such a call belongs to no execution.
	Inquiry *workflow.Inquiry `json:"inquiry,omitempty"`
}

// Pending is the error that the provisioner throws if the execution is to go on later. Lambda
// reports the name of the type, which the state machine catches, and the text of the error. The
// text is a time because the state machine can read a time from text, but not a number.
type Pending struct{ Until time.Time }

// Error returns the time, and nothing else.
func (p Pending) Error() string { return p.Until.UTC().Format(time.RFC3339) }

// Output is the provisioner's answer.
type Output struct {
	// Settled says that there is nothing more to do for this execution.
	Settled bool `json:"settled"`
	// WaitSeconds is how long to wait before the next step.
	WaitSeconds int `json:"wait_seconds"`
}

// InputOf returns the input for one step of the execution.
func InputOf(ref workflow.Ref) Input {
	return Input{Token: ref.Token.String(), Attempt: ref.Attempt}
}

// encode returns the input as JSON. Ids, numbers and times of a clock can always be encoded.
func (i Input) encode() []byte {
	raw, _ := json.Marshal(i)
	return raw
}

// Ref returns the execution that the input belongs to.
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

// OutputOf returns the output for the outcome of a step. A state machine waits whole seconds;
// the wait is at least one, so that no fault makes the state machine spin.
func OutputOf(o workflow.Outcome) Output {
	if o.Settled {
		return Output{Settled: true}
	}
	return Output{WaitSeconds: max(1, seconds(o.Wait))}
}

// Answer returns the provisioner's answer at this time, or the error that it throws.
func Answer(in Input, o workflow.Outcome, now time.Time) (Output, error) {
	out := OutputOf(o)
	if in.Until.IsZero() && !out.Settled {
		// Fractions of a second are rounded up here too.
		return Output{}, Pending{Until: now.Add(out.Wait() + time.Second - 1).Truncate(time.Second)}
	}
	return out, nil
}

// Wait returns how long to wait before the next step.
func (o Output) Wait() time.Duration { return time.Duration(max(1, o.WaitSeconds)) * time.Second }

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }
