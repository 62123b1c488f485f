package ledger_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
)

func begun(t *testing.T, l *ledger.Ledger) lifecycle.Record {
	t.Helper()
	i := creating(t, instance, epoch, lifecycle.Record{Provider: "demo", Attributes: lifecycle.Attributes{ServiceID: "s"}})
	expect.OK(t, l.Commit(t.Context(), ledger.Put(i)))
	return i
}

// The memory is used for the very record that the store gave, and for no other.
func TestARecordThatChangedIsDecodedAgain(t *testing.T) {
	s := newStore(t)
	mine, other := over(s), ledger.New(s, func() string { return "other" })
	begun(t, mine)
	reads := func(state lifecycle.State, version int64) {
		t.Helper()
		if got := read(t, mine, instance); got.State != state || got.Version != version {
			t.Errorf("read %s at version %d, want %s at %d", got.State, got.Version, state, version)
		}
	}
	expect.Same(t, "read twice", read(t, mine, instance), read(t, mine, instance))
	// Another process changes it.
	i := expect.Get(read(t, other, instance).Succeed(epoch.Add(time.Minute), nil))(t)
	expect.OK(t, other.Commit(t.Context(), ledger.Put(i)))
	reads(lifecycle.Ready, 2)
	// It is dropped, and made again at a version that was remembered.
	key := store.Key{Partition: "I#p#i", Sort: "INSTANCE"}
	expect.OK(t, s.Commit(t.Context(), store.Delete(key, 2)))
	reads(lifecycle.Absent, 0)
	for range 2 {
		begun(t, other)
		reads(lifecycle.Creating, 1)
		expect.OK(t, s.Commit(t.Context(), store.Delete(key, 1)))
	}
}

// The memory keeps of a commit what any other process decodes.
func TestWhatIsWrittenIsReadAlike(t *testing.T) {
	s := newStore(t)
	mine := over(s)
	now := time.Now() // as a clock gives it, with what JSON does not keep
	same := func(made lifecycle.Record) {
		t.Helper()
		expect.OK(t, mine.Commit(t.Context(), ledger.Put(made)))
		got := read(t, mine, made.Key)
		expect.Same(t, "what is remembered", read(t, over(s), made.Key), got)
		if !got.Operation.Started.Equal(now) {
			t.Errorf("it started at %v, not at %v", got.Operation.Started, now)
		}
	}
	ordered := lifecycle.Record{Provider: "demo", Attributes: lifecycle.Attributes{ServiceID: "s",
		Context: lifecycle.Stable([]byte(`{ "b": [ 1 ], "a": "<&>" }`))}}
	i := creating(t, instance, now, ordered)
	same(i)
	i.Version++
	same(i.Leased("holder", now, now.Add(time.Minute), nil))
	same(creating(t, binding, now, ordered))
}

// No method of the lifecycle changes a record that the memory keeps.
func TestNothingChangesWhatIsRemembered(t *testing.T) {
	l := over(newStore(t))
	begun(t, l)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				i, err := l.Record(t.Context(), instance, epoch)
				if err != nil {
					t.Error(err)
					return
				}
				// A method on the course, and each of the instance's.
				_ = i.Looked(epoch, lifecycle.Look{Percent: 50, Description: "x", After: time.Minute})
				_ = i.Leased("holder", epoch, epoch.Add(time.Minute), nil)
				_ = i.Faulted(epoch, lifecycle.Fault{After: time.Second})
				_ = i.Redriven(epoch)
				_, _ = i.Succeed(epoch, nil)
				_, _ = i.Fail(epoch, lifecycle.Failure{Message: "x"})
				_, _, _ = i.BeginDelete(lifecycle.Start{ID: "operation-000000000002", Now: epoch, Received: epoch})
			}
		})
	}
	all.Wait()
	want := begun(t, over(newStore(t)))
	want.Version = 1
	expect.Same(t, "what is remembered", want, read(t, l, instance))
}

// endless is a store that has every instance, each with this body, and keeps none of them in memory.
type endless struct {
	store.Store
	body string
}

func (e endless) Get(_ context.Context, k store.Key) (store.Record, error) {
	return store.Record{Key: k, Version: 1, Writer: "w", Schema: ledger.Schema, Body: []byte(e.body)}, nil
}

// The memory is bounded in bytes, not in records.
func TestWhatIsRememberedIsBoundInBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	large := fmt.Sprintf(`{"platform":"p","instance":"i","state":"ready","attributes":{"context":{"a":"%s"}}}`,
		strings.Repeat("x", 240_000)) // as large a context as a record can hold
	l := over(endless{body: large})
	before, most := heap(), int64(0)
	for n := range 400 { // 96 MB
		expect.Get(l.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: fmt.Sprint(n)}, epoch))(t)
		if n%20 == 0 {
			most = max(most, heap()-before)
		}
	}
	few := over(endless{body: `{"platform":"p","instance":"i","state":"ready","operation":{"id":"o"},"leases":[{}]}`})
	between := heap()
	for n := range 20_000 {
		expect.Get(few.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: fmt.Sprint(n)}, epoch))(t)
	}
	t.Logf("after 400 records of 240 KB: %d KB; after 20000 small ones: %d KB", most/1000, (heap()-between)/1000)
	if bound := int64(20_000_000); most > bound || heap()-between > bound {
		t.Errorf("%d and %d bytes are kept, at most %d are allowed", most, heap()-between, bound)
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(few)
}
