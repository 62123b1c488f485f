// Package dynamotest makes tables as package dynamo describes them, for the
// tests of all who need one. What is deployed is made by the infrastructure,
// from the same names.
package dynamotest

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/emulator"
)

// patience bounds the wait for a table.
const patience = time.Minute

// NewTable makes an empty table with a name of its own, which goes when the
// test ends.
func NewTable(t testing.TB, client *dynamodb.Client) (name string) {
	t.Helper()
	name = emulator.Name("longshore-test")
	if err := CreateTable(t.Context(), client, name); err != nil {
		t.Fatalf("creating table %q: %v", name, err)
	}
	t.Cleanup(func() {
		// The test's own context has ended.
		if _, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Errorf("deleting table %q: %v", name, err)
		}
	})
	return name
}

// CreateTable makes the table and waits until it is there.
func CreateTable(ctx context.Context, client *dynamodb.Client, name string) error {
	key := func(attribute string, t types.KeyType) types.KeySchemaElement {
		return types.KeySchemaElement{AttributeName: &attribute, KeyType: t}
	}
	attribute := func(name string, t types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: t}
	}
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &name,
		AttributeDefinitions: []types.AttributeDefinition{
			attribute(dynamo.AttributePartition, types.ScalarAttributeTypeS),
			attribute(dynamo.AttributeSort, types.ScalarAttributeTypeS),
			attribute(dynamo.AttributeShard, types.ScalarAttributeTypeN),
			attribute(dynamo.AttributeDue, types.ScalarAttributeTypeN),
		},
		KeySchema: []types.KeySchemaElement{
			key(dynamo.AttributePartition, types.KeyTypeHash), key(dynamo.AttributeSort, types.KeyTypeRange),
		},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String(dynamo.IndexDue),
			KeySchema: []types.KeySchemaElement{
				key(dynamo.AttributeShard, types.KeyTypeHash), key(dynamo.AttributeDue, types.KeyTypeRange),
			},
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		BillingMode: types.BillingModePayPerRequest,
	})
	if err != nil {
		return err
	}
	waiter := dynamodb.NewTableExistsWaiter(client,
		func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 100 * time.Millisecond })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &name}, patience); err != nil {
		return err
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(dynamo.AttributeExpires), Enabled: aws.Bool(true),
		},
	})
	return err
}
