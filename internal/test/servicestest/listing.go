package servicestest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Listing names what there is in an account, of all kinds that instances and bindings
// are made of, in order. Keys that wait to be deleted are left out: nothing removes
// them sooner. With a part, only lines with it, such as "stack longshore-", are
// listed, and no keys, which have no names.
func Listing(ctx context.Context, c aws.Config, part string) ([]string, error) {
	var all []string
	for kind, list := range map[string]func(context.Context, aws.Config) ([]string, error){
		"bucket": buckets, "queue": queues, "topic": topics, "table": tables, "stream": streams, "secret": secrets, "bus": buses,
		"stack": stacks, "user": users, "role": roles, "policy": policies, "key": keys,
	} {
		if kind == "key" && part != "" {
			continue
		}
		names, err := list(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("listing each %s: %w", kind, err)
		}
		for _, name := range names {
			if one := kind + " " + name; strings.Contains(one, part) {
				all = append(all, one)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

func buckets(ctx context.Context, c aws.Config) (names []string, err error) {
	out, err := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }).ListBuckets(ctx, &s3.ListBucketsInput{})
	if err != nil {
		return nil, err
	}
	for _, b := range out.Buckets {
		names = append(names, aws.ToString(b.Name))
	}
	return names, nil
}

func queues(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := sqs.NewListQueuesPaginator(sqs.NewFromConfig(c), &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, out.QueueUrls...)
	}
	return names, nil
}

func topics(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := sns.NewListTopicsPaginator(sns.NewFromConfig(c), &sns.ListTopicsInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range out.Topics {
			names = append(names, aws.ToString(t.TopicArn))
		}
	}
	return names, nil
}

func tables(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := dynamodb.NewListTablesPaginator(dynamodb.NewFromConfig(c), &dynamodb.ListTablesInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, out.TableNames...)
	}
	return names, nil
}

func streams(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := kinesis.NewListStreamsPaginator(kinesis.NewFromConfig(c), &kinesis.ListStreamsInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		names = append(names, out.StreamNames...)
	}
	return names, nil
}

func secrets(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := secretsmanager.NewListSecretsPaginator(secretsmanager.NewFromConfig(c), &secretsmanager.ListSecretsInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range out.SecretList {
			names = append(names, aws.ToString(s.Name))
		}
	}
	return names, nil
}

func buses(ctx context.Context, c aws.Config) (names []string, err error) {
	out, err := eventbridge.NewFromConfig(c).ListEventBuses(ctx, &eventbridge.ListEventBusesInput{})
	if err != nil {
		return nil, err
	}
	for _, b := range out.EventBuses {
		names = append(names, aws.ToString(b.Name))
	}
	return names, nil
}

func stacks(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := cfn.NewDescribeStacksPaginator(cfn.NewFromConfig(c), &cfn.DescribeStacksInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range out.Stacks {
			if s.StackStatus != cfntypes.StackStatusDeleteComplete {
				names = append(names, aws.ToString(s.StackName))
			}
		}
	}
	return names, nil
}

func users(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := iam.NewListUsersPaginator(iam.NewFromConfig(c), &iam.ListUsersInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, u := range out.Users {
			names = append(names, aws.ToString(u.UserName))
		}
	}
	return names, nil
}

func roles(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := iam.NewListRolesPaginator(iam.NewFromConfig(c), &iam.ListRolesInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range out.Roles {
			names = append(names, aws.ToString(r.RoleName))
		}
	}
	return names, nil
}

func policies(ctx context.Context, c aws.Config) (names []string, err error) {
	pages := iam.NewListPoliciesPaginator(iam.NewFromConfig(c), &iam.ListPoliciesInput{Scope: "Local"})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range out.Policies {
			names = append(names, aws.ToString(p.PolicyName))
		}
	}
	return names, nil
}

func keys(ctx context.Context, c aws.Config) (names []string, err error) {
	api := kms.NewFromConfig(c)
	pages := kms.NewListKeysPaginator(api, &kms.ListKeysInput{})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, k := range out.Keys {
			key, err := api.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: k.KeyId})
			if err != nil {
				return nil, err
			}
			if key.KeyMetadata.KeyState != kmstypes.KeyStatePendingDeletion {
				names = append(names, aws.ToString(k.KeyId))
			}
		}
	}
	return names, nil
}
