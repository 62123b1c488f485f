package principal

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A hook is one kind of things that hang on principals: how they are found and taken
// off. A list of IAM gives more than anybody hangs on one principal.
type hook struct {
	kind   string
	list   func(ctx context.Context, c *iam.Client, name string) ([]string, error)
	detach func(ctx context.Context, c *iam.Client, name, id string) error
}

// hooksOf are those of users and of roles, without which IAM deletes neither. It is no
// variable: programs that make no principals would have them all the same.
func hooksOf(p plan.Principal) []hook {
	if p == plan.Role {
		return []hook{inlineOfRole, attachedToRole, instanceProfiles}
	}
	return []hook{inlineOfUser, attachedToUser, groups, devices, loginProfile, certificates, sshKeys, serviceCredentials}
}

// Attachments implements Policies. What cannot be listed hinders nothing else.
func (s sdk) Attachments(ctx context.Context, kind plan.Principal, name string) (all []Attachment, err error) {
	var failed []error
	for _, h := range hooksOf(kind) {
		ids, err := h.list(ctx, s.c, name)
		if err != nil && !awserr.Is(err, awserr.Absent) {
			failed = append(failed, fmt.Errorf("listing what hangs on a %s: %w", kind, err))
		}
		for _, id := range ids {
			all = append(all, Attachment{Kind: h.kind, ID: id})
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, errors.Join(failed...)
}

// Detach implements Policies.
func (s sdk) Detach(ctx context.Context, kind plan.Principal, name string, a Attachment) error {
	for _, h := range hooksOf(kind) {
		if h.kind == a.Kind {
			return h.detach(ctx, s.c, name, a.ID)
		}
	}
	return fmt.Errorf("nothing is known of %q of a %s", a.Kind, kind)
}

// ids gives the texts of some members.
func ids[T any](all []T, id func(T) *string) (out []string) {
	for _, v := range all {
		out = append(out, aws.ToString(id(v)))
	}
	return out
}

var inlineOfUser = hook{"policy",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListUserPolicies(ctx, &iam.ListUserPoliciesInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return out.PolicyNames, nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DeleteUserPolicy(ctx, &iam.DeleteUserPolicyInput{UserName: &name, PolicyName: &id})
		return err
	},
}

var inlineOfRole = hook{"policy",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: &name})
		if err != nil {
			return nil, err
		}
		return out.PolicyNames, nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: &id})
		return err
	},
}

var attachedToUser = hook{"attached policy",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListAttachedUserPolicies(ctx, &iam.ListAttachedUserPoliciesInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.AttachedPolicies, func(v types.AttachedPolicy) *string { return v.PolicyArn }), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DetachUserPolicy(ctx, &iam.DetachUserPolicyInput{UserName: &name, PolicyArn: &id})
		return err
	},
}

var attachedToRole = hook{"attached policy",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.AttachedPolicies, func(v types.AttachedPolicy) *string { return v.PolicyArn }), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: &name, PolicyArn: &id})
		return err
	},
}

var groups = hook{"group",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListGroupsForUser(ctx, &iam.ListGroupsForUserInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.Groups, func(v types.Group) *string { return v.GroupName }), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.RemoveUserFromGroup(ctx, &iam.RemoveUserFromGroupInput{UserName: &name, GroupName: &id})
		return err
	},
}

var devices = hook{"MFA device",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.MFADevices, func(v types.MFADevice) *string { return v.SerialNumber }), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DeactivateMFADevice(ctx, &iam.DeactivateMFADeviceInput{UserName: &name, SerialNumber: &id})
		return err
	},
}

var certificates = hook{"signing certificate",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListSigningCertificates(ctx, &iam.ListSigningCertificatesInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.Certificates, func(v types.SigningCertificate) *string { return v.CertificateId }), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DeleteSigningCertificate(ctx, &iam.DeleteSigningCertificateInput{UserName: &name, CertificateId: &id})
		return err
	},
}

var sshKeys = hook{"SSH key",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListSSHPublicKeys(ctx, &iam.ListSSHPublicKeysInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.SSHPublicKeys, func(v types.SSHPublicKeyMetadata) *string { return v.SSHPublicKeyId }), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DeleteSSHPublicKey(ctx, &iam.DeleteSSHPublicKeyInput{UserName: &name, SSHPublicKeyId: &id})
		return err
	},
}

var serviceCredentials = hook{"credential of a service",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListServiceSpecificCredentials(ctx, &iam.ListServiceSpecificCredentialsInput{UserName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.ServiceSpecificCredentials, func(v types.ServiceSpecificCredentialMetadata) *string {
			return v.ServiceSpecificCredentialId
		}), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.DeleteServiceSpecificCredential(ctx, &iam.DeleteServiceSpecificCredentialInput{
			UserName: &name, ServiceSpecificCredentialId: &id,
		})
		return err
	},
}

var instanceProfiles = hook{"instance profile",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		out, err := c.ListInstanceProfilesForRole(ctx, &iam.ListInstanceProfilesForRoleInput{RoleName: &name})
		if err != nil {
			return nil, err
		}
		return ids(out.InstanceProfiles, func(v types.InstanceProfile) *string { return v.InstanceProfileName }), nil
	},
	func(ctx context.Context, c *iam.Client, name, id string) error {
		_, err := c.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{RoleName: &name,
			InstanceProfileName: &id})
		return err
	},
}

// loginProfile is the password of a user: there is one or none.
var loginProfile = hook{"password",
	func(ctx context.Context, c *iam.Client, name string) ([]string, error) {
		if _, err := c.GetLoginProfile(ctx, &iam.GetLoginProfileInput{UserName: &name}); err != nil {
			return nil, err
		}
		return []string{name}, nil
	},
	func(ctx context.Context, c *iam.Client, name, _ string) error {
		_, err := c.DeleteLoginProfile(ctx, &iam.DeleteLoginProfileInput{UserName: &name})
		return err
	},
}
