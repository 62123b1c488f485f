package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// dueTests are about the index of what is due.
var dueTests = map[string]func(*testing.T, *Harness){
	"Boundary": testDueBoundary,
	"Zero":     testDueZero,
	"Moved":    testDueMoved,
	"SameTime": testDueSameTime,
	"Large":    testDueLarge,
	"Changing": testDueChanging,
	"Expiring": testDueExpiring,
}

func dueAt(k store.Key, at time.Time) store.Record {
	r := fixture(k)
	r.Due = at
	return r
}

func testDueBoundary(t *testing.T, h *Harness) {
	early := put(t, h.Store, dueAt(key("p1", "early"), due.Add(-time.Millisecond)))
	same := put(t, h.Store, dueAt(key("p2", "same"), due))
	late := put(t, h.Store, dueAt(key("p3", "late"), due.Add(time.Millisecond)))
	for name, test := range map[string]struct {
		reason string
		before time.Time
		want   []store.Record
	}{
		"Equal":    {"what is due at the very time is due", due, []store.Record{early, same}},
		"Between":  {"what is due a moment later is not", due.Add(time.Millisecond - 1), []store.Record{early, same}},
		"JustShy":  {"a nanosecond before is before", due.Add(-1), []store.Record{early}},
		"After":    {"all is due in the end", due.Add(time.Millisecond), []store.Record{early, same, late}},
		"Zone":     {"a time is the same in every zone", due.In(time.FixedZone("west", -7*60*60)), []store.Record{early, same}},
		"Never":    {"nothing is due before anything", due.Add(-time.Hour), nil},
		"ZeroTime": {"nor at the zero time", time.Time{}, nil},
	} {
		t.Run(name, func(t *testing.T) { isDue(t, h, test.reason, test.before, test.want...) })
	}
}

func testDueZero(t *testing.T, h *Harness) {
	put(t, h.Store, resting(key("partition", "never")))
	epoch := put(t, h.Store, dueAt(key("partition", "epoch"), time.Unix(0, 0).UTC()))
	isDue(t, h, "a zero due time is none, but 1970 is one", due, epoch)
}

// testDueExpiring is about what is due only to be dropped: somebody has to, and
// nobody twice.
func testDueExpiring(t *testing.T, h *Harness) {
	expiring := func(sort string, at time.Time) store.Record {
		r := dueAt(key("partition", sort), at)
		r.Expires = time.Date(2998, time.January, 1, 0, 0, 0, 0, time.UTC)
		return r
	}
	when := expiring("", due).Expires
	sooner := put(t, h.Store, expiring("sooner", when.Add(-time.Millisecond)))
	same := put(t, h.Store, expiring("same", when))
	later := put(t, h.Store, expiring("later", when.Add(time.Hour)))
	isStored(t, h.Store, "it is kept as it is", sooner, same, later)
	want := []store.Record{sooner}
	if !h.Drops {
		want = append(want, same, later)
	}
	isDue(t, h, "only what somebody else has to drop is due when it has expired", when.Add(time.Hour), want...)

	same.Due = due
	same = put(t, h.Store, same)
	isDue(t, h, "it is due again when there is something to do before", due, same)
	same.Due = when
	same = put(t, h.Store, same)
	isDue(t, h, "and not when that is done", due)
}

func testDueMoved(t *testing.T, h *Harness) {
	k := key("partition", "sort")
	other := put(t, h.Store, dueAt(key("partition", "other"), due))
	r := put(t, h.Store, dueAt(k, due))
	isDue(t, h, "it is due", due, other, r)

	move := func(to time.Time) {
		r.Due = to
		r = put(t, h.Store, r)
	}
	move(due.Add(time.Hour))
	isDue(t, h, "moved later, it is due later", due, other)
	isDue(t, h, "and then once", due.Add(time.Hour), other, r)
	move(due.Add(-time.Hour))
	isDue(t, h, "moved earlier, it is due earlier", due.Add(-time.Hour), r)
	move(time.Time{})
	isDue(t, h, "with no due time it is never due", due.Add(time.Hour), other)
	move(due)
	isDue(t, h, "and due again when it has one", due, other, r)
	r.Body = body(10)
	r = put(t, h.Store, r)
	isDue(t, h, "with its due time unchanged it is due as it is now", due, other, r)
	commit(t, h.Store, store.Delete(k, r.Version))
	isDue(t, h, "deleted, it is not due", due, other)
	r = put(t, h.Store, dueAt(k, due.Add(time.Minute)))
	isDue(t, h, "made again, it is due when it says now", due, other)
	isDue(t, h, "made again, it is due when it says now", due.Add(time.Minute), other, r)
}

func testDueSameTime(t *testing.T, h *Harness) {
	var records []store.Record
	for i := range 250 {
		r := fixture(key(fmt.Sprintf("partition %d", i%9), fmt.Sprintf("%03d", i)))
		r.Body = body(10)
		records = append(records, r)
	}
	isDue(t, h, "many may be due at one time, over all pages", due, putAll(t, h.Store, records...)...)
}

func testDueLarge(t *testing.T, h *Harness) {
	isDue(t, h, "all of them, over all pages", due, putAll(t, h.Store, large("partition")...)...)
}

// testDueChanging lists while others of the records are moved, deleted and
// made: those that are due throughout must all be listed.
func testDueChanging(t *testing.T, h *Harness) {
	var records []store.Record
	for i, r := range large("partition") {
		r.Due = due.Add(time.Duration(i) * time.Minute)
		records = append(records, r)
	}
	last := due.Add(40 * time.Minute)
	stored := putAll(t, h.Store, records...)
	isDue(t, h, "all are due at first", last, stored...)

	pages := 0
	got, err := Gather(func(cursor string) (store.Page, error) {
		page, err := h.Store.Due(t.Context(), last, cursor)
		if err != nil {
			return page, err
		}
		for i := pages % 3; i < len(stored); i += 9 {
			r, found := stillThere(t, h.Store, stored[i].Key)
			if !found {
				continue
			}
			switch (i + pages) % 4 {
			case 0:
				commit(t, h.Store, store.Delete(r.Key, r.Version))
			case 1:
				r.Due = time.Time{}
				put(t, h.Store, r)
			case 2:
				r.Due = last
				put(t, h.Store, r)
			default:
				r.Due = due
				put(t, h.Store, r)
			}
		}
		if pages < 10 { // else the listing of a store with small pages never ends
			put(t, h.Store, dueAt(key("new", fmt.Sprint(pages)), due.Add(time.Duration(pages)*time.Minute)))
		}
		pages++
		return page, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[store.Key]bool{}
	for _, r := range got {
		listed[r.Key] = true
	}
	for i, r := range stored {
		if i%9 > 2 && !listed[r.Key] {
			t.Errorf("record %q was due throughout and is not listed", r.Sort)
		}
	}
}
