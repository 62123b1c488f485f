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

// A call is a method of the SDK's IAM client.
type call[In, Out any] func(context.Context, *In, ...func(*iam.Options)) (*Out, error)

// hanging lists the things of one kind that are attached to a principal: one page of IAM's list has
// all of them. ids reads them from an answer, and removal makes the request that removes one.
func hanging[In, Out, Off, Done any](list call[In, Out], in In, ids func(*Out) []string,
	remove call[Off, Done], removal func(id *string) *Off) lister {
	return func(ctx context.Context) (all []Detach, err error) {
		out, err := list(ctx, &in)
		if err != nil {
			return nil, err
		}
		for _, id := range ids(out) {
			all = append(all, func(ctx context.Context) error {
				_, err := remove(ctx, removal(&id))
				return err
			})
		}
		return all, nil
	}
}

// ids returns the ids of all items.
func ids[T any](all []T, id func(T) *string) (out []string) {
	for _, v := range all {
		out = append(out, aws.ToString(id(v)))
	}
	return out
}

// A lister lists the attachments of one principal.
type lister = func(context.Context) ([]Detach, error)

func arnOf(p types.AttachedPolicy) *string { return p.PolicyArn }

func (s sdk) onRole(name *string) []lister {
	return []lister{
		hanging(s.c.ListRolePolicies, iam.ListRolePoliciesInput{RoleName: name},
			func(o *iam.ListRolePoliciesOutput) []string { return o.PolicyNames },
			s.c.DeleteRolePolicy, func(id *string) *iam.DeleteRolePolicyInput {
				return &iam.DeleteRolePolicyInput{RoleName: name, PolicyName: id}
			}),
		hanging(s.c.ListAttachedRolePolicies, iam.ListAttachedRolePoliciesInput{RoleName: name},
			func(o *iam.ListAttachedRolePoliciesOutput) []string { return ids(o.AttachedPolicies, arnOf) },
			s.c.DetachRolePolicy, func(id *string) *iam.DetachRolePolicyInput {
				return &iam.DetachRolePolicyInput{RoleName: name, PolicyArn: id}
			}),
		hanging(s.c.ListInstanceProfilesForRole, iam.ListInstanceProfilesForRoleInput{RoleName: name},
			func(o *iam.ListInstanceProfilesForRoleOutput) []string {
				return ids(o.InstanceProfiles, func(v types.InstanceProfile) *string { return v.InstanceProfileName })
			},
			s.c.RemoveRoleFromInstanceProfile, func(id *string) *iam.RemoveRoleFromInstanceProfileInput {
				return &iam.RemoveRoleFromInstanceProfileInput{RoleName: name, InstanceProfileName: id}
			}),
	}
}

func (s sdk) onUser(name *string) []lister {
	return []lister{
		hanging(s.c.ListUserPolicies, iam.ListUserPoliciesInput{UserName: name},
			func(o *iam.ListUserPoliciesOutput) []string { return o.PolicyNames },
			s.c.DeleteUserPolicy, func(id *string) *iam.DeleteUserPolicyInput {
				return &iam.DeleteUserPolicyInput{UserName: name, PolicyName: id}
			}),
		hanging(s.c.ListAttachedUserPolicies, iam.ListAttachedUserPoliciesInput{UserName: name},
			func(o *iam.ListAttachedUserPoliciesOutput) []string { return ids(o.AttachedPolicies, arnOf) },
			s.c.DetachUserPolicy, func(id *string) *iam.DetachUserPolicyInput {
				return &iam.DetachUserPolicyInput{UserName: name, PolicyArn: id}
			}),
		hanging(s.c.ListGroupsForUser, iam.ListGroupsForUserInput{UserName: name},
			func(o *iam.ListGroupsForUserOutput) []string {
				return ids(o.Groups, func(v types.Group) *string { return v.GroupName })
			},
			s.c.RemoveUserFromGroup, func(id *string) *iam.RemoveUserFromGroupInput {
				return &iam.RemoveUserFromGroupInput{UserName: name, GroupName: id}
			}),
	}
}

// ofLogins lists the means by which a user logs in, other than access keys.
func (s sdk) ofLogins(name *string) []lister {
	return []lister{
		hanging(s.c.ListMFADevices, iam.ListMFADevicesInput{UserName: name},
			func(o *iam.ListMFADevicesOutput) []string {
				return ids(o.MFADevices, func(v types.MFADevice) *string { return v.SerialNumber })
			},
			s.c.DeactivateMFADevice, func(id *string) *iam.DeactivateMFADeviceInput {
				return &iam.DeactivateMFADeviceInput{UserName: name, SerialNumber: id}
			}),
		// There is one password or none.
		hanging(s.c.GetLoginProfile, iam.GetLoginProfileInput{UserName: name},
			func(*iam.GetLoginProfileOutput) []string { return []string{*name} },
			s.c.DeleteLoginProfile, func(*string) *iam.DeleteLoginProfileInput {
				return &iam.DeleteLoginProfileInput{UserName: name}
			}),
		hanging(s.c.ListSigningCertificates, iam.ListSigningCertificatesInput{UserName: name},
			func(o *iam.ListSigningCertificatesOutput) []string {
				return ids(o.Certificates, func(v types.SigningCertificate) *string { return v.CertificateId })
			},
			s.c.DeleteSigningCertificate, func(id *string) *iam.DeleteSigningCertificateInput {
				return &iam.DeleteSigningCertificateInput{UserName: name, CertificateId: id}
			}),
		hanging(s.c.ListSSHPublicKeys, iam.ListSSHPublicKeysInput{UserName: name},
			func(o *iam.ListSSHPublicKeysOutput) []string {
				return ids(o.SSHPublicKeys, func(v types.SSHPublicKeyMetadata) *string { return v.SSHPublicKeyId })
			},
			s.c.DeleteSSHPublicKey, func(id *string) *iam.DeleteSSHPublicKeyInput {
				return &iam.DeleteSSHPublicKeyInput{UserName: name, SSHPublicKeyId: id}
			}),
		hanging(s.c.ListServiceSpecificCredentials,
			iam.ListServiceSpecificCredentialsInput{UserName: name},
			func(o *iam.ListServiceSpecificCredentialsOutput) []string {
				return ids(o.ServiceSpecificCredentials, func(v types.ServiceSpecificCredentialMetadata) *string {
					return v.ServiceSpecificCredentialId
				})
			},
			s.c.DeleteServiceSpecificCredential, func(id *string) *iam.DeleteServiceSpecificCredentialInput {
				return &iam.DeleteServiceSpecificCredentialInput{UserName: name, ServiceSpecificCredentialId: id}
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
