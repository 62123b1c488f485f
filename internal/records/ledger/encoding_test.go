package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
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
		i.Attributes.PlanID, b.Attributes.PlanID = fmt.Sprint("plan-", n), fmt.Sprint("plan-", n)
		expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(b)))
		for _, key := range []lifecycle.Key{instance, binding} { // read by another process, which remembers nothing
			expect.Same(t, "the plan", fmt.Sprint("plan-", n), read(t, over(s), key).Attributes.PlanID)
		}
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
	next, err := i.BeginDelete(lifecycle.Start{ID: "operation-000000000002", Now: epoch, Received: epoch, Timeout: time.Hour})
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
				_, _ = i.BeginDelete(lifecycle.Start{ID: "operation-000000000002", Now: epoch, Received: epoch})
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
	small := `{"platform":"p","instance":"i","state":"ready","operation":{"id":"o"},"leases":[{}]}`
	for body, records := range map[string]int{large: 401, small: 20_001} { // 96 MB of the large ones
		l, before := over(endless{body: body}), heap()
		for n := range records {
			expect.Get(l.Record(t.Context(), lifecycle.Key{Platform: "p", Instance: fmt.Sprint(n)}, epoch))(t)
			if n%(records/20) > 0 {
				continue
			}
			if kept := heap() - before; kept > 20_000_000 {
				t.Errorf("of %d records of %d bytes, %d bytes are kept", n, len(body), kept)
			}
		}
		runtime.KeepAlive(l)
	}
}

// Characters that take most room in JSON: any at all, and printable ones.
const (
	anything  = "\x01" // six bytes for one
	printable = `"`    // two for one
)

// largest is the longest that each text of a record can be. Whoever adds a text
// says here what bounds it: without an entry the test fails.
var largest = func() map[string]string {
	all := map[string]string{}
	for _, bound := range []struct{ text, names string }{
		{strings.Repeat("p", 64), "Key.Platform"}, // the broker's own, or a short name
		{strings.Repeat("o", lifecycle.OperationIDLength), "Key.Life Operation.ID Operation.TakenBy Entry.Incarnation Entry.ID " +
			"FailedOperation.ID Lease.Operation Record.Incarnation BindingOnly.InstanceIncarnation Made.Broker " +
			"Source.Incarnation Source.Operation Origin.Incarnation Undeletion.Incarnation"},
		{strings.Repeat("h", 2*lifecycle.OperationIDLength+1), "Lease.Holder"}, // of its process, and its own
		{strings.Repeat(printable, limits.Identifier), "Key.Instance Key.Binding Operation.Unbound Source.Instance Kept.Name " +
			"Origin.Instance Undeletion.Instance"},
		{strings.Repeat(anything, limits.Identifier), "Entry.AppGUID Attributes.OrganizationGUID Attributes.SpaceGUID " +
			"BindingOnly.AppGUID BindingOnly.Route BindingOnly.Predecessor"},
		{strings.Repeat(printable, limits.CatalogText), "Entry.PlanID Attributes.ServiceID Attributes.PlanID Record.Provider " +
			"Target.Name Target.Identity"},
		{strings.Repeat("1", limits.CatalogText), "Attributes.MaintenanceVersion"},
		{strings.Repeat(anything, limits.Description), "Operation.Description Entry.Description FailedOperation.Description"},
		{strings.Repeat(anything, limits.Before), "Operation.Before"},
		{strings.Repeat(anything, limits.Trouble), "Operation.Trouble"},
		{strings.Repeat(printable, limits.IdentityPlatform), "Asker.IdentityPlatform"},
		{strings.Repeat(printable, limits.RequestIdentity), "Asker.Request"},
		{strings.Repeat(printable, limits.DashboardURL), "Attributes.DashboardURL"},
		{strings.Repeat("f", limits.State+10), "Made.Found"},
		{string(lifecycle.CreateFailed), "Record.State"},
		{string(lifecycle.Deprovision), "Operation.Kind Entry.Kind"},
		{string(lifecycle.Provision), "FailedOperation.Kind"},
		{string(lifecycle.InProgress), "Operation.Phase"},
		{string(lifecycle.Succeeded), "Entry.Phase"},
		{"delete from quarantine", "Entry.Act"},
	} {
		for _, name := range strings.Fields(bound.names) {
			all[name] = bound.text
		}
	}
	all["Attributes.Snapshot (JSON)"], all["Attributes.Context (JSON)"] = object(limits.Snapshot), object(limits.StableContext)
	for name, size := range map[string]int{"Attributes.Parameters": limits.Parameters, "BindingOnly.Secret": 32,
		"BindingOnly.Grant": limits.Grant, "Made.State": limits.State, "Attributes.SealedContext": limits.Context,
		"Attributes.Names": limits.Names + 1 + vault.Overhead - limits.SealedOverhead,
		"Asker.Identity":   limits.Identity * 3 / 4} { // of base64
		all[name+" (sealed)"] = strings.Repeat("s", size+limits.SealedOverhead)
	}
	return all
}()

// object is a JSON object of so many bytes.
func object(size int) string { return `{"x":"` + strings.Repeat("x", size-len(`{"x":""}`)) + `"}` }

// manyMembers is an object with the names that take most room in a record.
func manyMembers() json.RawMessage {
	members := map[string]int{}
	for n := range limits.ParameterNames {
		members[string(rune('a'+n/26))+string(rune('a'+n%26))] = n
	}
	out, _ := json.Marshal(members)
	return out
}

// enlarged is a record each of whose members has the largest value that it can have.
func enlarged[T any](t *testing.T) (record T) {
	t.Helper()
	leaves("", reflect.ValueOf(&record).Elem(), func(name string, v reflect.Value) {
		bounded := func(suffix string) string {
			text, ok := largest[name+suffix]
			if !ok {
				t.Fatalf("%s%s: say in this test what bounds it, and enforce that", name, suffix)
			}
			return text
		}
		switch v.Interface().(type) {
		case time.Time:
			v.Set(reflect.ValueOf(time.Date(2999, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", -12*3600-1800))))
		case json.RawMessage:
			v.SetBytes([]byte(bounded(" (JSON)")))
		case lifecycle.Sealed:
			v.SetBytes([]byte(bounded(" (sealed)")))
		case []byte:
			v.SetBytes([]byte(bounded("")))
		case []string:
			v.Set(reflect.ValueOf(lifecycle.ParameterNames(manyMembers())))
		case []lifecycle.Lease:
			v.Set(reflect.MakeSlice(v.Type(), limits.Leases, limits.Leases))
		case bool:
			v.SetBool(true)
		default:
			switch v.Kind() {
			case reflect.String:
				v.SetString(bounded(""))
			case reflect.Int, reflect.Int64:
				v.SetInt(math.MinInt32)
			default:
				t.Fatalf("%s: say in this test what is the largest, or how many there can be", name)
			}
		}
	})
	return record
}

// capturing remembers what was written last.
type capturing struct {
	store.Store
	written []store.Change
}

func (c *capturing) Commit(ctx context.Context, changes ...store.Change) error {
	c.written = changes
	return c.Store.Commit(ctx, changes...)
}

// item is the size of a record as DynamoDB counts it: the names and the values
// of its attributes. Those of its numbers are less than is allowed for here.
func item(r store.Record) int {
	const namesAndNumbers = 300
	return namesAndNumbers + len(r.Partition) + len(r.Sort) + len(r.Writer) + len(r.Body)
}

// NFR-10: whatever the limits allow at once, a store takes it: with an update
// under way, all its leases, and what it replaces in the record.
func TestLargestRecordsFit(t *testing.T) {
	const dynamoItem = 400 << 10
	i, b, past := enlarged[lifecycle.Record](t), enlarged[lifecycle.Record](t), enlarged[lifecycle.PastOperation](t)
	entry := enlarged[lifecycle.Entry](t)
	i.Key.Binding, i.Version, b.Version, past.Version, entry.Version = "", 0, 0, 0, 0
	i.BindingOnly, b.InstanceOnly = lifecycle.BindingOnly{}, lifecycle.InstanceOnly{}
	a := &b.Attributes // what only an instance's are
	a.OrganizationGUID, a.SpaceGUID, a.MaintenanceVersion, a.DashboardURL, a.Snapshot = "", "", "", "", nil
	b.Operation.Target, past.Operation.Target = nil, nil // an update's, of what is not past
	b.Operation.Source, past.Operation.Source = nil, nil // a provision's, likewise
	i.Failed = nil                                       // beside a deletion, which has no target
	i.Undeletes, i.Kept, b.Kept = nil, nil, nil          // beside a provision, and of a former life: neither has a target
	i.Made.Found, b.Made.Found = nil, nil                // stands in the place of the state, which is larger when sealed
	ctx, s := context.Background(), &capturing{Store: newStore(t)}
	l := over(s)
	if err := l.Commit(ctx, ledger.Put(i), ledger.Put(b), ledger.Put(past), ledger.Put(entry),
		ledger.Put(lifecycle.Pointer{Key: b.Key})); err != nil {
		t.Fatalf("what the limits allow is refused: %v", err)
	}
	for _, c := range s.written {
		size := item(c.Record)
		t.Logf("%.20q of %.10q: body of %d bytes, item of %d", c.Record.Sort, c.Record.Partition, len(c.Record.Body), size)
		if size > dynamoItem {
			t.Errorf("item has %d bytes, DynamoDB takes %d", size, dynamoItem)
		}
	}
	if envelope := item(store.Record{Key: store.Key{Partition: strings.Repeat("p", 2048), Sort: strings.Repeat("s", 1024)},
		Writer: largest["Operation.ID"]}); limits.Record+envelope > dynamoItem {
		t.Errorf("a body of %d bytes makes an item of %d, DynamoDB takes %d", limits.Record, limits.Record+envelope, dynamoItem)
	}
	i.Version, b.Version = 1, 1
	want, got := []any{i, b}, []any{read(t, l, i.Key), read(t, l, b.Key)}
	if !bytes.Equal(expect.Get(json.Marshal(want))(t), expect.Get(json.Marshal(got))(t)) {
		t.Error("read otherwise than written")
	}
}
