package reaper_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/work/reaper"
)

// shelf is a provider's things, in pages of two.
type shelf struct {
	things []lifecycle.Thing
	fails  error
	listed int
	onPage func()
}

func (s *shelf) List(_ context.Context, cursor string) (page []lifecycle.Thing, next string, err error) {
	s.listed++
	if s.onPage != nil {
		s.onPage()
	}
	if s.fails != nil {
		return nil, "", s.fails
	}
	from, _ := strconv.Atoi(cursor)
	to := min(from+2, len(s.things))
	if to < len(s.things) {
		next = strconv.Itoa(to)
	}
	return s.things[from:to], next, nil
}

// ours is what the table says when it is the right one.
var ours = ledger.Identity{Deployment: "broker", Broker: "identity"}

// A stock is a scene with things.
type stock struct {
	*scene
	*shelf
	options reaper.InventoryOptions
	started []workflow.Ref
}

func newStock(t *testing.T) *stock {
	s := &stock{scene: newScene(t), shelf: &shelf{}}
	s.options = reaper.InventoryOptions{Records: s.records, Listers: map[string]reaper.Lister{"demo": {List: s.shelf.List}},
		Whose: ours}
	return s
}

// sweeps is a sweep of a new process.
func (s *stock) sweeps(ctx context.Context) (reaper.Report, error) {
	r := s.reaper(func(_ context.Context, ref workflow.Ref) error {
		s.started = append(s.started, ref)
		return nil
	})
	r.Inventory = &s.options
	return r.Sweep(ctx)
}

func (s *stock) run(ctx context.Context) reaper.Report {
	s.Helper()
	return expect.Get(s.sweeps(ctx))(s)
}

// pass moves the clock to the next pass and gives its report.
func (s *stock) pass() ledger.Counted {
	s.Helper()
	s.now = s.now.Add(time.Hour)
	s.run(s.Context())
	return s.last()
}

// twice is the report of the second pass from now: one sight proves nothing.
func (s *stock) twice() ledger.Counted {
	s.Helper()
	s.pass()
	return s.pass()
}

// sees requires all that a pass has counted.
func (s *stock) sees(what string, want, got ledger.Counted) {
	s.Helper()
	expect.Same(s, what, fmt.Sprint(want), fmt.Sprint(got))
}

// resume has an operator say that the table is the right one.
func (s *stock) resume() {
	s.Helper()
	expect.OK(s, reaper.Resume(s.Context(), s.records, s.options.Whose, s.now))
}

// last is the last inventory's report.
func (s *stock) last() ledger.Counted {
	s.Helper()
	for _, r := range slices.Backward(expect.Get(s.records.Reports(s.Context(), time.Time{}))(s)) {
		if r.Counted != nil {
			return *r.Counted
		}
	}
	s.Fatal("there is no report of an inventory")
	panic("unreachable")
}

// isKnown requires that the table says whose it is, or that it does not yet.
func (s *stock) isKnown(want bool) {
	s.Helper()
	id := expect.Get(s.records.Identity(s.Context()))(s)
	if (id.Version > 0) != want || want && (id.Deployment != ours.Deployment || id.Broker != ours.Broker) {
		s.Errorf("the table says that it is of %+v, want that it says so: %v", id, want)
	}
}

func thing(id string, created time.Time) lifecycle.Thing {
	key := lifecycle.Key{Platform: "p", Instance: id}
	if instance, binding, ok := strings.Cut(id, "/"); ok {
		key.Instance, key.Binding = instance, binding
	}
	return lifecycle.Thing{
		Name: "thing-" + strings.ReplaceAll(id, "/", "-"), Broker: ours.Broker, Key: key, Incarnation: "made-" + id, Created: created,
	}
}

// recorded is an instance that a record knows of, as its thing.
func (s *stock) recorded(id string, deleted bool) lifecycle.Thing {
	s.Helper()
	key := s.overdue(id)
	i := expect.Get(s.record(key).Succeed(s.now, nil))(s)
	if deleted {
		start := lifecycle.Start{ID: s.id(), Now: s.now, Received: s.now, Timeout: time.Hour}
		begun, err := i.BeginDelete(start)
		expect.OK(s, err)
		i = expect.Get(begun.Succeed(s.now, nil))(s)
	}
	s.commit(ledger.Put(i))
	return lifecycle.Thing{Name: "thing-" + id, Broker: ours.Broker, Key: key, Incarnation: i.Incarnation, Created: s.now}
}

func (s *stock) state(id string) lifecycle.Record { return s.record(thing(id, s.now).Key) }

// known is a stock whose table says whose it is.
func known(t *testing.T) *stock {
	s := newStock(t)
	s.run(t.Context())
	return s
}

// former is the record that deals with a thing of a former life.
func (s *stock) former(t lifecycle.Thing) lifecycle.Record {
	return s.record(t.Key.Former(t.Incarnation))
}

// entombed says that a platform has asked for the deletion of what has the id.
func (s *stock) entombed(id string) {
	s.Helper()
	s.commit(ledger.Put(expect.Get(s.state(id).Entomb(s.now, s.now))(s)))
}

func TestAnExplainedOrphanIsDeletedAtTheSecondSight(t *testing.T) {
	for _, id := range []string{"i", "i/b"} {
		t.Run(id, func(t *testing.T) {
			s := known(t)
			s.now = s.now.Add(time.Minute)
			s.things = []lifecycle.Thing{thing(id, s.now.Add(30*time.Minute))}
			s.now = s.now.Add(31 * time.Minute)
			s.entombed(id)
			s.now = s.now.Add(-32 * time.Minute)
			s.sees("it may have its record tomorrow", ledger.Counted{Things: 1, Young: 1}, s.pass())
			s.sees("one sight is no proof", ledger.Counted{Things: 1, Sighted: 1}, s.pass())
			expect.Same(t, "started", 0, len(s.started))
			s.sees("the second sight", ledger.Counted{Things: 1, Deleted: []string{s.things[0].Name}}, s.pass())
			expect.Same(t, "started", 1, len(s.started))
			course := s.former(s.things[0])
			if course.State != lifecycle.Deleting || course.Token() != s.started[0].Token || !course.InProgress() {
				t.Errorf("it is not being deleted: %+v", course)
			}
			s.sees("what has a record is not deleted again", ledger.Counted{Things: 1, Owned: 1}, s.pass())
		})
	}
}

// A thing of the incarnation that was deleted is explained, also if it came after every late look.
func TestALateOrphanIsDeleted(t *testing.T) {
	s := known(t)
	s.things = []lifecycle.Thing{s.recorded("i", true)}
	s.things[0].Created = s.now.Add(time.Minute)
	s.sees("a late look will deal with it", ledger.Counted{Things: 1, Owned: 1}, s.pass())
	s.commit(ledger.Put(s.state("i").LookedLate(s.now, true)))
	c := s.twice()
	if len(c.Deleted) != 1 || s.former(s.things[0]).State != lifecycle.Deleting || s.state("i").State != lifecycle.Deleted {
		t.Errorf("%+v, the record is %q", c, s.former(s.things[0]).State)
	}
}

// A thing of a former life is explained by the record that was set aside, while another
// life has the id and after its late look; without that record, nothing explains it.
func TestAThingOfAFormerLife(t *testing.T) {
	for name, tc := range map[string]struct {
		aside func(s *stock, was lifecycle.Record)
		want  ledger.Counted
	}{
		"LooksLate": {func(s *stock, was lifecycle.Record) { s.commit(ledger.Put(*was.SetAside(s.now))) },
			ledger.Counted{Things: 1, Owned: 1}},
		"Looked": {func(s *stock, was lifecycle.Record) {
			s.commit(ledger.Put(was.SetAside(s.now).LookedLate(s.now, true)))
		}, ledger.Counted{Things: 1, Deleted: []string{"thing-i"}}},
		"NoRecord": {func(*stock, lifecycle.Record) {}, ledger.Counted{Things: 1, Quarantined: []string{"thing-i"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			s.things = []lifecycle.Thing{s.recorded("i", true)}
			s.things[0].Created = s.now.Add(-2 * time.Hour)
			was := s.state("i")
			tc.aside(s, was)
			start := lifecycle.Start{ID: "next", Now: s.now, Received: s.now, Timeout: 365 * 24 * time.Hour}
			next, err := was.BeginCreate(start, was)
			expect.OK(t, err)
			s.commit(ledger.Put(expect.Get(next.Succeed(s.now, nil))(t)))
			s.sees("the thing", tc.want, s.twice())
			if is := s.state("i"); is.State != lifecycle.Ready || is.Incarnation != "next" {
				t.Errorf("what has the id now is %+v", is)
			}
		})
	}
}

func TestWhatIsNoOrphan(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		things func(s *stock) []lifecycle.Thing
		want   ledger.Counted
	}{
		"Owned": {"a record knows of it", func(s *stock) []lifecycle.Thing { return []lifecycle.Thing{s.recorded("i", false)} },
			ledger.Counted{Things: 1, Owned: 1}},
		"InProgress": {"an operation deals with it", func(s *stock) []lifecycle.Thing {
			s.overdue("i")
			its := thing("i", s.now)
			its.Incarnation = s.state("i").Incarnation
			return []lifecycle.Thing{its}
		}, ledger.Counted{Things: 1, Owned: 1}},
		"Anothers": {"it looks for its records elsewhere", func(*stock) []lifecycle.Thing {
			stray := thing("i", epoch)
			stray.Broker = "another"
			return []lifecycle.Thing{stray}
		}, ledger.Counted{}},
		"NoTags": {"it may not be ours", func(s *stock) []lifecycle.Thing { return []lifecycle.Thing{{Name: "x"}} },
			ledger.Counted{Things: 1, Odd: []string{"x"}}},
		"LongTags": {"it stops no inventory that no key holds its id", func(s *stock) []lifecycle.Thing {
			return []lifecycle.Thing{thing(strings.Repeat("i", 2000), epoch), s.recorded("i", false)}
		}, ledger.Counted{Things: 2, Owned: 1, Odd: []string{limits.Clip("thing-"+strings.Repeat("i", 2000), limits.Identifier)}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			s.things = tc.things(s)
			for range 4 {
				s.sees(tc.reason, tc.want, s.pass())
			}
			driven := map[string]int{"InProgress": 4}[name] // once in each pass
			expect.Same(t, "started", driven, len(s.started))
		})
	}
}

func TestADryRunOnlyReports(t *testing.T) {
	s := known(t)
	s.options.DryRun = true
	s.things = []lifecycle.Thing{thing("i", epoch)}
	s.pass()
	for range 2 {
		if c := s.pass(); !c.DryRun || len(c.Quarantined) != 1 || s.state("i").State != lifecycle.Absent || len(s.started) != 0 {
			t.Errorf("%+v, the record is %q", c, s.state("i").State)
		}
	}
}

// A sight that is older than two days is no sight.
func TestASightIsForgotten(t *testing.T) {
	s := known(t)
	s.things = []lifecycle.Thing{thing("i", epoch)}
	s.pass()
	s.things = nil
	s.now = s.now.Add(48 * time.Hour)
	s.pass()
	s.things = []lifecycle.Thing{thing("i", epoch)}
	s.sees("the first sight again", ledger.Counted{Things: 1, Sighted: 1}, s.pass())
}

func many(n int) (things []lifecycle.Thing) {
	for i := range n {
		things = append(things, thing(fmt.Sprintf("stray-%03d", i), epoch))
	}
	return things
}

func TestADaysOrphansAreLimited(t *testing.T) {
	tests := map[string]struct {
		things, want int
	}{"Few": {10, 3}, "Many": {450, 4}, "Most": {2500, 20}}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			s.things = many(tc.things)
			c := s.twice()
			if len(c.Quarantined) != tc.want || c.Halted == "" || len(s.started) != tc.want {
				t.Fatalf("%d in quarantine, %d started, halted: %q; want %d", len(c.Quarantined), len(s.started), c.Halted, tc.want)
			}
			listed := s.listed
			s.now = s.now.Add(48 * time.Hour)
			if r := s.run(t.Context()); !r.Halted || s.listed != listed || len(s.started) > 2*tc.want {
				t.Errorf("it goes on by itself: %+v", r)
			}
			s.resume()
			s.started = nil
			if s.run(t.Context()); s.last().Things == 0 {
				t.Error("it does not go on when it is told to")
			}
		})
	}
}

// The limit is one for a day, not for a pass.
func TestTheLimitIsOfADay(t *testing.T) {
	s := known(t)
	s.things = many(2)
	if c := s.twice(); len(c.Quarantined) != 2 || c.Halted != "" {
		t.Fatalf("%+v", c)
	}
	s.things = append(s.things, thing("later-1", epoch), thing("later-2", epoch))
	if c := s.twice(); len(c.Quarantined) != 1 || c.Halted == "" {
		t.Errorf("%+v", c)
	}
}

// With its table emptied, the reaper removes nothing and says so; so it does with the table of another broker.
func TestTheRightTable(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(t *testing.T) *stock
		whose   ledger.Identity
		halts   string
	}{
		"Emptied":             {newStock, ours, "emptied"},
		"Another":             {known, ledger.Identity{Deployment: "another", Broker: ours.Broker}, `of deployment "broker"`},
		"AnothersWithItsName": {known, ledger.Identity{Deployment: ours.Deployment, Broker: "another"}, `the identity "identity"`},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.prepare(t)
			s.options.Whose = tc.whose
			if name == "Emptied" {
				s.things = many(5)
			}
			s.now = s.now.Add(2 * time.Hour)
			if r := s.run(t.Context()); !r.Halted || !strings.Contains(s.last().Halted, tc.halts) {
				t.Fatalf("%+v %+v", r, s.last())
			}
			for range 3 {
				s.now = s.now.Add(24 * time.Hour)
				expect.Same(t, "halted", true, s.run(t.Context()).Halted)
			}
			if len(s.started) != 0 || s.state("stray-000").State != lifecycle.Absent {
				t.Error("something was begun")
			}
			s.resume()
			if r := s.run(t.Context()); r.Halted && r.Quarantined == 0 {
				t.Errorf("an operator's word does not count: %+v, %+v", r, s.last())
			}
		})
	}
}

// A new table gets its identity when all that exists is in it.
func TestANewTable(t *testing.T) {
	s := newStock(t)
	s.things = []lifecycle.Thing{s.recorded("mine", false), thing("young", s.now)}
	s.run(t.Context())
	s.isKnown(false) // nobody knows yet whether all is in it
	s.things = s.things[:1]
	expect.Same(t, "halted", "", s.pass().Halted)
	s.isKnown(true)
}

// A pass goes on where the last run ended, whoever does it.
func TestAPassIsDoneInParts(t *testing.T) {
	s := known(t)
	s.things = many(9)
	s.now = s.now.Add(time.Hour)
	runs := 0
	for ; runs < 20; runs++ {
		ctx, cancel := context.WithDeadline(t.Context(), s.now.Add(25*time.Second))
		s.onPage = func() { s.now = s.now.Add(9 * time.Second) }
		s.run(ctx)
		cancel()
		if s.last().Things == 9 {
			break
		}
	}
	if s.listed != 6 || runs < 2 { // one for the empty shelf before
		t.Errorf("%d pages were listed in %d runs", s.listed, runs+1)
	}
}

// While platforms make new things in an emptied table, what it does not know is left alone all the same.
func TestAnEmptiedTableThatIsInUse(t *testing.T) {
	s := newStock(t)
	s.things = many(2)
	for range 5 {
		s.things[0].Created = s.now
		s.now = s.now.Add(30 * time.Minute)
		s.run(t.Context())
		s.now = s.now.Add(30 * time.Minute)
	}
	if len(s.started) != 0 || s.last().Young != 1 || s.last().Sighted != 1 {
		t.Errorf("%+v, started %v", s.last(), s.started)
	}
}

func TestAProviderThatCannotBeListed(t *testing.T) {
	s := known(t)
	s.fails = errors.New("throttled")
	s.now = s.now.Add(time.Hour)
	expect.Fails(t, "the sweep", s.fails, expect.Err(s.sweeps(t.Context())))
	s.fails, s.things = nil, many(1)
	s.now = s.now.Add(9 * time.Minute)
	listed := s.listed
	s.run(t.Context())
	expect.Same(t, "pages: it is not asked again at once", listed, s.listed)
	s.now = s.now.Add(time.Minute)
	s.run(t.Context())
	expect.Same(t, "things", 1, s.last().Things)
}

// A platform that uses the id just now is faster than the reaper.
func TestAQuarantineLosesToAPlatform(t *testing.T) {
	s := known(t)
	s.things = many(1)
	s.pass()
	s.records.before = func() {
		s.records.before = nil
		s.overdue("stray-000")
	}
	s.now = s.now.Add(time.Hour)
	if r := s.run(t.Context()); r.Quarantined != 0 || len(s.started) != 0 {
		t.Errorf("%+v", r)
	}
	expect.Same(t, "the platform's instance", lifecycle.Creating, s.state("stray-000").State)
}

// A table that was restored to an earlier time knows nothing of what was made
// since: that is not removed, whatever else is.
func TestARestoredTable(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		created time.Duration // after the last inventory
		away    time.Duration // between the last inventory and the next
		whole   bool          // the next one finds a record for each thing
		halts   bool
	}{
		"Since":      {"its record may be in the table that was lost", 30 * time.Minute, 5 * time.Hour, false, true},
		"Before":     {"the table would know of it", -time.Minute, 5 * time.Hour, false, false},
		"NothingWas": {"the table was kept all the time", 30 * time.Minute, 70 * time.Minute, false, false},
		"Whole":      {"the table knew all that was made in the gap", 30 * time.Minute, 5 * time.Hour, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			things := []lifecycle.Thing{thing("i", s.now.Add(tc.created))}
			if !tc.whole {
				s.things = things
			}
			s.now = s.now.Add(tc.away)
			s.run(t.Context())
			s.things = things
			c := s.twice()
			if got := strings.Contains(c.Halted, "earlier time"); got != tc.halts || (len(s.started) == 0) != tc.halts {
				t.Fatalf("%s: halted %q, started %v", tc.reason, c.Halted, s.started)
			}
			if tc.whole && (len(c.Quarantined) != 1 || c.Halted != "") {
				t.Errorf("%s: %+v", tc.reason, c)
			}
			if !tc.halts {
				return
			}
			s.resume()
			if s.run(t.Context()); len(s.started) != 1 {
				t.Errorf("an operator's word does not count: %+v", s.last())
			}
		})
	}
}

// contended has a run write first, so many times.
type contended struct {
	reaper.InventoryRecords
	times int
}

func (c *contended) Commit(ctx context.Context, changes ...ledger.Change) error {
	if c.times--; c.times >= 0 {
		return fmt.Errorf("committing: %w", ledger.ErrConflict)
	}
	return c.InventoryRecords.Commit(ctx, changes...)
}

func TestResumeBesideARun(t *testing.T) {
	s := known(t)
	s.things = many(10)
	if c := s.twice(); c.Halted == "" {
		t.Fatalf("%+v", c)
	}
	expect.OK(t, reaper.Resume(t.Context(), &contended{s.records, 3}, ours, s.now))
	if r := s.run(t.Context()); r.Quarantined == 0 {
		t.Errorf("it does not go on: %+v", r)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	expect.Fails(t, "the error", ledger.ErrConflict, reaper.Resume(short, &contended{s.records, math.MaxInt}, ours, s.now))
}
