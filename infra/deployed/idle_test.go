package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/emulator"
	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/store/dynamo"
	"github.com/longshore/longshore/internal/store/dynamo/dynamotest"
)

type item = map[string]types.AttributeValue

// A table gives its items page by page, as DynamoDB does: a page ends after so
// many items that were looked at, not that were found.
type table struct {
	items []item
	page  int   // 0 for all at once
	fail  error // in the place of the second page
	reads []bool
}

func (t *table) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	left, right, _ := strings.Cut(aws.ToString(in.FilterExpression), " = ")
	attribute, want := in.ExpressionAttributeNames[left], in.ExpressionAttributeValues[right]
	if attribute == "" || want == nil {
		return nil, fmt.Errorf("ValidationException: filter %q", aws.ToString(in.FilterExpression))
	}
	t.reads = append(t.reads, aws.ToBool(in.ConsistentRead))
	from := 0
	if key := in.ExclusiveStartKey; key != nil {
		if t.fail != nil {
			return nil, t.fail
		}
		from = 1 + slices.IndexFunc(t.items, func(i item) bool {
			return reflect.DeepEqual(keyOf(i), key)
		})
	}
	out := &dynamodb.ScanOutput{}
	for n, i := range t.items[from:] {
		if reflect.DeepEqual(i[attribute], want) {
			out.Items = append(out.Items, i)
		}
		if t.page > 0 && n+1 == t.page { // also if there is nothing after it
			out.LastEvaluatedKey = keyOf(i)
			break
		}
	}
	return out, nil
}

func keyOf(i item) item {
	return item{dynamo.AttributePartition: i[dynamo.AttributePartition], dynamo.AttributeSort: i[dynamo.AttributeSort]}
}

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// record is an instance as it is kept.
func record(id string, state lifecycle.State) item {
	i := lifecycle.Record{Key: lifecycle.Key{Platform: "cf", Instance: id}, State: state}
	body, err := json.Marshal(i)
	if err != nil {
		panic(err) // it is text
	}
	return item{
		dynamo.AttributePartition: text("I#cf#" + id), dynamo.AttributeSort: text(instanceSort),
		dynamo.AttributeSchema: number("1"), dynamo.AttributeBody: &types.AttributeValueMemberB{Value: body},
	}
}

// with changes an attribute, or removes it.
func with(i item, name string, value types.AttributeValue) item {
	if i[name] = value; value == nil {
		delete(i, name)
	}
	return i
}

// many are instances of one state.
func many(n int, state lifecycle.State) []item {
	var out []item
	for k := range n {
		out = append(out, record(fmt.Sprintf("i-%03d", k), state))
	}
	return out
}

func TestIdle(t *testing.T) {
	denied := errors.New("AccessDeniedException")
	bytesOf := func(s string) types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte(s)} }
	lines := func(n int) string {
		var out strings.Builder
		for k := range n {
			_, _ = fmt.Fprintf(&out, "  \"i-%03d\" of platform \"cf\": ready\n", k)
		}
		return out.String()
	}
	type test struct {
		reason string
		table  table
		out    string
		err    string // part of it; empty for none
	}
	tests := map[string]test{
		"Empty":   {"a broker that was never used", table{}, "no instance lives\n", ""},
		"Deleted": {"of what is deleted nothing exists", table{items: many(3, lifecycle.Deleted)}, "no instance lives\n", ""},
		"Others": {"bindings, pointers and past operations are no instances", table{items: []item{
			with(record("i", lifecycle.Ready), dynamo.AttributeSort, text("BINDING#b")), with(record("i", lifecycle.Ready), dynamo.AttributeSort, text("POINTER")),
			with(record("i", lifecycle.Ready), dynamo.AttributeSort, text("OPERATION")),
		}}, "no instance lives\n", ""},
		"One": {
			"one is enough", table{items: append(many(2, lifecycle.Deleted), record("live", lifecycle.Ready))},
			"  \"live\" of platform \"cf\": ready\n", "instances that live: 1; have the platform delete them first",
		},
		"Control": {
			"an id is the platform's: it draws nothing on the screen", table{items: []item{record("a\x1b[2J\nno instance lives", lifecycle.Ready)}},
			"  \"a\\x1b[2J\\nno instance lives\" of platform \"cf\": ready\n", "instances that live: 1",
		},
		"Later":   {"it stands on another page than the first", table{items: append(many(5, lifecycle.Deleted), record("live", lifecycle.Ready)), page: 2}, "  \"live\" of platform \"cf\": ready\n", "instances that live: 1"},
		"Between": {"a page may be empty and not be the last", table{items: append([]item{with(record("b", lifecycle.Ready), dynamo.AttributeSort, text("POINTER"))}, record("live", lifecycle.Ready)), page: 1}, "  \"live\" of platform \"cf\": ready\n", "instances that live: 1"},
		"Exact":   {"as many as are shown need no more", table{items: many(shown, lifecycle.Ready)}, lines(shown), "instances that live: 20"},
		"Many":    {"a screen is not flooded, and all are counted", table{items: many(shown+25, lifecycle.Ready), page: 7}, lines(shown) + "  and 25 more\n", "instances that live: 45"},
		"Unread":  {"who has not read all knows nothing", table{items: many(3, lifecycle.Deleted), page: 1, fail: denied}, "", `whether instances live cannot be told: reading table "records": AccessDeniedException`},
		"Broken": {
			"what cannot be read may live", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributeBody, bytesOf(`{"state":`))}},
			"", `cannot be told: record "I#cf#i" is damaged`,
		},
		"NoBody":      {"so may what says nothing", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributeBody, nil)}}, "", "cannot be told: a record is damaged: it has no partition, or no body"},
		"TextBody":    {"or says it otherwise", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributeBody, text("{}"))}}, "", "cannot be told: a record is damaged: it has no partition, or no body"},
		"NoPartition": {"or belongs to nobody", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributePartition, nil)}}, "", "cannot be told: a record is damaged: it has no partition, or no body"},
		"Stateless":   {"a record without a state is of something", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributeBody, bytesOf(`{"platform":"cf","instance":"i"}`))}}, "  \"i\" of platform \"cf\": \n", "instances that live: 1"},
		"NewState":    {"what a newer program calls it is not deleted", table{items: []item{record("i", "resting")}}, "  \"i\" of platform \"cf\": resting\n", "instances that live: 1"},
		"NewSchema": {
			"another encoding may mean another thing", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributeSchema, number("2"))}},
			"", `record "I#cf#i" is of another encoding than this program reads: run the version that was deployed`,
		},
		"NoSchema":   {"as may none", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributeSchema, nil)}}, "", "is of another encoding"},
		"TextSchema": {"or what is no number", table{items: []item{with(record("i", lifecycle.Deleted), dynamo.AttributeSchema, text("1"))}}, "", "is of another encoding"},
	}
	for _, state := range lifecycle.States() {
		if state == lifecycle.Absent || state == lifecycle.Deleted || state == lifecycle.Ready {
			continue
		}
		name := strings.ReplaceAll(string(state), " ", "")
		tests[strings.ToUpper(name[:1])+name[1:]] = test{"something of it may exist", table{items: []item{record("i", state)}}, fmt.Sprintf("  \"i\" of platform \"cf\": %s\n", state), "instances that live: 1"}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := idle(t.Context(), &test.table, "records", &out)
			if d := cmp.Diff(test.out, out.String()); d != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, d)
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.err)
			}
			if test.table.fail != nil && !errors.Is(err, test.table.fail) {
				t.Errorf("%s: what failed is not in %v", test.reason, err)
			}
			// What was created a moment ago is not to be missed.
			if slices.Contains(test.table.reads, false) {
				t.Errorf("%s: a page was not read consistently", test.reason)
			}
		})
	}
}

// The records are written as the broker writes them, and are more than
// DynamoDB gives at once.
func TestIdleReadsWhatTheBrokerWrites(t *testing.T) {
	client := dynamodb.NewFromConfig(emulator.Config(t))
	name := dynamotest.NewTable(t, client)
	commits := 0
	l := ledger.New(dynamo.New(client, name, dynamo.Options{}), func() string {
		commits++
		return fmt.Sprintf("commit-%d", commits)
	})
	ctx, now := t.Context(), time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	commit := func(changes ...ledger.Change) {
		t.Helper()
		if err := l.Commit(ctx, changes...); err != nil {
			t.Fatalf("committing: %v", err)
		}
	}
	ask := func() ([]string, string, error) {
		t.Helper()
		live, err := Live(ctx, client, name)
		if err != nil {
			t.Fatalf("reading: %v", err)
		}
		var ids []string
		for _, i := range live {
			ids = append(ids, i.Key.Platform+" "+i.Key.Instance+" "+string(i.State))
		}
		slices.Sort(ids)
		var out bytes.Buffer
		err = idle(ctx, client, name, &out)
		return ids, out.String(), err
	}

	context := json.RawMessage(`"` + strings.Repeat("x", 300_000) + `"`)
	var want []string
	var instances []lifecycle.Record
	for n := range 5 {
		key := lifecycle.Key{Platform: "c#f", Instance: fmt.Sprintf("i-%d", n)}
		i, _, err := lifecycle.Record{Key: key}.BeginCreate(lifecycle.Start{ID: fmt.Sprintf("operation-%d", n), Now: now, Received: now, Timeout: time.Hour},
			lifecycle.Record{Provider: "demo", Attributes: lifecycle.Attributes{ServiceID: "s", PlanID: "p", Context: context}})
		if err != nil {
			t.Fatal(err)
		}
		commit(ledger.Put(i))
		i.Version = 1
		instances, want = append(instances, i), append(want, "c#f "+key.Instance+" creating")
	}
	// None of these is an instance.
	binding := lifecycle.Key{Platform: "c#f", Instance: "i-0", Binding: "b"}
	commit(
		ledger.Put(lifecycle.Record{Key: binding, State: lifecycle.Ready}),
		ledger.PutPointer(lifecycle.Pointer{Key: binding}),
		ledger.PutPast(&lifecycle.PastOperation{Operation: lifecycle.Operation{ID: "past"}, Expires: now}),
	)
	live, _, err := ask()
	if d := cmp.Diff(want, live); d != "" || err == nil || !strings.HasPrefix(err.Error(), "instances that live: 5") {
		t.Errorf("five were made: %v (-want +got):\n%s", err, d)
	}

	for _, i := range instances {
		deleting, _, err := i.BeginDelete(lifecycle.Start{ID: "deletion-" + i.Key.Instance, Now: now, Received: now, Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		deleted, err := deleting.Succeed(now, nil)
		if err != nil {
			t.Fatal(err)
		}
		commit(ledger.Put(deleted))
	}
	if live, out, err := ask(); err != nil || len(live) > 0 || out != "no instance lives\n" {
		t.Errorf("all were deleted: %q, %q, %v", live, out, err)
	}
}
