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

func principal(rest string) string { return "arn:aws:iam::" + place.Account + ":" + rest }

const (
	hash     = "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	stack    = "arn:aws:cloudformation:eu-central-1:111122223333:stack/longshore-abcdefgh-i-" + hash + "/*"
	user     = "user/longshore/abcdefgh/" + hash + "/" + hash + "/longshore-abcdefgh-b-" + hash + "-aaaaaaaa"
	role     = "role/longshore/abcdefgh/" + hash + "/" + hash + "/longshore-abcdefgh-b-" + hash + "-aaaaaaaa"
	boundary = "policy/longshore/abcdefgh-fixed/longshore-abcdefgh-p-queue-eu-central-1"
	table    = "arn:aws:dynamodb:eu-central-1:111122223333:table/longshore-abcdefgh-i-x"
	bucket   = "arn:aws:s3:::longshore-abcdefgh-111122223333-eu-central-1"
)

type call struct {
	reason           string
	action, resource string
	context          map[string][]string
	want             bool
}

func (c call) request() policytest.Request {
	return policytest.Request{Action: c.action, Resource: c.resource, Context: c.context}
}

func bounded(arn string) map[string][]string {
	return map[string][]string{"iam:PermissionsBoundary": {principal(arn)}}
}

func byRole(arn string) map[string][]string {
	return map[string][]string{"cloudformation:RoleArn": {principal(arn)}}
}

func passed(to string) map[string][]string { return map[string][]string{"iam:PassedToService": {to}} }

const serviceRole = "role/longshore/abcdefgh-fixed/longshore-abcdefgh-s-queue-eu-central-1"

// attacks are on whoever runs the broker: what a stolen login of it can do.
var attacks = map[string]call{
	"UserBounded": {"a binding's user", "iam:CreateUser", principal(user), bounded(boundary), true},
	"UserFree":    {"nobody bounds it", "iam:CreateUser", principal(user), nil, false},
	"UserOther":   {"the boundary is no boundary of ours", "iam:CreateUser", principal(user), bounded("policy/Admin"), false},
	"UserAWS": {"AWS's own policy bounds nothing", "iam:CreateUser",
		principal(user), map[string][]string{"iam:PermissionsBoundary": {"arn:aws:iam::aws:policy/AdministratorAccess"}}, false},
	"UserAnywhere": {"not under our names", "iam:CreateUser", principal("user/eve"), bounded(boundary), false},
	"UserOfOther": {"of another broker", "iam:CreateUser",
		principal("user/longshore/zzzzzzzz/a/b/longshore-zzzzzzzz-b-a"), bounded(boundary), false},
	"RoleBounded": {"a binding's role", "iam:CreateRole", principal(role), bounded(boundary), true},
	"RoleFree":    {"nobody bounds it", "iam:CreateRole", principal(role), nil, false},
	"RoleService": {"a role that could be passed", "iam:CreateRole", principal(serviceRole), bounded(boundary), false},
	"RolePath": {"a path that leads to where roles can be passed from", "iam:CreateRole",
		principal("role/longshore-abcdefgh-b-/longshore-abcdefgh-s-x"), bounded(boundary), true},
	"RolePathPassed": {"what was made so is not passed", "iam:PassRole",
		principal("role/longshore-abcdefgh-b-/longshore-abcdefgh-s-x"), passed("cloudformation.amazonaws.com"), false},
	"RoleBelowPassed": {"nor what is below the path of bindings", "iam:PassRole",
		principal("role/longshore/abcdefgh/longshore-abcdefgh-s-x"), passed("cloudformation.amazonaws.com"), false},
	"PolicyBounded":   {"a binding's policy", "iam:PutUserPolicy", principal(user), bounded(boundary), true},
	"PolicyFree":      {"of a user whose boundary is gone", "iam:PutUserPolicy", principal(user), nil, false},
	"RolePolicyFree":  {"of such a role", "iam:PutRolePolicy", principal(role), nil, false},
	"RolePolicyFixed": {"of a service role", "iam:PutRolePolicy", principal(serviceRole), bounded(boundary), false},
	"TrustFixed":      {"who may take a service role", "iam:UpdateAssumeRolePolicy", principal(serviceRole), nil, false},
	"Attach":          {"a policy of its own", "iam:AttachUserPolicy", principal(user), bounded(boundary), false},
	"AttachRole":      {"a policy of its own", "iam:AttachRolePolicy", principal(role), bounded(boundary), false},
	"BoundaryGone": {"the boundary is taken off", "iam:DeleteUserPermissionsBoundary", principal(user), bounded(boundary),
		false},
	"BoundaryGoneOfRole": {"the boundary is taken off", "iam:DeleteRolePermissionsBoundary", principal(role),
		bounded(boundary), false},
	"BoundaryPut": {"the boundary becomes another", "iam:PutUserPermissionsBoundary", principal(user), bounded(boundary),
		false},
	"BoundaryEdited":  {"its text is changed", "iam:CreatePolicyVersion", principal(boundary), nil, false},
	"BoundaryVersion": {"an earlier text is taken again", "iam:SetDefaultPolicyVersion", principal(boundary), nil, false},
	"BoundaryDeleted": {"it is deleted", "iam:DeletePolicy", principal(boundary), nil, false},
	"BoundaryMade": {"a wider one is made", "iam:CreatePolicy",
		principal("policy/longshore/abcdefgh-fixed/longshore-abcdefgh-p-x"), nil, false},
	"Group": {"a group gives what a boundary bounds, but is not needed", "iam:AddUserToGroup", principal("group/admins"),
		nil, false},
	"Key":        {"a binding's key", "iam:CreateAccessKey", principal(user), nil, true},
	"KeyOfOther": {"somebody's key", "iam:CreateAccessKey", principal("user/admin"), nil, false},
	"Password":   {"a password", "iam:CreateLoginProfile", principal(user), nil, false},

	"Pass": {"an offering's role for a stack", "iam:PassRole", principal(serviceRole),
		passed("cloudformation.amazonaws.com"), true},
	"PassOther":   {"another role", "iam:PassRole", principal("role/Admin"), passed("cloudformation.amazonaws.com"), false},
	"PassBinding": {"a binding's role", "iam:PassRole", principal(role), passed("cloudformation.amazonaws.com"), false},
	"PassLambda":  {"to another service", "iam:PassRole", principal(serviceRole), passed("lambda.amazonaws.com"), false},
	"PassAccess": {"the role of another account's broker", "iam:PassRole",
		principal("role/longshore/abcdefgh-fixed/longshore-abcdefgh-a-eu-central-1"), passed("cloudformation.amazonaws.com"),
		false},
	"Assume":      {"a service role itself", "sts:AssumeRole", principal(serviceRole), nil, false},
	"AssumeOther": {"any role", "sts:AssumeRole", principal("role/Admin"), nil, false},

	"Stack":        {"an instance", "cloudformation:CreateStack", stack, byRole(serviceRole), true},
	"StackNoRole":  {"it would work by the broker's own rights", "cloudformation:CreateStack", stack, nil, false},
	"StackAdmin":   {"it would work by another's", "cloudformation:CreateStack", stack, byRole("role/Admin"), false},
	"StackBinding": {"it would work by a role that the broker makes", "cloudformation:CreateStack", stack, byRole(role), false},
	"StackName": {"not under our names", "cloudformation:CreateStack",
		"arn:aws:cloudformation:eu-central-1:111122223333:stack/mine/*", byRole(serviceRole), false},
	"StackOfOther": {"of another broker", "cloudformation:UpdateStack",
		"arn:aws:cloudformation:eu-central-1:111122223333:stack/longshore-zzzzzzzz-i-a/*", byRole(serviceRole), false},
	"StackRegion": {"in another region", "cloudformation:CreateStack",
		"arn:aws:cloudformation:us-east-1:111122223333:stack/longshore-abcdefgh-i-a/*", byRole(serviceRole), false},
	"StackUpdate":   {"an instance", "cloudformation:UpdateStack", stack, byRole(serviceRole), true},
	"StackRoleGone": {"it would work by the broker's own rights", "cloudformation:UpdateStack", stack, nil, false},
	"StackDelete":   {"by the role that it was made with", "cloudformation:DeleteStack", stack, nil, true},
	"StackDeleteAs": {"by another's rights", "cloudformation:DeleteStack", stack, byRole("role/Admin"), false},
	"ChangeSet":     {"another way to change stacks", "cloudformation:CreateChangeSet", stack, byRole(serviceRole), false},
	"StackPolicy":   {"not needed", "cloudformation:SetStackPolicy", stack, nil, false},

	"Template":        {"a template is laid down", "s3:PutObject", bucket + "/templates/d.json", nil, true},
	"TemplateDeleted": {"instances may need it", "s3:DeleteObject", bucket + "/templates/d.json", nil, false},
	"TemplateBeside":  {"what the operator keeps there", "s3:PutObject", bucket + "/account/d.json", nil, false},
	"Count": {"whether a table holds something", "dynamodb:Scan", table,
		map[string][]string{"dynamodb:Select": {"COUNT"}}, true},
	"Items": {"what it holds", "dynamodb:Scan", table, map[string][]string{"dynamodb:Select": {"ALL_ATTRIBUTES"}},
		false},
	"Messages": {"what a queue holds", "sqs:ReceiveMessage",
		"arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-x", nil, false},
	"Mark": {"what is retained is marked", "dynamodb:TagResource", table, nil, true},
	"MarkOfOther": {"another broker's key would let its users in", "kms:TagResource",
		"arn:aws:kms:eu-central-1:111122223333:key/1", nil, false},
	"TemplateOpen":   {"its bucket is opened", "s3:PutBucketPolicy", bucket, nil, false},
	"Content":        {"an instance is emptied", "s3:DeleteObject", "arn:aws:s3:::longshore-abcdefgh-i-x/key", nil, true},
	"ContentRead":    {"what developers keep", "s3:GetObject", "arn:aws:s3:::longshore-abcdefgh-i-x/key", nil, false},
	"ContentOfOther": {"another broker's instance", "s3:DeleteObject", "arn:aws:s3:::longshore-zzzzzzzz-i-x/key", nil, false},
	"ContentOfAll":   {"anybody's bucket", "s3:DeleteObject", "arn:aws:s3:::payroll/key", nil, false},
	"Secret": {"a secret", "secretsmanager:GetSecretValue",
		"arn:aws:secretsmanager:eu-central-1:111122223333:secret:x-AbCdEf", nil, false},
}

func TestTheBrokerMayDoNoMore(t *testing.T) {
	rights := document(account.Rights(scope, account.Options{}))
	for name, c := range attacks {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allows(c.request(), rights); got != c.want {
				t.Errorf("%s (%s on %s): allowed %t, want %t", c.reason, c.action, c.resource, got, c.want)
			}
		})
	}
}

// A session that lists another account by its access role can change nothing there.
func TestListingChangesNothing(t *testing.T) {
	listing := expect.Get(iampolicy.Parse([]byte(account.Listing(scope))))(t)
	if n := len(account.Listing(scope)); n > 2048 {
		t.Errorf("the policy has %d characters, and a session takes 2 048", n)
	}
	rights := document(account.Rights(scope, account.Options{}))
	for name, c := range attacks {
		if policytest.Allows(c.request(), rights, []iampolicy.Document{listing}) {
			t.Errorf("%s: %s on %s is allowed", name, c.action, c.resource)
		}
	}
	for _, c := range []call{
		{"its own stacks", "cloudformation:DescribeStacks", stack, nil, true},
		{"the tags of a user", "iam:GetUser", principal(user), nil, true},
		{"what others' stacks give out", "cloudformation:DescribeStacks", "*", nil, false},
		{"somebody's user", "iam:GetUser", principal("user/eve"), nil, false},
	} {
		expect.Same(t, c.reason+": allowed", c.want, policytest.Allows(c.request(), rights, []iampolicy.Document{listing}))
	}
}

// Another broker's service roles are another's, although the scopes differ in letters alone.
func TestScopesAreApart(t *testing.T) {
	rights := document(account.Rights(other, account.Options{}))
	for name, c := range attacks {
		if c.want && policytest.Allows(c.request(), rights) {
			t.Errorf("%s: another broker may do it too: %s on %s", name, c.action, c.resource)
		}
	}
}

// A service role has guards that its permissions cannot undo, however wide they are.
func TestServiceRolesAreGuarded(t *testing.T) {
	rights := document(account.ServiceRights(scope, queue(t)))
	secret := "arn:aws:secretsmanager:eu-central-1:111122223333:secret:"
	for name, c := range map[string]call{
		"Queue": {"what it is for", "sqs:CreateQueue",
			"arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-x-Queue-1", nil, true},
		"QueueOfOther": {"beyond its prefix", "sqs:CreateQueue", "arn:aws:sqs:eu-central-1:111122223333:payroll", nil, false},
		"Secret":       {"a secret by {{resolve:…}}", "secretsmanager:GetSecretValue", secret + "payroll-AbCdEf", nil, false},
		"OwnSecret":    {"its stack's own", "secretsmanager:GetSecretValue", secret + "longshore-abcdefgh-i-x-AbCdEf", nil, true},
		"Parameter": {"a parameter by {{resolve:…}}", "ssm:GetParameters",
			"arn:aws:ssm:eu-central-1:111122223333:parameter/db/password", nil, false},
		"ParametersOf": {"a path of them", "ssm:GetParametersByPath", "arn:aws:ssm:eu-central-1:111122223333:parameter/", nil,
			false},
		"User": {"a user without our boundary", "iam:CreateUser", principal("user/longshore-abcdefgh-i-x"), nil, false},
		"Role": {"a role with another one", "iam:CreateRole", principal("role/longshore-abcdefgh-i-x"),
			bounded("policy/Wide"), false},
		"RoleBounded": {"a function's role below the boundary", "iam:CreateRole",
			principal("role/longshore-abcdefgh-i-x"), bounded(boundary), true},
		"Attach": {"what gives more to a role without a boundary", "iam:AttachRolePolicy",
			principal("role/longshore-abcdefgh-i-x"), nil, false},
		"Unbind": {"a boundary is taken off", "iam:DeleteRolePermissionsBoundary",
			principal("role/longshore-abcdefgh-i-x"), bounded(boundary), false},
		"Boundary":     {"the boundary's text", "iam:CreatePolicyVersion", principal(boundary), nil, false},
		"Itself":       {"its own rights", "iam:PutRolePolicy", principal(serviceRole), bounded(boundary), false},
		"ItselfPassed": {"itself to a function", "iam:PassRole", principal(serviceRole), passed("lambda.amazonaws.com"), false},
		"Binding":      {"a binding's key", "iam:CreateAccessKey", principal(user), nil, false},
		"Assume":       {"another role", "sts:AssumeRole", principal("role/Admin"), nil, false},
		"Templates":    {"the templates of all", "s3:PutObject", bucket + "/x", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allows(c.request(), rights); got != c.want {
				t.Errorf("%s (%s on %s): allowed %t, want %t", c.reason, c.action, c.resource, got, c.want)
			}
		})
	}
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
	anything := []iampolicy.Document{{Version: iampolicy.Version, Statement: []iampolicy.Statement{
		{Effect: iampolicy.EffectAllow, Action: iampolicy.Texts{"*"}, Resource: iampolicy.Texts{"*"}},
	}}}
	own := "arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-x-Queue-1"
	for name, c := range map[string]call{
		"Send":       {"what it is for", "sqs:SendMessage", own, nil, true},
		"Delete":     {"what no plan allows", "sqs:DeleteQueue", own, nil, false},
		"OtherQueue": {"what no instance has", "sqs:SendMessage", "arn:aws:sqs:eu-central-1:111122223333:payroll", nil, false},
		"OtherBroker": {"another broker's", "sqs:SendMessage", "arn:aws:sqs:eu-central-1:111122223333:longshore-zzzzzzzz-i-x",
			nil, false},
		"OtherService": {"another service", "dynamodb:GetItem",
			"arn:aws:dynamodb:eu-central-1:111122223333:table/longshore-abcdefgh-i-x", nil, false},
		"User":      {"a principal", "iam:CreateUser", principal(user), bounded(boundary), false},
		"Itself":    {"its own key", "iam:CreateAccessKey", principal(user), nil, false},
		"Boundary":  {"its boundary", "iam:DeleteUserPermissionsBoundary", principal(user), nil, false},
		"Service":   {"the service role", "sts:AssumeRole", principal(serviceRole), nil, false},
		"Session":   {"a session outlives a key", "sts:GetSessionToken", "*", nil, false},
		"Stack":     {"its own stack", "cloudformation:DeleteStack", stack, nil, false},
		"Templates": {"a template of others", "s3:PutObject", bucket + "/x", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := policytest.Allows(c.request(), anything, document(bounds)); got != c.want {
				t.Errorf("%s (%s on %s): allowed %t, want %t", c.reason, c.action, c.resource, got, c.want)
			}
		})
	}
}

// A target may be another region of the broker's own account: what it may do there is
// what it may do at home, and no other region is its.
func TestFurtherRegions(t *testing.T) {
	const there = "us-west-2"
	rights := document(account.Rights(scope, account.Options{Regions: []string{there}}))
	for _, c := range []call{
		{"a stack", "cloudformation:CreateStack", stack, byRole("role/longshore/abcdefgh-fixed/longshore-abcdefgh-s-queue-" +
			there), true},
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
