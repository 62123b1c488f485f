package storetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/records/store"
)

// due is when the fixtures are due; it stands in no relation to the clock.
var due = time.Date(2031, time.March, 4, 5, 6, 7, 890_000_000, time.UTC)

func key(partition, sort string) store.Key { return store.Key{Partition: partition, Sort: sort} }

// fixture is a record to be put for the first time. Once stored, it has no
// field that is zero, and no two fields are alike.
func fixture(k store.Key) store.Record {
	return store.Record{
		Key:    k,
		Writer: "writer <of> \"" + k.Sort + "\" & \u2028 ü",
		Schema: 7,
		Due:    due,
		// So late that no store drops it while the test runs.
		Expires: time.Date(2999, time.December, 31, 23, 59, 58, 0, time.UTC),
		Body:    body(256),
	}
}

// body is n bytes, of which any 256 in a row are all different.
func body(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

// resting is a fixture that is never due.
func resting(k store.Key) store.Record {
	r := fixture(k)
	r.Due = time.Time{}
	return r
}

// changed is what follows on a record that was read: every field that may
// change does.
func changed(r store.Record) store.Record {
	r.Writer = "the next writer"
	r.Schema++
	if !r.Due.IsZero() {
		r.Due = r.Due.Add(time.Hour)
	}
	r.Expires = r.Expires.Add(time.Hour)
	r.Body = body(100)
	return r
}

// commit makes the changes or fails the test.
func commit(t *testing.T, s store.Store, changes ...store.Change) {
	t.Helper()
	if err := s.Commit(t.Context(), changes...); err != nil {
		t.Fatalf("Commit(%d changes): %v", len(changes), err)
	}
}

// put writes the record and returns it as it should now be stored.
func put(t *testing.T, s store.Store, r store.Record) store.Record {
	t.Helper()
	commit(t, s, store.Put(r))
	r.Version++
	return r
}

// putAll writes the records, a hundred in each commit and no more than 3 MB:
// there are stores that take 4 MB at most.
func putAll(t *testing.T, s store.Store, records ...store.Record) []store.Record {
	t.Helper()
	var stored []store.Record
	var changes []store.Change
	size := 0
	for _, r := range records {
		if len(changes) == store.MaxChanges || size+len(r.Body) > 3_000_000 {
			commit(t, s, changes...)
			changes, size = nil, 0
		}
		changes, size = append(changes, store.Put(r)), size+len(r.Body)
		r.Version++
		stored = append(stored, r)
	}
	commit(t, s, changes...)
	return stored
}

// isStored fails the test unless Get returns each of the records.
func isStored(t *testing.T, s store.Store, reason string, want ...store.Record) {
	t.Helper()
	for _, w := range want {
		got, err := s.Get(t.Context(), w.Key)
		if err != nil {
			t.Fatalf("%s\nGet(%.40q, %.40q): %v", reason, w.Partition, w.Sort, err)
		}
		if d := diff([]store.Record{w}, []store.Record{got}); d != "" {
			t.Fatalf("%s\nGet(%.40q, %.40q): -want +got:\n%s", reason, w.Partition, w.Sort, d)
		}
	}
}

// isAbsent fails the test unless there is no record with any of the keys.
func isAbsent(t *testing.T, s store.Store, reason string, keys ...store.Key) {
	t.Helper()
	for _, k := range keys {
		got, err := s.Get(t.Context(), k)
		isError(t, reason+fmt.Sprintf("\nGet(%.40q, %.40q)", k.Partition, k.Sort), err, store.ErrNotFound)
		if d := diff([]store.Record{{}}, []store.Record{got}); d != "" {
			t.Fatalf("%s\nGet returned a record with its error: -want +got:\n%s", reason, d)
		}
	}
}

// stillThere reads a record that the test itself may have deleted.
func stillThere(t *testing.T, s store.Store, k store.Key) (store.Record, bool) {
	t.Helper()
	r, err := s.Get(t.Context(), k)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("Get(%.40q, %.40q): %v", k.Partition, k.Sort, err)
	}
	return r, err == nil
}

// isError fails the test unless err is want and no other of the contract's.
func isError(t *testing.T, reason string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", reason, err, want)
	}
	for _, other := range []error{store.ErrNotFound, store.ErrConflict, store.ErrInvalid} {
		if other != want && errors.Is(err, other) {
			t.Fatalf("%s: error %v is also %v", reason, err, other)
		}
	}
}

// Gather reads a listing to its end.
func Gather(read func(cursor string) (store.Page, error)) ([]store.Record, error) {
	var all []store.Record
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := read(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Records...)
		if page.Next == "" {
			return all, nil
		}
		if seen[page.Next] {
			return nil, fmt.Errorf("cursor %q came twice: the listing never ends", page.Next)
		}
		seen[page.Next] = true
		cursor = page.Next
	}
}

func list(t *testing.T, s store.Store, partition, prefix string) []store.Record {
	t.Helper()
	all, err := Gather(func(after string) (store.Page, error) {
		return s.List(t.Context(), partition, prefix, after, 0)
	})
	if err != nil {
		t.Fatalf("List(%.40q, %q): %v", partition, prefix, err)
	}
	return all
}

// isListed fails the test unless the listing is exactly the wanted records,
// in the order of their sort keys.
func isListed(t *testing.T, s store.Store, reason, partition, prefix string, want ...store.Record) {
	t.Helper()
	if d := diff(sorted(want), list(t, s, partition, prefix)); d != "" {
		t.Fatalf("%s\nList(%.40q, %q): -want +got:\n%s", reason, partition, prefix, d)
	}
}

// isDue fails the test unless the listing of what is due comes to be exactly
// the wanted records, in any order.
func isDue(t *testing.T, h *Harness, reason string, before time.Time, want ...store.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h.Eventually(ctx, t, func() error {
		got, err := Gather(func(cursor string) (store.Page, error) {
			page, err := h.Store.Due(t.Context(), before, cursor)
			if h.Ordered && !slices.IsSortedFunc(page.Records, func(a, b store.Record) int { return a.Due.Compare(b.Due) }) {
				return page, errors.New("the page is not in the order of the due times")
			}
			return page, err
		})
		if err != nil {
			return fmt.Errorf("%s\nDue(%v): %w", reason, before, err)
		}
		if d := diff(sorted(want), sorted(got)); d != "" {
			return fmt.Errorf("%s\nDue(%v): -want +got:\n%s", reason, before, d)
		}
		return nil
	})
}

func sorted(records []store.Record) []store.Record {
	return slices.SortedFunc(slices.Values(records), func(a, b store.Record) int {
		return cmp.Or(strings.Compare(a.Partition, b.Partition), strings.Compare(a.Sort, b.Sort))
	})
}

// diff compares records exactly: times must also be in UTC, and a body that
// is nil is the same as one that is empty.
func diff(want, got []store.Record) string {
	return gocmp.Diff(want, got,
		gocmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) && a.Location() == b.Location() }),
		gocmp.Transformer("Body", func(b []byte) string {
			if len(b) <= 64 {
				return fmt.Sprintf("%q", b)
			}
			return fmt.Sprintf("%d bytes with sum %x", len(b), sha256.Sum256(b))
		}),
		gocmp.Transformer("Key", func(k store.Key) []string { return []string{k.Partition, k.Sort} }),
		gocmp.FilterPath(func(p gocmp.Path) bool { return len(p) == 1 },
			gocmp.Transformer("Records", func(rs []store.Record) []store.Record { return append([]store.Record{}, rs...) })))
}

// together runs n functions at once: none begins before all can.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			<-start
			errs[i] = f(i)
		})
	}
	close(start)
	running.Wait()
	return errs
}

// scribble overwrites what a caller might overwrite.
func scribble(b []byte) { copy(b, bytes.Repeat([]byte("scribble"), len(b)/8+1)) }
