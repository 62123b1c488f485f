package lifecycle_test

import (
	"errors"
	"fmt"
	"reflect"
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
	p.minute++
	return start(id, at(p.minute))
}

func (p *pair) no(errs ...error) {
	p.Helper()
	expect.OK(p, errors.Join(errs...))
}

// does has one thing be done to both.
func (p *pair) does(do func(lifecycle.Record, machine) (lifecycle.Record, error)) *pair {
	p.Helper()
	i, err := do(p.instance, instances)
	b, err2 := do(p.binding, bindings)
	p.no(err, err2)
	p.instance, p.binding = i, b
	return p
}

func (p *pair) create(id string, synchronous bool) *pair {
	p.Helper()
	s := p.start(id)
	s.Synchronous, s.Asker = synchronous, lifecycle.Asker{Request: "request"}
	return p.does(func(r lifecycle.Record, m machine) (lifecycle.Record, error) {
		next, _, err := r.BeginCreate(s, m.fresh)
		return next, err
	})
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
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) {
		next, _, err := r.BeginDelete(s)
		return next, err
	})
}

func (p *pair) fail() *pair {
	p.Helper()
	p.minute++
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) {
		return r.Fail(at(p.minute), lifecycle.Failure{Message: "no room"})
	})
}

func (p *pair) succeed() *pair {
	p.Helper()
	p.minute++
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.Succeed(at(p.minute), nil) })
}

func (p *pair) entomb() *pair {
	p.Helper()
	p.minute++
	return p.does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) {
		return r.Entomb(at(p.minute), at(p.minute))
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

// PROV-30: what failed asynchronously stays failed until the platform deletes
// it, whatever the broker itself does about it; what failed synchronously was
// told in the answer.
func TestWhatFailedStaysFailed(t *testing.T) {
	tests := map[string]struct {
		reason string
		make   func(p *pair) *pair
		// permitted and waiting are what the same request comes to, different
		// what another one does; token is the operation that it is answered with.
		permitted, waiting, different, token string
	}{
		"Asynchronously": {"told by its token",
			func(p *pair) *pair { return p.create("one", false).fail() }, stays, begin, conflict, "one"},
		"Synchronously": {"told in the answer",
			func(p *pair) *pair { return p.create("one", true).fail() }, begin, begin, conflict, ""},
		"AnsweredAfterItsWait": {"a synchronous operation whose token was given away counts as asynchronous",
			func(p *pair) *pair { return p.create("one", true).promised().fail() }, stays, begin, conflict, "one"},
		"BegunAgain": {"the latest failure counts",
			func(p *pair) *pair { return p.create("one", false).fail().create("two", false).fail() }, stays, begin, conflict,
			"two"},
		"BegunAgainSynchronously": {"which was told in the answer",
			func(p *pair) *pair { return p.create("one", false).fail().create("two", true).fail() }, begin, begin, conflict,
			""},
		"BeingRemovedByTheBroker": {"the platform asked for no deletion",
			func(p *pair) *pair { return p.create("one", false).fail().remove("two", true) }, stays, ce, conflict, "one"},
		"NotRemovedByTheBroker": {"nor did it hear of it",
			func(p *pair) *pair { return p.create("one", false).fail().remove("two", true).fail() }, stays, cannot, conflict,
			"one"},
		"RemovedAtTheSecondTry": {"",
			func(p *pair) *pair {
				return p.create("one", false).fail().remove("two", true).fail().remove("three", true).succeed()
			}, stays, begin, conflict, "one"},
		"RemovedByTheBroker": {"until the tombstone expires",
			func(p *pair) *pair { return p.create("one", false).fail().remove("two", true).succeed() }, stays, begin,
			conflict, "one"},
		"SynchronouslyAndRemoved": {"",
			func(p *pair) *pair { return p.create("one", true).fail().remove("two", true).succeed() }, begin, begin, begin, ""},
		"BeingDeleted": {"a platform's DELETE ends it",
			func(p *pair) *pair { return p.create("one", false).fail().remove("two", false) }, ce, ce, conflict, ""},
		"DeletedWhileTheBrokerRemovesIt": {"a DELETE joins the broker's deletion, and is a platform's all the same",
			func(p *pair) *pair { return p.create("one", false).fail().remove("two", true).askedAgain() }, ce, ce, conflict,
			""},
		"Deleted": {"the id is free",
			func(p *pair) *pair { return p.create("one", false).fail().remove("two", false).succeed() }, begin, begin, begin, ""},
		"DeletedAfterTheBrokerHasRemovedIt": {"a DELETE of what the broker has removed frees the id",
			func(p *pair) *pair { return p.create("one", false).fail().remove("two", true).succeed().entomb() }, begin,
			begin, begin, ""},
		"NotDeleted": {"what a platform could not delete is half deleted, also when the broker tries again",
			func(p *pair) *pair {
				return p.create("one", false).fail().remove("two", false).fail().remove("three", true).fail()
			}, cannot, cannot, conflict, ""},
		"Overtaken": {"what was cancelled has not failed by itself",
			func(p *pair) *pair { return p.create("one", false).remove("two", true).succeed() }, begin, begin, begin, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := tc.make(newPair(t))
			for _, same := range []bool{true, false} {
				for _, permitted := range []bool{true, false} {
					want := tc.different
					switch {
					case same && permitted:
						want = tc.permitted
					case same:
						want = tc.waiting
					}
					a, err := onPut(p.instance, same, permitted, at(60), at(60))
					expect.Same(t, fmt.Sprintf("%s: an instance, same %v, permitted %v", tc.reason, same, permitted), want,
						outcome(t, a, err))

					a, err = onPut(p.binding, same, permitted, at(60), at(60))
					expect.Same(t, fmt.Sprintf("%s: a binding, same %v, permitted %v", tc.reason, same, permitted), want,
						outcome(t, a, err))
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
				fresh := newPair(t).create("one", false).fail()
				if got, want := p.seen(), fresh.seen(); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: a platform sees %q, want %q", tc.reason, got, want)
				}
			}
		})
	}
}

// seen are the answers to what reads, and to what needs the instance.
func (p *pair) seen() []string {
	update, err := onPatch(p.instance, true, at(60), at(60))
	return []string{
		outcome(p.T, update, err), allowed(p.T, onGet(p.instance)), allowed(p.T, onBind(p.instance, at(60), at(60))),
		allowed(p.T, onGet(p.binding)),
	}
}

// The tombstone of what failed keeps what recognises the request, and nothing
// that opens anything; and not longer than it must.
func TestTombstonesOfWhatFailed(t *testing.T) {
	p := newPair(t).create("one", false).fail().remove("two", true).succeed()
	same(t, "the attributes", attributes("small"), p.instance.Attributes)
	if b := p.binding; b.Secret != nil || b.Grant != nil || b.Attributes.Context != nil || b.Attributes.Parameters == nil ||
		b.AppGUID == "" {
		t.Errorf("the binding's tombstone is %+v", b)
	}
	p.entomb()
	if a := p.instance.Attributes; a.Parameters != nil || a.Context != nil || a.OrganizationGUID != "" ||
		p.instance.Failed != nil {
		t.Errorf("after a DELETE, the instance's tombstone is %+v", p.instance)
	}
	if b := p.binding; b.Attributes.Parameters != nil || b.AppGUID != "" || b.Failed != nil {
		t.Errorf("after a DELETE, the binding's tombstone is %+v", b)
	}
}

// The failure of a binding is forgotten once its instance is gone or is a later life.
func TestWhatFailedGoesWithItsInstance(t *testing.T) {
	made := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed)
	p := newPair(t).create("one", false).fail()
	p.binding.InstanceIncarnation = made.Incarnation
	removed, err := p.binding.Remove(at(9), at(9))
	p.no(err)
	if removed.FailedCreation() != nil || removed.Attributes.Parameters != nil {
		t.Errorf("removed with its instance: %+v", removed)
	}
	p.remove("two", true)
	b, err := p.binding.Succeed(at(9), nil)
	p.no(err)
	if b.Of(made).FailedCreation() == nil {
		t.Error("forgotten although its instance is there")
	}
	other := made
	other.Incarnation = "another"
	if b.Of(other).FailedCreation() != nil || b.Of(lifecycle.Record{}).FailedCreation() != nil {
		t.Error("remembered although its instance is gone")
	}
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
		if _, changes := c.Promised(); changes {
			t.Errorf("%s: promised", name)
		}
	}
	p := newPair(t).create("one", true)
	before := deepCopy(p.instance)
	p.instance.Promised()
	same(t, "a promise changed the record that it was made from", before, p.instance)
	if c := p.promised().instance; !c.Operation.Synchronous || c.Operation.Started != at(1) ||
		c.Operation.Deadline != at(1).Add(time.Hour) {
		t.Errorf("the operation became another: %+v", c.Operation)
	}
}
