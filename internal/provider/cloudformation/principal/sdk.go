package principal

import (
	"context"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// NewIAM is the IAM of the account that a config leads to.
func NewIAM(cfg aws.Config) IAM { return sdk{iam.NewFromConfig(cfg)} }

// sdk is IAM by AWS's SDK, which repeats what it may.
type sdk struct{ c *iam.Client }

// List implements Principals.
func (s sdk) List(ctx context.Context, kind plan.Principal, path, cursor string, most int) (page []Found, next string,
	err error) {
	var marker *string
	if cursor != "" {
		marker = &cursor
	}
	items := aws.Int32(int32(most))
	if kind == plan.Role {
		out, err := s.c.ListRoles(ctx, &iam.ListRolesInput{PathPrefix: &path, Marker: marker, MaxItems: items})
		if err != nil {
			return nil, "", err
		}
		for _, r := range out.Roles {
			page = append(page, foundRole(&r))
		}
		return page, aws.ToString(out.Marker), nil
	}
	out, err := s.c.ListUsers(ctx, &iam.ListUsersInput{PathPrefix: &path, Marker: marker, MaxItems: items})
	if err != nil {
		return nil, "", err
	}
	for _, u := range out.Users {
		page = append(page, foundUser(&u))
	}
	return page, aws.ToString(out.Marker), nil
}

// Get implements Principals.
func (s sdk) Get(ctx context.Context, kind plan.Principal, name string) (Found, error) {
	if kind == plan.Role {
		out, err := s.c.GetRole(ctx, &iam.GetRoleInput{RoleName: &name})
		if err != nil {
			return Found{}, err
		}
		f := foundRole(out.Role)
		f.Trust, err = url.QueryUnescape(aws.ToString(out.Role.AssumeRolePolicyDocument))
		return f, err
	}
	out, err := s.c.GetUser(ctx, &iam.GetUserInput{UserName: &name})
	if err != nil {
		return Found{}, err
	}
	return foundUser(out.User), nil
}

func foundUser(u *types.User) Found {
	return Found{
		Name: aws.ToString(u.UserName), ARN: aws.ToString(u.Arn), Path: aws.ToString(u.Path),
		Created: aws.ToTime(u.CreateDate).UTC(),
		Tags:    tagsOf(u.Tags),
	}
}

func foundRole(r *types.Role) Found {
	return Found{
		Name: aws.ToString(r.RoleName), ARN: aws.ToString(r.Arn), Path: aws.ToString(r.Path),
		Created: aws.ToTime(r.CreateDate).UTC(),
		Tags:    tagsOf(r.Tags),
	}
}

func tagsOf(tags []types.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}

func toTags(labels []label.Label) []types.Tag {
	out := make([]types.Tag, 0, len(labels))
	for _, l := range labels {
		out = append(out, types.Tag{Key: &l.Name, Value: &l.Value})
	}
	return out
}

// Create implements Principals.
func (s sdk) Create(ctx context.Context, kind plan.Principal, w Wanted) (err error) {
	if w.Boundary == "" {
		return fmt.Errorf("%s %q has no boundary", kind, w.Name)
	}
	if kind == plan.Role {
		_, err = s.c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &w.Name, Path: &w.Path, Tags: toTags(w.Tags),
			PermissionsBoundary: &w.Boundary, AssumeRolePolicyDocument: &w.Trust})
		return err
	}
	_, err = s.c.CreateUser(ctx, &iam.CreateUserInput{UserName: &w.Name, Path: &w.Path, Tags: toTags(w.Tags),
		PermissionsBoundary: &w.Boundary})
	return err
}

// SetTrust implements Principals.
func (s sdk) SetTrust(ctx context.Context, role, document string) error {
	_, err := s.c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: &role, PolicyDocument: &document})
	return err
}

// SetTags implements Principals.
func (s sdk) SetTags(ctx context.Context, kind plan.Principal, name string, tags []label.Label) (err error) {
	if kind == plan.Role {
		_, err = s.c.TagRole(ctx, &iam.TagRoleInput{RoleName: &name, Tags: toTags(tags)})
	} else {
		_, err = s.c.TagUser(ctx, &iam.TagUserInput{UserName: &name, Tags: toTags(tags)})
	}
	return err
}

// DropTags implements Principals.
func (s sdk) DropTags(ctx context.Context, kind plan.Principal, name string, tags ...string) (err error) {
	if kind == plan.Role {
		_, err = s.c.UntagRole(ctx, &iam.UntagRoleInput{RoleName: &name, TagKeys: tags})
	} else {
		_, err = s.c.UntagUser(ctx, &iam.UntagUserInput{UserName: &name, TagKeys: tags})
	}
	return err
}

// Delete implements Principals.
func (s sdk) Delete(ctx context.Context, kind plan.Principal, name string) (err error) {
	if kind == plan.Role {
		_, err = s.c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: &name})
	} else {
		_, err = s.c.DeleteUser(ctx, &iam.DeleteUserInput{UserName: &name})
	}
	return err
}

// Policy implements Policies.
func (s sdk) Policy(ctx context.Context, kind plan.Principal, name, policy string) (string, error) {
	var document *string
	if kind == plan.Role {
		out, err := s.c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &name, PolicyName: &policy})
		if err != nil {
			return "", err
		}
		document = out.PolicyDocument
	} else {
		out, err := s.c.GetUserPolicy(ctx, &iam.GetUserPolicyInput{UserName: &name, PolicyName: &policy})
		if err != nil {
			return "", err
		}
		document = out.PolicyDocument
	}
	return url.QueryUnescape(aws.ToString(document))
}

// PutPolicy implements Policies.
func (s sdk) PutPolicy(ctx context.Context, kind plan.Principal, name, policy, document string) (err error) {
	if kind == plan.Role {
		_, err = s.c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: &policy, PolicyDocument: &document})
	} else {
		_, err = s.c.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: &name, PolicyName: &policy, PolicyDocument: &document})
	}
	return err
}

// DeletePolicy implements Policies.
func (s sdk) DeletePolicy(ctx context.Context, kind plan.Principal, name, policy string) (err error) {
	if kind == plan.Role {
		_, err = s.c.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: &policy})
	} else {
		_, err = s.c.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: &name, PolicyName: &policy})
	}
	return err
}

// Keys implements Keys.
func (s sdk) Keys(ctx context.Context, user string) (keys []KeyInfo, err error) {
	out, err := s.c.ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: &user})
	if err != nil {
		return nil, err
	}
	for _, k := range out.AccessKeyMetadata {
		keys = append(keys, KeyInfo{ID: aws.ToString(k.AccessKeyId), Active: k.Status == types.StatusTypeActive})
	}
	return keys, nil
}

// CreateKey implements Keys. The SDK does not repeat it: after a lost answer, that
// would make a second key.
func (s sdk) CreateKey(ctx context.Context, user string) (Key, error) {
	out, err := s.c.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &user},
		func(o *iam.Options) { o.Retryer = aws.NopRetryer{} })
	if err != nil {
		return Key{}, err
	}
	return Key{ID: aws.ToString(out.AccessKey.AccessKeyId), Secret: aws.ToString(out.AccessKey.SecretAccessKey)}, nil
}

// SetKey implements Keys.
func (s sdk) SetKey(ctx context.Context, user, id string, active bool) error {
	status := types.StatusTypeInactive
	if active {
		status = types.StatusTypeActive
	}
	_, err := s.c.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{UserName: &user, AccessKeyId: &id, Status: status})
	return err
}

// DeleteKey implements Keys.
func (s sdk) DeleteKey(ctx context.Context, user, id string) error {
	_, err := s.c.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: &user, AccessKeyId: &id})
	return err
}

// Usage implements Keys.
func (s sdk) Usage(ctx context.Context, kind plan.Principal) (made, most int, err error) {
	out, err := s.c.GetAccountSummary(ctx, &iam.GetAccountSummaryInput{})
	if err != nil {
		return 0, 0, err
	}
	if kind == plan.Role {
		return int(out.SummaryMap["Roles"]), int(out.SummaryMap["RolesQuota"]), nil
	}
	return int(out.SummaryMap["Users"]), int(out.SummaryMap["UsersQuota"]), nil
}
