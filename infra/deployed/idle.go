package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/store/dynamo"
)

// Tables is what is called of *dynamodb.Client.
type Tables interface {
	Scan(ctx context.Context, in *dynamodb.ScanInput, opts ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// instanceSort is the sort key of instances. The test writes one as the broker
// does, so that it cannot change unseen.
const instanceSort = "INSTANCE"

// shown is how many instances are listed by name.
const shown = 20

// idle is an error if an instance lives: with the broker gone, nobody could
// delete it any more.
func idle(ctx context.Context, client Tables, table string, out io.Writer) error {
	live, err := Live(ctx, client, table)
	if err != nil {
		return fmt.Errorf("whether instances live cannot be told: %w", err)
	}
	if len(live) == 0 {
		_, err := fmt.Fprintln(out, "no instance lives")
		return err
	}
	for n, i := range live {
		if n == shown {
			_, _ = fmt.Fprintf(out, "  and %d more\n", len(live)-shown)
			break
		}
		_, _ = fmt.Fprintf(out, "  %q of platform %q: %s\n", i.Key.Instance, i.Key.Platform, i.State)
	}
	return fmt.Errorf("instances that live: %d; have the platform delete them first", len(live))
}

// Live reads the whole table for the instances of which something may exist:
// all but those whose deletion has succeeded. One that cannot be read is an
// error, since it may live.
func Live(ctx context.Context, client Tables, table string) ([]lifecycle.Record, error) {
	in := &dynamodb.ScanInput{
		TableName: &table, ConsistentRead: aws.Bool(true),
		FilterExpression:          aws.String("#sort = :instance"),
		ProjectionExpression:      aws.String("#partition, #schema, #body"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":instance": &types.AttributeValueMemberS{Value: instanceSort}},
		ExpressionAttributeNames: map[string]string{
			"#partition": dynamo.AttributePartition, "#sort": dynamo.AttributeSort, "#schema": dynamo.AttributeSchema, "#body": dynamo.AttributeBody,
		},
	}
	var live []lifecycle.Record
	for {
		page, err := client.Scan(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("reading table %q: %w", table, err)
		}
		for _, item := range page.Items {
			i, err := read(item)
			if err != nil {
				return nil, err
			}
			if i.State != lifecycle.Deleted {
				live = append(live, i)
			}
		}
		if len(page.LastEvaluatedKey) == 0 {
			return live, nil
		}
		in.ExclusiveStartKey = page.LastEvaluatedKey
	}
}

func read(item map[string]types.AttributeValue) (lifecycle.Record, error) {
	var i lifecycle.Record
	partition, _ := item[dynamo.AttributePartition].(*types.AttributeValueMemberS)
	body, ok := item[dynamo.AttributeBody].(*types.AttributeValueMemberB)
	if partition == nil || !ok {
		return i, fmt.Errorf("a record is damaged: it has no partition, or no body")
	}
	schema, _ := item[dynamo.AttributeSchema].(*types.AttributeValueMemberN)
	if schema == nil || schema.Value != fmt.Sprint(ledger.Schema) {
		return i, fmt.Errorf("record %q is of another encoding than this program reads: run the version that was deployed", partition.Value)
	}
	if err := json.Unmarshal(body.Value, &i); err != nil {
		return i, fmt.Errorf("record %q is damaged: %w", partition.Value, err)
	}
	return i, nil
}
