package cloudformation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
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
	return b.then(in, kind)
}

// then is the next operation of an instance, of the same plan. The calls are counted from there on.
func (b *bench) then(in provider.Instance, kind operation.Kind) provider.Instance {
	next := b.instance(kind)
	next.State, next.Target, next.Former, next.Snapshot, next.Place = in.State, in.Target, in.Snapshot, in.Snapshot, in.Place
	b.calls = nil
	return next
}

// noted is the next operation of an instance that stands, with another note.
func (b *bench) noted(kind operation.Kind) provider.Instance {
	b.t.Helper()
	in := b.ready(kind)
	in.Parameters = json.RawMessage(`{"note":"two"}`)
	return in
}

// numbered is the order of another instance.
func (b *bench) numbered(n int) provider.Instance {
	in := b.instance(operation.Provision)
	in.ID, in.Incarnation = fmt.Sprint("i", n), in.Operation.ID
	return in
}

// refusing has the calls of a name be refused.
func (b *bench) refusing(name string, err error) {
	b.refuse = func(call string) error {
		if call == name {
			return err
		}
		return nil
	}
}

// retaining is the snapshot of a plan that retains.
func retainingPlan() json.RawMessage {
	return json.RawMessage(strings.Replace(string(snapshotWith(nil)), `"on_delete":"empty"`, `"on_delete":"retain"`, 1))
}

// on is a step of an instance.
func (b *bench) on(in provider.Instance, m plan.Settings) *step {
	b.t.Helper()
	return &step{p: b.Provider, m: m, in: in, site: expect.Get(b.reach(b.t.Context(), plan.DefaultTarget))(b.t)}
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
	for kind, want := range map[operation.Kind]string{operation.Update: "update", operation.Deprovision: "delete"} {
		in := b.noted(kind)
		b.must(&in)
		expect.Same(t, string(kind), want, b.changes())
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
			b.refusing(string(callCreate), &c.err)
			in := b.instance(operation.Provision)
			_, f := b.drive(&in)
			blames(t, f, c.user)
			expect.Never(t, "the user is told", f.Message, "1111")
			expect.Says(t, "the operator is told", b.log.String(), c.theirs)
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
		err := expect.Err(b.Update(t.Context(), in))
		trouble, is := errors.AsType[*target.Trouble](err)
		if !is || trouble.Kind != kind || !strings.Contains(trouble.Message, ":") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// An account is warned of before it is full, and then refuses. No order is refused for want of the room that a deletion, or a
// higher quota, has made a moment ago.
func TestRoom(t *testing.T) {
	b := newBench(t)
	b.fake.room = 5
	for n := range 6 {
		in := b.numbered(n)
		b.clock.Advance(roomTime)
		_, f := b.drive(&in)
		if full := f != nil; full != (n == 5) {
			t.Errorf("instance %d: %v", n, f)
		}
		expect.Same(t, fmt.Sprintf("instance %d: warned", n), n >= 4, strings.Contains(b.log.String(), "nearly"))
	}
	b.fake.room = 6
	next := b.numbered(6)
	b.must(&next)
}

// The rights of an offering's own service role are what a stack is made with, and its
// rights alone; an orphan's are those that it was made with.
func TestServiceRole(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Deprovision)
	want := b.Scope.ServiceRoleARN(plan.Location{Partition: "aws", Account: here, Region: "eu-central-1"}, "s3")
	expect.Same(t, "made with", want, b.stack().role)
	in.Snapshot, in.State = nil, provider.State{}
	b.must(&in)
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
	values := expect.Get(b.on(in, m).existing(t.Context()))(t)
	if values["Url"] != "https://queue" || values["Name"] != "jobs" || values[plan.ValueAccount] != here {
		t.Errorf("its values are %v", values)
	}
	calls := b.calls
	d := b.then(in, operation.Deprovision)
	b.must(&d)
	for _, call := range append(calls, b.calls...) {
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
	b.open = func(name string, t plan.Target) (cloud, func(plan.Location) *principal.Keeper) {
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
		held, cursor = held+len(page), next
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
		st := b.on(in, plan.Settings{})
		st.now.stack = s.copy()
		why, err := st.reason(t.Context())
		if err != nil || !strings.Contains(why, c.want) || strings.Contains(why, "1111") {
			t.Errorf("%s: %q, error %v, want %q", name, why, err, c.want)
		}
	}
}

// A stack that is protected is not asked to go for ever. One that says so is not emptied, though its deletion was to empty
// it, and is refused before a binding is removed.
func TestProtected(t *testing.T) {
	for _, told := range []bool{false, true} {
		b := newBench(t)
		in := b.ready(operation.Deprovision)
		b.stack().protected = told
		if told {
			b.stack().items = 3
		} else {
			b.refusing(string(callDelete), validation("Stack [x] cannot be deleted while TerminationProtection is enabled"))
		}
		refused, is := errors.AsType[*provider.Failure](b.Refuses(t.Context(), in))
		if is != told || told && (refused.Message != textProtected || !refused.Untouched || !*refused.InstanceUsable) {
			t.Errorf("before a binding is removed, it is refused with %+v", refused)
		}
		if _, f := b.drive(&in); f == nil || !strings.Contains(f.Message, "protected") || !*f.InstanceUsable {
			t.Errorf("failed with %+v", f)
		}
		if told && (b.stack().items != 3 || b.changes() != "") {
			t.Errorf("%d items are left, after %s", b.stack().items, b.changes())
		}
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
		"RollbackRefused": {operation.Update, callContinue, false, updateRollbackFailed, "update continue",
			"continue update", "delete"},
		"DeletionFails": {operation.Deprovision, callDelete, false, deleteFailed, "delete delete delete", "delete", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			in := b.noted(c.kind)
			b.stack().failing, b.stack().failingUpdate = c.failing, c.failing == callContinue
			if name == "RollbackRefused" { // by the call itself, and not by its events
				b.refusing(string(callContinue), validation("Role x is invalid"))
			}
			_, f := b.drive(&in)
			if f == nil || f.InstanceUsable == nil || *f.InstanceUsable != c.usable {
				t.Fatalf("failed with %+v", f)
			}
			if got := b.stack().status; got != c.status || b.changes() != c.changes {
				t.Errorf("the stack is %s, after %s", got, b.changes())
			}
			b.stack().failing, b.stack().failingUpdate, b.refuse = "", false, nil
			next := b.then(in, c.kind)
			next.Parameters = in.Parameters
			if _, f := b.drive(&next); f != nil || b.changes() != c.again {
				t.Errorf("mended, it failed with %v after %s", f, b.changes())
			}
			if c.clean == "" {
				return
			}
			last := b.then(next, operation.Deprovision)
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

// The deletion of a former life goes by that life's plan, also when its record is lost: a life
// with another plan empties nothing that was to be retained.
func TestFormerKeepsItsRule(t *testing.T) {
	b := newBench(t)
	former := b.instance(operation.Provision)
	former.Snapshot = retainingPlan()
	b.must(&former)
	for _, kind := range []operation.Kind{operation.Provision, operation.Deprovision} {
		anew := b.instance(kind)
		anew.Incarnation, anew.Unfinished = "of another life", kind == operation.Deprovision
		if _, f := b.drive(&anew); f != nil || b.stack() == nil {
			t.Errorf("%s of another life: failure %v, and left %+v", kind, f, b.stack())
		}
	}
	orphan := b.then(former, operation.Deprovision)
	orphan.Snapshot, orphan.Former, orphan.State = nil, nil, provider.State{} // its record is lost
	if _, f := b.drive(&orphan); f != nil || !strings.HasPrefix(b.changes(), "retain delete") {
		t.Errorf("failure %v after %s", f, b.changes())
	}
}

// A stack that was deleted by hand and got stuck keeps the rule to retain: the resources that
// are left are marked, and outlive it.
func TestRetainsWhatSomebodyDeleted(t *testing.T) {
	b := newBench(t)
	in := b.instance(operation.Provision)
	in.Snapshot = retainingPlan()
	b.must(&in)
	stuck := b.stack()
	stuck.items = 1
	expect.OK(t, b.fake.remove(b.fake.account(here), order{id: stuck.id, token: "by hand"}))
	b.clock.Advance(time.Hour)
	d := b.then(in, operation.Deprovision)
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
		takes         time.Duration // each of four parts
		waited, limit time.Duration // of the operation, for its target and in all
		failing       verb
		changes, note string
	}{
		"InTime":           {10 * time.Minute, 0, time.Hour, "", "update", "two"},
		"TooLong":          {20 * time.Minute, 0, time.Hour, "", "update cancel", "one"},
		"Stuck":            {20 * time.Minute, 0, time.Hour, callCancel, "update cancel continue", "one"},
		"AllButTheCleanup": {16 * time.Minute, 0, time.Hour, "", "update", "two"},
		// One that has waited longer than an update may take has all of that time still.
		"Waited": {10 * time.Minute, 2 * time.Hour, 24 * time.Hour, "", "update", "two"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			in := b.noted(operation.Update)
			b.fake.takes, b.stack().failing = c.takes, c.failing
			in.Operation.Started = b.clock.Now().Add(-c.waited)
			in.Operation.Deadline = in.Operation.Started.Add(c.limit)
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

// A stack whose record was derived again may have any template: an update brings it to the plan's.
func TestUpdateOfARebuiltRecord(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Update)
	b.stack().body = "an earlier version"
	in.Former = nil
	b.must(&in)
	expect.Same(t, "its template is", suiteTemplate, b.stack().body)
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
	s := b.on(in, plan.Settings{})
	for name, call := range map[string]func(context.Context) error{
		"Bind":       func(ctx context.Context) error { return expect.Err(b.Bind(ctx, binding)) },
		"Unbind":     func(ctx context.Context) error { return expect.Err(b.Unbind(ctx, binding)) },
		"Rewrite":    func(ctx context.Context) error { return expect.Err(s.rewrite(ctx, nil)) },
		"List":       func(ctx context.Context) error { _, _, err := b.page(ctx, s.site, sweep{Principals: true}); return err },
		"Quarantine": func(ctx context.Context) error { return b.Quarantine(ctx, held) },
		"Release":    func(ctx context.Context) error { return b.Release(ctx, held) },
	} {
		providertest.Troubled(t, name, target.Rights, call(t.Context()))
	}
	held.Name = b.Scope.Stacks() + "x" // a stack that somebody has given the tag of a binding
	expect.OK(t, errors.Join(b.Quarantine(t.Context(), held), b.Release(t.Context(), held)))
}

// An operator is told how to get a bucket for templates, whatever needs it.
func TestTroubleOfBuckets(t *testing.T) {
	b := newBench(t)
	gone := &smithy.GenericAPIError{Code: "NoSuchBucket"}
	b.refusing("save", gone)
	s := b.on(b.instance(operation.Provision), plan.Settings{})
	told := func(what string, err error) {
		t.Helper()
		providertest.Troubled(t, what, target.Other, err)
		expect.Says(t, what, fmt.Sprint(err), "longshore aws bootstrap")
	}
	told("a creation", s.template(t.Context(), &order{}, plan.Digest([]byte(suiteTemplate))))

	b.refuse = nil
	s.in = b.ready(operation.Deprovision)
	b.refusing("save", gone)
	long := b.stack()
	long.body = `{"Description":"` + strings.Repeat("x", inline) + `","Resources":{}}` // no call takes it
	s.now.stack = long.copy()
	told("a deletion that retains", s.fillRetention(t.Context(), &order{}))
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
		expect.Same(t, name+": the minutes that it may take", c.want, s.minutes())
	}
}

// A call that changes a stack names it by its id, which no successor of its name ever
// has: one that arrives late hits nothing else.
func TestCallsNameStacksByID(t *testing.T) {
	const id, name = "arn:aws:cloudformation:eu-central-1:111122223333:stack/x/1", "x"
	var sent url.Values
	a := answered(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a call without a form names no stack
		sent = r.PostForm
		w.WriteHeader(http.StatusBadRequest)
	}))
	for v := range begun {
		sent = nil
		if err := a.send(t.Context(), order{verb: v, id: id, name: name, token: "t"}); err == nil {
			t.Errorf("%s: a refusal is no error", v)
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

// The space of the order counts for the instance's whole life, and is recorded before anything is made.
func TestTheSpaceOfTheOrderCounts(t *testing.T) {
	b := newBench(t)
	in := b.instance(operation.Provision)
	in.Place = provider.Place{Organization: "o", Space: "s"}
	name := nameIn(b.Scope, in)
	st, err := b.Provision(t.Context(), in)
	if err != nil || st.State == nil || st.Target == nil {
		t.Fatalf("the first step: %+v, %v", st, err)
	}
	if all := b.fake.account(here).stacks; len(all) != 0 {
		t.Fatalf("the first step made %d stacks", len(all))
	}
	in.State, in.Target = *st.State, *st.Target
	for _, kind := range []operation.Kind{operation.Provision, operation.Update, operation.Deprovision} {
		in.Place.Space += "x" // it moves with each operation
		b.must(&in)
		if all := b.fake.account(here).stacks; len(all) != 1 || all[0].name != name {
			t.Fatalf("%s: there are %d stacks, the first %q, want %q", kind, len(all), all[0].name, name)
		}
		in = b.then(in, map[operation.Kind]operation.Kind{
			operation.Provision: operation.Update, operation.Update: operation.Deprovision}[kind])
	}
}

// Where the state is lost, each operation finds the stack that there is, whatever the platform says of the place by now.
func TestStacksWithoutState(t *testing.T) {
	for _, kind := range []operation.Kind{operation.Provision, operation.Update, operation.Deprovision} {
		t.Run(string(kind), func(t *testing.T) {
			b := newBench(t)
			for range suitePage + 1 { // more than a page of others
				other := b.numbered(b.ops + 1)
				b.must(&other)
			}
			in := b.ready(kind)
			if kind == operation.Provision {
				in.Operation.ID, in.Former = in.Incarnation, nil
			}
			in.State, in.Place = provider.State{}, provider.Place{Organization: "moved", Space: "moved"}
			b.must(&in)
			stands := b.stack() != nil
			if all := b.fake.account(here).stacks; len(all) != suitePage+2 || stands == (kind == operation.Deprovision) {
				t.Errorf("there are %d stacks, and the instance's is there: %v", len(all), stands)
			}
		})
	}
}

// Facts are those outputs of a stack that say where it is, and no others: an output may be a secret.
func TestFactsOfAStack(t *testing.T) {
	b := newBench(t)
	in := b.ready(operation.Update)
	made := b.stack()
	console := "https://eu-central-1.console.aws.amazon.com/cloudformation/home?region=eu-central-1#/stacks/stackinfo?stackId=" +
		url.QueryEscape(made.id)
	for name, tc := range map[string]struct {
		outputs map[string]string
		address string
	}{
		"None":     {map[string]string{"MasterPassword": "secret", "Port": "5432"}, ""},
		"Endpoint": {map[string]string{"Endpoint": "https://s3.example"}, "https://s3.example"},
		"HostPort": {map[string]string{"Host": "db.example", "Port": "5432", "Password": "secret"}, "db.example:5432"},
	} {
		t.Run(name, func(t *testing.T) {
			made.outputs = tc.outputs
			want := provider.Facts{Region: "eu-central-1", Address: tc.address, Console: console}
			expect.Same(t, "facts", want, expect.Get(b.Describe(t.Context(), in))(t))
		})
	}
}

// A developer is told what to do. The reasons are as CloudFormation and the services word
// them: a property's name in one of them is not taken for the cause.
func TestWords(t *testing.T) {
	const (
		late, full, settings = "not ready in time", "no capacity", "does not accept its settings"
		limited, denied      = "a limit of the service's account", "does not allow it"
	)
	for reason, want := range map[string]string{
		"Value 50000 for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200, if provided.": settings,
		"Value '2000' at 'timeout' failed to satisfy constraint: Member must have value less than or equal to 900":  settings,
		"The provided VisibilityTimeout is not what AWS takes: invalid":                                             settings,
		"Invalid value for property ReadCapacityUnits: 0":                                                           settings,
		"1 validation error: ProvisionedCapacity is not valid":                                                      settings,
		"Value for parameter RateLimit is invalid: it exceeds 10":                                                   settings,
		"Resource timed out waiting for completion (RequestToken: x)":                                               late,
		"Exceeded attempts to wait":                            late,
		"Custom Resource failed to stabilize in expected time": late,
		"Resource of type 'AWS::X::Y' did not stabilize.":      late,
		"HandlerErrorCode: NotStabilized":                      late,
		"Connection time-out":                                  late,
		"InsufficientDBInstanceCapacity":                       full,
		"There is insufficient capacity in the zone":           full,
		"We currently do not have sufficient m5 capacity":      full,
		"The limit of queues is exceeded":                      limited,
		"User is not authorized: invalid parameter":            denied,
	} {
		got := words(event{logical: "Queue", kind: "AWS::SQS::Queue", status: "CREATE_FAILED", reason: reason})
		expect.Says(t, reason, got, want)
	}
}
