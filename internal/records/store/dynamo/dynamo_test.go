package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.Harness {
		table := dynamotest.NewTable(t, dynamodb.NewFromConfig(emulator.Config(t)))
		open := func(t *testing.T) store.Store {
			return dynamo.New(dynamodb.NewFromConfig(emulator.Config(t)), table, dynamo.Options{})
		}
		return &storetest.Harness{
			Store: open(t),
			Again: open,
			Drops: true,
			// The index lags on AWS, even if not on every emulator.
			Pause: func(ctx context.Context) {
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			},
		}
	})
}

// TestCost proves how many calls each verb costs, which this adapter promises.
func TestCost(t *testing.T) {
	s := newStand(t)
	ctx := t.Context()
	stored, bound := s.put(t, fixture("p", "stored")), s.put(t, fixture("p", "bound"))
	gone := s.put(t, fixture("p", "gone"))
	commit := func(changes ...store.Change) func() error { return func() error { return s.Commit(ctx, changes...) } }
	type calls map[string]int
	steps := []struct {
		reason string
		do     func() error
		err    error
		want   calls
	}{
		{"accepting is one conditional put", commit(store.Put(fixture("p", "new"))), nil, calls{"PutItem": 1}},
		{"so is being told of a conflict", commit(store.Put(fixture("p", "new"))), store.ErrConflict, calls{"PutItem": 1}},
		{"so is progress", commit(store.Put(stored)), nil, calls{"PutItem": 1}},
		{"a poll is one read", func() error { _, err := s.Get(ctx, stored.Key); return err }, nil, calls{"GetItem": 1}},
		{"also of what is absent", func() error { _, err := s.Get(ctx, store.Key{Partition: "p", Sort: "absent"}); return err },
			store.ErrNotFound, calls{"GetItem": 1}},
		{"a lone check is one read", commit(store.Check(bound.Key, 1)), nil, calls{"GetItem": 1}},
		{"also of absence", commit(store.Check(store.Key{Partition: "p", Sort: "absent"}, 0)), nil, calls{"GetItem": 1}},
		{"also one that does not hold", commit(store.Check(bound.Key, 7)), store.ErrConflict, calls{"GetItem": 1}},
		{"a lone deletion is one delete", commit(store.Delete(gone.Key, 1)), nil, calls{"DeleteItem": 1}},
		{"several changes are one transaction", commit(store.Put(fixture("p", "newer")), store.Check(bound.Key, 1)), nil,
			calls{"TransactWriteItems": 1}},
		{"also when they conflict", commit(store.Put(fixture("p", "newer")), store.Check(bound.Key, 1)), store.ErrConflict,
			calls{"TransactWriteItems": 1}},
		{"a page of a partition is one query",
			func() error { _, err := s.List(ctx, "p", "n", "", 0); return err }, nil, calls{"Query": 1}},
		{"what cannot be right costs nothing", commit(store.Put(fixture("p", ""))), store.ErrInvalid, calls{}},
	}
	for _, step := range steps {
		s.count()
		if err := step.do(); !errors.Is(err, step.err) {
			t.Fatalf("%s: got error %v, want %v", step.reason, err, step.err)
		}
		expect.Same(t, fmt.Sprintf("%s: calls", step.reason), step.want, calls(s.count()))
	}

	s.count()
	filled := 0
	err := all(func(c string) (store.Page, error) { return s.Due(ctx, due, c) }, func(p store.Page) {
		if len(p.Records) > 0 {
			filled++
		}
	})
	if err != nil || filled == 0 || filled == dynamo.Shards {
		t.Fatalf("%d shards hold what is due, want some but not all: %v", filled, err)
	}
	expect.Same(t, "what is due costs a query for each shard, and a read for each that is not empty",
		calls{"Query": dynamo.Shards, "BatchGetItem": filled}, calls(s.count()))

}

// all reads a listing to its end.
func all(read func(cursor string) (store.Page, error), see func(store.Page)) error {
	for cursor := ""; ; {
		p, err := read(cursor)
		if err != nil {
			return err
		}
		if see != nil {
			see(p)
		}
		if cursor = p.Next; cursor == "" {
			return nil
		}
	}
}

// The index holds keys and nothing else, and only of what is due.
func TestIndex(t *testing.T) {
	s := newStand(t)
	r := s.put(t, fixture("p", "due"))
	resting := fixture("p", "resting")
	resting.Due = time.Time{}
	s.put(t, resting)
	expiring := fixture("p", "expiring") // the table drops it
	expiring.Due = expiring.Expires
	s.put(t, expiring)
	client := dynamodb.NewFromConfig(emulator.Config(t))
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &s.table, IndexName: aws.String(dynamo.IndexDue)})
	expect.OK(t, err)
	var got []map[string]bool
	for _, item := range out.Items {
		names := map[string]bool{}
		for name := range item {
			names[name] = true
		}
		got = append(got, names)
	}
	expect.Same(t, "index", []map[string]bool{{"pk": true, "sk": true, "shard": true, "due": true}}, got)
	key := map[string]types.AttributeValue{
		dynamo.AttributePartition: &types.AttributeValueMemberS{Value: r.Partition},
		dynamo.AttributeSort:      &types.AttributeValueMemberS{Value: r.Sort},
	}
	whole, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: key})
	expect.OK(t, err)
	expires, _ := whole.Item[dynamo.AttributeExpires].(*types.AttributeValueMemberN)
	if expires == nil || expires.Value != fmt.Sprint(r.Expires.Unix()) {
		t.Errorf("attribute %q is %v, want seconds since 1970", dynamo.AttributeExpires, expires)
	}
}

// TestShards proves that no shard takes most of what is due.
func TestShards(t *testing.T) {
	s := newStand(t)
	const records = 400
	for at := 0; at < records; at += 100 {
		var changes []store.Change
		for i := range 100 {
			changes = append(changes, store.Put(fixture(fmt.Sprintf("I#platform#%d", at+i), "INSTANCE")))
		}
		expect.OK(t, s.Commit(t.Context(), changes...))
	}
	pages, total := 0, 0
	err := all(func(c string) (store.Page, error) { return s.Due(t.Context(), due, c) }, func(p store.Page) {
		pages++
		total += len(p.Records)
		if len(p.Records) > 2*records/dynamo.Shards {
			t.Errorf("a shard holds %d of %d records", len(p.Records), records)
		}
	})
	if err != nil || pages != dynamo.Shards || total != records {
		t.Errorf("%d records on %d pages, want %d on %d: %v", total, pages, records, dynamo.Shards, err)
	}
}

func TestCursors(t *testing.T) {
	s := newStand(t)
	for i := range 8 {
		r := fixture(fmt.Sprint("partition ", i%2), fmt.Sprint(i))
		r.Body = make([]byte, store.MaxBody)
		s.put(t, r)
	}
	next := func(p store.Page, err error) string {
		t.Helper()
		expect.OK(t, err)
		if p.Next == "" {
			t.Fatal("the listing has one page only")
		}
		return p.Next
	}
	// Four records of 390 kB are more than a page.
	ofScan, ofDue := next(s.Scan(t.Context(), "")), next(s.Due(t.Context(), due, ""))
	scan := func(cursor string) func() (store.Page, error) {
		return func() (store.Page, error) { return s.Scan(t.Context(), cursor) }
	}
	tests := map[string]struct {
		reason string
		read   func() (store.Page, error)
	}{
		"DueInScan": {"a cursor is of its kind of listing", scan(ofDue)},
		"ScanInDue": {"a cursor is of its kind of listing",
			func() (store.Page, error) { return s.Due(t.Context(), due, ofScan) }},
		"CutOff": {"a cursor is whole", scan(ofScan[:len(ofScan)-2])},
		"Padded": {"a cursor has nothing after it", scan(ofScan + "=")},
		"Longer": {"a cursor has nothing after it", scan(ofScan + "AAAA")},
		"NoShard": {"there are only so many shards",
			func() (store.Page, error) { return s.Due(t.Context(), due, "eyJkIjp7InMiOjk5fX0") }},
		"NoCursor": {"a cursor comes from a page", scan("e30")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s.count()
			expect.Fails(t, test.reason, store.ErrInvalid, expect.Err(test.read()))
			if calls := s.count(); len(calls) > 0 {
				t.Errorf("%s: it was sent to DynamoDB: %v", test.reason, calls)
			}
		})
	}
}

// A sweep that never comes to the end of a shard comes to all others all the same.
func TestAFullShardStarvesNoOther(t *testing.T) {
	s := newStand(t)
	var full []store.Change
	others := map[int]store.Key{}
	for n := 0; len(full) < 250 || len(others) < dynamo.Shards-1; n++ {
		r := fixture("p", fmt.Sprint(n))
		r.Body = nil
		if shard := dynamo.ShardOf(r.Key); shard == 0 {
			full = append(full, store.Put(r))
		} else if _, ok := others[shard]; !ok {
			others[shard] = s.put(t, r).Key
		}
	}
	for batch := range slices.Chunk(full, store.MaxChanges) {
		expect.OK(t, s.other.Commit(t.Context(), batch...))
	}
	// Each minute there is time for two pages, and nothing is done about the
	// records of shard 0.
	read := map[store.Key]bool{}
	for minute := range dynamo.Shards {
		now, cursor := due.Add(time.Duration(minute)*time.Minute), ""
		for range 2 {
			page, err := s.Due(t.Context(), now, cursor)
			expect.OK(t, err)
			for _, r := range page.Records {
				read[r.Key] = true
			}
			if cursor = page.Next; cursor == "" {
				t.Fatal("the listing has come to its end: the test proves nothing")
			}
		}
	}
	for shard, k := range others {
		if !read[k] {
			t.Errorf("in %d minutes nobody has come to shard %d", dynamo.Shards, shard)
		}
	}
	if n := len(read) - len(others); n < 100 {
		t.Errorf("of the full shard, %d records were read", n)
	}
}

// A page of the index may be behind the table, and tell of a record twice.
func TestLaggingIndex(t *testing.T) {
	s := newStand(t)
	moved, deleted, stays := fixture("p", "moved"), fixture("p", "deleted"), fixture("p", "stays")
	for _, r := range []store.Record{moved, deleted, stays} {
		s.put(t, r)
	}
	client := lagging{dynamodb.NewFromConfig(emulator.Config(t)), func() {
		moved.Version, moved.Due = 1, due.Add(time.Hour)
		expect.OK(t, s.other.Commit(t.Context(), store.Put(moved), store.Delete(deleted.Key, 1)))
		moved.Version = 2
	}}
	var once bool
	change := client.change
	client.change = func() {
		if !once {
			once = true
			change()
		}
	}
	lagged := dynamo.New(client, s.table, dynamo.Options{})
	stays.Version = 1
	var got []store.Record
	expect.OK(t, all(func(c string) (store.Page, error) { return lagged.Due(t.Context(), due, c) }, func(p store.Page) {
		got = append(got, p.Records...)
	}))
	// Records that were read before the change are as they were.
	for _, r := range got {
		if now, err := s.Get(t.Context(), r.Key); err != nil || cmp.Diff(now, r) != "" {
			t.Errorf("Due lists record %q as it is no more: %v", r.Sort, err)
		}
	}
	if len(got) != 1 || got[0].Sort != "stays" {
		t.Errorf("Due lists %d records, want the one that stays due", len(got))
	}
}

// lagging shows what was in the index before a change, and each key twice.
type lagging struct {
	*dynamodb.Client
	change func()
}

func (l lagging) Query(
	ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	out, err := l.Client.Query(ctx, in, opts...)
	if err == nil && len(out.Items) > 0 {
		out.Items = append(out.Items, out.Items...)
	}
	return out, err
}

func (l lagging) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	l.change()
	return l.Client.BatchGetItem(ctx, in, opts...)
}

// A batch may be answered in part.
func TestUnprocessedKeys(t *testing.T) {
	s := newStand(t)
	want := map[string]bool{}
	var changes []store.Change
	for i := range 40 {
		r := fixture("p", fmt.Sprint(i))
		changes, want[r.Sort] = append(changes, store.Put(r)), true
	}
	expect.OK(t, s.Commit(t.Context(), changes...))
	tests := map[string]struct {
		reason string
		most   func(n int) int // of the nth call
		fails  bool
	}{
		"Part":     {"the rest is asked for again", func(int) int { return 2 }, false},
		"Throttle": {"also when nothing was read at first", func(n int) int { return n % 3 }, false},
		"Never":    {"but not for ever", func(int) int { return 0 }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			partial := &partial{Client: dynamodb.NewFromConfig(emulator.Config(t)), table: s.table, most: test.most}
			ps := dynamo.New(partial, s.table, dynamo.Options{Sleep: func(context.Context, time.Duration) error { return nil }})
			got := map[string]bool{}
			err := all(func(c string) (store.Page, error) { return ps.Due(t.Context(), due, c) }, func(p store.Page) {
				for _, r := range p.Records {
					got[r.Sort] = true
				}
			})
			if test.fails != (err != nil) {
				t.Fatalf("%s: got error %v", test.reason, err)
			}
			if d := cmp.Diff(want, got); !test.fails && d != "" {
				t.Errorf("%s: -want +got:\n%s", test.reason, d)
			}
		})
	}
}

// partial answers no more than some of the keys of a batch.
type partial struct {
	*dynamodb.Client
	table string
	most  func(n int) int
	n     int
}

func (p *partial) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	p.n++
	keys := in.RequestItems[p.table].Keys
	most := min(p.most(p.n), len(keys))
	out := &dynamodb.BatchGetItemOutput{}
	if most > 0 {
		var err error
		out, err = p.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{p.table: {Keys: keys[:most], ConsistentRead: aws.Bool(true)}},
		}, opts...)
		if err != nil {
			return nil, err
		}
	}
	if most < len(keys) {
		out.UnprocessedKeys = map[string]types.KeysAndAttributes{p.table: {Keys: keys[most:]}}
	}
	return out, nil
}

// Together, changes may be more than DynamoDB takes. The suite of all stores
// cannot ask for that.
func TestTooLarge(t *testing.T) {
	s := newStand(t)
	var changes []store.Change
	for i := range 11 {
		r := fixture("p", fmt.Sprint(i))
		r.Body = bytes.Repeat([]byte{'b'}, store.MaxBody)
		changes = append(changes, store.Put(r))
	}
	expect.Fails(t, "a commit of more than 4 MB", store.ErrInvalid, s.Commit(t.Context(), changes...))
	long := fixture("p", "long")
	long.Body, long.Writer = bytes.Repeat([]byte{'b'}, store.MaxBody), strings.Repeat("w", 30_000)
	expect.Fails(t, "an envelope that leaves the body no room", store.ErrInvalid, s.Commit(t.Context(), store.Put(long)))
}

func TestErrorsNameTheRecord(t *testing.T) {
	s := newStand(t)
	r := fixture("a partition", "a sort key")
	_, missing := s.Get(t.Context(), r.Key)
	stale := r
	stale.Version = 3
	for name, err := range map[string]error{
		"ErrNotFound":         missing,
		"ErrConflict/Check":   s.Commit(t.Context(), store.Check(r.Key, 3)),
		"ErrConflict/Put":     s.Commit(t.Context(), store.Put(stale)),
		"ErrConflict/Several": s.Commit(t.Context(), store.Put(fixture("p", "other")), store.Put(stale)),
	} {
		if err == nil || !strings.Contains(err.Error(), `"a sort key"`) || !strings.Contains(err.Error(), `"a partition"`) {
			t.Errorf("%s does not name the record: %v", name, err)
		}
	}
}

// An item that this package has not written is an error that names it.
func TestForeignItems(t *testing.T) {
	s := newStand(t)
	client := dynamodb.NewFromConfig(emulator.Config(t))
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	for name, with := range map[string]map[string]types.AttributeValue{
		"NoVersion":   {},
		"VersionText": {dynamo.AttributeVersion: text("1")},
		"Fraction":    {dynamo.AttributeVersion: &types.AttributeValueMemberN{Value: "1.5"}},
		"BodyText":    {dynamo.AttributeVersion: &types.AttributeValueMemberN{Value: "1"}, dynamo.AttributeBody: text("{}")},
	} {
		t.Run(name, func(t *testing.T) {
			with[dynamo.AttributePartition], with[dynamo.AttributeSort] = text("foreign"), text(name)
			expect.Get(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table, Item: with}))(t)
			_, err := s.Get(t.Context(), store.Key{Partition: "foreign", Sort: name})
			if err == nil || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), name) {
				t.Errorf("got error %v, want one that names the record", err)
			}
		})
	}
}

// An item of an earlier program says where its things are: nobody reads that.
func TestItemsOfEarlierPrograms(t *testing.T) {
	s := newStand(t)
	text := func(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
	item := map[string]types.AttributeValue{
		dynamo.AttributePartition: text("p"), dynamo.AttributeSort: text("s"), dynamo.AttributeWriter: text("w"),
		dynamo.AttributeVersion: &types.AttributeValueMemberN{Value: "1"},
		"account":               text("111122223333"), "region": text("eu-central-1"),
	}
	client := dynamodb.NewFromConfig(emulator.Config(t))
	expect.Get(client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table, Item: item}))(t)
	r, err := s.Get(t.Context(), store.Key{Partition: "p", Sort: "s"})
	if err != nil || r.Writer != "w" || r.Version != 1 {
		t.Fatalf("read %+v: %v", r, err)
	}
	if err := s.Commit(t.Context(), store.Put(r)); err != nil {
		t.Error(err)
	}
}

// The emulator is always consistent, so only what is asked for can be seen.
func TestConsistentReads(t *testing.T) {
	s := newStand(t)
	r := s.put(t, fixture("p", "s"))
	var mu sync.Mutex
	got := map[string]bool{}
	s.meet = func(call string, _ int, r *http.Request) event {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(sent))
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(sent), `"IndexName"`) {
			call += " of the index"
		}
		got[call] = strings.Contains(string(sent), `"ConsistentRead":true`)
		return nil
	}
	_, getErr := s.Get(t.Context(), r.Key)
	_, listErr := s.List(t.Context(), "p", "", "", 0)
	dueErr := all(func(c string) (store.Page, error) { return s.Due(t.Context(), due, c) }, nil)
	checkErr := s.Commit(t.Context(), store.Check(r.Key, 1))
	expect.OK(t, errors.Join(getErr, listErr, dueErr, checkErr))
	want := map[string]bool{"GetItem": true, "Query": true, "BatchGetItem": true, "Query of the index": false}
	expect.Same(t, "which reads are consistent", want, got)
}
