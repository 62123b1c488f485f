package account

import (
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// Emulators of AWS do not know these condition keys.
const (
	keyBoundary  = "iam:PermissionsBoundary"
	keyPassed    = "iam:PassedToService"
	keyStackRole = "cloudformation:RoleArn"
)

// UnknownKeys are the condition keys that Options.Emulated leaves out.
var UnknownKeys = []string{keyBoundary, keyPassed, keyStackRole}

func iamARN(resource string) string { return Here.ARN("iam", resource) }

// bucketARNs returns the ARNs of the bucket of templates and of its objects.
func bucketARNs(scope plan.Scope) iampolicy.Texts {
	bucket := Here.ARN("s3", scope.Bucket(Here.Account, Here.Region))
	return iampolicy.Texts{bucket, bucket + "/*"}
}

// stacks matches the stacks of instances.
func stacks(scope plan.Scope) iampolicy.Texts {
	return contents(scope, "cloudformation", "stack/")
}

// principals matches the users or roles of bindings. An emulator leaves out the path, as in the
// second form; on AWS, that form matches principals without a path.
func principals(scope plan.Scope, kind string) iampolicy.Texts {
	return iampolicy.Texts{iamARN(kind + scope.Path() + "*"), iamARN(kind + "/" + string(scope) + "-b-*")}
}

// serviceRoles matches the service roles of all offerings, including those that have left the
// catalog: their stacks still have to be deleted.
func serviceRoles(scope plan.Scope) iampolicy.Texts {
	return iampolicy.Texts{iamARN("role" + scope.FixedPath() + string(scope) + "-s-*"), iamARN("role/" + string(scope) + "-s-*")}
}

// boundaries matches the boundaries of all offerings.
func boundaries(scope plan.Scope) string {
	return iamARN("policy" + scope.FixedPath() + string(scope) + "-p-*")
}

// contents matches the resources of instances, in a service whose ARNs end in names.
func contents(scope plan.Scope, service, kind string) iampolicy.Texts {
	return iampolicy.Texts{Here.ARN(service, kind+scope.Stacks()+"*")}
}

func allow(sid string, resource iampolicy.Texts, actions ...string) iampolicy.Statement {
	return iampolicy.Statement{Sid: sid, Effect: iampolicy.EffectAllow, Action: actions, Resource: resource}
}

func deny(sid string, resource iampolicy.Texts, actions ...string) iampolicy.Statement {
	return iampolicy.Statement{Sid: sid, Effect: iampolicy.EffectDeny, Action: actions, Resource: resource}
}

// where adds a condition to a statement.
func where(s iampolicy.Statement, operator, key string, values ...string) iampolicy.Statement {
	condition := iampolicy.Condition{operator: {key: values}}
	maps.Copy(condition, s.Condition)
	s.Condition = condition
	return s
}

// only is like where, but adds no condition if an emulator does not know the key.
func (o Options) only(s iampolicy.Statement, operator, key string, values ...string) iampolicy.Statement {
	if o.Emulated && slices.Contains(UnknownKeys, key) {
		return s
	}
	return where(s, operator, key, values...)
}

var everything = iampolicy.Texts{"*"}

// Rights returns what a broker may do in an account. It can make stacks and principals only under
// its own prefix, stacks only with the role of an offering, and principals only below a boundary.
// It can neither make nor change the roles of offerings and the boundaries.
func Rights(scope plan.Scope, o Options) []iampolicy.Statement {
	users, roles := principals(scope, "user"), principals(scope, "role")
	both := slices.Concat(users, roles)
	return append(o.everywhere([]iampolicy.Statement{
		o.only(allow("Stacks", stacks(scope), "cloudformation:CreateStack", "cloudformation:UpdateStack"),
			"ArnLike", keyStackRole, serviceRoles(scope)...),
		// Without a role in the call, CloudFormation takes the role that the stack was made with.
		o.only(allow("StacksEnd", stacks(scope), "cloudformation:DeleteStack", "cloudformation:ContinueUpdateRollback"),
			"ArnLikeIfExists", keyStackRole, serviceRoles(scope)...),
		allow("StacksTags", stacks(scope), "cloudformation:CancelUpdateStack", "cloudformation:TagResource",
			"cloudformation:UntagResource",
			"cloudformation:GetTemplate"),
		o.only(allow("ServiceRoles", serviceRoles(scope), "iam:PassRole"), "StringEquals", keyPassed,
			"cloudformation.amazonaws.com"),
		o.only(allow("Principals", both, "iam:CreateUser", "iam:PutUserPolicy", "iam:CreateRole", "iam:PutRolePolicy"),
			"StringLike", keyBoundary, boundaries(scope)),
		allow("Users", users, "iam:CreateAccessKey", "iam:DeactivateMFADevice", "iam:DeleteAccessKey", "iam:DeleteLoginProfile",
			"iam:DeleteSSHPublicKey", "iam:DeleteServiceSpecificCredential", "iam:DeleteSigningCertificate", "iam:DeleteUser",
			"iam:DeleteUserPolicy", "iam:DetachUserPolicy", "iam:GetLoginProfile", "iam:GetUserPolicy",
			"iam:ListAttachedUserPolicies", "iam:ListGroupsForUser", "iam:ListMFADevices", "iam:ListSSHPublicKeys",
			"iam:ListServiceSpecificCredentials", "iam:ListSigningCertificates", "iam:ListUserPolicies", "iam:TagUser",
			"iam:UntagUser", "iam:UpdateAccessKey"),
		allow("Roles", roles, "iam:DeleteRole", "iam:DeleteRolePolicy", "iam:DetachRolePolicy", "iam:GetRolePolicy",
			"iam:ListAttachedRolePolicies", "iam:ListInstanceProfilesForRole", "iam:ListRolePolicies",
			"iam:TagRole", "iam:UntagRole", "iam:UpdateAssumeRolePolicy"),
		// Without the right to list, a missing template would look forbidden.
		allow("TemplateNames", bucketARNs(scope)[:1], "s3:ListBucket"),
		allow("TemplatesRead", bucketARNs(scope)[1:], "s3:GetObject"),
		allow("Templates", iampolicy.Texts{bucketARNs(scope)[0] + "/templates/*"}, "s3:PutObject"),
		// The broker counts and removes the contents of an instance, and never reads them. It marks
		// the resources that outlive a stack that was deleted by hand.
		allow("Buckets", contents(scope, "s3", ""), "s3:DeleteObject", "s3:DeleteObjectVersion",
			"s3:GetBucketTagging",
			"s3:ListBucketVersions", "s3:PutBucketTagging"),
		allow("Streams", contents(scope, "kinesis", "stream/"), "kinesis:AddTagsToStream",
			"kinesis:DeregisterStreamConsumer", "kinesis:DescribeStreamSummary", "kinesis:ListStreamConsumers"),
		allow("Rules", contents(scope, "events", "rule/"), "events:DeleteRule", "events:ListTargetsByRule",
			"events:RemoveTargets"),
		allow("Unnamed", everything, "events:ListRules", "tag:TagResources"), // these actions know no resources
		allow("Queues", contents(scope, "sqs", ""), "sqs:GetQueueAttributes", "sqs:TagQueue"),
		allow("Marks", slices.Concat(contents(scope, "dynamodb", "table/"), contents(scope, "secretsmanager", "secret:")),
			"dynamodb:TagResource", "secretsmanager:TagResource"),
		o.only(allow("Tables", contents(scope, "dynamodb", "table/"), "dynamodb:Scan"),
			"StringEquals", "dynamodb:Select", "COUNT"),
	}), Inventory(scope, o)...)
}

// Inventory returns those of Rights that listing needs: they change nothing.
func Inventory(scope plan.Scope, o Options) []iampolicy.Statement {
	all := []iampolicy.Statement{
		allow("StacksSeen", stacks(scope), "cloudformation:DescribeStackEvents", "cloudformation:DescribeStacks",
			"cloudformation:ListStackResources"),
		// These actions know no resources.
		allow("Listing", everything, "cloudformation:DescribeAccountLimits", "cloudformation:ListExports",
			"cloudformation:ListStacks",
			"iam:GetAccountSummary", "iam:ListRoles", "iam:ListUsers", "tag:GetResources"),
		allow("UsersSeen", principals(scope, "user"), "iam:GetUser", "iam:ListAccessKeys", "iam:ListUserTags"),
		allow("RolesSeen", principals(scope, "role"), "iam:GetRole", "iam:ListRoleTags"),
	}
	if len(o.Access) > 0 {
		all = append(all, allow("Accounts", o.Access, "sts:AssumeRole"))
	}
	return o.everywhere(all)
}

// Listing returns the policy of a session that lists an account through a role with more rights. A
// session has only the rights that both give; the role limits them to resources.
func Listing(scope plan.Scope) string {
	var actions iampolicy.Texts
	for _, s := range Inventory(scope, Options{}) {
		actions = append(actions, s.Action...)
	}
	return string(textOf([]iampolicy.Statement{allow("Listing", everything, actions...)}))
}

// everywhere extends the rights in the place's region to the other regions.
func (o Options) everywhere(all []iampolicy.Statement) []iampolicy.Statement {
	for i, s := range all {
		var more iampolicy.Texts
		for _, region := range o.Regions {
			for _, on := range s.Resource {
				if strings.Contains(on, Here.Region) {
					more = append(more, strings.ReplaceAll(on, Here.Region, region))
				}
			}
		}
		all[i].Resource = slices.Concat(s.Resource, more)
	}
	return all
}
