package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	taggingtypes "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/awserr"
)

// resources are those of a stack that exist, by their types.
func (a *account) resources(ctx context.Context, id string, kinds ...string) (out []types.StackResourceSummary, err error) {
	pages := cfn.NewListStackResourcesPaginator(a.stacks, &cfn.ListStackResourcesInput{StackName: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the resources of stack %q: %w", id, err)
		}
		for _, r := range page.StackResourceSummaries {
			for _, kind := range kinds {
				if aws.ToString(r.ResourceType) == kind && aws.ToString(r.PhysicalResourceId) != "" &&
					r.ResourceStatus != types.ResourceStatusDeleteComplete {
					out = append(out, r)
				}
			}
		}
	}
	return out, nil
}

// The types of resources that say what they hold. What others hold cannot be seen, or
// they hold nothing.
const (
	kindBucket = "AWS::S3::Bucket"
	kindQueue  = "AWS::SQS::Queue"
	kindTable  = "AWS::DynamoDB::Table"
)

func (a *account) holds(ctx context.Context, id string) (string, error) {
	all, err := a.resources(ctx, id, kindBucket, kindQueue, kindTable)
	if err != nil {
		return "", err
	}
	for _, r := range all {
		look := map[string]func(context.Context, string) (string, error){
			kindBucket: a.bucketHolds, kindQueue: a.queueHolds, kindTable: a.tableHolds,
		}[aws.ToString(r.ResourceType)]
		what, err := look(ctx, aws.ToString(r.PhysicalResourceId))
		if err != nil && !awserr.Is(err, awserr.Absent) {
			return "", fmt.Errorf("looking into resource %q: %w", aws.ToString(r.LogicalResourceId), err)
		}
		if err == nil && what != "" {
			return aws.ToString(r.LogicalResourceId) + " holds " + what, nil
		}
	}
	return "", nil
}

func (a *account) bucketHolds(ctx context.Context, name string) (string, error) {
	out, err := a.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &name, MaxKeys: aws.Int32(1)})
	if err != nil || len(out.Versions)+len(out.DeleteMarkers) == 0 {
		return "", err
	}
	return "objects, or versions of objects", nil
}

func (a *account) queueHolds(ctx context.Context, url string) (string, error) {
	names := []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages, sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	out, err := a.sqs.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if n, err := strconv.Atoi(out.Attributes[string(name)]); err == nil && n > 0 {
			return "messages", nil
		}
	}
	return "", nil
}

func (a *account) tableHolds(ctx context.Context, name string) (string, error) {
	out, err := a.dynamo.Scan(ctx, &dynamodb.ScanInput{TableName: &name, Limit: aws.Int32(1), Select: dynamotypes.SelectCount})
	if err != nil || out.Count == 0 {
		return "", err
	}
	return "items", nil
}

// empty implements contents: what is left out here can be deleted as it is.
func (a *account) empty(ctx context.Context, id string) (bool, error) {
	all, err := a.resources(ctx, id, kindBucket, kindStream, kindBus)
	if err != nil {
		return false, err
	}
	for _, r := range all {
		clear := map[string]func(context.Context, string) (bool, error){
			kindBucket: a.emptyBucket, kindStream: a.endConsumers, kindBus: a.removeRules,
		}[aws.ToString(r.ResourceType)]
		if done, err := clear(ctx, aws.ToString(r.PhysicalResourceId)); err != nil || !done {
			return done, err
		}
	}
	return true, nil
}

// emptyPages is how many pages of versions one step removes at most: a thousand each.
const emptyPages = 20

// emptyBucket removes all versions and delete markers. Whoever dies on the way has
// another one go on.
func (a *account) emptyBucket(ctx context.Context, name string) (done bool, err error) {
	for range emptyPages {
		page, err := a.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &name})
		if awserr.Is(err, awserr.Absent) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("listing what bucket %q holds: %w", name, err)
		}
		var all []s3types.ObjectIdentifier
		for _, v := range page.Versions {
			all = append(all, s3types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			all = append(all, s3types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if len(all) == 0 {
			return true, nil
		}
		out, err := a.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &name, Delete: &s3types.Delete{Objects: all, Quiet: aws.Bool(true)}})
		if err != nil {
			return false, fmt.Errorf("emptying bucket %q: %w", name, err)
		}
		if len(out.Errors) > 0 {
			return false, fmt.Errorf("emptying bucket %q: %w", name, &smithy.GenericAPIError{
				Code: aws.ToString(out.Errors[0].Code), Message: aws.ToString(out.Errors[0].Message)})
		}
	}
	return false, nil
}

var errTag = errors.New("a tag is written NAME=VALUE")

func (a *account) tagged(ctx context.Context, tag, of string) (arns []string, err error) {
	name, value, ok := strings.Cut(tag, "=")
	if !ok {
		return nil, errTag
	}
	// The service alone is asked for: not all have types there.
	service, kind, _ := strings.Cut(of, ":")
	pages := tagging.NewGetResourcesPaginator(a.tagging, &tagging.GetResourcesInput{
		ResourceTypeFilters: []string{service}, TagFilters: []taggingtypes.TagFilter{{Key: &name, Values: []string{value}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("looking for resources by their tag: %w", err)
		}
		for _, r := range page.ResourceTagMappingList {
			if found := aws.ToString(r.ResourceARN); isOf(found, kind) {
				arns = append(arns, found)
			}
		}
	}
	return arns, nil
}

// isOf reports whether an ARN is of a kind. Those of buckets, queues and topics end in
// a name alone.
func isOf(text, kind string) bool {
	id, err := arn.Parse(text)
	if err != nil {
		return false
	}
	at := strings.IndexAny(id.Resource, "/:")
	return at < 0 || kind == "" || id.Resource[:at] == kind
}
