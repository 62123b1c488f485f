// Package dynamo keeps the records of package store in one table of DynamoDB. It owns how records,
// conditions and cursors are written there, and what DynamoDB's errors mean for a commit.
//
// It needs a table as its constants describe it. A commit of one change is one conditional
// write; a commit of several changes is one transaction. The
// index of due records holds only keys, and the records are read from the table: an index with
// whole records would be written at each commit and hold everything twice, for a listing that
// the reaper makes once a minute and that finds few records.
//
// It repeats calls after passing faults (throttling, collisions of transactions, lost answers)
// and switches the repetitions of the SDK off, because only a caller that sees every try knows
// whether one of them went without an answer. It leaves the meaning of the records to its
// callers, and the dropping of expired records to DynamoDB.
package dynamo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/records/store"
)

// API holds the methods of *dynamodb.Client that a Store calls.
type API interface {
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(
		ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.BatchGetItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, opts ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	// Scan is for operators: no function's role allows it.
	Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	DeleteItem(
		ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
	) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
		opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// A Store keeps records in one table. It is safe for use by many goroutines.
type Store struct {
	client API
	table  string
	pauses
}

var _ store.Store = (*Store)(nil)

// New returns a store over a table that exists. It calls nothing.
func New(client API, table string) *Store {
	return &Store{client, table, pauses{waiting.For, rand.Float64, tryTimeout}}
}

// while prefixes an error with what was being done.
func while(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// reading repeats a call that changes nothing, until its answer is final.
func reading[In, Out any](
	ctx context.Context, s *Store, call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), in *In,
) (out *Out, err error) {
	_, err = s.repeat(ctx, func(ctx context.Context) (err error) {
		out, err = call(ctx, in, once)
		return err
	})
	if faultOf(err).kind == invalid {
		err = fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	return out, err
}

// Get implements store.Store. It is one GetItem.
func (s *Store) Get(ctx context.Context, key store.Key) (_ store.Record, err error) {
	defer while(&err, "reading record %q of %q", key.Sort, key.Partition)
	if err := store.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	out, err := reading(ctx, s, s.client.GetItem, &dynamodb.GetItemInput{
		TableName: &s.table, Key: itemKey(key), ConsistentRead: aws.Bool(true),
	})
	switch {
	case err != nil:
		return store.Record{}, err
	case len(out.Item) == 0:
		return store.Record{}, store.ErrNotFound
	}
	return decode(out.Item)
}

// List implements store.Store. Each page is one Query, of up to 1 MB.
func (s *Store) List(ctx context.Context, partition, prefix, after string, limit int) (_ store.Page, err error) {
	defer while(&err, "listing records %q of %q", prefix, partition)
	if err := store.CheckList(partition, prefix, after, limit); err != nil {
		return store.Page{}, err
	}
	in := &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String(AttributePartition + " = :pk"),
		ExpressionAttributeValues: item{":pk": text(partition)},
	}
	if after != "" {
		in.ExclusiveStartKey = itemKey(store.Key{Partition: partition, Sort: after})
	}
	if limit > 0 {
		in.Limit = aws.Int32(int32(min(limit, math.MaxInt32)))
	}
	if prefix != "" {
		*in.KeyConditionExpression += " AND begins_with(" + AttributeSort + ", :prefix)"
		in.ExpressionAttributeValues[":prefix"] = text(prefix)
	}
	out, err := reading(ctx, s, s.client.Query, in)
	if err != nil {
		return store.Page{}, err
	}
	page, last, err := pageOf(out.Items, out.LastEvaluatedKey)
	page.Next = last.Sort
	return page, err
}

// Due implements store.Store. Each page is one Query of up to 100 keys of one shard of the index
// and, unless it is empty, one BatchGetItem for their records. At each minute of before, a listing
// begins with another shard. The records are as the table has them now, whatever the index says.
func (s *Store) Due(ctx context.Context, until time.Time, from string) (_ store.Page, err error) {
	defer while(&err, "listing records due %q", until.UTC().Format(time.RFC3339Nano))
	before := until.UnixMilli()
	first := firstShard(before)
	at, err := parseCursor(from, cursor{Due: &place{First: first, Shard: first}}, func(c cursor) bool {
		return c.Due != nil && min(c.Due.First, c.Due.Shard) >= 0 && max(c.Due.First, c.Due.Shard) < Shards &&
			(c.key() == store.Key{} || store.CheckKey(c.key()) == nil && c.Due.Time <= before)
	})
	if err != nil {
		return store.Page{}, err
	}
	out, err := reading(ctx, s, s.client.Query, &dynamodb.QueryInput{
		TableName:                 &s.table,
		IndexName:                 aws.String(IndexDue),
		KeyConditionExpression:    aws.String("#shard = :shard AND " + AttributeDue + " <= :before"),
		ExpressionAttributeNames:  map[string]string{"#shard": AttributeShard}, // a reserved word
		ExpressionAttributeValues: item{":shard": number(int64(at.Due.Shard)), ":before": number(before)},
		ExclusiveStartKey:         at.start(),
		Limit:                     aws.Int32(duePage),
	})
	if err != nil {
		return store.Page{}, err
	}
	var keys []store.Key
	for _, i := range out.Items {
		k, err := decodeKey(i)
		if err != nil {
			return store.Page{}, err
		}
		// While a record moves within the index, the index may list it twice.
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	var page store.Page
	records, unreadable, err := s.getAll(ctx, keys)
	if err != nil {
		return store.Page{}, err
	}
	for _, k := range keys {
		r := records[k]
		if due, ok := store.Milliseconds(r.Due); ok && due <= before { // an absent record is not due
			page.Records = append(page.Records, r)
		}
	}
	next := cursor{Due: &place{First: at.Due.First, Shard: at.Due.Shard}}
	if len(out.LastEvaluatedKey) > 0 {
		in := reader{item: out.LastEvaluatedKey}
		end := in.key()
		next.Partition, next.Sort = end.Partition, end.Sort
		next.Due.Time, _ = in.number(AttributeDue)
		if in.err != nil {
			return page, errors.Join(unreadable, fmt.Errorf("decoding the end of a page: %w", in.err))
		}
	} else if next.Due.Shard = (at.Due.Shard + 1) % Shards; next.Due.Shard == at.Due.First {
		return page, unreadable
	}
	page.Next = next.String()
	return page, unreadable
}

// Scan implements store.Store.
func (s *Store) Scan(ctx context.Context, from string) (_ store.Page, err error) {
	defer while(&err, "listing all records")
	at, err := parseCursor(from, cursor{}, func(c cursor) bool { return c.Due == nil && store.CheckKey(c.key()) == nil })
	if err != nil {
		return store.Page{}, err
	}
	out, err := reading(ctx, s, s.client.Scan, &dynamodb.ScanInput{
		TableName: &s.table, ConsistentRead: aws.Bool(true), ExclusiveStartKey: at.start(),
	})
	if err != nil {
		return store.Page{}, err
	}
	page, last, err := pageOf(out.Items, out.LastEvaluatedKey)
	if last != (store.Key{}) {
		page.Next = cursor{Partition: last.Partition, Sort: last.Sort}.String()
	}
	return page, err
}

// pageOf returns a page of a listing in the order of the table, and the key after which the
// listing goes on, if it does. The error names the records that cannot be read.
func pageOf(items []map[string]types.AttributeValue, end item) (page store.Page, last store.Key, _ error) {
	var errs []error
	for _, i := range items {
		r, err := decode(i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		page.Records = append(page.Records, r)
	}
	if len(end) > 0 {
		var err error
		last, err = decodeKey(end)
		errs = append(errs, err)
	}
	return page, last, errors.Join(errs...)
}

// duePage is how many keys BatchGetItem takes.
const duePage = 100

// getAll reads up to duePage records. It leaves out absent records and records that cannot be
// read; unreadable names the latter.
func (s *Store) getAll(ctx context.Context, keys []store.Key) (found map[store.Key]store.Record, unreadable, _ error) {
	found = map[store.Key]store.Record{}
	var left []map[string]types.AttributeValue
	for _, k := range keys {
		left = append(left, itemKey(k))
	}
	for idle := 0; len(left) > 0; {
		out, err := reading(ctx, s, s.client.BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: left, ConsistentRead: aws.Bool(true)}},
		})
		if err != nil {
			return nil, nil, err
		}
		for _, i := range out.Responses[s.table] {
			r, err := decode(i)
			if err != nil {
				unreadable = errors.Join(unreadable, err)
				continue
			}
			found[r.Key] = r
		}
		// Keys are left over because one answer has no room for them or, if no key was
		// answered, because they were throttled.
		rest := out.UnprocessedKeys[s.table].Keys
		if len(rest) < len(left) {
			idle = 0
		} else if idle++; idle >= maxTries {
			return nil, nil, errUnprocessed
		} else if err := s.sleep(ctx, s.pause(idle)); err != nil {
			return nil, nil, err
		}
		left = rest
	}
	return found, unreadable, nil
}
