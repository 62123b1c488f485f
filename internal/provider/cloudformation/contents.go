package cloudformation

import (
	"context"
	"fmt"
	"net/url"
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
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A resource is an existing resource of a stack: its logical id, its type and its physical id.
type resource struct{ logical, kind, id string }

// resources lists the existing resources of a stack.
func (a *account) resources(ctx context.Context, id string) (out []resource, err error) {
	pages := cfn.NewListStackResourcesPaginator(a.stacks, &cfn.ListStackResourcesInput{StackName: &id})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing the resources of stack %q: %w", id, err)
		}
		for _, r := range page.StackResourceSummaries {
			one := resource{aws.ToString(r.LogicalResourceId), aws.ToString(r.ResourceType), aws.ToString(r.PhysicalResourceId)}
			if one.id != "" && r.ResourceStatus != types.ResourceStatusDeleteComplete {
				out = append(out, one)
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
	all, err := a.resources(ctx, id)
	looks := map[string]func(context.Context, string) (string, error){
		kindBucket: a.bucketHolds, kindQueue: a.queueHolds, kindTable: a.tableHolds,
	}
	for _, r := range all {
		look := looks[r.kind]
		if look == nil {
			continue
		}
		what, err := look(ctx, r.id)
		if err != nil && !awserr.Is(err, awserr.Absent) {
			return "", fmt.Errorf("looking into resource %q: %w", r.logical, err)
		}
		if err == nil && what != "" {
			return r.logical + " holds " + what, nil
		}
	}
	return "", err
}

func (a *account) bucketHolds(ctx context.Context, name string) (string, error) {
	all, err := a.versions(ctx, name, 1)
	if err != nil || len(all) == 0 {
		return "", err
	}
	return "objects, or versions of objects", nil
}

// versionsPage is how many versions S3 lists and removes in a call at most.
const versionsPage = 1000

// versions lists the first versions and delete markers of a bucket. Hazard: a key may have characters
// that XML lacks, and an answer with such a key cannot be read. So S3 has to escape the keys.
func (a *account) versions(ctx context.Context, bucket string, most int32) (all []s3types.ObjectIdentifier, err error) {
	page, err := a.s3.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket, MaxKeys: &most,
		EncodingType: s3types.EncodingTypeUrl})
	if err != nil {
		return nil, err
	}
	for _, v := range page.Versions {
		all = append(all, s3types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	for _, m := range page.DeleteMarkers {
		all = append(all, s3types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
	}
	if page.EncodingType != s3types.EncodingTypeUrl { // an emulator may not escape them
		return all, nil
	}
	for i, v := range all {
		key, err := url.QueryUnescape(aws.ToString(v.Key))
		if err != nil {
			return nil, err
		}
		all[i].Key = &key
	}
	return all, nil
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
	out, err := a.dynamo.Scan(ctx, &dynamodb.ScanInput{TableName: &name, Limit: aws.Int32(1), Select: dynamotypes.SelectCount,
		ConsistentRead: new(true)}) // other reads may miss what was written a moment ago
	if err != nil || out.Count == 0 {
		return "", err
	}
	return "items", nil
}

// empty implements contents. AWS deletes resources of all other types as they are.
func (a *account) empty(ctx context.Context, id string) (bool, error) {
	all, err := a.resources(ctx, id)
	empties := map[string]func(context.Context, string) (bool, error){
		kindBucket: a.emptyBucket, kindStream: a.endConsumers, kindBus: a.removeRules,
	}
	for _, r := range all {
		empty := empties[r.kind]
		if empty == nil {
			continue
		}
		done, err := empty(ctx, r.id)
		if awserr.Is(err, awserr.Absent) {
			continue
		}
		if err != nil || !done {
			return done, err
		}
	}
	return err == nil, err
}

// emptyPages is how many pages of versions one step removes at most, and oneByOne how many versions in
// calls of their own.
const (
	emptyPages = 20
	oneByOne   = 200
)

// emptyBucket removes all versions and delete markers. If the process dies meanwhile, the next step
// continues.
func (a *account) emptyBucket(ctx context.Context, name string) (done bool, err error) {
	for range emptyPages {
		all, err := a.versions(ctx, name, versionsPage)
		if err != nil {
			return false, fmt.Errorf("listing what bucket %q holds: %w", name, err)
		}
		if len(all) == 0 {
			return true, nil
		}
		slow, err := a.remove(ctx, name, all)
		if err != nil {
			return false, fmt.Errorf("emptying bucket %q: %w", name, err)
		}
		if slow {
			break
		}
	}
	return false, nil
}

// remove removes versions from a bucket: together, but one by one those whose keys XML cannot express.
// The SDK would write another character in its place, and S3 would report success. If there were any of
// these, it was slow, and some of them may be left.
func (a *account) remove(ctx context.Context, bucket string, all []s3types.ObjectIdentifier) (slow bool, err error) {
	var together, single []s3types.ObjectIdentifier
	for _, v := range all {
		if strings.ContainsFunc(aws.ToString(v.Key), plan.Unwritable) {
			single = append(single, v)
		} else {
			together = append(together, v)
		}
	}
	for _, v := range single[:min(len(single), oneByOne)] {
		_, err := a.s3.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: v.Key, VersionId: v.VersionId})
		if err != nil {
			return true, err
		}
	}
	if together == nil {
		return true, nil
	}
	out, err := a.s3.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket,
		Delete: &s3types.Delete{Objects: together, Quiet: new(true)}})
	if err == nil && len(out.Errors) > 0 {
		err = &smithy.GenericAPIError{Code: aws.ToString(out.Errors[0].Code), Message: aws.ToString(out.Errors[0].Message)}
	}
	return single != nil, err
}

func (a *account) tagged(ctx context.Context, tag, of string) (arns []string, err error) {
	name, value, _ := strings.Cut(tag, "=") // the check of the catalog refuses any other form
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
		names = append(names, r.logical)
		if slices.ContainsFunc(arns, r.has) || strings.HasSuffix(r.kind, "Policy") {
			continue
		}
		if own := r.arn(s.id); own != "" {
			arns = append(arns, own)
			continue
		}
		a.log.WarnContext(ctx, "what is retained has no mark: put a tag on it, if it takes any", "resource", r.id, "type", r.kind,
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

// name returns the name in an id, which is a name, a URL or an ARN.
func (r resource) name() string { return r.id[strings.LastIndexByte(r.id, '/')+1:] }

// has reports whether an ARN is the resource's.
func (r resource) has(found string) bool {
	return found == r.id || strings.HasSuffix(found, ":"+r.name()) || strings.HasSuffix(found, "/"+r.name())
}

// arn returns the ARN of a resource of a stack; empty if its type does not determine the ARN.
func (r resource) arn(stack string) string {
	here, err := arn.Parse(stack)
	if err != nil || !strings.HasPrefix(r.kind, "AWS::") {
		return ""
	}
	if arn.IsARN(r.id) {
		return r.id
	}
	name := r.name()
	switch r.kind {
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
