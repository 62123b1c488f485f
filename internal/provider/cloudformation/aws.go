package cloudformation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	events "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/time/rate"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/bootstrap"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/provider/cloudformation/recent"
)

// account is a cloud that calls AWS through its SDK.
type account struct {
	config  aws.Config
	log     *slog.Logger
	stacks  *cfn.Client
	s3      *s3.Client
	sqs     *sqs.Client
	dynamo  *dynamodb.Client
	tagging *tagging.Client
	kinesis *kinesis.Client
	events  *events.Client
	// seen holds the stacks that an inventory has described. Its keys contain the id, the status
	// and the time of the last update, so that the former tags are read again after an update was
	// undone.
	seen recent.Values[*stack]
}

// openAWS opens a target. It returns the cloud, and a function that opens the principals in it, once
// its account is known.
func openAWS(o Options, t plan.Target) (cloud, func(plan.Location) *principal.Keeper) {
	config := bootstrap.Reach(o.Config, o.Scope, t, text(o.Session))
	emulated := config.BaseEndpoint != nil
	a := &account{
		config: config, log: o.Log, stacks: cfn.NewFromConfig(config), sqs: sqs.NewFromConfig(config),
		dynamo: dynamodb.NewFromConfig(config), tagging: tagging.NewFromConfig(config),
		kinesis: kinesis.NewFromConfig(config), events: events.NewFromConfig(config),
		s3: s3.NewFromConfig(config, func(s *s3.Options) { s.UsePathStyle = emulated }),
	}
	return a, func(who plan.Location) *principal.Keeper {
		return &principal.Keeper{
			IAM: principal.NewIAM(config), Prover: principal.NewProver(config, o.Now), Scope: o.Scope, Broker: o.Broker,
			Now: o.Now, Log: o.Log, Reads: rate.NewLimiter(principal.ReadsPerSecond, 1),
			Boundary: func(offering string) string { return o.Scope.BoundaryARN(who, offering) },
		}
	}
}

func (a *account) identify(ctx context.Context) (plan.Location, error) {
	at, err := bootstrap.Whose(ctx, a.config)
	if err != nil {
		return plan.Location{}, fmt.Errorf("asking whose account it is: %w", err)
	}
	return at.Location, nil
}

func (a *account) look(ctx context.Context, ref string) (*stack, error) {
	found, err := a.describe(ctx, ref)
	if err != nil || found == nil {
		return nil, err
	}
	found.events, err = a.story(ctx, found.id, func(e event) bool { return e.whole })
	if awserr.Is(err, awserr.Absent) {
		return nil, nil
	}
	return found, err
}

func (a *account) describe(ctx context.Context, ref string) (*stack, error) {
	out, err := a.stacks.DescribeStacks(ctx, &cfn.DescribeStacksInput{StackName: &ref})
	switch {
	case awserr.Is(err, awserr.Absent):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("describing stack %q: %w", ref, err)
	case len(out.Stacks) == 0 || out.Stacks[0].StackStatus == deleteComplete:
		return nil, nil
	}
	return stackOf(out.Stacks[0]), nil
}

func stackOf(s types.Stack) *stack {
	out := &stack{
		id: aws.ToString(s.StackId), name: aws.ToString(s.StackName), status: string(s.StackStatus), labels: map[string]string{},
		created: aws.ToTime(s.CreationTime), updated: aws.ToTime(s.LastUpdatedTime), outputs: map[string]string{},
		parameters: map[string]bool{}, role: aws.ToString(s.RoleARN),
	}
	for _, t := range s.Tags {
		out.labels[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	for _, o := range s.Outputs {
		out.outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	for _, p := range s.Parameters {
		out.parameters[aws.ToString(p.ParameterKey)] = true
	}
	out.tags, _ = label.Read(out.labels) // unreadable labels are nobody's
	out.protected = aws.ToBool(s.EnableTerminationProtection)
	out.retained = out.labels[plan.LabelRetained] != ""
	return out
}

// story reads whole pages of events until done accepts an event.
func (a *account) story(ctx context.Context, id string, done func(event) bool) (events []event, err error) {
	pages := cfn.NewDescribeStackEventsPaginator(a.stacks, &cfn.DescribeStackEventsInput{StackName: &id})
	for enough := false; pages.HasMorePages() && !enough; {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the events of stack %q: %w", id, err)
		}
		for _, e := range page.StackEvents {
			one := event{
				id: aws.ToString(e.EventId), token: aws.ToString(e.ClientRequestToken),
				logical: aws.ToString(e.LogicalResourceId),
				kind:    aws.ToString(e.ResourceType), status: string(e.ResourceStatus),
				reason: aws.ToString(e.ResourceStatusReason),
				whole:  aws.ToString(e.PhysicalResourceId) == aws.ToString(e.StackId),
			}
			events = append(events, one)
			enough = done(one) || enough
		}
	}
	return events, nil
}

func (a *account) send(ctx context.Context, o order) (err error) {
	role := text(o.role)
	switch o.verb {
	case callCreate:
		_, err = a.stacks.CreateStack(ctx, &cfn.CreateStackInput{
			StackName: &o.name, ClientRequestToken: &o.token, TemplateBody: text(o.body), TemplateURL: text(o.url),
			Parameters: o.values(),
			Tags:       o.tags(), RoleARN: role, Capabilities: o.allowed(), OnFailure: types.OnFailureRollback,
			TimeoutInMinutes: &o.minutes,
		})
	case callUpdate, callRetain:
		var previous *bool
		if o.body+o.url == "" {
			previous = new(true)
		}
		_, err = a.stacks.UpdateStack(ctx, &cfn.UpdateStackInput{
			StackName: &o.id, ClientRequestToken: &o.token, TemplateBody: text(o.body), TemplateURL: text(o.url),
			UsePreviousTemplate: previous, Parameters: o.values(), Tags: o.tags(), RoleARN: role, Capabilities: o.allowed(),
		})
	case callDelete:
		_, err = a.stacks.DeleteStack(ctx, &cfn.DeleteStackInput{
			StackName: &o.id, ClientRequestToken: &o.token, RoleARN: role, RetainResources: o.spared,
		})
	case callCancel:
		_, err = a.stacks.CancelUpdateStack(ctx, &cfn.CancelUpdateStackInput{StackName: &o.id, ClientRequestToken: &o.token})
	case callContinue:
		_, err = a.stacks.ContinueUpdateRollback(ctx,
			&cfn.ContinueUpdateRollbackInput{StackName: &o.id, ClientRequestToken: &o.token, RoleARN: role})
	}
	if err != nil {
		return fmt.Errorf("asking CloudFormation to %s a stack: %w", o.verb, err)
	}
	return nil
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (o order) values() (out []types.Parameter) {
	for _, p := range o.parameters {
		one := types.Parameter{ParameterKey: &p.name, ParameterValue: &p.value}
		if p.keep {
			one = types.Parameter{ParameterKey: &p.name, UsePreviousValue: new(true)}
		}
		out = append(out, one)
	}
	return out
}

func (o order) tags() (out []types.Tag) {
	for _, l := range o.labels {
		out = append(out, types.Tag{Key: &l.Name, Value: &l.Value})
	}
	return out
}

func (o order) allowed() []types.Capability {
	if o.capabilities {
		return []types.Capability{types.CapabilityCapabilityIam}
	}
	return nil
}

// listPage is how many stacks a page of the inventory describes at most: each takes a call.
const listPage = 25

// list goes through the summaries of all stacks, and describes the stacks whose names asked
// accepts. A process describes a stack once while its summary stays the same. A call that describes
// all stacks at once would need the right to read the outputs of foreign stacks.
//
// A cursor holds the id of the next stack and the token of its page of summaries. Stacks come and
// go between calls: if the next stack is gone, its page is read from the beginning, so that no
// stack is left out.
func (a *account) list(ctx context.Context, asked func(name string) bool, cursor string) (page []*stack, next string, err error) {
	from, token, _ := strings.Cut(cursor, " ")
	described := 0
	out, err := a.stacks.ListStacks(ctx, &cfn.ListStacksInput{NextToken: text(token), StackStatusFilter: aliveStatuses()})
	if err != nil {
		return nil, "", fmt.Errorf("listing stacks: %w", err)
	}
	begin := slices.IndexFunc(out.StackSummaries, func(s types.StackSummary) bool { return aws.ToString(s.StackId) == from })
	for _, s := range out.StackSummaries[max(0, begin):] {
		if !asked(aws.ToString(s.StackName)) {
			continue
		}
		key := fmt.Sprint(aws.ToString(s.StackId), s.StackStatus, aws.ToTime(s.LastUpdatedTime))
		found, _ := a.seen.Get(key)
		if found == nil {
			if described == listPage {
				return page, aws.ToString(s.StackId) + " " + token, nil
			}
			if found, err = a.describe(ctx, aws.ToString(s.StackId)); err != nil {
				return nil, "", err
			}
			described++
			a.seen.Put(key, found)
		}
		if found != nil {
			page = append(page, found)
		}
	}
	if token = aws.ToString(out.NextToken); token != "" {
		next = " " + token
	}
	return page, next, nil
}

func (a *account) room(ctx context.Context) (used, most int, err error) {
	limits := cfn.NewDescribeAccountLimitsPaginator(a.stacks, &cfn.DescribeAccountLimitsInput{})
	for limits.HasMorePages() {
		page, err := limits.NextPage(ctx)
		if err != nil {
			return 0, 0, fmt.Errorf("reading the limits of the account: %w", err)
		}
		for _, l := range page.AccountLimits {
			if aws.ToString(l.Name) == "StackLimit" {
				most = int(aws.ToInt32(l.Value))
			}
		}
	}
	pages := cfn.NewListStacksPaginator(a.stacks, &cfn.ListStacksInput{StackStatusFilter: aliveStatuses()})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, 0, fmt.Errorf("counting stacks: %w", err)
		}
		used += len(page.StackSummaries)
	}
	return used, most, nil
}

func aliveStatuses() []types.StackStatus {
	return slices.DeleteFunc(types.StackStatus("").Values(), func(s types.StackStatus) bool { return s == deleteComplete })
}

func (a *account) exports(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	pages := cfn.NewListExportsPaginator(a.stacks, &cfn.ListExportsInput{})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("listing exports: %w", err)
		}
		for _, e := range page.Exports {
			all[aws.ToString(e.Name)] = aws.ToString(e.Value)
		}
	}
	return all, nil
}

func (a *account) current(ctx context.Context, id string) ([]byte, error) {
	out, err := a.stacks.GetTemplate(ctx, &cfn.GetTemplateInput{StackName: &id, TemplateStage: types.TemplateStageOriginal})
	if err != nil {
		return nil, fmt.Errorf("reading the template of stack %q: %w", id, err)
	}
	return []byte(aws.ToString(out.TemplateBody)), nil
}

// key returns the key of a template in the bucket.
func key(digest string) string { return "templates/" + digest + ".json" }

func (a *account) save(ctx context.Context, in bucket, digest string, body []byte) error {
	_, err := a.s3.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &in.name, ExpectedBucketOwner: &in.owner, Key: new(key(digest)), Body: bytes.NewReader(body),
		ContentType: new("application/json"),
	})
	if err != nil {
		return fmt.Errorf("saving template %s: %w", digest, err)
	}
	return nil
}

func (a *account) fetch(ctx context.Context, in bucket, digest string) ([]byte, error) {
	out, err := a.s3.GetObject(ctx, &s3.GetObjectInput{Bucket: &in.name, ExpectedBucketOwner: &in.owner, Key: new(key(digest))})
	if awserr.Is(err, awserr.Absent) {
		return nil, nil
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(out.Body)
		err = errors.Join(err, out.Body.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("reading template %s: %w", digest, err)
	}
	if plan.Digest(body) != digest {
		return nil, fmt.Errorf("the template that is kept as %s is another one: save the right one in its place", digest)
	}
	return body, nil
}
