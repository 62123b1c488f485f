package bootstrap

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/account"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/faulttest"
)

func preparing(t *testing.T, scope plan.Scope, offered *catalog.Catalog) Options {
	return Options{Scope: scope, Offered: offered, Every: time.Millisecond, Say: t.Logf}
}

// fresh is an account in which nothing is prepared for a broker.
func fresh(t *testing.T) (context.Context, Session, plan.Scope) {
	t.Helper()
	return t.Context(), expect.Get(At(t.Context(), emulator.Config(t)))(t), plan.ScopeOf(emulator.Name("broker"))
}

// queues are an offering with one action.
func queues(t *testing.T, action string) *catalog.Catalog {
	return catalogtest.AWS(t, map[string]string{"queues": action})
}

// nothing requires that a run has found nothing to do.
func nothing(t *testing.T, when string, did Result, err error) {
	t.Helper()
	if err != nil || len(did.Adopted)+len(did.Changed)+len(did.Made) != 0 {
		t.Errorf("%s: %+v, %v", when, did, err)
	}
}

// thing is a template with a custom resource that a function makes.
func thing(function, properties string) string {
	return fmt.Sprintf(`{"Resources": {"Thing": {"Type": "Custom::Thing", "Properties": {"ServiceToken": %q, %s}}}}`, function,
		properties)
}

const nowhere = "arn:aws:lambda:us-east-1:000000000000:function:nowhere"

// An account is prepared once, for what is offered; what was offered once stays.
func TestAnAccountIsPrepared(t *testing.T) {
	ctx, at, scope := fresh(t)
	one := map[string]string{"queues": "sqs:CreateQueue"}
	two := map[string]string{"queues": "sqs:CreateQueue", "topics": "sqs:DeleteQueue"}
	other := map[string]string{"queues": "sqs:TagQueue"}
	if _, found, err := at.Lacks(ctx, scope, catalogtest.AWS(t, one)); found || err != nil {
		t.Fatalf("prepared before: %v, %v", found, err)
	}
	for _, step := range []struct {
		what                string
		offered             map[string]string
		lacks               []string // before
		made, changed, kept int
	}{
		{"first", one, nil, 4, 0, 0},
		{"again", one, nil, 0, 0, 0},
		{"another offering", two, []string{"topics"}, 2, 0, 0},
		{"again with both", two, nil, 0, 0, 0},
		{"without it", one, nil, 0, 0, 2},
		{"with it again", two, nil, 0, 0, 0},
		{"and without", one, nil, 0, 0, 2},
		{"another permission", other, []string{"queues"}, 0, 1, 2},
		{"and again", other, nil, 0, 0, 2},
	} {
		offered := catalogtest.AWS(t, step.offered)
		if step.what != "first" {
			lacks, found, err := at.Lacks(ctx, scope, offered)
			if diff := cmp.Diff(step.lacks, lacks); !found || err != nil || diff != "" {
				t.Errorf("%s: found %v, %v, lacks -want +got:\n%s", step.what, found, err, diff)
			}
		}
		did := expect.Get(at.prepare(ctx, preparing(t, scope, offered)))(t, step.what)
		if len(did.Made) != step.made || len(did.Changed) != step.changed || len(did.Kept) != step.kept {
			t.Errorf("%s: %+v", step.what, did)
		}
	}
	isProtectedAgain(t, at, scope, catalogtest.AWS(t, other))
	for _, name := range []string{"queues", "topics"} {
		role := scope.ServiceRole(name, at.Region)
		if _, err := iam.NewFromConfig(at.Config).GetRole(ctx, &iam.GetRoleInput{RoleName: &role}); err != nil {
			t.Errorf("the role of %s: %v", name, err)
		}
	}
}

// unprotected is the account's stack, which may be deleted.
func unprotected(t *testing.T, at Session, scope plan.Scope) (stack *string, stacks *cloudformation.Client) {
	t.Helper()
	stack, stacks = aws.String(string(scope)+"-account"), cloudformation.NewFromConfig(at.Config)
	expect.Get(stacks.UpdateTerminationProtection(t.Context(),
		&cloudformation.UpdateTerminationProtectionInput{StackName: stack, EnableTerminationProtection: aws.Bool(false)}))(t)
	return stack, stacks
}

// isProtectedAgain has a run find the stack as one leaves it that dies before its end.
func isProtectedAgain(t *testing.T, at Session, scope plan.Scope, offered *catalog.Catalog) {
	t.Helper()
	ctx := t.Context()
	stack, stacks := unprotected(t, at, scope)
	expect.Get(at.prepare(ctx, preparing(t, scope, offered)))(t)
	made, err := stacks.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: stack})
	if err != nil || !aws.ToBool(made.Stacks[0].EnableTerminationProtection) {
		t.Errorf("a run that ended before the stack was protected is not gone on with: %v", err)
	}
}

// many are 20 offerings, one of them queues: a template with their resources is too long for a call.
func many(action string) map[string]string {
	all := map[string]string{"queues": action}
	for i := range 19 {
		all[fmt.Sprintf("queues-%d", i)] = action
	}
	return all
}

// A template that is too long for a call is read from the bucket that it begins with.
func TestALongTemplateIsReadFromItsBucket(t *testing.T) {
	ctx, at, scope := fresh(t)
	o := preparing(t, scope, catalogtest.AWS(t, many("sqs:CreateQueue")))
	did, err := at.prepare(ctx, o)
	if err != nil || len(did.Made) != 42 {
		t.Fatalf("%+v, %v", did, err)
	}
	did, err = at.prepare(ctx, o)
	nothing(t, "again", did, err)
}

// answered is a session in an account whose calls a handler answers.
func answered(t *testing.T, account string, h http.HandlerFunc) Session {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return Session{Location: plan.Location{Partition: "aws", Account: account, Region: "eu-central-1"}, Config: aws.Config{
		Region: "eu-central-1", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}}
}

// Neither a template nor the mark is written to a bucket that another account has taken, and no mark is read from it.
func TestABucketOfAnotherAccountIsNotTrusted(t *testing.T) {
	const scope = plan.Scope("longshore-abcdefgh")
	kept := map[string]string{}
	bucket := func(w http.ResponseWriter, r *http.Request) {
		body, there := kept[r.URL.Path]
		switch {
		case r.Header.Get("X-Amz-Expected-Bucket-Owner") != "111111111111":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>")
		case r.Method == http.MethodPut:
			raw, _ := io.ReadAll(r.Body)
			kept[r.URL.Path] = string(raw)
		case !there:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			w.Header().Set("ETag", "any")
			_, _ = io.WriteString(w, body)
		}
	}
	mark, long := Mark{map[string]string{"queues": "needs"}}, []byte(strings.Repeat(" ", mostInline+1))
	write := func(at Session) error {
		_, _, err := at.preparation("account", preparing(t, scope, nil)).source(t.Context(), long)
		return err
	}
	ours, theirs := answered(t, "111111111111", bucket), answered(t, "222222222222", bucket)
	expect.OK(t, write(ours))
	expect.OK(t, ours.keepMark(t.Context(), scope, mark))
	has, version, err := ours.mark(t.Context(), scope)
	if diff := cmp.Diff(mark, has); version == nil || err != nil || diff != "" {
		t.Errorf("our own mark: version %v, %v, -want +got:\n%s", version, err, diff)
	}
	_, _, read := theirs.mark(t.Context(), scope)
	for what, err := range map[string]error{
		"writing a template to": write(theirs), "reading the mark of": read, "marking": theirs.keepMark(t.Context(), scope, mark),
	} {
		expect.Same(t, what+" another account's bucket", awserr.Denied, awserr.Of(err))
	}
	expect.Same(t, "objects", 2, len(kept))
}

// A failed preparation names the resource and the reason, and leaves nothing in the way of another try, although names are
// fixed: neither of the account's own resources nor of others.
func TestAFailedPreparation(t *testing.T) {
	ctx, at, scope := fresh(t)
	offerings := expect.Get(account.OfferingsOf(queues(t, "sqs:CreateQueue")))(t)
	good := string(expect.Get(account.Template(scope, offerings, account.Options{}))(t))
	bad := thing(nowhere, `"ServiceTimeout": 1`)
	for name, c := range map[string]struct {
		bad, good string
		made      int
	}{
		"Thing":   {bad, `{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}`, 1},
		"Account": {strings.Replace(good, `"Resources": {`, bad[1:len(bad)-2]+", ", 1), good, 4},
	} {
		p := at.preparation(string(scope)+"-"+name, preparing(t, scope, nil))
		expect.Says(t, name, fmt.Sprint(expect.Err(p.run(ctx, []byte(c.bad)))), "Thing (Custom::Thing)")
		if did, err := p.run(ctx, []byte(c.good)); err != nil || len(did.Made) != c.made {
			t.Errorf("%s: another try: %+v, %v", name, did, err)
		}
	}
}

// account2 are the credentials of another account: the emulator takes 12 digits for one.
func account2(cfg aws.Config) aws.Config {
	cfg.Credentials = credentials.NewStaticCredentialsProvider("210987654321", "test", "")
	return cfg
}

// Another account is prepared by its own credentials; the broker then reaches it by
// the role and the external id that it is told, and by nothing less.
func TestAnotherAccountIsATarget(t *testing.T) {
	ctx, scope := t.Context(), plan.ScopeOf(emulator.Name("broker"))
	offered := queues(t, "sqs:CreateQueue")
	own := expect.Get(At(ctx, emulator.Enforcing(t)))(t)
	there, err := At(ctx, account2(own.Config))
	if err != nil || there.Account != "210987654321" {
		t.Fatalf("the other account is %q, %v", there.Account, err)
	}
	o := preparing(t, scope, offered)
	o.Target, o.Trust, o.Emulated = "production", []string{own.Account}, true
	did := expect.Get(there.prepare(ctx, o))(t)
	told := expect.Get(ParseTargets("TARGETS", did.Targets.String()))(t)
	target := told.Targets["production"]
	reached, err := own.In(ctx, scope, target)
	if err != nil || reached.Account != there.Account {
		t.Fatalf("it leads to %q, %v", reached.Account, err)
	}
	if lacks, found, err := reached.Lacks(ctx, scope, offered); !found || lacks != nil || err != nil {
		t.Errorf("by its role the broker finds %v, without %v, %v", found, lacks, err)
	}
	if _, found, err := own.Lacks(ctx, scope, offered); found || err != nil {
		t.Errorf("the broker's own account is prepared: %v, %v", found, err)
	}
	target.ExternalID = "somebody-elses"
	if _, err := own.In(ctx, scope, target); err == nil {
		t.Error("another external id opens it")
	}
	again, err := there.prepare(ctx, o)
	if diff := cmp.Diff(did.Targets, again.Targets); diff != "" || again.Made != nil || again.Changed != nil || err != nil {
		t.Errorf("again: %+v, %v, targets -first +again:\n%s", again.Changes, err, diff)
	}
}

// A wrong target or trust is refused before anything is made.
func TestAnotherAccountNeedsANameAndATrust(t *testing.T) {
	p := Session{Location: plan.Location{Partition: "aws", Account: "210987654321", Region: "eu-west-1"}}
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"Default": {Options{Target: "default", Trust: []string{"111122223333"}}, "other than default"},
		"Name":    {Options{Target: "Prod!", Trust: []string{"111122223333"}}, "lower-case"},
		"Nobody":  {Options{Target: "production"}, "--trust is not given"},
		"Anybody": {Options{Target: "production", Trust: []string{"*"}}, "neither an account nor an ARN"},
	} {
		o := c.o
		o.Offered, o.Scope, o.Say = catalogtest.AWS(t, nil), "longshore-abcdefgh", t.Logf
		expect.Says(t, name, fmt.Sprint(expect.Err(p.prepare(t.Context(), o))), c.want)
	}
}

// An account whose stack was deleted gets another one, which adopts the resources that the first one kept and brings them up
// to date. Where CloudFormation adopts none, the error names those that stand in the way.
func TestAnAccountWhoseStackIsGone(t *testing.T) {
	ctx, at, scope := fresh(t)
	prepare := func(action string) (Result, error) {
		o := preparing(t, scope, queues(t, action))
		o.Emulated = true // the emulator imports roles and buckets alone
		return at.prepare(ctx, o)
	}
	expect.Get(prepare("sqs:CreateQueue"))(t)
	deleted(t, at, scope)

	o := preparing(t, scope, queues(t, "sqs:CreateQueue"))
	role, bucket := scope.ServiceRole("queues", at.Region), scope.Bucket(at.Account, at.Region)
	expect.Says(t, "what the emulator does not import", fmt.Sprint(expect.Err(at.prepare(ctx, o))), role, bucket,
		"describe-change-set")

	did, err := prepare("sqs:TagQueue")
	if err != nil || len(did.Adopted) != 2 || len(did.Changed) != 2 || len(did.Made) != 1 {
		t.Fatalf("%+v, %v", did, err)
	}
	policy := expect.Get(iam.NewFromConfig(at.Config).GetRolePolicy(ctx,
		&iam.GetRolePolicyInput{RoleName: &role, PolicyName: aws.String("Permissions")}))(t)
	expect.Says(t, "the role that was adopted", aws.ToString(policy.PolicyDocument), "TagQueue")
	did, err = prepare("sqs:TagQueue")
	nothing(t, "again", did, err)

	// The bucket is deleted by hand, too, which CloudFormation does not notice. The next stack makes it before it reads a long
	// template.
	objects := at.buckets()
	all := expect.Get(objects.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket}))(t)
	for _, v := range all.Versions {
		expect.Get(objects.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: v.Key, VersionId: v.VersionId}))(t)
	}
	expect.Get(objects.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &bucket}))(t)
	_, err = prepare("sqs:TagQueue")
	expect.Says(t, "what is gone", fmt.Sprint(err), "no longer has", bucket+" (AWS::S3::Bucket)",
		"delete-stack --stack-name "+string(scope)+"-account")
	deleted(t, at, scope)
	o.Offered, o.Emulated = catalogtest.AWS(t, many("sqs:TagQueue")), true
	if did, err = at.prepare(ctx, o); err != nil || len(did.Adopted) != 1 || len(did.Made) != 40 {
		t.Errorf("%+v, %v", did, err)
	}
}

// A meanwhile has something happen before the first writing call.
type meanwhile struct {
	aws.HTTPClient
	happens func()
}

func (m *meanwhile) Do(r *http.Request) (*http.Response, error) {
	if happens := m.happens; r.Method == http.MethodPut && happens != nil {
		m.happens = nil
		happens()
	}
	return m.HTTPClient.Do(r)
}

// Two runs that end at the same moment record what both have prepared, whether there was a mark before or not.
func TestMarksAtTheSameMoment(t *testing.T) {
	ctx, at, scope := fresh(t)
	expect.Get(at.buckets().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(scope.Bucket(at.Account, at.Region))}))(t)
	want := Mark{map[string]string{}}
	for n := range 2 {
		ours, theirs := fmt.Sprint("ours-", n), fmt.Sprint("theirs-", n)
		hasty := at
		hasty.Config.HTTPClient = &meanwhile{at.Config.HTTPClient, func() {
			expect.OK(t, at.keepMark(ctx, scope, Mark{map[string]string{theirs: "x"}}))
		}}
		expect.OK(t, hasty.keepMark(ctx, scope, Mark{map[string]string{ours: "x"}}))
		want.Offerings[ours], want.Offerings[theirs] = "x", "x"
		has, _, err := at.mark(ctx, scope)
		expect.OK(t, err)
		expect.Same(t, "the mark", want, has)
	}
}

// deleted has somebody delete the account's stack, whose resources stay.
func deleted(t *testing.T, at Session, scope plan.Scope) {
	t.Helper()
	ctx := t.Context()
	stack, stacks := unprotected(t, at, scope)
	expect.Get(stacks.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: stack}))(t)
	p := at.preparation(*stack, preparing(t, scope, nil))
	if s, err := p.settled(ctx); err != nil || s != nil {
		t.Fatalf("the stack is %+v, %v", s, err)
	}
}

// A run that adopts loses the answer of a call, and ends: the next one goes on from
// there, and the one after that finds nothing to do.
func TestAnAdoptionThatIsCutOffIsGoneOnWith(t *testing.T) {
	ctx, at, scope := fresh(t)
	o := preparing(t, scope, queues(t, "sqs:CreateQueue"))
	o.Emulated = true
	expect.Get(at.prepare(ctx, o))(t)
	for _, operation := range []string{"CreateChangeSet", "ExecuteChangeSet", "UpdateStack", "UpdateTerminationProtection"} {
		deleted(t, at, scope)
		cut := at
		p := &faulttest.Plan{At: 1, Fault: faulttest.Lost, Only: func(c faulttest.Call) bool { return c.Operation == operation }}
		cut.Config = p.Into(at.Config)
		if _, err := cut.prepare(ctx, o); err == nil || len(p.Met()) != 1 {
			t.Errorf("%s has no answer, and the run ends with %v", operation, err)
		}
		if _, err := at.prepare(ctx, o); err != nil {
			t.Errorf("%s had no answer, and the next run ends with %v", operation, err)
		}
		did, err := at.prepare(ctx, o)
		nothing(t, operation+" had no answer, and the run after that", did, err)
	}
}

// A role of the right name that stands where the broker itself may make roles is not taken over.
func TestAStrangersRoleIsNotAdopted(t *testing.T) {
	ctx, at, scope := fresh(t)
	role := scope.ServiceRole("queues", at.Region)
	expect.Get(iam.NewFromConfig(at.Config).CreateRole(ctx, &iam.CreateRoleInput{
		RoleName: &role, Path: aws.String(scope.Path()),
		AssumeRolePolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[]}`),
	}))(t)
	err := expect.Err(at.prepare(ctx, preparing(t, scope, queues(t, "sqs:CreateQueue"))))
	expect.Says(t, "the error", fmt.Sprint(err), role, scope.Path())
}

// An update of the account's stack that could not be undone is undone by the next run, which goes on from there.
func TestAStuckRollbackIsGoneOnWith(t *testing.T) {
	ctx, at, scope := fresh(t)
	p := at.preparation(string(scope)+"-account", preparing(t, "", nil))
	template := func(do string) []byte {
		return []byte(thing(emulator.Probe(t), `"ServiceTimeout": "30", "Do": "`+do+`"`))
	}
	expect.Get(p.run(ctx, template("")))(t)
	if _, err := p.run(ctx, template("update=twice")); err == nil {
		t.Fatal("an update succeeded that cannot")
	}
	if s, err := p.look(ctx); err != nil || s.StackStatus != types.StackStatusUpdateRollbackFailed {
		t.Fatalf("the stack is %+v, %v", s, err)
	}
	if did, err := p.run(ctx, template("update=0")); err != nil || len(did.Changed) != 1 {
		t.Errorf("%+v, %v", did, err)
	}
}
