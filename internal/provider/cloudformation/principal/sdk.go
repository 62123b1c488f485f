package principal

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// NewIAM returns the IAM of the account that a config leads to.
func NewIAM(cfg aws.Config) IAM { return sdk{iam.NewFromConfig(cfg)} }

// sdk implements IAM with AWS's SDK, which repeats calls where that is safe.
type sdk struct{ c *iam.Client }

// either makes the call for a role, or the one for a user.
func either[RoleIn, RoleOut, UserIn, UserOut any](ctx context.Context, kind plan.Principal,
	ofRole call[RoleIn, RoleOut], role RoleIn, ofUser call[UserIn, UserOut], user UserIn) (err error) {
	if kind == plan.Role {
		_, err = ofRole(ctx, &role)
	} else {
		_, err = ofUser(ctx, &user)
	}
	return err
}

// List implements Principals.
func (s sdk) List(ctx context.Context, kind plan.Principal, path, cursor string, most int) (page []Found, next string,
	err error) {
	marker := &cursor
	if cursor == "" {
		marker = nil
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
	return foundOf(plan.User, u.UserName, u.Arn, u.CreateDate, u.Tags)
}

func foundRole(r *types.Role) Found {
	return foundOf(plan.Role, r.RoleName, r.Arn, r.CreateDate, r.Tags)
}

func foundOf(kind plan.Principal, name, arn *string, created *time.Time, tags []types.Tag) Found {
	f := Found{Kind: kind, Name: aws.ToString(name), ARN: aws.ToString(arn), Created: aws.ToTime(created).UTC(),
		Tags: map[string]string{}}
	for _, t := range tags {
		f.Tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return f
}

func toTags(labels []label.Label) []types.Tag {
	out := make([]types.Tag, 0, len(labels))
	for _, l := range labels {
		out = append(out, types.Tag{Key: &l.Name, Value: &l.Value})
	}
	return out
}

// Create implements Principals.
func (s sdk) Create(ctx context.Context, kind plan.Principal, w Wanted) error {
	if w.Boundary == "" {
		return fmt.Errorf("%s %q has no boundary", kind, w.Name)
	}
	return either(ctx, kind,
		s.c.CreateRole, iam.CreateRoleInput{RoleName: &w.Name, Path: &w.Path, Tags: toTags(w.Tags),
			PermissionsBoundary: &w.Boundary, AssumeRolePolicyDocument: &w.Trust},
		s.c.CreateUser, iam.CreateUserInput{UserName: &w.Name, Path: &w.Path, Tags: toTags(w.Tags),
			PermissionsBoundary: &w.Boundary})
}

// SetTrust implements Principals.
func (s sdk) SetTrust(ctx context.Context, role, document string) error {
	_, err := s.c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: &role, PolicyDocument: &document})
	return err
}

// SetTags implements Principals.
func (s sdk) SetTags(ctx context.Context, kind plan.Principal, name string, tags []label.Label) error {
	return either(ctx, kind, s.c.TagRole, iam.TagRoleInput{RoleName: &name, Tags: toTags(tags)},
		s.c.TagUser, iam.TagUserInput{UserName: &name, Tags: toTags(tags)})
}

// DropTags implements Principals.
func (s sdk) DropTags(ctx context.Context, kind plan.Principal, name string, tags ...string) error {
	return either(ctx, kind, s.c.UntagRole, iam.UntagRoleInput{RoleName: &name, TagKeys: tags},
		s.c.UntagUser, iam.UntagUserInput{UserName: &name, TagKeys: tags})
}

// Delete implements Principals.
func (s sdk) Delete(ctx context.Context, kind plan.Principal, name string) error {
	return either(ctx, kind, s.c.DeleteRole, iam.DeleteRoleInput{RoleName: &name},
		s.c.DeleteUser, iam.DeleteUserInput{UserName: &name})
}

// Policy implements Policies.
func (s sdk) Policy(ctx context.Context, kind plan.Principal, name, policy string) (string, error) {
	if kind == plan.Role {
		out, err := s.c.GetRolePolicy(ctx, &iam.GetRolePolicyInput{RoleName: &name, PolicyName: &policy})
		if err != nil {
			return "", err
		}
		return url.QueryUnescape(aws.ToString(out.PolicyDocument))
	}
	out, err := s.c.GetUserPolicy(ctx, &iam.GetUserPolicyInput{UserName: &name, PolicyName: &policy})
	if err != nil {
		return "", err
	}
	return url.QueryUnescape(aws.ToString(out.PolicyDocument))
}

// PutPolicy implements Policies.
func (s sdk) PutPolicy(ctx context.Context, kind plan.Principal, name, policy, document string) error {
	return either(ctx, kind,
		s.c.PutRolePolicy, iam.PutRolePolicyInput{RoleName: &name, PolicyName: &policy, PolicyDocument: &document},
		s.c.PutUserPolicy, iam.PutUserPolicyInput{UserName: &name, PolicyName: &policy, PolicyDocument: &document})
}

// DeletePolicy implements Policies.
func (s sdk) DeletePolicy(ctx context.Context, kind plan.Principal, name, policy string) error {
	return either(ctx, kind, s.c.DeleteRolePolicy, iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: &policy},
		s.c.DeleteUserPolicy, iam.DeleteUserPolicyInput{UserName: &name, PolicyName: &policy})
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

// CreateKey implements Keys. The SDK does not repeat the call: after a lost answer, that would make
// a second key.
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
	all := map[plan.Principal]string{plan.User: "Users", plan.Role: "Roles"}[kind]
	return int(out.SummaryMap[all]), int(out.SummaryMap[all+"Quota"]), nil
}
