package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/base/waiting"
)

// An adoption says how a resource of a type is imported into the stack: named is the property that
// names it, and key is the identifier by which CloudFormation imports it.
type adoption struct{ named, key string }

// adoptions are the adoptions of the stack's types of resources.
var adoptions = map[string]adoption{
	"AWS::S3::Bucket": {"BucketName", "BucketName"}, "AWS::S3::BucketPolicy": {"Bucket", "Bucket"},
	"AWS::IAM::Role": {"RoleName", "RoleName"}, "AWS::IAM::ManagedPolicy": {"ManagedPolicyName", "PolicyArn"},
}

// find finds a resource of one of these types by its name, and returns the value of its key.
func (p preparation) find(ctx context.Context, kind, name string) (id string, err error) {
	id = name
	switch kind {
	case "AWS::S3::Bucket":
		_, err = p.objects.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name, ExpectedBucketOwner: &p.Account})
	case "AWS::S3::BucketPolicy":
		_, err = p.objects.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: &name, ExpectedBucketOwner: &p.Account})
	case "AWS::IAM::ManagedPolicy":
		id = p.ARN("iam", "policy"+p.Scope.FixedPath()+name)
		_, err = p.iam.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &id})
	case "AWS::IAM::Role":
		out, err := p.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
		// Hazard: the names of roles are unique over all paths, and a broker makes roles on its own
		// path. The import must not take one of them.
		if err == nil && aws.ToString(out.Role.Path) != p.Scope.FixedPath() {
			err = advice.For("AWS", fmt.Sprintf("has the role %s on the path %s, where no operator makes it", name,
				aws.ToString(out.Role.Path)), "find out who has made it, and delete it")
		}
		return id, err
	}
	return id, err
}

// strays returns the wanted resources that exist outside the stack that prepares the account. All
// resources of that stack outlive it, and their names are fixed, so a new stack could not make
// them. It fails if a resource of the stack is gone: CloudFormation does not notice, and would
// never make it again.
func (p preparation) strays(ctx context.Context, want, has parsed) (found []types.ResourceToImport, err error) {
	var gone []string
	for id, r := range sorted.Map(want.Resources) {
		kind, _ := r["Type"].(string)
		properties, _ := r["Properties"].(map[string]any)
		as, adoptable := adoptions[kind]
		lacking := p.Emulated && kind == "AWS::IAM::ManagedPolicy" // an emulator cannot import it
		if !adoptable || lacking {
			continue
		}
		name, err := p.find(ctx, kind, p.inPlace(properties[as.named]))
		_, stands := has.Resources[id]
		switch absent := awserr.Is(err, awserr.Absent); {
		case absent && stands:
			gone = append(gone, fmt.Sprintf("%s (%s)", name, kind))
		case err != nil && !absent:
			return nil, fmt.Errorf("checking whether the %s of resource %s exists: %w", kind, id, err)
		case !absent && !stands:
			found = append(found, types.ResourceToImport{
				LogicalResourceId: &id, ResourceType: &kind, ResourceIdentifier: map[string]string{as.key: name},
			})
		}
	}
	if gone != nil {
		return nil, advice.For("AWS",
			fmt.Sprintf("no longer has what the stack %s made: %s", p.name, strings.Join(gone, ", ")),
			fmt.Sprintf("delete the stack, whose other resources stay, and run the command again: it makes what is gone, and "+
				"adopts the others. `aws cloudformation update-termination-protection --no-enable-termination-protection "+
				"--stack-name %[1]s`, `aws cloudformation delete-stack --stack-name %[1]s`", p.name))
	}
	return found, nil
}

// inPlace returns a name from a template with the location filled in.
func (p preparation) inPlace(value any) string {
	if filled, is := value.(map[string]any); is {
		value = filled["Fn::Sub"]
	}
	name, _ := value.(string)
	return strings.NewReplacer("${AWS::Partition}", p.Partition, "${AWS::AccountId}", p.Account,
		"${AWS::Region}", p.Region).Replace(name)
}

// adopt imports strays into the stack, which it makes if there is none, and adds them to has. An
// import changes nothing in a resource. The update that follows does, but only if the wanted
// resource differs from the imported one.
func (p preparation) adopt(ctx context.Context, want parsed, has *parsed) (ids []string, err error) {
	found, err := p.strays(ctx, want, *has)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	after := parsed{want.members, maps.Clone(has.Resources)}
	in := &cloudformation.CreateChangeSetInput{
		StackName: &p.name, ChangeSetName: new("adopt"), ChangeSetType: types.ChangeSetTypeImport,
		Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam}, ResourcesToImport: found,
	}
	var names []string
	for _, s := range found {
		id := *s.LogicalResourceId
		after.Resources[id] = bare(want.Resources[id])
		ids, names = append(ids, id), slices.AppendSeq(names, maps.Values(s.ResourceIdentifier))
	}
	if in.TemplateBody, in.TemplateURL, err = p.source(ctx, after.body()); err != nil {
		return nil, err
	}
	p.Say("adopting what exists outside the stack %s: %s", p.name, strings.Join(names, ", "))
	if err := p.imports(ctx, in); err != nil {
		return nil, &advice.Error{
			Name: "AWS",
			What: fmt.Sprintf("has these resources outside a stack, and CloudFormation does not import them into the "+
				"stack %s: %s", p.name, strings.Join(names, ", ")),
			Remedy: fmt.Sprintf("see why by `aws cloudformation describe-change-set --stack-name %s --change-set-name adopt`, "+
				"repair it, and run the command again; while instances are left, delete none of these resources",
				p.name), Cause: err}
	}
	*has = after
	return ids, nil
}

// bare returns a resource in the form in which it is imported: its names, and only properties that
// the update can change. The documents of policies are required; these allow nothing, and an import
// does not apply them.
func bare(resource map[string]any) map[string]any {
	properties, _ := resource["Properties"].(map[string]any)
	left := map[string]any{}
	for name, value := range properties {
		switch name {
		case "PolicyDocument", "AssumeRolePolicyDocument":
			left[name] = map[string]any{"Version": "2012-10-17", "Statement": []any{}}
		case "BucketName", "Bucket", "RoleName", "ManagedPolicyName", "Path":
			left[name] = value
		case "Description":
			if resource["Type"] != "AWS::IAM::Role" {
				left[name] = value
			}
		}
	}
	out := maps.Clone(resource)
	out["Properties"] = left
	return out
}

// importPatience is how long an import may take. An import makes nothing, so if it has not ended by
// then, it never began.
const importPatience = 15 * time.Minute

// imports makes the change set and executes it.
func (p preparation) imports(ctx context.Context, in *cloudformation.CreateChangeSetInput) error {
	ctx, cancel := context.WithTimeout(ctx, importPatience)
	defer cancel()
	before, err := p.look(ctx)
	if err != nil {
		return err
	}
	set := &cloudformation.DescribeChangeSetInput{StackName: &p.name, ChangeSetName: in.ChangeSetName}
	if before != nil { // remove the change set of a run that has failed
		if _, err := p.stacks.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{
			StackName: &p.name, ChangeSetName: in.ChangeSetName,
		}); err != nil && !awserr.Is(err, awserr.Absent) {
			return fmt.Errorf("removing a change set of the stack %s: %w", p.name, err)
		}
	}
	if _, err := p.stacks.CreateChangeSet(ctx, in); err != nil {
		return fmt.Errorf("planning an import into the stack %s: %w", p.name, err)
	}
	for {
		out, err := p.stacks.DescribeChangeSet(ctx, set)
		if err != nil {
			return fmt.Errorf("looking at an import into the stack %s: %w", p.name, err)
		}
		if out.Status == types.ChangeSetStatusCreateComplete {
			break
		}
		if out.Status == types.ChangeSetStatusFailed {
			return fmt.Errorf("an import into the stack %s cannot be planned: %s", p.name, aws.ToString(out.StatusReason))
		}
		if err := waiting.For(ctx, p.Every); err != nil {
			return fmt.Errorf("waiting for the plan of an import into the stack %s: %w", p.name, err)
		}
	}
	began := p.since()
	if _, err := p.stacks.ExecuteChangeSet(ctx, &cloudformation.ExecuteChangeSetInput{
		StackName: &p.name, ChangeSetName: in.ChangeSetName,
	}); err != nil {
		return fmt.Errorf("importing into the stack %s: %w", p.name, err)
	}
	for {
		s, err := p.settled(ctx)
		if err != nil {
			return err
		}
		idle := s != nil && before != nil && s.StackStatus == before.StackStatus &&
			aws.ToTime(s.LastUpdatedTime).Equal(aws.ToTime(before.LastUpdatedTime))
		switch {
		case s == nil:
			return fmt.Errorf("the stack %s was removed meanwhile", p.name)
		case idle, s.StackStatus == types.StackStatusReviewInProgress: // the import has not begun yet
			if err := waiting.For(ctx, p.Every); err != nil {
				return fmt.Errorf("waiting for an import into the stack %s, which goes on by itself: %w", p.name, err)
			}
		case s.StackStatus == types.StackStatusImportComplete:
			return nil
		default:
			return fmt.Errorf("importing into the stack %s has failed (%s): %w", p.name, s.StackStatus, p.why(ctx, began))
		}
	}
}
