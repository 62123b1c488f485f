package bolt_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
)

// The tests start themselves again as another process, which plays a role with the store at a path.
const (
	roleVariable = "BOLT_TEST_ROLE"
	pathVariable = "BOLT_TEST_PATH"
)

var roles = map[string]func(path string) error{"holder": hold, "writer": writeForEver}

func TestMain(m *testing.M) {
	bolt.BeChecker()
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := role(os.Getenv(pathVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// hold opens the store, says so, and keeps it until standard input ends.
func hold(path string) error {
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	fmt.Println("open")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Close()
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

// A process is another one, which plays a role.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, role, path string) *process {
	t.Helper()
	program := expect.Get(os.Executable())(t)
	p := &process{Cmd: exec.Command(program)}
	p.Env = append(os.Environ(), roleVariable+"="+role, pathVariable+"="+path)
	p.Stderr = os.Stderr
	p.in = expect.Get(p.StdinPipe())(t)
	out := expect.Get(p.StdoutPipe())(t)
	p.out = bufio.NewScanner(out)
	expect.OK(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill() // where the test has not ended it
		_ = p.Wait()
	})
	return p
}

// TestKilled kills a process in the midst of its commits, several times over
// one file: every commit that was answered is there, and whole.
func TestKilled(t *testing.T) {
	path := newPath(t)
	answered := map[string]int{}
	for round := range 4 {
		writer := start(t, "writer", path)
		read := func() bool {
			if !writer.out.Scan() {
				return false
			}
			var w, n int
			expect.Get(fmt.Sscanf(writer.out.Text(), "writer %d %d", &w, &n))(t, "the other process says", writer.out.Text(), ":")
			answered[fmt.Sprint("writer ", w)] = n
			return true
		}
		for range 100 + 13*round {
			if !read() {
				t.Fatal("the other process ended by itself")
			}
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
