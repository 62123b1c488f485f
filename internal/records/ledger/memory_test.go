package ledger_test

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/expect"
)

func begun(t *testing.T, l *ledger.Ledger) lifecycle.Record {
	t.Helper()
	i, _, err := lifecycle.Record{Key: instance}.BeginCreate(
		lifecycle.Start{ID: "operation-000000000001", Now: epoch, Received: epoch, Timeout: time.Hour},
		lifecycle.Record{Provider: "demo", Attributes: lifecycle.Attributes{ServiceID: "s"}})
	expect.OK(t, err)
	expect.OK(t, l.Commit(t.Context(), ledger.Put(i)))
	return i
}

// The memory is used for the very record that the store gave, and for no other.
func TestARecordThatChangedIsDecodedAgain(t *testing.T) {
	s := newStore(t)
	mine, other := over(s), ledger.New(s, func() string { return "other" })
	begun(t, mine)
	read := func() lifecycle.Record {
		t.Helper()
		i, err := mine.Record(t.Context(), instance, epoch)
		expect.OK(t, err)
		return i
	}
	first := read()
	expect.Same(t, "read twice", first, read())
	// Another process changes it.
	i, err := other.Record(t.Context(), instance, epoch)
	expect.OK(t, err)
	i, err = i.Succeed(epoch.Add(time.Minute), nil)
	expect.OK(t, err)
	expect.OK(t, other.Commit(t.Context(), ledger.Put(i)))
	if got := read(); got.State != lifecycle.Ready || got.Version != 2 {
		t.Errorf("read %s at version %d", got.State, got.Version)
	}
	// It is dropped, and made again at a version that was remembered.
	key := store.Key{Partition: "I#p#i", Sort: "INSTANCE"}
	expect.OK(t, s.Commit(t.Context(), store.Delete(key, 2)))
	if got := read(); got.State != lifecycle.Absent || got.Version != 0 {
		t.Errorf("read %s at version %d of what is gone", got.State, got.Version)
	}
	for range 2 {
		begun(t, other)
		if got := read(); got.State != lifecycle.Creating || got.Version != 1 {
			t.Errorf("read %s at version %d of what is new", got.State, got.Version)
		}
		expect.OK(t, s.Commit(t.Context(), store.Delete(key, 1)))
	}
}

// The memory keeps of a commit what any other process decodes.
func TestWhatIsWrittenIsReadAlike(t *testing.T) {
	s := newStore(t)
	mine := over(s)
	now := time.Now() // as a clock gives it, with what JSON does not keep
	start := lifecycle.Start{ID: "operation-000000000001", Now: now, Received: now, Timeout: time.Hour,
		Asker: lifecycle.Asker{Request: "r", IdentityPlatform: "cf", Identity: lifecycle.Sealed("sealed")}}
	same := func(made lifecycle.Record) {
		t.Helper()
		expect.OK(t, mine.Commit(t.Context(), ledger.Put(made)))
		got, err := mine.Record(t.Context(), made.Key, now)
		want, otherErr := over(s).Record(t.Context(), made.Key, now)
		if diff := cmp.Diff(want, got); err != nil || otherErr != nil || diff != "" || !got.Operation.Started.Equal(now) {
			t.Errorf("%v, %v: -decoded +remembered:\n%s", err, otherErr, diff)
		}
	}
	attributes := lifecycle.Attributes{ServiceID: "s", Context: lifecycle.Stable([]byte(`{ "b": [ 1 ], "a": "<&>" }`))}
	i, _, err := lifecycle.Record{Key: instance}.BeginCreate(start, lifecycle.Record{Provider: "demo", Attributes: attributes})
	expect.OK(t, err)
	same(i)
	i.Version++
	same(i.Leased("holder", now, now.Add(time.Minute), nil))
	b, _, err := lifecycle.Record{Key: binding}.BeginCreate(start, lifecycle.Record{Provider: "demo", Attributes: attributes})
	expect.OK(t, err)
	same(b)
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
	fresh, err := over(newStore(t)), error(nil)
	want := begun(t, fresh)
	want.Version = 1
	got, err := l.Record(t.Context(), instance, epoch)
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%v: -want +got:\n%s", err, cmp.Diff(want, got))
	}
}

// large is a store that has every instance, each with as large a context as a
// record can hold, and keeps none of them in memory.
type large struct{ store.Store }

func (large) Get(_ context.Context, k store.Key) (store.Record, error) {
	body := fmt.Appendf(nil, `{"platform":"p","instance":"i","state":"ready","attributes":{"context":{"a":"%s"}}}`,
		strings.Repeat("x", 240_000))
	return store.Record{Key: k, Version: 1, Writer: "w", Schema: ledger.Schema, Body: body}, nil
}

// The memory is bounded in bytes, not in records.
func TestWhatIsRememberedIsBoundInBytes(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	l := over(large{})
	before, most := heap(), int64(0)
	for n := range 400 { // 96 MB
		expect.Get(l.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: fmt.Sprint(n)}, epoch))(t)
		if n%20 == 0 {
			most = max(most, heap()-before)
		}
	}
	few := over(small{})
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

// small is a store that has every instance, each as small as can be.
type small struct{ store.Store }

func (small) Get(_ context.Context, k store.Key) (store.Record, error) {
	body := []byte(`{"platform":"p","instance":"i","state":"ready","operation":{"id":"o"},"leases":[{}]}`)
	return store.Record{Key: k, Version: 1, Writer: "w", Schema: ledger.Schema, Body: body}, nil
}
