package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestOpenMakesTheFile(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	info, err := os.Stat(path)
	expect.OK(t, err)
	expect.Same(t, "the file's mode", 0o600, info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	expect.OK(t, err)
	if len(entries) != 1 {
		t.Errorf("the folder holds more than the file: %v", entries)
	}
	if s.Identity() == "" {
		t.Error("the file has no identity")
	}
}

func TestIdentity(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	identity := s.Identity()
	fill(t, s, 20)
	closeStore(t, s)
	expect.Same(t, "reopened, the identity", identity, open(t, path).Identity())
	if got := open(t, newPath(t)).Identity(); got == identity {
		t.Errorf("another file has the same identity %q", got)
	}
}

type openErrorTest struct {
	reason string
	before func(t *testing.T, path string)
	opts   []bolt.Option
	want   error
}

func openErrorTests() map[string]openErrorTest {
	write := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			expect.OK(t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
	edit := func(f func(*bbolt.Tx) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			s := open(t, path)
			fill(t, s, 10)
			closeStore(t, s)
			editFile(t, path, f)
		}
	}
	return map[string]openErrorTest{
		"Missing": {reason: "a file that must exist is never made", before: func(*testing.T, string) {},
			opts: []bolt.Option{bolt.MustExist()}, want: bolt.ErrMissing},
		"MissingFolder": {reason: "a folder is never made",
			before: func(t *testing.T, path string) {
				t.Helper()
				expect.OK(t, os.Remove(filepath.Dir(path)))
			},
			want: fs.ErrNotExist},
		"Empty": {reason: "an empty file may be one that has lost everything", before: write(""), want: bolt.ErrDamaged},
		"EmptyMustExist": {reason: "an empty file may be one that has lost everything", before: write(""),
			opts: []bolt.Option{bolt.MustExist()}, want: bolt.ErrDamaged},
		"ShortText": {reason: "a file of another kind is not overwritten", before: write("this is no store"),
			want: bolt.ErrDamaged},
		"LongText": {reason: "a file of another kind is not overwritten",
			before: write(strings.Repeat("this is no store\n", 10_000)), want: bolt.ErrDamaged},
		"DanglingLink": {reason: "a link to nothing is a file that is missing",
			before: func(t *testing.T, path string) {
				t.Helper()
				expect.OK(t, os.Symlink(path+".elsewhere", path))
			},
			want: bolt.ErrMissing},
		"NoBuckets": {reason: "a bbolt file of another program is no store",
			before: func(t *testing.T, path string) {
				t.Helper()
				editFile(t, path, func(*bbolt.Tx) error { return nil })
			},
			want: bolt.ErrDamaged},
		"BucketMissing": {reason: "nor is one without records",
			before: edit(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("records")) }), want: bolt.ErrDamaged},
		"FormatMissing": {reason: "nor is one that does not say what it is",
			before: edit(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("about")).Delete([]byte("about")) }),
			want:   bolt.ErrDamaged},
		"IdentityChanged": {reason: "records of one store are not those of another",
			before: edit(func(tx *bbolt.Tx) error {
				about := tx.Bucket([]byte("about"))
				value := bytes.Clone(about.Get([]byte("about")))
				value[len(value)-1] ^= 1
				return about.Put([]byte("about"), value)
			}),
			want: bolt.ErrDamaged},
		"Newer": {reason: "a newer file is not damaged, but not understood", before: edit(bolt.SetNewer), want: bolt.ErrNewer},
		"InUse": {reason: "a file has one owner", before: func(t *testing.T, path string) { t.Helper(); open(t, path) },
			want: bolt.ErrLocked},
	}
}

func TestOpenErrors(t *testing.T) {
	for name, test := range openErrorTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			test.before(t, path)
			was, _ := os.ReadFile(path)
			s, err := bolt.Open(path, test.opts...)
			if err == nil {
				closeStore(t, s)
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("%s: got error %v, want %v", test.reason, err, test.want)
			}
			if !strings.Contains(err.Error(), fmt.Sprintf("%q", path)) {
				t.Errorf("the error does not name the file: %v", err)
			}
			for _, other := range []error{bolt.ErrLocked, bolt.ErrDamaged, bolt.ErrMissing, bolt.ErrNewer} {
				if other != test.want && errors.Is(err, other) {
					t.Errorf("error %v is also %v", err, other)
				}
			}
			if is, _ := os.ReadFile(path); string(is) != string(was) {
				t.Errorf("%s: but the file was changed", test.reason)
			}
		})
	}

	t.Run("Folder", func(t *testing.T) {
		if _, err := bolt.Open(t.TempDir()); err == nil || errors.Is(err, bolt.ErrDamaged) {
			t.Errorf("a folder is neither a store nor a damaged one: %v", err)
		}
	})
}

// editFile changes a file behind the store's back.
func editFile(t *testing.T, path string, f func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	expect.OK(t, err)
	expect.OK(t, errors.Join(db.Update(f), db.Close()))
}

func TestLockedByAnotherProcess(t *testing.T) {
	for name, end := range map[string]func(*process) error{
		"Ended":  func(p *process) error { return p.in.Close() },
		"Killed": func(p *process) error { return p.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			holder := start(t, "holder", path)
			if !holder.out.Scan() || holder.out.Text() != "open" {
				t.Fatal("the other process has not opened the store")
			}
			expect.Fails(t, "the error", bolt.ErrLocked, expect.Err(bolt.Open(path)))
			expect.OK(t, end(holder))
			_ = holder.Wait() // killed or not, it is gone
			open(t, path, bolt.MustExist())
		})
	}
}

func TestOpenWaitsForTheLock(t *testing.T) {
	path := newPath(t)
	first := open(t, path)
	opened := make(chan error)
	go func() {
		second, err := bolt.Open(path)
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	closeStore(t, first)
	if err := <-opened; err != nil {
		t.Errorf("a store that was let go of in time: %v", err)
	}
}

// TestFirstOpensTogether: whoever makes the file first, nobody replaces it
// after a record was committed to it.
func TestFirstOpensTogether(t *testing.T) {
	path := newPath(t)
	var mu sync.Mutex
	identities := map[string]bool{}
	var keys []store.Key
	var opening sync.WaitGroup
	for i := range 6 {
		opening.Go(func() {
			s, err := bolt.Open(path)
			if err != nil {
				expect.Fails(t, "Open", bolt.ErrLocked, err)
				return
			}
			r := fixture("partition", fmt.Sprint(i))
			if err := errors.Join(s.Commit(t.Context(), store.Put(r)), s.Close()); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			identities[s.Identity()] = true
			keys = append(keys, r.Key)
		})
	}
	opening.Wait()
	expect.Same(t, "files that were made", 1, len(identities))
	s := open(t, path, bolt.MustExist())
	for _, k := range keys {
		if _, err := s.Get(t.Context(), k); err != nil {
			t.Error(err)
		}
	}
}
