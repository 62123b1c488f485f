package bootstrap

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// mostInline is the length of the longest template that CloudFormation takes in a call, in bytes.
// It reads longer ones from a bucket.
const mostInline = 51_200

// A preparation brings a stack to the state that a template describes; repeating it changes
// nothing. It keeps resources that the template lacks, since the stacks of instances may need them
// until they are deleted.
type preparation struct {
	Session
	Options
	stacks  *cloudformation.Client
	objects *s3.Client
	iam     *iam.Client
	name    string
	// bucket is a bucket in the stack itself, from which CloudFormation reads long templates.
	bucket string
}

// A parsed template has the members of a template as JSON has them, and its resources one by one, so
// that they can be merged.
type parsed struct {
	members   map[string]any
	Resources map[string]map[string]any
}

func parseTemplate(body []byte) (t parsed, err error) {
	err = cmp.Or(json.Unmarshal(body, &t.members), json.Unmarshal(body, &t))
	if err == nil && t.Resources == nil {
		err = errors.New("it has no resources")
	}
	if err != nil {
		return t, fmt.Errorf("reading a template: %w", err)
	}
	return t, nil
}

// exists reports whether there is a stack with the template.
func (t parsed) exists() bool { return t.members != nil }

// body returns the text of the template. The same resources give the same text.
func (t parsed) body() []byte {
	members := maps.Clone(t.members)
	members["Resources"] = t.Resources
	raw, _ := json.Marshal(members) // what was read always encodes
	return raw
}

// Changes says what a preparation has done.
type Changes struct {
	Stack string `json:"stack"`
	// Made, Changed and Kept are logical ids: of new resources, of resources with new content, and
	// of resources that the template no longer has.
	Made    []string `json:"made"`
	Changed []string `json:"changed"`
	Kept    []string `json:"kept"`
	// Adopted are those of Changed that were outside the stack before.
	Adopted []string `json:"adopted"`
}

// run brings the stack to the state that the template describes.
func (p preparation) run(ctx context.Context, template []byte) (out Changes, err error) {
	out.Stack = p.name
	want, err := parseTemplate(template)
	if err != nil {
		return out, err
	}
	if p.Emulated {
		delete(want.Resources, "TemplatesPolicy") // the policy requires TLS, which emulators lack
	}
	has, err := p.current(ctx)
	if err != nil {
		return out, err
	}
	if out.Adopted, err = p.adopt(ctx, want, &has); err != nil {
		return out, err
	}
	for id, wanted := range sorted.Map(want.Resources) {
		switch was, known := has.Resources[id]; {
		case !known:
			out.Made = append(out.Made, id)
		case !reflect.DeepEqual(was, wanted):
			out.Changed = append(out.Changed, id)
		}
	}
	for id, was := range sorted.Map(has.Resources) {
		if _, wanted := want.Resources[id]; !wanted {
			want.Resources[id] = was
			out.Kept = append(out.Kept, id)
		}
	}
	if has.exists() && out.Made == nil && out.Changed == nil {
		s, err := p.look(ctx) // an earlier run may have died before it protected the stack
		if err == nil && s != nil {
			err = p.protect(ctx, s)
		}
		return out, err
	}
	body := want.body()
	if len(body) > mostInline {
		if has, err = p.bucketFirst(ctx, has, want); err != nil {
			return out, err
		}
	}
	return out, p.bring(ctx, has.exists(), body)
}

// bucketFirst adds only its own bucket to the stack, if it has none yet: CloudFormation then reads
// the long template from there. It returns what the stack has then.
func (p preparation) bucketFirst(ctx context.Context, has, want parsed) (parsed, error) {
	first := parsed{want.members, maps.Clone(has.Resources)}
	for id, r := range want.Resources {
		if kind, _ := r["Type"].(string); strings.HasPrefix(kind, "AWS::S3::Bucket") { // the bucket's policy too
			first.Resources[id] = r
		}
	}
	if len(first.Resources) == len(has.Resources) {
		return has, nil
	}
	return first, p.bring(ctx, has.exists(), first.body())
}

// source returns how CloudFormation gets a template: inline in the call, or, if it is too long for
// that, by the URL of the object that source writes.
func (p preparation) source(ctx context.Context, body []byte) (inline, url *string, err error) {
	if len(body) <= mostInline {
		return new(string(body)), nil, nil
	}
	key := "account/" + plan.Digest(body) + ".json"
	if _, err := p.objects.PutObject(ctx, &s3.PutObjectInput{Bucket: &p.bucket, ExpectedBucketOwner: &p.Account, Key: &key,
		Body: bytes.NewReader(body)}); err != nil {
		return nil, nil, fmt.Errorf("writing the template into the bucket %s: %w", p.bucket, err)
	}
	return nil, new(p.ObjectURL(p.objects.Options().BaseEndpoint, p.bucket, key)), nil
}

// current returns the template of the stack, if there is one. It removes an empty stack whose creation has failed,
// and continues a rollback that has failed.
func (p preparation) current(ctx context.Context) (parsed, error) {
	none := parsed{Resources: map[string]map[string]any{}}
	s, err := p.settled(ctx)
	if err != nil || s == nil {
		return none, err
	}
	switch s.StackStatus {
	case types.StackStatusRollbackComplete, types.StackStatusRollbackFailed, types.StackStatusCreateFailed,
		types.StackStatusDeleteFailed,
		types.StackStatusReviewInProgress:
		p.Say("the creation of the stack %s never finished (%s): removing what is left of it", p.name, s.StackStatus)
		if _, err := p.stacks.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: s.StackId}); err != nil {
			return none, fmt.Errorf("removing the stack %s: %w", p.name, err)
		}
		s, err := p.settled(ctx)
		if err == nil && s != nil {
			err = fmt.Errorf("the stack %s is %s and cannot be removed: %s", p.name, s.StackStatus,
				aws.ToString(s.StackStatusReason))
		}
		return none, err
	case types.StackStatusUpdateRollbackFailed:
		if err := p.goOn(ctx); err != nil {
			return none, err
		}
	}
	out, err := p.stacks.GetTemplate(ctx, &cloudformation.GetTemplateInput{StackName: s.StackId,
		TemplateStage: types.TemplateStageOriginal})
	if err != nil {
		return none, fmt.Errorf("reading the template of the stack %s: %w", p.name, err)
	}
	return parseTemplate([]byte(aws.ToString(out.TemplateBody)))
}

// goOn continues the failed rollback of an update: before that is done, CloudFormation allows
// nothing else with the stack.
func (p preparation) goOn(ctx context.Context) error {
	p.Say("an update of the stack %s could not be undone: trying once more", p.name)
	began := p.since()
	if _, err := p.stacks.ContinueUpdateRollback(ctx,
		&cloudformation.ContinueUpdateRollbackInput{StackName: &p.name}); err != nil {
		return fmt.Errorf("undoing an update of the stack %s: %w", p.name, err)
	}
	s, err := p.settled(ctx)
	if err != nil || s != nil && s.StackStatus == types.StackStatusUpdateRollbackComplete {
		return err
	}
	return fmt.Errorf("an update of the stack %s cannot be undone: %w", p.name, p.why(ctx, began))
}

// since returns a time that is earlier than any operation begun now, even if CloudFormation's clock
// is slow.
func (p preparation) since() time.Time { return time.Now().Add(-time.Minute) }

// look describes the stack; nil if there is none.
func (p preparation) look(ctx context.Context) (*types.Stack, error) {
	out, err := p.stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &p.name})
	if awserr.Is(err, awserr.Absent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking at the stack %s: %w", p.name, err)
	}
	for _, s := range out.Stacks {
		if s.StackStatus != types.StackStatusDeleteComplete {
			return &s, nil
		}
	}
	return nil, nil
}

// settled waits until no operation changes the stack, and reports progress meanwhile.
func (p preparation) settled(ctx context.Context) (*types.Stack, error) {
	said := ""
	for {
		s, err := p.look(ctx)
		if err != nil || s == nil || !strings.HasSuffix(string(s.StackStatus), "_IN_PROGRESS") ||
			s.StackStatus == types.StackStatusReviewInProgress {
			return s, err
		}
		if now := p.progress(ctx); now != said {
			p.Say("%s", now)
			said = now
		}
		if err := waiting.For(ctx, p.Every); err != nil {
			return nil, fmt.Errorf("waiting for the stack %s, which goes on by itself: %w", p.name, err)
		}
	}
}

// progress says how many resources are complete. It is only for people, so it ignores errors.
func (p preparation) progress(ctx context.Context) string {
	out, err := p.stacks.DescribeStackResources(ctx, &cloudformation.DescribeStackResourcesInput{StackName: &p.name})
	if err != nil {
		return "waiting for the stack " + p.name
	}
	done := 0
	for _, r := range out.StackResources {
		if strings.HasSuffix(string(r.ResourceStatus), "_COMPLETE") {
			done++
		}
	}
	return fmt.Sprintf("the stack %s: %d of %d resources", p.name, done, len(out.StackResources))
}

// bring creates or updates the stack, and waits until that ends.
func (p preparation) bring(ctx context.Context, exists bool, body []byte) error {
	text, url, err := p.source(ctx, body)
	if err != nil {
		return err
	}
	capable := []types.Capability{types.CapabilityCapabilityNamedIam}
	began := p.since()
	verb := "making"
	if exists {
		verb = "changing"
		_, err = p.stacks.UpdateStack(ctx, &cloudformation.UpdateStackInput{
			StackName: &p.name, TemplateBody: text, TemplateURL: url, Capabilities: capable,
		})
	} else {
		_, err = p.stacks.CreateStack(ctx, &cloudformation.CreateStackInput{
			StackName: &p.name, TemplateBody: text, TemplateURL: url, Capabilities: capable,
		})
	}
	if awserr.Is(err, awserr.Unchanged) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s the stack %s: %w", verb, p.name, err)
	}
	p.Say("%s the stack %s", verb, p.name)
	s, err := p.settled(ctx)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("the stack %s was removed meanwhile", p.name)
	}
	switch s.StackStatus {
	case types.StackStatusCreateComplete, types.StackStatusUpdateComplete:
		return p.protect(ctx, s)
	}
	return fmt.Errorf("%s the stack %s has failed (%s): %w", verb, p.name, s.StackStatus, p.why(ctx, began))
}

// protect guards the stack against deletion by mistake: its resources would stay, and no other
// stack could make them.
func (p preparation) protect(ctx context.Context, s *types.Stack) error {
	if aws.ToBool(s.EnableTerminationProtection) {
		return nil
	}
	_, err := p.stacks.UpdateTerminationProtection(ctx, &cloudformation.UpdateTerminationProtectionInput{
		StackName: &p.name, EnableTerminationProtection: new(true),
	})
	if err != nil {
		return fmt.Errorf("protecting the stack %s from its deletion: %w", p.name, err)
	}
	return nil
}

// why returns the reasons that the stack's resources give for a failure.
func (p preparation) why(ctx context.Context, since time.Time) error {
	out, err := p.stacks.DescribeStackEvents(ctx, &cloudformation.DescribeStackEventsInput{StackName: &p.name})
	if err != nil {
		return fmt.Errorf("and its events cannot be read: %w", err)
	}
	var reasons []error
	for _, e := range slices.Backward(out.StackEvents) { // the latest event comes first
		reason := aws.ToString(e.ResourceStatusReason)
		if strings.HasSuffix(string(e.ResourceStatus), "_FAILED") && !strings.Contains(reason, "cancelled") &&
			!aws.ToTime(e.Timestamp).Before(since) {
			reasons = append(reasons, fmt.Errorf("%s (%s): %s", aws.ToString(e.LogicalResourceId), aws.ToString(e.ResourceType),
				reason))
		}
	}
	return cmp.Or(errors.Join(reasons...), errors.New("its events do not say why"))
}
