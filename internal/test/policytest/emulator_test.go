package policytest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/policytest"
)

// An account is of an emulator that enforces policies, with a queue and a secret.
type account struct {
	config         aws.Config
	queue, url     string // its ARN and its URL
	secret, prefix string
}

func newAccount(t *testing.T) account {
	t.Helper()
	a := account{config: emulator.Enforcing(t), prefix: emulator.Name("policy")}
	q, err := sqs.NewFromConfig(a.config).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &a.prefix})
	expect.OK(t, err)
	a.url = *q.QueueUrl
	s, err := secretsmanager.NewFromConfig(a.config).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{
		Name: &a.prefix, SecretString: aws.String("x"),
	})
	expect.OK(t, err)
	a.secret = *s.ARN
	a.queue = strings.Replace(strings.Split(a.secret, ":secret:")[0], "secretsmanager", "sqs", 1) + ":" + a.prefix
	return a
}

// as is the account as a user sees it who has a policy, and a boundary unless it is
// empty.
func (a account) as(t *testing.T, name string, policy, boundary iampolicy.Document) aws.Config {
	t.Helper()
	root, text := iam.NewFromConfig(a.config), func(d iampolicy.Document) *string {
		raw, err := json.Marshal(d)
		expect.OK(t, err)
		return aws.String(string(raw))
	}
	user := &iam.CreateUserInput{UserName: aws.String(a.prefix + "-" + name)}
	if boundary.Statement != nil {
		p, err := root.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: user.UserName,
			PolicyDocument: text(boundary)})
		expect.OK(t, err)
		user.PermissionsBoundary = p.Policy.Arn
	}
	expect.Get(root.CreateUser(t.Context(), user))(t)
	_, err := root.PutUserPolicy(t.Context(),
		&iam.PutUserPolicyInput{UserName: user.UserName, PolicyName: aws.String("p"), PolicyDocument: text(policy)})
	expect.OK(t, err)
	key, err := root.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: user.UserName})
	expect.OK(t, err)
	config := a.config.Copy()
	config.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: *key.AccessKey.AccessKeyId, SecretAccessKey: *key.AccessKey.SecretAccessKey}, nil
	})
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
			_, err := sqs.NewFromConfig(c).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &a.url, MessageBody: aws.String("x")})
			return err
		}},
	"look": {"sqs:GetQueueAttributes", func(a account) string { return a.queue },
		func(ctx context.Context, c aws.Config, a account) error {
			_, err := sqs.NewFromConfig(c).GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &a.url})
			return err
		}},
	"secret": {"secretsmanager:GetSecretValue", func(a account) string { return a.secret },
		func(ctx context.Context, c aws.Config, a account) error {
			_, err := secretsmanager.NewFromConfig(c).GetSecretValue(ctx,
				&secretsmanager.GetSecretValueInput{SecretId: &a.secret})
			return err
		}},
	"users": {"iam:ListUsers", func(account) string { return "*" }, func(ctx context.Context, c aws.Config, _ account) error {
		_, err := iam.NewFromConfig(c).ListUsers(ctx, &iam.ListUsersInput{})
		return err
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
				return parse(t, fmt.Sprintf(`{"Version":"2012-10-17","Statement":[%s]}`,
					strings.NewReplacer("QUEUE", a.queue, "SECRET", a.secret).Replace(statements)))
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
	if allowed < 20 || refused < 20 {
		t.Errorf("%d were allowed and %d refused: the test proves little", allowed, refused)
	}
}
