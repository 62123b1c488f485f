package cloudformation

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

// A stack whose record was derived again may have any template: an update brings it to the plan's.
func TestUpdateOfARebuiltRecord(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Update)
	b.stack().body = "an earlier version"
	in.Former = nil
	b.must(&in)
	expect.Same(t, "its template is", suiteTemplate, b.stack().body)
}

// A stack that was protected by hand is not emptied, though its deletion was to empty it.
func TestProtectedKeepsWhatItHolds(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Deprovision)
	b.stack().items, b.stack().protected = 3, true
	_, f := b.drive(&in)
	if f == nil || f.InstanceUsable == nil || !*f.InstanceUsable || !strings.Contains(f.Message, "protected") {
		t.Errorf("failed with %+v", f)
	}
	if left := b.stack().items; left != 3 || b.changes() != "" {
		t.Errorf("%d items are left, after %s", left, b.changes())
	}
}

// An instance does not leave its stack behind for a plan of what exists already, nor the other way.
func TestMovesToWhatExists(t *testing.T) {
	existing := snapshotOf(plan.Settings{Format: plan.Format, Existing: &plan.Existing{Exports: map[string]string{"Url": "u"}}})
	for name, c := range map[string]struct{ former, next json.RawMessage }{
		"FromStack": {snapshotWith(nil), existing}, "ToStack": {existing, snapshotWith(nil)},
	} {
		b := newBench(t)
		b.fake.account(here).exports = map[string]string{"u": "https://queue"}
		in := b.ready(operation.Update)
		in.Former, in.Snapshot = c.former, c.next
		if _, f := b.drive(&in); f == nil || !*f.InstanceUsable || *f.UpdateRepeatable || b.changes() != "" {
			t.Errorf("%s: failed with %+v after %s", name, f, b.changes())
		}
	}
}

// An operator is told of refused calls about principals as of those about stacks.
func TestTroubleOfPrincipals(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Bind)
	denied := &smithy.GenericAPIError{Code: "AccessDenied", Message: "User: arn:aws:iam::111122223333:x"}
	b.refuse = func(call string) error {
		if strings.HasPrefix(call, "iam ") {
			return denied
		}
		return nil
	}
	binding := provider.Binding{Instance: in, ID: "b", Incarnation: "one", Secret: make([]byte, 32)}
	held := provider.Holding{Name: "x", Tags: provider.Tags{Broker: "broker-1", Binding: "b"}, Target: in.Target}
	principals := expect.Get(b.reach(t.Context(), plan.DefaultTarget))(t)
	s := &step{site: principals, p: b.Provider, in: in}
	for name, call := range map[string]func(context.Context) error{
		"Bind":    func(ctx context.Context) error { _, err := b.Bind(ctx, binding); return err },
		"Unbind":  func(ctx context.Context) error { _, err := b.Unbind(ctx, binding); return err },
		"Rewrite": func(ctx context.Context) error { _, err := s.rewrite(ctx, nil); return err },
		"List": func(ctx context.Context) error {
			_, _, err := b.page(ctx, principals, sweep{Principals: true})
			return err
		},
		"Quarantine": func(ctx context.Context) error { return b.Quarantine(ctx, held) },
		"Release":    func(ctx context.Context) error { return b.Release(ctx, held) },
	} {
		if trouble := (*target.Trouble)(nil); !errors.As(call(t.Context()), &trouble) ||
			trouble.Kind != target.Rights {
			t.Errorf("%s: it is no trouble of rights: %+v", name, trouble)
		}
	}
}

// A creation ends before its operation does, though it began late.
func TestCreationEndsInTime(t *testing.T) {
	b := newBench(t)
	now := b.clock.Now()
	for name, c := range map[string]struct {
		deadline time.Time
		minutes  int
		want     int32
	}{
		"Unknown": {time.Time{}, 0, plan.DefaultMinutes},
		"Long":    {now.Add(24 * time.Hour), 90, 90},
		"Late":    {now.Add(20*time.Minute + time.Second), 30, 19},
		"Over":    {now.Add(-time.Hour), 30, 1},
	} {
		s := &step{p: b.Provider, m: plan.Settings{Minutes: c.minutes}}
		s.in.Operation.Deadline = c.deadline
		if got := s.minutes(); got != c.want {
			t.Errorf("%s: it may take %d minutes, want %d", name, got, c.want)
		}
	}
}

// A call that changes a stack names it by its id, which no successor of its name ever
// has: one that arrives late hits nothing else.
func TestCallsNameStacksByID(t *testing.T) {
	const id, name = "arn:aws:cloudformation:eu-central-1:111122223333:stack/x/1", "x"
	for v := range begun {
		var sent url.Values
		a, _ := openAWS(Options{Config: aws.Config{
			Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1,
			HTTPClient: doer(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if err == nil {
					sent, err = url.ParseQuery(string(body))
				}
				return nil, errors.Join(errors.New("not on its way"), err)
			}),
		}}, plan.Target{})
		if err := a.send(t.Context(), order{verb: v, id: id, name: name, token: "t"}); err == nil {
			t.Errorf("%s: it was answered by nobody", v)
		}
		want := id
		if v == callCreate {
			want = name
		}
		if got := sent.Get("StackName"); got != want || sent.Get("ClientRequestToken") != "t" {
			t.Errorf("%s names the stack %q: %v", v, got, sent)
		}
	}
}

type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }
