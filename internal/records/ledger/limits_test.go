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
var largest = map[string]string{
	"Key.Platform":                      strings.Repeat("p", 64), // the broker's own, or a short name
	"Key.Instance":                      strings.Repeat(printable, limits.Identifier),
	"Key.Binding":                       strings.Repeat(printable, limits.Identifier),
	"Key.Life":                          strings.Repeat("o", lifecycle.OperationIDLength),
	"Record.State":                      string(lifecycle.CreateFailed),
	"Operation.ID":                      strings.Repeat("o", lifecycle.OperationIDLength),
	"Operation.Kind":                    string(lifecycle.Deprovision),
	"Operation.Phase":                   string(lifecycle.InProgress),
	"Operation.Description":             strings.Repeat(anything, limits.Description),
	"Operation.Before":                  strings.Repeat(anything, limits.Before),
	"Operation.Trouble":                 strings.Repeat(anything, limits.Trouble),
	"Operation.Unbound":                 strings.Repeat(printable, limits.Identifier),
	"Operation.TakenBy":                 strings.Repeat("o", lifecycle.OperationIDLength),
	"Entry.Incarnation":                 strings.Repeat("o", lifecycle.OperationIDLength),
	"Entry.ID":                          strings.Repeat("o", lifecycle.OperationIDLength),
	"Entry.Kind":                        string(lifecycle.Deprovision),
	"Entry.Act":                         "delete from quarantine",
	"Entry.Phase":                       string(lifecycle.Succeeded),
	"Entry.Description":                 strings.Repeat(anything, limits.Description),
	"Entry.PlanID":                      strings.Repeat(printable, limits.CatalogText),
	"Entry.AppGUID":                     strings.Repeat(anything, limits.Identifier),
	"FailedOperation.ID":                strings.Repeat("o", lifecycle.OperationIDLength),
	"FailedOperation.Kind":              string(lifecycle.Provision),
	"FailedOperation.Description":       strings.Repeat(anything, limits.Description),
	"Asker.IdentityPlatform":            strings.Repeat(printable, limits.IdentityPlatform),
	"Asker.Request":                     strings.Repeat(printable, limits.RequestIdentity),
	"Lease.Holder":                      strings.Repeat("h", 2*lifecycle.OperationIDLength+1), // of its process, and its own
	"Lease.Operation":                   strings.Repeat("o", lifecycle.OperationIDLength),
	"Attributes.ServiceID":              strings.Repeat(printable, limits.CatalogText),
	"Attributes.PlanID":                 strings.Repeat(printable, limits.CatalogText),
	"Attributes.OrganizationGUID":       strings.Repeat(anything, limits.Identifier),
	"Attributes.SpaceGUID":              strings.Repeat(anything, limits.Identifier),
	"Attributes.MaintenanceVersion":     strings.Repeat("1", limits.CatalogText),
	"Attributes.DashboardURL":           strings.Repeat(printable, limits.DashboardURL),
	"Record.Incarnation":                strings.Repeat("o", lifecycle.OperationIDLength),
	"Record.Provider":                   strings.Repeat(printable, limits.CatalogText),
	"BindingOnly.InstanceIncarnation":   strings.Repeat("o", lifecycle.OperationIDLength),
	"BindingOnly.AppGUID":               strings.Repeat(anything, limits.Identifier),
	"BindingOnly.Route":                 strings.Repeat(anything, limits.Identifier),
	"BindingOnly.Predecessor":           strings.Repeat(anything, limits.Identifier),
	"Attributes.Parameters (sealed)":    strings.Repeat("s", limits.Parameters+limits.SealedOverhead),
	"BindingOnly.Secret (sealed)":       strings.Repeat("s", 32+limits.SealedOverhead),
	"BindingOnly.Grant (sealed)":        strings.Repeat("s", limits.Grant+limits.SealedOverhead),
	"Made.Broker":                       strings.Repeat("b", lifecycle.OperationIDLength),
	"Made.State (sealed)":               strings.Repeat("s", limits.State+limits.SealedOverhead),
	"Made.Found":                        strings.Repeat("f", limits.State+10),
	"Source.Instance":                   strings.Repeat(printable, limits.Identifier),
	"Source.Incarnation":                strings.Repeat("o", lifecycle.OperationIDLength),
	"Source.Operation":                  strings.Repeat("o", lifecycle.OperationIDLength),
	"Kept.Name":                         strings.Repeat(printable, limits.Identifier),
	"Origin.Instance":                   strings.Repeat(printable, limits.Identifier),
	"Origin.Incarnation":                strings.Repeat("o", lifecycle.OperationIDLength),
	"Undeletion.Instance":               strings.Repeat(printable, limits.Identifier),
	"Undeletion.Incarnation":            strings.Repeat("o", lifecycle.OperationIDLength),
	"Target.Name":                       strings.Repeat(printable, limits.CatalogText),
	"Target.Identity":                   strings.Repeat(printable, limits.CatalogText),
	"Attributes.Snapshot (JSON)":        object(limits.Snapshot),
	"Attributes.SealedContext (sealed)": strings.Repeat("s", limits.Context+limits.SealedOverhead),
	"Attributes.Context (JSON)":         object(limits.StableContext),
	"Attributes.Names (sealed)":         strings.Repeat("s", limits.Names+1+vault.Overhead),
	"Asker.Identity (sealed)":           strings.Repeat("s", limits.Identity*3/4+limits.SealedOverhead), // of base64
}

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

// enlarge gives every field of a record the largest value that it can have.
func enlarge(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	bounded := func(suffix string) string {
		text, ok := largest[name+suffix]
		if !ok {
			t.Fatalf("%s%s: say in this test what bounds it, and enforce that", name, suffix)
		}
		return text
	}
	switch v.Kind() {
	case reflect.Map: // members of a newer program: its own sums bound them
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2999, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", -12*3600-1800))))
			return
		}
		for i := range v.NumField() {
			enlarge(t, v.Type().Name()+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		enlarge(t, name, v.Elem())
	case reflect.Slice:
		switch v.Type() {
		case reflect.TypeFor[json.RawMessage]():
			v.SetBytes([]byte(bounded(" (JSON)")))
		case reflect.TypeFor[lifecycle.Sealed]():
			v.SetBytes([]byte(bounded(" (sealed)")))
		case reflect.TypeFor[[]byte]():
			v.SetBytes([]byte(bounded("")))
		case reflect.TypeFor[[]string]():
			v.Set(reflect.ValueOf(lifecycle.ParameterNames(manyMembers())))
		case reflect.TypeFor[[]lifecycle.Lease]():
			v.Set(reflect.MakeSlice(v.Type(), limits.Leases, limits.Leases))
			for i := range v.Len() {
				enlarge(t, name, v.Index(i))
			}
		default:
			t.Fatalf("%s: say in this test how many there can be", name)
		}
	case reflect.String:
		v.SetString(bounded(""))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(math.MinInt32)
	default:
		t.Fatalf("%s: no largest %v is known", name, v.Kind())
	}
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
	var i lifecycle.Record
	var b lifecycle.Record
	var past lifecycle.PastOperation
	enlarge(t, "", reflect.ValueOf(&i).Elem())
	enlarge(t, "", reflect.ValueOf(&b).Elem())
	enlarge(t, "", reflect.ValueOf(&past).Elem())
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
	gotI, err := l.Record(ctx, i.Key, epoch)
	expect.OK(t, err)
	gotB, err := l.Record(ctx, b.Key, epoch)
	expect.OK(t, err)
	i.Version, b.Version = 1, 1
	want, err := json.Marshal([]any{i, b})
	expect.OK(t, err)
	if got, err := json.Marshal([]any{gotI, gotB}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read otherwise than written: %v", err)
	}
}
