package cloudformation

import (
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// observed is the state of an instance's stack, with the record of the operation that works on the
// stack.
type observed struct {
	instanceState
	tags provider.Tags // the instance's
	rule plan.Rule     // for the contents of the instance
	// stack is the stack with the instance's name; nil if there is none.
	stack *stack
	// carried: the latest stack-level event belongs to the recorded call. consumed: some
	// stack-level event belongs to it, so repeating the call with its token changes nothing more.
	carried, consumed bool
	// late: an update has to end now, so that it can still be undone within the time of its
	// operation.
	late bool
}

// An act is what one step does.
type act string

const (
	actDone    act = "done"
	actFinish  act = "finish"  // an update: rewrite the policies, and then it is done
	actWait    act = "wait"    // CloudFormation is working
	actRecord  act = "record"  // record a call under a new number; a later step makes it
	actSend    act = "send"    // make the recorded call
	actExplain act = "explain" // read and record why the operation failed
	actFail    act = "fail"
)

// A decision says what the next step does.
type decision struct {
	act  act
	verb verb // of actRecord and actSend
	// failed is how the operation ends, with actFail. With actExplain, its message is read from the
	// stack's events first.
	failed provider.Failure
}

// These are the statuses of stacks.
const (
	createComplete       = "CREATE_COMPLETE"
	createInProgress     = "CREATE_IN_PROGRESS"
	createFailed         = "CREATE_FAILED"
	rollbackInProgress   = "ROLLBACK_IN_PROGRESS"
	rollbackComplete     = "ROLLBACK_COMPLETE"
	rollbackFailed       = "ROLLBACK_FAILED"
	reviewInProgress     = "REVIEW_IN_PROGRESS"
	updateInProgress     = "UPDATE_IN_PROGRESS"
	updateComplete       = "UPDATE_COMPLETE"
	updateCleanup        = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
	updateFailed         = "UPDATE_FAILED"
	updateRollbackFailed = "UPDATE_ROLLBACK_FAILED"
	updateRolledBack     = "UPDATE_ROLLBACK_COMPLETE"
	deleteInProgress     = "DELETE_IN_PROGRESS"
	deleteComplete       = "DELETE_COMPLETE"
	deleteFailed         = "DELETE_FAILED"
)

// busy reports whether CloudFormation works on the stack.
func busy(status string) bool { return strings.HasSuffix(status, "_IN_PROGRESS") }

// usable reports whether the stack is whole, so that it can be updated.
func usable(status string) bool {
	switch status {
	case createComplete, updateComplete, updateRolledBack, updateFailed, "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE":
		return true
	}
	return false
}

// made reports whether the instance was ready once: its stack has resources and outputs.
func made(status string) bool {
	return usable(status) || strings.HasPrefix(status, "UPDATE_") || strings.HasPrefix(status, "IMPORT_")
}

// spoilt reports whether the creation of the stack has failed.
func spoilt(status string) bool {
	return status == createFailed || status == rollbackComplete || status == rollbackFailed
}

const (
	textNotOurs = "Something that does not belong to this broker has the name of this instance in the account. It was left " +
		"alone. Ask the operator of the service to look at it."
	textProtected = "The instance is protected against deletion. Ask the operator of the service."
	textMoved     = "An instance cannot be moved between a plan that creates resources and one that uses existing " +
		"resources. Order a new one."
	textLate = "The update took too long, and was stopped."
	textNone = "There is no such instance. Ask the operator of the service."
)

func fails(f provider.Failure) decision { return decision{act: actFail, failed: f} }

// explains decides on a failure whose reason is read first.
func explains(f provider.Failure) decision { return decision{act: actExplain, failed: f} }

// repeatable returns the failure of a call that was not made, or that was undone: the instance is as
// it was, and can be updated.
func repeatable(message string) provider.Failure {
	return provider.Failure{Message: message, InstanceUsable: new(true), UpdateRepeatable: new(true)}
}

func (s observed) ours() bool { return s.stack.tags == s.tags }

// order sends the recorded call if it is the wanted one and still has to be made; otherwise it
// records a new call.
func (s observed) order(v verb) decision {
	c := s.Work.Call
	if c.Verb == v && c.Stack == s.stackID() && !s.consumed {
		return decision{act: actSend, verb: v}
	}
	return decision{act: actRecord, verb: v}
}

func (s observed) stackID() string {
	if s.stack == nil {
		return ""
	}
	return s.stack.id
}

// provision decides the next act until the instance is ready.
func (s observed) provision() decision {
	switch failing := s.Work.Failed; {
	case s.stack == nil && failing != nil:
		return fails(*failing)
	case s.stack == nil:
		return s.order(callCreate)
	case !s.ours():
		return fails(provider.Failure{Message: textNotOurs})
	case failing != nil:
		return s.remove()
	}
	switch status := s.stack.status; {
	case made(status) && !busy(status):
		return decision{act: actDone}
	case spoilt(status):
		return decision{act: actExplain}
	case status == reviewInProgress, status == deleteFailed:
		return s.remove()
	}
	return decision{act: actWait}
}

// update decides the next act until the stack is as the plan wants it.
func (s observed) update() decision {
	switch {
	case s.Work.Failed != nil:
		return fails(*s.Work.Failed)
	case s.stack == nil:
		return fails(provider.Failure{Message: textNone})
	case !s.ours():
		return fails(provider.Failure{Message: textNotOurs})
	}
	status, v := s.stack.status, s.Work.Call.Verb
	// A cancellation is recorded only for an update of this operation: the status says how the
	// update has ended, whichever call the events name.
	if !s.carried && v != callCancel {
		v = ""
	}
	switch {
	case s.late && status == updateInProgress && (v == callUpdate || v == callCancel && !s.consumed):
		return s.order(callCancel)
	case s.late && status == updateCleanup && (v == callUpdate || v == callCancel):
		return decision{act: actFinish}
	case busy(status) && status != reviewInProgress:
		return decision{act: actWait}
	case status == updateComplete && (v == callUpdate || v == callCancel): // a cancellation may come too late
		return decision{act: actFinish}
	case status == updateRollbackFailed && v == callContinue:
		return explains(provider.Failure{InstanceUsable: new(false), UpdateRepeatable: new(false)})
	case status == updateRollbackFailed:
		return s.order(callContinue)
	case usable(status) && (v == callUpdate || v == callCancel || v == callContinue && s.Work.Updated):
		return explains(repeatable(""))
	case usable(status) && s.late && !s.Work.Updated: // the update would have to be undone at once
		return fails(repeatable(textLate))
	case usable(status):
		return s.order(callUpdate)
	}
	return fails(provider.Failure{Message: textNone, InstanceUsable: new(false), UpdateRepeatable: new(false)})
}

// deprovision decides the next act until nothing of the instance is left.
func (s observed) deprovision() decision {
	switch {
	case s.stack == nil:
		return decision{act: actDone}
	case !s.ours():
		return fails(provider.Failure{Message: textNotOurs})
	case s.Work.Failed != nil:
		return fails(*s.Work.Failed)
	}
	return s.remove()
}

// maxTries is how often the broker tries a deletion.
const maxTries = 3

// remove decides the next act until the stack is gone.
//
// AWS refuses a deletion during an update: the broker cancels the update first, which AWS
// allows in one state only. AWS accepts a deletion during a creation.
func (s observed) remove() decision {
	status := s.stack.status
	switch {
	case status == deleteInProgress:
		return decision{act: actWait}
	case s.stack.protected: // an operator protected the stack by hand: its contents are not touched either
		return fails(provider.Failure{Message: textProtected, InstanceUsable: new(true),
			Untouched: usable(s.stack.status)})
	case status == updateInProgress && s.carried && s.Work.Call.Verb == callRetain:
		return decision{act: actWait}
	case status == updateInProgress && !(s.consumed && s.Work.Call.Verb == callCancel):
		return s.order(callCancel)
	case busy(status) && status != createInProgress && status != rollbackInProgress && status != reviewInProgress:
		return decision{act: actWait}
	case status == deleteFailed && s.carried && s.Work.Call.Verb == callDelete && s.Work.Tries+1 >= maxTries:
		return explains(provider.Failure{InstanceUsable: new(false)})
	case s.rule == plan.Retain && usable(status) && !s.stack.retained:
		if s.carried && s.Work.Call.Verb == callRetain {
			return explains(provider.Failure{InstanceUsable: new(true)})
		}
		return s.order(callRetain)
	case s.rule == plan.Retain && status == updateRollbackFailed && !s.stack.retained:
		// Hazard: a deletion now would delete every resource, and a stack can be changed only after
		// its rollback is complete.
		if s.carried && s.Work.Call.Verb == callContinue {
			return explains(provider.Failure{InstanceUsable: new(false)})
		}
		return s.order(callContinue)
	case s.rule == plan.Retain && made(status) && !s.stack.retained:
		return explains(provider.Failure{InstanceUsable: new(false)})
	}
	return s.order(callDelete)
}

// spares reports whether the deletion of the stack leaves its resources. It does if someone deleted
// the stack by hand and the deletion got stuck: such a stack takes no update that would mark its
// resources to be retained.
func (s observed) spares() bool {
	return s.rule == plan.Retain && s.stack.status == deleteFailed && !s.stack.retained
}

// bind returns why nothing can be bound to the stack; nil if something can.
func (s observed) bind() *provider.Failure {
	switch {
	case s.stack != nil && !s.ours():
		return &provider.Failure{Message: textNotOurs}
	case s.stack == nil, !made(s.stack.status) && !busy(s.stack.status):
		return &provider.Failure{Message: textNone}
	}
	return nil
}
