package servicestest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// A Change is an update of an instance, and how it is seen in the account.
type Change struct {
	// Parameters are the update's, in JSON.
	Parameters string
	// Want is what the account shows afterwards, and did not show before.
	Want string
	// See reads it, as somebody who may do all.
	See func(ctx context.Context, c aws.Config, credentials map[string]string) (string, error)
}

var (
	changedBucket = &Change{`{"versioning":"Enabled"}`, "Enabled",
		func(ctx context.Context, c aws.Config, got map[string]string) (string, error) {
			api := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true })
			seen, err := api.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: aws.String(got["bucket"])})
			if err != nil {
				return "", err
			}
			return string(seen.Status), nil
		}}
	changedLog = &Change{`{"retention_days":7}`, "7",
		func(ctx context.Context, c aws.Config, got map[string]string) (string, error) {
			raw, err := callLogs(ctx, c, "DescribeLogGroups", map[string]any{"logGroupNamePrefix": got["log_group"]})
			if err != nil {
				return "", err
			}
			var seen struct {
				LogGroups []struct{ RetentionInDays int }
			}
			if err := json.Unmarshal(raw, &seen); err != nil || len(seen.LogGroups) != 1 {
				return "", fmt.Errorf("%d log groups: %w", len(seen.LogGroups), err)
			}
			return fmt.Sprint(seen.LogGroups[0].RetentionInDays), nil
		}}
	changedQueue = &Change{`{"visibility_timeout":60}`, "60",
		func(ctx context.Context, c aws.Config, got map[string]string) (string, error) {
			return attribute(ctx, sqs.NewFromConfig(c), got["queue_url"], sqstypes.QueueAttributeNameVisibilityTimeout)
		}}
	changedStream = &Change{`{"retention_hours":48}`, "48",
		func(ctx context.Context, c aws.Config, got map[string]string) (string, error) {
			in := &kinesis.DescribeStreamSummaryInput{StreamName: aws.String(got["stream_name"])}
			seen, err := kinesis.NewFromConfig(c).DescribeStreamSummary(ctx, in)
			if err != nil {
				return "", err
			}
			return fmt.Sprint(aws.ToInt32(seen.StreamDescriptionSummary.RetentionPeriodHours)), nil
		}}
)

// attribute is one of a queue's.
func attribute(ctx context.Context, api *sqs.Client, queue string, name sqstypes.QueueAttributeName) (string, error) {
	in := &sqs.GetQueueAttributesInput{QueueUrl: &queue, AttributeNames: []sqstypes.QueueAttributeName{name}}
	seen, err := api.GetQueueAttributes(ctx, in)
	if err != nil {
		return "", err
	}
	return seen.Attributes[string(name)], nil
}

// DeadLetter makes a dead letter of a message, in a FIFO queue where a message is seen
// again at once, and is given up when it was taken once. What it returns removes it.
func DeadLetter(ctx context.Context, c aws.Config, got map[string]string) (remove func(aws.Config) error, err error) {
	api := sqs.NewFromConfig(c)
	queue := aws.String(got["queue_url"])
	_, err = api.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String(said),
		MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("1")})
	if err != nil {
		return nil, err
	}
	rule, err := attribute(ctx, api, *queue, sqstypes.QueueAttributeNameRedrivePolicy)
	if err != nil {
		return nil, err
	}
	var to struct{ DeadLetterTargetArn string }
	if err := json.Unmarshal([]byte(rule), &to); err != nil {
		return nil, fmt.Errorf("reading where dead letters go: %w", err)
	}
	name := to.DeadLetterTargetArn[strings.LastIndex(to.DeadLetterTargetArn, ":")+1:]
	dead, err := api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err != nil {
		return nil, err
	}
	for _, from := range []*string{queue, queue, dead.QueueUrl} {
		read, err := api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: from, WaitTimeSeconds: 1})
		if err != nil {
			return nil, err
		}
		for _, m := range read.Messages {
			if from == dead.QueueUrl && aws.ToString(m.Body) == said {
				return func(c aws.Config) error {
					_, err := sqs.NewFromConfig(c).DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: from, ReceiptHandle: m.ReceiptHandle})
					return err
				}, nil
			}
		}
	}
	return nil, fmt.Errorf("the message is not among the dead letters, %s", name)
}
