package lifecycle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// A pair is an instance and a binding that live through the same.
type pair struct {
	*testing.T
	instance lifecycle.Record
	binding  lifecycle.Record
	minute   int
}

func newPair(t *testing.T) *pair {
	return &pair{T: t, instance: instances.absent(), binding: bindings.absent()}
}

func (p *pair) start(id string) lifecycle.Start {
	return start(id, at(p.minute+1))
}

// does is the pair after one thing was done to both.
func (p *pair) does(do func(lifecycle.Record, machine) (lifecycle.Record, error)) *pair {
	p.Helper()
	i, err := do(p.instance, instances)
	b, err2 := do(p.binding, bindings)
	expect.OK(p, errors.Join(err, err2))
	return &pair{p.T, i, b, p.minute + 1}
}

// both requires what a request comes to, of the instance and of the binding.
func (p *pair) both(t *testing.T, reason, want string, ask func(lifecycle.Record) (lifecycle.Answer, error)) {
	t.Helper()
	for what, r := range map[string]lifecycle.Record{"instance": p.instance, "binding": p.binding} {
		a, err := ask(r)
		expect.Same(t, reason+", of the "+what, want, outcome(t, a, err))
	}
}

// begins makes both, by requests of that time.
func (p *pair) begins(now, received time.Time) *pair {
	p.Helper()
	s := lifecycle.Start{ID: "creation", Now: now, Received: received, Timeout: time.Hour}
	return p.does(func(r lifecycle.Record, m machine) (lifecycle.Record, error) { return r.BeginCreate(s, m.fresh) })
}

// isDeleted begins the deletion of both, by requests of that time; zero is the broker's own doing.
func (p *pair) isDeleted(now, received time.Time) *pair {
	p.Helper()
	s := lifecycle.Start{ID: "deletion", Now: now, Received: received, Timeout: time.Hour}
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.BeginDelete(s) })
}

func (p *pair) ends(now time.Time) *pair {
	p.Helper()
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.Succeed(now, nil) })
}

func (p *pair) overdue(now time.Time) *pair {
	p.Helper()
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.Fail(now, lifecycle.Overdue()) })
}

func (p *pair) create(id string, synchronous bool) *pair {
	p.Helper()
	s := p.start(id)
	s.Synchronous, s.Asker = synchronous, lifecycle.Asker{Request: "request"}
	return p.does(func(r lifecycle.Record, m machine) (lifecycle.Record, error) { return r.BeginCreate(s, m.fresh) })
}

func (p *pair) promised() *pair {
	p.Helper()
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) {
		next, changes := r.Promised()
		if !changes {
			p.Fatal("a promise that is not recorded")
		}
		return next, nil
	})
}

func (p *pair) remove(id string, own bool) *pair {
	p.Helper()
	s := p.start(id)
	if s.Own = own; own {
		s.Received = time.Time{}
	}
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.BeginDelete(s) })
}

func (p *pair) fail() *pair {
	p.Helper()
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) {
		return r.Fail(at(p.minute+1), lifecycle.Failure{Message: "no room"})
	})
}

func (p *pair) succeed() *pair {
	p.Helper()
	return p.ends(at(p.minute + 1))
}

func (p *pair) entomb() *pair {
	p.Helper()
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) {
		return r.Entomb(at(p.minute+1), at(p.minute+1))
	})
}

func (p *pair) askedAgain() *pair {
	p.Helper()
	// By a clock that is late: what counts is that a platform asked.
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) {
		next, changed := r.AskedAgain(at(-1), at(p.minute))
		if !changed {
			p.Error("a platform's DELETE changes nothing")
		}
		return next, nil
	})
}

// A creation that failed, and was set aside for the next one of its id, is no failure of which a platform knows: its operation
// is remembered with the id.
func TestAFailureThatWasSetAside(t *testing.T) {
	failed := newPair(t).create("one", false).fail()
	for _, r := range []lifecycle.Record{failed.instance, failed.binding} {
		expect.Same(t, "the failure of the id", "one", r.FailedCreation().ID)
		expect.Same(t, "the failure of the former life", nil, r.SetAside(at(9)).FailedCreation())
	}
}

// PROV-30: what failed asynchronously stays failed until the platform deletes it, whatever the broker itself does about
// it; what failed synchronously was told in the answer.
func TestWhatFailedStaysFailed(t *testing.T) {
	one, synchronous := newPair(t).create("one", false), newPair(t).create("one", true)
	removing, deleting := one.fail().remove("two", true), one.fail().remove("two", false)
	again, waited := one.fail().create("two", false), one.fail().create("two", true)
	for name, tc := range map[string]struct {
		reason string
		p      *pair
		// permitted and waiting are what the same request comes to, different
		// what another one does; token is the operation that it is answered with.
		permitted, waiting, different, token string
	}{
		"Asynchronously": {"told by its token", one.fail(), stays, begin, conflict, "one"},
		"Synchronously":  {"told in the answer", synchronous.fail(), begin, begin, conflict, ""},
		"AnsweredAfterItsWait": {"a synchronous operation whose token was given away counts as asynchronous",
			synchronous.promised().fail(), stays, begin, conflict, "one"},
		"BegunAgain":              {"the latest failure counts", again.fail(), stays, begin, conflict, "two"},
		"BegunAgainSynchronously": {"which was told in the answer", waited.fail(), begin, begin, conflict, ""},
		"BeingRemovedByTheBroker": {"the platform asked for no deletion", removing, stays, ce, conflict, "one"},
		"NotRemovedByTheBroker":   {"nor did it hear of it", removing.fail(), stays, cannot, conflict, "one"},
		"RemovedAtTheSecondTry":   {"", removing.fail().remove("three", true).succeed(), stays, begin, conflict, "one"},
		"RemovedByTheBroker":      {"until the tombstone expires", removing.succeed(), stays, begin, conflict, "one"},
		"SynchronouslyAndRemoved": {"", synchronous.fail().remove("two", true).succeed(), begin, begin, begin, ""},
		"BeingDeleted":            {"a platform's DELETE ends it", deleting, ce, ce, conflict, ""},
		"DeletedWhileTheBrokerRemovesIt": {"a DELETE joins the broker's deletion, and is a platform's all the same",
			removing.askedAgain(), ce, ce, conflict, ""},
		"Deleted": {"the id is free", deleting.succeed(), begin, begin, begin, ""},
		"DeletedAfterTheBrokerHasRemovedIt": {"a DELETE of what the broker has removed frees the id",
			removing.succeed().entomb(), begin, begin, begin, ""},
		"NotDeleted": {"what a platform could not delete is half deleted, also when the broker tries again",
			deleting.fail().remove("three", true).fail(), cannot, cannot, conflict, ""},
		"Overtaken": {"what was cancelled has not failed by itself", one.remove("two", true).succeed(), begin, begin, begin, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.p
			for _, permitted := range []bool{true, false} {
				wants := map[bool]string{true: tc.waiting, false: tc.different}
				if permitted {
					wants[true] = tc.permitted
				}
				for same, want := range wants {
					reason := fmt.Sprintf("%s: same %v, permitted %v", tc.reason, same, permitted)
					p.both(t, reason, want, func(r lifecycle.Record) (lifecycle.Answer, error) {
						return onPut(r, same, permitted, at(60), at(60))
					})
				}
			}
			for _, c := range []lifecycle.Record{p.instance, p.binding} {
				failed := c.FailedCreation()
				if (failed != nil) != (tc.token != "") || failed != nil &&
					(failed.ID != tc.token || failed.Phase != lifecycle.Failed || failed.Description != "no room") {
					t.Errorf("%s: the token is of %+v, want %q", tc.reason, failed, tc.token)
				}
			}
			if tc.token != "" { // to the platform, it is as it was
				same(t, tc.reason+": a platform sees", one.fail().seen(), p.seen())
			}
		})
	}
}

// seen are the answers to what reads, and to what needs the instance.
func (p *pair) seen() []string {
	answer, err := onPatch(p.instance, true, at(60), at(60))
	return []string{
		outcome(p.T, answer, err), allowed(p.T, onGet(p.instance)), allowed(p.T, onBind(p.instance, at(60), at(60))),
		allowed(p.T, onGet(p.binding)),
	}
}

// The tombstone of what failed keeps what recognises the request, and nothing
// that opens anything; and not longer than it must.
func TestTombstonesOfWhatFailed(t *testing.T) {
	p := newPair(t).create("one", false).fail().remove("two", true).succeed()
	same(t, "the attributes", attributes("small"), p.instance.Attributes)
	b := p.binding
	holds(t, b.Secret == nil && b.Grant == nil && b.Attributes.Context == nil && b.Attributes.Parameters != nil &&
		b.AppGUID != "", "the binding's tombstone", b)
	p = p.entomb()
	a := p.instance.Attributes
	holds(t, a.Parameters == nil && a.Context == nil && a.OrganizationGUID == "" && p.instance.Failed == nil,
		"after a DELETE, the instance's tombstone", p.instance)
	b = p.binding
	holds(t, b.Attributes.Parameters == nil && b.AppGUID == "" && b.Failed == nil, "after a DELETE, the binding's tombstone", b)
}

// The failure of a binding is forgotten once its instance is gone or is a later life.
func TestWhatFailedGoesWithItsInstance(t *testing.T) {
	made := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed)
	p := newPair(t).create("one", false).fail()
	p.binding.InstanceIncarnation = made.Incarnation
	removed := expect.Get(p.binding.Remove(at(9), at(9)))(t)
	holds(t, removed.FailedCreation() == nil && removed.Attributes.Parameters == nil, "removed with its instance", removed)
	b := expect.Get(p.remove("two", true).binding.Succeed(at(9), nil))(t)
	holds(t, b.Of(made).FailedCreation() != nil, "forgotten although its instance is there")
	other := made
	other.Incarnation = "another"
	holds(t, b.Of(other).FailedCreation() == nil && b.Of(lifecycle.Record{}).FailedCreation() == nil,
		"remembered although its instance is gone")
}

// Only a creation that a request waits for, and that runs, is promised.
func TestPromises(t *testing.T) {
	for name, c := range map[string]lifecycle.Record{
		"Asynchronous": newPair(t).create("one", false).instance,
		"Promised":     newPair(t).create("one", true).promised().instance,
		"Settled":      newPair(t).create("one", true).fail().instance,
		"Deletion":     newPair(t).create("one", true).remove("two", false).instance,
		"Nothing":      {},
	} {
		_, changes := c.Promised()
		expect.Same(t, name+": promised", false, changes)
	}
	p := newPair(t).create("one", true)
	before := deepCopy(p.instance)
	p.instance.Promised()
	same(t, "a promise changed the record that it was made from", before, p.instance)
	op := p.promised().instance.Operation
	holds(t, op.Synchronous && op.Started.Equal(at(1)) && op.Deadline.Equal(at(1).Add(time.Hour)),
		"the operation became another", op)
}
