package account_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/policytest"
)

const (
	scope = plan.Scope("longshore-abcdefgh")
	other = plan.Scope("longshore-zzzzzzzz")
)

var place = plan.Location{Partition: "aws", Account: "111122223333", Region: "eu-central-1"}

// queue is an offering as an operator might write it.
func queue(t testing.TB) account.Offering {
	t.Helper()
	read := func(text string) iampolicy.Document {
		return expect.Get(iampolicy.Parse([]byte(text)))(t)
	}
	return account.Offering{
		Name: "queue",
		// Too wide on purpose: what guards others must not hang on it.
		Permissions: []iampolicy.Document{read(`{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Action":["sqs:*"],
				"Resource":"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${Prefix}*"},
			{"Effect":"Allow","Action":["iam:*","ssm:*","secretsmanager:*","sts:*","s3:*"],"Resource":"*"}]}`)},
		Policies: []account.Policy{{Document: read(`{"Version":"2012-10-17","Statement":[
			{"Effect":"Allow","Action":["sqs:SendMessage","sqs:ReceiveMessage"],"Resource":"${QueueArn}"}]}`)}},
	}
}

func document(all []iampolicy.Statement) []iampolicy.Document {
	return []iampolicy.Document{{Version: iampolicy.Version, Statement: account.Fill(all, place)}}
}

const (
	iamARN      = "arn:aws:iam::111122223333:"
	hash        = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	stack       = "arn:aws:cloudformation:eu-central-1:111122223333:stack/longshore-abcdefgh-i-" + hash + "/*"
	user        = iamARN + "user/longshore/abcdefgh/" + hash + "/" + hash + "/longshore-abcdefgh-b-" + hash + "-aaaaaaaa"
	role        = iamARN + "role/longshore/abcdefgh/" + hash + "/" + hash + "/longshore-abcdefgh-b-" + hash + "-aaaaaaaa"
	boundary    = iamARN + "policy/longshore/abcdefgh-fixed/longshore-abcdefgh-p-queue-eu-central-1"
	detour      = iamARN + "role/longshore-abcdefgh-b-/longshore-abcdefgh-s-x"
	access      = iamARN + "role/longshore/abcdefgh-fixed/longshore-abcdefgh-a-eu-central-1"
	serviceRole = iamARN + "role/longshore/abcdefgh-fixed/longshore-abcdefgh-s-queue-eu-central-1"
	stacks      = "cloudformation.amazonaws.com"
	table       = "arn:aws:dynamodb:eu-central-1:111122223333:table/longshore-abcdefgh-i-x"
	bucket      = "arn:aws:s3:::longshore-abcdefgh-111122223333-eu-central-1"
)

func stackAt(region, name string) string {
	return "arn:aws:cloudformation:" + region + ":111122223333:stack/" + name + "/*"
}

type call struct {
	reason           string
	action, resource string
	context          map[string][]string
	want             bool
}

func (c call) request() policytest.Request {
	return policytest.Request{Action: c.action, Resource: c.resource, Context: c.context}
}

// decides requires that policies within boundaries allow what they are to allow, and nothing else.
func decides(t *testing.T, calls []call, policies []iampolicy.Document, boundaries ...[]iampolicy.Document) {
	t.Helper()
	for _, c := range calls {
		if got := policytest.Allows(c.request(), policies, boundaries...); got != c.want {
			t.Errorf("%s (%s on %s): allowed %t, want %t", c.reason, c.action, c.resource, got, c.want)
		}
	}
}

func bounded(arn string) map[string][]string {
	return map[string][]string{"iam:PermissionsBoundary": {arn}}
}

func byRole(arn string) map[string][]string {
	return map[string][]string{"cloudformation:RoleArn": {arn}}
}

func passed(to string) map[string][]string { return map[string][]string{"iam:PassedToService": {to}} }

// attacks are on whoever runs the broker: what a stolen login of it can do.
var attacks = []call{
	{"a binding's user", "iam:CreateUser", user, bounded(boundary), true},
	{"nobody bounds it", "iam:CreateUser", user, nil, false},
	{"the boundary is no boundary of ours", "iam:CreateUser", user, bounded(iamARN + "policy/Admin"), false},
	{"AWS's own policy bounds nothing", "iam:CreateUser", user, bounded("arn:aws:iam::aws:policy/AdministratorAccess"), false},
	{"not under our names", "iam:CreateUser", iamARN + "user/eve", bounded(boundary), false},
	{"of another broker", "iam:CreateUser",
		iamARN + "user/longshore/zzzzzzzz/a/b/longshore-zzzzzzzz-b-a", bounded(boundary), false},
	{"a binding's role", "iam:CreateRole", role, bounded(boundary), true},
	{"nobody bounds it", "iam:CreateRole", role, nil, false},
	{"a role that could be passed", "iam:CreateRole", serviceRole, bounded(boundary), false},
	{"a path that leads to where roles can be passed from", "iam:CreateRole", detour, bounded(boundary), true},
	{"what was made so is not passed", "iam:PassRole", detour, passed(stacks), false},
	{"nor what is below the path of bindings", "iam:PassRole",
		iamARN + "role/longshore/abcdefgh/longshore-abcdefgh-s-x", passed(stacks), false},
	{"a binding's policy", "iam:PutUserPolicy", user, bounded(boundary), true},
	{"of a user whose boundary is gone", "iam:PutUserPolicy", user, nil, false},
	{"of such a role", "iam:PutRolePolicy", role, nil, false},
	{"of a service role", "iam:PutRolePolicy", serviceRole, bounded(boundary), false},
	{"who may take a service role", "iam:UpdateAssumeRolePolicy", serviceRole, nil, false},
	{"a policy of its own", "iam:AttachUserPolicy", user, bounded(boundary), false},
	{"a policy of its own", "iam:AttachRolePolicy", role, bounded(boundary), false},
	{"the boundary is taken off", "iam:DeleteUserPermissionsBoundary", user, bounded(boundary), false},
	{"the boundary is taken off", "iam:DeleteRolePermissionsBoundary", role, bounded(boundary), false},
	{"the boundary becomes another", "iam:PutUserPermissionsBoundary", user, bounded(boundary), false},
	{"its text is changed", "iam:CreatePolicyVersion", boundary, nil, false},
	{"an earlier text is taken again", "iam:SetDefaultPolicyVersion", boundary, nil, false},
	{"it is deleted", "iam:DeletePolicy", boundary, nil, false},
	{"a wider one is made", "iam:CreatePolicy", iamARN + "policy/longshore/abcdefgh-fixed/longshore-abcdefgh-p-x", nil, false},
	{"a group gives what a boundary bounds, but is not needed", "iam:AddUserToGroup", iamARN + "group/admins", nil, false},
	{"a binding's key", "iam:CreateAccessKey", user, nil, true},
	{"somebody's key", "iam:CreateAccessKey", iamARN + "user/admin", nil, false},
	{"a password", "iam:CreateLoginProfile", user, nil, false},

	{"an offering's role for a stack", "iam:PassRole", serviceRole, passed(stacks), true},
	{"another role", "iam:PassRole", iamARN + "role/Admin", passed(stacks), false},
	{"a binding's role", "iam:PassRole", role, passed(stacks), false},
	{"to another service", "iam:PassRole", serviceRole, passed("lambda.amazonaws.com"), false},
	{"the role of another account's broker", "iam:PassRole", access, passed(stacks), false},
	{"a service role itself", "sts:AssumeRole", serviceRole, nil, false},
	{"any role", "sts:AssumeRole", iamARN + "role/Admin", nil, false},

	{"an instance", "cloudformation:CreateStack", stack, byRole(serviceRole), true},
	{"it would work by the broker's own rights", "cloudformation:CreateStack", stack, nil, false},
	{"it would work by another's", "cloudformation:CreateStack", stack, byRole(iamARN + "role/Admin"), false},
	{"it would work by a role that the broker makes", "cloudformation:CreateStack", stack, byRole(role), false},
	{"not under our names", "cloudformation:CreateStack", stackAt("eu-central-1", "mine"), byRole(serviceRole), false},
	{"of another broker", "cloudformation:UpdateStack",
		stackAt("eu-central-1", "longshore-zzzzzzzz-i-a"), byRole(serviceRole), false},
	{"in another region", "cloudformation:CreateStack",
		stackAt("us-east-1", "longshore-abcdefgh-i-a"), byRole(serviceRole), false},
	{"an instance", "cloudformation:UpdateStack", stack, byRole(serviceRole), true},
	{"it would work by the broker's own rights", "cloudformation:UpdateStack", stack, nil, false},
	{"by the role that it was made with", "cloudformation:DeleteStack", stack, nil, true},
	{"by another's rights", "cloudformation:DeleteStack", stack, byRole(iamARN + "role/Admin"), false},
	{"another way to change stacks", "cloudformation:CreateChangeSet", stack, byRole(serviceRole), false},
	{"not needed", "cloudformation:SetStackPolicy", stack, nil, false},

	{"a template is laid down", "s3:PutObject", bucket + "/templates/d.json", nil, true},
	{"instances may need it", "s3:DeleteObject", bucket + "/templates/d.json", nil, false},
	{"what the operator keeps there", "s3:PutObject", bucket + "/account/d.json", nil, false},
	{"whether a table holds something", "dynamodb:Scan", table, map[string][]string{"dynamodb:Select": {"COUNT"}}, true},
	{"what it holds", "dynamodb:Scan", table, map[string][]string{"dynamodb:Select": {"ALL_ATTRIBUTES"}}, false},
	{"what a queue holds", "sqs:ReceiveMessage", "arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-x", nil, false},
	{"what is retained is marked", "dynamodb:TagResource", table, nil, true},
	{"another broker's key would let its users in", "kms:TagResource", "arn:aws:kms:eu-central-1:111122223333:key/1", nil, false},
	{"its bucket is opened", "s3:PutBucketPolicy", bucket, nil, false},
	{"an instance is emptied", "s3:DeleteObject", "arn:aws:s3:::longshore-abcdefgh-i-x/key", nil, true},
	{"what developers keep", "s3:GetObject", "arn:aws:s3:::longshore-abcdefgh-i-x/key", nil, false},
	{"another broker's instance", "s3:DeleteObject", "arn:aws:s3:::longshore-zzzzzzzz-i-x/key", nil, false},
	{"anybody's bucket", "s3:DeleteObject", "arn:aws:s3:::payroll/key", nil, false},
	{"a secret", "secretsmanager:GetSecretValue", "arn:aws:secretsmanager:eu-central-1:111122223333:secret:x-AbCdEf", nil, false},
}

func TestTheBrokerMayDoNoMore(t *testing.T) {
	rights := document(account.Rights(scope, account.Options{}))
	decides(t, attacks, rights)
}

// A session that lists another account by its access role can change nothing there.
func TestListingChangesNothing(t *testing.T) {
	listing := expect.Get(iampolicy.Parse([]byte(account.Listing(scope))))(t)
	if n := len(account.Listing(scope)); n > 2048 {
		t.Errorf("the policy has %d characters, and a session takes 2 048", n)
	}
	rights := document(account.Rights(scope, account.Options{}))
	for _, c := range attacks {
		if policytest.Allows(c.request(), rights, []iampolicy.Document{listing}) {
			t.Errorf("%s: %s on %s is allowed", c.reason, c.action, c.resource)
		}
	}
	decides(t, []call{
		{"its own stacks", "cloudformation:DescribeStacks", stack, nil, true},
		{"the tags of a user", "iam:GetUser", user, nil, true},
		{"what others' stacks give out", "cloudformation:DescribeStacks", "*", nil, false},
		{"somebody's user", "iam:GetUser", iamARN + "user/eve", nil, false},
	}, rights, []iampolicy.Document{listing})
}

// Another broker's service roles are another's, although the scopes differ in letters alone.
func TestScopesAreApart(t *testing.T) {
	rights := document(account.Rights(other, account.Options{}))
	for _, c := range attacks {
		if c.want && policytest.Allows(c.request(), rights) {
			t.Errorf("%s: another broker may do it too: %s on %s", c.reason, c.action, c.resource)
		}
	}
}

// A service role has guards that its permissions cannot undo, however wide they are.
func TestServiceRolesAreGuarded(t *testing.T) {
	rights := document(account.ServiceRights(scope, queue(t)))
	secret := "arn:aws:secretsmanager:eu-central-1:111122223333:secret:"
	decides(t, []call{
		{"what it is for", "sqs:CreateQueue", "arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-x-Queue-1", nil, true},
		{"beyond its prefix", "sqs:CreateQueue", "arn:aws:sqs:eu-central-1:111122223333:payroll", nil, false},
		{"a secret by {{resolve:…}}", "secretsmanager:GetSecretValue", secret + "payroll-AbCdEf", nil, false},
		{"its stack's own", "secretsmanager:GetSecretValue", secret + "longshore-abcdefgh-i-x-AbCdEf", nil, true},
		{"a parameter by {{resolve:…}}", "ssm:GetParameters",
			"arn:aws:ssm:eu-central-1:111122223333:parameter/db/password", nil, false},
		{"a path of them", "ssm:GetParametersByPath", "arn:aws:ssm:eu-central-1:111122223333:parameter/", nil, false},
		{"a user without our boundary", "iam:CreateUser", iamARN + "user/longshore-abcdefgh-i-x", nil, false},
		{"a role with another one", "iam:CreateRole", iamARN + "role/longshore-abcdefgh-i-x",
			bounded(iamARN + "policy/Wide"), false},
		{"a function's role below the boundary", "iam:CreateRole",
			iamARN + "role/longshore-abcdefgh-i-x", bounded(boundary), true},
		{"what gives more to a role without a boundary", "iam:AttachRolePolicy",
			iamARN + "role/longshore-abcdefgh-i-x", nil, false},
		{"a boundary is taken off", "iam:DeleteRolePermissionsBoundary",
			iamARN + "role/longshore-abcdefgh-i-x", bounded(boundary), false},
		{"the boundary's text", "iam:CreatePolicyVersion", boundary, nil, false},
		{"its own rights", "iam:PutRolePolicy", serviceRole, bounded(boundary), false},
		{"itself to a function", "iam:PassRole", serviceRole, passed("lambda.amazonaws.com"), false},
		{"a binding's key", "iam:CreateAccessKey", user, nil, false},
		{"another role", "sts:AssumeRole", iamARN + "role/Admin", nil, false},
		{"the templates of all", "s3:PutObject", bucket + "/x", nil, false},
	}, rights)
}

// A function of the operator's makes custom resources of many instances; no other of the account is called.
func TestASharedFunctionIsCalled(t *testing.T) {
	o := queue(t)
	d := expect.Get(iampolicy.Parse([]byte(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow",
		"Action":"lambda:InvokeFunction","Resource":"arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:maker"}]}`)))(t)
	o.Permissions = append(o.Permissions, d)
	rights := document(account.ServiceRights(scope, o))
	for function, want := range map[string]bool{"maker": true, "payroll": false} {
		r := policytest.Request{Action: "lambda:InvokeFunction", Resource: "arn:aws:lambda:eu-central-1:111122223333:function:" +
			function}
		expect.Same(t, function+": called", want, policytest.Allows(r, rights))
	}
}

// A principal stays within its boundary, also with a policy that allows everything.
func TestBindingsAreBounded(t *testing.T) {
	bounds := expect.Get(account.Bounds(scope, queue(t)))(t)
	own := "arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-x-Queue-1"
	decides(t, []call{
		{"what it is for", "sqs:SendMessage", own, nil, true},
		{"what no plan allows", "sqs:DeleteQueue", own, nil, false},
		{"what no instance has", "sqs:SendMessage", "arn:aws:sqs:eu-central-1:111122223333:payroll", nil, false},
		{"another broker's", "sqs:SendMessage", "arn:aws:sqs:eu-central-1:111122223333:longshore-zzzzzzzz-i-x", nil, false},
		{"another service", "dynamodb:GetItem",
			"arn:aws:dynamodb:eu-central-1:111122223333:table/longshore-abcdefgh-i-x", nil, false},
		{"a principal", "iam:CreateUser", user, bounded(boundary), false},
		{"its own key", "iam:CreateAccessKey", user, nil, false},
		{"its boundary", "iam:DeleteUserPermissionsBoundary", user, nil, false},
		{"the service role", "sts:AssumeRole", serviceRole, nil, false},
		{"a session outlives a key", "sts:GetSessionToken", "*", nil, false},
		{"its own stack", "cloudformation:DeleteStack", stack, nil, false},
		{"a template of others", "s3:PutObject", bucket + "/x", nil, false},
	}, everything, document(bounds))
}

// A target may be another region of the broker's own account: what it may do there is
// what it may do at home, and no other region is its.
func TestFurtherRegions(t *testing.T) {
	const there = "us-west-2"
	rights := document(account.Rights(scope, account.Options{Regions: []string{there}}))
	for _, c := range []call{
		{"a stack", "cloudformation:CreateStack", stack,
			byRole(iamARN + "role/longshore/abcdefgh-fixed/longshore-abcdefgh-s-queue-" + there), true},
		{"its events", "cloudformation:DescribeStackEvents", stack, nil, true},
		{"a template", "s3:PutObject", bucket + "/templates/d.json", nil, true},
		{"a stack without a role", "cloudformation:CreateStack", stack, nil, false},
		{"what a table holds", "dynamodb:Scan", table, nil, false},
	} {
		for region, want := range map[string]bool{place.Region: c.want, there: c.want, "sa-east-1": false} {
			r := c.request()
			r.Resource = strings.ReplaceAll(c.resource, place.Region, region)
			expect.Same(t, fmt.Sprintf("%s in %s: allowed", c.reason, region), want, policytest.Allows(r, rights))
		}
	}
}
