package cloudformation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/longshore/longshore/internal/base/provider"
)

// stateFormat is the version of instanceState.
const stateFormat = 1

// An instanceState is the state of an instance.
type instanceState struct {
	// Space is the space of the order, in the letters of plan.SpaceOf. It is part of the
	// stack's name.
	Space string `json:"space,omitempty"`
	// Stack is the id of the instance's stack, once the broker has seen one.
	Stack string `json:"stack,omitempty"`
	// Calls counts the recorded calls of all operations: each has a number of its own.
	Calls int `json:"calls,omitempty"`
	// Work is that of the latest operation.
	Work work `json:"work,omitzero"`
}

// A work is how far one operation has come.
type work struct {
	Operation string `json:"operation"`
	// Call is the last one; it is recorded before it is made.
	Call call `json:"call,omitzero"`
	// Failed says that the operation has failed for good. A provision removes all that it has
	// made before it says so.
	Failed *provider.Failure `json:"failed,omitempty"`
	// Why is the reason of a failed update, read before its rollback failed too.
	Why string `json:"why,omitempty"`
	// Tries counts the deletions that have failed.
	Tries int `json:"tries,omitempty"`
	// Updated says that the operation has called an update.
	Updated bool `json:"updated,omitempty"`
}

// A call is one of those that change a stack.
type call struct {
	Verb   verb `json:"verb"`
	Number int  `json:"number"`
	// Stack is the id of the stack; empty for a creation.
	Stack string `json:"stack,omitempty"`
	// Mark is the id of the latest stack-level event when the call was recorded.
	Mark string `json:"mark,omitempty"`
}

// A verb is what a call does.
type verb string

const (
	callCreate   verb = "create"
	callUpdate   verb = "update"
	callDelete   verb = "delete"
	callCancel   verb = "cancel"
	callContinue verb = "continue" // of a rollback that has failed
	callRetain   verb = "retain"   // an update, after which nothing goes with the stack
)

// token is the client request token of the recorded call: CloudFormation takes letters,
// digits and hyphens, 128 at most.
func (w work) token() string {
	h := sha256.New()
	for _, part := range []string{w.Operation, string(w.Call.Verb), fmt.Sprint(w.Call.Number)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "longshore-" + hex.EncodeToString(h.Sum(nil)[:20])
}

// readState reads a state for a step of an operation.
func readState(s provider.State, operation string) (m instanceState, err error) {
	err = s.Read(stateFormat, &m)
	if m.Work.Operation != operation {
		m.Work = work{Operation: operation}
	}
	return m, err
}

// state is the form that is recorded.
func (m instanceState) state() *provider.State { return provider.StateOf(stateFormat, m) }

// failure is how the operation ends.
func (m instanceState) failure() *provider.Failure {
	f := *m.Work.Failed
	f.State = m.state()
	return &f
}
