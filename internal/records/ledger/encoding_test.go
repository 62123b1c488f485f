package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
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

// raw reads and replaces bodies, as another program does.
func raw(t *testing.T, s store.Store, key store.Key, change func(body []byte) []byte) []byte {
	t.Helper()
	r := expect.Get(s.Get(context.Background(), key))(t)
	if change != nil {
		r.Body = change(r.Body)
		expect.OK(t, s.Commit(context.Background(), store.Put(r)))
	}
	return r.Body
}

// While the functions of a broker are being replaced, old ones change what new
// ones have written: what they do not know stays as it was.
func TestWhatANewerProgramWroteIsKept(t *testing.T) {
	s := newStore(t)
	l := over(s)
	ctx := context.Background()
	i := creating(t, instance, epoch,
		lifecycle.Record{Provider: "demo", Attributes: lifecycle.Attributes{Context: json.RawMessage(`{"a":"<&>"}`)}})
	b := creating(t, binding, epoch, lifecycle.Record{Provider: "demo"})
	expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(b)))
	keys := map[string]store.Key{"Instance": {Partition: "I#p#i", Sort: "INSTANCE"}, "Binding": {Partition: "I#p#i", Sort: "BINDING#b"}}
	newer := func(body []byte) []byte {
		body = bytes.Replace(body, []byte(`"operation":{`), []byte(`"operation":{"colour":["<new>"],`), 1)
		return bytes.Replace(body, []byte(`{`), []byte(`{"shape":{"sides":12345678901234567890},`), 1)
	}
	for _, key := range keys {
		raw(t, s, key, newer)
	}
	i, b = read(t, l, instance), read(t, l, binding)
	// Through changes of its own, and through what it remembers of it.
	for n := range 3 {
		i, b = i.Redriven(epoch.Add(time.Minute)), b.Redriven(epoch.Add(time.Minute))
		expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(b)))
		for name, key := range keys {
			body := string(raw(t, s, key, nil))
			expect.Says(t, name, body, `"shape":{"sides":12345678901234567890}`, `"colour":["<new>"]`)
			expect.Same(t, name+" is JSON", true, json.Valid([]byte(body)))
		}
		i, b = read(t, l, instance), read(t, l, binding)
		expect.Same(t, "attempts", n+2, i.Operation.Attempt)
	}
	expect.Same(t, "a platform's object", `{"a":"<&>"}`, string(i.Attributes.Context))
	// A replaced operation takes its unknown members along.
	next, _, err := i.BeginDelete(lifecycle.Start{ID: "operation-000000000002", Now: epoch, Received: epoch, Timeout: time.Hour})
	expect.OK(t, err)
	expect.OK(t, l.Commit(ctx, ledger.Put(next)))
	body := string(raw(t, s, keys["Instance"], nil))
	expect.Says(t, "the body", body, "shape")
	expect.Never(t, "the body", body, "colour")
}

// A record of a kind that only a newer program knows hides nothing else, and is dropped when it expires.
func TestDueOfAnUnknownKind(t *testing.T) {
	s := newStore(t)
	l := over(s)
	ctx := context.Background()
	expires := epoch.Add(time.Hour)
	for sort, r := range map[string]store.Record{"NEW#1": {Due: epoch, Expires: expires}, "NEW#2": {Due: epoch}} {
		r.Key, r.Schema, r.Body = store.Key{Partition: "NEW", Sort: sort}, ledger.Schema+1, []byte("?")
		expect.OK(t, s.Commit(ctx, store.Put(r)))
	}
	found, _, err := l.Due(ctx, epoch.Add(2*time.Hour), "")
	if err != nil || len(found) != 2 {
		t.Fatalf("%d found, %v", len(found), err)
	}
	for _, d := range found {
		if d.Record != nil || d.Inventory != nil || !d.Expires.IsZero() && !d.Expires.Equal(expires) {
			t.Errorf("%+v", d)
		}
	}
}

// A record that could not be read again is refused, whatever is nested in it.
func TestWhatIsNestedTooDeeplyIsRefused(t *testing.T) {
	for depth, refused := range map[int]bool{900: false, 5000: false, 9_990: false, 9_999: true} {
		l := over(newStore(t))
		r := lifecycle.Record{Key: instance, Attributes: lifecycle.Attributes{
			Context: json.RawMessage(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)}}
		err := l.Commit(context.Background(), ledger.Put(r))
		expect.Same(t, fmt.Sprintf("depth %d is refused, with error %v", depth, err), refused, err != nil)
	}
}

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
