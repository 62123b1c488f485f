package cloudformation

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A real is a provider over an emulated AWS, with a catalog of templates.
type real struct {
	*Provider
	t      testing.TB
	config aws.Config
	scope  plan.Scope
	files  map[string][]byte
	ops    int
}

func newReal(t testing.TB, o Options) *real {
	t.Helper()
	r := &real{t: t, files: map[string][]byte{}}
	if o.Config.Region == "" {
		o.Config = emulator.Config(t)
	}
	o.Broker = emulator.Name("broker")
	o.Scope = plan.ScopeOf(o.Broker)
	o.Now = time.Now
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	o.File = func(digest string) ([]byte, bool) { body, ok := r.files[digest]; return body, ok }
	r.Provider, r.config, r.scope = New(o), o.Config, o.Scope
	if o.Config.BaseEndpoint == nil || *o.Config.BaseEndpoint == *emulator.Config(t).BaseEndpoint {
		r.bucket(emulator.Config(t), "000000000000") // by calls that do not fail
	}
	return r
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
	r.ops++
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
