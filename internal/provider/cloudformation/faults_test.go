package cloudformation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A bench is a provider over CloudFormation in memory, whose calls a test may refuse.
type bench struct {
	*Provider
	t      *testing.T
	fake   *fake
	clock  *providertest.Clock
	refuse func(call string) error // nil for none
	calls  []string
	log    strings.Builder
	ops    int
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))}
	b.fake = newFake(b.clock.Now)
	b.Provider = b.fake.over("broker-1", here, func(_ context.Context, name string, do func() error) error {
		b.calls = append(b.calls, name)
		if b.refuse != nil {
			if err := b.refuse(name); err != nil {
				return err
			}
		}
		return do()
	})
	b.Log = slog.New(slog.NewTextHandler(&b.log, nil))
	return b
}

func (b *bench) instance(kind operation.Kind) provider.Instance {
	b.ops++
	op := provider.Operation{ID: fmt.Sprintf("operation-%d", b.ops), Kind: kind, Started: b.clock.Now()}
	return provider.Instance{Broker: "broker-1", Platform: "p", ID: "i", Incarnation: "operation-1", PlanID: "plan-1",
		Operation: op, Settings: map[string]any{}, Snapshot: snapshotWith(nil), Parameters: json.RawMessage(`{"note":"one"}`)}
}

// drive makes a verb's steps as a worker does.
func (b *bench) drive(in *provider.Instance) (seen []provider.Status, failure *provider.Failure) {
	b.t.Helper()
	verbs := map[operation.Kind]func(context.Context, provider.Instance) (provider.Status, error){
		operation.Provision: b.Provision, operation.Update: b.Update, operation.Deprovision: b.Deprovision,
	}
	_, failure = providertest.Drive(b.t, b.clock, func(ctx context.Context) (provider.Status, error) {
		st, err := verbs[in.Operation.Kind](ctx, *in)
		if f, ok := errors.AsType[*provider.Failure](err); ok && f.State != nil {
			in.State = *f.State
		}
		providertest.Keep(in, st, err)
		seen = append(seen, st)
		return st, err
	})
	return seen, failure
}

// must makes them to a good end.
func (b *bench) must(in *provider.Instance) {
	b.t.Helper()
	if _, f := b.drive(in); f != nil {
		b.t.Fatal(f)
	}
}

// ready is an instance that stands, for the next operation.
func (b *bench) ready(kind operation.Kind) provider.Instance {
	b.t.Helper()
	in := b.instance(operation.Provision)
	b.must(&in)
	next := b.instance(kind)
	next.State, next.Target, next.Former = in.State, in.Target, in.Snapshot
	b.calls = nil
	return next
}

func (b *bench) stack() *fakeStack {
	b.fake.mu.Lock()
	defer b.fake.mu.Unlock()
	return b.fake.account(here).find(nameIn(b.Scope, orderOf(own2, provider.Place{})))
}

var own2 = provider.Tags{Broker: "broker-1", Platform: "p", Instance: "i", Incarnation: "operation-1"}

// No call changes a stack before it was recorded, and each is made once.
func TestRecordsBeforeCalls(t *testing.T) {
	b := newBench(t)
	for _, kind := range []operation.Kind{operation.Update, operation.Deprovision} {
		in := b.ready(kind)
		in.Parameters = json.RawMessage(`{"note":"two"}`)
		_, f := b.drive(&in)
		changes := strings.Count(strings.Join(b.calls, " "), map[operation.Kind]string{
			operation.Update: "update", operation.Deprovision: "delete"}[kind])
		if f != nil || changes != 1 {
			t.Errorf("%s: failure %v, %d calls among %v", kind, f, changes, b.calls)
		}
	}
}

// A user is told how many resources are complete, and which is being made.
func TestProgress(t *testing.T) {
	b := newBench(t)
	in := b.instance(operation.Provision)
	seen, _ := b.drive(&in)
	var all []string
	percent := 0
	for _, st := range seen {
		all = append(all, st.Description)
		if st.Percent < percent {
			t.Errorf("it goes back from %d to %d percent: %v", percent, st.Percent, all)
		}
		percent = st.Percent
	}
	told := strings.Join(all, "\n")
	expect.Says(t, "what is told", told, "0 of 1 resources complete, Bucket in progress", "1 of 1 resources complete")
}

// A refusal of AWS that is final fails the operation, with words for the user and others for
// the operator. One that an operator can mend waits a while.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		err          smithy.GenericAPIError
		user, theirs string
	}{
		"Quota": {smithy.GenericAPIError{Code: "LimitExceededException", Message: "of 111122223333"}, "limit", "Service Quotas"},
		"Invalid": {smithy.GenericAPIError{Code: "ValidationError", Message: "Parameters: [x] must have values, arn:aws:x"},
			"template", "values"},
		"Denied": {smithy.GenericAPIError{Code: "AccessDenied", Message: "User: arn:aws:iam::111122223333:x"}, "not allow",
			"bootstrap"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.refuse = func(call string) error {
				if call == string(callCreate) {
					return &c.err
				}
				return nil
			}
			in := b.instance(operation.Provision)
			_, f := b.drive(&in)
			switch {
			case f == nil || !strings.Contains(f.Message, c.user) || strings.Contains(f.Message, "1111") ||
				strings.Contains(f.Message, "arn:"):
				t.Errorf("the user is told %v", f)
			case !strings.Contains(b.log.String(), c.theirs):
				t.Errorf("the operator is told %s", b.log.String())
			}
			if waited := b.clock.Now().Sub(in.Operation.Started); (waited > patience) != (name == "Denied") {
				t.Errorf("failed after %v", waited)
			}
		})
	}
}

// An operation whose reads are refused waits for the operator.
func TestTrouble(t *testing.T) {
	for code, kind := range map[string]string{"AccessDenied": target.Rights, "ExpiredToken": target.Login} {
		b := newBench(t)
		in := b.ready(operation.Update)
		b.refuse = func(string) error { return &smithy.GenericAPIError{Code: code} }
		_, err := b.Update(t.Context(), in)
		var trouble *target.Trouble
		if !errors.As(err, &trouble) || trouble.Kind != kind || !strings.Contains(trouble.Message, ":") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// An account is warned of before it is full, and then refuses.
func TestRoom(t *testing.T) {
	b := newBench(t)
	b.fake.room = 5
	for n := range 6 {
		in := b.instance(operation.Provision)
		in.ID, in.Incarnation = fmt.Sprint("i", n), in.Operation.ID
		b.clock.Advance(roomTime)
		_, f := b.drive(&in)
		if full := f != nil; full != (n == 5) {
			t.Errorf("instance %d: %v", n, f)
		}
		expect.Same(t, fmt.Sprintf("instance %d: warned", n), n >= 4, strings.Contains(b.log.String(), "nearly"))
	}
}

// No order is refused for want of the room that a deletion, or a higher quota, has made a moment ago.
func TestRoomIsMade(t *testing.T) {
	b := newBench(t)
	b.fake.room = 1
	var all []provider.Instance
	for n := range 3 {
		in := b.instance(operation.Provision)
		in.ID, in.Incarnation = fmt.Sprint("i", n), in.Operation.ID
		all = append(all, in)
	}
	b.must(&all[0])
	b.clock.Advance(roomTime)
	if _, f := b.drive(&all[1]); f == nil {
		t.Error("made in a full account")
	}
	b.fake.room = 2
	b.must(&all[2])
}

// The rights of an offering's own service role are what a stack is made with, and its
// rights alone; an orphan's are those that it was made with.
func TestServiceRole(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Deprovision)
	want := b.Scope.ServiceRoleARN(plan.Location{Partition: "aws", Account: here, Region: "eu-central-1"}, "s3")
	expect.Same(t, "made with", want, b.stack().role)
	in.Snapshot, in.State = nil, provider.State{}
	if _, f := b.drive(&in); f != nil {
		t.Error(f)
	}
}

// A resource that a plan names is looked up, and never touched.
func TestExisting(t *testing.T) {
	b := newBench(t)
	b.fake.account(here).exports = map[string]string{"my-queue": "https://queue", "sqs:queue team=a": "arn:aws:sqs:x:1:jobs"}
	m := plan.Settings{Format: plan.Format, Existing: &plan.Existing{
		Exports: map[string]string{"Url": "my-queue"}, Tag: "team=a", Type: "sqs:queue"}}
	in := b.instance(operation.Provision)
	in.Snapshot = snapshotOf(m)
	b.must(&in)
	s := &step{p: b.Provider, m: m, in: in}
	var err error
	if s.site, err = b.reach(t.Context(), plan.DefaultTarget); err != nil {
		t.Fatal(err)
	}
	values, err := s.existing(t.Context())
	if err != nil || values["Url"] != "https://queue" || values["Name"] != "jobs" || values[plan.ValueAccount] != here {
		t.Errorf("its values are %v, error %v", values, err)
	}
	d := b.instance(operation.Deprovision)
	d.Snapshot, d.Target = in.Snapshot, in.Target
	if _, f := b.drive(&d); f != nil {
		t.Error(f)
	}
	for _, call := range b.calls {
		if call != "look" && call != "identify" {
			t.Errorf("a call changed something: %s", call)
		}
	}
	m.Existing.Exports["Url"] = "another"
	in = b.instance(operation.Provision)
	in.Snapshot = snapshotOf(m)
	if _, f := b.drive(&in); f == nil || !strings.Contains(b.log.String(), "another") {
		t.Errorf("of what is not there: %v", f)
	}
}

// A target that cannot be reached is an error, and the others are listed.
func TestTargetsListed(t *testing.T) {
	b := newBench(t)
	b.ready(operation.Update)
	b.Options.Targets.Targets = map[string]plan.Target{"away": {}, "other": {}}
	open := b.open
	b.open = func(name string, t plan.Target) (cloud, func(plan.Location) principals) {
		c, enter := open(name, t)
		if name == "away" {
			return fakeClient{call: func(context.Context, string, func() error) error { return errors.New("nobody answers") }},
				enter
		}
		return c, enter
	}
	var failed, held int
	for cursor, again := "", true; again; again = cursor != "" {
		page, next, err := b.List(t.Context(), cursor)
		if err != nil {
			failed++
		}
		held += len(page)
		cursor = next
	}
	if failed != 1 || held != 2 { // in the default target and, at the same place here, in the other
		t.Errorf("%d targets failed, and %d things are listed", failed, held)
	}
}

// The operator's rules choose a target: the first that fits, then the plan's own.
func TestTargetsChosen(t *testing.T) {
	targets := plan.Targets{Rules: []plan.TargetRule{
		{Platform: "p", Plan: "b", Target: "both"}, {Plan: "a", Target: "plan"}, {Platform: "q", Target: "platform"}}}
	for want, in := range map[string]provider.Instance{
		"both": {Platform: "p", PlanID: "b"}, "plan": {Platform: "q", PlanID: "a"}, "platform": {Platform: "q", PlanID: "b"},
		plan.DefaultTarget: {Platform: "p"}, "setting": {Settings: map[string]any{"target": "setting"}},
	} {
		expect.Same(t, fmt.Sprintf("%+v goes to", in), want, targets.Choose(in))
	}
}

// A failure is explained by the first resource that failed in this very operation, and by the stack itself if none says why.
func TestReasons(t *testing.T) {
	start, end := whole(updateInProgress), whole(updateRollbackFailed)
	old := []event{whole(createInProgress), part(createFailed, "is not empty"), whole(rollbackComplete)}
	slow := whole("UPDATE_ROLLBACK_IN_PROGRESS")
	slow.reason = "Stack update time exceeded the specified timeout. Rollback requested by user."
	follows := whole("UPDATE_ROLLBACK_IN_PROGRESS")
	follows.reason = "The following resource(s) failed to update: [Bucket]."
	for name, c := range map[string]struct {
		events []event // the earliest first
		want   string
	}{
		"First": {[]event{start, part(updateFailed, "Quota exceeded"), part(updateFailed, "Invalid request"), follows, end},
			"limit"},
		"Cancelled": {[]event{start, part(updateFailed, "Resource update cancelled"), part(updateFailed, "Access Denied"),
			follows, end}, "not allow"},
		"Timeout": {[]event{start, part(updateFailed, "Resource update cancelled"), slow, end},
			"It could not be changed: it was not ready in time"},
		"Silent":  {[]event{start, follows, end}, "does not say why"},
		"Unknown": {[]event{start, part(updateFailed, "arn:aws:x:111122223333"), end}, "whose log says why"},
	} {
		b := newBench(t)
		in := b.ready(operation.Update)
		s := b.stack()
		s.events = nil
		for _, e := range append(old, c.events...) {
			b.fake.happen(s, e)
		}
		st := &step{p: b.Provider, in: in}
		var err error
		if st.site, err = b.reach(t.Context(), plan.DefaultTarget); err != nil {
			t.Fatal(err)
		}
		st.now.stack = s.copy()
		why, err := st.reason(t.Context())
		if err != nil || !strings.Contains(why, c.want) || strings.Contains(why, "1111") {
			t.Errorf("%s: %q, error %v, want %q", name, why, err, c.want)
		}
	}
}

// A stack that AWS protects is not asked to go for ever.
func TestProtected(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Deprovision)
	b.refuse = func(call string) error {
		if call == string(callDelete) {
			return validation("Stack [x] cannot be deleted while TerminationProtection is enabled")
		}
		return nil
	}
	if _, f := b.drive(&in); f == nil || !strings.Contains(f.Message, "protected") || !*f.InstanceUsable {
		t.Errorf("failed with %+v", f)
	}
}

// After a failure of CloudFormation, the operation goes on as far as it can, and the next one begins where it ended.
func TestGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		kind         operation.Kind
		failing      verb
		usable       bool
		status       string // then
		changes      string // the calls that were made
		again, clean string // those of the same kind of operation, when it is mended
	}{
		"RollbackContinued": {operation.Update, callUpdate, true, updateRolledBack, "update continue", "update", "delete"},
		"RollbackStuck": {operation.Update, callContinue, false, updateRollbackFailed, "update continue",
			"continue update", "delete"},
		"DeletionFails": {operation.Deprovision, callDelete, false, deleteFailed, "delete delete delete", "delete", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			in := b.ready(c.kind)
			in.Parameters = json.RawMessage(`{"note":"two"}`)
			b.stack().failing = c.failing
			if c.failing == callContinue {
				b.stack().failingUpdate = true
			}
			_, f := b.drive(&in)
			if f == nil || f.InstanceUsable == nil || *f.InstanceUsable != c.usable {
				t.Fatalf("failed with %+v", f)
			}
			if got := b.stack().status; got != c.status || b.changes() != c.changes {
				t.Errorf("the stack is %s, after %s", got, b.changes())
			}
			b.stack().failing, b.stack().failingUpdate = "", false
			next := b.instance(c.kind)
			next.State, next.Target, next.Former, next.Parameters = in.State, in.Target, in.Snapshot, in.Parameters
			b.calls = nil
			if _, f := b.drive(&next); f != nil || b.changes() != c.again {
				t.Errorf("mended, it failed with %v after %s", f, b.changes())
			}
			if c.clean == "" {
				return
			}
			last := b.instance(operation.Deprovision)
			last.State, last.Target = next.State, next.Target
			b.calls = nil
			if _, f := b.drive(&last); f != nil || b.changes() != c.clean || b.stack() != nil {
				t.Errorf("removed, it failed with %v after %s", f, b.changes())
			}
		})
	}
}

// changes are the calls that change stacks.
func (b *bench) changes() string {
	var made []string
	for _, call := range b.calls {
		switch verb(call) {
		case callCreate, callUpdate, callDelete, callCancel, callContinue, callRetain:
			made = append(made, call)
		}
	}
	return strings.Join(made, " ")
}

// A deletion during an update has the update end first; one during a creation does not wait.
func TestOvertakes(t *testing.T) {
	for kind, want := range map[operation.Kind]string{operation.Update: "cancel delete", operation.Provision: "delete"} {
		b := newBench(t)
		in := b.instance(kind)
		verb := b.Provision
		if kind == operation.Update {
			in, verb = b.ready(kind), b.Update
			in.Parameters = json.RawMessage(`{"note":"two"}`)
		}
		for b.stack() == nil || !busy(b.stack().status) {
			st := expect.Get(verb(t.Context(), in))(t)
			providertest.Keep(&in, st, nil)
		}
		d := b.instance(operation.Deprovision)
		d.State, d.Target = in.State, in.Target
		b.calls = nil
		if _, f := b.drive(&d); f != nil || b.changes() != want || b.stack() != nil {
			t.Errorf("during %s: failure %v after %s", kind, f, b.changes())
		}
	}
}

// The deletion of a former life goes by that life's plan, also when its record is lost: a life
// with another plan empties nothing that was to be retained.
func TestFormerKeepsItsRule(t *testing.T) {
	b := newBench(t)
	former := b.instance(operation.Provision)
	former.Snapshot = json.RawMessage(strings.Replace(string(snapshotWith(nil)), `"on_delete":"empty"`, `"on_delete":"retain"`,
		1))
	b.must(&former)
	for _, kind := range []operation.Kind{operation.Provision, operation.Deprovision} {
		anew := b.instance(kind)
		anew.Incarnation, anew.Unfinished = "of another life", kind == operation.Deprovision
		if _, f := b.drive(&anew); f != nil || b.stack() == nil {
			t.Errorf("%s of another life: failure %v, and left %+v", kind, f, b.stack())
		}
	}
	b.calls = nil
	orphan := b.instance(operation.Deprovision)
	orphan.Snapshot, orphan.Target = nil, former.Target
	if _, f := b.drive(&orphan); f != nil || !strings.HasPrefix(b.changes(), "retain delete") {
		t.Errorf("failure %v after %s", f, b.changes())
	}
}

// A stack that was deleted by hand and got stuck keeps the rule to retain: the resources that
// are left are marked, and outlive it.
func TestRetainsWhatSomebodyDeleted(t *testing.T) {
	b := newBench(t)
	in := b.instance(operation.Provision)
	in.Snapshot = json.RawMessage(strings.Replace(string(snapshotWith(nil)), `"on_delete":"empty"`, `"on_delete":"retain"`, 1))
	b.must(&in)
	stuck := b.stack()
	stuck.items = 1
	expect.OK(t, b.fake.remove(b.fake.account(here), order{id: stuck.id, token: "by hand"}))
	b.clock.Advance(time.Hour)
	d := b.instance(operation.Deprovision)
	d.State, d.Target, d.Snapshot = in.State, in.Target, in.Snapshot
	b.calls = nil
	_, f := b.drive(&d)
	if f != nil || b.changes() != "delete" || b.stack() != nil {
		t.Errorf("failed with %v after %q", f, b.changes())
	}
	if len(stuck.spared) != 1 || stuck.items != 1 || stuck.labels[plan.LabelRetained] != "2030-01-02" {
		t.Errorf("spared %q, which holds %d and has the marks %v", stuck.spared, stuck.items, stuck.labels)
	}
}

// An update that takes longer than its plan allows is undone while its operation still
// waits for it: what is recorded of the instance and its stack mean the same.
func TestUpdatesEndInTime(t *testing.T) {
	for name, c := range map[string]struct {
		takes   time.Duration // each of four parts
		failing verb
		changes string
		note    string
	}{
		"InTime": {10 * time.Minute, "", "update", "two"}, "TooLong": {20 * time.Minute, "", "update cancel", "one"},
		"Stuck":            {20 * time.Minute, callCancel, "update cancel continue", "one"},
		"AllButTheCleanup": {16 * time.Minute, "", "update", "two"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			in := b.ready(operation.Update)
			b.fake.takes, b.stack().failing = c.takes, c.failing
			in.Operation.Started, in.Parameters = b.clock.Now(), json.RawMessage(`{"note":"two"}`)
			in.Operation.Deadline = in.Operation.Started.Add(time.Hour)
			_, f := b.drive(&in)
			if failed := c.note == "one"; failed != (f != nil) || failed && (!*f.InstanceUsable || !*f.UpdateRepeatable ||
				!strings.Contains(f.Message, "too long")) {
				t.Errorf("failed with %+v", f)
			}
			if b.changes() != c.changes || b.stack().params["Note"] != c.note {
				t.Errorf("the note is %q after %s", b.stack().params["Note"], b.changes())
			}
		})
	}
}

// An update whose operation has waited for its target longer than an update may take has all of that time still.
func TestAnUpdateThatHasWaitedHasItsTime(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Update)
	b.fake.takes = 10 * time.Minute
	in.Operation.Started, in.Parameters = b.clock.Now().Add(-2*time.Hour), json.RawMessage(`{"note":"two"}`)
	in.Operation.Deadline = in.Operation.Started.Add(24 * time.Hour)
	if _, f := b.drive(&in); f != nil || b.changes() != "update" || b.stack().params["Note"] != "two" {
		t.Errorf("failed with %v, and the note is %q after %s", f, b.stack().params["Note"], b.changes())
	}
}
