package lifecycle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// sec is some seconds after the epoch.
func sec(n int) time.Time { return epoch.Add(time.Duration(n) * time.Second) }

// inCourseOf is a course with an operation that runs since the epoch.
func inCourseOf(kind lifecycle.Kind, id string, leases ...lifecycle.Lease) lifecycle.Record {
	return lifecycle.Record{
		Version: 3, Key: instanceKey, State: lifecycle.Creating, Due: sec(60), Leases: leases,
		Operation: &lifecycle.Operation{ID: id, Kind: kind, Phase: lifecycle.InProgress, Started: epoch, Deadline: sec(3600), Attempt: 1,
			Next: epoch},
	}
}

type leases = []lifecycle.Lease

func lease(holder, operation string, taken, until int) lifecycle.Lease {
	return lifecycle.Lease{Holder: holder, Operation: operation, Taken: sec(taken), Until: sec(until)}
}

// witness knows what the map says; nothing if there is none.
func witness(lives map[string]lifecycle.Life) lifecycle.Witness {
	if lives == nil {
		return nil
	}
	return func(holder string) lifecycle.Life { return lives[holder] }
}

func timedOut(l lifecycle.Lease) lifecycle.Lease {
	l.TimedOut = true
	return l
}

// Leases of earlier steps hold back an operation named "mine", or make it wary.
func TestLeasesOfOthers(t *testing.T) {
	dead, alive, ended := map[string]lifecycle.Life{"a": lifecycle.Dead}, map[string]lifecycle.Life{"a": lifecycle.Alive},
		map[string]lifecycle.Life{}
	type want struct {
		Busy   int // seconds after the epoch; 0 if nobody is
		Unsure bool
	}
	const now = 100
	for name, tc := range map[string]struct {
		reason string
		leases leases
		wary   bool
		lives  map[string]lifecycle.Life // nil is a process that does not know
		want   want
	}{
		"None": {reason: "nobody calls the cloud"},
		"Own": {reason: "two steps of one operation must not both ask for a secret",
			leases: leases{lease("a", "mine", 50, 200)}, want: want{Busy: 200}},
		"OwnGivenUp": {reason: "a step that saw its own call time out keeps only others waiting",
			leases: leases{timedOut(lease("a", "mine", 50, 200))}},
		"GivenUp": {reason: "its call may still land", leases: leases{timedOut(lease("a", "other", 50, 200))},
			want: want{Busy: 200}},
		"GivenUpLost": {reason: "and may have landed after that", leases: leases{timedOut(lease("a", "other", 0, 50))},
			want: want{Unsure: true}},
		"OwnLost": {reason: "nor is it troubled by one that was lost", leases: leases{lease("a", "mine", 0, 50)}},
		"Other": {reason: "a step of another operation may be calling", leases: leases{lease("a", "other", 50, 200)},
			want: want{Busy: 200}},
		"Longest": {reason: "the longest of them counts",
			leases: leases{lease("a", "other", 50, 150), lease("b", "other", 50, 200), lease("c", "third", 60, 180)},
			want:   want{Busy: 200}},
		"OwnIsLater": {reason: "the longest of both counts",
			leases: leases{lease("a", "other", 50, 150), lease("b", "mine", 50, 200)}, want: want{Busy: 200}},
		"Lost": {reason: "it ran out and was not given up", leases: leases{lease("a", "other", 0, 50)},
			want: want{Unsure: true}},
		"JustLost": {reason: "it has run out when its time has come", leases: leases{lease("a", "other", 0, now)},
			want: want{Unsure: true}},
		"NearlyLost": {reason: "and not before", leases: leases{lease("a", "other", 0, now+1)}, want: want{Busy: now + 1}},
		"Both": {reason: "one is lost, one is calling",
			leases: leases{lease("a", "other", 0, 50), lease("b", "other", 0, 200)}, want: want{Busy: 200, Unsure: true}},
		"Wary":       {reason: "one was lost before", wary: true, want: want{Unsure: true}},
		"DeadCaller": {reason: "whoever took it is known to be dead", leases: leases{lease("a", "other", 49, 200)}, lives: dead},
		"DeadLost":   {reason: "so it is when it ran out", leases: leases{lease("a", "other", 49, 60)}, lives: dead},
		"DeadAhead": {reason: "also if the clock was ahead when it was taken", leases: leases{lease("a", "other", 5000, 6000)},
			lives: dead},
		"Restarted": {reason: "what is taken since then counts",
			leases: leases{lease("a", "other", 49, 300), lease("b", "other", 50, 200)},
			lives:  map[string]lifecycle.Life{"a": lifecycle.Dead, "b": lifecycle.Alive}, want: want{Busy: 200}},
		"Slept": {reason: "the machine slept: the step lives although its lease has run out",
			leases: leases{lease("a", "other", 0, 50)}, lives: alive, want: want{Busy: now + 1}},
		"OwnSlept": {reason: "so does one of its own operation", leases: leases{lease("a", "mine", 0, 50)}, lives: alive,
			want: want{Busy: now + 1}},
		"OwnDead": {reason: "the process that took it has gone", leases: leases{lease("a", "mine", 50, 200)}, lives: dead},
		"Ended": {reason: "it ended without an answer: its call may land until then",
			leases: leases{lease("a", "other", 50, 200)}, lives: ended, want: want{Busy: 200}},
		"EndedLost": {reason: "and may have landed after that", leases: leases{lease("a", "other", 0, 50)}, lives: ended,
			want: want{Unsure: true}},
		"DeadWary": {reason: "what was lost before the restart stays known", wary: true, lives: dead, want: want{Unsure: true}},
	} {
		c := inCourseOf(lifecycle.Deprovision, "mine", tc.leases...)
		c.Wary = tc.wary
		before := deepCopy(c)
		got := want{Unsure: c.Unsure("mine", sec(now), witness(tc.lives))}
		if until := c.Busy("mine", sec(now), witness(tc.lives)); !until.IsZero() {
			got.Busy = int(until.Sub(epoch) / time.Second)
		}
		same(t, name+": "+tc.reason, tc.want, got)
		same(t, name+": asking changes nothing", before, c)
	}
}

func TestLeased(t *testing.T) {
	a, b, lost := lease("a", "other", 50, 150), lease("b", "other", 50, 150), lease("a", "other", 0, 50)
	ownLost := lease("a", "op", 0, 50)
	for name, tc := range map[string]struct {
		reason string
		kind   lifecycle.Kind
		leases leases
		lives  map[string]lifecycle.Life
		kept   leases // beside the new one
		wary   bool   // afterwards
	}{
		"First": {"nobody calls the cloud", lifecycle.Provision, nil, nil, nil, false},
		"TwoSteps": {"two steps of one operation have a lease each", lifecycle.Provision, leases{lease("a", "op", 50, 150)}, nil,
			leases{lease("a", "op", 50, 150)}, false},
		"OtherRuns": {"what still counts is kept", lifecycle.Deprovision, leases{a}, nil, leases{a}, false},
		"OtherLost": {"a lost lease is dropped, and what it leaves unsure is kept", lifecycle.Deprovision, leases{lost, b}, nil,
			leases{b}, true},
		"OwnLost": {"a lost call of the operation itself is for the deletion to know that overtakes it", lifecycle.Provision,
			leases{ownLost}, nil, nil, true},
		"OwnLostUpdating":  {"an update's call may make something as well", lifecycle.Update, leases{ownLost}, nil, nil, true},
		"OwnLostBinding":   {"so may a bind's", lifecycle.Bind, leases{ownLost}, nil, nil, true},
		"OwnLostDeleting":  {"a lost call that deletes leaves nothing", lifecycle.Deprovision, leases{ownLost}, nil, nil, false},
		"OwnLostUnbinding": {"nor does one that unbinds", lifecycle.Unbind, leases{ownLost}, nil, nil, false},
		"Slept": {"the lease of a step that lives is kept although it has run out", lifecycle.Deprovision, leases{lost},
			map[string]lifecycle.Life{"a": lifecycle.Alive}, leases{lost}, false},
		"Dead": {"what was taken before the restart is dropped without a trace", lifecycle.Deprovision,
			leases{lease("a", "other", 49, 60), lease("b", "other", 49, 150)},
			map[string]lifecycle.Life{"a": lifecycle.Dead, "b": lifecycle.Dead}, nil, false},
	} {
		// The due time is rewritten only when it would pass before the lease: somebody looks if nobody gives it up.
		for due, want := range map[int]int{160: 200, 200: 200, 300: 300} {
			for _, wary := range []bool{false, true} { // once wary, it stays so
				c := inCourseOf(tc.kind, "op", tc.leases...)
				c.Wary, c.Due = wary, sec(due)
				before := deepCopy(c)
				got := c.Leased("mine", sec(100), sec(200), witness(tc.lives))
				same(t, name+": the record it was made from", before, c)
				before.Leases, before.Wary = append(tc.kept, lease("mine", "op", 100, 200)), wary || tc.wary
				before.Due = sec(want)
				same(t, name+": "+tc.reason, before, got)
			}
		}
	}
}

// A step gives up only its own lease, and nothing else changes.
func TestReleased(t *testing.T) {
	a, b := lease("a", "op", 0, 100), lease("b", "op", 10, 110)
	other := lease("c", "other", 0, 100)
	for name, tc := range map[string]struct {
		reason string
		leases leases
		holder string
		held   bool
		want   leases
	}{
		"Only":     {"it was the only one", leases{a}, "a", true, nil},
		"OneOfTwo": {"the other step of the same operation keeps its own", leases{a, b}, "a", true, leases{b}},
		"Fenced":   {"a step that was overtaken gives its own up as well", leases{other, a}, "c", true, leases{a}},
		"Dropped":  {"it has run out and was dropped", leases{b}, "a", false, leases{b}},
		"None":     {"there is none", nil, "a", false, nil},
		"Nobody":   {"a step that took no lease has none to give up", leases{a}, "", false, leases{a}},
	} {
		c := inCourseOf(lifecycle.Provision, "op", tc.leases...)
		c.Wary, c.AbsentSince = true, sec(5)
		before := deepCopy(c)
		got := c.Released(tc.holder)
		same(t, name+": the record it was made from", before, c)
		before.Leases = tc.want
		same(t, name+": "+tc.reason, before, got)
		expect.Same(t, name+": it holds it", tc.held, c.Holds(tc.holder))
		expect.Same(t, name+": it holds it still", false, got.Holds(tc.holder))
	}
}

// A deletion that overtakes a call waits until it is answered, or has run out;
// then one look proves an absence in the first case, and two in the second.
func TestOvertaking(t *testing.T) {
	created := instances.after(t, lifecycle.BeginCreate)
	created = created.Leased("create", sec(0), sec(120), nil)
	c := expect.Get(created.BeginDelete(start("delete", sec(10))))(t)
	expect.Same(t, "the deletion waits until", sec(120), c.Busy("delete", sec(10), nil))
	proves := func(r lifecycle.Record, operation string, now time.Time, w lifecycle.Witness) bool {
		_, proven := r.AbsenceSeen(operation, now, w)
		return proven
	}

	t.Run("Answered", func(t *testing.T) {
		c := c.Released("create")
		holds(t, c.Busy("delete", sec(20), nil).IsZero() && !c.Wary, "it waits for, or distrusts, what was answered", c)
		before := deepCopy(c)
		after, proven := c.AbsenceSeen("delete", sec(20), nil)
		expect.Same(t, "one look proves the absence", true, proven)
		same(t, "and nothing needs to be remembered", before, after)
	})
	t.Run("Lost", func(t *testing.T) {
		expect.Same(t, "it waits until", time.Time{}, c.Busy("delete", sec(120), nil))
		c := c.Leased("delete", sec(120), sec(240), nil)
		before := deepCopy(c)
		c, proven := c.AbsenceSeen("delete", sec(125), nil)
		expect.Same(t, "one look proves the absence although a call may be on its way", false, proven)
		before.AbsentSince = sec(125)
		same(t, "the first look is remembered", before, c)
		for when, want := range map[time.Time]bool{
			sec(126): false, sec(134): false, sec(135).Add(-1): false, sec(135): true, sec(600): true,
		} {
			again, proven := c.AbsenceSeen("delete", when, nil)
			expect.Same(t, fmt.Sprintf("a look after %v proves the absence", when.Sub(sec(125))), want, proven)
			same(t, "when the first look was stays", before, again)
		}
	})
	t.Run("LostButDead", func(t *testing.T) {
		dead := witness(map[string]lifecycle.Life{"create": lifecycle.Dead})
		expect.Same(t, "it waits for the dead until", time.Time{}, c.Busy("delete", sec(20), dead))
		expect.Same(t, "a call of the dead is trusted", true, proves(c, "delete", sec(20), dead))
	})
	t.Run("LostWithoutALeaseOfItsOwn", func(t *testing.T) {
		seen, proven := c.AbsenceSeen("delete", sec(120), nil)
		holds(t, !proven && seen.Wary && seen.AbsentSince.Equal(sec(120)), "the lease that ran out does not make it wary", seen)
	})
	t.Run("LostBeforeItWasDrivenAgain", func(t *testing.T) {
		// The creation's next step has dropped the lease before it is overtaken.
		again := created.Redriven(sec(120)).Leased("create-2", sec(120), sec(240), nil).Released("create-2")
		overtaken := expect.Get(again.BeginDelete(start("delete", sec(125))))(t)
		expect.Same(t, "one look proves the absence", false, proves(overtaken, "delete", sec(126), nil))
	})
	t.Run("NextDeletion", func(t *testing.T) {
		// An absence that a deletion saw before it failed proves nothing to the next deletion.
		seen, _ := c.Leased("delete", sec(120), sec(240), nil).AbsenceSeen("delete", sec(125), nil)
		failed := expect.Get(seen.Released("delete").Fail(sec(130), lifecycle.Overdue()))(t)
		next := expect.Get(failed.BeginDelete(start("delete-2", sec(600))))(t)
		holds(t, next.AbsentSince.IsZero() && next.Wary, "the next deletion begins", next)
		expect.Same(t, "its first look proves the absence", false, proves(next, "delete-2", sec(600), nil))
	})
}

func TestCurrent(t *testing.T) {
	c := inCourseOf(lifecycle.Provision, "op")
	for _, tc := range []struct {
		reason    string
		operation string
		attempt   int
		want      bool
	}{
		{"it is", "op", 1, true},
		{"CONC-09: it was overtaken", "other", 1, false},
		{"another execution drives it", "op", 0, false},
		{"one that was never begun", "op", 2, false},
		{"there is no such operation", "", 0, false},
	} {
		expect.Same(t, tc.reason+": current", tc.want, c.Current(tc.operation, tc.attempt))
	}
	for _, phase := range []lifecycle.Phase{lifecycle.Succeeded, lifecycle.Failed} {
		over := deepCopy(c)
		over.Operation.Phase = phase
		holds(t, !over.Current("op", 1) && !over.InProgress(), "an operation that has settled is current", phase)
	}
	none := lifecycle.Record{}
	holds(t, !none.Current("", 0) && !none.InProgress(), "no operation is current")
	expect.Same(t, "its token", lifecycle.Token{Operation: "op", Key: instanceKey}, c.Token())
	expect.Same(t, "without an operation the token", lifecycle.Token{}, (lifecycle.Record{Key: instanceKey}).Token())
}

// How looks, faults and attempts are recorded: the due time changes only when
// it would pass before the next look counts as missed.
func TestLooks(t *testing.T) {
	type record = lifecycle.Record
	looked := func(now int, l lifecycle.Look) func(record) record {
		return func(c record) record { return c.Looked(sec(now), l) }
	}
	faulted := func(c record) record { return c.Faulted(sec(1), lifecycle.Fault{After: 2 * time.Second}) }
	grace := int(lifecycle.Grace / time.Second)
	for name, tc := range map[string]struct {
		reason string
		before func(c *record, op *lifecycle.Operation)
		do     func(record) record
		want   func(c *record, op *lifecycle.Operation)
	}{
		"Soon": {reason: "a look that is soon enough costs no rewriting of the index", do: looked(0, lifecycle.Look{}),
			want: func(_ *record, op *lifecycle.Operation) { op.Next = sec(0) }},
		"DueInTime": {reason: "so does one that is just soon enough",
			before: func(c *record, _ *lifecycle.Operation) { c.Due = sec(10 + grace) },
			do:     looked(0, lifecycle.Look{After: 10 * time.Second}),
			want:   func(_ *record, op *lifecycle.Operation) { op.Next = sec(10) }},
		"DueTooSoon": {reason: "one that would be missed moves the due time further than it must, so that it moves seldom",
			before: func(c *record, _ *lifecycle.Operation) { c.Due = sec(10 + grace).Add(-1) },
			do:     looked(0, lifecycle.Look{After: 10 * time.Second}),
			want:   func(c *record, op *lifecycle.Operation) { op.Next, c.Due = sec(10), sec(10+2*grace) }},
		"Far": {reason: "a long pause does not count as abandoned", do: looked(30, lifecycle.Look{After: 5 * time.Minute}),
			want: func(c *record, op *lifecycle.Operation) { op.Next, c.Due = sec(330), sec(330+2*grace) }},
		"Progress": {reason: "LOP-01: what is seen is told, and a good look ends a row of faults",
			before: func(_ *record, op *lifecycle.Operation) { op.Faults = 4 },
			do:     looked(0, lifecycle.Look{Percent: 40, Description: "halfway"}),
			want:   func(_ *record, op *lifecycle.Operation) { op.Percent, op.Description, op.Faults = 40, "halfway", 0 }},
		"Backwards": {reason: "progress never goes back, and silence leaves what was told",
			before: func(_ *record, op *lifecycle.Operation) { op.Percent, op.Description = 60, "more than half" },
			do:     looked(0, lifecycle.Look{Percent: 30})},
		"Negative": {reason: "nor below nothing", do: looked(0, lifecycle.Look{Percent: -5})},
		"Whole": {reason: "only what has succeeded is whole", do: looked(0, lifecycle.Look{Percent: 250}),
			want: func(_ *record, op *lifecycle.Operation) { op.Percent = 99 }},
		"Fault": {reason: "a fault is counted and never told",
			before: func(_ *record, op *lifecycle.Operation) {
				op.Percent, op.Description, op.Faults = 60, "more than half", 2
			},
			do:   faulted,
			want: func(c *record, op *lifecycle.Operation) { op.Faults, op.Next, c.Due = 3, sec(3), sec(3+2*grace) }},
		"FaultAfterTrouble": {reason: "what was said of a trouble goes with it, whatever comes next",
			before: func(_ *record, op *lifecycle.Operation) {
				op.Description, op.Trouble, op.Faults = "cannot be used", "unreachable", 2
			},
			do: faulted,
			want: func(c *record, op *lifecycle.Operation) {
				op.Description, op.Trouble, op.Faults, op.Next, c.Due = "", "", 3, sec(3), sec(3+2*grace)
			}},
		"FaultInTime": {reason: "nor does a fault rewrite the due time without need",
			before: func(c *record, _ *lifecycle.Operation) { c.Due = sec(500) },
			do:     faulted, want: func(_ *record, op *lifecycle.Operation) { op.Faults, op.Next = 1, sec(3) }},
		"Redriven": {reason: "the next attempt begins at once",
			before: func(_ *record, op *lifecycle.Operation) { op.Percent, op.Next = 60, sec(500) },
			do:     func(c record) record { return c.Redriven(sec(400)) },
			want:   func(c *record, op *lifecycle.Operation) { op.Attempt, op.Next, c.Due = 2, sec(400), sec(400+grace) }},
	} {
		c := inCourseOf(lifecycle.Provision, "op", lease("a", "op", 0, 30))
		if tc.before != nil {
			tc.before(&c, c.Operation)
		}
		before := deepCopy(c)
		got := tc.do(c)
		same(t, name+": the record it was made from", before, c)
		if tc.want != nil {
			tc.want(&before, before.Operation)
		}
		same(t, name+": "+tc.reason, before, got)
	}
}

// LOP-19: what has settled, and what never began, is not looked at.
func TestWhatHasSettledStays(t *testing.T) {
	for name, op := range map[string]*lifecycle.Operation{
		"None":      nil,
		"Succeeded": {ID: "op", Kind: lifecycle.Provision, Phase: lifecycle.Succeeded, Percent: 100, Attempt: 1, Settled: sec(1)},
		"Failed":    {ID: "op", Kind: lifecycle.Provision, Phase: lifecycle.Failed, Description: "no room", Attempt: 1, Settled: sec(1)},
	} {
		c := lifecycle.Record{State: lifecycle.Ready, Operation: op}
		same(t, name+": looked", c, c.Looked(sec(5), lifecycle.Look{Percent: 10, Description: "going on", After: time.Hour}))
		same(t, name+": faulted", c, c.Faulted(sec(5), lifecycle.Fault{After: time.Hour}))
		same(t, name+": redriven", c, c.Redriven(sec(5)))
	}
}

// A poll shows the description of the work again once a trouble is over, also after a second trouble.
func TestADescriptionOutlivesATrouble(t *testing.T) {
	c := inCourseOf(lifecycle.Provision, "mine")
	c.Operation.Description = "copies"
	for n, trouble := range []string{"unreachable", "no login"} {
		c = c.Faulted(sec(n), lifecycle.Fault{Trouble: trouble, Description: "cannot be used"})
		holds(t, c.Operation.Description == "cannot be used" && c.Operation.Trouble == trouble, "in trouble", c.Operation)
	}
	if c = c.Looked(sec(3), lifecycle.Look{}); c.Operation.Description != "copies" || c.Operation.Trouble != "" || c.Operation.Before != "" {
		t.Errorf("after it: %+v", c.Operation)
	}
}
