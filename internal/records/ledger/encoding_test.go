package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
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

// A record of a kind that only a newer program knows hides nothing else, and
// is dropped when it expires.
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

// A record that a version before the first release wrote is refused with one sentence.
func TestOldRecordsAreRefused(t *testing.T) {
	s := newStore(t)
	key := store.Key{Partition: "I#p#i", Sort: "INSTANCE"}
	expect.OK(t, s.Commit(t.Context(), store.Put(store.Record{Key: key, Body: []byte(`{"state":"ready"}`)})))
	_, err := over(s).Record(t.Context(), instance, epoch)
	says := `record "I#p#i" "INSTANCE" is of a version before the first release, which this program does not read: give it a new table`
	if !errors.Is(err, ledger.ErrUnreadable) || !strings.HasPrefix(err.Error(), says) {
		t.Errorf("%v", err)
	}
}

// A record that could not be read again is refused, whatever is nested in it.
func TestWhatIsNestedTooDeeplyIsRefused(t *testing.T) {
	for depth, refused := range map[int]bool{900: false, 5000: false, 9_990: false, 9_999: true} {
		l := over(newStore(t))
		r := lifecycle.Record{Key: instance, Attributes: lifecycle.Attributes{
			Context: json.RawMessage(`{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`)}}
		err := l.Commit(context.Background(), ledger.Put(r))
		if refused != (err != nil) {
			t.Errorf("depth %d: %v, refused is to be %t", depth, err, refused)
		}
	}
}
