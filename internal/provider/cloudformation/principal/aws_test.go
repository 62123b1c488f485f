package principal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/time/rate"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/faulttest"
	"github.com/longshore/longshore/internal/test/principaltest"
	"github.com/longshore/longshore/internal/test/providertest"
)

const accountID = "000000000000" // MiniStack's own

// allowing is a policy that allows actions on a resource.
func allowing(resource string, actions ...string) json.RawMessage {
	return fmt.Appendf(nil, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["%s"],"Resource":%q}]}`,
		strings.Join(actions, `","`), resource)
}

// onAWS is a bench over an emulated account, with a scope of its own.
func onAWS(t *testing.T, cfg aws.Config, m plan.Settings) *bench {
	b := &bench{t: t, clock: providertest.NewClock(time.Now()), m: m}
	boundary := emulator.Name("boundary")
	made := expect.Get(iam.NewFromConfig(cfg).CreatePolicy(t.Context(),
		&iam.CreatePolicyInput{PolicyName: &boundary, PolicyDocument: aws.String(string(allowing("*", "sqs:*", "s3:*")))}))(t)
	b.Keeper = &principal.Keeper{
		IAM: principal.NewIAM(cfg), Prover: principal.NewProver(cfg, time.Now), Scope: plan.ScopeOf(boundary), Broker: "broker-1",
		Now: b.clock.Now, Log: slog.New(slog.NewTextHandler(&b.log, nil)), Reads: rate.NewLimiter(rate.Inf, 1),
		Boundary: func(string) string { return *made.Policy.Arn },
	}
	return b
}

// listing is all users and roles of the account.
func listing(t *testing.T, cfg aws.Config) (names []string) {
	t.Helper()
	for _, kind := range []plan.Principal{plan.User, plan.Role} {
		page, _, err := principal.NewIAM(cfg).List(t.Context(), kind, "/", "", 1000)
		expect.OK(t, err)
		for _, f := range page {
			names = append(names, f.Name)
		}
	}
	return names
}

// as is a config with the credentials of a grant.
func as(cfg aws.Config, id, secret, token string) aws.Config {
	cfg.Credentials = credentials.NewStaticCredentialsProvider(id, secret, token)
	return cfg
}

func text(g *provider.Grant, name string) string { s, _ := g.Credentials[name].(string); return s }

// queuePlan binds to a queue.
func queuePlan() plan.Settings {
	return plan.Settings{
		Format: plan.Format, Offering: "sqs", Principal: plan.User, Credentials: map[string]string{"queue_url": "${QueueUrl}"},
		Policy: allowing("${QueueArn}", "sqs:SendMessage", "sqs:GetQueueAttributes"),
		Proof: &plan.Proof{Service: "sqs", Body: `{"QueueUrl":"${QueueUrl}","AttributeNames":["QueueArn"]}`,
			Headers: map[string]string{
				"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.GetQueueAttributes"}},
	}
}

func newQueue(t *testing.T, cfg aws.Config) map[string]string {
	t.Helper()
	name := emulator.Name("queue")
	out := expect.Get(sqs.NewFromConfig(cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name}))(t)
	return map[string]string{
		"QueueUrl": *out.QueueUrl, "QueueArn": "arn:aws:sqs:" + cfg.Region + ":" + accountID + ":" + name,
		plan.ValueRegion: cfg.Region, plan.ValuePartition: "aws",
	}
}

// send reports how AWS takes a message.
func send(t *testing.T, by aws.Config, queue map[string]string) awserr.Class {
	return awserr.Of(expect.Err(sqs.NewFromConfig(by).SendMessage(t.Context(),
		&sqs.SendMessageInput{QueueUrl: aws.String(queue["QueueUrl"]), MessageBody: aws.String("hello")})))
}

func TestUsersOnMiniStack(t *testing.T) {
	cfg := emulator.Enforcing(t)
	b := onAWS(t, cfg, queuePlan())
	mine, theirs := newQueue(t, cfg), newQueue(t, cfg)
	before := listing(t, cfg)
	b.v = mine
	of, g := b.bound(1)
	expect.Same(t, "queue and region", [2]string{mine["QueueUrl"], cfg.Region},
		[2]string{text(g, "queue_url"), text(g, "region")})
	check := func(when string, g *provider.Grant, queue map[string]string, want awserr.Class) {
		t.Helper()
		by := as(cfg, text(g, "access_key_id"), text(g, "secret_access_key"), "")
		expect.Same(t, when+": a message is", want, send(t, by, queue))
	}
	check("bound", g, mine, awserr.None)
	check("another's queue", g, theirs, awserr.Denied)

	page, next, err := b.List(t.Context(), "")
	if err != nil || len(page) != 1 || next != "role" || page[0].Tags != provider.BindingTagsOf(of) {
		t.Fatalf("inventory %+v, next %q, error %v", page, next, err)
	}
	expect.OK(t, b.Quarantine(t.Context(), page[0]))
	check("in quarantine", g, mine, awserr.Login)
	expect.OK(t, b.Release(t.Context(), page[0]))
	check("released", g, mine, awserr.None)

	b.v = theirs
	for range 2 {
		b.rewrite(of)
		check("rewritten", g, theirs, awserr.None)
		check("rewritten", g, mine, awserr.Denied)
	}

	anew := b.binding("binding-1", "operation-2")
	again := b.mustBind(&anew)
	check("bound anew", again, theirs, awserr.None)
	b.mustUnbind(of)
	check("bound anew, by the old key", g, theirs, awserr.Login)
	check("bound anew, after the old one has ended", again, theirs, awserr.None)
	b.mustUnbind(anew)
	check("unbound", again, theirs, awserr.Login)
	expect.Same(t, "the account's users and roles, before and after", before, listing(t, cfg))
	expect.Never(t, "the log", b.log.String(), text(g, "secret_access_key"))
}

// A key is proved through the policy: as long as that does not allow the proof, the key is not granted.
func TestProofsGoThroughThePolicy(t *testing.T) {
	cfg := emulator.Enforcing(t)
	bucket := emulator.Name("bucket")
	c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	expect.Get(c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}))(t)
	b := onAWS(t, cfg, plan.Settings{
		Format: plan.Format, Offering: "s3", Credentials: map[string]string{"bucket": "${BucketName}"},
		Policy: allowing("*", "s3:GetObject"),
		Proof:  &plan.Proof{Service: "s3", Method: "GET", Path: "/${BucketName}?list-type=2&max-keys=1"},
	})
	b.v = map[string]string{"BucketName": bucket, plan.ValueRegion: cfg.Region}
	of := b.first()
	for range 6 {
		st, err := b.step(&of)
		if err != nil || st.Done {
			t.Fatalf("without the right to list: done %v, error %v", st.Done, err)
		}
		b.clock.Advance(time.Minute)
	}
	expect.Says(t, "the log", b.log.String(), "AccessDenied")
	b.m.Policy = allowing("arn:aws:s3:::${BucketName}", "s3:ListBucket")
	b.rewrite(of)
	g := b.mustBind(&of)
	cfg = as(cfg, text(g, "access_key_id"), text(g, "secret_access_key"), "")
	user := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	if _, err := user.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket}); err != nil {
		t.Errorf("listing by the grant: %v", err)
	}
	b.m.Proof = nil // then it is asked only whose the key is
	another, _ := b.bound(2)
	b.mustUnbind(of)
	b.mustUnbind(another)
}

func TestRolesOnMiniStack(t *testing.T) {
	cfg := emulator.Enforcing(t)
	m := queuePlan()
	m.Principal, m.Assume = plan.Role, []string{accountID}
	b := onAWS(t, cfg, m)
	b.v = newQueue(t, cfg)
	theirs := newQueue(t, cfg)
	before := listing(t, cfg)
	of, g := b.bound(1)
	assume := func(externalID string) (*sts.AssumeRoleOutput, error) {
		return sts.NewFromConfig(cfg).AssumeRole(t.Context(), &sts.AssumeRoleInput{
			RoleArn: aws.String(text(g, "role_arn")), RoleSessionName: aws.String("test"), ExternalId: &externalID})
	}
	key := expect.Get(assume(text(g, "external_id")))(t, "assuming the role").Credentials
	session := as(cfg, *key.AccessKeyId, *key.SecretAccessKey, *key.SessionToken)
	check := func(when string, queue map[string]string, want ...awserr.Class) {
		t.Helper()
		if got := send(t, session, queue); !slices.Contains(want, got) {
			t.Errorf("%s: a message is %q, want %q", when, got, want)
		}
	}
	check("bound", b.v, awserr.None)
	check("another's queue", theirs, awserr.Denied)
	if _, err := assume("another"); !awserr.Is(err, awserr.Denied) {
		t.Errorf("assuming the role with another external id: %v", err)
	}
	h := provider.Holding{Name: b.name(of), Tags: provider.BindingTagsOf(of)}
	expect.OK(t, b.Quarantine(t.Context(), h))
	check("a session in quarantine", b.v, awserr.Denied)
	expect.OK(t, b.Release(t.Context(), h))
	check("released", b.v, awserr.None)
	b.mustUnbind(of)
	if _, err := assume(text(g, "external_id")); err == nil {
		t.Error("the role can be assumed after the unbind")
	}
	check("a session after the unbind", b.v, awserr.Denied, awserr.Login)
	expect.Same(t, "the account's users and roles, before and after", before, listing(t, cfg))
}

// Throttled or lost at every call of the SDK, a bind and an unbind come to one principal with one key, and to none.
func TestEveryCallOfIAMFails(t *testing.T) {
	cfg := emulator.Config(t)
	m := queuePlan()
	m.Proof = nil
	b := onAWS(t, cfg, m)
	b.v = map[string]string{"QueueUrl": "url", "QueueArn": "arn:aws:sqs:us-east-1:0:x", plan.ValueRegion: cfg.Region}
	client := principal.NewIAM(cfg)
	for _, fault := range []faulttest.Fault{faulttest.Throttled, faulttest.Lost} {
		for at, met := 1, true; met; at++ {
			faults := &faulttest.Plan{At: at, Fault: fault}
			b.IAM = principal.NewIAM(faults.Into(cfg))
			of := b.binding("binding-1", fmt.Sprintf("operation-%s-%d", fault, at))
			g := b.mustBind(&of)
			keys, err := client.Keys(t.Context(), b.Scope.Binding(provider.BindingTagsOf(of)))
			if err != nil || len(keys) != 1 || keys[0].ID != text(g, "access_key_id") {
				t.Fatalf("%s at call %d: keys %v, error %v", fault, at, keys, err)
			}
			b.mustUnbind(of)
			if met = len(faults.Met()) > 0; at > 100 {
				t.Fatal("there is no end of calls")
			}
		}
		page, _, err := client.List(t.Context(), plan.User, b.Scope.Path(), "", 10)
		if err != nil || len(page) > 0 {
			t.Fatalf("%s: left %v, error %v", fault, page, err)
		}
	}
}

// All that a Keeper does, it does by the rights that the guide gives to the broker, but
// for the conditions that the emulator does not know.
func TestTheBrokersRightsSuffice(t *testing.T) {
	root := emulator.Enforcing(t)
	m := queuePlan()
	m.Assume = []string{accountID}
	b := onAWS(t, root, m)
	b.v = newQueue(t, root)
	rights := expect.Get(json.Marshal(iampolicy.Document{Version: iampolicy.Version, Statement: account.Fill(
		account.Rights(b.Scope, account.Options{Emulated: true}), plan.Location{Partition: "aws", Account: accountID,
			Region: root.Region})}))(t)
	name := emulator.Name("broker")
	asRoot := principal.NewIAM(root)
	broker := principal.Wanted{Name: name, Path: "/", Boundary: "arn:aws:iam::aws:policy/AdministratorAccess"}
	expect.OK(t, errors.Join(asRoot.Create(t.Context(), plan.User, broker),
		asRoot.PutPolicy(t.Context(), plan.User, name, "rights", string(rights))))
	key := expect.Get(asRoot.CreateKey(t.Context(), name))(t)
	b.IAM = principal.NewIAM(as(root, key.ID, key.Secret, ""))
	for n, kind := range []plan.Principal{plan.User, plan.Role} {
		b.m.Principal = kind
		of := b.binding("binding-1", fmt.Sprint("operation-", n))
		b.mustBind(&of)
		b.m.Policy = allowing("${QueueArn}", "sqs:*")
		b.m.Assume = append(b.m.Assume, "arn:aws:iam::"+accountID+":root")
		b.rewrite(of)
		h := provider.Holding{Name: b.name(of), Tags: provider.BindingTagsOf(of)}
		if err := errors.Join(b.Quarantine(t.Context(), h), b.Release(t.Context(), h)); err != nil {
			t.Errorf("quarantine: %v", err)
		}
		if _, _, err := b.List(t.Context(), string(kind)); err != nil {
			t.Errorf("inventory: %v", err)
		}
		// An operator hangs another policy on it.
		expect.OK(t, asRoot.PutPolicy(t.Context(), kind, h.Name, "another", string(b.m.Policy)))
		hang(t, root, kind, h.Name)
		b.mustUnbind(of)
		if _, err := asRoot.Get(t.Context(), kind, h.Name); !awserr.Is(err, awserr.Absent) {
			t.Errorf("after the unbind: %v", err)
		}
	}
}

// hang hangs on a principal what a Keeper never does, and may take off.
func hang(t *testing.T, cfg aws.Config, kind plan.Principal, name string) {
	t.Helper()
	c, policy := iam.NewFromConfig(cfg), aws.String("arn:aws:iam::aws:policy/ReadOnlyAccess")
	if kind == plan.Role {
		expect.Get(c.AttachRolePolicy(t.Context(), &iam.AttachRolePolicyInput{RoleName: &name, PolicyArn: policy}))(t)
		return
	}
	_, attached := c.AttachUserPolicy(t.Context(), &iam.AttachUserPolicyInput{UserName: &name, PolicyArn: policy})
	_, profile := c.CreateLoginProfile(t.Context(), &iam.CreateLoginProfileInput{UserName: &name,
		Password: aws.String("Secret-1234567")})
	expect.OK(t, errors.Join(attached, profile))
}

// The SDK repeats what it may: never the making of a key.
func TestAKeyIsAskedForOnce(t *testing.T) {
	cfg := emulator.Config(t)
	name := emulator.Name("user")
	boundary := onAWS(t, cfg, plan.Settings{}).Boundary("")
	for _, tc := range []struct {
		call     string
		do       func(principal.IAM) error
		attempts int
		fails    bool
	}{
		{"CreateUser", func(c principal.IAM) error {
			return c.Create(t.Context(), plan.User, principal.Wanted{Name: name, Path: "/", Boundary: boundary})
		}, 2, false},
		{"CreateAccessKey", func(c principal.IAM) error { _, err := c.CreateKey(t.Context(), name); return err }, 1, true},
	} {
		faults := &faulttest.Plan{At: 1, Fault: faulttest.Throttled, Attempts: true}
		err := tc.do(principal.NewIAM(faults.Into(cfg)))
		if got := len(faults.Calls()); got != tc.attempts || (err != nil) != tc.fails {
			t.Errorf("%s: %d attempts, error %v; want %d", tc.call, got, err, tc.attempts)
		}
	}
}

// The fake and MiniStack answer alike where both know a call.
func TestFakeIsAsMiniStack(t *testing.T) {
	cfg := emulator.Config(t)
	real := onAWS(t, cfg, plan.Settings{})
	clock := providertest.NewClock(time.Now())
	fake := principaltest.New(accountID, clock.Now).Client(&providertest.Calls{})
	for _, kind := range []plan.Principal{plan.User, plan.Role} {
		name := emulator.Name("likeness")
		w := principal.Wanted{
			Name: name, Path: real.Scope.Path(), Boundary: real.Boundary(""),
			Trust: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` +
				`"Principal":{"AWS":"arn:aws:iam::000000000000:root"},"Action":"sts:AssumeRole"}]}`,
			Tags: []label.Label{{Name: "longshore:binding", Value: "=Zm9v"}, {Name: "a", Value: "b c"}},
		}
		got, want := answers(t, fake, kind, w), answers(t, real.IAM, kind, w)
		if diff := cmp.Diff(want, got); diff != "" || len(got) < 20 {
			t.Errorf("%s: %d answers (-MiniStack +fake):\n%s", kind, len(got), diff)
		}
	}
}

// answers is what an IAM answers to all calls about one principal, in the order of a life.
func answers(t *testing.T, on principal.IAM, kind plan.Principal, w principal.Wanted) (log []string) {
	ctx := t.Context()
	note := func(call string, err error, more ...any) {
		log = append(log, fmt.Sprint(call, ": ", awserr.Of(err), " ", more))
	}
	get := func() {
		f, err := on.Get(ctx, kind, w.Name)
		note("Get", err, f.Name, f.ARN, f.Tags, f.Trust != "")
	}
	list := func() {
		page, next, err := on.List(ctx, kind, w.Path, "", 10)
		var names []string
		for _, f := range page {
			names = append(names, f.Name+f.ARN)
		}
		note("List", err, names, next)
	}
	const document = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"a?b&c=d+e %20 é"}]}`
	policy := func() {
		text, err := on.Policy(ctx, kind, w.Name, "p")
		note("Policy", err, text)
	}
	get()
	list()
	note("Delete", on.Delete(ctx, kind, w.Name))
	note("PutPolicy", on.PutPolicy(ctx, kind, w.Name, "p", document))
	note("Create", on.Create(ctx, kind, w))
	note("Create", on.Create(ctx, kind, w))
	get()
	list()
	policy()
	note("PutPolicy", on.PutPolicy(ctx, kind, w.Name, "p", document))
	note("PutPolicy", on.PutPolicy(ctx, kind, w.Name, "p", "{"))
	policy()
	if kind == plan.Role {
		note("SetTrust", on.SetTrust(ctx, w.Name, w.Trust))
		note("SetTrust", on.SetTrust(ctx, "nobody-at-all", w.Trust))
	}
	note("SetTags", on.SetTags(ctx, kind, w.Name, []label.Label{{Name: "a", Value: "new"}, {Name: "c", Value: "d"}}))
	note("SetTags", on.SetTags(ctx, kind, w.Name, []label.Label{{Name: "x", Value: "1"}, {Name: "X", Value: "2"}}))
	note("DropTags", on.DropTags(ctx, kind, w.Name, "c", "never"))
	get()
	hanging, err := on.Attachments(ctx, kind, w.Name)
	note("Attachments", err, len(hanging))
	for _, detach := range hanging {
		note("Detach", detach(ctx))
	}
	policy()
	note("PutPolicy", on.PutPolicy(ctx, kind, w.Name, "p", document))
	if kind == plan.User {
		keysOf(t, on, w.Name, note)
	}
	note("DeletePolicy", on.DeletePolicy(ctx, kind, w.Name, "p"))
	note("DeletePolicy", on.DeletePolicy(ctx, kind, w.Name, "p"))
	note("Delete", on.Delete(ctx, kind, w.Name))
	note("Delete", on.Delete(ctx, kind, w.Name))
	get()
	list()
	_, most, err := on.Usage(ctx, kind)
	note("Usage", err, most)
	return log
}

// keysOf makes, switches and deletes keys of a user.
func keysOf(t *testing.T, on principal.IAM, name string, note func(string, error, ...any)) {
	ctx := t.Context()
	list := func() {
		keys, err := on.Keys(ctx, name)
		var active []bool
		for _, k := range keys {
			active = append(active, k.Active)
		}
		note("Keys", err, active)
	}
	_, err := on.CreateKey(ctx, "nobody-at-all")
	note("CreateKey", err)
	list()
	k, err := on.CreateKey(ctx, name)
	note("CreateKey", err, k.ID != "", k.Secret != "")
	list()
	note("SetKey", on.SetKey(ctx, name, k.ID, false))
	list()
	note("SetKey", on.SetKey(ctx, name, "AKIANOSUCHKEY", false))
	note("Delete", on.Delete(ctx, plan.User, name))
	note("DeleteKey", on.DeleteKey(ctx, name, k.ID))
	note("DeleteKey", on.DeleteKey(ctx, name, k.ID))
	list()
}
