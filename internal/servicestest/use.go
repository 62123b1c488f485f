package servicestest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// said is what is written and has to come back.
const said = "hello"

// same is an error unless what came back is what was written.
func same(got string) error {
	if got != said {
		return fmt.Errorf("read %q, want what was written, %q", got, said)
	}
	return nil
}

func useTable(ctx context.Context, c aws.Config, got map[string]string) error {
	api := dynamodb.NewFromConfig(c)
	table, id := aws.String(got["table_name"]), dynamotypes.AttributeValueMemberS{Value: "1"}
	key := map[string]dynamotypes.AttributeValue{"id": &id}
	_, err := api.PutItem(ctx, &dynamodb.PutItemInput{TableName: table,
		Item: map[string]dynamotypes.AttributeValue{"id": &id, "text": &dynamotypes.AttributeValueMemberS{Value: said}}})
	if err != nil {
		return err
	}
	read, err := api.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return err
	}
	text, _ := read.Item["text"].(*dynamotypes.AttributeValueMemberS)
	if text == nil {
		return same("")
	}
	return same(text.Value)
}

func useBus(ctx context.Context, c aws.Config, got map[string]string) error {
	api := eventbridge.NewFromConfig(c)
	bus, rule := aws.String(got["event_bus_name"]), aws.String("greetings")
	pattern := aws.String(`{"source":["application"]}`)
	if _, err := api.PutRule(ctx, &eventbridge.PutRuleInput{EventBusName: bus, Name: rule, EventPattern: pattern}); err != nil {
		return err
	}
	sent, err := api.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
		EventBusName: bus, Source: aws.String("application"), DetailType: aws.String("greeting"), Detail: aws.String(`{"text":"` + said + `"}`),
	}}})
	if err != nil {
		return err
	}
	if sent.FailedEntryCount != 0 || len(sent.Entries) != 1 || aws.ToString(sent.Entries[0].EventId) == "" {
		return fmt.Errorf("%d events were not taken", sent.FailedEntryCount)
	}
	_, err = api.DeleteRule(ctx, &eventbridge.DeleteRuleInput{EventBusName: bus, Name: rule})
	return err
}

func useStream(ctx context.Context, c aws.Config, got map[string]string) error {
	api := kinesis.NewFromConfig(c)
	stream := aws.String(got["stream_name"])
	put, err := api.PutRecord(ctx, &kinesis.PutRecordInput{StreamName: stream, PartitionKey: aws.String("k"), Data: []byte(said)})
	if err != nil {
		return err
	}
	seen, err := api.DescribeStreamSummary(ctx, &kinesis.DescribeStreamSummaryInput{StreamName: stream})
	if err != nil {
		return err
	}
	at, err := api.GetShardIterator(ctx, &kinesis.GetShardIteratorInput{StreamName: stream, ShardId: put.ShardId,
		ShardIteratorType: kinesistypes.ShardIteratorTypeTrimHorizon})
	if err != nil {
		return err
	}
	read, err := api.GetRecords(ctx, &kinesis.GetRecordsInput{ShardIterator: at.ShardIterator,
		StreamARN: seen.StreamDescriptionSummary.StreamARN}) // an emulator needs it to tell whose records these are
	if err != nil {
		return err
	}
	if len(read.Records) == 0 {
		return same("")
	}
	return same(string(read.Records[0].Data))
}

func useKey(ctx context.Context, c aws.Config, got map[string]string) error {
	api := kms.NewFromConfig(c)
	key := aws.String(got["key_arn"])
	sealed, err := api.Encrypt(ctx, &kms.EncryptInput{KeyId: key, Plaintext: []byte(said)})
	if err != nil {
		return err
	}
	if bytes.Contains(sealed.CiphertextBlob, []byte(said)) {
		return fmt.Errorf("the text is not encrypted")
	}
	opened, err := api.Decrypt(ctx, &kms.DecryptInput{KeyId: key, CiphertextBlob: sealed.CiphertextBlob})
	if err != nil {
		return err
	}
	return same(string(opened.Plaintext))
}

func useBucket(ctx context.Context, c aws.Config, got map[string]string) error {
	api := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true })
	bucket, key := aws.String(got["bucket"]), aws.String("greeting")
	if got["uri"] != "s3://"+*bucket {
		return fmt.Errorf("the uri is %q, and the bucket %q", got["uri"], *bucket)
	}
	if _, err := api.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key, Body: bytes.NewReader([]byte(said))}); err != nil {
		return err
	}
	read, err := api.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	defer func() { _ = read.Body.Close() }()
	text, err := io.ReadAll(read.Body)
	if err != nil {
		return err
	}
	if _, err := api.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket}); err != nil {
		return err
	}
	return same(string(text))
}

func useSecret(ctx context.Context, c aws.Config, got map[string]string) error {
	api := secretsmanager.NewFromConfig(c)
	secret := aws.String(got["secret_arn"])
	first, err := api.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: secret})
	if err != nil {
		return err
	}
	if aws.ToString(first.SecretString) == "" {
		return fmt.Errorf("the secret begins empty")
	}
	if _, err := api.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: secret, SecretString: aws.String(said)}); err != nil {
		return err
	}
	read, err := api.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: secret})
	if err != nil {
		return err
	}
	return same(aws.ToString(read.SecretString))
}

func useTopic(ctx context.Context, c aws.Config, got map[string]string) error {
	sent, err := sns.NewFromConfig(c).Publish(ctx, &sns.PublishInput{TopicArn: aws.String(got["topic_arn"]), Message: aws.String(said)})
	if err != nil {
		return err
	}
	if aws.ToString(sent.MessageId) == "" {
		return fmt.Errorf("the message was not taken")
	}
	return nil
}

func useQueue(ctx context.Context, c aws.Config, got map[string]string) error {
	api := sqs.NewFromConfig(c)
	queue := aws.String(got["queue_url"])
	if _, err := api.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String(said)}); err != nil {
		return err
	}
	read, err := api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue})
	if err != nil {
		return err
	}
	var bodies []string
	for _, m := range read.Messages {
		bodies = append(bodies, aws.ToString(m.Body))
		if _, err := api.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: queue, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err
		}
	}
	if !slices.Contains(bodies, said) {
		return same("")
	}
	return nil
}
