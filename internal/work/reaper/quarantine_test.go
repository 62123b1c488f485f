package reaper_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/reaper"
)

// strayed is a stock with a thing that nothing explains, and that is being put out of use.
func strayed(t *testing.T) *stock {
	t.Helper()
	s := known(t)
	s.things = many(1)
	s.sees("a stray", ledger.Counted{Things: 1, Quarantined: []string{"thing-stray-000"}}, s.twice())
	if len(s.started) != 1 || s.started[0].Token != s.quarantined().Token() || s.started[0].Attempt != 1 {
		t.Fatalf("started %v", s.started)
	}
	return s
}

// enclosed is such a stock, where a step has put the thing out of use.
func enclosed(t *testing.T) *stock {
	t.Helper()
	s := strayed(t)
	s.moved()
	return s
}

func (s *stock) quarantined() lifecycle.Record {
	s.Helper()
	return s.former(s.things[0])
}

// moved has a step do what is to be done.
func (s *stock) moved() {
	s.Helper()
	s.commit(ledger.Put(expect.Get(s.quarantined().Succeed(s.now, nil))(s)))
}

// rest sweeps each hour for so long.
func (s *stock) rest(d time.Duration) {
	s.Helper()
	for ; d > 0; d -= time.Hour {
		s.now = s.now.Add(time.Hour)
		s.run(s.Context())
	}
}

// updated has the stray be updated.
func updated(s *stock) {
	s.Helper()
	start := lifecycle.Start{ID: "update", Now: s.now, Timeout: 100 * 24 * time.Hour}
	r, err := s.state("stray-000").BeginUpdate(start, lifecycle.Attributes{})
	expect.OK(s, err)
	s.commit(ledger.Put(r))
}

// An unexplained orphan is in quarantine for two weeks before it is deleted.
func TestAnOrphanThatNobodyMissesIsDeletedAfterItsQuarantine(t *testing.T) {
	s := enclosed(t)
	s.sees("the stray", ledger.Counted{Things: 1, InQuarantine: 1}, s.pass())
	s.rest(13 * 24 * time.Hour)
	if len(s.started) != 1 || s.state("stray-000").State != lifecycle.Absent {
		t.Fatalf("after thirteen days: started %v, its record is %q", s.started, s.state("stray-000").State)
	}
	s.rest(24 * time.Hour)
	r := s.former(s.things[0])
	if r.State != lifecycle.Deleting || len(s.started) < 2 || s.started[1].Token != r.Token() || r.Incarnation != "made-stray-000" {
		t.Errorf("after two weeks its record is %+v, started %v", r, s.started)
	}
	reports, err := s.records.Reports(t.Context(), time.Time{})
	if err != nil || !slices.ContainsFunc(reports, func(r ledger.Report) bool { return r.Swept != nil && r.Swept.Ended == 1 }) {
		t.Errorf("no report tells of the deletion: %v", err)
	}
}

func TestAQuarantineEndsBefore(t *testing.T) {
	recorded := func(s *stock, incarnation string) {
		r := expect.Get(s.record(s.overdue("stray-000")).Succeed(s.now, nil))(s)
		r.Incarnation = incarnation
		s.commit(ledger.Put(r))
	}
	for name, tc := range map[string]struct {
		reason string
		do     func(s *stock)
		rest   time.Duration
		former lifecycle.State // of the life in quarantine
		state  lifecycle.State
	}{
		"Record": {"its record is back: it is in use", func(s *stock) { recorded(s, "made-stray-000") }, 2 * time.Hour,
			lifecycle.Releasing, lifecycle.Ready},
		"Updating": {"its record is back, and it is being updated", func(s *stock) {
			recorded(s, "made-stray-000")
			updated(s)
		}, 2 * time.Hour, lifecycle.Releasing, lifecycle.Updating},
		"UpdatingAtTheEnd": {"its record comes back last", func(s *stock) {
			s.rest(14*24*time.Hour - 2*time.Hour)
			recorded(s, "made-stray-000")
			updated(s)
		}, 3 * time.Hour, lifecycle.Releasing, lifecycle.Updating},
		"Tombstone": {"its platform wants it deleted", func(s *stock) { s.entombed("stray-000") }, 2 * time.Hour,
			lifecycle.Deleting, lifecycle.Deleted},
		"OtherLife": {"its id has another life", func(s *stock) { recorded(s, "another") }, 2 * time.Hour, lifecycle.Quarantined,
			lifecycle.Ready},
		"OtherLifeEnd": {"what is left of it is removed, and the other life stays", func(s *stock) { recorded(s, "another") },
			14 * 24 * time.Hour, lifecycle.Deleting, lifecycle.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			s := enclosed(t)
			tc.do(s)
			s.rest(tc.rest)
			if q := s.quarantined(); q.State != tc.former || s.state("stray-000").State != tc.state {
				t.Errorf("%s: it is %q, and its record %q", tc.reason, q.State, s.state("stray-000").State)
			}
		})
	}
}

// If a record comes back while its thing is being put into quarantine, no step goes on with the quarantine.
func TestAQuarantineThatIsLateIsReleased(t *testing.T) {
	s := strayed(t)
	q := s.quarantined()
	expect.Same(t, "at first it is", lifecycle.Quarantining, q.State)
	back := lifecycle.Thing{Incarnation: q.Incarnation, Provider: q.Provider}
	s.commit(ledger.Put(expect.Get(s.state("stray-000").Rebuild(back, lifecycle.Attributes{}, s.now))(t)))
	s.rest(time.Hour)
	expect.Same(t, "then it is", lifecycle.Releasing, s.quarantined().State)
}

// halted has the reaper have halted.
func (s *stock) halted() {
	s.Helper()
	state := expect.Get(s.records.Inventory(s.Context()))(s)
	state.Halt = &ledger.Halt{At: s.now, Reason: "test"}
	s.commit(ledger.Put(state))
}

// A reaper that must not act deletes nothing at the end of a quarantine either.
func TestAQuarantineWaitsForWhoMayDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		not, may func(s *stock)
	}{
		"Halted": {"it has halted", (*stock).halted, (*stock).resume},
		"DryRun": {"it only reports", func(s *stock) { s.options.DryRun = true }, func(s *stock) { s.options.DryRun = false }},
		"Another": {"the table is another's", func(s *stock) { s.options.Whose.Broker = "another" }, func(s *stock) {
			s.options.Whose = ours
			s.resume()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := enclosed(t)
			tc.not(s)
			s.rest(15 * 24 * time.Hour)
			if q := s.quarantined(); q.State != lifecycle.Quarantined || s.state("stray-000").State != lifecycle.Absent {
				t.Fatalf("%s: it is %q, and its record %q", tc.reason, q.State, s.state("stray-000").State)
			}
			tc.may(s)
			if s.rest(2 * time.Hour); s.former(s.things[0]).State != lifecycle.Deleting {
				t.Errorf("it is not deleted afterwards: %+v", s.quarantined())
			}
		})
	}
}

// A step that never ends is driven again; what an operator has released is left alone for good.
func TestAQuarantineIsDrivenAgainAndReleased(t *testing.T) {
	s := strayed(t)
	s.rest(time.Hour)
	if q := s.quarantined(); q.State != lifecycle.Quarantining || q.Operation.Attempt != 2 || len(s.started) != 2 ||
		s.started[1].Attempt != 2 {
		t.Fatalf("%+v, started %v", q, s.started)
	}
	refs, err := s.reaper(started).Unsettled(t.Context())
	if err != nil || len(refs) != 1 || refs[0] != s.started[1] {
		t.Errorf("a process that is started goes on with %v: %v", refs, err)
	}
	s.commit(ledger.Put(expect.Get(s.quarantined().BeginRelease(lifecycle.Start{ID: "release", Now: s.now}))(t)))
	s.moved()
	s.started = nil
	s.rest(15 * 24 * time.Hour)
	if c := s.last(); c.Released != 1 || len(s.started) != 0 || !s.quarantined().IsReleased() {
		t.Errorf("%+v, started %v, %+v", c, s.started, s.quarantined())
	}
	s.entombed("stray-000")
	if c := s.pass(); len(c.Deleted) != 1 || s.quarantined().State != lifecycle.Deleting {
		t.Errorf("its platform's word does not count: %+v", c)
	}
}

// The inventory reports the targets that it cannot reach, looks at the rest, and concludes
// nothing from what it did not see.
func TestAnInventoryThatIsIncomplete(t *testing.T) {
	s := newStock(t)
	unreached := &shelf{fails: errors.New("no route to db-2")}
	for _, name := range []string{"aside", "beyond"} {
		s.options.Listers[name] = reaper.Lister{List: unreached.List}
	}
	s.things = []lifecycle.Thing{s.recorded("i", false)}
	sweep := func() ledger.Counted {
		t.Helper()
		if told, err := s.sweeps(t.Context()); !errors.Is(err, unreached.fails) || !told.Unreached {
			t.Errorf("the fault is not told: %+v: %v", told, err)
		}
		return s.last()
	}
	c := sweep()
	if c.Things != 1 || c.Owned != 1 || len(c.Unreached) != 2 || !strings.Contains(c.Unreached[0], "aside: no route to db-2") {
		t.Errorf("%+v", c)
	}
	s.isKnown(false) // not everything was seen
	state, err := s.records.Inventory(t.Context())
	if err != nil || state.Things != 0 || state.Due.Sub(s.now) > 10*time.Minute {
		t.Errorf("%+v %v", state, err)
	}
	unreached.fails = nil
	s.now = s.now.Add(10 * time.Minute)
	if told := s.run(t.Context()); told.Unreached || len(s.last().Unreached) != 0 {
		t.Errorf("%+v: %+v", told, s.last())
	}
	s.isKnown(true)
}

// One target of several that cannot be reached does not hide the others.
func TestAnUnreachedTargetHidesNoOther(t *testing.T) {
	s := known(t)
	s.options.Listers["demo"] = reaper.Lister{List: partial{}.List}
	s.now = s.now.Add(time.Hour)
	if _, err := s.sweeps(t.Context()); err == nil {
		t.Error("no fault is told")
	}
	if c := s.last(); c.Things != 2 || len(c.Unreached) != 1 {
		t.Errorf("%+v", c)
	}
}

// partial reaches the first and the third of its targets.
type partial struct{}

func (partial) List(_ context.Context, cursor string) ([]lifecycle.Thing, string, error) {
	switch cursor {
	case "":
		return []lifecycle.Thing{thing("a", epoch)}, "2", nil
	case "2":
		return nil, "3", errors.New("target 2 does not answer")
	default:
		return []lifecycle.Thing{thing("b", epoch)}, "", nil
	}
}

// keeps has a former life of the thing be kept until the date.
func (s *stock) keeps(was lifecycle.Thing, until time.Time) lifecycle.Key {
	s.Helper()
	r := lifecycle.Record{Key: was.Key.Former(was.Incarnation), State: lifecycle.Quarantined,
		Incarnation: was.Incarnation, Provider: "demo", Kept: &lifecycle.Kept{Since: s.now, Until: until}, Due: until}
	s.commit(ledger.Put(r))
	return r.Key
}

// The reaper leaves a kept life alone until its date, whatever has the id now, and then deletes it, even while halted.
func TestWhatIsKept(t *testing.T) {
	for name, again := range map[string]bool{"Tombstone": false, "AnotherLife": true} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			was := s.recorded("i", true)
			was.Created, was.KeptUntil = s.now.Add(-24*time.Hour), s.now.Add(24*time.Hour)
			life := s.keeps(was, was.KeptUntil)
			s.things = []lifecycle.Thing{was}
			r := s.record(was.Key)
			s.commit(ledger.Put(r.LookedLate(s.now, true))) // as of the tombstone beside a kept life
			if again {
				s.recorded("i", false)
			}
			for range 3 {
				s.sees("what is kept", ledger.Counted{Things: 1, Retained: 1}, s.pass())
			}
			s.halted()
			s.rest(24 * time.Hour)
			removed := 0
			for _, r := range expect.Get(s.records.Reports(t.Context(), time.Time{}))(t) {
				if r.Swept != nil {
					removed += r.Swept.Removed
				}
			}
			r = s.record(life)
			begun := func(ref workflow.Ref) bool { return ref.Token == r.Token() }
			if removed != 1 || r.State != lifecycle.Deleting || !slices.ContainsFunc(s.started, begun) {
				t.Errorf("removed %d times, started %v, it is %q", removed, s.started, r.State)
			}
		})
	}
}

// A kept thing that is open again comes from a server that was restored: the reaper reports it to the operator.
func TestWhatIsKeptAndOpenIsTold(t *testing.T) {
	s := known(t)
	was := s.recorded("i", true)
	was.Created = s.now.Add(-24 * time.Hour)
	s.keeps(was, s.now.Add(24*time.Hour))
	s.things = []lifecycle.Thing{was}
	s.sees("what is open", ledger.Counted{Things: 1, Odd: []string{"thing-i"}}, s.pass())
}

// A kept thing that lost its record gets one again and is not deleted before its date: the tombstone of its instance
// does not explain it. It counts as an orphan, so the reaper halts if many have lost their records.
func TestWhatIsKeptAndHasLostItsRecord(t *testing.T) {
	for name, tc := range map[string]struct {
		until time.Duration
		ends  time.Duration // zero: it is deleted, since its date has come
	}{
		"Soon": {6 * time.Hour, lifecycle.QuarantineTime},
		"Late": {60 * 24 * time.Hour, 60 * 24 * time.Hour},
		"Over": {-time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			begun := s.now
			was := s.recorded("i", true)
			was.Created, was.KeptUntil, was.PlanID = s.now.Add(-24*time.Hour), begun.Add(tc.until), "plan"
			r := s.record(was.Key)
			s.commit(ledger.Put(r.LookedLate(s.now, true)))
			s.things = []lifecycle.Thing{was}
			c := s.twice()
			expect.Same(t, "orphans that are counted", 1, expect.Get(s.records.Inventory(t.Context()))(t).Orphans)
			life := s.former(was)
			if tc.ends == 0 {
				if len(c.Deleted) != 1 || life.State != lifecycle.Deleting {
					t.Errorf("%+v, it is %q", c, life.State)
				}
				return
			}
			if c.Retained != 1 || life.State != lifecycle.Quarantined || life.OfOrphan() || life.Attributes.PlanID != "plan" ||
				life.Kept.Until.Before(begun.Add(tc.ends)) || life.Kept.Until.After(begun.Add(tc.ends+6*time.Hour)) {
				t.Errorf("%+v, it is %+v, kept %+v", c, life, life.Kept)
			}
			s.sees("it is kept", ledger.Counted{Things: 1, Retained: 1}, s.pass())
			expect.Same(t, "started", 0, len(s.started))
		})
	}
}

// A life has one record for all that was made for it: of a second thing, a person has to
// look what it is. It is not deleted while the first one is in quarantine.
func TestTwoThingsOfALifeInQuarantine(t *testing.T) {
	s := enclosed(t)
	second := s.things[0]
	second.Name = "thing-beside"
	s.things = append(s.things, second)
	for range 3 {
		s.sees("the two", ledger.Counted{Things: 2, InQuarantine: 1, Odd: []string{"thing-beside"}}, s.pass())
	}
}

// The deletion of an orphan gets the state that the inventory reported.
func TestAnOrphansDeletionCarriesWhatWasListed(t *testing.T) {
	s := known(t)
	before := epoch.Add(-time.Hour)
	explained, unexplained, large := thing("a", before), thing("b", before), thing("c", before)
	for _, orphan := range []*lifecycle.Thing{&explained, &unexplained, &large} {
		orphan.Broker, orphan.Target, orphan.State = ours.Broker, lifecycle.Target{Name: "db-1", Identity: "id-of-db-1"}, []byte("\x01state")
	}
	large.State = make([]byte, 32<<10)
	s.entombed("a")
	s.things = []lifecycle.Thing{explained, unexplained, large}
	if c := s.twice(); len(c.Deleted) != 1 || len(c.Quarantined) != 1 || !slices.Equal(c.Odd, []string{"thing-c"}) {
		t.Fatalf("%+v", c)
	}
	s.commit(ledger.Put(expect.Get(s.former(unexplained).Succeed(s.now, nil))(t)))
	s.rest(15 * 24 * time.Hour)
	for _, id := range []lifecycle.Thing{explained, unexplained} {
		if m := s.former(id).Made; m.Target != explained.Target || string(m.Found) != "\x01state" || m.Broker != ours.Broker {
			t.Errorf("the deletion of %q is given %+v", id.Name, m)
		}
	}
}
