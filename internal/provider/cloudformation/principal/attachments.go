package principal

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A call is a method of the SDK's IAM client.
type call[In, Out any] func(context.Context, *In, ...func(*iam.Options)) (*Out, error)

// hanging lists the things of one kind that are attached to a principal: one page of IAM's list has
// all of them. items reads them from an answer, and removal makes the request that removes one.
func hanging[In, Out, Item, Off, Done any](list call[In, Out], in In, items func(*Out) []Item,
	remove call[Off, Done], removal func(Item) Off) lister {
	return func(ctx context.Context) (all []Detach, err error) {
		out, err := list(ctx, &in)
		if err != nil {
			return nil, err
		}
		for _, item := range items(out) {
			all = append(all, func(ctx context.Context) error {
				off := removal(item)
				_, err := remove(ctx, &off)
				return err
			})
		}
		return all, nil
	}
}

// A lister lists the attachments of one principal.
type lister = func(context.Context) ([]Detach, error)

func (s sdk) onRole(name *string) []lister {
	return []lister{
		hanging(s.c.ListRolePolicies, iam.ListRolePoliciesInput{RoleName: name},
			func(o *iam.ListRolePoliciesOutput) []string { return o.PolicyNames },
			s.c.DeleteRolePolicy, func(policy string) iam.DeleteRolePolicyInput {
				return iam.DeleteRolePolicyInput{RoleName: name, PolicyName: &policy}
			}),
		hanging(s.c.ListAttachedRolePolicies, iam.ListAttachedRolePoliciesInput{RoleName: name},
			func(o *iam.ListAttachedRolePoliciesOutput) []types.AttachedPolicy { return o.AttachedPolicies },
			s.c.DetachRolePolicy, func(v types.AttachedPolicy) iam.DetachRolePolicyInput {
				return iam.DetachRolePolicyInput{RoleName: name, PolicyArn: v.PolicyArn}
			}),
		hanging(s.c.ListInstanceProfilesForRole, iam.ListInstanceProfilesForRoleInput{RoleName: name},
			func(o *iam.ListInstanceProfilesForRoleOutput) []types.InstanceProfile { return o.InstanceProfiles },
			s.c.RemoveRoleFromInstanceProfile, func(v types.InstanceProfile) iam.RemoveRoleFromInstanceProfileInput {
				return iam.RemoveRoleFromInstanceProfileInput{RoleName: name, InstanceProfileName: v.InstanceProfileName}
			}),
	}
}

func (s sdk) onUser(name *string) []lister {
	return []lister{
		hanging(s.c.ListUserPolicies, iam.ListUserPoliciesInput{UserName: name},
			func(o *iam.ListUserPoliciesOutput) []string { return o.PolicyNames },
			s.c.DeleteUserPolicy, func(policy string) iam.DeleteUserPolicyInput {
				return iam.DeleteUserPolicyInput{UserName: name, PolicyName: &policy}
			}),
		hanging(s.c.ListAttachedUserPolicies, iam.ListAttachedUserPoliciesInput{UserName: name},
			func(o *iam.ListAttachedUserPoliciesOutput) []types.AttachedPolicy { return o.AttachedPolicies },
			s.c.DetachUserPolicy, func(v types.AttachedPolicy) iam.DetachUserPolicyInput {
				return iam.DetachUserPolicyInput{UserName: name, PolicyArn: v.PolicyArn}
			}),
		hanging(s.c.ListGroupsForUser, iam.ListGroupsForUserInput{UserName: name},
			func(o *iam.ListGroupsForUserOutput) []types.Group { return o.Groups },
			s.c.RemoveUserFromGroup, func(v types.Group) iam.RemoveUserFromGroupInput {
				return iam.RemoveUserFromGroupInput{UserName: name, GroupName: v.GroupName}
			}),
	}
}

// ofLogins lists the means by which a user logs in, other than access keys.
func (s sdk) ofLogins(name *string) []lister {
	return []lister{
		hanging(s.c.ListMFADevices, iam.ListMFADevicesInput{UserName: name},
			func(o *iam.ListMFADevicesOutput) []types.MFADevice { return o.MFADevices },
			s.c.DeactivateMFADevice, func(v types.MFADevice) iam.DeactivateMFADeviceInput {
				return iam.DeactivateMFADeviceInput{UserName: name, SerialNumber: v.SerialNumber}
			}),
		// There is one password or none.
		hanging(s.c.GetLoginProfile, iam.GetLoginProfileInput{UserName: name},
			func(*iam.GetLoginProfileOutput) []string { return []string{*name} },
			s.c.DeleteLoginProfile, func(string) iam.DeleteLoginProfileInput {
				return iam.DeleteLoginProfileInput{UserName: name}
			}),
		hanging(s.c.ListSigningCertificates, iam.ListSigningCertificatesInput{UserName: name},
			func(o *iam.ListSigningCertificatesOutput) []types.SigningCertificate { return o.Certificates },
			s.c.DeleteSigningCertificate, func(v types.SigningCertificate) iam.DeleteSigningCertificateInput {
				return iam.DeleteSigningCertificateInput{UserName: name, CertificateId: v.CertificateId}
			}),
		hanging(s.c.ListSSHPublicKeys, iam.ListSSHPublicKeysInput{UserName: name},
			func(o *iam.ListSSHPublicKeysOutput) []types.SSHPublicKeyMetadata { return o.SSHPublicKeys },
			s.c.DeleteSSHPublicKey, func(v types.SSHPublicKeyMetadata) iam.DeleteSSHPublicKeyInput {
				return iam.DeleteSSHPublicKeyInput{UserName: name, SSHPublicKeyId: v.SSHPublicKeyId}
			}),
		hanging(s.c.ListServiceSpecificCredentials,
			iam.ListServiceSpecificCredentialsInput{UserName: name},
			func(o *iam.ListServiceSpecificCredentialsOutput) []types.ServiceSpecificCredentialMetadata {
				return o.ServiceSpecificCredentials
			},
			s.c.DeleteServiceSpecificCredential,
			func(v types.ServiceSpecificCredentialMetadata) iam.DeleteServiceSpecificCredentialInput {
				return iam.DeleteServiceSpecificCredentialInput{UserName: name,
					ServiceSpecificCredentialId: v.ServiceSpecificCredentialId}
			}),
	}
}

// Attachments implements Policies. If one list fails, the others are still used.
func (s sdk) Attachments(ctx context.Context, kind plan.Principal, name string) (all []Detach, err error) {
	listers := s.onRole(&name)
	if kind == plan.User {
		listers = append(s.onUser(&name), s.ofLogins(&name)...)
	}
	var failed []error
	for _, list := range listers {
		some, err := list(ctx)
		if err != nil && !awserr.Is(err, awserr.Absent) {
			failed = append(failed, fmt.Errorf("listing what hangs on a %s: %w", kind, err))
		}
		all = append(all, some...)
	}
	if len(all) > 0 {
		return all, nil
	}
	return nil, errors.Join(failed...)
}
