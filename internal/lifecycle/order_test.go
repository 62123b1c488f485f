package lifecycle_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// Which of two requests came first: the table of docs/decisions/0003-order-of-requests.md.
// A time decides only about an id that was deleted before, and then it refuses.
func TestTheOrderOfRequests(t *testing.T) {
	again := func(p *pair, now, received time.Time) *pair { return p.begins(now, received).ends(now) }
	first := again(newPair(t), at(10), at(10))
	tombstone := first.isDeleted(at(20), at(20)).ends(at(21))
	brokers := first.isDeleted(at(20), time.Time{}).ends(at(21))
	second := again(tombstone, at(30), at(30))
	entombed := func(received time.Time) *pair {
		return newPair(t).does(func(r lifecycle.Record, _ machine) (lifecycle.Record, error) { return r.Entomb(at(20), received) })
	}
	// Put and Delete are of the instance and of the binding, both alike; Bind and
	// Patch are what they come to on the instance.
	type row struct{ Put, Delete, Patch, Bind string }
	type when struct{ received, now time.Time }
	early := func(n int) when { return when{at(n), at(40)} }
	lives := row{exists, begin, begin, ok}
	gone := row{begin, missing, notFound, notFound}
	tooLate := row{late, missing, notFound, notFound}
	for name, tc := range map[string]struct {
		reason string
		is     *pair
		when   when
		want   row
	}{
		"Absent":            {"commit order: there is nothing", newPair(t), early(5), gone},
		"FirstLife":         {"commit order: it can mean nothing else", first, early(15), lives},
		"FirstLifeBefore":   {"the clock went back, or another's is behind: a DELETE is never answered 410", first, early(5), lives},
		"FirstLifeStepBack": {"the same, by the broker's own clock", first, when{at(5), at(5)}, lives},
		"Tombstone":         {"it was sent after the deletion", tombstone, early(25), gone},
		"TombstoneBefore":   {"ORB-03: it was sent before", tombstone, early(15), tooLate},
		"TombstoneSame":     {"in doubt it was", tombstone, early(20), tooLate},
		"TombstoneStepBack": {"a tombstone from the future does not block its id", tombstone, when{at(15), at(15)}, gone},
		"TombstoneBothAhead": {"the clock stepped back since both: they can be compared", tombstone, when{at(15), at(5)},
			tooLate},
		"TombstoneSkew": {"that is more than clocks are apart", tombstone, when{at(15), at(20).Add(-lifecycle.ClockSkew)},
			tooLate},
		"TombstoneJustNot":   {"and not less", tombstone, when{at(15), at(20).Add(-lifecycle.ClockSkew - 1)}, gone},
		"Entombed":           {"ORB-03: what was never seen is remembered as deleted", entombed(at(20)), early(15), tooLate},
		"EntombedAhead":      {"no request arrives after it is decided", entombed(at(80)), early(25), gone},
		"EntombedAheadAfter": {"so one from before is not taken for one from after", entombed(at(80)), early(15), tooLate},
		"Again":              {"it was sent after the creation", second, early(35), lives},
		"AgainBetween": {"it was sent between the deletion and the creation: it means what was there then", second, early(25),
			row{exists, late, late, late}},
		"AgainBefore": {"it was sent before the deletion: nothing is done, and it is no lie to say so", second, early(15),
			row{exists, late, late, late}},
		"AgainStepBack":  {"an incarnation from the future is not protected from what is sent now", second, when{at(15), at(16)}, lives},
		"AgainBothAhead": {"the clock stepped back since both: they can be compared", second, when{at(25), at(5)}, row{exists, late, late, late}},
		"AgainAhead": {
			"a request's clock that is ahead spoils nothing for the next", again(tombstone, at(30), at(90)), early(35), lives,
		},
		"AgainBehind": {
			"times on a record go on: a creation is after the deletion that was committed before it", again(tombstone, at(15), at(15)),
			when{at(20), at(40)}, row{exists, late, late, late},
		},
		"AgainBehindAfter": {"but not much after", again(tombstone, at(15), at(15)), when{at(20).Add(2 * time.Millisecond), at(40)}, lives},
		"AgainTheBrokers": {"what the broker deleted by itself, no request has asked for",
			again(brokers, at(30), at(30)), early(5), lives},
		"TombstoneOfTheBroker": {"nor was any overtaken by it", brokers, early(5), gone},
		"DeleteFailed": {
			"it is to be deleted, whoever asks", second.isDeleted(at(32), at(32)).overdue(at(33)), early(15), row{cannot, begin, cannot, cannot},
		},
		"Deleting": {"it is being deleted, whoever asks", second.isDeleted(at(32), at(32)), early(15), row{ce, join, ce, ce}},
	} {
		t.Run(name, func(t *testing.T) {
			received, now := tc.when.received, tc.when.now
			patch, err := onPatch(tc.is.instance, false, received, now)
			expect.Same(t, tc.reason+": a PATCH", tc.want.Patch, outcome(t, patch, err))
			expect.Same(t, tc.reason+": a bind", tc.want.Bind, allowed(t, onBind(tc.is.instance, received, now)))
			tc.is.both(t, tc.reason+": a PUT", tc.want.Put, func(r lifecycle.Record) (lifecycle.Answer, error) {
				return onPut(r, true, true, received, now)
			})
			tc.is.both(t, tc.reason+": a DELETE", tc.want.Delete, func(r lifecycle.Record) (lifecycle.Answer, error) {
				return onDelete(r, received, now)
			})
		})
	}
}

// A binding that goes with its instance was deleted by the request that deleted
// the instance: what was sent before that does nothing to the next binding.
func TestARequestOvertakenByTheInstancesDeletion(t *testing.T) {
	b := expect.Get(newPair(t).begins(at(10), at(10)).ends(at(10)).binding.Remove(at(21), at(20)))(t)
	a, err := onPut(b, true, true, at(15), at(40))
	expect.Same(t, "a late bind", late, outcome(t, a, err))
	b = expect.Get(b.BeginCreate(start("again", at(30)), bound("small")))(t)
	for received, want := range map[time.Time]string{at(15): late, at(35): begin} {
		a, err := onDelete(b, received, at(40))
		expect.Same(t, "a DELETE received at "+received.String(), want, outcome(t, a, err))
	}
}

// Times on a record never go back, whatever clocks do.
func TestTimesNeverGoBack(t *testing.T) {
	i := newPair(t).begins(at(60), at(60)).ends(at(60)).instance
	last := i.Operation.Settled
	later := func(what string, at time.Time) {
		t.Helper()
		holds(t, at.After(last), what+" too early", at, last)
		last = at
	}
	i = expect.Get(i.BeginUpdate(start("update", at(0)), attributes("large")))(t)
	later("an update begins", i.Operation.Started)
	expect.Same(t, "what is planned goes by the clock as it is: the deadline", at(60), i.Operation.Deadline)
	i = expect.Get(i.Succeed(at(1), nil))(t)
	later("it ends", i.Operation.Settled)
	expect.Same(t, "it was updated", i.Operation.Settled, i.Updated)
	i = i.SetContext(lifecycle.Attributes{Context: i.Attributes.Context}, at(2))
	holds(t, i.Updated.After(last), "a new context came too early", i.Updated)
	created := i.CreateReceived
	i = expect.Get(i.BeginDelete(start("deletion", at(3))))(t)
	later("a deletion begins", i.Operation.Started)
	holds(t, i.DeleteReceived.After(created), "it was asked for before it was created", i.DeleteReceived, created)
	deleted := i.DeleteReceived
	again, changed := i.AskedAgain(at(4), at(4))
	holds(t, !changed && again.DeleteReceived.Equal(deleted), "an earlier repetition moves it", again.DeleteReceived)
	again, changed = i.AskedAgain(at(70), at(65))
	holds(t, changed && again.DeleteReceived.Equal(at(65)), "a later repetition moves it elsewhere", again.DeleteReceived)
	i = expect.Get(i.Succeed(at(5), nil))(t)
	later("it ends", i.Operation.Settled)
	gone := i
	i, err := i.BeginCreate(start("again", at(6)), lifecycle.Record{Provider: "provider", Attributes: attributes("small")})
	expect.OK(t, err)
	expect.Same(t, "what is remembered ended", last, i.Past(gone).Operation.Settled)
	later("it begins again", i.Operation.Started)
	holds(t, i.Created.Equal(i.Operation.Started) && i.CreateReceived.After(deleted), "it was created", i)
	overtaking, err := i.BeginDelete(start("overtakes", at(5)))
	expect.OK(t, err)
	later("a cancelled operation ends", overtaking.Past(i).Operation.Settled)
}
