package conformance

import (
	"net/http"
	"time"
)

// A given is what a case begins with. reach is false if that could not be
// reached.
type given struct {
	name  string
	needs []need
	reach func(s *scene) bool
}

var (
	ready      = given{"an instance that is ready", []need{anyPlan}, (*scene).provisioned}
	readyLater = given{"an instance that was provisioned asynchronously", []need{asynchronous, anyPlan},
		(*scene).provisionedLater}
	provisioning    = given{"an instance that is being provisioned", []need{asynchronous}, (*scene).beingProvisioned}
	provisionFailed = given{"an instance whose provision failed", []need{failing}, (*scene).provisionedBadly}
	updating        = given{"an instance that is being updated", []need{twoChanges, changedAsync}, (*scene).beingUpdated}
	updated         = given{"an instance that was updated", []need{changeable}, (*scene).changed}
	updateFailed    = given{"an instance whose update failed", []need{changeFailing}, (*scene).changedBadly}
	deleting        = given{"an instance that is being deleted", []need{deletedAsync}, (*scene).beingDeleted}
	deleted         = given{"an instance that was deleted", []need{anyPlan}, (*scene).deleted}
	bound           = given{"a binding of a ready instance", []need{bindable}, (*scene).bound}
	bindRunning     = given{"a binding that is being made", []need{bindAsync}, (*scene).beingBound}
	unbound         = given{"a binding that was deleted", []need{bindable}, (*scene).unbound}
	unbinding       = given{"a binding that is being deleted", []need{bindAsync}, (*scene).beingUnbound}
)

// permitted adds the permission to answer later if a plan needs it.
func permitted(path string, needed bool) string {
	if needed {
		return path + async
	}
	return path
}

// done waits for what was accepted; anything but success blocks the case.
func (s *scene) done(a response, path string) bool {
	if a.status != http.StatusAccepted {
		return true
	}
	if state := s.settle(path); state != succeeded && state != gone {
		return s.block("%s was accepted, and its operation ended: %s", a.request, state)
	}
	return true
}

func (s *scene) provisioned() bool {
	a, ok := s.must(set(permitted(instance, !s.plan.sync), body(provision)), 201, 200, 202)
	return ok && s.done(a, instanceOperation)
}

func (s *scene) provisionedLater() bool {
	a, ok := s.must(set(instance+async, body(provision)), 202)
	return ok && s.done(a, instanceOperation)
}

// runs marks the operation at a path as running.
func (s *scene) runs(path string) bool {
	s.running = path
	if _, ok := s.known("operation"); ok {
		s.running += ofOperation
	}
	return true
}

func (s *scene) beingProvisioned() bool {
	_, ok := s.must(set(instance+async, body(provision)), 202)
	return ok && s.runs(instanceOperation)
}

func (s *scene) provisionedBadly() bool {
	if _, ok := s.must(set(instance+async, body(provision)), 202); !ok {
		return false
	}
	if state := s.settle(instanceOperation); state != failed {
		return s.block("the provision ended: %s", state)
	}
	return true
}

func (s *scene) beingUpdated() bool {
	if !s.provisioned() {
		return false
	}
	_, ok := s.must(patch(instance+async, change(0)), 202)
	return ok && s.runs(instanceOperation)
}

func (s *scene) changed() bool {
	if !s.provisioned() {
		return false
	}
	a, ok := s.must(patch(instance+async, change(0)), 200, 202)
	return ok && s.done(a, instanceOperation)
}

func (s *scene) changedBadly() bool {
	if !s.provisioned() {
		return false
	}
	if _, ok := s.must(patch(instance+async, change(0)), 202); !ok {
		return false
	}
	if state := s.settle(instanceOperation); state != failed {
		return s.block("the update ended: %s", state)
	}
	return true
}

func (s *scene) beingDeleted() bool {
	if !s.provisioned() {
		return false
	}
	_, ok := s.must(remove(instance+asyncIDs), 202)
	return ok && s.runs(instanceOperation)
}

func (s *scene) deleted() bool {
	if !s.provisioned() {
		return false
	}
	a, ok := s.must(remove(instance+asyncIDs), 200, 202)
	return ok && s.done(a, instanceOperation)
}

func (s *scene) bound() bool {
	if !s.provisioned() {
		return false
	}
	a, ok := s.must(set(permitted(binding, !s.plan.bindSync), body(bind)), 201, 200, 202)
	if !ok || !s.done(a, bindingOperation) {
		return false
	}
	if a.status == http.StatusAccepted {
		_, ok = s.must(get(binding), 200) // the grant
	}
	return ok
}

func (s *scene) beingBound() bool {
	if !s.provisioned() {
		return false
	}
	_, ok := s.must(set(binding+async, body(bind)), 202)
	return ok && s.runs(bindingOperation)
}

func (s *scene) unbound() bool {
	if !s.bound() {
		return false
	}
	a, ok := s.must(remove(binding+asyncIDs), 200, 202)
	return ok && s.done(a, bindingOperation)
}

func (s *scene) beingUnbound() bool {
	if !s.provisioned() {
		return false
	}
	a, ok := s.must(set(binding+async, body(bind)), 201, 202)
	if !ok || !s.done(a, bindingOperation) {
		return false
	}
	_, ok = s.must(remove(binding+asyncIDs), 202)
	return ok && s.runs(bindingOperation)
}

// begun is how long an operation usually takes to be begun not only on paper.
const begun = 150 * time.Millisecond

func (s *scene) underWay() { sleep(s.ctx, begun) }
