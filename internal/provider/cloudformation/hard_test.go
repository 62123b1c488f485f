package cloudformation

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	cfn "github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	events "github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/faulttest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A real is a provider over an emulated AWS, with a catalog of templates.
type real struct {
	*Provider
	t      testing.TB
	config aws.Config
	scope  plan.Scope
	files  map[string][]byte
}

func newReal(t testing.TB, o Options) *real {
	t.Helper()
	r := &real{t: t, files: map[string][]byte{}}
	if o.Config.Region == "" {
		o.Config = emulator.Config(t)
	}
	o.Broker, o.Now = emulator.Name("broker"), time.Now
	o.Scope = plan.ScopeOf(o.Broker)
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	o.File = func(digest string) ([]byte, bool) { body, ok := r.files[digest]; return body, ok }
	r.Provider, r.config, r.scope = New(o), o.Config, o.Scope
	if o.Config.BaseEndpoint == nil || *o.Config.BaseEndpoint == *emulator.Config(t).BaseEndpoint {
		r.bucket(emulator.Config(t), "000000000000") // by calls that do not fail
	}
	return r
}

// beside is a real of a test that runs beside others.
func beside(t *testing.T) *real {
	t.Helper()
	t.Parallel()
	return newReal(t, Options{})
}

// buckets are those that a config leads to.
func (r *real) buckets(config aws.Config) *s3.Client {
	return s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
}

// bucket makes the one of an account that holds templates.
func (r *real) bucket(config aws.Config, account string) {
	r.t.Helper()
	name := r.scope.Bucket(account, config.Region)
	expect.Get(r.buckets(config).CreateBucket(r.t.Context(), &s3.CreateBucketInput{Bucket: &name}))(r.t)
}

// template keeps one in the catalog and gives its digest.
func (r *real) template(body string) string {
	digest := plan.Digest([]byte(body))
	r.files[digest] = []byte(body)
	return digest
}

func (r *real) operation(kind operation.Kind) provider.Operation {
	return provider.Operation{ID: emulator.Name("op"), Kind: kind, Started: time.Now().UTC()}
}

// instance is a new one of a plan.
func (r *real) instance(m plan.Settings, parameters string) provider.Instance {
	op := r.operation(operation.Provision)
	return provider.Instance{
		Broker: r.Broker, Platform: "platform-1", ID: emulator.Name("instance"), Incarnation: op.ID, ServiceID: "service-1",
		PlanID: "plan-1", Operation: op, Parameters: json.RawMessage(parameters), Snapshot: snapshotOf(m),
		Place: provider.Place{Organization: "org", Space: "space", InstanceName: "my instance"},
	}
}

func snapshotOf(m plan.Settings) json.RawMessage {
	m.Format = plan.Format
	raw, _ := json.Marshal(m)
	return raw
}

// limit is how long an emulated operation may take.
const limit = time.Minute

type instanceVerb = func(context.Context, provider.Instance) (provider.Status, error)

// run drives a verb to its end, and records what it answers in the instance.
func (r *real) run(in *provider.Instance, verb instanceVerb) *provider.Failure {
	r.t.Helper()
	return r.until(in, verb, nil)
}

// must drives a verb to its good end.
func (r *real) must(in *provider.Instance, verb instanceVerb) {
	r.t.Helper()
	if f := r.run(in, verb); f != nil {
		r.t.Fatal(f)
	}
}

// until gives up when it is enough; nil for never.
func (r *real) until(in *provider.Instance, verb instanceVerb, enough func() bool) *provider.Failure {
	r.t.Helper()
	var seen []provider.Status
	var last error
	for begun := time.Now(); time.Since(begun) < limit; {
		st, err := verb(r.t.Context(), *in)
		if f, ok := errors.AsType[*provider.Failure](err); ok {
			if f.State != nil {
				in.State = *f.State
			}
			return f
		}
		if err == nil {
			seen = append(seen, st)
			providertest.Keep(in, st, nil)
			if st.Done {
				return nil
			}
		}
		last = err
		if enough != nil && enough() {
			return nil
		}
		time.Sleep(min(max(st.After, time.Millisecond), 30*time.Millisecond))
	}
	r.t.Fatalf("%s did not end; last error: %v; seen: %+v", in.Operation.Kind, last, seen)
	return nil
}

// next is the instance in another operation.
func (r *real) next(in provider.Instance, kind operation.Kind) provider.Instance {
	in.Operation = r.operation(kind)
	in.Former = in.Snapshot
	if kind == operation.Deprovision {
		in.Parameters, in.Former = nil, nil
	}
	return in
}

const bucketTemplate = `{"Parameters":{"Note":{"Type":"String","Default":"-"},"Days":{"Type":"Number","Default":"1"}},
"Resources":{"Bucket":{"Type":"AWS::S3::Bucket","Properties":{"Tags":[{"Key":"note","Value":{"Ref":"Note"}}],
"VersioningConfiguration":{"Status":"Enabled"}}}},
"Outputs":{"BucketName":{"Value":{"Ref":"Bucket"}},"Note":{"Value":{"Ref":"Note"}},"Days":{"Value":{"Ref":"Days"}}}}`

func bucketPlan(r *real) plan.Settings {
	return plan.Settings{
		Offering: "s3", Template: r.template(bucketTemplate), Resources: map[string]string{"Bucket": "AWS::S3::Bucket"},
		Parameters: map[string]plan.Source{"Note": {Parameter: "note"}, "Days": {Parameter: "days"}}, OnDelete: plan.Empty,
	}
}

func (r *real) stack(in provider.Instance) *stack {
	r.t.Helper()
	s, _ := openAWS(Options{Config: emulator.Config(r.t)}, plan.Target{}) // its calls do not fail
	return expect.Get(s.look(r.t.Context(), nameIn(r.scope, in)))(r.t)
}

const queueTemplate = `{"Resources":{"Queue":{"Type":"AWS::SQS::Queue"}},
"Outputs":{"QueueUrl":{"Value":{"Ref":"Queue"}},"QueueArn":{"Value":{"Fn::GetAtt":["Queue","Arn"]}}}}`

func sending(action string) json.RawMessage {
	return json.RawMessage(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["sqs:GetQueueAttributes","` +
		action +
		`"],"Resource":"${QueueArn}"}]}`)
}

// bound drives a bind or an unbind, and records what it answers in the binding.
func (r *real) bound(b *provider.Binding, verb func(context.Context, provider.Binding) (provider.Status, error)) *provider.Grant {
	r.t.Helper()
	in := b.Instance
	var grant *provider.Grant
	r.must(&in, func(ctx context.Context, _ provider.Instance) (provider.Status, error) {
		st, err := verb(ctx, *b)
		if st.State != nil {
			b.State = *st.State
		}
		grant, st.State = st.Grant, nil
		return st, err
	})
	return grant
}

// A binding of an instance does what its plan says, what the plan says anew after an update, and nothing after the unbind.
func TestBound(t *testing.T) {
	t.Parallel()
	config := emulator.Enforcing(t)
	r := newReal(t, Options{Config: config})
	r.bucket(config, "000000000000")
	expect.Get(iam.NewFromConfig(config).CreatePolicy(t.Context(), &iam.CreatePolicyInput{
		PolicyName: aws.String(r.scope.Boundary("jobs", config.Region)), Path: aws.String(r.scope.FixedPath()),
		PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`),
	}))(t)
	m := plan.Settings{
		Offering: "jobs", Template: r.template(queueTemplate), Resources: map[string]string{"Queue": kindQueue},
		OnDelete:    plan.Empty,
		Credentials: map[string]string{"queue_url": "${QueueUrl}"}, Policy: sending("sqs:SendMessage"), Principal: plan.User,
	}
	in := r.made(m, `{}`)
	b := provider.Binding{Instance: in, ID: "binding-1", Secret: make([]byte, 32)}
	b.Instance.Operation = r.operation(operation.Bind)
	b.Incarnation = b.Instance.Operation.ID
	grant := r.bound(&b, r.Bind)
	told := func(name string) string { text, _ := grant.Credentials[name].(string); return text }
	theirs := config.Copy()
	theirs.Credentials = credentials.NewStaticCredentialsProvider(told("access_key_id"), told("secret_access_key"), "")
	c := sqs.NewFromConfig(theirs)
	may := func(when string, send, receive bool) {
		t.Helper()
		_, sent := c.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(told("queue_url")),
			MessageBody: aws.String("a")})
		_, received := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(told("queue_url"))})
		if (sent == nil) != send || (received == nil) != receive {
			t.Errorf("%s: sent with error %v, received with error %v", when, sent, received)
		}
	}
	may("bound", true, false)
	u := r.next(in, operation.Update)
	m.Policy = sending("sqs:ReceiveMessage")
	u.Snapshot = snapshotOf(m)
	r.must(&u, r.Update)
	may("updated", false, true)
	b.Instance.Operation, b.Instance.Snapshot, b.Instance.State = r.operation(operation.Unbind), u.Snapshot, u.State
	r.bound(&b, r.Unbind)
	may("unbound", false, false)
	d := r.next(u, operation.Deprovision)
	r.must(&d, r.Deprovision)
	if page, _, err := r.List(t.Context(), ""); err != nil || len(page) > 0 {
		t.Errorf("there is still %+v, error %v", page, err)
	}
}

const probeTemplate = `{"Parameters":{"Do":{"Type":"String","Default":""},"Function":{"Type":"String"}},
"Resources":{"Probe":{"Type":"Custom::Probe","Properties":{"ServiceToken":{"Ref":"Function"},"Do":{"Ref":"Do"},"ServiceTimeout":"30"}}},
"Outputs":{"Do":{"Value":{"Ref":"Do"}}}}`

// probing is a plan of the probe.
func (r *real) probing() plan.Settings {
	r.t.Helper()
	arn := emulator.Probe(r.t)
	return plan.Settings{
		Offering: "probe", Template: r.template(probeTemplate), Resources: map[string]string{"Probe": "Custom::Probe"},
		Parameters: map[string]plan.Source{"Do": {Parameter: "do"}, "Function": {Value: &arn}}, OnDelete: plan.Empty,
	}
}

// made is an instance that stands.
func (r *real) made(m plan.Settings, parameters string) provider.Instance {
	r.t.Helper()
	in := r.instance(m, parameters)
	r.must(&in, r.Provision)
	return in
}

// update is the instance in an update to parameters.
func (r *real) update(in provider.Instance, parameters string) provider.Instance {
	u := r.next(in, operation.Update)
	u.Parameters = []byte(parameters)
	return u
}

// blames requires that a failure names a resource to the user, and no account nor ARN.
func blames(t *testing.T, f *provider.Failure, resource string) {
	t.Helper()
	if f == nil {
		t.Fatal("it did not fail")
	}
	expect.Says(t, "the failure", f.Message, resource)
	expect.Never(t, "the failure", f.Message, "0000", "arn:")
}

// gone requires that a deprovision leaves nothing.
func (r *real) gone(in provider.Instance) {
	r.t.Helper()
	d := r.next(in, operation.Deprovision)
	r.must(&d, r.Deprovision)
	if s := r.stack(in); s != nil {
		r.t.Errorf("deprovisioned, and there is still %s", s.status)
	}
}

// A failed creation says why in words for a developer, and leaves nothing; its repetition says the same.
func TestCreateFails(t *testing.T) {
	r := beside(t)
	in := r.instance(r.probing(), `{"do":"create=fail"}`)
	f := r.run(&in, r.Provision)
	blames(t, f, "Probe")
	if s := r.stack(in); s != nil {
		t.Errorf("failed, and there is still %s", s.status)
	}
	if again := r.run(&in, r.Provision); again == nil || again.Message != f.Message {
		t.Errorf("failed again with %v", again)
	}
	r.gone(in)
}

// A failed update leaves the instance as it was, says so, and can be repeated. If that
// fails too, the instance may not be usable, and says so.
func TestUpdateFails(t *testing.T) {
	t.Parallel()
	for do, want := range map[string]struct {
		usable bool
		status string
	}{"update=bad": {true, updateRolledBack}, "update=fail": {false, updateRollbackFailed}} {
		t.Run(do, func(t *testing.T) {
			r := beside(t)
			in := r.made(r.probing(), `{}`)
			u := r.update(in, `{"do":"`+do+`"}`)
			f := r.run(&u, r.Update)
			if f == nil || f.InstanceUsable == nil || *f.InstanceUsable != want.usable || *f.UpdateRepeatable != want.usable {
				t.Fatalf("failed with %+v", f)
			}
			if s := r.stack(in); s.status != want.status || s.outputs["Do"] != "" {
				t.Errorf("the stack is %s with %v, want %s", s.status, s.outputs, want.status)
			}
			blames(t, f, "Probe")
			in.State = u.State
			if want.usable {
				u = r.update(in, `{"do":"update=0"}`)
				r.must(&u, r.Update)
			}
			r.gone(in)
		})
	}
}

// An update that takes too long is stopped, and leaves the instance as it was.
func TestUpdateIsStopped(t *testing.T) {
	r := beside(t)
	m := r.probing()
	m.Template = r.template(strings.Replace(probeTemplate, `"Resources":{`,
		`"Resources":{"Last":{"Type":"Custom::Probe","DependsOn":"Probe",
"Properties":{"ServiceToken":{"Ref":"Function"},"Do":{"Ref":"Do"},"ServiceTimeout":"30"}},`, 1))
	m.Resources = map[string]string{"Probe": "Custom::Probe", "Last": "Custom::Probe"}
	in := r.made(m, `{}`)
	u := r.update(in, `{"do":"update=4"}`)
	u.PlanID = "another"
	r.until(&u, r.Update, func() bool { return r.stack(in).status == updateInProgress })
	if all := r.sweep(); len(all) != 1 {
		t.Errorf("the inventory has %+v", all)
	}
	r.Now = func() time.Time { return time.Now().Add(plan.DefaultMinutes * time.Minute) }
	f := r.run(&u, r.Update)
	if f == nil || f.Message != textLate+" The instance is as it was before." || !*f.InstanceUsable || !*f.UpdateRepeatable {
		t.Errorf("failed with %+v", f)
	}
	if s := r.stack(in); s.status != updateRolledBack || s.outputs["Do"] != "" {
		t.Errorf("the stack is %s with %v", s.status, s.outputs)
	}
	if all := r.sweep(); len(all) != 1 || all[0].PlanID != in.PlanID {
		t.Errorf("undone, and the inventory has %+v", all)
	}
	r.gone(u)
}

// A deletion during a creation and during an update comes to its end.
func TestDeleteOvertakes(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]string{"Create": `{"do":"create=2"}`, "Update": `{"do":"update=2"}`} {
		t.Run(name, func(t *testing.T) {
			r := beside(t)
			var in provider.Instance
			if name == "Create" {
				in = r.instance(r.probing(), do)
				r.until(&in, r.Provision, func() bool { s := r.stack(in); return s != nil && s.status == createInProgress })
			} else {
				in = r.made(r.probing(), `{}`)
				u := r.update(in, do)
				r.until(&u, r.Update, func() bool { return r.stack(in).status == updateInProgress })
				in.State = u.State
			}
			r.gone(in)
		})
	}
}

// A plan that refuses looks before anything is touched; one that retains leaves the thing, with a tag that says so, and no stack.
func TestRules(t *testing.T) {
	r := beside(t)
	c := r.buckets(r.config)
	m := bucketPlan(r)
	m.OnDelete = plan.Refuse
	in := r.made(m, `{}`)
	stood := r.stack(in)
	bucket := aws.String(stood.outputs["BucketName"])
	expect.Get(c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: aws.String("a")}))(t)
	d := r.next(in, operation.Deprovision)
	if f, ok := errors.AsType[*provider.Failure](r.Refuses(t.Context(), d)); !ok || !f.Untouched {
		t.Errorf("before anything is touched, deleting what is not empty is answered %+v", f)
	}
	if f := r.run(&d, r.Deprovision); f == nil || f.InstanceUsable == nil || !*f.InstanceUsable || !f.Untouched {
		t.Errorf("deleting what is not empty: %+v", f)
	}
	if s := r.stack(in); s == nil || s.status != createComplete {
		t.Errorf("refused, and the stack is %+v", s)
	}
	m.OnDelete = plan.Retain
	in.Snapshot = snapshotOf(m)
	r.gone(in)
	gone := expect.Get(cfn.NewFromConfig(r.config).DescribeStacks(t.Context(), &cfn.DescribeStacksInput{StackName: &stood.id}))(t)
	expect.Same(t, "the stack says since when it is retained", true, stackOf(gone.Stacks[0]).retained)
	marked(t, c, bucket)
}

// marked requires that a bucket itself has the mark of what is retained.
func marked(t *testing.T, c *s3.Client, bucket *string) {
	t.Helper()
	tags := expect.Get(c.GetBucketTagging(t.Context(), &s3.GetBucketTaggingInput{Bucket: bucket}))(t, "the tags of a bucket")
	if !slices.ContainsFunc(tags.TagSet, func(l s3types.Tag) bool { return aws.ToString(l.Key) == plan.LabelRetained }) {
		t.Error("the bucket has no mark")
	}
}

// A retained thing is marked although its tags do not say any more whose it is, or nothing
// finds it by them yet. The log names a thing that cannot be marked.
func TestMarksWhatHasLostItsTags(t *testing.T) {
	r := beside(t)
	stood := r.stack(r.made(bucketPlan(r), `{}`))
	bucket := aws.String(stood.outputs["BucketName"])
	c := r.buckets(r.config)
	expect.Get(c.DeleteBucketTagging(t.Context(), &s3.DeleteBucketTaggingInput{Bucket: bucket}))(t)
	var said strings.Builder
	o := Options{Config: r.config, Log: slog.New(slog.NewTextHandler(&said, nil))}
	a, _ := openAWS(o, plan.Target{})
	spare := func() {
		t.Helper()
		names, err := a.spare(t.Context(), stood, label.Label{Name: plan.LabelRetained, Value: "2030-01-02"})
		if err != nil || len(names) != 1 {
			t.Errorf("it spares %q: error %v", names, err)
		}
	}
	spare()
	marked(t, c, bucket)
	if said.Len() > 0 {
		t.Errorf("the log says %s", said.String())
	}
	expect.Get(c.DeleteBucket(t.Context(), &s3.DeleteBucketInput{Bucket: bucket}))(t)
	spare()
	expect.Says(t, "the log", said.String(), "has no mark", *bucket)
}

// A deletion that fails is tried again and then given up, with a reason. A stack that got stuck leaves the resources that are to
// be retained: they stay and are marked.
func TestDeleteFails(t *testing.T) {
	r := beside(t)
	m := r.probing()
	in := r.made(m, `{"do":"delete=fail"}`)
	d := r.next(in, operation.Deprovision)
	blames(t, r.run(&d, r.Deprovision), "Probe")
	stood := r.stack(in)
	if stood == nil || stood.status != deleteFailed {
		t.Fatalf("the stack is %+v", stood)
	}
	// The emulator removes what a stuck resource needs: this one stands for what AWS keeps.
	c := dynamodb.NewFromConfig(r.config)
	kept := &dynamodb.CreateTableInput{TableName: aws.String(emulator.Name("kept")),
		BillingMode:          dynamotypes.BillingModePayPerRequest,
		AttributeDefinitions: []dynamotypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: "S"}},
		KeySchema:            []dynamotypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: dynamotypes.KeyTypeHash}}}
	for _, l := range label.Write(stood.tags) {
		kept.Tags = append(kept.Tags, dynamotypes.Tag{Key: &l.Name, Value: &l.Value})
	}
	table := expect.Get(c.CreateTable(t.Context(), kept))(t)
	m.OnDelete = plan.Retain
	in.Snapshot, in.State = snapshotOf(m), d.State
	r.gone(in)
	history,
		err := cfn.NewFromConfig(r.config).DescribeStackEvents(t.Context(), &cfn.DescribeStackEventsInput{StackName: &stood.id})
	if err != nil || !slices.ContainsFunc(history.StackEvents, func(e cfntypes.StackEvent) bool {
		return aws.ToString(e.LogicalResourceId) == "Probe" && e.ResourceStatus == cfntypes.ResourceStatusDeleteSkipped
	}) {
		t.Errorf("the resource that was left is not spared: %v", err)
	}
	tags := expect.Get(c.ListTagsOfResource(t.Context(),
		&dynamodb.ListTagsOfResourceInput{ResourceArn: table.TableDescription.TableArn}))(t)
	if !slices.ContainsFunc(tags.Tags, func(l dynamotypes.Tag) bool { return aws.ToString(l.Key) == plan.LabelRetained }) {
		t.Error("what was left has no mark")
	}
}

// Every call of each verb is throttled once, or loses its answer: there is one stack, and then none.
func TestFaultsOfAWS(t *testing.T) {
	t.Parallel()
	for _, fault := range []faulttest.Fault{faulttest.Throttled, faulttest.Lost} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				p := &faulttest.Plan{At: n, Fault: fault}
				config := p.Into(emulator.Config(t))
				r := newReal(t, Options{Config: config})
				in := r.made(bucketPlan(r), `{"note":"one"}`)
				u := r.update(in, `{"note":"two"}`)
				r.must(&u, r.Update)
				if s := r.stack(in); s.outputs["Note"] != "two" {
					t.Errorf("%s at call %d: updated to %v", fault, n, s.outputs)
				}
				r.gone(u)
				if len(p.Met()) == 0 {
					return
				}
			}
		})
	}
}

// A second account is reached by a role with an external id; what stands in the first is not there.
func TestSecondAccount(t *testing.T) {
	t.Parallel()
	const account = "222222222222"
	config := emulator.Config(t)
	second := config
	second.Credentials = credentials.NewStaticCredentialsProvider(account, "test", "")
	role := expect.Get(iam.NewFromConfig(second).CreateRole(t.Context(), &iam.CreateRoleInput{
		RoleName: aws.String(emulator.Name("access")), AssumeRolePolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[
{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole","Condition":{"StringEquals":{"sts:ExternalId":"secret"}}}]}`),
	}))(t)
	other := plan.Target{Account: account, Role: aws.ToString(role.Role.Arn), ExternalID: "secret"}
	counted := &faulttest.Plan{}
	r := newReal(t, Options{Config: counted.Into(config), Targets: plan.Targets{Targets: map[string]plan.Target{"other": other},
		Rules: []plan.TargetRule{{Platform: "platform-1", Target: "other"}}}})
	r.bucket(second, account)
	in := r.made(bucketPlan(r), `{}`)
	if want := account + "/" + config.Region; in.Target.Identity != want || in.Target.Name != "other" {
		t.Errorf("made in %+v, want %s", in.Target, want)
	}
	if s := r.stack(in); s != nil {
		t.Error("it stands in the first account")
	}
	if _, err := cfn.NewFromConfig(second).DescribeStacks(t.Context(), &cfn.DescribeStacksInput{
		StackName: aws.String(nameIn(r.scope, in))}); err != nil {
		t.Errorf("it does not stand in the second: %v", err)
	}
	if all := r.sweep(); len(all) != 1 || all[0].Target != in.Target {
		t.Errorf("the inventory has %+v", all)
	}
	before := described(counted)
	if all := r.sweep(); len(all) != 1 || described(counted) != before {
		t.Errorf("what has not changed was described again: %+v", all)
	}
	r.Options.Targets.Targets, r.Options.Targets.Rules = nil, nil
	d := r.next(in, operation.Deprovision)
	providertest.Troubled(t, "at a target that nobody names", target.Unknown, expect.Err(r.Deprovision(t.Context(), d)))
	r.Options.Targets.Targets = map[string]plan.Target{"other": other}
	r.must(&d, r.Deprovision)
}

// sweep lists all that there is.
func (r *real) sweep() (all []provider.Holding) {
	r.t.Helper()
	for cursor, again := "", true; again; again = cursor != "" {
		page, next, err := r.List(r.t.Context(), cursor)
		expect.OK(r.t, err)
		all, cursor = append(all, page...), next
	}
	return all
}

// described is how often a stack was.
func described(p *faulttest.Plan) (n int) {
	for _, c := range p.Calls() {
		if c.Operation == "DescribeStacks" {
			n++
		}
	}
	return n
}

const joinedTemplate = `{"Parameters":{"A":{"Type":"String"},"B":{"Type":"String"}},
"Resources":{"T":{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":{"Fn::Join":["",[{"Ref":"A"},{"Ref":"B"}]]}}}},
"Outputs":{"Name":{"Value":{"Ref":"T"}}}}`

// A value of a user or of a platform could have CloudFormation read out a secret, alone or
// joined by a template. The broker refuses it where the emulator does not.
func TestNoSecretsByValues(t *testing.T) {
	r := beside(t)
	name, secret := emulator.Name("secret"), emulator.Name("canary")
	c := ssm.NewFromConfig(r.config)
	kept := &ssm.PutParameterInput{Name: &name, Value: &secret, Type: ssmtypes.ParameterTypeString}
	expect.Get(c.PutParameter(t.Context(), kept))(t)
	m := plan.Settings{Offering: "a", Template: r.template(joinedTemplate), Parameters: map[string]plan.Source{
		"A": {Parameter: "a"}, "B": {Context: "instance_name"}}}
	whole := "{{resolve:ssm:" + name + "}}"
	for _, values := range [][2]string{{whole, "-"}, {"-", whole}, {whole[:1], whole[1:]}, {whole[:9], whole[9:]}} {
		stack := emulator.Name("attack")
		o := order{parameters: []parameter{{name: "A", value: values[0]}, {name: "B", value: values[1]}}}
		expect.Get(cfn.NewFromConfig(r.config).CreateStack(t.Context(), &cfn.CreateStackInput{
			StackName: &stack, TemplateBody: aws.String(joinedTemplate), Parameters: o.values()}))(t)
		if !r.tells(stack, secret) {
			t.Errorf("the attack %q does not work here: the test shows nothing", values)
		}
		in := r.instance(m, `{"a":"`+values[0]+`"}`)
		in.Place.InstanceName = values[1]
		switch f, made := r.run(&in, r.Provision), r.stack(in); {
		case f != nil && made != nil, f == nil && made == nil:
			t.Errorf("%q: failure %v, and there is %+v", values, f, made)
		case f == nil && r.tells(made.name, secret): // what the platform calls it is cleaned
			t.Errorf("%q: the secret is read", values)
		}
	}
}

// tells reports whether what a stack has made comes to hold a secret.
func (r *real) tells(stack, secret string) bool {
	r.t.Helper()
	c, _ := openAWS(Options{Config: r.config}, plan.Target{})
	for begun := time.Now(); time.Since(begun) < limit; {
		s, err := c.look(r.t.Context(), stack)
		if err != nil || s == nil {
			r.t.Fatal("the stack of an attack is not there: ", err)
		}
		if !busy(s.status) {
			out, err := ssm.NewFromConfig(r.config).GetParameter(r.t.Context(),
				&ssm.GetParameterInput{Name: aws.String(s.outputs["Name"])})
			return err == nil && strings.Contains(aws.ToString(out.Parameter.Value), secret)
		}
		time.Sleep(30 * time.Millisecond)
	}
	return false
}

// A bucket is made, updated, and removed with the versions that it holds. Its template is too long for a call: it is read from
// the bucket of templates. A stack that somebody has only planned, in our name and with our tags, gives way.
func TestLongTemplate(t *testing.T) {
	r := beside(t)
	m := bucketPlan(r)
	m.Template = r.template(strings.Replace(bucketTemplate, `{"Parameters"`,
		`{"Metadata":{"Long":"`+strings.Repeat("x", inline)+`"},"Parameters"`, 1))
	in := r.instance(m, `{"note":"one","days":3}`)
	o := order{labels: labelsOf(in, m, r.scope)}
	expect.Get(cfn.NewFromConfig(r.config).CreateChangeSet(t.Context(), &cfn.CreateChangeSetInput{
		ChangeSetName: aws.String("planned"), StackName: aws.String(nameIn(r.scope, in)), Tags: o.tags(),
		ChangeSetType: cfntypes.ChangeSetTypeCreate, TemplateBody: aws.String(bucketTemplate)}))(t)
	if s := r.stack(in); s == nil || s.status != reviewInProgress {
		t.Fatalf("planned: %+v", s)
	}
	r.must(&in, r.Provision)
	s := r.stack(in)
	if s == nil || s.status != createComplete || s.outputs["Note"] != "one" || s.outputs["Days"] != "3" ||
		s.tags != provider.TagsOf(in) {
		t.Fatalf("provisioned: %+v", s)
	}
	for range 2 {
		expect.Get(r.buckets(r.config).PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: aws.String(s.outputs["BucketName"]), Key: aws.String("a")}))(t)
	}
	// The catalog forgets it: an update to it finds it in the bucket.
	clear(r.files)
	u := r.update(in, `{"note":"two"}`)
	m.Template = "another"
	u.Former = snapshotOf(m)
	r.must(&u, r.Update)
	expect.Same(t, "the note, updated", "two", r.stack(in).outputs["Note"])
	u.State, u.Snapshot = provider.State{}, nil // the record is gone: the stack is found by its name
	r.gone(u)
}

const heldTemplate = `{"Resources":{"Queue":{"Type":"AWS::SQS::Queue"},"Table":{"Type":"AWS::DynamoDB::Table","Properties":{
"BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
"KeySchema":[{"AttributeName":"id","KeyType":"HASH"}]}},
"Stream":{"Type":"AWS::Kinesis::Stream","Properties":{"StreamModeDetails":{"StreamMode":"ON_DEMAND"}}},
"Bus":{"Type":"AWS::Events::EventBus","Properties":{"Name":{"Fn::Sub":"${AWS::StackName}-bus"}}}},
"Outputs":{"Queue":{"Value":{"Ref":"Queue"}},"Table":{"Value":{"Ref":"Table"}},
"Stream":{"Value":{"Fn::GetAtt":["Stream","Arn"]}},"Bus":{"Value":{"Ref":"Bus"}}}}`

// A queue with messages and a table with items are not empty. The broker removes the consumers and rules that bindings left
// before it deletes a stream or a bus: AWS would delete neither, and nobody else could remove them.
func TestHolds(t *testing.T) {
	r := beside(t)
	in := r.made(plan.Settings{Offering: "jobs", Template: r.template(heldTemplate), OnDelete: plan.Refuse}, `{}`)
	s := r.stack(in)
	refused := func(want string) {
		t.Helper()
		d := r.next(in, operation.Deprovision)
		if f := r.run(&d, r.Deprovision); f == nil || !strings.Contains(f.Message, want) {
			t.Errorf("deleted with %s in it: %v", want, f)
		}
	}
	q, d := sqs.NewFromConfig(r.config), dynamodb.NewFromConfig(r.config)
	queue, table := aws.String(s.outputs["Queue"]), aws.String(s.outputs["Table"])
	expect.Get(q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("a")}))(t)
	refused("Queue holds messages")
	expect.Get(q.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: queue}))(t)
	item := map[string]dynamotypes.AttributeValue{"id": &dynamotypes.AttributeValueMemberS{Value: "a"}}
	expect.Get(d.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: item}))(t)
	refused("Table holds items")
	expect.Get(d.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: table, Key: item}))(t)

	k, e := kinesis.NewFromConfig(r.config), events.NewFromConfig(r.config)
	stream, bus, name := aws.String(s.outputs["Stream"]), aws.String(s.outputs["Bus"]), aws.String("left")
	expect.Get(k.RegisterStreamConsumer(t.Context(),
		&kinesis.RegisterStreamConsumerInput{StreamARN: stream, ConsumerName: name}))(t)
	expect.Get(e.PutRule(t.Context(), &events.PutRuleInput{EventBusName: bus, Name: name,
		EventPattern: aws.String(`{"source":["a"]}`)}))(t)
	expect.Get(e.PutTargets(t.Context(), &events.PutTargetsInput{EventBusName: bus, Rule: name, Targets: []eventtypes.Target{
		{Id: name, Arn: aws.String("arn:aws:sqs:us-east-1:000000000000:any")}}}))(t)
	at, _ := openAWS(Options{Config: r.config}, plan.Target{})
	for n, done := 0, false; !done; n++ {
		if done = expect.Get(at.empty(t.Context(), s.id))(t); n > 10 {
			t.Fatalf("not empty after %d steps", n)
		}
	}
	consumers := expect.Get(k.ListStreamConsumers(t.Context(), &kinesis.ListStreamConsumersInput{StreamARN: stream}))(t)
	rules := expect.Get(e.ListRules(t.Context(), &events.ListRulesInput{EventBusName: bus}))(t)
	if len(consumers.Consumers)+len(rules.Rules) > 0 {
		t.Errorf("left: %+v, %+v", consumers, rules)
	}
	r.gone(in)
}

// A plan finds a resource that exists already by its export and by its tag.
func TestFindsExisting(t *testing.T) {
	r := beside(t)
	name := emulator.Name("existing")
	q := sqs.NewFromConfig(r.config)
	expect.Get(q.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Tags: map[string]string{"team": name}}))(t)
	expect.Get(cfn.NewFromConfig(r.config).CreateStack(t.Context(), &cfn.CreateStackInput{StackName: &name,
		TemplateBody: aws.String(
			`{"Resources":{"T":{"Type":"AWS::SNS::Topic"}},"Outputs":{"Arn":{"Value":{"Ref":"T"},"Export":{"Name":"` + name +
				`"}}}}`)}))(t)
	in := r.instance(plan.Settings{Existing: &plan.Existing{
		Exports: map[string]string{"Topic": name}, Tag: "team=" + name, Type: "sqs:queue"}}, "")
	var values map[string]string
	for begun := time.Now(); time.Since(begun) < 2*time.Second && values == nil; {
		s, learnt, err := r.begin(t.Context(), in)
		expect.OK(t, err)
		if s == nil {
			in.Target = *learnt.Target
			continue
		}
		if values, err = s.existing(t.Context()); err != nil {
			time.Sleep(30 * time.Millisecond) // the stack is being made
		}
	}
	if !strings.HasPrefix(values["Topic"], "arn:aws:sns:") || values["Name"] != name {
		t.Errorf("found %v", values)
	}
}
