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
	r, err := s.Get(context.Background(), key)
	expect.OK(t, err)
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
	start := lifecycle.Start{ID: "operation-000000000001", Now: epoch, Received: epoch, Timeout: time.Hour}
	i, _, err := lifecycle.Record{Key: instance}.BeginCreate(start,
		lifecycle.Record{Provider: "demo", Attributes: lifecycle.Attributes{Context: json.RawMessage(`{"a":"<&>"}`)}})
	expect.OK(t, err)
	b, _, err := lifecycle.Record{Key: binding}.BeginCreate(start, lifecycle.Record{Provider: "demo"})
	expect.OK(t, err)
	expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(b)))
	keys := map[string]store.Key{"Instance": {Partition: "I#p#i", Sort: "INSTANCE"}, "Binding": {Partition: "I#p#i", Sort: "BINDING#b"}}
	newer := func(body []byte) []byte {
		body = bytes.Replace(body, []byte(`"operation":{`), []byte(`"operation":{"colour":["<new>"],`), 1)
		return bytes.Replace(body, []byte(`{`), []byte(`{"shape":{"sides":12345678901234567890},`), 1)
	}
	for _, key := range keys {
		raw(t, s, key, newer)
	}
	if i, err = l.Record(ctx, instance, epoch); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Record(ctx, binding, epoch); err != nil {
		t.Fatal(err)
	}
	// Through changes of its own, and through what it remembers of it.
	for n := range 3 {
		i, b = i.Redriven(epoch.Add(time.Minute)), b.Redriven(epoch.Add(time.Minute))
		expect.OK(t, l.Commit(ctx, ledger.Put(i), ledger.Put(b)))
		for name, key := range keys {
			body := string(raw(t, s, key, nil))
			if !strings.Contains(body, `"shape":{"sides":12345678901234567890}`) || !strings.Contains(body, `"colour":["<new>"]`) ||
				!json.Valid([]byte(body)) {
				t.Errorf("%s, change %d: something was lost or changed: %s", name, n, body)
			}
		}
		if i, err = l.Record(ctx, instance, epoch); err != nil || i.Operation.Attempt != n+2 {
			t.Fatalf("%+v %v", i.Operation, err)
		}
		if b, err = l.Record(ctx, binding, epoch); err != nil {
			t.Fatal(err)
		}
	}
	expect.Same(t, "a platform's object", `{"a":"<&>"}`, string(i.Attributes.Context))
	// A replaced operation takes its unknown members along.
	next, _, err := i.BeginDelete(lifecycle.Start{ID: "operation-000000000002", Now: epoch, Received: epoch, Timeout: time.Hour})
	expect.OK(t, err)
	expect.OK(t, l.Commit(ctx, ledger.Put(next)))
	if body := string(raw(t, s, keys["Instance"], nil)); strings.Contains(body, "colour") || !strings.Contains(body, "shape") {
		t.Errorf("%s", body)
	}
}

// A record of a kind that only a newer program knows hides nothing else, and
// is dropped when it expires.
func TestDueOfAnUnknownKind(t *testing.T) {
	s := newStore(t)
	l := over(s)
	ctx := context.Background()
	expires := epoch.Add(time.Hour)
	for sort, r := range map[string]store.Record{
		"NEW#1": {Due: epoch, Expires: expires},
		"NEW#2": {Due: epoch},
	} {
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
