package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
)

// due stands in no relation to the clock.
var due = time.Date(2031, time.March, 4, 5, 6, 7, 890_000_000, time.UTC)

// bodies compares bodies as a whole, which is fast.
var bodies = cmp.Comparer(bytes.Equal)

func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "records.db")
}

func open(t *testing.T, path string, how ...bolt.Options) *bolt.Store {
	t.Helper()
	s := expect.Get(bolt.Open(path, append(how, bolt.Options{})[0]))(t, "Open:")
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t *testing.T, s *bolt.Store) {
	t.Helper()
	expect.OK(t, s.Close(), "Close:")
}

// edit changes what is in the buckets of the open file.
func edit(t *testing.T, s *bolt.Store, f func(records, due *bbolt.Bucket) error) {
	t.Helper()
	expect.OK(t, s.Edit(func(tx *bbolt.Tx) error { return f(tx.Bucket([]byte("records")), tx.Bucket([]byte("due"))) }))
}

// keyOf is a record's key in the bucket of records.
func keyOf(r store.Record) []byte {
	return append([]byte{0, byte(len(r.Partition))}, r.Partition+r.Sort...)
}

// dueKeyOf is its key in the bucket of what is due.
func dueKeyOf(due *bbolt.Bucket, r store.Record) []byte {
	c := due.Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		if bytes.HasSuffix(k, keyOf(r)) {
			return bytes.Clone(k)
		}
	}
	return nil
}

func fixture(partition, sort string) store.Record {
	return store.Record{Key: store.Key{Partition: partition, Sort: sort}, Writer: "writer of " + sort, Schema: 7, Due: due,
		Expires: due.Truncate(time.Second).Add(time.Hour), Body: bytes.Repeat([]byte(sort), 10)}
}

// fill commits n records of all sizes in a few partitions, and returns them as they are stored, by key.
func fill(t *testing.T, s *bolt.Store, n int) map[store.Key]store.Record {
	t.Helper()
	stored := map[store.Key]store.Record{}
	for i := range n {
		r := fixture(fmt.Sprint("partition ", i%5), fmt.Sprintf("record %04d", i))
		r.Due = r.Due.Add(time.Duration(i*7%n) * time.Minute)
		switch {
		case i%3 == 0:
			r.Due = time.Time{}
		case i%20 == 1:
			r.Body = bytes.Repeat([]byte{byte(i)}, 10_000)
		case i%2 == 0:
			r.Body = bytes.Repeat([]byte{byte(i)}, i*3)
		}
		expect.OK(t, s.Commit(t.Context(), store.Put(r)))
		r.Version = 1
		stored[r.Key] = r
	}
	return stored
}

// contents reads everything, by way of both listings and of Get.
func contents(ctx context.Context, s *bolt.Store) (map[store.Key]store.Record, error) {
	all := map[store.Key]store.Record{}
	for i := range 5 {
		listed, err := storetest.Gather(func(cursor string) (store.Page, error) {
			return s.List(ctx, fmt.Sprint("partition ", i), "", cursor, 0)
		})
		if err != nil {
			return nil, err
		}
		for _, r := range listed {
			all[r.Key] = r
		}
	}
	last := due.Add(1000 * time.Hour)
	listed, err := storetest.Gather(func(cursor string) (store.Page, error) { return s.Due(ctx, last, cursor) })
	if err != nil {
		return nil, err
	}
	dues := len(listed)
	for _, r := range listed {
		if d := cmp.Diff(all[r.Key], r, bodies); d != "" {
			return nil, fmt.Errorf("Due and List disagree:\n%s", d)
		}
	}
	for k, r := range all {
		got, err := s.Get(ctx, k)
		if err != nil {
			return nil, err
		}
		if d := cmp.Diff(r, got, bodies); d != "" {
			return nil, fmt.Errorf("Get and List disagree:\n%s", d)
		}
		if !r.Due.IsZero() {
			dues--
		}
	}
	if dues != 0 {
		return nil, fmt.Errorf("Due lists %d records more than are due", dues)
	}
	return all, nil
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.Harness {
		path := newPath(t)
		s := open(t, path)
		return &storetest.Harness{
			Store: s,
			Again: func(t *testing.T) store.Store {
				closeStore(t, s)
				s = open(t, path, bolt.Options{MustExist: true})
				return s
			},
			Ordered: true,
		}
	})
}

func TestPages(t *testing.T) {
	s := open(t, newPath(t))
	want := map[string]int{"small": 250, "large": 9}
	sizes := map[string]int{"small": 10, "large": 300_000}
	for partition, n := range want {
		for at := 0; at < n; at += 50 {
			var changes []store.Change
			for i := at; i < min(n, at+50); i++ {
				r := fixture(partition, fmt.Sprintf("%03d", i))
				r.Body = bytes.Repeat([]byte("b"), sizes[partition])
				changes = append(changes, store.Put(r))
			}
			expect.OK(t, s.Commit(t.Context(), changes...))
		}
	}

	list := func(partition, prefix string) func(cursor string) (store.Page, error) {
		return func(cursor string) (store.Page, error) { return s.List(t.Context(), partition, prefix, cursor, 0) }
	}
	dues := func(cursor string) (store.Page, error) { return s.Due(t.Context(), due, cursor) }
	for name, test := range map[string]struct {
		reason string
		read   func(cursor string) (store.Page, error)
		want   []int // records on each page
	}{
		"Many":      {"a page ends at 100 records", list("small", ""), []int{100, 100, 50}},
		"JustAPage": {"a listing that fills its last page does not go on to an empty one", list("small", "1"), []int{100}},
		"Large":     {"a page ends when it has passed 1 MiB", list("large", ""), []int{4, 4, 1}},
		"Due": {"pages of what is due end likewise: at one due time, large records come before small ones", dues,
			[]int{4, 4, 100, 100, 51}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			expect.Get(storetest.Gather(func(cursor string) (store.Page, error) {
				p, err := test.read(cursor)
				got = append(got, len(p.Records))
				return p, err
			}))(t)
			expect.Same(t, test.reason, test.want, got)
		})
	}
}

func TestCursors(t *testing.T) {
	s := open(t, newPath(t))
	for i := range 6 {
		r := fixture(fmt.Sprint("partition ", i%2), fmt.Sprint(i))
		r.Body = make([]byte, store.MaxBody)
		expect.OK(t, s.Commit(t.Context(), store.Put(r)))
	}
	// Three records of 390 kB are just more than a page.
	ofScan, ofDue := expect.Get(s.Scan(t.Context(), ""))(t).Next, expect.Get(s.Due(t.Context(), due, ""))(t).Next
	if ofScan == "" || ofDue == "" {
		t.Fatal("the listings have one page only")
	}
	for name, test := range map[string]struct {
		reason string
		read   func() (store.Page, error)
	}{
		"DueInScan": {"a cursor is of its kind of listing", func() (store.Page, error) { return s.Scan(t.Context(), ofDue) }},
		"ScanInDue": {"a cursor is of its kind of listing",
			func() (store.Page, error) { return s.Due(t.Context(), due, ofScan) }},
		"CutOff": {"a cursor is whole", func() (store.Page, error) { return s.Scan(t.Context(), ofScan[:1]) }},
		"Padded": {"a cursor has nothing after it", func() (store.Page, error) { return s.Scan(t.Context(), ofScan+"=") }},
	} {
		t.Run(name, func(t *testing.T) { expect.Fails(t, test.reason, store.ErrInvalid, expect.Err(test.read())) })
	}
}

func TestDueBefore1970(t *testing.T) {
	s := open(t, newPath(t))
	var want []string
	for i, year := range []int{1, 1800, 1969, 1970, 1971, 2031} {
		r := fixture("partition", fmt.Sprint(9-i))
		r.Due = time.Date(year, time.January, 1, 0, 0, 0, 1_000_000, time.UTC)
		expect.OK(t, s.Commit(t.Context(), store.Put(r)))
		want = append(want, r.Sort)
	}
	none := fixture("partition", "none")
	none.Due = time.Time{}.Add(time.Millisecond - 1) // which is cut down to zero
	expect.OK(t, s.Commit(t.Context(), store.Put(none)))
	var got []string
	for _, r := range expect.Get(s.Due(t.Context(), due, ""))(t).Records {
		got = append(got, r.Sort)
	}
	expect.Same(t, "the order is not that of time", want, got)
}

func TestContextOfAWaitingCommit(t *testing.T) {
	s := open(t, newPath(t))
	release := s.HoldCommits()
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	r := fixture("partition", "sort")
	go func() { answer <- s.Commit(ctx, store.Put(r)) }()
	cancel()
	expect.Fails(t, "the error", context.Canceled, <-answer)
	expect.OK(t, s.Commit(t.Context(), store.Check(r.Key, 0)), "a commit that only checks waits for nobody:")
	release()
	expect.Fails(t, "a commit that was cancelled happened", store.ErrNotFound, expect.Err(s.Get(t.Context(), r.Key)))
}

func TestErrorsNameTheRecord(t *testing.T) {
	s := open(t, newPath(t))
	r := fixture("a partition", "a sort key")
	large := r
	large.Body = make([]byte, store.MaxBody+1)
	for name, err := range map[string]error{
		"ErrNotFound": expect.Err(s.Get(t.Context(), r.Key)),
		"ErrConflict": s.Commit(t.Context(), store.Check(r.Key, 3)),
		"ErrInvalid":  s.Commit(t.Context(), store.Put(large)),
	} {
		expect.Says(t, name, fmt.Sprint(err), `"a sort key"`, `"a partition"`)
	}
}

func TestClosed(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	closeStore(t, s)
	closeStore(t, s)
	if _, err := s.Get(t.Context(), store.Key{Partition: "p", Sort: "s"}); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of a closed store: %v", err)
	}
	if err := s.Commit(t.Context(), store.Put(fixture("p", "s"))); err == nil {
		t.Error("Commit to a closed store succeeds")
	}
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Errorf("file after closing: %v, %v", info, err)
	}
}

// The time of the last commit is told after a restart, and never goes back.
func TestTheTimeOfTheLastCommit(t *testing.T) {
	path, now := newPath(t), due
	clock := bolt.Options{Clock: func() time.Time { return now }}
	// commits opens the store for one commit, and another that is a conflict.
	commits := func(sort string, how ...bolt.Options) {
		t.Helper()
		s := open(t, path, how...)
		defer closeStore(t, s)
		expect.OK(t, s.Commit(t.Context(), store.Put(fixture("p", sort))))
		expect.Fails(t, "a conflict", store.ErrConflict, s.Commit(t.Context(), store.Put(fixture("p", sort))))
	}
	// tells requires what the store says after a restart, to the millisecond.
	tells := func(what string, want time.Time, how ...bolt.Options) {
		t.Helper()
		s := open(t, path, how...)
		defer closeStore(t, s)
		if got := s.LastCommit(); got.Before(want) || got.Sub(want) > 2*time.Millisecond || got.IsZero() != want.IsZero() {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	commits("without a clock")
	tells("nothing noted a time", time.Time{})
	commits("first", clock)
	tells("one commit", due)
	now = due.Add(-time.Hour)
	commits("the clock was set back", clock)
	tells("the clock was set back", due)
	now = due.Add(time.Minute)
	commits("the clock went on", clock)
	tells("the clock went on", now, clock)
}

// Reread spares a caller the body of a record that it has read, and gives all of one of another version or writer.
func TestReread(t *testing.T) {
	s := open(t, newPath(t))
	r := fixture("partition", "sort")
	expect.OK(t, s.Commit(t.Context(), store.Put(r)))
	r.Version++
	known := r
	known.Body = nil
	for name, test := range map[string]struct {
		version int64
		writer  string
		want    store.Record
	}{
		"Known":         {1, r.Writer, known},
		"OtherVersion":  {2, r.Writer, r},
		"AnotherWriter": {1, "another", r},
	} {
		for range 2 { // the second time from memory, if at all
			expect.Same(t, name, test.want, expect.Get(s.Reread(t.Context(), r.Key, test.version, test.writer))(t))
		}
	}
	none := store.Key{Partition: "p", Sort: "s"}
	expect.Fails(t, "of no record", store.ErrNotFound, expect.Err(s.Reread(t.Context(), none, 1, "")))
	expect.OK(t, s.Commit(t.Context(), store.Delete(r.Key, 1)))
	expect.Fails(t, "of a record that was deleted", store.ErrNotFound, expect.Err(s.Reread(t.Context(), r.Key, 1, r.Writer)))
	closeStore(t, s)
	if got, err := s.Reread(t.Context(), r.Key, 1, r.Writer); err == nil {
		t.Errorf("of a store that is closed: %v", got)
	}
}

// Reread is never older than the last commit that was answered, however many read the record while it is written.
func TestRereadSeesEachCommit(t *testing.T) {
	s := open(t, newPath(t))
	r := fixture("partition", "sort")
	var written atomic.Int64
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 4 {
		readers.Go(func() {
			for version := int64(0); ctx.Err() == nil; {
				answered := written.Load()
				got, err := s.Reread(t.Context(), r.Key, version, r.Writer)
				if err != nil && answered > 0 || got.Version < max(answered, version) {
					t.Errorf("read version %d and %v, after %d was written and %d was read", got.Version, err, answered, version)
					return
				}
				version = got.Version
			}
		})
	}
	for ; r.Version < 200; r.Version++ {
		expect.OK(t, s.Commit(t.Context(), store.Put(r)))
		written.Store(r.Version + 1)
	}
	stop()
	readers.Wait()
}
