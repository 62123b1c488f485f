package servicestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// Parameters of tables: all of an order, and those of an update.
const (
	sortedTable = `{"partition_key":"customer","partition_key_type":"N","sort_key":"at",` +
		`"sort_key_type":"B","ttl_attribute":"ends"}`
	expiring = `{"ttl_attribute":"until"}`
)

func seeTable(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	api, table := dynamodb.NewFromConfig(c), aws.String(got["table_name"])
	seen, err := api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: table})
	if err != nil {
		return nil, err
	}
	expiry, err := api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: table})
	if err != nil {
		return nil, err
	}
	out, types := map[string]any{}, map[string]any{}
	for _, a := range seen.Table.AttributeDefinitions {
		types[*a.AttributeName] = a.AttributeType
	}
	for _, k := range seen.Table.KeySchema {
		name := "partition_key"
		if k.KeyType == dynamotypes.KeyTypeRange {
			name = "sort_key"
		}
		out[name], out[name+"_type"] = *k.AttributeName, types[*k.AttributeName]
	}
	if d := expiry.TimeToLiveDescription; d != nil {
		out["ttl_attribute"] = aws.ToString(d.AttributeName)
	}
	return out, nil
}

func seeBus(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	in := &eventbridge.DescribeEventBusInput{Name: aws.String(got["event_bus_name"])}
	seen, err := eventbridge.NewFromConfig(c).DescribeEventBus(ctx, in)
	if err != nil {
		return nil, err
	}
	return map[string]any{"description": aws.ToString(seen.Description)}, nil
}

func seeStream(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	in := &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(got["stream_name"])}
	seen, err := kinesis.NewFromConfig(c).DescribeStreamSummary(ctx, in)
	if err != nil {
		return nil, err
	}
	s := seen.StreamDescriptionSummary
	return map[string]any{"retention_hours": aws.ToInt32(s.RetentionPeriodHours), "shards": aws.ToInt32(s.OpenShardCount)}, nil
}

func seeKey(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	api, key := kms.NewFromConfig(c), aws.String(got["key_arn"])
	seen, err := api.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: key})
	if err != nil {
		return nil, err
	}
	out := map[string]any{"description": aws.ToString(seen.KeyMetadata.Description)}
	// MiniStack answers with a text, where the SDK reads a number alone.
	if rotation, err := api.GetKeyRotationStatus(ctx, &kms.GetKeyRotationStatusInput{KeyId: key}); err == nil {
		out["rotation_days"] = aws.ToInt32(rotation.RotationPeriodInDays)
	}
	return out, nil
}

func seeBucket(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	api, bucket := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }), aws.String(got["bucket"])
	versions, err := api.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: bucket})
	if err != nil {
		return nil, err
	}
	out := map[string]any{"versioning": versions.Status}
	seen, err := api.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
	if e, ok := errors.AsType[smithy.APIError](err); ok && e.ErrorCode() == "NoSuchLifecycleConfiguration" {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	for _, r := range seen.Rules {
		if r.Expiration != nil {
			out["expire_days"] = aws.ToInt32(r.Expiration.Days)
		}
		if r.NoncurrentVersionExpiration != nil {
			out["noncurrent_days"] = aws.ToInt32(r.NoncurrentVersionExpiration.NoncurrentDays)
		}
	}
	return out, nil
}

func seeSecret(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	in := &secretsmanager.DescribeSecretInput{SecretId: aws.String(got["secret_arn"])}
	seen, err := secretsmanager.NewFromConfig(c).DescribeSecret(ctx, in)
	if err != nil {
		return nil, err
	}
	return map[string]any{"description": aws.ToString(seen.Description)}, nil
}

func seeTopic(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	seen, err := sns.NewFromConfig(c).GetTopicAttributes(ctx,
		&sns.GetTopicAttributesInput{TopicArn: aws.String(got["topic_arn"])})
	if err != nil {
		return nil, err
	}
	a := seen.Attributes
	return map[string]any{"display_name": a["DisplayName"], "content_based_deduplication": a["ContentBasedDeduplication"]}, nil
}

// redrive is where a queue puts messages that could not be handled.
type redrive struct {
	DeadLetterTargetArn string
	MaxReceiveCount     any // a number, or a text
}

func seeQueue(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	a, to, err := attributes(ctx, sqs.NewFromConfig(c), got["queue_url"])
	return map[string]any{
		"visibility_timeout": a["VisibilityTimeout"], "retention_seconds": a["MessageRetentionPeriod"],
		"delay_seconds": a["DelaySeconds"], "max_receives": to.MaxReceiveCount,
		"content_based_deduplication": a["ContentBasedDeduplication"],
	}, err
}

func attributes(ctx context.Context, api *sqs.Client, queue string) (all map[string]string, to redrive, err error) {
	in := &sqs.GetQueueAttributesInput{QueueUrl: &queue,
		AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll}}
	seen, err := api.GetQueueAttributes(ctx, in)
	if err != nil {
		return nil, to, err
	}
	if err := json.Unmarshal([]byte(seen.Attributes["RedrivePolicy"]), &to); err != nil {
		return nil, to, fmt.Errorf("reading where dead letters go: %w", err)
	}
	return seen.Attributes, to, nil
}

func seeLog(ctx context.Context, c aws.Config, got map[string]string) (map[string]any, error) {
	raw, err := callLogs(ctx, c, "DescribeLogGroups", map[string]any{"logGroupNamePrefix": got["log_group"]})
	if err != nil {
		return nil, err
	}
	var seen struct {
		LogGroups []struct{ RetentionInDays int }
	}
	if err := json.Unmarshal(raw, &seen); err != nil || len(seen.LogGroups) != 1 {
		return nil, fmt.Errorf("%d log groups: %w", len(seen.LogGroups), err)
	}
	return map[string]any{"retention_days": seen.LogGroups[0].RetentionInDays}, nil
}

// DeadLetter makes a dead letter of a message, in a queue where a message is given up
// when it was taken once. What it returns removes it.
func DeadLetter(ctx context.Context, c aws.Config, got map[string]string) (remove func(aws.Config) error, err error) {
	api := sqs.NewFromConfig(c)
	queue := got["queue_url"]
	if err := send(ctx, api, queue); err != nil {
		return nil, err
	}
	a, to, err := attributes(ctx, api, queue)
	if err != nil {
		return nil, err
	}
	if a["VisibilityTimeout"] != "0" || fmt.Sprint(to.MaxReceiveCount) != "1" {
		return nil, errors.New("a message is taken more than once, or is seen again too late")
	}
	if arn := got["dead_letter_queue_arn"]; to.DeadLetterTargetArn != arn {
		return nil, fmt.Errorf("dead letters go to %q, and the binding says to %q", to.DeadLetterTargetArn, arn)
	}
	dead := got["dead_letter_queue_url"]
	for _, from := range []*string{&queue, &queue, &dead} {
		read, err := api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: from, WaitTimeSeconds: 2})
		if err != nil {
			return nil, err
		}
		for _, m := range read.Messages {
			if from == &dead && aws.ToString(m.Body) == said {
				return func(c aws.Config) error {
					_, err := sqs.NewFromConfig(c).DeleteMessage(ctx,
						&sqs.DeleteMessageInput{QueueUrl: from, ReceiptHandle: m.ReceiptHandle})
					return err
				}, nil
			}
		}
	}
	return nil, fmt.Errorf("the message is not among the dead letters, %s", dead)
}
