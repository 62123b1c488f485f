package principal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"golang.org/x/time/rate"

	"github.com/longshore/longshore/internal/base/awserr"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/principal"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/principaltest"
	"github.com/longshore/longshore/internal/test/providertest"
)

const scope = plan.Scope("longshore-abcdefgh")

// A bench is one account with a Keeper, and a worker's records of bindings.
type bench struct {
	t *testing.T
	*principal.Keeper
	fake  *principaltest.Fake
	clock *providertest.Clock
	log   bytes.Buffer
	m     plan.Settings
	v     map[string]string
}

func newBench(t *testing.T, kind plan.Principal) *bench {
	clock := providertest.NewClock(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	b := &bench{t: t, clock: clock, fake: principaltest.New("000000000001", clock.Now)}
	client := b.fake.Client(&providertest.Calls{})
	b.Keeper = &principal.Keeper{
		IAM: client, Prover: client, Scope: scope, Broker: "broker-1", Now: clock.Now,
		Log:      slog.New(slog.NewTextHandler(&b.log, nil)),
		Boundary: func(string) string { return "arn:aws:iam::000000000001:policy/boundary" }, Reads: rate.NewLimiter(rate.Inf, 1),
	}
	b.m, b.v = planOf(kind)
	return b
}

// planOf is what the benches' plan means.
func planOf(kind plan.Principal) (plan.Settings, map[string]string) {
	m := plan.Settings{
		Format: plan.Format, Offering: "thing", Principal: kind, Assume: []string{"123456789012"},
		Policy: json.RawMessage(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"x:Use","Resource":"${Arn}"}]}`),
		Proof:  &plan.Proof{Service: "x"}, Credentials: map[string]string{"arn": "${Arn}"},
	}
	return m, map[string]string{"Arn": "arn:aws:x:::thing", plan.ValueRegion: "us-east-1", plan.ValuePartition: "aws"}
}

// binding is a new one; its operation begins now.
func (b *bench) binding(id, begun string) provider.Binding {
	return provider.Binding{
		Instance: provider.Instance{
			Broker: "broker-1", Platform: "platform-1", ID: "instance-1", Incarnation: "life-1",
			Operation: provider.Operation{ID: begun, Kind: operation.Bind, Started: b.clock.Now()},
			Place:     provider.Place{Organization: "Sales & more", Space: "space-1", InstanceName: "my queue"},
		},
		ID: id, Incarnation: begun, Secret: []byte("a secret of the binding " + begun),
	}
}

// first is the one binding of most tests.
func (b *bench) first() provider.Binding { return b.binding("binding-1", "operation-1") }

// bound is a binding that stands, the nth.
func (b *bench) bound(n int) (provider.Binding, *provider.Grant) {
	b.t.Helper()
	of := b.binding(fmt.Sprint("binding-", n), fmt.Sprint("operation-", n))
	return of, b.mustBind(&of)
}

// rewrite gives the principals of an instance what its plan says now.
func (b *bench) rewrite(of provider.Binding) {
	b.t.Helper()
	if done, err := b.Rewrite(b.t.Context(), of.Instance, b.m, b.v); err != nil || !done {
		b.t.Fatalf("rewrite: done %v, error %v", done, err)
	}
}

// fails has each call of a name fail; with no name, all go well again.
func (b *bench) fails(call string, err error) {
	b.IAM = b.fake.By(func(_ context.Context, name string, do func() error) error {
		if name == call {
			return err
		}
		return do()
	})
}

// step makes one step, and records its state.
func (b *bench) step(of *provider.Binding) (provider.Status, error) {
	st, err := b.Bind(b.t.Context(), *of, b.m, b.v)
	if err == nil && st.State != nil {
		of.State = *st.State
	}
	return st, err
}

func (b *bench) bind(of *provider.Binding) (provider.Status, *provider.Failure) {
	b.t.Helper()
	return providertest.Drive(b.t, b.clock, func(context.Context) (provider.Status, error) { return b.step(of) })
}

func (b *bench) mustBind(of *provider.Binding) *provider.Grant {
	b.t.Helper()
	st, f := b.bind(of)
	if f != nil {
		b.t.Fatalf("bind failed: %s", f.Message)
	}
	return st.Grant
}

func (b *bench) mustUnbind(of provider.Binding) {
	b.t.Helper()
	of.Secret, of.State = nil, provider.State{}
	_, f := providertest.Drive(b.t, b.clock, func(ctx context.Context) (provider.Status, error) { return b.Unbind(ctx, of) })
	left := ""
	if b.fake != nil {
		left = b.fake.Look(scope.Path())
	}
	if f != nil || left != "" {
		b.t.Errorf("unbind: failure %v, left %q", f, left)
	}
}

func (b *bench) opens(g *provider.Grant) bool {
	return b.fake.Opens(text(g, "access_key_id"), text(g, "secret_access_key"))
}

func (b *bench) name(of provider.Binding) string { return b.Scope.Binding(provider.BindingTagsOf(of)) }

// A key is granted when AWS knows it everywhere. A synchronous bind ends in the time that a platform waits, as long as AWS
// refuses the new key no longer than the guide says.
func TestAKeyIsProvedBeforeItIsGranted(t *testing.T) {
	const promised = 8 * time.Second
	b := newBench(t, plan.User)
	b.fake.Settles = promised / 2 // refused for as long, and in places for as long again
	of := b.first()
	start := b.clock.Now()
	g := b.mustBind(&of)
	if took := b.clock.Now().Sub(start); !b.opens(g) || took < promised || took > wired.MaxWait/2 {
		t.Errorf("granted after %v: before AWS knew the key everywhere, or later than within %v", took, wired.MaxWait/2)
	}
	expect.Same(t, "credentials", map[string]any{"arn": "arn:aws:x:::thing", "region": "us-east-1",
		"access_key_id": text(g, "access_key_id"), "secret_access_key": text(g, "secret_access_key")}, g.Credentials)
	f := expect.Get(b.IAM.Get(t.Context(), plan.User, b.name(of)))(t)
	tags := map[string]string{
		"longshore:broker": "broker-1", "longshore:platform": "platform-1", "longshore:instance": "instance-1",
		"longshore:binding": "binding-1", "longshore:incarnation": "operation-1", "longshore:of": of.Instance.Incarnation,
		"longshore:organization": "Sales - more", "longshore:space": "space-1", "longshore:instance-name": "my queue",
		"longshore:key": text(g, "access_key_id"),
	}
	expect.Same(t, "tags", tags, f.Tags)
	b.mustUnbind(of)
}

// Three successes are a second apart, and in a row: steps that come quicker, and refusals between, do not count.
func TestProofsAreCounted(t *testing.T) {
	b := newBench(t, plan.User)
	of := b.first()
	says := []bool{true, true, false, true, true, true}
	asked := 0
	b.Prover = proverFunc(func() bool { asked++; return says[asked-1] })
	for range 50 {
		st := expect.Get(b.step(&of))(t)
		if st.Done {
			break
		}
		if asked > 0 { // a step that comes too early asks nothing
			before := asked
			if st, err := b.step(&of); err != nil || st.Done || asked != before && says[before-1] {
				t.Fatalf("a step that comes early: done %v, error %v, asked %d times", st.Done, err, asked-before)
			}
		}
		b.clock.Advance(time.Second)
	}
	if asked != len(says) {
		t.Errorf("asked %d times, want %d", asked, len(says))
	}
}

type proverFunc func() bool

func (f proverFunc) Prove(context.Context, principal.Key, *plan.Proof, map[string]string) (bool, string, error) {
	return f(), "403 AccessDenied", nil
}

// IAM's lists are late, and a user takes two keys only: a bind and an unbind come to their end all the same.
func TestListsAreLate(t *testing.T) {
	for _, kind := range []plan.Principal{plan.User, plan.Role} {
		b := newBench(t, kind)
		b.fake.Settles, b.fake.Lags = 3*time.Second, 5*time.Second
		for n := range 3 {
			of := b.binding("binding-1", fmt.Sprint("operation", n))
			for range 2 { // what they answered is lost: the user has both its keys, and the list shows neither
				once := of
				expect.Get(b.step(&once))(t)
			}
			b.mustBind(&of)
			if secrets := b.fake.Secrets(scope.BindingPath(provider.BindingTagsOf(of))); secrets != 1 {
				t.Errorf("bound, and %d secrets are there", secrets)
			}
			b.mustUnbind(of)
		}
	}
}

func TestUnrecordedKeysAreRevoked(t *testing.T) {
	b := newBench(t, plan.User)
	of := b.first()
	once := of
	expect.Get(b.step(&once))(t) // what it answered is lost
	b.fake.AddKey(b.name(of))    // both keys that a user may have are known to nobody
	g := b.mustBind(&of)
	path := scope.BindingPath(provider.BindingTagsOf(of))
	if n := b.fake.Secrets(path); n != 1 || !b.opens(g) {
		t.Errorf("bound, and %d keys are there", n)
	}
	// One that comes later goes with the next change of the policy.
	b.fake.AddKey(b.name(of))
	b.m.Policy = json.RawMessage(`{"Statement":[]}`)
	b.rewrite(of)
	if n := b.fake.Secrets(path); n != 1 || !b.opens(g) {
		t.Errorf("rewritten, and %d keys are there", n)
	}
}

// A failure tells the user no more than to whom to turn, and the operator what to do; nothing is left of it that opens.
func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		reason, logs string
		spoil        func(b *bench)
	}{
		{"an account has room for some users", "is full", func(b *bench) {
			b.fake.Quota = 1
			b.fake.Plant(plan.User, "x", "/", provider.Tags{})
		}},
		{"an account may not tell how full it is", "limits of IAM", func(b *bench) { b.fails("Create", said("LimitExceeded")) }},
		{"the broker lacks a right", "lacks a right", func(b *bench) { b.fails("Create", said("AccessDenied")) }},
		{"IAM refuses the policy", "correct the offering",
			func(b *bench) { b.fails("PutPolicy", said("MalformedPolicyDocument")) }},
		{"a policy has a size", "too long", func(b *bench) { b.v["Arn"] = strings.Repeat("x", 2000) }},
		{"an output is missing", "no value", func(b *bench) { delete(b.v, "Arn") }},
		{"an output is missing", "no value", func(b *bench) { b.m.Credentials["x"] = "${Other}" }},
		{"a role is not for everybody", "one by one", func(b *bench) { b.m.Principal, b.m.Assume = plan.Role, []string{"*"} }},
		{"a role is for somebody", "names nobody", func(b *bench) { b.m.Principal, b.m.Assume = plan.Role, nil }},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b := newBench(t, "")
			tc.spoil(b)
			of := b.first()
			_, f := b.bind(&of)
			if f == nil || !strings.Contains(f.Message, "Tell the operator") || strings.Contains(f.Message, "arn:") {
				t.Fatalf("failure %v", f)
			}
			expect.Says(t, "the log", b.log.String(), tc.logs)
			if n := b.fake.Secrets(scope.Path()); n > 0 {
				t.Errorf("failed, and %d secrets are there", n)
			}
		})
	}
}

// A boundary that is not there may come yet: an operator is told.
func TestABoundaryIsWaitedFor(t *testing.T) {
	b := newBench(t, plan.User)
	b.fails("Create", said("NoSuchEntity"))
	of := b.first()
	for range 10 {
		st, err := b.step(&of)
		if err != nil || st.Done || st.After == 0 {
			t.Fatalf("done %v, after %v, error %v", st.Done, st.After, err)
		}
		b.clock.Advance(time.Minute)
	}
	expect.Says(t, "the log", b.log.String(), "boundary")
	b.fails("", nil)
	b.mustBind(&of)
}

func said(code string) error {
	return &smithy.GenericAPIError{Code: code, Message: "arn:aws:iam::1:user/x"}
}

// An operator is told early, and the account is asked once in a while only.
func TestNearlyFull(t *testing.T) {
	b := newBench(t, plan.User)
	b.fake.Quota = 10
	for n := range 8 {
		b.fake.Plant(plan.User, fmt.Sprint("user-", n), "/", provider.Tags{})
	}
	b.bound(1)
	b.bound(2)
	of := b.binding("binding-3", "operation-3")
	if _, f := b.bind(&of); f == nil {
		t.Error("bound in a full account")
	}
	if n := strings.Count(b.log.String(), "nearly full"); n != 1 {
		t.Errorf("warned %d times, want once:\n%s", n, b.log.String())
	}
}

// No order is refused for want of the room that unbinding has made since the account was asked.
func TestRoomIsMade(t *testing.T) {
	b := newBench(t, plan.User)
	b.fake.Quota = 3
	b.fake.Plant(plan.User, "x", "/", provider.Tags{})
	for n := range 5 {
		of, _ := b.bound(n)
		b.mustUnbind(of)
	}
}

func TestRewrite(t *testing.T) {
	for _, kind := range []plan.Principal{plan.User, plan.Role} {
		b := newBench(t, kind)
		var made []provider.Binding
		for n := range 30 {
			of, _ := b.bound(n)
			made = append(made, of)
		}
		foreign := provider.BindingTagsOf(b.binding("binding-x", "operation-x"))
		path := scope.BindingPath(foreign)
		foreign.Broker = "broker-2"
		b.fake.Plant(kind, "foreign", path, foreign)
		before := b.fake.Look(path)
		b.v["Arn"] = "arn:aws:x:::other"
		for _, want := range []bool{false, true} { // in two steps
			expect.Same(t, "rewritten", want, expect.Get(b.Rewrite(t.Context(), made[0].Instance, b.m, b.v))(t))
		}
		want := expect.Get(plan.FillPolicy(kind, b.m.Policy, b.v))(t)
		for _, of := range made {
			if got, err := b.IAM.Policy(t.Context(), kind, b.name(of), "longshore"); err != nil || got != want {
				t.Errorf("the policy is %q (error %v), want %q", got, err, want)
			}
		}
		expect.Same(t, "what is not ours, before and after", before, b.fake.Look(path))
		b.fails("PutPolicy", said("AccessDenied"))
		b.rewrite(made[0]) // repeated, it writes nothing
		b.v["Arn"] = strings.Repeat("x", 20_000)
		if _, err := b.Rewrite(t.Context(), made[0].Instance, b.m, b.v); err == nil {
			t.Error("a policy that is too long was written")
		}
	}
}

// An update that overtakes a bind does not find the principal in IAM's lists yet: the bind ends with what the plan says now.
func TestABindIsOvertaken(t *testing.T) {
	for _, kind := range []plan.Principal{plan.User, plan.Role} {
		b := newBench(t, kind)
		b.fake.Lags = time.Minute
		of := b.first()
		expect.Get(b.step(&of))(t)
		b.v["Arn"], b.m.Assume = "arn:aws:x:::other", []string{"210987654321"}
		b.rewrite(of)
		g := b.mustBind(&of)
		want := expect.Get(plan.FillPolicy(kind, b.m.Policy, b.v))(t)
		expect.Same(t, "policy", want, expect.Get(b.IAM.Policy(t.Context(), kind, b.name(of), "longshore"))(t))
		if kind == plan.Role {
			trust := expect.Get(b.IAM.Get(t.Context(), kind, b.name(of)))(t).Trust
			expect.Says(t, "trust", trust, "210987654321", text(g, "external_id"))
			expect.Never(t, "trust", trust, "123456789012")
		}
		expect.Same(t, "the log", "", b.log.String())
	}
}

// A role's external id is its binding's own, and the same in each step. Who may assume it is what the plan says now.
func TestRolesHaveExternalIDs(t *testing.T) {
	b := newBench(t, plan.Role)
	one, grant := b.bound(1)
	_, second := b.bound(2)
	first := grant.Credentials
	if first["external_id"] == second.Credentials["external_id"] || len(first["external_id"].(string)) != 32 {
		t.Error("two bindings have one external id")
	}
	if first["access_key_id"] != nil || one.State.Format != 0 {
		t.Error("a role has a secret")
	}
	f := expect.Get(b.IAM.Get(t.Context(), plan.Role, b.name(one)))(t)
	want := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole",`+
		`"Principal":{"AWS":["arn:aws:iam::123456789012:root"]},"Condition":{"StringEquals":{"sts:ExternalId":"%s"}}}]}`,
		first["external_id"])
	expect.Same(t, "trust", want, f.Trust)

	b.m.Assume = []string{"210987654321", "arn:aws:iam::123456789012:role/app"}
	for range 2 {
		b.rewrite(one)
		f := expect.Get(b.IAM.Get(t.Context(), plan.Role, b.name(one)))(t)
		expect.Says(t, "trust", f.Trust, `"AWS":["arn:aws:iam::210987654321:root","arn:aws:iam::123456789012:role/app"]`,
			`"sts:ExternalId":"`+text(grant, "external_id")+`"`)
	}
	b.m.Assume = []string{"*"}
	if _, err := b.Rewrite(t.Context(), one.Instance, b.m, b.v); err == nil {
		t.Error("a role may be assumed by anybody")
	}
	b.m.Assume = []string{"123456789012"}
	expect.OK(t, b.IAM.SetTrust(t.Context(), b.name(one), `{"Statement":[]}`))
	b.rewrite(one)
	expect.Says(t, "the log", b.log.String(), "somebody has changed")
}

// A quarantine that is repeated, or met by a key that was inactive, ends as it began.
func TestQuarantineRemembers(t *testing.T) {
	b := newBench(t, plan.User)
	of, g := b.bound(1)
	b.fake.AddKey(b.name(of))
	keys := expect.Get(b.IAM.Keys(t.Context(), b.name(of)))(t)
	if len(keys) != 2 {
		t.Fatalf("keys %v", keys)
	}
	expect.OK(t, b.IAM.SetKey(t.Context(), b.name(of), keys[1].ID, false))
	keys[1].Active = false
	page, _, err := b.List(t.Context(), "")
	if err != nil || len(page) != 1 {
		t.Fatalf("list %v, error %v", page, err)
	}
	for range 2 {
		expect.OK(t, b.Quarantine(t.Context(), page[0]))
		expect.Same(t, "in quarantine, it opens", false, b.opens(g))
	}
	for range 2 {
		expect.OK(t, b.Release(t.Context(), page[0]))
		expect.Same(t, "released, it opens", true, b.opens(g))
	}
	expect.Same(t, "keys, before and after", keys, expect.Get(b.IAM.Keys(t.Context(), b.name(of)))(t))
}

// Each call of a rewrite, a quarantine and a release goes wrong once, in each way: called again, they end as if none had.
func TestCallsGoWrong(t *testing.T) {
	for _, fault := range []providertest.Fault{providertest.Refused, providertest.Lost, providertest.Killed, providertest.Late} {
		for n, struck := 1, true; struck; n++ {
			b := newBench(t, plan.User)
			calls := &providertest.Calls{}
			of, g := b.bound(1)
			b.fake.AddKey(b.name(of))
			h := provider.Holding{Name: b.name(of), Tags: provider.BindingTagsOf(of)}
			b.IAM = b.fake.Client(calls)
			met, disarm := calls.Arm(n, fault)
			until := func(what string, do func() (bool, error)) {
				t.Helper()
				for range 3 {
					if done, err := do(); err == nil && done {
						return
					}
					if met() {
						disarm()
					}
				}
				t.Fatalf("%v at call %d: %s does not end", fault, n, what)
			}
			b.v["Arn"] = "arn:aws:x:::other"
			until("the rewrite", func() (bool, error) { return b.Rewrite(t.Context(), of.Instance, b.m, b.v) })
			until("the quarantine", func() (bool, error) { return true, b.Quarantine(t.Context(), h) })
			if b.opens(g) {
				t.Errorf("%v at call %d: opens in quarantine", fault, n)
			}
			until("the release", func() (bool, error) { return true, b.Release(t.Context(), h) })
			disarm()
			struck = met()
			text := b.fake.Look(scope.Path())
			if !b.opens(g) || !strings.Contains(text, "other") || strings.Contains(text, "quarantine") ||
				b.fake.Secrets(scope.Path()) != 1 {
				t.Errorf("%v at call %d: opens %v, left %s", fault, n, b.opens(g), text)
			}
		}
	}
}

// A call that makes a key may land when its binding is long bound: an inventory after
// the time that AWS takes such a call finds the key, once. While its keys cannot be read, a user is listed all the same.
func TestLateKeysAreFound(t *testing.T) {
	b := newBench(t, plan.User)
	of, granted := b.bound(1)
	late := expect.Get(b.IAM.CreateKey(t.Context(), b.name(of)))(t)
	told := func(when string, want int) {
		t.Helper()
		page, _, err := b.List(t.Context(), "")
		if n := strings.Count(b.log.String(), "key="+late.ID); err != nil || len(page) != 1 || n != want {
			t.Errorf("%s: %d users, error %v, and the key is told %d times, want %d:\n%s", when, len(page), err, n, want,
				b.log.String())
		}
	}
	told("while such a call may land", 0)
	b.clock.Advance(15 * time.Minute)
	b.fails("Keys", errors.New("access is denied"))
	told("its keys cannot be read", 0)
	expect.Says(t, "the log", b.log.String(), "cannot be read")
	b.fails("", nil)
	for range 2 {
		told("after that", 1)
	}
	expect.Never(t, "the log", b.log.String(), text(granted, "access_key_id"))
}

// An inventory reads the tags of each principal once, and no faster than it may.
func TestTagsAreReadAtAFixedRate(t *testing.T) {
	b := newBench(t, plan.User)
	for n := range 3 {
		b.bound(n)
	}
	b.Reads = rate.NewLimiter(rate.Every(time.Hour), 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, _, err := b.List(ctx, ""); err == nil {
		t.Error("three were read at a rate of two")
	}
	b.Reads.SetBurst(3)
	b.Reads.SetLimit(rate.Inf)
	if page, _, err := b.List(ctx, ""); err != nil || len(page) != 3 {
		t.Fatalf("listed %d, error %v", len(page), err)
	}
	b.Reads.SetLimit(0)
	b.Reads.SetBurst(0)
	if page, _, err := b.List(ctx, ""); err != nil || len(page) != 3 {
		t.Errorf("listed again: %d, error %v", len(page), err)
	}
}

// The fake refuses what AWS's documentation says that it refuses, and no emulator does.
func TestTheFakeHasLimits(t *testing.T) {
	ctx, clock := t.Context(), providertest.NewClock(time.Now())
	fake := principaltest.New("000000000001", clock.Now)
	fake.Quota = 2
	c := fake.Client(&providertest.Calls{})
	user := principal.Wanted{Name: "user", Path: "/a/", Boundary: "arn"}
	with := func(change func(*principal.Wanted)) error {
		w := user
		w.Name = "other"
		change(&w)
		return c.Create(ctx, plan.User, w)
	}
	var many []label.Label
	for n := range 51 {
		many = append(many, label.Label{Name: fmt.Sprint("tag-", n), Value: "x"})
	}
	key := func() error { _, err := c.CreateKey(ctx, "user"); return err }
	document := func(bytes int) string { return `"` + strings.Repeat("x", bytes-2) + `"` }
	for _, tc := range []struct {
		reason string
		err    error
		want   awserr.Class
	}{
		{"a boundary is needed", with(func(w *principal.Wanted) { w.Boundary = "" }), awserr.Denied},
		{"a name has 64 characters", with(func(w *principal.Wanted) { w.Name = strings.Repeat("x", 65) }), awserr.Invalid},
		{"a path ends in a slash", with(func(w *principal.Wanted) { w.Path = "/a" }), awserr.Invalid},
		{"50 tags", with(func(w *principal.Wanted) { w.Tags = many }), awserr.Quota},
		{"the value of a tag has 256 characters", with(func(w *principal.Wanted) {
			w.Tags = []label.Label{{Name: "a", Value: strings.Repeat("x", 257)}}
		}), awserr.Invalid},
		{"a tag has few letters", with(func(w *principal.Wanted) { w.Tags = []label.Label{{Name: "a", Value: "b&c"}} }),
			awserr.Invalid},
		{"a user is made", c.Create(ctx, plan.User, user), awserr.None},
		{"and another one", with(func(*principal.Wanted) {}), awserr.None},
		{"users have a quota", with(func(w *principal.Wanted) { w.Name = "third" }), awserr.Quota},
		{"a first key", key(), awserr.None},
		{"a second one", key(), awserr.None},
		{"a user has two keys", key(), awserr.Quota},
		{"a policy of 2 000 bytes", c.PutPolicy(ctx, plan.User, "user", "p", document(2000)), awserr.None},
		{"it is put again", c.PutPolicy(ctx, plan.User, "user", "p", document(2048)), awserr.None},
		{"all policies have 2 048 bytes", c.PutPolicy(ctx, plan.User, "user", "q", document(3)), awserr.Quota},
		{"white space does not count", c.PutPolicy(ctx, plan.User, "user", "p", " \n\t"+document(2048)), awserr.None},
		{"keys and policies go first", c.Delete(ctx, plan.User, "user"), awserr.Busy},
	} {
		if got := awserr.Of(tc.err); got != tc.want {
			t.Errorf("%s: %q, want %q (%v)", tc.reason, got, tc.want, tc.err)
		}
	}
	if most := plan.PolicyLimit(plan.User) + plan.PolicyLimit(plan.Role); most >= 2048+10240 {
		t.Errorf("policies of %d bytes leave no room for a quarantine", most)
	}
}
