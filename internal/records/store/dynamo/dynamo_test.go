package dynamo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/storetest"
)

// A wire carries the calls of one client to the emulator. It counts them, as
// the network sees them, and can do with each what networks and services do.
type wire struct {
	under aws.HTTPClient
	mu    sync.Mutex
	calls map[string]int
	// meet decides what becomes of the nth call of a kind, counted from 1. Nil, or the answer nil, lets it pass.
	meet func(call string, n int, r *http.Request) event
}

// An event is what becomes of a call.
type event func(pass func() (*http.Response, error)) (*http.Response, error)

var errNetwork = fmt.Errorf("the network failed: %w", io.ErrUnexpectedEOF)

// lost: it is done, but its answer never comes.
func lost(pass func() (*http.Response, error)) (*http.Response, error) {
	answer, err := pass()
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	return nil, errNetwork
}

// dropped: it never arrives.
func dropped(func() (*http.Response, error)) (*http.Response, error) { return nil, errNetwork }

// refused: it is answered with an error and not done. More is what the error has beside its code.
func refused(status int, code, more string) event {
	return func(func() (*http.Response, error)) (*http.Response, error) {
		body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"made by the test"%s}`, code, more)
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
			Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// cancelled is a transaction that was cancelled for these reasons.
func cancelled(reasons ...string) event {
	var list []string
	for _, r := range reasons {
		list = append(list, fmt.Sprintf(`{"Code":%q}`, r))
	}
	return refused(http.StatusBadRequest, "TransactionCanceledException", `,"CancellationReasons":[`+strings.Join(list, ",")+`]`)
}

// then does something before it goes on as the event does.
func (e event) then(do func()) event {
	return func(pass func() (*http.Response, error)) (*http.Response, error) {
		answer, err := e(pass)
		do()
		return answer, err
	}
}

// Do is how the SDK sends.
func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	w.mu.Lock()
	w.calls[call]++
	n, meet := w.calls[call], w.meet
	w.mu.Unlock()
	pass := func() (*http.Response, error) { return w.under.Do(r) }
	if meet != nil {
		if e := meet(call, n, r); e != nil {
			return e(pass)
		}
	}
	return pass()
}

// count gives the calls since it was last asked, and starts anew.
func (w *wire) count() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := maps.Clone(w.calls)
	clear(w.calls)
	return calls
}

// script lets the calls of a kind meet these events, one after another.
func (w *wire) script(call string, events ...event) {
	w.count()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meet = func(c string, n int, _ *http.Request) event {
		if c != call || n > len(events) {
			return nil
		}
		return events[n-1]
	}
}

// A stand is a store over a table of its own.
type stand struct {
	*dynamo.Store
	*wire
	other store.Store      // over the same table, by another wire
	plain *dynamodb.Client // for what the test does itself
	sdk   *dynamodb.Client
	table string
	// overrunning is the record that overrun changes.
	overrunning store.Record
	sleeping    sync.Mutex
	slept       []time.Duration
}

func newStand(t *testing.T) *stand {
	t.Helper()
	config := emulator.Config(t)
	plain := dynamodb.NewFromConfig(config)
	table := dynamotest.NewTable(t, plain)
	s := &stand{wire: &wire{under: config.HTTPClient, calls: map[string]int{}}, plain: plain,
		other: dynamo.New(plain, table), table: table}
	config.HTTPClient = s.wire
	s.sdk = dynamodb.NewFromConfig(config)
	s.Store = dynamo.Paused(dynamo.New(s.sdk, table), func(ctx context.Context, d time.Duration) error {
		s.sleeping.Lock()
		defer s.sleeping.Unlock()
		s.slept = append(s.slept, d)
		return ctx.Err()
	}, func() float64 { return 0.5 }, 0)
	return s
}

// due stands in no relation to the clock.
var due = time.Date(2031, time.March, 4, 5, 6, 7, 890_000_000, time.UTC)

func fixture(partition, sort string) store.Record {
	return store.Record{Key: store.Key{Partition: partition, Sort: sort}, Writer: "writer of " + sort, Schema: 7, Due: due,
		Expires: due.Truncate(time.Second).Add(time.Hour), Body: bytes.Repeat([]byte(sort), 10)}
}

// text and number are values of attributes.
func text(v string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: v} }
func number(v string) types.AttributeValue { return &types.AttributeValueMemberN{Value: v} }

// dues are the records of all pages of what is due.
func dues(ctx context.Context, s store.Store) ([]store.Record, error) {
	return storetest.Gather(func(cursor string) (store.Page, error) { return s.Due(ctx, due, cursor) })
}

// put commits the record past the stand's wire, and gives it as stored.
func (s *stand) put(t *testing.T, r store.Record) store.Record {
	t.Helper()
	expect.OK(t, s.other.Commit(context.Background(), store.Put(r)))
	r.Version++
	return r
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) *storetest.Harness {
		table := dynamotest.NewTable(t, dynamodb.NewFromConfig(emulator.Config(t)))
		open := func(t *testing.T) store.Store {
			return dynamo.New(dynamodb.NewFromConfig(emulator.Config(t)), table)
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
	gone, absent := s.put(t, fixture("p", "gone")), store.Key{Partition: "p", Sort: "absent"}
	commit := func(changes ...store.Change) func() error { return func() error { return s.Commit(ctx, changes...) } }
	type calls map[string]int
	for _, step := range []struct {
		reason string
		do     func() error
		err    error
		want   calls
	}{
		{"accepting is one conditional put", commit(store.Put(fixture("p", "new"))), nil, calls{"PutItem": 1}},
		{"so is being told of a conflict", commit(store.Put(fixture("p", "new"))), store.ErrConflict, calls{"PutItem": 1}},
		{"so is progress", commit(store.Put(stored)), nil, calls{"PutItem": 1}},
		{"a poll is one read", func() error { return expect.Err(s.Get(ctx, stored.Key)) }, nil, calls{"GetItem": 1}},
		{"also of what is absent", func() error { return expect.Err(s.Get(ctx, absent)) }, store.ErrNotFound,
			calls{"GetItem": 1}},
		{"a lone deletion is one delete", commit(store.Delete(gone.Key, 1)), nil, calls{"DeleteItem": 1}},
		{"several changes are one transaction", commit(store.Put(fixture("p", "newer")), store.Check(bound.Key, 1)), nil,
			calls{"TransactWriteItems": 1}},
		{"also when they conflict", commit(store.Put(fixture("p", "newer")), store.Check(bound.Key, 1)), store.ErrConflict,
			calls{"TransactWriteItems": 1}},
		{"a page of a partition is one query",
			func() error { return expect.Err(s.List(ctx, "p", "n", "", 0)) }, nil, calls{"Query": 1}},
		{"what cannot be right costs nothing", commit(store.Put(fixture("p", ""))), store.ErrInvalid, calls{}},
	} {
		s.count()
		if err := step.do(); !errors.Is(err, step.err) {
			t.Fatalf("%s: got error %v, want %v", step.reason, err, step.err)
		}
		expect.Same(t, fmt.Sprintf("%s: calls", step.reason), step.want, calls(s.count()))
	}

	s.count()
	shards := map[int]bool{}
	for _, r := range expect.Get(dues(ctx, s))(t) {
		shards[dynamo.ShardOf(r.Key)] = true
	}
	filled := len(shards)
	if filled == 0 || filled == dynamo.Shards {
		t.Fatalf("%d shards hold what is due, want some but not all", filled)
	}
	expect.Same(t, "what is due costs a query for each shard, and a read for each that is not empty",
		calls{"Query": dynamo.Shards, "BatchGetItem": filled}, calls(s.count()))
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
	in := &dynamodb.ScanInput{TableName: &s.table, IndexName: aws.String(dynamo.IndexDue)}
	out := expect.Get(s.plain.Scan(t.Context(), in))(t)
	var got [][]string
	for _, item := range out.Items {
		got = append(got, slices.Sorted(maps.Keys(item)))
	}
	expect.Same(t, "index", [][]string{{"due", "pk", "shard", "sk"}}, got)
	key := map[string]types.AttributeValue{dynamo.AttributePartition: text(r.Partition), dynamo.AttributeSort: text(r.Sort)}
	whole := expect.Get(s.plain.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &s.table, Key: key}))(t)
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
	shards := map[int]int{}
	s.count()
	for _, r := range expect.Get(dues(t.Context(), s))(t) {
		shards[dynamo.ShardOf(r.Key)]++
	}
	left := records
	for _, n := range shards {
		if left -= n; n > 2*records/dynamo.Shards {
			t.Errorf("a shard holds %d of %d records", n, records)
		}
	}
	expect.Same(t, "pages", dynamo.Shards, s.count()["Query"])
	expect.Same(t, "records that are in no shard", 0, left)
}

func TestCursors(t *testing.T) {
	s := newStand(t)
	for i := range 8 {
		r := fixture(fmt.Sprint("partition ", i%2), fmt.Sprint(i))
		r.Body = make([]byte, store.MaxBody)
		s.put(t, r)
	}
	// Four records of 390 kB are more than a page.
	ofScan, ofDue := expect.Get(s.Scan(t.Context(), ""))(t).Next, expect.Get(s.Due(t.Context(), due, ""))(t).Next
	if ofScan == "" || ofDue == "" {
		t.Fatal("the listings have one page only")
	}
	scan := func(cursor string) func() (store.Page, error) {
		return func() (store.Page, error) { return s.Scan(t.Context(), cursor) }
	}
	for name, test := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			s.count()
			expect.Fails(t, test.reason, store.ErrInvalid, expect.Err(test.read()))
			expect.Same(t, test.reason+": calls of DynamoDB", 0, len(s.count()))
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
	// Each minute there is time for two pages, and nothing is done about the records of shard 0.
	read := map[store.Key]bool{}
	for minute := range dynamo.Shards {
		now, cursor := due.Add(time.Duration(minute)*time.Minute), ""
		for range 2 {
			page := expect.Get(s.Due(t.Context(), now, cursor))(t)
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

// A client gives these answers in place of the API's. Without query, its queries are the API's.
type client struct {
	dynamo.API
	query func(*dynamodb.QueryInput) (*dynamodb.QueryOutput, error)
	batch func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error)
	scan  *dynamodb.ScanOutput
}

func (c client) Query(
	ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if c.query == nil {
		return c.API.Query(ctx, in, o...)
	}
	return c.query(in)
}

func (c client) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (
	*dynamodb.BatchGetItemOutput, error) {
	return c.batch(in)
}

func (c client) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return c.scan, nil
}

// A page of the index may be behind the table, and tell of a record twice.
func TestLaggingIndex(t *testing.T) {
	s := newStand(t)
	moved, deleted, stays := fixture("p", "moved"), fixture("p", "deleted"), fixture("p", "stays")
	for _, r := range []store.Record{moved, deleted, stays} {
		s.put(t, r)
	}
	change := sync.OnceFunc(func() {
		moved.Version, moved.Due = 1, due.Add(time.Hour)
		expect.OK(t, s.other.Commit(t.Context(), store.Put(moved), store.Delete(deleted.Key, 1)))
	})
	client := client{API: s.plain, query: func(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
		out, err := s.plain.Query(t.Context(), in)
		if err == nil {
			out.Items = append(out.Items, out.Items...)
		}
		return out, err
	}, batch: func(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
		change()
		return s.plain.BatchGetItem(t.Context(), in)
	}}
	got := expect.Get(dues(t.Context(), dynamo.New(client, s.table)))(t)
	// Records that were read before the change are as they were.
	for _, r := range got {
		expect.Same(t, "what Due lists of "+r.Sort, expect.Get(s.Get(t.Context(), r.Key))(t), r)
	}
	if len(got) != 1 || got[0].Sort != "stays" {
		t.Errorf("Due lists %d records, want the one that stays due", len(got))
	}
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
	for name, test := range map[string]struct {
		reason string
		most   func(n int) int // of the nth call
		fails  bool
	}{
		"Part":     {"the rest is asked for again", func(int) int { return 2 }, false},
		"Throttle": {"also when nothing was read at first", func(n int) int { return n % 3 }, false},
		"Never":    {"but not for ever", func(int) int { return 0 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			part := func(in *dynamodb.BatchGetItemInput) (out *dynamodb.BatchGetItemOutput, err error) {
				n++
				asked := in.RequestItems[s.table]
				keys, most := asked.Keys, min(test.most(n), len(asked.Keys))
				if out = new(dynamodb.BatchGetItemOutput); most > 0 {
					asked.Keys = keys[:most]
					in.RequestItems[s.table] = asked
					out, err = s.plain.BatchGetItem(t.Context(), in)
				}
				if err == nil && most < len(keys) {
					out.UnprocessedKeys = map[string]types.KeysAndAttributes{s.table: {Keys: keys[most:]}}
				}
				return out, err
			}
			sleepless := func(context.Context, time.Duration) error { return nil }
			ps := dynamo.Paused(dynamo.New(client{API: s.plain, batch: part}, s.table), sleepless, nil, 0)
			got := map[string]bool{}
			all, err := dues(t.Context(), ps)
			for _, r := range all {
				got[r.Sort] = true
			}
			if test.fails != (err != nil) {
				t.Fatalf("%s: got error %v", test.reason, err)
			}
			if !test.fails {
				expect.Same(t, test.reason, want, got)
			}
		})
	}
}

// Together, changes may be more than DynamoDB takes. The suite of all stores cannot ask for that, nor for the words of errors.
func TestTooLarge(t *testing.T) {
	s := newStand(t)
	// A busy machine takes long over so much, and a try that ends before its answer says nothing.
	patient := dynamo.Paused(dynamo.New(s.sdk, s.table), nil, nil, time.Minute)
	var changes []store.Change
	for i := range 11 {
		r := fixture("p", fmt.Sprint(i))
		r.Body = bytes.Repeat([]byte{'b'}, store.MaxBody)
		changes = append(changes, store.Put(r))
	}
	expect.Fails(t, "a commit of more than 4 MB", store.ErrInvalid, patient.Commit(t.Context(), changes...))
	long := fixture("p", "long")
	long.Body, long.Writer = bytes.Repeat([]byte{'b'}, store.MaxBody), strings.Repeat("w", 30_000)
	expect.Fails(t, "an envelope that leaves the body no room", store.ErrInvalid, patient.Commit(t.Context(), store.Put(long)))

	// Errors name the record.
	r := fixture("a partition", "a sort key")
	stale := r
	stale.Version = 3
	for name, err := range map[string]error{
		"ErrNotFound":         expect.Err(s.Get(t.Context(), r.Key)),
		"ErrConflict/Check":   s.Commit(t.Context(), store.Check(r.Key, 3)),
		"ErrConflict/Put":     s.Commit(t.Context(), store.Put(stale)),
		"ErrConflict/Several": s.Commit(t.Context(), store.Put(fixture("p", "other")), store.Put(stale)),
	} {
		expect.Says(t, name, fmt.Sprint(err), `"a sort key"`, `"a partition"`)
	}
}

// An item that this package has not written is an error that names it. One of an earlier program says where its
// things are: nobody reads that.
func TestForeignItems(t *testing.T) {
	s := newStand(t)
	for name, with := range map[string]map[string]types.AttributeValue{
		"NoVersion":   {},
		"VersionText": {dynamo.AttributeVersion: text("1")},
		"Fraction":    {dynamo.AttributeVersion: number("1.5")},
		"BodyText":    {dynamo.AttributeVersion: number("1"), dynamo.AttributeBody: text("{}")},
		"Earlier": {dynamo.AttributeVersion: number("1"), dynamo.AttributeWriter: text("w"),
			"account": text("111122223333"), "region": text("eu-central-1")},
	} {
		t.Run(name, func(t *testing.T) {
			with[dynamo.AttributePartition], with[dynamo.AttributeSort] = text("foreign"), text(name)
			expect.Get(s.plain.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &s.table, Item: with}))(t)
			r, err := s.Get(t.Context(), store.Key{Partition: "foreign", Sort: name})
			switch {
			case name == "Earlier":
				if err != nil || r.Writer != "w" || r.Version != 1 {
					t.Fatalf("read %+v: %v", r, err)
				}
				expect.OK(t, s.Commit(t.Context(), store.Put(r)))
			case err == nil || errors.Is(err, store.ErrNotFound) || !strings.Contains(err.Error(), name):
				t.Errorf("got error %v, want one that names the record", err)
			}
		})
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
	expect.Get(s.Get(t.Context(), r.Key))(t)
	expect.Get(s.List(t.Context(), "p", "", "", 0))(t)
	expect.Get(dues(t.Context(), s))(t)
	want := map[string]bool{"GetItem": true, "Query": true, "BatchGetItem": true, "Query of the index": false}
	expect.Same(t, "which reads are consistent", want, got)
}

// A record that cannot be read takes no other with it out of what is listed, and is named: here, somebody has spoilt the second
// of three items.
func TestARecordThatCannotBeRead(t *testing.T) {
	var items []map[string]types.AttributeValue
	for _, sort := range []string{"a", "b", "c"} {
		items = append(items,
			map[string]types.AttributeValue{dynamo.AttributePartition: text("p"), dynamo.AttributeSort: text(sort),
				dynamo.AttributeVersion: number("1"), dynamo.AttributeDue: number("1"), dynamo.AttributeShard: number("0")})
	}
	items[1][dynamo.AttributeVersion] = text("one")
	s := dynamo.New(client{query: func(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) {
		shard, ok := in.ExpressionAttributeValues[":shard"].(*types.AttributeValueMemberN)
		if ok && shard.Value != "0" {
			return new(dynamodb.QueryOutput), nil
		}
		return &dynamodb.QueryOutput{Items: items}, nil
	}, batch: func(*dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
		return &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"table": items}}, nil
	}, scan: &dynamodb.ScanOutput{Items: items, LastEvaluatedKey: map[string]types.AttributeValue{
		dynamo.AttributePartition: text("p"), dynamo.AttributeSort: text("c")}}}, "table")
	before := time.Unix(dynamo.Shards*60, 0) // a listing that begins with the first shard
	for name, test := range map[string]struct {
		reason string
		list   func() (store.Page, error)
		want   []string
		more   bool
	}{
		"Scan": {"an operator looks at everything",
			func() (store.Page, error) { return s.Scan(t.Context(), "") }, []string{"a", "c"}, true},
		"Due": {"the reaper deals with the rest",
			func() (store.Page, error) { return s.Due(t.Context(), before, "") }, []string{"a", "c"}, true},
		"List": {"an operator sees the rest, and who decides by what is missing stops at the error",
			func() (store.Page, error) { return s.List(t.Context(), "p", "", "", 0) }, []string{"a", "c"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			page, err := test.list()
			for _, r := range page.Records {
				got = append(got, r.Sort)
			}
			expect.Same(t, test.reason, test.want, got)
			expect.Fails(t, test.reason, store.ErrUnreadable, err)
			expect.Says(t, test.reason, fmt.Sprint(err), `"b"`)
			expect.Same(t, test.reason+": there is more", test.more, page.Next != "")
		})
	}
}
