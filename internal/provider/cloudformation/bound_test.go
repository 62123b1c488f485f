package cloudformation

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

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
