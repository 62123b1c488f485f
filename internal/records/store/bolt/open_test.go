package bolt_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
)

// A new store is one file, with an identity of its own that stays.
func TestOpenMakesTheFile(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	expect.Same(t, "the file's mode", 0o600, expect.Get(os.Stat(path))(t).Mode())
	expect.Same(t, "files in the folder", 1, len(expect.Get(os.ReadDir(filepath.Dir(path)))(t)))
	identity := s.Identity()
	if other := open(t, newPath(t)).Identity(); identity == "" || other == identity {
		t.Errorf("the identity is %q, that of another file %q", identity, other)
	}
	fill(t, s, 20)
	closeStore(t, s)
	expect.Same(t, "reopened, the identity", identity, open(t, path).Identity())
}

func TestOpenErrors(t *testing.T) {
	write := func(content string) func(*testing.T, string) {
		return func(t *testing.T, path string) { expect.OK(t, os.WriteFile(path, []byte(content), 0o600)) }
	}
	spoilt := func(f func(*bbolt.Tx) error) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			s := open(t, path)
			fill(t, s, 10)
			closeStore(t, s)
			editFile(t, path, f)
		}
	}
	about := []byte("about")
	mustExist, none := bolt.Options{MustExist: true}, bolt.Options{}
	for name, test := range map[string]struct {
		reason string
		before func(t *testing.T, path string)
		want   error
		opts   bolt.Options
	}{
		"Missing": {"a file that must exist is never made", func(*testing.T, string) {}, bolt.ErrMissing, mustExist},
		"MissingFolder": {"a folder is never made",
			func(t *testing.T, path string) { expect.OK(t, os.Remove(filepath.Dir(path))) }, fs.ErrNotExist, none},
		"Empty":          {"an empty file may be one that has lost everything", write(""), bolt.ErrDamaged, none},
		"EmptyMustExist": {"an empty file may be one that has lost everything", write(""), bolt.ErrDamaged, mustExist},
		"ShortText":      {"a file of another kind is not overwritten", write("this is no store"), bolt.ErrDamaged, none},
		"LongText": {"a file of another kind is not overwritten",
			write(strings.Repeat("this is no store\n", 10_000)), bolt.ErrDamaged, none},
		"DanglingLink": {"a link to nothing is a file that is missing",
			func(t *testing.T, path string) { expect.OK(t, os.Symlink(path+".elsewhere", path)) }, bolt.ErrMissing, none},
		"NoBuckets": {"a bbolt file of another program is no store",
			func(t *testing.T, path string) { editFile(t, path, func(*bbolt.Tx) error { return nil }) }, bolt.ErrDamaged, none},
		"BucketMissing": {"nor is one without records",
			spoilt(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("records")) }), bolt.ErrDamaged, none},
		"FormatMissing": {"nor is one that does not say what it is",
			spoilt(func(tx *bbolt.Tx) error { return tx.Bucket(about).Delete(about) }), bolt.ErrDamaged, none},
		"IdentityChanged": {"records of one store are not those of another", spoilt(func(tx *bbolt.Tx) error {
			value := bytes.Clone(tx.Bucket(about).Get(about))
			value[len(value)-1] ^= 1
			return tx.Bucket(about).Put(about, value)
		}), bolt.ErrDamaged, none},
		"Newer": {"a newer file is not damaged, but not understood", spoilt(bolt.SetNewer), bolt.ErrNewer, none},
		"InUse": {"a file has one owner", func(t *testing.T, path string) { open(t, path) }, bolt.ErrLocked, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			test.before(t, path)
			was, _ := os.ReadFile(path)
			s, err := bolt.Open(path, test.opts)
			if err == nil {
				closeStore(t, s)
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("%s: got error %v, want %v", test.reason, err, test.want)
			}
			expect.Says(t, "the error", err.Error(), fmt.Sprintf("%q", path))
			for _, other := range []error{bolt.ErrLocked, bolt.ErrDamaged, bolt.ErrMissing, bolt.ErrNewer} {
				if other != test.want && errors.Is(err, other) {
					t.Errorf("error %v is also %v", err, other)
				}
			}
			is, _ := os.ReadFile(path)
			expect.Same(t, test.reason+": the file", string(was), string(is))
		})
	}

	t.Run("Folder", func(t *testing.T) {
		if _, err := bolt.Open(t.TempDir(), bolt.Options{}); err == nil || errors.Is(err, bolt.ErrDamaged) {
			t.Errorf("a folder is neither a store nor a damaged one: %v", err)
		}
	})
}

// editFile changes a file behind the store's back.
func editFile(t *testing.T, path string, f func(*bbolt.Tx) error) {
	t.Helper()
	db := expect.Get(bbolt.Open(path, 0o600, nil))(t)
	expect.OK(t, errors.Join(db.Update(f), db.Close()))
}

func TestOpenWaitsForTheLock(t *testing.T) {
	path := newPath(t)
	first := open(t, path)
	opened := make(chan error)
	go func() {
		second, err := bolt.Open(path, bolt.Options{})
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	closeStore(t, first)
	expect.OK(t, <-opened, "a store that was let go of in time:")
}

// TestFirstOpensTogether: whoever makes the file first, nobody replaces it after a record was committed to it.
func TestFirstOpensTogether(t *testing.T) {
	path := newPath(t)
	var mu sync.Mutex
	identities := map[string]bool{}
	var keys []store.Key
	var opening sync.WaitGroup
	for i := range 6 {
		opening.Go(func() {
			s, err := bolt.Open(path, bolt.Options{})
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
	s := open(t, path, bolt.Options{MustExist: true})
	for _, k := range keys {
		expect.Get(s.Get(t.Context(), k))(t)
	}
}

// The tests start themselves again as another process, which writes into the store at this path.
const pathVariable = "BOLT_TEST_PATH"

func TestMain(m *testing.M) {
	bolt.BeChecker()
	path := os.Getenv(pathVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, writeForEver(path))
	os.Exit(1)
}

// writeForEver commits from several goroutines and names each commit that was answered, until it is killed. Each commit adds a
// record to the writer's own and counts it in the writer's first.
func writeForEver(path string) error {
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	const writers = 16
	var mu sync.Mutex // one line at a time
	errs := make(chan error)
	for w := range writers {
		go func() {
			partition := fmt.Sprint("writer ", w)
			counter := store.Record{Key: store.Key{Partition: partition, Sort: "counter"}}
			if old, err := s.Get(context.Background(), counter.Key); err == nil {
				counter = old
			}
			for {
				next := fixture(partition, fmt.Sprintf("record %06d", counter.Version+1))
				if err := s.Commit(context.Background(), store.Put(counter), store.Put(next)); err != nil {
					errs <- err
					return
				}
				counter.Version++
				mu.Lock()
				fmt.Printf("%s %d\n", partition, counter.Version)
				mu.Unlock()
			}
		}()
	}
	return <-errs
}

// startWriter starts another process that writes for ever, and gives what it says.
func startWriter(t *testing.T, path string) (p *exec.Cmd, out *bufio.Scanner) {
	t.Helper()
	p = exec.Command(expect.Get(os.Executable())(t))
	p.Env, p.Stderr = append(os.Environ(), pathVariable+"="+path), os.Stderr
	out = bufio.NewScanner(expect.Get(p.StdoutPipe())(t))
	expect.OK(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill() // where the test has not ended it
		_ = p.Wait()
	})
	return p, out
}

// TestKilled kills a process in the midst of its commits, several times over one file: the file is that process's alone until
// then, and every commit that was answered is there, and whole.
func TestKilled(t *testing.T) {
	path := newPath(t)
	answered := map[string]int{}
	for round := range 4 {
		writer, out := startWriter(t, path)
		read := func() bool {
			if !out.Scan() {
				return false
			}
			var w, n int
			expect.Get(fmt.Sscanf(out.Text(), "writer %d %d", &w, &n))(t, "the other process says", out.Text(), ":")
			answered[fmt.Sprint("writer ", w)] = n
			return true
		}
		for range 100 + 13*round {
			if !read() {
				t.Fatal("the other process ended by itself")
			}
		}
		if round == 0 {
			expect.Fails(t, "while another process has it", bolt.ErrLocked, expect.Err(bolt.Open(path, bolt.Options{})))
		}
		expect.OK(t, writer.Process.Kill())
		for read() { // what it said before it died
		}
		_ = writer.Wait() // killed, as it should be

		s := open(t, path, bolt.Options{MustExist: true})
		for partition, n := range answered {
			counter := expect.Get(s.Get(t.Context(), store.Key{Partition: partition, Sort: "counter"}))(t)
			made := int(counter.Version)
			if made != n && made != n+1 {
				t.Errorf("%s was answered %d commits and made %d", partition, n, made)
			}
			records := expect.Get(storetest.Gather(func(cursor string) (store.Page, error) {
				return s.List(t.Context(), partition, "record ", cursor, 0)
			}))(t)
			for i, r := range records {
				expect.Same(t, partition, fmt.Sprintf("record %06d", i+1), r.Sort)
			}
			expect.Same(t, fmt.Sprintf("%s: records", partition), made, len(records))
		}
		closeStore(t, s)
	}
	expect.Same(t, "writers that were answered", 16, len(answered))
}
