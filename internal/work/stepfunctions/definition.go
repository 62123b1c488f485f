package stepfunctions

import (
	"bytes"
	_ "embed" // for the definition
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// EventsOfStep is how many events one round of Step, Pending and Wait adds to the history of an execution:
// five for the function, and two for each of the other states. AWS ends an execution at 25 000 events.
const EventsOfStep = 9

// AWS bills each state that an execution enters. These are the states of a round, and those of the step that settles.
const (
	TransitionsOfRound = 3
	TransitionsOfLast  = 1
)

// definition is the state machine in Amazon States Language, with the names of what Definition fills in.
// Step is one call of the provisioner, and the last one if the provisioner throws nothing. Pending reads
// the error that the provisioner threw, and Wait waits until the provisioner is to look again. Abandoned
// says that the execution has failed, and the operation has not.
//
//go:embed definition.json
var definition string

// Definition returns the state machine in Amazon States Language. The provisioner is the ARN of
// a function. StepTimeout is longer than that function's own timeout; limit ends an execution
// that outlives every operation.
//
// The provisioner takes all decisions. The state machine repeats calls that fail transiently.
// Any other error except Pending ends the execution, but not the operation: the operation stays
// due, and the reaper starts it again as another attempt.
func Definition(provisioner string, stepTimeout, limit time.Duration) string {
	filled := strings.NewReplacer("PROVISIONER", provisioner,
		`"STEP_TIMEOUT"`, strconv.Itoa(seconds(stepTimeout)), `"LIMIT"`, strconv.Itoa(seconds(limit))).Replace(definition)
	var b bytes.Buffer
	_ = json.Compact(&b, []byte(filled)) // an ARN needs no escapes
	return b.String() + "\n"             // the form that stacks have
}
