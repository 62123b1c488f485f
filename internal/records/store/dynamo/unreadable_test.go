package dynamo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/expect"
)

// spoilt is a table of three items, of which somebody has spoilt the second. It
// answers each reading with all of them.
type spoilt struct {
	dynamo.API
	items []map[string]types.AttributeValue
}

func newSpoilt() spoilt {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	var s spoilt
	for _, sort := range []string{"a", "b", "c"} {
		s.items = append(s.items, map[string]types.AttributeValue{
			dynamo.AttributePartition: text("p"), dynamo.AttributeSort: text(sort), dynamo.AttributeVersion: number("1"),
			dynamo.AttributeDue: number("1"), dynamo.AttributeShard: number("0"),
		})
	}
	s.items[1][dynamo.AttributeVersion] = text("one")
	return s
}

// Query answers for one shard alone.
func (s spoilt) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out := &dynamodb.QueryOutput{Items: s.items}
	if shard, ok := in.ExpressionAttributeValues[":shard"].(*types.AttributeValueMemberN); ok && shard.Value != "0" {
		out.Items = nil
	}
	return out, nil
}

func (s spoilt) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (
	*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}}
	for table := range in.RequestItems {
		out.Responses[table] = s.items
	}
	return out, nil
}

func (s spoilt) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return &dynamodb.ScanOutput{Items: s.items, LastEvaluatedKey: map[string]types.AttributeValue{
		dynamo.AttributePartition: s.items[2][dynamo.AttributePartition], dynamo.AttributeSort: s.items[2][dynamo.AttributeSort],
	}}, nil
}

// A record that cannot be read takes no other with it out of what is listed, and is
// named.
func TestARecordThatCannotBeRead(t *testing.T) {
	s := dynamo.New(newSpoilt(), "table", dynamo.Options{})
	before := time.Unix(dynamo.Shards*60, 0) // a listing that begins with the first shard
	tests := map[string]struct {
		reason string
		list   func() (store.Page, error)
		want   []string
		more   bool
	}{
		"Scan": {"an operator looks at everything", func() (store.Page, error) {
			return s.Scan(t.Context(), "")
		}, []string{"a", "c"}, true},
		"Due": {"the reaper deals with the rest", func() (store.Page, error) {
			return s.Due(t.Context(), before, "")
		}, []string{"a", "c"}, true},
		"List": {"an operator sees the rest, and who decides by what is missing stops at the error", func() (store.Page, error) {
			return s.List(t.Context(), "p", "", "", 0)
		}, []string{"a", "c"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			page, err := test.list()
			for _, r := range page.Records {
				got = append(got, r.Sort)
			}
			expect.Same(t, test.reason, test.want, got)
			if !errors.Is(err, store.ErrUnreadable) || !strings.Contains(err.Error(), `"b"`) {
				t.Errorf("%s: the error is %v, want one that is %v and names the record", test.reason, err, store.ErrUnreadable)
			}
			if test.more != (page.Next != "") {
				t.Errorf("%s: the next page is %q", test.reason, page.Next)
			}
		})
	}
}
