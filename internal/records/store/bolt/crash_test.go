package bolt_test

import (
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

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
			if _, err := fmt.Sscanf(writer.out.Text(), "writer %d %d", &w, &n); err != nil {
				t.Fatalf("the other process says %q: %v", writer.out.Text(), err)
			}
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

		s := open(t, path, bolt.MustExist())
		for partition, n := range answered {
			counter := expect.Get(s.Get(t.Context(), store.Key{Partition: partition, Sort: "counter"}))(t)
			made := int(counter.Version)
			if made != n && made != n+1 {
				t.Errorf("%s was answered %d commits and made %d", partition, n, made)
			}
			records := expect.Get(gather(func(cursor string) (store.Page, error) {
				return s.List(t.Context(), partition, "record ", cursor, 0)
			}))(t)
			for i, r := range records {
				expect.Same(t, partition, fmt.Sprintf("record %06d", i+1), r.Sort)
			}
			expect.Same(t, fmt.Sprintf("%s: records", partition), made, len(records))
		}
		closeStore(t, s)
	}
	if len(answered) != 16 {
		t.Errorf("only %v were answered, so the test proves little", answered)
	}
}
