package lifecycle_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// A walker takes a record through a life that a generator chooses.
type walker struct {
	*testing.T
	machine
	rng   *rand.Rand
	table map[lifecycle.State]map[lifecycle.Event]string

	record lifecycle.Record
	now    time.Time
	ids    int
	trail  []string
	// The last sighting of each operation, by its id.
	known map[string]lifecycle.Operation
}

func TestInstanceWalks(t *testing.T) { testWalks(t, instances) }
func TestBindingWalks(t *testing.T)  { testWalks(t, bindings) }

// testWalks takes records through random lives. What is reached is the same at
// each run of the test; a failure names the walk and all that happened in it.
func testWalks(t *testing.T, m machine) {
	const walks, steps = 150, 80
	happened := map[string]bool{}
	table := transitions(t, m.matrix)
	for n := range uint64(walks) {
		w := &walker{T: t, machine: m, rng: rand.New(rand.NewPCG(14, n)), table: table, now: epoch,
			known: map[string]lifecycle.Operation{}, record: m.absent()}
		w.record.Version = 42
		for range steps {
			w.now = w.now.Add(time.Duration(w.rng.Int64N(int64(2 * time.Minute))))
			if w.rng.IntN(5) < 2 {
				happened[w.event()] = true
			} else {
				w.look()
			}
			if t.Failed() {
				t.Fatalf("walk %d: %s", n, strings.Join(w.trail, ", "))
			}
		}
	}
	// The walks are worth something only if they come everywhere.
	for s, row := range table {
		for e, to := range row {
			if way := name(s) + "/" + string(e); !happened[way] && !slices.Contains(m.unreachable, s) {
				t.Errorf("no walk tried %s (to %s)", way, to)
			}
		}
	}
}

// event lets one of all events happen.
func (w *walker) event() (way string) {
	events := lifecycle.Events()
	e := events[w.rng.IntN(len(events))]
	was := w.record
	way = name(was.State) + "/" + string(e)
	w.trail = append(w.trail, string(e))
	w.ids++
	next, legal := w.tries(w.T, w.table, was, e, w.now, fmt.Sprint("op-", w.ids), was.State)
	if !legal {
		return way
	}
	w.record = next
	is := &w.record
	ofPlatform := e == lifecycle.BeginCreate || e == lifecycle.BeginUpdate || e == lifecycle.BeginDelete
	begun := ofPlatform || e == lifecycle.BeginOrphanDeletion || e == lifecycle.BeginQuarantine || e == lifecycle.BeginRelease
	past := next.Past(was)
	if begun && !ofPlatform { // only a former life's operation is replaced otherwise
		past = nil
	}
	if (past != nil) != (ofPlatform && was.Operation != nil) {
		w.Errorf("%s: the past operation is %+v, and the operation was %+v", way, past, was.Operation)
	}
	if past != nil {
		if past.Operation.Phase == lifecycle.InProgress || past.Operation.ID != was.Operation.ID ||
			!past.Expires.Equal(w.now.Add(lifecycle.Retention)) || past.Key != is.Key {
			w.Errorf("%s: it remembers %+v", way, past)
		}
		if was.Operation.Phase == lifecycle.InProgress && (!past.Operation.Cancelled || past.Operation.Phase != lifecycle.Failed) {
			w.Errorf("LOP-16: %s: what was overtaken reads %+v", way, past.Operation)
		}
		w.operation(past.Operation)
	}
	if begun && (is.Operation.ID != fmt.Sprint("op-", w.ids) || is.Operation.Attempt != 1 || is.Operation.Percent != 0) {
		w.Errorf("%s: the operation begins as %+v", way, is.Operation)
	}
	w.check(way)
	return way
}

// look lets something happen on the way of an operation.
func (w *walker) look() {
	before := deepCopy(w.record)
	c := w.record
	op := ""
	if c.Operation != nil {
		op = c.Operation.ID
	}
	what := []string{"looked", "faulted", "redriven", "leased", "released", "absence seen", "late look begun", "looked late"}[w.rng.IntN(8)]
	w.trail = append(w.trail, what)
	switch what {
	case "looked":
		c = c.Looked(w.now, lifecycle.Look{Percent: w.rng.IntN(140) - 20, Description: "going on",
			After: time.Duration(w.rng.Int64N(int64(5 * time.Minute)))})
	case "faulted":
		c = c.Faulted(w.now, lifecycle.Fault{After: time.Second})
	case "redriven":
		c = c.Redriven(w.now)
	case "late look begun":
		if !c.LateLookDue(w.now.Add(time.Hour)) {
			return
		}
		c = c.LateLookBegun(w.now)
	case "looked late":
		if c.Operation == nil || !c.LooksLate(c.Operation.ID, c.LateAttempt) {
			return
		}
		c = c.LookedLate(w.now, w.rng.IntN(2) == 0)
	case "leased":
		if !c.InProgress() {
			return // whoever has nothing to do takes no lease
		}
		w.ids++
		c = c.Leased(fmt.Sprint("step-", w.ids), w.now, w.now.Add(2*time.Minute), nil)
	case "released":
		if len(c.Leases) > 0 {
			c = c.Released(c.Leases[w.rng.IntN(len(c.Leases))].Holder)
		}
	case "absence seen":
		if c.State == lifecycle.Deleting {
			c, _ = c.AbsenceSeen(op, w.now, nil)
		}
	}
	w.unchanged(before)
	w.lost(what, before, c)
	w.record = c
	expect.Same(w, fmt.Sprintf("%s: the state", what), before.State, c.State)
	w.check(what)
}

// lost checks that a lost call is never forgotten while something may be deleted that it makes.
func (w *walker) lost(what string, before, after lifecycle.Record) {
	if what == "released" || !before.InProgress() {
		return
	}
	if before.Unsure(before.Operation.ID, w.now, nil) && !after.Unsure(after.Operation.ID, w.now, nil) {
		w.Errorf("%s forgot a lost call: %+v, then %+v", what, before, after)
	}
	if !before.Operation.Kind.Deletes() && before.Unsure("a deletion", w.now, nil) && !after.Unsure("a deletion", w.now, nil) {
		w.Errorf("%s hid a lost call from a later deletion: %+v, then %+v", what, before, after)
	}
}

// unchanged checks that no method changes its receiver.
func (w *walker) unchanged(before lifecycle.Record) {
	if !reflect.DeepEqual(before, w.record) {
		same(w.T, "the record that it was made from", before, w.record)
	}
}

// operation checks one against how it was seen before.
func (w *walker) operation(op lifecycle.Operation) {
	was, seen := w.known[op.ID]
	w.known[op.ID] = deepCopy(op)
	if !seen {
		return
	}
	if was.Phase != lifecycle.InProgress {
		if !reflect.DeepEqual(was, op) {
			same(w.T, "LOP-19: an operation that has settled", was, op)
		}
		return
	}
	if op.Attempt < was.Attempt || op.Percent < was.Percent {
		w.Errorf("attempt or percent fell: %+v, then %+v", was, op)
	}
	if op.Kind != was.Kind || !op.Started.Equal(was.Started) || !op.Deadline.Equal(was.Deadline) || !reflect.DeepEqual(op.Asker, was.Asker) {
		w.Errorf("what an operation began with has changed: %+v, then %+v", was, op)
	}
}

// check checks all that holds for every record at any time.
func (w *walker) check(what string) {
	c, op := w.record, w.record.Operation
	if op != nil {
		w.operation(*op)
	}
	holds := func(is bool, otherwise string) {
		if !is {
			w.Errorf("after %q, in %q: %s; %+v %+v", what, c.State, otherwise, c, op)
		}
	}
	kinds := map[lifecycle.State][]lifecycle.Kind{
		lifecycle.Creating: {lifecycle.Provision, lifecycle.Bind},
		lifecycle.Updating: {lifecycle.Update},
		lifecycle.Deleting: {lifecycle.Deprovision, lifecycle.Unbind},

		lifecycle.Quarantining: {lifecycle.Quarantine},
		lifecycle.Releasing:    {lifecycle.Release},
	}[c.State]
	within := time.Hour
	if c.InQuarantine() { // nobody waits for it
		within = lifecycle.QuarantineTime
	}
	holds(c.Version == 42, "the version was touched")
	holds(c.InProgress() == (kinds != nil), "the state and the operation do not agree whether it is in progress")
	if c.InProgress() {
		holds(slices.Contains(kinds, op.Kind), "the kind is another")
		holds(!c.Due.IsZero() && op.Deadline.Equal(op.Started.Add(within)), "it could be forgotten")
		holds(op.Settled.IsZero() && op.Percent != 100 && !op.Cancelled, "it is half settled")
		holds((op.Target != nil) == (op.Kind == lifecycle.Update), "the target is wrong")
		holds(c.Current(op.ID, op.Attempt) != c.Current(op.ID, op.Attempt-1), "two attempts are current, or none")
	} else if op != nil {
		holds(!op.Settled.IsZero() && op.Next.IsZero() && op.Target == nil && op.Faults == 0 &&
			(op.Percent == 100) == (op.Phase == lifecycle.Succeeded), "it is half settled")
	}
	deleted := c.State == lifecycle.Deleted
	holds(deleted != c.Expires.IsZero(), "what is not deleted expires, or a tombstone does not")
	holds(deleted || c.LateLook.IsZero(), "what is not deleted is looked at as if it were")
	switch c.State {
	case lifecycle.Deleted:
		holds(c.LateLook.IsZero() == c.Due.Equal(c.Expires) && !c.Due.After(c.Expires) && !c.Wary && c.AbsentSince.IsZero(),
			"it is not a tombstone that expires")
	case lifecycle.CreateFailed, lifecycle.DeleteFailed, lifecycle.Quarantined:
		holds(!c.Due.IsZero(), "ORB-04: nobody will remove what it left")
	case lifecycle.Ready:
		holds(c.Due.IsZero() != c.IsReleased(), "what is at rest is due")
	}
	holders := map[string]bool{}
	for _, l := range c.Leases {
		holds(!holders[l.Holder] && l.Until.After(l.Taken), "its leases are wrong")
		holders[l.Holder] = true
	}
	gone := c.State == lifecycle.Absent || deleted
	holds(gone || c.Incarnation != "" && !c.Created.IsZero(), "it cannot be found by what made it")
	if c.IsBinding() {
		checkBinding(c, gone, holds)
	} else {
		checkInstance(c, gone, holds)
	}
}

func checkInstance(i lifecycle.Record, gone bool, holds func(bool, string)) {
	named := lifecycle.Attributes{ServiceID: i.Attributes.ServiceID, PlanID: i.Attributes.PlanID}
	holds(i.OfOrphan() || (gone || i.Incarnation == orphan) == reflect.DeepEqual(i.Attributes, named), "its attributes are wrong")
	holds(gone || i.Provider != "", "it cannot be found by what made it")
	holds(!i.Unusable || !gone, "what is gone is unusable")
}

func checkBinding(b lifecycle.Record, gone bool, holds func(bool, string)) {
	holds(gone || b.InstanceIncarnation != "" || b.Incarnation == orphan, "it cannot be found by what made it")
	bare := gone || b.Incarnation == orphan
	holds(bare == (b.Secret == nil) && bare == (b.Attributes.Parameters == nil) && bare == (b.Attributes.Context == nil) &&
		(!bare || b.Grant == nil), "its secrets are not where they belong")
	holds((b.State != lifecycle.Ready || b.Grant != nil || b.OfOrphan()) && (b.State != lifecycle.CreateFailed || b.Grant == nil),
		"its grant is not where it belongs")
}
