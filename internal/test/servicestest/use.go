package servicestest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
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
	table, key := aws.String(got["table_name"]), map[string]dynamotypes.AttributeValue{}
	seen, err := api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: table})
	if err != nil {
		return err
	}
	for _, a := range seen.Table.AttributeDefinitions {
		key[*a.AttributeName] = map[dynamotypes.ScalarAttributeType]dynamotypes.AttributeValue{
			dynamotypes.ScalarAttributeTypeS: &dynamotypes.AttributeValueMemberS{Value: "1"},
			dynamotypes.ScalarAttributeTypeN: &dynamotypes.AttributeValueMemberN{Value: "1"},
			dynamotypes.ScalarAttributeTypeB: &dynamotypes.AttributeValueMemberB{Value: []byte("1")},
		}[a.AttributeType]
	}
	item := maps.Clone(key)
	item["text"] = &dynamotypes.AttributeValueMemberS{Value: said}
	if _, err := api.PutItem(ctx, &dynamodb.PutItemInput{TableName: table, Item: item}); err != nil {
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

func useRules(ctx context.Context, c aws.Config, got map[string]string) error {
	if err := putRule(ctx, c, got); err != nil {
		return err
	}
	if err := useBus(ctx, c, got); err != nil {
		return err
	}
	in := &eventbridge.DeleteRuleInput{EventBusName: aws.String(got["event_bus_name"]), Name: aws.String("greetings")}
	_, err := eventbridge.NewFromConfig(c).DeleteRule(ctx, in)
	return err
}

func putRule(ctx context.Context, c aws.Config, got map[string]string) error {
	_, err := eventbridge.NewFromConfig(c).PutRule(ctx, &eventbridge.PutRuleInput{EventBusName: aws.String(got["event_bus_name"]),
		Name: aws.String("greetings"), EventPattern: aws.String(`{"source":["application"]}`)})
	return err
}

func useBus(ctx context.Context, c aws.Config, got map[string]string) error {
	sent, err := eventbridge.NewFromConfig(c).PutEvents(ctx,
		&eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
			EventBusName: aws.String(got["event_bus_name"]), Source: aws.String("application"),
			DetailType: aws.String("greeting"), Detail: aws.String(`{"text":"` + said + `"}`),
		}}})
	if err != nil {
		return err
	}
	if sent.FailedEntryCount != 0 || len(sent.Entries) != 1 || aws.ToString(sent.Entries[0].EventId) == "" {
		return fmt.Errorf("%d events were not taken", sent.FailedEntryCount)
	}
	return nil
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

func useSignature(ctx context.Context, c aws.Config, got map[string]string) error {
	api := kms.NewFromConfig(c)
	key, text := aws.String(got["key_arn"]), []byte(said)
	signed, err := api.Sign(ctx, &kms.SignInput{KeyId: key, Message: text,
		SigningAlgorithm: kmstypes.SigningAlgorithmSpecEcdsaSha256})
	if err != nil {
		return err
	}
	verified, err := api.Verify(ctx, &kms.VerifyInput{KeyId: key, Message: text, Signature: signed.Signature,
		SigningAlgorithm: kmstypes.SigningAlgorithmSpecEcdsaSha256})
	if err == nil && !verified.SignatureValid {
		err = errors.New("the signature is not valid")
	}
	return err
}

func disableKey(ctx context.Context, c aws.Config, got map[string]string) error {
	_, err := kms.NewFromConfig(c).DisableKey(ctx, &kms.DisableKeyInput{KeyId: aws.String(got["key_arn"])})
	return err
}

// deleteVersion is of the object that useBucket puts.
func deleteVersion(ctx context.Context, c aws.Config, got map[string]string) error {
	api := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true })
	bucket, key := aws.String(got["bucket"]), aws.String("greeting")
	seen, err := api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: bucket, Key: key})
	if err != nil {
		return err
	}
	_, err = api.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: key, VersionId: seen.VersionId})
	return err
}

func useBucket(ctx context.Context, c aws.Config, got map[string]string) error {
	api := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true })
	bucket, key := aws.String(got["bucket"]), aws.String("greeting")
	if got["uri"] != "s3://"+*bucket {
		return fmt.Errorf("the uri is %q, and the bucket %q", got["uri"], *bucket)
	}
	if _, err := api.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: key,
		Body: bytes.NewReader([]byte(said))}); err != nil {
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
	if _, err := api.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{SecretId: secret,
		SecretString: aws.String(said)}); err != nil {
		return err
	}
	read, err := api.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: secret})
	if err != nil {
		return err
	}
	return same(aws.ToString(read.SecretString))
}

// fifo are the ids that a topic or a queue that keeps the order asks of a message, by
// its name: a group, and one that no other message has.
func fifo(name string) (group, once *string) {
	if !strings.HasSuffix(name, ".fifo") {
		return nil, nil
	}
	return aws.String("g"), aws.String(rand.Text())
}

func useTopic(ctx context.Context, c aws.Config, got map[string]string) error {
	in := &sns.PublishInput{TopicArn: aws.String(got["topic_arn"]), Message: aws.String(said)}
	in.MessageGroupId, in.MessageDeduplicationId = fifo(*in.TopicArn)
	sent, err := sns.NewFromConfig(c).Publish(ctx, in)
	if err != nil {
		return err
	}
	if aws.ToString(sent.MessageId) == "" {
		return errors.New("the message was not taken")
	}
	return nil
}

func useQueue(ctx context.Context, c aws.Config, got map[string]string) error {
	api := sqs.NewFromConfig(c)
	queue := aws.String(got["queue_url"])
	if err := send(ctx, api, *queue); err != nil {
		return err
	}
	read, err := api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue})
	if err != nil {
		return err
	}
	var bodies []string
	for _, m := range read.Messages {
		bodies = append(bodies, aws.ToString(m.Body))
		if _, err := api.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: queue,
			ReceiptHandle: m.ReceiptHandle}); err != nil {
			return err
		}
	}
	if !slices.Contains(bodies, said) {
		return same("")
	}
	_, err = api.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(got["dead_letter_queue_url"])})
	return err
}

func send(ctx context.Context, api *sqs.Client, queue string) error {
	in := &sqs.SendMessageInput{QueueUrl: &queue, MessageBody: aws.String(said)}
	in.MessageGroupId, in.MessageDeduplicationId = fifo(queue)
	_, err := api.SendMessage(ctx, in)
	return err
}
