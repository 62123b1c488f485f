package conformance

import (
	"net/http"
	"time"
)

// A given is the starting point of a case. reach returns false if it could not be reached.
type given struct {
	name  string
	needs needs
	reach func(s *scene) bool
}

var (
	ready      = given{"an instance that is ready", needs{anyPlan}, (*scene).provisioned}
	readyLater = given{"an instance that was provisioned asynchronously", needs{asynchronous, anyPlan},
		(*scene).provisionedLater}
	provisioning    = given{"an instance that is being provisioned", needs{asynchronous}, (*scene).beingProvisioned}
	provisionFailed = given{"an instance whose provision failed", needs{failing}, (*scene).provisionedBadly}
	updating        = given{"an instance that is being updated", needs{twoChanges, changedAsync}, (*scene).beingUpdated}
	updated         = given{"an instance that was updated", needs{changeable}, (*scene).changed}
	updateFailed    = given{"an instance whose update failed", needs{changeFailing}, (*scene).changedBadly}
	deleting        = given{"an instance that is being deleted", needs{deletedAsync}, (*scene).beingDeleted}
	deleted         = given{"an instance that was deleted", needs{anyPlan}, (*scene).deleted}
	bound           = given{"a binding of a ready instance", needs{bindable}, (*scene).bound}
	bindRunning     = given{"a binding that is being made", needs{bindAsync}, (*scene).beingBound}
	unbound         = given{"a binding that was deleted", needs{bindable}, (*scene).unbound}
	unbinding       = given{"a binding that is being deleted", needs{bindAsync}, (*scene).beingUnbound}
)

// permitted adds the permission to answer asynchronously if needed.
func permitted(path string, needed bool) string {
	if needed {
		return path + async
	}
	return path
}

// done waits for the end of an accepted operation; anything but success blocks the case.
func (s *scene) done(a response, path string) bool {
	if a.status != http.StatusAccepted {
		return true
	}
	if state := s.settle(path); state != succeeded && state != gone {
		return s.block("%s was accepted, and its operation ended: %s", a.request, state)
	}
	return true
}

// reaches sends a request, and waits for the end of an accepted operation.
func (s *scene) reaches(path string, q request, any ...int) bool {
	a, ok := s.must(q, any...)
	return ok && s.done(a, path)
}

// begins sends a request that begins an operation, and marks it as running.
func (s *scene) begins(path string, q request) bool {
	_, ok := s.must(q, 202)
	return ok && s.runs(path)
}

// fails sends a request whose operation must fail.
func (s *scene) fails(what string, q request) bool {
	if _, ok := s.must(q, 202); !ok {
		return false
	}
	if state := s.settle(instanceOperation); state != failed {
		return s.block("the %s ended: %s", what, state)
	}
	return true
}

func (s *scene) provisioned() bool {
	return s.reaches(instanceOperation, set(permitted(instance, !s.plan.sync), provision), 201, 200, 202)
}

func (s *scene) provisionedLater() bool {
	return s.reaches(instanceOperation, toProvision(provision), 202)
}

func (s *scene) beingProvisioned() bool { return s.begins(instanceOperation, toProvision(provision)) }

func (s *scene) provisionedBadly() bool { return s.fails("provision", toProvision(provision)) }

func (s *scene) beingUpdated() bool {
	return s.provisioned() && s.begins(instanceOperation, toUpdate(change(0)))
}

func (s *scene) changed() bool {
	return s.provisioned() && s.reaches(instanceOperation, toUpdate(change(0)), 200, 202)
}

func (s *scene) changedBadly() bool { return s.provisioned() && s.fails("update", toUpdate(change(0))) }

func (s *scene) beingDeleted() bool {
	return s.provisioned() && s.begins(instanceOperation, toDeprovision)
}

func (s *scene) deleted() bool {
	return s.provisioned() && s.reaches(instanceOperation, toDeprovision, 200, 202)
}

// runs notes the address at which the running operation is polled. The address contains the operation's
// token: a later request may begin another operation.
func (s *scene) runs(path string) bool {
	s.running = s.address(path + ofOperation)
	return true
}

func (s *scene) bound() bool {
	if !s.provisioned() {
		return false
	}
	a, ok := s.must(set(permitted(binding, !s.plan.bindSync), bind), 201, 200, 202)
	if !ok || !s.done(a, bindingOperation) {
		return false
	}
	if a.status == http.StatusAccepted {
		_, ok = s.must(get(binding), 200) // the grant
	}
	return ok
}

func (s *scene) beingBound() bool { return s.provisioned() && s.begins(bindingOperation, toBind(bind)) }

func (s *scene) unbound() bool { return s.bound() && s.reaches(bindingOperation, toUnbind, 200, 202) }

func (s *scene) beingUnbound() bool {
	return s.provisioned() && s.reaches(bindingOperation, toBind(bind), 201, 202) && s.begins(bindingOperation, toUnbind)
}

// begun is how long it usually takes until an operation has really begun.
const begun = 150 * time.Millisecond

func (s *scene) underWay() { sleep(s.ctx, begun) }
