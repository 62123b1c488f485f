package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
)

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
	i.Key.Binding, i.Version, b.Version, past.Version, past.Ended.Version = "", 0, 0, 0, 0
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
	if err := l.Commit(ctx, ledger.Put(i), ledger.Put(b), ledger.PutPast(&past),
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
