package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

// commitUntil commits into a store until the context ends, and tells then how it ended. It replaces the same
// records again and again, so that the pages that a reader has are soon free for others.
func commitUntil(ctx context.Context, s *bolt.Store) <-chan error {
	ended := make(chan error)
	go func() {
		var err error
		for i := int64(0); err == nil; i++ {
			another := fixture("partition 0", fmt.Sprint("another ", i%100))
			another.Version = i / 100
			err = s.Commit(ctx, store.Put(another))
		}
		ended <- err
	}()
	return ended
}

// An open store is checked and saved while others commit, and is then as it was. A snapshot is a whole store file of the
// same identity, with what was committed before. A check ends with whoever wants it, and finds nothing then.
func TestCheckAndSnapshotBesideCommits(t *testing.T) {
	s := open(t, newPath(t))
	want := fill(t, s, 300)
	ctx, stop := context.WithCancel(t.Context())
	ended := commitUntil(ctx, s)
	sound := func(found bolt.Result, err error) {
		t.Helper()
		if err != nil || found.Wrong > 0 || found.Identity != s.Identity() || found.Records < len(want) {
			t.Fatalf("%+v %v", found, err)
		}
	}
	path := filepath.Join(t.TempDir(), "snapshot.db")
	for n := range 20 {
		if n%2 == 0 {
			sound(s.Check(t.Context()))
		}
		_ = os.Remove(path)
		expect.OK(t, s.Snapshot(path))
		sound(bolt.Check(t.Context(), path))
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, bolt.ErrUnknown) {
		t.Errorf("a commit beside a check: %v", err)
	}
	if found, err := s.Check(ctx); !errors.Is(err, context.Canceled) || found.Wrong > 0 {
		t.Errorf("a check that nobody wants: %+v %v", found, err)
	}
	expect.OK(t, s.Commit(t.Context(), store.Put(fixture("partition 0", "after"))))
	got := expect.Get(contents(t.Context(), open(t, path)))(t)
	maps.DeleteFunc(got, func(k store.Key, _ store.Record) bool { return strings.HasPrefix(k.Sort, "another") })
	expect.Same(t, "what the snapshot holds", want, got, bodies)
	if err := s.Snapshot(path); err == nil {
		t.Error("a snapshot was written over a file that was there")
	}
}

// Damage that nobody has met stops all changes and backups before the next start. What is whole can be read.
func TestCheckStopsChanges(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	lost, kept := fixture("a partition", "lost"), fixture("a partition", "kept")
	expect.OK(t, s.Commit(t.Context(), store.Put(lost), store.Put(kept)))
	edit(t, s, func(records, _ *bbolt.Bucket) error {
		value := bytes.Clone(records.Get(keyOf(lost)))
		value[len(value)-1] ^= 1
		return records.Put(keyOf(lost), value)
	})
	other := fixture("p", "sort") // which stands before them
	expect.OK(t, s.Commit(t.Context(), store.Put(other)), "before the check:")
	found, err := s.Check(t.Context())
	if err != nil || found.Wrong != 1 || !errors.Is(found.Problems[0], bolt.ErrDamaged) {
		t.Fatalf("%+v %v", found, err)
	}
	other.Version = 1
	expect.Fails(t, "a commit after the check", bolt.ErrDamaged, s.Commit(t.Context(), store.Put(other)))
	expect.Fails(t, "a backup after the check", bolt.ErrDamaged, s.Snapshot(newPath(t)))
	expect.Get(s.Get(t.Context(), kept.Key))(t)
	expect.OK(t, s.Commit(t.Context(), store.Check(kept.Key, 1)), "a commit that changes nothing:")
}

// A check on which the process dies, or that has no end, is damage: here a page leads
// back to itself, or says that it spreads over four billion more.
func TestCheckThatDies(t *testing.T) {
	sm := newSample(t)
	for name, spoil := range map[string]func(branch []byte){
		"Circle": func(branch []byte) { copy(branch[24:32], branch[:8]) },
		"Spread": func(branch []byte) { copy(branch[12:16], []byte{0xff, 0xff, 0xff, 0xff}) },
	} {
		t.Run(name, func(t *testing.T) {
			file, found := bytes.Clone(sm.file), false
			for at := 2 * sm.pageSize; at < len(file); at += sm.pageSize {
				if file[at+8] == 1 && file[at+9] == 0 { // a branch
					spoil(file[at:])
					found = true
				}
			}
			path := newPath(t)
			if err := os.WriteFile(path, file, 0o600); err != nil || !found {
				t.Fatal(found, err)
			}
			if result, err := bolt.Check(t.Context(), path); err != nil || result.Wrong == 0 {
				t.Errorf("%+v %v", result, err)
			}
		})
	}
}

// A record that bbolt does not find is not said to be absent, and none is made in its place.
func TestAFalseAbsence(t *testing.T) {
	for _, sort := range []string{"record 0000", "record 0065", "record 0129"} { // first, midst, last
		t.Run(sort, func(t *testing.T) {
			s := open(t, newPath(t))
			for i := range 130 {
				expect.OK(t, s.Commit(t.Context(), store.Put(fixture("a partition", fmt.Sprintf("record %04d", i)))))
			}
			lost := fixture("a partition", sort)
			edit(t, s, func(records, _ *bbolt.Bucket) error { return records.Delete(keyOf(lost)) })
			after := ""
			if sort == "record 0129" { // on the second page
				after = "record 0090"
			}
			for what, err := range map[string]error{
				"Get":                    expect.Err(s.Get(t.Context(), lost.Key)),
				"List":                   expect.Err(s.List(t.Context(), lost.Partition, lost.Sort, "", 0)),
				"a longer list":          expect.Err(s.List(t.Context(), lost.Partition, "record 0", after, 0)),
				"a commit that makes it": s.Commit(t.Context(), store.Put(lost)),
				"a commit that requires that it is absent": s.Commit(t.Context(), store.Check(lost.Key, 0)),
			} {
				expect.Fails(t, what, bolt.ErrDamaged, err)
			}
			expect.Get(s.Get(t.Context(), store.Key{Partition: lost.Partition, Sort: "record 0032"}))(t)
		})
	}
}

// A commit that meets damage midway takes no other of its group with it.
func TestDamageInAGroup(t *testing.T) {
	s := open(t, newPath(t))
	bad := fixture("a partition", "bad")
	expect.OK(t, s.Commit(t.Context(), store.Put(bad)))
	// Its place in the due index, which only a change of it needs.
	edit(t, s, func(_, due *bbolt.Bucket) error { return due.Delete(dueKeyOf(due, bad)) })
	good := fixture("a partition", "good")
	good.Due = time.Time{}
	bad.Version, bad.Due = 1, due.Add(time.Hour)
	answers := grouped(s, nil, func() error { return s.Commit(t.Context(), store.Put(bad)) },
		func() error { return s.Commit(t.Context(), store.Put(good)) })
	expect.Fails(t, "the damaged one", bolt.ErrDamaged, answers[0])
	expect.OK(t, answers[1], "the other:")
	expect.Same(t, "the version of what was refused", 1, expect.Get(s.Get(t.Context(), bad.Key))(t).Version)
}
