package cloudformation

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider/label"
)

// resources lists the existing resources of a stack. kinds limits them to some types; without
// kinds, it lists all.
func (a *account) resources(ctx context.Context, id string, kinds ...string) (out []types.StackResourceSummary, err error) {
	pages := cfn.NewListStackResourcesPaginator(a.stacks, &cfn.ListStackResourcesInput{StackName: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the resources of stack %q: %w", id, err)
		}
		for _, r := range page.StackResourceSummaries {
			wanted := len(kinds) == 0 || slices.Contains(kinds, aws.ToString(r.ResourceType))
			if wanted && aws.ToString(r.PhysicalResourceId) != "" && r.ResourceStatus != types.ResourceStatusDeleteComplete {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// The broker looks into the contents of these types of resources. Other types do not show theirs,
// or have none.
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

// empty implements contents. AWS deletes resources of all other types as they are.
func (a *account) empty(ctx context.Context, id string) (bool, error) {
	all, err := a.resources(ctx, id, kindBucket, kindStream, kindBus)
	if err != nil {
		return false, err
	}
	for _, r := range all {
		clear := map[string]func(context.Context, string) (bool, error){
			kindBucket: a.emptyBucket, kindStream: a.endConsumers, kindBus: a.removeRules,
		}[aws.ToString(r.ResourceType)]
		done, err := clear(ctx, aws.ToString(r.PhysicalResourceId))
		if awserr.Is(err, awserr.Absent) {
			continue
		}
		if err != nil || !done {
			return done, err
		}
	}
	return true, nil
}

// emptyPages is how many pages of versions one step removes at most; a page has a thousand
// versions.
const emptyPages = 20

// emptyBucket removes all versions and delete markers. If the process dies meanwhile, the next step
// continues.
func (a *account) emptyBucket(ctx context.Context, name string) (done bool, err error) {
	for range emptyPages {
		page, err := a.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &name})
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
		out, err := a.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &name,
			Delete: &s3types.Delete{Objects: all, Quiet: new(true)}})
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
	// The filter names only the service, since the tagging API does not know types of resources for
	// all services.
	service, kind, _ := strings.Cut(of, ":")
	arns, err = a.labelled(ctx, []string{service}, label.Label{Name: name, Value: value})
	return slices.DeleteFunc(arns, func(found string) bool { return !isOf(found, kind) }), err
}

// labelled returns the ARNs of the resources that have all the given tags. services limits them to
// some services; nil means all.
func (a *account) labelled(ctx context.Context, services []string, labels ...label.Label) (arns []string, err error) {
	in := &tagging.GetResourcesInput{ResourceTypeFilters: services}
	for _, l := range labels {
		in.TagFilters = append(in.TagFilters, taggingtypes.TagFilter{Key: &l.Name, Values: []string{l.Value}})
	}
	pages := tagging.NewGetResourcesPaginator(a.tagging, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("looking for resources by their tags: %w", err)
		}
		for _, r := range page.ResourceTagMappingList {
			arns = append(arns, aws.ToString(r.ResourceARN))
		}
	}
	return arns, nil
}

// tagMost is how many resources one call puts tags on at most.
const tagMost = 20

// spare implements contents. It finds the resources by the tags that their stack gave them; those
// without tags, or not listed yet, it finds by their ids. A resource that takes no tag from the
// broker is spared all the same: the log names it.
func (a *account) spare(ctx context.Context, s *stack, mark label.Label) (names []string, err error) {
	left, err := a.resources(ctx, s.id)
	if err != nil {
		return nil, err
	}
	arns, err := a.labelled(ctx, nil, label.Write(s.tags)...)
	if err != nil {
		return nil, err
	}
	arns = slices.DeleteFunc(arns, func(found string) bool { return strings.Contains(found, ":cloudformation:") })
	for _, r := range left {
		names = append(names, aws.ToString(r.LogicalResourceId))
		kind, id := aws.ToString(r.ResourceType), aws.ToString(r.PhysicalResourceId)
		if slices.ContainsFunc(arns, func(found string) bool { return isIn(found, id) }) || strings.HasSuffix(kind, "Policy") {
			continue
		}
		if own := arnOf(s.id, kind, id); own != "" {
			arns = append(arns, own)
			continue
		}
		a.log.WarnContext(ctx, "what is retained has no mark: put a tag on it, if it takes any", "resource", id, "type", kind,
			"tag", mark.Name, "value", mark.Value)
	}
	for some := range slices.Chunk(arns, tagMost) {
		out, err := a.tagging.TagResources(ctx, &tagging.TagResourcesInput{ResourceARNList: some,
			Tags: map[string]string{mark.Name: mark.Value}})
		if err != nil {
			return nil, fmt.Errorf("marking what is retained: %w", err)
		}
		for found, why := range out.FailedResourcesMap {
			a.log.WarnContext(ctx, "what is retained has no mark: put a tag on it", "resource", found, "tag", mark.Name, "value",
				mark.Value,
				"error", aws.ToString(why.ErrorMessage))
		}
	}
	return names, nil
}

// isIn reports whether an ARN is the one of the resource with this id, which is a name, a URL or
// the ARN itself.
func isIn(found, id string) bool {
	if found == id {
		return true
	}
	id = id[strings.LastIndexByte(id, '/')+1:]
	return strings.HasSuffix(found, ":"+id) || strings.HasSuffix(found, "/"+id)
}

// arnOf returns the ARN of a stack's resource; empty if its type does not determine the ARN.
func arnOf(stack, kind, id string) string {
	here, err := arn.Parse(stack)
	if err != nil || !strings.HasPrefix(kind, "AWS::") {
		return ""
	}
	if arn.IsARN(id) {
		return id
	}
	name := id[strings.LastIndexByte(id, '/')+1:]
	switch kind {
	case kindBucket:
		return "arn:" + here.Partition + ":s3:::" + name
	case kindQueue:
		here.Service, here.Resource = "sqs", name
	case kindTable:
		here.Service, here.Resource = "dynamodb", "table/"+name
	case kindStream:
		here.Service, here.Resource = "kinesis", "stream/"+name
	default:
		return ""
	}
	return here.String()
}

// isOf reports whether an ARN names a resource of a kind. ARNs of buckets, queues and topics end in
// a name without a kind: they pass.
func isOf(text, kind string) bool {
	id, err := arn.Parse(text)
	if err != nil {
		return false
	}
	at := strings.IndexAny(id.Resource, "/:")
	return at < 0 || kind == "" || id.Resource[:at] == kind
}
