package storetest

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/records/store"
)

// recordTests are about what is kept of a record.
var recordTests = map[string]func(*testing.T, *Harness){
	"WholeFixture": testWholeFixture,
	"RoundTrip":    testRoundTrip,
	"Times":        testTimes,
	"Expired":      testExpired,
	"Emptied":      testEmptied,
	"NotAliased":   testNotAliased,
	"Reopened":     testReopened,
}

// testWholeFixture keeps the fixtures honest: whoever adds a field to Record
// must add it to them, or no test would notice an adapter that forgets it.
func testWholeFixture(t *testing.T, h *Harness) {
	whole := put(t, h.Store, fixture(key("partition", "sort")))
	next := put(t, h.Store, changed(whole))
	for i := range reflect.TypeFor[store.Record]().NumField() {
		f := reflect.TypeFor[store.Record]().Field(i)
		a, b := reflect.ValueOf(whole).Field(i), reflect.ValueOf(next).Field(i)
		if zero(a) || zero(b) {
			t.Errorf("the fixture has no %s", f.Name)
		}
		if f.Name != "Key" && reflect.DeepEqual(a.Interface(), b.Interface()) {
			t.Errorf("the changed fixture has the same %s", f.Name)
		}
	}
}

// zero reports whether a value or, in a struct of ours, any field of it is
// zero; a time is one value.
func zero(v reflect.Value) bool {
	if _, ok := v.Interface().(time.Time); ok || v.Kind() != reflect.Struct {
		return v.IsZero()
	}
	for i := range v.NumField() {
		if zero(v.Field(i)) {
			return true
		}
	}
	return false
}

func testRoundTrip(t *testing.T, h *Harness) {
	r := fixture(key("partition", "sort"))
	for _, reason := range []string{"every field is kept", "every field is replaced"} {
		r = put(t, h.Store, r)
		isStored(t, h.Store, reason, r)
		isListed(t, h.Store, reason, "partition", "", r)
		isDue(t, h, reason, r.Due, r)
		h.Reopen(t)
		isStored(t, h.Store, reason+", also after reopening", r)
		isListed(t, h.Store, reason+", also after reopening", "partition", "", r)
		isDue(t, h, reason+", also after reopening", r.Due, r)
		r = changed(r)
	}
}

func testTimes(t *testing.T, h *Harness) {
	east := time.FixedZone("east", 5*60*60+30*60)
	exact := time.Date(2031, time.January, 1, 2, 3, 4, 0, time.UTC)
	tests := map[string]struct {
		reason                             string
		due, expires, wantDue, wantExpires time.Time
	}{
		"Exact": {
			reason: "what is exact stays the same",
			due:    exact.Add(time.Millisecond), wantDue: exact.Add(time.Millisecond),
			expires: exact.Add(time.Second), wantExpires: exact.Add(time.Second),
		},
		"Zone": {
			reason: "times are kept in UTC",
			due:    exact.In(east), wantDue: exact, expires: exact.In(east), wantExpires: exact,
		},
		"Cut": {
			reason: "what is finer is cut off, never rounded up",
			due:    exact.Add(time.Millisecond - 1), wantDue: exact,
			expires: exact.Add(time.Second - 1), wantExpires: exact,
		},
		"Zero":    {reason: "zero stays zero"},
		"OnlyDue": {reason: "one may be zero without the other", due: exact, wantDue: exact},
		"OnlyExpires": {
			reason:  "one may be zero without the other",
			expires: exact, wantExpires: exact,
		},
		"Epoch": {
			reason: "the first moment of 1970 is a time, not none",
			due:    time.Unix(0, 0), wantDue: time.Unix(0, 0).UTC(),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := fixture(key("times", name))
			r.Due, r.Expires = test.due, test.expires
			r = put(t, h.Store, r)
			r.Due, r.Expires = test.wantDue, test.wantExpires
			isStored(t, h.Store, test.reason, r)
		})
	}
}

func testExpired(t *testing.T, h *Harness) {
	r := resting(key("partition", "expired"))
	r.Expires = time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC)
	r = put(t, h.Store, r)
	// The store may drop it at any time, so both answers are right; but it
	// is whole or it is gone.
	if _, err := h.Store.Get(t.Context(), r.Key); !errors.Is(err, store.ErrNotFound) {
		isStored(t, h.Store, "a record that has expired is still returned, unless it was dropped", r)
	}
}

func testEmptied(t *testing.T, h *Harness) {
	r := put(t, h.Store, fixture(key("partition", "sort")))
	r = put(t, h.Store, store.Record{Key: r.Key, Version: r.Version})
	isStored(t, h.Store, "a put replaces the whole record: nothing of the one before shines through", r)
	isListed(t, h.Store, "a put replaces the whole record", "partition", "", r)
	isDue(t, h, "a put replaces the whole record", due)
}

// testNotAliased overwrites everything that the caller and the store have
// both had in their hands.
func testNotAliased(t *testing.T, h *Harness) {
	want := fixture(key("partition", "sort"))
	want.Version = 1

	mine := fixture(want.Key)
	change := store.Put(mine)
	commit(t, h.Store, change)
	if d := diff([]store.Record{fixture(want.Key)}, []store.Record{change.Record}); d != "" {
		t.Fatalf("Commit changed the caller's record: -want +got:\n%s", d)
	}
	scribble(mine.Body)
	isStored(t, h.Store, "the body that was given to Commit stays the caller's", want)
	isDue(t, h, "the body that was given to Commit stays the caller's", due, want)

	reads := map[string]func() (store.Record, error){
		"Get": func() (store.Record, error) { return h.Store.Get(t.Context(), want.Key) },
		"List": func() (store.Record, error) {
			page, err := h.Store.List(t.Context(), "partition", "", "", 0)
			return one(page, err)
		},
		"Due": func() (store.Record, error) {
			records, err := Gather(func(cursor string) (store.Page, error) { return h.Store.Due(t.Context(), due, cursor) })
			return one(store.Page{Records: records}, err)
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			first, err := read()
			if err != nil {
				t.Fatal(err)
			}
			second, err := read()
			if err != nil {
				t.Fatal(err)
			}
			scribble(first.Body)
			if d := diff([]store.Record{want}, []store.Record{second}); d != "" {
				t.Fatalf("two reads share a body: -want +got:\n%s", d)
			}
			isStored(t, h.Store, "a body that was returned is the caller's", want)
			isListed(t, h.Store, "a body that was returned is the caller's", "partition", "", want)
			isDue(t, h, "a body that was returned is the caller's", due, want)
		})
	}
}

func one(page store.Page, err error) (store.Record, error) {
	if err == nil && len(page.Records) != 1 {
		err = errors.New("the page does not hold one record")
	}
	if err != nil {
		return store.Record{}, err
	}
	return page.Records[0], nil
}

func testReopened(t *testing.T, h *Harness) {
	kept := put(t, h.Store, fixture(key("partition", "kept")))
	updated := put(t, h.Store, changed(put(t, h.Store, fixture(key("partition", "updated")))))
	deleted := put(t, h.Store, fixture(key("partition", "deleted")))
	commit(t, h.Store, store.Delete(deleted.Key, 1))
	other := put(t, h.Store, resting(key("other", "kept")))

	h.Reopen(t)
	isStored(t, h.Store, "records survive reopening", kept, updated, other)
	isAbsent(t, h.Store, "deletions survive reopening", deleted.Key)
	isListed(t, h.Store, "records survive reopening", "partition", "", kept, updated)
	isDue(t, h, "the index survives reopening", updated.Due, kept, updated)

	isError(t, "versions survive reopening", h.Store.Commit(t.Context(), store.Put(fixture(kept.Key))), store.ErrConflict)
	kept = put(t, h.Store, changed(kept))
	h.Reopen(t)
	isStored(t, h.Store, "so does what follows", kept)
}
