package policytest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/policytest"
)

// with is a statement: effect, action and resource, then a condition as JSON, which may be empty.
func with(effect, action, resource, condition string) string {
	text := `{"Effect":"` + effect + `","Action":"` + action + `","Resource":"` + resource + `"`
	if condition != "" {
		text += `,"Condition":` + condition
	}
	return text + "}"
}

// document is a policy of statements.
func document(t testing.TB, statements string) iampolicy.Document {
	t.Helper()
	return expect.Get(iampolicy.Parse([]byte(`{"Version":"2012-10-17","Statement":[` + statements + `]}`)))(t)
}

// documents are policies, one for each statement.
func documents(t testing.TB, statements string) (all []iampolicy.Document) {
	t.Helper()
	for _, s := range document(t, statements).Statement {
		all = append(all, iampolicy.Document{Version: iampolicy.Version, Statement: []iampolicy.Statement{s}})
	}
	return all
}

const bucket = "arn:aws:s3:::box"

func TestAllows(t *testing.T) {
	get := policytest.Request{Action: "s3:GetObject", Resource: bucket + "/a/b", Context: map[string][]string{
		"aws:SecureTransport": {"true"}, "aws:PrincipalTag/team": {"a"}, "aws:username": {"a*"}, "aws:TagKeys": {"one", "two"},
		"aws:SourceArn": {"arn:aws:sns:eu-central-1:111122223333:topic"},
	}}
	all := func(condition string) string { return with("Allow", "*", "*", condition) }
	for _, test := range []struct {
		reason, policies string
		boundary         string // empty for none
		want             bool
	}{
		{"nothing is allowed by itself", "", "", false},
		{"as it is", with("Allow", "s3:GetObject", bucket+"/a/b", ""), "", true},
		{"the case of actions does not count", with("Allow", "S3:getobject", "*", ""), "", true},
		{"that of resources does", with("Allow", "s3:*", "arn:aws:s3:::Box/*", ""), "", false},
		{"a star crosses slashes", with("Allow", "s3:*", bucket+"/*", ""), "", true},
		{"a question mark is one letter", with("Allow", "s3:*", bucket+"/?/b", ""), "", true},
		{"and not two", with("Allow", "s3:*", bucket+"/a?/b", ""), "", false},
		{"several stars", with("Allow", "s3:*", "arn:*:box*/*b", ""), "", true},
		{"a denial counts more", all("") + "," + with("Deny", "s3:Get*", "*", ""), "", false},
		{"one of something else does not", all("") + "," + with("Deny", "s3:Put*", "*", ""), "", true},
		{"a boundary allows it too", all(""), with("Allow", "s3:*", "*", ""), true},
		{"a boundary does not", all(""), with("Allow", "sqs:*", "*", ""), false},
		{"a boundary alone gives nothing", "", all(""), false},
		{"a boundary may deny", all(""), all("") + "," + with("Deny", "s3:GetObject", "*", ""), false},
		{"all but this", `{"Effect":"Allow","NotAction":"s3:Get*","Resource":"*"}`, "", false},
		{"all but there", all("") + "," + `{"Effect":"Deny","Action":"s3:*","NotResource":"arn:aws:s3:::box/c/*"}`, "", false},

		{"a key has the value", all(`{"StringEquals":{"aws:principaltag/team":["b","a"]}}`), "", true},
		{"it has another", all(`{"StringEquals":{"aws:PrincipalTag/team":"b"}}`), "", false},
		{"a key that is not there", all(`{"StringEquals":{"aws:SourceVpc":"x"}}`), "", false},
		{"where that is all right", all(`{"StringEqualsIfExists":{"aws:SourceVpc":"x"}}`), "", true},
		{"is not the value either", all(`{"StringNotEquals":{"aws:SourceVpc":"x"}}`), "", true},
		{"none of several", all(`{"StringNotEquals":{"aws:PrincipalTag/team":["b","a"]}}`), "", false},
		{"all conditions hold",
			all(`{"StringEquals":{"aws:PrincipalTag/team":"a"},"Bool":{"aws:SecureTransport":false}}`), "", false},
		{"a key is there", all(`{"Null":{"aws:PrincipalTag/team":"false"}}`), "", true},
		{"a key is not there", all(`{"Null":{"aws:PrincipalTag/team":"true"}}`), "", false},
		{"with a star", all(`{"StringLike":{"aws:SourceArn":"arn:aws:*:topic"}}`), "", true},
		{"a star of an ARN ends at a colon", all(`{"ArnLike":{"aws:SourceArn":"arn:aws:*:topic"}}`), "", false},
		{"part by part", all(`{"ArnLike":{"aws:SourceArn":"arn:aws:sns:*:111122223333:t*"}}`), "", true},
		{"one of several values", all(`{"ForAnyValue:StringEquals":{"aws:TagKeys":"two"}}`), "", true},
		{"all of them", all(`{"ForAllValues:StringEquals":{"aws:TagKeys":"two"}}`), "", false},
		{"none there", all(`{"ForAnyValue:StringEquals":{"aws:Other":"two"}}`), "", false},
		{"none is there to break it", all(`{"ForAllValues:StringEquals":{"aws:Other":"two"}}`), "", true},

		{"what is in a variable", with("Allow", "s3:*", bucket+"/${aws:PrincipalTag/team}/b", ""), "", true},
		{"is no pattern", with("Allow", "s3:*", bucket+"/${aws:username}/b", ""), "", false},
		{"has no value", with("Allow", "s3:*", bucket+"/${aws:userid}*", ""), "", false},
		{"has another for that", with("Allow", "s3:*", bucket+"/${aws:userid, 'a'}/b", ""), "", true},
		{"a star that is a letter", with("Allow", "s3:*", bucket+"/${*}", ""), "", false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var bounds [][]iampolicy.Document
			if test.boundary != "" {
				bounds = append(bounds, documents(t, test.boundary))
			}
			expect.Same(t, "allowed", test.want, policytest.Allows(get, documents(t, test.policies), bounds...))
		})
	}
}

// An unknown operator fails a test: it could be the one that holds an attack back.
func TestUnknownOperators(t *testing.T) {
	for _, operator := range []string{"IpAddress", "NumericEquals", "BinaryEquals", "DateLessThan"} {
		func() {
			defer func() {
				if said := recover(); said == nil || !strings.Contains(said.(string), operator) {
					t.Errorf("%s: it panics with %v", operator, said)
				}
			}()
			policytest.Allows(policytest.Request{Action: "s3:GetObject", Resource: bucket},
				documents(t, with("Allow", "*", "*", `{"`+operator+`":{"aws:SourceIp":"::1"}}`)))
		}()
	}
}

// An account is of an emulator that enforces policies, with a queue and a secret.
type account struct {
	config         aws.Config
	queue, url     string // its ARN and its URL
	secret, prefix string
}

func newAccount(t *testing.T) account {
	t.Helper()
	a := account{config: emulator.Enforcing(t), prefix: emulator.Name("policy")}
	a.url = *expect.Get(sqs.NewFromConfig(a.config).CreateQueue(t.Context(),
		&sqs.CreateQueueInput{QueueName: &a.prefix}))(t).QueueUrl
	a.secret = *expect.Get(secretsmanager.NewFromConfig(a.config).CreateSecret(t.Context(),
		&secretsmanager.CreateSecretInput{Name: &a.prefix, SecretString: aws.String("x")}))(t).ARN
	a.queue = strings.Replace(strings.Split(a.secret, ":secret:")[0], "secretsmanager", "sqs", 1) + ":" + a.prefix
	return a
}

// as is the account as a user sees it who has a policy, and a boundary unless it is empty.
func (a account) as(t *testing.T, name string, policy, boundary iampolicy.Document) aws.Config {
	t.Helper()
	root, text := iam.NewFromConfig(a.config), func(d iampolicy.Document) *string {
		return aws.String(string(expect.Get(json.Marshal(d))(t)))
	}
	user := &iam.CreateUserInput{UserName: aws.String(a.prefix + "-" + name)}
	if boundary.Statement != nil {
		user.PermissionsBoundary = expect.Get(root.CreatePolicy(t.Context(),
			&iam.CreatePolicyInput{PolicyName: user.UserName, PolicyDocument: text(boundary)}))(t).Policy.Arn
	}
	expect.Get(root.CreateUser(t.Context(), user))(t)
	expect.Get(root.PutUserPolicy(t.Context(),
		&iam.PutUserPolicyInput{UserName: user.UserName, PolicyName: aws.String("p"), PolicyDocument: text(policy)}))(t)
	key := expect.Get(root.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: user.UserName}))(t).AccessKey
	config := a.config
	config.Credentials = credentials.NewStaticCredentialsProvider(*key.AccessKeyId, *key.SecretAccessKey, "")
	return config
}

// The calls that are tried, each as the evaluator sees it.
var calls = map[string]struct {
	action string
	on     func(a account) string
	try    func(ctx context.Context, c aws.Config, a account) error
}{
	"send": {"sqs:SendMessage", func(a account) string { return a.queue },
		func(ctx context.Context, c aws.Config, a account) error {
			return expect.Err(sqs.NewFromConfig(c).SendMessage(ctx,
				&sqs.SendMessageInput{QueueUrl: &a.url, MessageBody: aws.String("x")}))
		}},
	"look": {"sqs:GetQueueAttributes", func(a account) string { return a.queue },
		func(ctx context.Context, c aws.Config, a account) error {
			return expect.Err(sqs.NewFromConfig(c).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &a.url}))
		}},
	"secret": {"secretsmanager:GetSecretValue", func(a account) string { return a.secret },
		func(ctx context.Context, c aws.Config, a account) error {
			return expect.Err(secretsmanager.NewFromConfig(c).GetSecretValue(ctx,
				&secretsmanager.GetSecretValueInput{SecretId: &a.secret}))
		}},
	"users": {"iam:ListUsers", func(account) string { return "*" }, func(ctx context.Context, c aws.Config, _ account) error {
		return expect.Err(iam.NewFromConfig(c).ListUsers(ctx, &iam.ListUsersInput{}))
	}},
}

// The evaluator says of each call what an emulator does that enforces policies. What it
// says beyond that, of conditions that no emulator knows, rests on the same code.
func TestAsAnEmulatorEnforces(t *testing.T) {
	a := newAccount(t)
	region := map[string][]string{"aws:RequestedRegion": {a.config.Region}, "aws:SecureTransport": {"false"},
		"aws:PrincipalType": {"User"}}
	const all = `{"Effect":"Allow","Action":"*","Resource":"*"}`
	allIf := func(condition string) string {
		return `{"Effect":"Allow","Action":"*","Resource":"*","Condition":` +
			strings.ReplaceAll(condition, "REGION", a.config.Region) + `}`
	}
	policies := map[string]struct{ policy, boundary string }{
		"nothing":   {`{"Effect":"Deny","Action":"*","Resource":"*"}`, ""},
		"all":       {all, ""},
		"service":   {`{"Effect":"Allow","Action":"sqs:*","Resource":"*"}`, ""},
		"action":    {`{"Effect":"Allow","Action":["SQS:sendmessage"],"Resource":"QUEUE"}`, ""},
		"start":     {`{"Effect":"Allow","Action":"s?s:Get*","Resource":"QUEUE*"}`, ""},
		"other":     {`{"Effect":"Allow","Action":"sqs:*","Resource":"QUEUE-other"}`, ""},
		"deny":      {all + `,{"Effect":"Deny","Action":"sqs:Send*","Resource":"*"}`, ""},
		"notaction": {`{"Effect":"Allow","NotAction":["sqs:*","iam:*"],"Resource":"*"}`, ""},
		"notthere":  {all + `,{"Effect":"Deny","Action":"secretsmanager:*","NotResource":"SECRET"}`, ""},
		"elsewhere": {all + `,{"Effect":"Deny","Action":["secretsmanager:*","sqs:*"],"NotResource":"SECRET"}`, ""},
		"region":    {allIf(`{"StringEquals":{"aws:RequestedRegion":["x","REGION"]}}`), ""},
		"notregion": {allIf(`{"StringNotEquals":{"aws:RequestedRegion":["x","REGION"]}}`), ""},
		"tls": {all +
			`,{"Effect":"Deny","Action":"sqs:*","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"false"}}}`, ""},
		"absent":   {allIf(`{"StringEquals":{"aws:SourceVpc":"x"}}`), ""},
		"ifexists": {allIf(`{"StringEqualsIfExists":{"aws:SourceVpc":"x"}}`), ""},
		"notabsent": {all + `,{"Effect":"Deny","Action":"*","Resource":"*","Condition":{"StringNotLike":{"aws:SourceVpc":"x*"}}}`,
			""},
		"null":    {allIf(`{"Null":{"aws:SourceVpc":"true"}}`), ""},
		"two":     {allIf(`{"StringLike":{"aws:PrincipalType":"U*"},"Null":{"aws:SourceVpc":"false"}}`), ""},
		"bounded": {all, `{"Effect":"Allow","Action":["sqs:SendMessage","iam:List*"],"Resource":"*"}`},
		"bounds": {`{"Effect":"Allow","Action":"sqs:*","Resource":"*"}`, all +
			`,{"Effect":"Deny","Action":"sqs:Get*","Resource":"*"}`},
		"alone": {`{"Effect":"Allow","Action":"sns:*","Resource":"*"}`, all},
	}
	allowed, refused := 0, 0
	for name, p := range policies {
		t.Run(name, func(t *testing.T) {
			read := func(statements string) (d iampolicy.Document) {
				if statements == "" {
					return d
				}
				return document(t, strings.NewReplacer("QUEUE", a.queue, "SECRET", a.secret).Replace(statements))
			}
			policy, boundary := read(p.policy), read(p.boundary)
			config := a.as(t, name, policy, boundary)
			var boundaries [][]iampolicy.Document
			if boundary.Statement != nil {
				boundaries = append(boundaries, []iampolicy.Document{boundary})
			}
			for call, c := range calls {
				want := policytest.Allows(policytest.Request{Action: c.action, Resource: c.on(a), Context: region},
					[]iampolicy.Document{policy}, boundaries...)
				err := c.try(t.Context(), config, a)
				if err != nil && !awserr.Is(err, awserr.Denied) {
					t.Fatalf("%s: %v", call, err)
				}
				if got := err == nil; got != want {
					t.Errorf("%s: the emulator allows it: %t, the evaluator: %t", call, got, want)
				} else if got {
					allowed++
				} else {
					refused++
				}
			}
		})
	}
	expect.Least(t, "calls that were allowed, and that were refused", 20, min(allowed, refused))
}
