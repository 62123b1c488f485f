package bolt_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/test/expect"
)

// BenchmarkCommit is a commit of an instance and its operation, beside 10 000 others.
func BenchmarkCommit(b *testing.B) {
	s := expect.Get(bolt.Open(filepath.Join(b.TempDir(), "records.db")))(b)
	defer s.Close()
	put := func(i int) error {
		instance := fixture(fmt.Sprintf("I#default#8f14a7c2-5f4e-4b6a-9c55-%012d", i*7919%1_000_000), "INSTANCE")
		instance.Body = make([]byte, 500)
		operation := instance
		operation.Sort, operation.Body = "OPERATION", make([]byte, 300)
		return s.Commit(b.Context(), store.Put(instance), store.Put(operation))
	}
	for i := range 10_000 / 50 {
		var changes []store.Change
		for j := range 50 {
			r := fixture(fmt.Sprintf("I#default#8f14a7c2-5f4e-4b6a-9c55-%012d", (i*50+j)*7919%1_000_000), "OTHER")
			r.Body = make([]byte, 500)
			changes = append(changes, store.Put(r))
		}
		expect.OK(b, s.Commit(b.Context(), changes...))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		expect.OK(b, put(i))
	}
}
