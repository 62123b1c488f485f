package cloudformation

import (
	"fmt"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// stateFormat is the version of instanceState.
const stateFormat = 1

// An instanceState is the recorded state of an instance.
type instanceState struct {
	// Space is the space of the order, in the letters of plan.SpaceOf. The stack's name contains
	// it.
	Space string `json:"space,omitempty"`
	// Stack is the id of the instance's stack, once the broker has seen one.
	Stack string `json:"stack,omitempty"`
	// Calls counts the recorded calls of all operations, so that each has a number of its own.
	Calls int `json:"calls,omitempty"`
	// Work is the progress of the latest operation.
	Work work `json:"work,omitzero"`
}

// A work is how far one operation has come.
type work struct {
	Operation string `json:"operation"`
	// Call is the last call; it is recorded before it is made.
	Call call `json:"call,omitzero"`
	// Failed says that the operation has failed for good. A provision removes all that it has made
	// before it returns the failure.
	Failed *provider.Failure `json:"failed,omitempty"`
	// Why is the reason of a failed update, read before its rollback failed too.
	Why string `json:"why,omitempty"`
	// Tries counts the deletions that have failed.
	Tries int `json:"tries,omitempty"`
	// Updated says that the operation has called an update.
	Updated bool `json:"updated,omitempty"`
}

// A call is a call that changes a stack.
type call struct {
	Verb   verb `json:"verb"`
	Number int  `json:"number"`
	// Stack is the id of the stack; empty for a creation.
	Stack string `json:"stack,omitempty"`
	// Mark is the id of the latest stack-level event when the call was recorded.
	Mark string `json:"mark,omitempty"`
}

// A verb says what a call does.
type verb string

const (
	callCreate   verb = "create"
	callUpdate   verb = "update"
	callDelete   verb = "delete"
	callCancel   verb = "cancel"
	callContinue verb = "continue" // continues a rollback that has failed
	callRetain   verb = "retain"   // an update after which no resource is deleted with the stack
)

// token returns the client request token of the recorded call: at most 128 letters, digits and
// hyphens, as CloudFormation requires.
func (w work) token() string {
	var all []byte
	for _, part := range []string{w.Operation, string(w.Call.Verb), fmt.Sprint(w.Call.Number)} {
		all = fmt.Appendf(all, "%d:%s", len(part), part)
	}
	return "longshore-" + plan.Digest(all)[:40]
}

// readState reads a state for a step of an operation.
func readState(s provider.State, operation string) (m instanceState, err error) {
	err = s.Read(stateFormat, &m)
	if m.Work.Operation != operation {
		m.Work = work{Operation: operation}
	}
	return m, err
}

// state returns the form that is recorded.
func (m instanceState) state() *provider.State { return provider.StateOf(stateFormat, m) }
