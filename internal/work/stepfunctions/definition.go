package stepfunctions

import (
	"bytes"
	"encoding/json"
	"time"
)

// The states of the state machine.
const (
	StateStep      = "Step"      // one call of the provisioner; the last one if the provisioner throws nothing
	StatePending   = "Pending"   // reads the error that the provisioner threw
	StateWait      = "Wait"      // waits until the provisioner is to look again
	StateAbandoned = "Abandoned" // the execution has failed, the operation has not
)

// EventsOfStep is how many events one round of Step, Pending and Wait adds to the history of an execution:
// five for the function, and two for each of the other states. AWS ends an execution at 25 000 events.
const EventsOfStep = 9

// AWS bills each state that an execution enters. These are the states of a round, and those of the step that settles.
const (
	TransitionsOfRound = 3
	TransitionsOfLast  = 1
)

// Definition returns the state machine in Amazon States Language. The provisioner is the ARN of
// a function. StepTimeout is longer than that function's own timeout; limit ends an execution
// that outlives every operation.
//
// The provisioner takes all decisions. The state machine repeats calls that fail transiently.
// Any other error except Pending ends the execution, but not the operation: the operation stays
// due, and the reaper starts it again as another attempt.
func Definition(provisioner string, stepTimeout, limit time.Duration) string {
	type object = map[string]any
	definition := object{
		"Comment":        "Drives one operation: makes a step, waits, and repeats until it is settled.",
		"StartAt":        StateStep,
		"TimeoutSeconds": seconds(limit),
		"States": object{
			StateStep: object{
				"Type":           "Task",
				"Resource":       provisioner,
				"Parameters":     object{"token.$": "$.token", "attempt.$": "$.attempt"},
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
				"Catch": []object{
					{"ErrorEquals": []string{errorPending}, "ResultPath": "$.thrown", "Next": StatePending},
					{"ErrorEquals": []string{"States.ALL"}, "ResultPath": nil, "Next": StateAbandoned},
				},
				"End": true,
			},
			StatePending: object{
				"Type": "Pass",
				"Parameters": object{"token.$": "$.token", "attempt.$": "$.attempt",
					"thrown.$": "States.StringToJson($.thrown.Cause)"},
				"Next": StateWait,
			},
			StateWait: object{"Type": "Wait", "TimestampPath": "$.thrown.errorMessage", "Next": StateStep},
			StateAbandoned: object{
				"Type":  "Fail",
				"Error": "Longshore.Abandoned",
				"Cause": "A step has failed. The operation is not lost: the reaper restarts it when it is due.",
			},
		},
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)   // an ARN may be a placeholder with characters that HTML escapes
	_ = e.Encode(definition) // texts and numbers can always be encoded
	return b.String()
}
