package lifecycle_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// A life is what has been with an instance's id and a binding's.
type life struct {
	instance lifecycle.Record
	binding  lifecycle.Record
}

func newLife() life { return life{instances.absent(), bindings.absent()} }

// begins makes both, by requests of that time.
func (l life) begins(t *testing.T, now, received time.Time) life {
	t.Helper()
	s := lifecycle.Start{ID: "creation", Now: now, Received: received, Timeout: time.Hour}
	i, _, err := l.instance.BeginCreate(s, lifecycle.Record{Provider: "provider", Attributes: attributes("small")})
	b, _, err2 := l.binding.BeginCreate(s, bound("small"))
	if err == nil {
		i, err = i.Succeed(now, nil)
	}
	if err2 == nil {
		b, err2 = b.Succeed(now, nil)
	}
	expect.OK(t, errors.Join(err, err2))
	return life{i, b}
}

// isDeleted begins the deletion of both, by requests of that time; zero is the
// broker's own doing.
func (l life) isDeleted(t *testing.T, now, received time.Time) life {
	t.Helper()
	s := lifecycle.Start{ID: "deletion", Now: now, Received: received, Timeout: time.Hour}
	i, _, err := l.instance.BeginDelete(s)
	b, _, err2 := l.binding.BeginDelete(s)
	expect.OK(t, errors.Join(err, err2))
	return life{i, b}
}

func (l life) ends(t *testing.T, now time.Time) life {
	t.Helper()
	i, err := l.instance.Succeed(now, nil)
	b, err2 := l.binding.Succeed(now, nil)
	expect.OK(t, errors.Join(err, err2))
	return life{i, b}
}

func (l life) fails(t *testing.T, now time.Time) life {
	t.Helper()
	i, err := l.instance.Fail(now, lifecycle.Overdue())
	b, err2 := l.binding.Fail(now, lifecycle.Overdue())
	expect.OK(t, errors.Join(err, err2))
	return life{i, b}
}

// Which of two requests came first: the table of docs/decisions/0003-order-of-requests.md.
// A time decides only about an id that was deleted before, and then it refuses.
func TestTheOrderOfRequests(t *testing.T) {
	first := newLife().begins(t, at(10), at(10))
	tombstone := first.isDeleted(t, at(20), at(20)).ends(t, at(21))
	again := tombstone.begins(t, at(30), at(30))
	entombed := func(now, received time.Time) life {
		i, err := instances.absent().Entomb(now, received)
		b, err2 := bindings.absent().Entomb(now, received)
		expect.OK(t, errors.Join(err, err2))
		return life{i, b}
	}
	// Put and Delete are of the instance and of the binding, both alike; Bind and
	// Patch are what they come to on the instance.
	type row struct{ Put, Delete, Patch, Bind string }
	type when struct{ received, now time.Time }
	early := func(n int) when { return when{at(n), at(40)} }
	alive := row{exists, begin, begin, ok}
	gone := row{begin, missing, notFound, notFound}
	tests := map[string]struct {
		reason string
		is     life
		when   when
		want   row
	}{
		"Absent":            {"commit order: there is nothing", newLife(), early(5), gone},
		"FirstLife":         {"commit order: it can mean nothing else", first, early(15), alive},
		"FirstLifeBefore":   {"the clock went back, or another's is behind: a DELETE is never answered 410", first, early(5), alive},
		"FirstLifeStepBack": {"the same, by the broker's own clock", first, when{at(5), at(5)}, alive},
		"Tombstone":         {"it was sent after the deletion", tombstone, early(25), gone},
		"TombstoneBefore":   {"ORB-03: it was sent before", tombstone, early(15), row{ce, missing, notFound, notFound}},
		"TombstoneSame":     {"in doubt it was", tombstone, early(20), row{ce, missing, notFound, notFound}},
		"TombstoneStepBack": {"a tombstone from the future does not block its id", tombstone, when{at(15), at(15)}, gone},
		"TombstoneBothAhead": {"the clock stepped back since both: they can be compared", tombstone, when{at(15), at(5)},
			row{ce, missing, notFound, notFound}},
		"TombstoneSkew": {"that is more than clocks are apart", tombstone, when{at(15), at(20).Add(-lifecycle.ClockSkew)},
			row{ce, missing, notFound, notFound}},
		"TombstoneJustNot": {"and not less", tombstone, when{at(15), at(20).Add(-lifecycle.ClockSkew - 1)}, gone},
		"Entombed": {"ORB-03: what was never seen is remembered as deleted", entombed(at(20), at(20)), early(15),
			row{ce, missing, notFound, notFound}},
		"EntombedAhead": {"no request arrives after it is decided", entombed(at(20), at(80)), early(25), gone},
		"EntombedAheadAfter": {"so one from before is not taken for one from after", entombed(at(20), at(80)), early(15),
			row{ce, missing, notFound, notFound}},
		"Again": {"it was sent after the creation", again, early(35), alive},
		"AgainBetween": {"it was sent between the deletion and the creation: it means what was there then", again, early(25),
			row{exists, ce, ce, ce}},
		"AgainBefore": {"it was sent before the deletion: nothing is done, and it is no lie to say so", again, early(15),
			row{exists, ce, ce, ce}},
		"AgainStepBack":  {"an incarnation from the future is not protected from what is sent now", again, when{at(15), at(16)}, alive},
		"AgainBothAhead": {"the clock stepped back since both: they can be compared", again, when{at(25), at(5)}, row{exists, ce, ce, ce}},
		"AgainAhead": {
			"a request's clock that is ahead spoils nothing for the next", tombstone.begins(t, at(30), at(90)), early(35), alive,
		},
		"AgainBehind": {
			"times on a record go on: a creation is after the deletion that was committed before it", tombstone.begins(t, at(15), at(15)),
			when{at(20), at(40)}, row{exists, ce, ce, ce},
		},
		"AgainBehindAfter": {"but not much after", tombstone.begins(t, at(15), at(15)), when{at(20).Add(2 * time.Millisecond), at(40)}, alive},
		"AgainTheBrokers": {"what the broker deleted by itself, no request has asked for",
			first.isDeleted(t, at(20), time.Time{}).ends(t, at(21)).begins(t, at(30), at(30)), early(5), alive},
		"TombstoneOfTheBroker": {"nor was any overtaken by it", first.isDeleted(t, at(20), time.Time{}).ends(t, at(21)), early(5), gone},
		"DeleteFailed": {
			"it is to be deleted, whoever asks", again.isDeleted(t, at(32), at(32)).fails(t, at(33)), early(15), row{cannot, begin, cannot, cannot},
		},
		"Deleting": {"it is being deleted, whoever asks", again.isDeleted(t, at(32), at(32)), early(15), row{ce, join, ce, ce}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			received, now := tc.when.received, tc.when.now
			answered := func(a lifecycle.Answer, err error) string { return outcome(t, a, err) }
			got := row{Put: answered(onPut(tc.is.instance, true, true, received, now)),
				Delete: answered(onDelete(tc.is.instance, received, now)),
				Patch:  answered(onPatch(tc.is.instance, false, received, now)),
				Bind:   allowed(t, onBind(tc.is.instance, received, now))}
			same(t, tc.reason, tc.want, got)
			expect.Same(t, fmt.Sprintf("%s: a PUT of the binding", tc.reason), tc.want.Put,
				answered(onPut(tc.is.binding, true, true, received, now)))

			expect.Same(t, fmt.Sprintf("%s: a DELETE of the binding", tc.reason), tc.want.Delete,
				answered(onDelete(tc.is.binding, received, now)))
		})
	}
}

// A binding that goes with its instance was deleted by the request that deleted
// the instance: what was sent before that does nothing to the next binding.
func TestARequestOvertakenByTheInstancesDeletion(t *testing.T) {
	b := newLife().begins(t, at(10), at(10)).binding
	b, err := b.Remove(at(21), at(20))
	expect.OK(t, err)
	if a, err := onPut(b, true, true, at(15), at(40)); outcome(t, a, err) != ce {
		t.Errorf("a late bind: %v %v", a, err)
	}
	b, _, err = b.BeginCreate(start("again", at(30)), bound("small"))
	expect.OK(t, err)
	for received, want := range map[time.Time]string{at(15): ce, at(35): begin} {
		if a, err := onDelete(b, received, at(40)); outcome(t, a, err) != want {
			t.Errorf("a DELETE received at %v: %v %v, want %s", received, a, err, want)
		}
	}
}

// Times on a record never go back, whatever clocks do.
func TestTimesNeverGoBack(t *testing.T) {
	i := newLife().begins(t, at(60), at(60)).instance
	last := i.Operation.Settled
	later := func(what string, at time.Time) {
		t.Helper()
		if !at.After(last) {
			t.Errorf("%s: %v is not after %v", what, at, last)
		}
		last = at
	}
	i, _, err := i.BeginUpdate(start("update", at(0)), attributes("large"))
	expect.OK(t, err)
	later("an update begins", i.Operation.Started)
	if deadline := at(60); !i.Operation.Deadline.Equal(deadline) {
		t.Errorf("what is planned goes by the clock as it is: the deadline is %v, want %v", i.Operation.Deadline, deadline)
	}
	if i, err = i.Succeed(at(1), nil); err != nil {
		t.Fatal(err)
	}
	later("it ends", i.Operation.Settled)
	if !i.Updated.Equal(i.Operation.Settled) {
		t.Errorf("it was updated at %v", i.Updated)
	}
	i = i.SetContext(lifecycle.Attributes{Context: i.Attributes.Context}, at(2))
	if !i.Updated.After(last) {
		t.Errorf("a new context came at %v", i.Updated)
	}
	created := i.CreateReceived
	i, _, err = i.BeginDelete(start("deletion", at(3)))
	expect.OK(t, err)
	later("a deletion begins", i.Operation.Started)
	if !i.DeleteReceived.After(created) {
		t.Errorf("it was asked for at %v, and created at %v", i.DeleteReceived, created)
	}
	deleted := i.DeleteReceived
	if again, changed := i.AskedAgain(at(4), at(4)); changed || !again.DeleteReceived.Equal(deleted) {
		t.Errorf("an earlier repetition moves it to %v", again.DeleteReceived)
	}
	if again, changed := i.AskedAgain(at(70), at(65)); !changed || !again.DeleteReceived.Equal(at(65)) {
		t.Errorf("a later repetition moves it to %v", again.DeleteReceived)
	}
	if i, err = i.Succeed(at(5), nil); err != nil {
		t.Fatal(err)
	}
	later("it ends", i.Operation.Settled)
	i, past, err := i.BeginCreate(start("again", at(6)), lifecycle.Record{Provider: "provider", Attributes: attributes("small")})
	expect.OK(t, err)
	if !past.Operation.Settled.Equal(last) {
		t.Errorf("what is remembered ended at %v, want %v", past.Operation.Settled, last)
	}
	later("it begins again", i.Operation.Started)
	if !i.Created.Equal(i.Operation.Started) || !i.CreateReceived.After(deleted) {
		t.Errorf("it was created at %v, and asked for at %v", i.Created, i.CreateReceived)
	}
	_, past, err = i.BeginDelete(start("overtakes", at(5)))
	expect.OK(t, err)
	later("a cancelled operation ends", past.Operation.Settled)
}
