package account_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

func pathStyle(o *s3.Options) { o.UsePathStyle = true }

// A prepared account is one that CloudFormation made of the template, on an emulator that enforces policies.
type prepared struct {
	root  aws.Config
	scope plan.Scope
	place plan.Location
}

func prepare(t *testing.T) prepared {
	t.Helper()
	p := prepared{root: emulator.Enforcing(t), scope: plan.ScopeOf(emulator.Name("scope"))}
	who := expect.Get(sts.NewFromConfig(p.root).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}))(t)
	p.place = plan.Location{Partition: "aws", Account: *who.Account, Region: p.root.Region}
	p.make(t, account.Options{})
	return p
}

// make makes the account's stack.
func (p prepared) make(t *testing.T, o account.Options) {
	t.Helper()
	body := expect.Get(account.Template(p.scope, []account.Offering{queue(t)}, o))(t)
	p.stack(t, string(p.scope)+"-account", string(body))
}

// byKey is the same emulator by another key.
func byKey(config aws.Config, id, secret, session string) aws.Config {
	config.Credentials = credentials.NewStaticCredentialsProvider(id, secret, session)
	return config
}

// taken is the emulator by the key of a role that was taken.
func (p prepared) taken(role *sts.AssumeRoleOutput) aws.Config {
	return byKey(p.root, *role.Credentials.AccessKeyId, *role.Credentials.SecretAccessKey, *role.Credentials.SessionToken)
}

// Another account is reached by its access role and the external id; what the role may
// do there ends where the rights in the broker's own account do.
func TestAnotherAccount(t *testing.T) {
	p := prepare(t)
	far := prepared{root: byKey(p.root, "222233334444", "test", ""), scope: p.scope, place: p.place} // by that account's own root
	far.place.Account = "222233334444"
	far.make(t, account.Options{Emulated: true, Trust: &account.Trust{
		Principals: []string{"arn:aws:iam::" + p.place.Account + ":root"}, ExternalID: "ours"}})
	role := p.scope.AccessARN(far.place)
	broker := p.as(t, p.root, iam.CreateUserInput{UserName: aws.String(emulator.Name("broker"))},
		account.Rights(p.scope, account.Options{Emulated: true, Access: []string{role}}))
	stranger := p.as(t, p.root, iam.CreateUserInput{UserName: aws.String(emulator.Name("stranger"))},
		account.Rights(p.scope, account.Options{Emulated: true}))
	take := func(as aws.Config, external *string) (*sts.AssumeRoleOutput, error) {
		return sts.NewFromConfig(as).AssumeRole(t.Context(),
			&sts.AssumeRoleInput{RoleArn: &role, RoleSessionName: aws.String("x"), ExternalId: external})
	}
	for reason, one := range map[string]struct {
		as       aws.Config
		external *string
	}{
		"no external id": {broker, nil}, "another external id": {broker, aws.String("theirs")},
		"no right to take it": {stranger, aws.String("ours")},
	} {
		if _, err := take(one.as, one.external); !awserr.Is(err, awserr.Denied) {
			t.Errorf("%s: %v, want a refusal", reason, err)
		}
	}
	there := p.taken(expect.Get(take(broker, aws.String("ours")))(t))
	stacks, service := cloudformation.NewFromConfig(there), p.scope.ServiceRoleARN(far.place, "queue")
	create := func(name string) func(context.Context) error {
		return called(stacks.CreateStack, &cloudformation.CreateStackInput{StackName: &name, RoleARN: &service,
			TemplateBody: aws.String(`{"Resources":{"Queue":{"Type":"AWS::SQS::Queue"}}}`)})
	}
	attempt(t, []try{
		{"an instance", true, create(string(p.scope) + "-i-far")},
		{"not under our names", false, create("mine")},
		{"not under our names", false, called(iam.NewFromConfig(there).CreateUser,
			&iam.CreateUserInput{UserName: aws.String("eve")})},
	})
	there = p.taken(expect.Get(sts.NewFromConfig(broker).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: &role,
		RoleSessionName: aws.String("x"), ExternalId: aws.String("ours"), Policy: aws.String(account.Listing(p.scope))}))(t))
	stacks = cloudformation.NewFromConfig(there)
	attempt(t, []try{
		{"it may be seen", true, called(stacks.ListStacks, &cloudformation.ListStacksInput{})},
		{"whoever lists makes nothing", false, create(string(p.scope) + "-i-more")},
		{"nor removes it", false, called(stacks.DeleteStack,
			&cloudformation.DeleteStackInput{StackName: aws.String(string(p.scope) + "-i-far")})},
		{"nor creates principals", false, called(iam.NewFromConfig(there).CreateUser,
			&iam.CreateUserInput{UserName: aws.String(string(p.scope) + "-b-x")})},
	})
	if _, err := cloudformation.NewFromConfig(p.root).DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{
		StackName: aws.String(string(p.scope) + "-i-far")}); !awserr.Is(err, awserr.Absent) {
		t.Errorf("the stack is in the broker's own account: %v", err)
	}
}

// stack makes one and waits for its end.
func (p prepared) stack(t *testing.T, name, body string) {
	t.Helper()
	stacks := cloudformation.NewFromConfig(p.root)
	expect.Get(stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &body,
		Capabilities: []types.Capability{types.CapabilityCapabilityNamedIam}}))(t)
	expect.OK(t, cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = 100*time.Millisecond, time.Second
	}).Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: &name}, time.Minute))
}

func (p prepared) text(t *testing.T, all []iampolicy.Statement) *string {
	t.Helper()
	raw := expect.Get(json.Marshal(iampolicy.Document{Version: iampolicy.Version, Statement: account.Fill(all, p.place)}))(t)
	return aws.String(string(raw))
}

// as is the account as a new user sees it, who is made by somebody; the boundary may be empty.
func (p prepared) as(t *testing.T, by aws.Config, user iam.CreateUserInput, may []iampolicy.Statement) aws.Config {
	t.Helper()
	client := iam.NewFromConfig(by)
	expect.Get(client.CreateUser(t.Context(), &user))(t)
	expect.Get(client.PutUserPolicy(t.Context(),
		&iam.PutUserPolicyInput{UserName: user.UserName, PolicyName: aws.String("p"), PolicyDocument: p.text(t, may)}))(t)
	key := expect.Get(client.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: user.UserName}))(t)
	return byKey(p.root, *key.AccessKey.AccessKeyId, *key.AccessKey.SecretAccessKey, "")
}

// A try is a call that is allowed, or refused as forbidden. What is allowed may fail otherwise, as of what is not there.
type try struct {
	reason string
	want   bool
	call   func(ctx context.Context) error
}

func attempt(t *testing.T, tries []try) {
	t.Helper()
	for _, one := range tries {
		t.Run(one.reason, func(t *testing.T) {
			err := one.call(t.Context())
			if got := !awserr.Is(err, awserr.Denied); got != one.want {
				t.Errorf("allowed %t, want %t (%v)", got, one.want, err)
			}
		})
	}
}

// called turns a call of the SDK into one that only fails or not.
func called[I, O, F any](call func(context.Context, I, ...F) (O, error), in I) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := call(ctx, in)
		return err
	}
}

// The emulator enforces all but some conditions, which it does not know. Those are tried on
// the evaluator, which agrees with it in all else.
func TestAttacksOnAnEmulator(t *testing.T) {
	p := prepare(t)
	broker := p.as(t, p.root, iam.CreateUserInput{UserName: aws.String(emulator.Name("broker"))},
		account.Rights(p.scope, account.Options{Emulated: true}))
	t.Run("Broker", func(t *testing.T) { p.attackAsBroker(t, broker) })
	t.Run("Binding", func(t *testing.T) { p.attackAsBinding(t, broker) })
	t.Run("ServiceRole", p.attackAsServiceRole)
}

func (p prepared) attackAsBroker(t *testing.T, broker aws.Config) {
	const body = `{"Resources":{"Queue":{"Type":"AWS::SQS::Queue"}}}`
	stacks, principals := cloudformation.NewFromConfig(broker), iam.NewFromConfig(broker)
	role, bound := p.scope.ServiceRoleARN(p.place, "queue"), p.scope.BoundaryARN(p.place, "queue")
	create := func(name string) func(context.Context) error {
		return called(stacks.CreateStack, &cloudformation.CreateStackInput{StackName: &name, TemplateBody: aws.String(body),
			RoleARN: &role})
	}
	user := func(name, path string) func(context.Context) error {
		return called(principals.CreateUser, &iam.CreateUserInput{UserName: &name, Path: &path, PermissionsBoundary: &bound})
	}
	own, template := string(p.scope)+"-b-own", p.scope.Bucket(p.place.Account, p.place.Region)
	expect.OK(t, user(own, p.scope.Path()+"a/b/")(t.Context()))
	buckets := s3.NewFromConfig(broker, pathStyle)
	table := string(p.scope) + "-i-table"
	scan := func(what dynamotypes.Select) func(context.Context) error {
		return called(dynamodb.NewFromConfig(broker).Scan, &dynamodb.ScanInput{TableName: &table, Select: what})
	}
	lay := called(buckets.PutObject, &s3.PutObjectInput{Bucket: &template, Key: aws.String("templates/d.json"),
		Body: strings.NewReader("{}")})
	if err := lay(t.Context()); !awserr.Is(err, awserr.Denied) {
		t.Errorf("the bucket of templates is open to what does not use TLS: %v", err)
	}
	expect.Get(s3.NewFromConfig(p.root, pathStyle).DeleteBucketPolicy(t.Context(),
		&s3.DeleteBucketPolicyInput{Bucket: &template}))(t) // the emulator has no TLS
	service := string(p.scope) + "-s-queue-" + p.place.Region
	attempt(t, []try{
		{"an instance", true, create(string(p.scope) + "-i-a")},
		{"not under our names", false, create("mine")},
		{"what prepares the account", false, create(string(p.scope) + "-account-2")},
		{"of another broker", false, create("longshore-zzzzzzzz-i-a")},
		{"another way to make stacks", false, called(stacks.CreateChangeSet, &cloudformation.CreateChangeSetInput{
			StackName: aws.String(string(p.scope) + "-i-b"), ChangeSetName: aws.String("c"), TemplateBody: aws.String(body)})},
		{"the account's own stack", false,
			called(stacks.DeleteStack, &cloudformation.DeleteStackInput{StackName: aws.String(string(p.scope) + "-account")})},
		{"a binding's", true, user(string(p.scope)+"-b-more", p.scope.Path()+"a/b/")},
		{"not under our names", false, user("eve", "/")},
		{"of another broker", false, user("longshore-zzzzzzzz-b-a", "/longshore/zzzzzzzz/a/b/")},
		{"the boundary is taken off", false,
			called(principals.DeleteUserPermissionsBoundary, &iam.DeleteUserPermissionsBoundaryInput{UserName: &own})},
		{"the boundary becomes another", false,
			called(principals.PutUserPermissionsBoundary, &iam.PutUserPermissionsBoundaryInput{UserName: &own,
				PermissionsBoundary: &bound})},
		{"its text is changed", false,
			called(principals.CreatePolicyVersion, &iam.CreatePolicyVersionInput{PolicyArn: &bound, SetAsDefault: true,
				PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`)})},
		{"it is deleted", false, called(principals.DeletePolicy, &iam.DeletePolicyInput{PolicyArn: &bound})},
		{"a policy of another's", false,
			called(principals.AttachUserPolicy, &iam.AttachUserPolicyInput{UserName: &own, PolicyArn: &bound})},
		{"a password", false,
			called(principals.CreateLoginProfile, &iam.CreateLoginProfileInput{UserName: &own, Password: aws.String("x")})},
		{"a service role's rights", false, called(principals.PutRolePolicy, &iam.PutRolePolicyInput{
			RoleName: &service, PolicyName: aws.String("p"), PolicyDocument: aws.String(`{}`)})},
		{"who may take it", false, called(principals.UpdateAssumeRolePolicy, &iam.UpdateAssumeRolePolicyInput{
			RoleName: &service, PolicyDocument: aws.String(`{}`)})},
		{"the service role itself", false, called(sts.NewFromConfig(broker).AssumeRole, &sts.AssumeRoleInput{
			RoleArn: &role, RoleSessionName: aws.String("x")})},
		{"a template is laid down", true, lay},
		{"a template is removed", false, called(buckets.DeleteObject, &s3.DeleteObjectInput{
			Bucket: &template, Key: aws.String("templates/d.json")})},
		{"whether a table holds something", true, scan(dynamotypes.SelectCount)},
		{"what it holds", false, scan(dynamotypes.SelectAllAttributes)},
	})
}

// A binding may have any policy: its principal stays within the boundary.
func (p prepared) attackAsBinding(t *testing.T, broker aws.Config) {
	name, bound := string(p.scope)+"-b-wide", p.scope.BoundaryARN(p.place, "queue")
	wide := p.as(t, broker, iam.CreateUserInput{UserName: &name, Path: aws.String(p.scope.Path() + "c/d/"),
		PermissionsBoundary: &bound}, everything[0].Statement)
	root := sqs.NewFromConfig(p.root)
	send := func(queue string) func(context.Context) error {
		q := expect.Get(root.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &queue}))(t)
		return called(sqs.NewFromConfig(wide).SendMessage, &sqs.SendMessageInput{QueueUrl: q.QueueUrl,
			MessageBody: aws.String("x")})
	}
	template := p.scope.Bucket(p.place.Account, p.place.Region)
	attempt(t, []try{
		{"what it is for", true, send(string(p.scope) + "-i-own")},
		{"what no instance has", false, send(emulator.Name("payroll"))},
		{"principals", false, called(iam.NewFromConfig(wide).ListUsers, &iam.ListUsersInput{})},
		{"another key of its own", false, called(iam.NewFromConfig(wide).CreateAccessKey,
			&iam.CreateAccessKeyInput{UserName: &name})},
		{"the service role", false, called(sts.NewFromConfig(wide).AssumeRole, &sts.AssumeRoleInput{
			RoleArn: aws.String(p.scope.ServiceRoleARN(p.place, "queue")), RoleSessionName: aws.String("x")})},
		{"a template of others", false,
			called(s3.NewFromConfig(wide, pathStyle).PutObject,
				&s3.PutObjectInput{Bucket: &template, Key: aws.String("templates/d.json"), Body: strings.NewReader("{}")})},
	})
}

// An emulator has CloudFormation work with all rights: a user with those of the service role shows what they are worth.
func (p prepared) attackAsServiceRole(t *testing.T) {
	service := p.as(t, p.root, iam.CreateUserInput{UserName: aws.String(emulator.Name("service"))},
		account.ServiceRights(p.scope, queue(t)))
	secrets, principals := secretsmanager.NewFromConfig(service), iam.NewFromConfig(service)
	secret := func(name string) func(context.Context) error {
		expect.Get(secretsmanager.NewFromConfig(p.root).CreateSecret(t.Context(),
			&secretsmanager.CreateSecretInput{Name: &name, SecretString: aws.String("x")}))(t)
		return called(secrets.GetSecretValue, &secretsmanager.GetSecretValueInput{SecretId: &name})
	}
	attempt(t, []try{
		{"its stack's secret", true, secret(string(p.scope) + "-i-own")},
		{"{{resolve:secretsmanager}} of another", false, secret(emulator.Name("payroll"))},
		{"{{resolve:ssm}}", false, called(ssm.NewFromConfig(service).GetParameter,
			&ssm.GetParameterInput{Name: aws.String("/db/password")})},
		{"a binding's key", false, called(principals.CreateAccessKey,
			&iam.CreateAccessKeyInput{UserName: aws.String(string(p.scope) + "-b-own")})},
		{"the boundary's text", false, called(principals.CreatePolicyVersion, &iam.CreatePolicyVersionInput{
			PolicyArn: aws.String(p.scope.BoundaryARN(p.place, "queue")), PolicyDocument: aws.String(`{}`)})},
		{"its own rights", false, called(principals.PutRolePolicy, &iam.PutRolePolicyInput{
			RoleName: aws.String(p.scope.ServiceRole("queue", p.place.Region)), PolicyName: aws.String("p"),
			PolicyDocument: aws.String(`{}`)})},
	})
}
