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
	s.options = reaper.InventoryOptions{Records: s.records, Listers: map[string]reaper.Lister{"demo": s.shelf}, Whose: ours, Every: time.Hour}
	return s
}

// run sweeps as a new process does.
func (s *stock) run(ctx context.Context) reaper.Report {
	s.Helper()
	r := s.reaper(func(_ context.Context, ref workflow.Ref) error {
		s.started = append(s.started, ref)
		return nil
	})
	r.Inventory = &s.options
	report, err := r.Sweep(ctx)
	expect.OK(s, err)
	return report
}

// pass moves the clock to the next pass and gives its report.
func (s *stock) pass() ledger.Counted {
	s.Helper()
	s.now = s.now.Add(time.Hour)
	s.run(s.Context())
	return s.last()
}

// last is the last inventory's report.
func (s *stock) last() ledger.Counted {
	s.Helper()
	reports, err := s.records.Reports(s.Context(), time.Time{})
	expect.OK(s, err)
	for _, r := range slices.Backward(reports) {
		if r.Counted != nil {
			return *r.Counted
		}
	}
	s.Fatal("there is no report of an inventory")
	panic("unreachable")
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
	i, err := s.records.Record(s.Context(), key, s.now)
	if err == nil {
		i, err = i.Succeed(s.now, nil)
	}
	if err == nil && deleted {
		if i, _, err = i.BeginDelete(lifecycle.Start{ID: s.id(), Now: s.now, Received: s.now, Timeout: time.Hour}); err == nil {
			i, err = i.Succeed(s.now, nil)
		}
	}
	expect.OK(s, err)
	expect.OK(s, s.records.Commit(s.Context(), ledger.Put(i)))
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
	r, err := s.record(thing(id, s.now).Key).Entomb(s.now, s.now)
	expect.OK(s, err)
	s.commit(ledger.Put(r))
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
			if c := s.pass(); c.Young != 1 {
				t.Errorf("a young thing may have its record tomorrow: %+v", c)
			}
			if c := s.pass(); c.Sighted != 1 || len(s.started) != 0 {
				t.Errorf("one sight is no proof: %+v", c)
			}
			c := s.pass()
			if !slices.Equal(c.Deleted, []string{s.things[0].Name}) || len(s.started) != 1 {
				t.Fatalf("%+v, started %v", c, s.started)
			}
			course := s.former(s.things[0])
			if course.State != lifecycle.Deleting || course.Token() != s.started[0].Token || !course.InProgress() {
				t.Errorf("it is not being deleted: %+v", course)
			}
			if c := s.pass(); c.Owned != 1 || len(c.Deleted) != 0 {
				t.Errorf("what has a record is deleted again: %+v", c)
			}
		})
	}
}

// A thing of the incarnation that was deleted is explained, also if it came after
// every late look.
func TestALateOrphanIsDeleted(t *testing.T) {
	s := known(t)
	s.things = []lifecycle.Thing{s.recorded("i", true)}
	s.things[0].Created = s.now.Add(time.Minute)
	if c := s.pass(); c.Owned != 1 {
		t.Errorf("a late look will deal with it: %+v", c)
	}
	i := s.record(s.things[0].Key)
	i = i.LookedLate(s.now, true)
	expect.OK(t, s.records.Commit(t.Context(), ledger.Put(i)))
	s.pass()
	c := s.pass()
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
		},
			ledger.Counted{Things: 1, Deleted: []string{"thing-i"}}},
		"NoRecord": {func(*stock, lifecycle.Record) {}, ledger.Counted{Things: 1, Quarantined: []string{"thing-i"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			s.things = []lifecycle.Thing{s.recorded("i", true)}
			s.things[0].Created = s.now.Add(-2 * time.Hour)
			was := s.state("i")
			tc.aside(s, was)
			start := lifecycle.Start{ID: "next", Now: s.now, Received: s.now, Timeout: 365 * 24 * time.Hour}
			next, _, err := was.BeginCreate(start, was)
			expect.OK(t, err)
			next, err = next.Succeed(s.now, nil)
			expect.OK(t, err)
			s.commit(ledger.Put(next))
			s.pass()
			expect.Same(t, "what it counted", fmt.Sprint(tc.want), fmt.Sprint(s.pass()))
			if is := s.state("i"); is.State != lifecycle.Ready || is.Incarnation != "next" {
				t.Errorf("what has the id now is %+v", is)
			}
		})
	}
}

func TestWhatIsNoOrphan(t *testing.T) {
	tests := map[string]struct {
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
		"NoTags": {"it may not be ours", func(s *stock) []lifecycle.Thing { return []lifecycle.Thing{{Name: "x"}} },
			ledger.Counted{Things: 1, Odd: []string{"x"}}},
		"LongTags": {"it stops no inventory that no key holds its id", func(s *stock) []lifecycle.Thing {
			return []lifecycle.Thing{thing(strings.Repeat("i", 2000), epoch), s.recorded("i", false)}
		}, ledger.Counted{Things: 2, Owned: 1, Odd: []string{limits.Clip("thing-"+strings.Repeat("i", 2000), limits.Identifier)}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			s.things = tc.things(s)
			for range 4 {
				got := s.pass()
				expect.Same(t, tc.reason, fmt.Sprint(tc.want), fmt.Sprint(got))
			}
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
	if c := s.pass(); c.Sighted != 1 || len(c.Quarantined) != 0 {
		t.Errorf("%+v", c)
	}
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
			s.pass()
			c := s.pass()
			if len(c.Quarantined) != tc.want || c.Halted == "" || len(s.started) != tc.want {
				t.Fatalf("%d in quarantine, %d started, halted: %q; want %d", len(c.Quarantined), len(s.started), c.Halted, tc.want)
			}
			listed := s.listed
			s.now = s.now.Add(48 * time.Hour)
			if r := s.run(t.Context()); !r.Halted || s.listed != listed || len(s.started) > 2*tc.want {
				t.Errorf("it goes on by itself: %+v", r)
			}
			expect.OK(t, reaper.Resume(t.Context(), s.records, ours, s.now))
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
	s.pass()
	if c := s.pass(); len(c.Quarantined) != 2 || c.Halted != "" {
		t.Fatalf("%+v", c)
	}
	s.things = append(s.things, thing("later-1", epoch), thing("later-2", epoch))
	s.pass()
	if c := s.pass(); len(c.Quarantined) != 1 || c.Halted == "" {
		t.Errorf("%+v", c)
	}
}

// With its table emptied, the reaper removes nothing and says so; so it does
// with the table of another broker.
func TestTheRightTable(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T) *stock
		halts   string
	}{
		"Emptied": {func(t *testing.T) *stock {
			s := newStock(t)
			s.things = many(5)
			return s
		}, "emptied"},
		"Another": {func(t *testing.T) *stock {
			s := known(t)
			s.options.Whose.Deployment = "another"
			return s
		}, `of deployment "broker"`},
		"AnothersWithItsName": {func(t *testing.T) *stock {
			s := known(t)
			s.options.Whose.Broker = "another"
			return s
		}, `the identity "identity"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := tc.prepare(t)
			s.now = s.now.Add(2 * time.Hour)
			if r := s.run(t.Context()); !r.Halted || !strings.Contains(s.last().Halted, tc.halts) {
				t.Fatalf("%+v %+v", r, s.last())
			}
			for range 3 {
				s.now = s.now.Add(24 * time.Hour)
				if r := s.run(t.Context()); !r.Halted {
					t.Errorf("%+v", r)
				}
			}
			if len(s.started) != 0 || s.state("stray-000").State != lifecycle.Absent {
				t.Error("something was begun")
			}
			expect.OK(t, reaper.Resume(t.Context(), s.records, s.options.Whose, s.now))
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
	if id, err := s.records.Identity(t.Context()); err != nil || id.Version != 0 {
		t.Errorf("nobody knows yet whether all is in it: %+v %v", id, err)
	}
	s.things = s.things[:1]
	expect.Same(t, "halted", "", s.pass().Halted)
	if id, err := s.records.Identity(t.Context()); err != nil || id.Deployment != ours.Deployment || id.Broker != ours.Broker {
		t.Errorf("%+v %v", id, err)
	}
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

// While platforms make new things in an emptied table, what it does not know is
// left alone all the same.
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
	r := s.reaper(started)
	r.Inventory = &s.options
	if _, err := r.Sweep(t.Context()); !errors.Is(err, s.fails) {
		t.Fatalf("error %v", err)
	}
	s.fails, s.things = nil, many(1)
	s.now = s.now.Add(9 * time.Minute)
	listed := s.listed
	if s.run(t.Context()); s.listed != listed {
		t.Error("it is asked again at once")
	}
	s.now = s.now.Add(time.Minute)
	if s.run(t.Context()); s.last().Things != 1 {
		t.Errorf("%+v", s.last())
	}
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
	tests := map[string]struct {
		reason  string
		created time.Duration // after the last inventory
		away    time.Duration // between the last inventory and the next
		halts   bool
	}{
		"Since":      {"its record may be in the table that was lost", 30 * time.Minute, 5 * time.Hour, true},
		"Before":     {"the table would know of it", -time.Minute, 5 * time.Hour, false},
		"NothingWas": {"the table was kept all the time", 30 * time.Minute, 70 * time.Minute, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			s.things = []lifecycle.Thing{thing("i", s.now.Add(tc.created))}
			s.now = s.now.Add(tc.away)
			s.run(t.Context())
			s.pass()
			c := s.pass()
			if got := strings.Contains(c.Halted, "earlier time"); got != tc.halts || (len(s.started) == 0) != tc.halts {
				t.Fatalf("%s: halted %q, started %v", tc.reason, c.Halted, s.started)
			}
			if !tc.halts {
				return
			}
			expect.OK(t, reaper.Resume(t.Context(), s.records, ours, s.now))
			if s.run(t.Context()); len(s.started) != 1 {
				t.Errorf("an operator's word does not count: %+v", s.last())
			}
		})
	}
}

// After a gap in the inventories, things made in the gap are judged as usual once a whole
// inventory has found a record for each.
func TestARestoredTableThatIsWhole(t *testing.T) {
	s := known(t)
	made := s.now.Add(30 * time.Minute)
	s.now = s.now.Add(5 * time.Hour)
	s.run(t.Context())
	s.things = []lifecycle.Thing{thing("i", made)}
	s.pass()
	if c := s.pass(); len(c.Quarantined) != 1 || c.Halted != "" {
		t.Errorf("%+v", c)
	}
}

// contended has a run write first, so many times.
type contended struct {
	reaper.Resumed
	times int
}

func (c *contended) Commit(ctx context.Context, changes ...ledger.Change) error {
	if c.times--; c.times >= 0 {
		return fmt.Errorf("committing: %w", ledger.ErrConflict)
	}
	return c.Resumed.Commit(ctx, changes...)
}

func TestResumeBesideARun(t *testing.T) {
	s := known(t)
	s.things = many(10)
	s.pass()
	if c := s.pass(); c.Halted == "" {
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

// Another broker's things are nothing to this one, whatever their ids.
func TestAnotherBrokersThings(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, broker string
		want           int
	}{
		"Its":  {"it looks for records elsewhere", "another", 0},
		"Ours": {"it carries our identity", ours.Broker, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := known(t)
			stray := thing("i", epoch)
			stray.Broker = tc.broker
			s.things = []lifecycle.Thing{stray}
			s.pass()
			if c := s.pass(); c.Things != tc.want || len(c.Quarantined) != tc.want || len(s.started) != tc.want {
				t.Errorf("%s: %+v, started %v", tc.reason, c, s.started)
			}
		})
	}
}
