package stepfunctions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// The states of the state machine.
const (
	StateStep      = "Step"      // one call of the provisioner
	StateChoice    = "Settled?"  // whether that was the last
	StateWait      = "Wait"      // as long as the provisioner said
	StateDone      = "Done"      // it was
	StateAbandoned = "Abandoned" // the execution has failed, the operation has not
)

// EventsOfStep is how many events one round of Step, Settled? and Wait leaves
// in an execution's history, which AWS ends at 25 000: five of the function,
// two of each of the others.
const EventsOfStep = 9

// Definition is the state machine in Amazon States Language. The provisioner
// is a function's ARN. StepTimeout is longer than that function's own timeout;
// limit ends an execution that outlives every operation.
//
// All judgement is the provisioner's. What is transient in calling it is
// repeated; whatever else is thrown ends the execution, and only that: the
// operation is still due, and the reaper drives it again, by another attempt.
func Definition(provisioner string, stepTimeout, limit time.Duration) string {
	type object = map[string]any
	definition := object{
		"Comment":        "Drives one operation: a step, and again after a while, until it is settled.",
		"StartAt":        StateStep,
		"TimeoutSeconds": seconds(limit),
		"States": object{
			StateStep: object{
				"Type":           "Task",
				"Resource":       provisioner,
				"Parameters":     object{"token.$": "$.token", "attempt.$": "$.attempt"},
				"ResultPath":     "$.outcome",
				"TimeoutSeconds": seconds(stepTimeout),
				"Retry": []object{{
					"ErrorEquals": []string{
						"Lambda.ClientExecutionTimeoutException", "Lambda.ServiceException", "Lambda.AWSLambdaException",
						"Lambda.SdkClientException", "Lambda.TooManyRequestsException",
					},
					"IntervalSeconds": 2,
					"BackoffRate":     2,
					"MaxDelaySeconds": 60,
					"MaxAttempts":     8,
					"JitterStrategy":  "FULL",
				}},
				"Catch": []object{{
					"ErrorEquals": []string{"States.ALL"}, "ResultPath": nil, "Next": StateAbandoned,
				}},
				"Next": StateChoice,
			},
			StateChoice: object{
				"Type":    "Choice",
				"Choices": []object{{"Variable": "$.outcome.settled", "BooleanEquals": true, "Next": StateDone}},
				"Default": StateWait,
			},
			StateWait: object{"Type": "Wait", "SecondsPath": "$.outcome.wait_seconds", "Next": StateStep},
			StateDone: object{"Type": "Succeed"},
			StateAbandoned: object{
				"Type":  "Fail",
				"Error": "Longshore.Abandoned",
				"Cause": "A step has failed. The operation is not lost: the reaper drives it again when it is due.",
			},
		},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // an ARN may be a placeholder that is filled in later
	if err := e.Encode(definition); err != nil {
		panic(fmt.Sprintf("encoding the state machine: %v", err)) // it is text and numbers
	}
	return b.String()
}
