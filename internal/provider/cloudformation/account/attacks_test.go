package account_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
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

// shippedOffering is one that ships.
func shippedOffering(t *testing.T, name string) account.Offering {
	t.Helper()
	all := expect.Get(offeringfiles.Load(""))(t)
	offerings := expect.Get(account.OfferingsOf(all))(t)
	return offerings[slices.IndexFunc(offerings, func(o account.Offering) bool { return o.Name == name })]
}

// bindingOf is what a binding of an offering's first plan may do, filled as when it is made.
func bindingOf(t *testing.T, o account.Offering, s plan.Scope, p plan.Location, outputs map[string]string) []iampolicy.Document {
	t.Helper()
	raw := expect.Get(json.Marshal(o.Policies[0].Document))(t)
	values := map[string]string{plan.ValuePartition: p.Partition, plan.ValueAccount: p.Account, plan.ValueRegion: p.Region,
		plan.ValuePrefix: s.Prefix(), plan.ValueSpacePrefix: s.SpacePrefix("space234")}
	maps.Copy(values, outputs)
	text := expect.Get(plan.FillPolicy(plan.User, raw, values))(t)
	return []iampolicy.Document{expect.Get(iampolicy.Parse([]byte(text)))(t)}
}

const (
	near   = "arn:aws:sqs:eu-central-1:111122223333:longshore-abcdefgh-i-space234-x-queue"
	queued = "arn:aws:sqs:eu-central-1:111122223333:payroll"
	topic  = "arn:aws:sns:eu-central-1:111122223333:longshore-abcdefgh-i-space234-x-topic"
	rule   = "arn:aws:events:eu-central-1:111122223333:rule/longshore-abcdefgh-i-space234-x-bus/r"
)

func targets(arns ...string) map[string][]string {
	return map[string][]string{"events:TargetArn": arns}
}

func subscribed(protocol, endpoint string) map[string][]string {
	return map[string][]string{"sns:Protocol": {protocol}, "sns:Endpoint": {endpoint}}
}

// deputies are calls by which a binding would have another service act for it, on what trusts that service.
var deputies = []call{
	{"a queue of the space", "events:PutTargets", rule, targets(near), true},
	{"a topic of the broker", "events:PutTargets", rule, targets(topic), false},
	{"somebody's queue", "events:PutTargets", rule, targets(queued), false},
	{"one of several", "events:PutTargets", rule, targets(near, queued), false},
	{"a function", "events:PutTargets", rule, targets("arn:aws:lambda:eu-central-1:111122223333:function:payroll"), false},
	{"another broker's", "events:PutTargets", rule, targets(strings.ReplaceAll(near, "abcdefgh", "zzzzzzzz")), false},
	{"another account's", "events:PutTargets", rule, targets(strings.Replace(near, "1111", "4444", 1)), false},
	{"all of none is nothing", "events:PutTargets", rule, nil, false},
	{"what it is for", "events:PutRule", rule, nil, true},
	{"the account's own bus", "events:PutTargets", "arn:aws:events:eu-central-1:111122223333:rule/r", targets(near), false},

	{"a queue of the space", "sns:Subscribe", topic, subscribed("sqs", near), true},
	{"the application", "sns:Subscribe", topic, subscribed("https", "https://app.example.com/in"), true},
	{"in the clear", "sns:Subscribe", topic, subscribed("http", "http://app.example.com/in"), false},
	{"at the operator's cost", "sns:Subscribe", topic, subscribed("sms", "+15555550100"), false},
	{"at the operator's cost", "sns:Subscribe", topic, subscribed("email", "a@example.com"), false},
	{"somebody's queue", "sns:Subscribe", topic, subscribed("sqs", queued), false},
	{"a function", "sns:Subscribe", topic, subscribed("lambda", "arn:aws:lambda:eu-central-1:111122223333:function:x"), false},
	{"no condition holds", "sns:Subscribe", topic, nil, false},
	{"half of it", "sns:Subscribe", topic, map[string][]string{"sns:Protocol": {"sqs"}}, false},
	{"AWS asks for it on everything", "sns:Unsubscribe", "*", nil, true},
	{"any subscription's dead letters", "sns:SetSubscriptionAttributes", "*", nil, false},
	{"to a telephone", "sns:Publish", "*", nil, false},
	{"what it is for", "sns:Publish", topic, nil, true},
}

var everything = []iampolicy.Document{{Version: iampolicy.Version, Statement: []iampolicy.Statement{
	{Effect: iampolicy.EffectAllow, Action: iampolicy.Texts{"*"}, Resource: iampolicy.Texts{"*"}},
}}}

// A binding has no other service act for it on what is not of the broker: by its boundary, whatever its policy is, and by its
// policy, which also keeps to the instance's own space.
func TestNoDeputies(t *testing.T) {
	for _, name := range []string{"eventbridge", "sns"} {
		o := shippedOffering(t, name)
		bounds := expect.Get(account.Bounds(scope, o))(t)
		policy := bindingOf(t, o, scope, place, map[string]string{
			"TopicArn": topic, "EventBusName": "longshore-abcdefgh-i-space234-x-bus",
			"EventBusArn": "arn:aws:events:eu-central-1:111122223333:event-bus/b"})
		calls := slices.DeleteFunc(slices.Clone(deputies), func(c call) bool {
			service, _, _ := strings.Cut(c.action, ":")
			return !strings.HasPrefix(name, strings.TrimSuffix(service, "s"))
		})
		t.Run("Boundary/"+name, func(t *testing.T) { decides(t, calls, everything, document(bounds)) })
		far := strings.Replace(near, "space234", "other234", 1)
		t.Run("Policy/"+name, func(t *testing.T) {
			decides(t, append(calls, map[string]call{
				"sns":         {"a queue of another space", "sns:Subscribe", topic, subscribed("sqs", far), false},
				"eventbridge": {"a queue of another space", "events:PutTargets", rule, targets(far), false}}[name]), policy)
		})
	}
}

// A boundary asks what the policies of all instances ask: stars stand for what is one
// instance's own, and a text that takes no stars asks nothing.
func TestBoundariesKeepConditions(t *testing.T) {
	o := queue(t)
	d := expect.Get(iampolicy.Parse([]byte(`{"Version":"2012-10-17","Statement":[{
		"Effect":"Allow","Action":"sqs:SendMessage","Resource":"${QueueArn}",
		"Condition":{
			"StringEquals":{"aws:ResourceTag/a":"b","aws:ResourceTag/own":"${QueueName}"},
			"StringNotLike":{"aws:ResourceTag/c":"${QueueName}*"},
			"StringLike":{},
			"ForAllValues:ArnLike":{"aws:SourceArn":"arn:${AWS::Partition}:sns:*:*:${Prefix}${QueueName}"},
			"Null":{"aws:SourceArn":"false"}}}]}`)))(t)
	o.Policies = []account.Policy{{Document: d}}
	bounds := expect.Get(account.Bounds(scope, o))(t)
	want := iampolicy.Condition{
		"StringEquals":         {"aws:ResourceTag/a": {"b"}},
		"ForAllValues:ArnLike": {"aws:SourceArn": {"arn:${AWS::Partition}:sns:*:*:longshore-abcdefgh-*"}},
		"Null":                 {"aws:SourceArn": {"false"}},
	}
	expect.Same(t, "what the boundary asks", want, bounds[0].Condition)
}

// The tag that lets the service role of keys at one goes onto new ones, and onto none that somebody has given a name.
func TestTagsOfKeys(t *testing.T) {
	rights := document(account.ServiceRights(scope, shippedOffering(t, "kms")))
	const key = "arn:aws:kms:eu-central-1:111122223333:key/1"
	with := func(more map[string][]string) map[string][]string {
		all := map[string][]string{"aws:RequestTag/longshore:offering": {"kms"}}
		maps.Copy(all, more)
		return all
	}
	decides(t, []call{
		{"a key is made", "kms:CreateKey", "*", with(nil), true},
		{"and tagged", "kms:TagResource", "*", with(nil), true},
		{"somebody's key", "kms:TagResource", key, with(map[string][]string{"kms:ResourceAliases": {"alias/payroll"}}), false},
		{"another tag", "kms:TagResource", "*", nil, false},
		{"its own key", "kms:TagResource", key,
			with(map[string][]string{"aws:ResourceTag/longshore:offering": {"kms"}, "kms:ResourceAliases": {"alias/x"}}), true},
		{"another broker's", "kms:TagResource", key,
			with(map[string][]string{"aws:ResourceTag/longshore:scope": {string(other)}}), false},
		{"somebody's key", "kms:ScheduleKeyDeletion", key, with(nil), false},
	}, rights)
}

// An emulator knows none of the keys by which subscriptions and targets are bounded, and refuses what asks for them. Without
// them in the policy it takes each attack: then the boundary, which keeps them, is what refuses it.
func TestDeputiesOnAnEmulator(t *testing.T) {
	p := prepare(t)
	topics, buses := sns.NewFromConfig(p.root), eventbridge.NewFromConfig(p.root)
	topic := expect.Get(topics.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String(string(p.scope) + "-i-topic")}))(t)
	bus := aws.String(string(p.scope) + "-i-bus")
	made := expect.Get(buses.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: bus}))(t)
	expect.Get(buses.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("r"), EventBusName: bus,
		EventPattern: aws.String(`{"source":["a"]}`)}))(t)
	outputs := map[string]string{"TopicArn": *topic.TopicArn, "EventBusName": *bus, "EventBusArn": *made.EventBusArn}
	type binding struct{ topics, rules aws.Config }
	as := func(kind string, bounded bool, policy func(account.Offering) []iampolicy.Statement) (b binding) {
		for name, into := range map[string]*aws.Config{"sns": &b.topics, "eventbridge": &b.rules} {
			o, user := shippedOffering(t, name), iam.CreateUserInput{UserName: aws.String(emulator.Name(kind))}
			if bounded {
				user.PermissionsBoundary = p.boundary(t, o)
			}
			*into = p.as(t, p.root, user, policy(o))
		}
		return b
	}
	shipped := func(o account.Offering) []iampolicy.Statement {
		return bindingOf(t, o, p.scope, p.place, outputs)[0].Statement
	}
	wide := func(account.Offering) []iampolicy.Statement { return everything[0].Statement }
	for name, one := range map[string]struct {
		binding
		taken bool
	}{
		"Binding": {as("binding", true, shipped), false}, "Wide": {as("wide", true, wide), false},
		"Free": {as("free", false, wide), true},
	} {
		t.Run(name, func(t *testing.T) { p.deputies(t, one.topics, one.rules, *topic.TopicArn, *bus, one.taken) })
	}
}

// deputies tries to have SNS and EventBridge act on what is somebody else's.
func (p prepared) deputies(t *testing.T, byTopic, byRule aws.Config, topic, bus string, taken bool) {
	mine := expect.Get(sns.NewFromConfig(p.root).Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic,
		Protocol: aws.String("email"), Endpoint: aws.String("a@example.com"), ReturnSubscriptionArn: true}))(t)
	payroll := "arn:aws:sqs:" + p.place.Region + ":" + p.place.Account + ":payroll"
	subscribe := func(protocol, endpoint string) try {
		return try{"at the cost of others", taken, called(sns.NewFromConfig(byTopic).Subscribe,
			&sns.SubscribeInput{TopicArn: &topic, Protocol: &protocol, Endpoint: &endpoint})}
	}
	attempt(t, []try{
		subscribe("sms", "+15555550100"), subscribe("email", "b@example.com"), subscribe("sqs", payroll),
		{"what it is for", true, called(sns.NewFromConfig(byTopic).Publish,
			&sns.PublishInput{TopicArn: &topic, Message: aws.String("x")})},
		{"what was subscribed", true, called(sns.NewFromConfig(byTopic).Unsubscribe,
			&sns.UnsubscribeInput{SubscriptionArn: mine.SubscriptionArn})},
		{"somebody's queue", taken, called(eventbridge.NewFromConfig(byRule).PutTargets, &eventbridge.PutTargetsInput{
			Rule: aws.String("r"), EventBusName: &bus, Targets: []eventtypes.Target{{Id: aws.String("1"), Arn: &payroll}}})},
		{"what it is for", true, called(eventbridge.NewFromConfig(byRule).DescribeRule,
			&eventbridge.DescribeRuleInput{Name: aws.String("r"), EventBusName: &bus})},
	})
}

// boundary makes the one of an offering, and gives its ARN.
func (p prepared) boundary(t *testing.T, o account.Offering) *string {
	t.Helper()
	made := expect.Get(iam.NewFromConfig(p.root).CreatePolicy(t.Context(), &iam.CreatePolicyInput{
		PolicyName:     aws.String(emulator.Name(o.Name)),
		PolicyDocument: p.text(t, expect.Get(account.Bounds(p.scope, o))(t))}))(t)
	return made.Policy.Arn
}
