package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/provider/remote"
	"github.com/longshore/longshore/internal/test/expect"
)

// invoke is an Invoker in one function.
type invoke func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error)

func (f invoke) Invoke(ctx context.Context, in *lambda.InvokeInput, opts ...func(*lambda.Options)) (*lambda.InvokeOutput, error) {
	var o lambda.Options
	for _, opt := range opts {
		opt(&o)
	}
	if o.Retryer == nil || o.Retryer.MaxAttempts() != 1 {
		return nil, errors.New("the SDK would repeat the call")
	}
	return f(ctx, in)
}

// served is the function inside, with this one provider.
func served(w wired.Provider, log *slog.Logger) *remote.Handler {
	return remote.NewHandler(map[string]remote.Open{"told": func(json.RawMessage) (wired.Provider, error) { return w, nil }}, log)
}

// by calls the function inside.
func by(h *remote.Handler) invoke {
	return func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		out, err := h.Invoke(ctx, in.Payload)
		return &lambda.InvokeOutput{Payload: out}, err
	}
}

// told is a provider that keeps what it was told, and answers as it is bidden.
type told struct {
	got    []any
	ctx    context.Context
	status provider.Status
	epoch  target.Epoch
	page   []provider.Holding
	next   string
	err    error
	panics any
}

func (p *told) step(ctx context.Context, verb string, in any) (provider.Status, error) {
	if p.panics != nil {
		panic(p.panics)
	}
	p.got, p.ctx = append(p.got, verb, in), ctx
	return p.status, p.err
}

func (p *told) tell(ctx context.Context, verb string, in any) error {
	return expect.Err(p.step(ctx, verb, in))
}

func (p *told) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, "provision", in)
}

func (p *told) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, "update", in)
}

func (p *told) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return p.step(ctx, "deprovision", in)
}

func (p *told) Refuses(ctx context.Context, in provider.Instance) error {
	return p.tell(ctx, "refuses", in)
}

func (p *told) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.step(ctx, "bind", b)
}

func (p *told) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.step(ctx, "unbind", b)
}

func (p *told) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	return p.page, p.next, p.tell(ctx, "list", cursor)
}

func (p *told) Quarantine(ctx context.Context, h provider.Holding) error {
	return p.tell(ctx, "quarantine", h)
}

func (p *told) Release(ctx context.Context, h provider.Holding) error {
	return p.tell(ctx, "release", h)
}

func (p *told) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) error {
	return p.tell(ctx, "adopt", adoption{h, former})
}

type adoption struct {
	Holding provider.Holding
	Former  provider.Tags
}

func (p *told) Survey(ctx context.Context, target string) (provider.Target, target.Epoch, error) {
	return provider.Target{Name: target, Identity: "s-1"}, p.epoch, p.tell(ctx, "survey", target)
}

func (p *told) Holdings(ctx context.Context, target, cursor string) ([]provider.Holding, string, error) {
	return p.page, p.next, p.tell(ctx, "holdings", target+" "+cursor)
}

func (p *told) Advance(ctx context.Context, t provider.Target, now, was target.Epoch) (target.Epoch, error) {
	return p.epoch, p.tell(ctx, "advance", fmt.Sprint(t, now, was))
}

// call is what both functions are in a test: the client, and what it is wired to.
type call struct {
	told
	wired   wired.Provider
	inside  provider.Provider
	reached json.RawMessage // what the provider inside was opened with
	asked   []provider.Target
	log     bytes.Buffer
}

func newCall() *call {
	c := &call{}
	c.inside = &c.told
	handler := remote.NewHandler(map[string]remote.Open{"told": func(reach json.RawMessage) (wired.Provider, error) {
		c.reached = reach
		w := wired.Of(c.inside)
		w.Inventory, w.Quarantiner, w.Adopter, w.Reconciler = &c.told, &c.told, &c.told, &c.told
		return w, nil
	}}, slog.New(slog.NewJSONHandler(&c.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	reach := func(_ context.Context, targets []provider.Target) (json.RawMessage, error) {
		c.asked = targets
		return json.RawMessage(`{"password":"canary"}`), nil
	}
	o := remote.Options{Provider: "told", Outside: wired.Of(&c.told), Reach: remote.Reach{LookUp: reach}}
	c.wired = remote.New(by(handler), o)
	return c
}

// fill sets every field of a value, to something else each time.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch v.Interface().(type) {
	case json.RawMessage:
		v.SetBytes(fmt.Appendf(nil, `{"canary<&>":12345678901234567890.%d}`, *n))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2030, 1, 2, 3, 4, 5, *n, time.UTC)))
		return
	case map[string]any:
		v.Set(reflect.ValueOf(map[string]any{
			"number": json.Number(fmt.Sprintf("9007199254740993%d", *n)), "text": "canary\u2028<é>", "none": nil,
			"deep": []any{true, map[string]any{"n": json.Number("1e-7")}},
		}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("canary %d <\x00\u00e4>", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) + 1<<60)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Uint8:
		v.SetUint(uint64(*n) % 256)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	default:
		t.Fatalf("fill does not know %v: teach it, so that it is known to travel", v.Type())
	}
}

func filled[T any](t *testing.T) (v T) {
	t.Helper()
	fill(t, reflect.ValueOf(&v).Elem(), new(int))
	return v
}

// travels has a step be told of what it is about, filled and empty, and answer.
func travels[T any](t *testing.T, verb string, step func(provider.Provider, context.Context, T) (provider.Status, error)) {
	t.Helper()
	var nothing T
	for _, sent := range []T{filled[T](t), nothing} {
		call := newCall()
		if !reflect.ValueOf(sent).IsZero() {
			call.status = filled[provider.Status](t)
		}
		got := expect.Get(step(call.wired.Provider, t.Context(), sent))(t)
		expect.Same(t, "what the provider inside is told", []any{verb, sent}, call.got)
		expect.Same(t, "what it answers to "+verb, call.status, got)
	}
}

// Every field of the contract arrives, in both directions: also one that is added tomorrow.
func TestEverythingTravels(t *testing.T) {
	travels(t, "provision", provider.Provider.Provision)
	travels(t, "update", provider.Provider.Update)
	travels(t, "deprovision", provider.Provider.Deprovision)
	travels(t, "bind", provider.Provider.Bind)
	travels(t, "unbind", provider.Provider.Unbind)
	h := filled[provider.Holding](t)
	call := newCall()
	call.page, call.next = filled[[]provider.Holding](t), "canary <next>"
	page, next, err := call.wired.Inventory.List(t.Context(), "canary <cursor>")
	expect.Same(t, "a page", []any{call.page, call.next, nil}, []any{page, next, err})
	former := provider.Tags{Broker: "b", Platform: "p", Instance: "i", Incarnation: "n",
		Origin: provider.Origin{Instance: "o", Incarnation: "m"}}
	ctx, q := t.Context(), call.wired.Quarantiner
	expect.OK(t, errors.Join(q.Quarantine(ctx, h), q.Release(ctx, h), call.wired.Adopter.Adopt(ctx, h, former)))
	want := []any{"list", "canary <cursor>", "quarantine", h, "release", h, "adopt", adoption{h, former}}
	expect.Same(t, "what is told of things", want, call.got)
	expect.Never(t, "the log", call.log.String(), "canary")
}

// A failure arrives whole, and ends the operation.
func TestFailuresTravel(t *testing.T) {
	want := filled[provider.Failure](t)
	for _, usable := range []*bool{nil, new(true), new(false)} {
		want.InstanceUsable = usable
		c := newCall()
		c.err = fmt.Errorf("wrapped: %w", &want)
		_, err := c.wired.Provider.Update(t.Context(), provider.Instance{})
		got, _ := errors.AsType[*provider.Failure](err)
		expect.Same(t, "the failure", &want, got)
		expect.Same(t, "the log", "", c.log.String())
	}
}

// Whether a deletion is refused is asked inside, too: a refusal and all that the
// question needs arrive. Where the provider inside refuses none, nor does this one.
func TestRefusesInside(t *testing.T) {
	in := filled[provider.Instance](t)
	refuses := func(c *call) error { return c.wired.Refuser.Refuses(t.Context(), in) }
	c := newCall()
	expect.OK(t, refuses(c), "what is not refused")
	expect.Same(t, "what is asked", []any{"refuses", in}, c.got)
	want := &provider.Failure{Message: "it is not empty", InstanceUsable: new(true), Untouched: true}
	c.err = want
	got, _ := errors.AsType[*provider.Failure](refuses(c))
	expect.Same(t, "a refusal", want, got)
	c.err = errors.New("canary: no route to db-2")
	passes(t, "a fault", false, refuses(c))
	c = newCall()
	c.inside = struct{ provider.Provider }{&c.told} // which is no Refuser
	if err := refuses(c); err != nil || c.got != nil {
		t.Errorf("a provider that refuses nothing was told %v: %v", c.got, err)
	}
}

// A target that does not answer hides none of the others.
func TestAPageBesideAnError(t *testing.T) {
	thing := []provider.Holding{{Name: "thing"}}
	for _, want := range []struct {
		page []provider.Holding
		next string
	}{{thing, "further"}, {nil, "further"}, {thing, ""}, {nil, ""}} {
		c := newCall()
		c.page, c.next, c.err = want.page, want.next, errors.New("canary: no route to db-2")
		page, next, err := c.wired.Inventory.List(t.Context(), "")
		expect.Same(t, "the page", []any{want.page, want.next}, []any{page, next})
		passes(t, "a page", false, err)
		expect.Never(t, "the error", fmt.Sprint(err), "canary")
	}
}

// The function inside is told how to reach the targets that a call names, and none for the inventory, which is of all.
func TestReach(t *testing.T) {
	here, there := provider.Target{Name: "here", Identity: "1"}, provider.Target{Name: "there"}
	restored := provider.Instance{Target: here, Source: &provider.Source{Target: there}}
	bound, held := provider.Binding{Instance: provider.Instance{Target: there}}, provider.Holding{Target: there}
	type targets = []provider.Target
	ordered, ctx := provider.Instance{Target: here}, t.Context()
	for name, test := range map[string]struct {
		want targets
		call func(w wired.Provider) error
	}{
		"Step": {targets{here}, func(w wired.Provider) error { return expect.Err(w.Provider.Provision(ctx, ordered)) }},
		"Restore": {targets{here, there}, func(w wired.Provider) error {
			return expect.Err(w.Provider.Provision(ctx, restored))
		}},
		"Binding":    {targets{there}, func(w wired.Provider) error { return expect.Err(w.Provider.Bind(ctx, bound)) }},
		"Inventory":  {nil, func(w wired.Provider) error { _, _, err := w.Inventory.List(ctx, ""); return err }},
		"Quarantine": {targets{there}, func(w wired.Provider) error { return w.Quarantiner.Quarantine(ctx, held) }},
		"Adopt":      {targets{there}, func(w wired.Provider) error { return w.Adopter.Adopt(ctx, held, held.Tags) }},
		"Release":    {targets{there}, func(w wired.Provider) error { return w.Quarantiner.Release(ctx, held) }},
	} {
		c := newCall()
		expect.OK(t, test.call(c.wired), name)
		expect.Same(t, name+": targets", test.want, c.asked)
		expect.Same(t, name+": the provider inside was opened with", `{"password":"canary"}`, string(c.reached))
	}
	failing := remote.New(nil, remote.Options{Provider: "told", Outside: wired.Of(&told{}), Reach: remote.Reach{
		LookUp: func(context.Context, []provider.Target) (json.RawMessage, error) {
			return nil, errors.New("no such secret")
		},
	}})
	_, err := failing.Provider.Provision(t.Context(), provider.Instance{})
	passes(t, "a target that cannot be looked up", false, err)
}

// After each call the provider inside is closed, whatever came of it; and what says
// how it reaches its targets is forgotten only after one that met a fault.
func TestWhatACallLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		forgot int
	}{"Done": {}, "Failure": {err: provider.Failf("no")}, "Fault": {errors.New("wrong password"), 1}} {
		c := told{status: provider.Status{Done: true}, err: test.err}
		open, opened, forgot := 0, 0, 0
		handler := remote.NewHandler(map[string]remote.Open{"told": func(json.RawMessage) (wired.Provider, error) {
			open++
			opened++
			w := wired.Of(&c)
			w.Close = func() { open-- }
			return w, nil
		}}, slog.New(slog.DiscardHandler))
		w := remote.New(by(handler), remote.Options{Provider: "told", Outside: wired.Of(&told{}), Reach: remote.Reach{
			LookUp: func(context.Context, []provider.Target) (json.RawMessage, error) { return json.RawMessage(`{}`), nil },
			Forget: func() { forgot++ },
		}})
		for range 2 {
			_, _ = w.Provider.Provision(t.Context(), provider.Instance{})
		}
		if opened != 2 || open != 0 || forgot != 2*test.forgot {
			t.Errorf("%s: of %d that were opened %d are open, and forgotten was %d times", name, opened, open, forgot)
		}
	}
}

// passes requires that an error has the step repeated, and that a call which may still run inside counts as unanswered.
func passes(t *testing.T, what string, unanswered bool, err error) {
	t.Helper()
	_, failed := errors.AsType[*provider.Failure](err)
	if err == nil || failed || errors.Is(err, context.DeadlineExceeded) != unanswered {
		t.Errorf("%s: error %v, want one that passes, of a call that was not answered: %v", what, err, unanswered)
	}
}

// A fault between the two functions passes. A call that may still run inside counts as one
// whose time was up: no other call may begin meanwhile.
func TestFaultsPass(t *testing.T) {
	gives := func(out *lambda.InvokeOutput, err error) invoke {
		return func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error) { return out, err }
	}
	answered := func(payload string) invoke { return gives(&lambda.InvokeOutput{Payload: []byte(payload)}, nil) }
	failed := func(err error) invoke { return gives(nil, err) }
	for name, test := range map[string]struct {
		invoker    invoke
		unanswered bool
	}{
		"Throttled": {failed(fmt.Errorf("operation error: %w", refusal())), false},
		"Cut":       {failed(errors.New("connection reset")), true},
		"TimeIsUp":  {failed(context.DeadlineExceeded), true},
		"Crashed": {
			gives(&lambda.InvokeOutput{FunctionError: new("Unhandled"), Payload: []byte(`{"errorMessage":"canary"}`)}, nil), true,
		},
		"NoAnswer":     {answered(``), false},
		"OtherVersion": {answered(`{"version":2,"status":{"done":true}}`), false},
		"NewerMember":  {answered(`{"version":1,"status":{"done":true,"canary":1}}`), false},
		"Two":          {answered(`{"version":1,"status":{"done":true}}{}`), false},
		"OtherAnswer":  {answered(`{"version":1,"page":{"holdings":null}}`), false},
		"Nothing":      {answered(`{"version":1}`), false},
		"Fault":        {answered(`{"version":1,"fault":{"what":"it says"}}`), false},
		"FaultLate":    {answered(`{"version":1,"fault":{"what":"it says","unanswered":true}}`), true},
	} {
		w := remote.New(test.invoker, remote.Options{Provider: "told", Outside: wired.Of(&told{})})
		st, err := w.Provider.Provision(t.Context(), provider.Instance{})
		passes(t, name, test.unanswered, err)
		expect.Same(t, name+": a step answers", provider.Status{}, st)
		expect.Never(t, name, fmt.Sprint(err), "canary")
		if name == "OtherAnswer" { // which is one to this question
			continue
		}
		page, next, err := w.Inventory.List(t.Context(), "")
		passes(t, name, test.unanswered, err)
		expect.Same(t, name+": a page", []any{[]provider.Holding(nil), ""}, []any{page, next})
	}
}

// The log inside says what went wrong there; the answer says only that it passes.
func TestFaultsInside(t *testing.T) {
	for name, test := range map[string]struct {
		arrange    func(*call)
		unanswered bool
		logged     string
	}{
		"Fault":    {func(c *call) { c.err = errors.New("10.0.0.1: connection refused") }, false, "10.0.0.1"},
		"TimeIsUp": {func(c *call) { c.err = fmt.Errorf("10.0.0.1: %w", context.DeadlineExceeded) }, true, "10.0.0.1"},
		"Panic":    {func(c *call) { c.panics = "canary" }, true, "panic"},
		"NoJSON": {func(c *call) { c.status.Grant = &provider.Grant{Credentials: map[string]any{"f": func() {}}} }, false,
			"cannot be encoded"},
	} {
		c := newCall()
		test.arrange(c)
		_, err := c.wired.Provider.Bind(t.Context(), provider.Binding{ID: "b", Secret: []byte("canary"),
			Instance: provider.Instance{ID: "i-1"}})
		passes(t, name, test.unanswered, err)
		expect.Never(t, name+": the error", fmt.Sprint(err), "10.0.0.1", "canary")
		expect.Says(t, name+": the log", c.log.String(), test.logged)
		expect.Never(t, name+": the log", c.log.String(), "canary")
	}
}

// The call inside ends before the one outside; what comes too late begins nothing.
func TestDeadlines(t *testing.T) {
	c := newCall()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	expect.Get(c.wired.Provider.Provision(ctx, provider.Instance{}))(t)
	outside, _ := ctx.Deadline()
	if inside, ok := c.ctx.Deadline(); !ok || !inside.Equal(outside.Add(-time.Second)) {
		t.Errorf("the call inside ends at %v, the one outside at %v", inside, outside)
	}
	c = newCall()
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := c.wired.Provider.Provision(ctx, provider.Instance{})
	passes(t, "too late", true, err)
	expect.Same(t, "the provider was told", nil, c.got)
}

// A call that this version does not understand begins nothing.
func TestUnknownCalls(t *testing.T) {
	for name, payload := range map[string]string{
		"NoJSON": `canary`, "Empty": ``, "Null": `null`, "Two": `{} {}`,
		"Version":  `{"version":2,"provider":"told","verb":"list"}`,
		"Member":   `{"version":1,"provider":"told","verb":"list","canary":1}`,
		"Deep":     `{"version":1,"provider":"told","verb":"provision","instance":{"canary":1}}`,
		"Verb":     `{"version":1,"provider":"told","verb":"drop"}`,
		"Lacking":  `{"version":1,"provider":"told","verb":"provision","binding":{}}`,
		"Provider": `{"version":1,"provider":"other","verb":"list"}`,
	} {
		var log bytes.Buffer
		p := &told{}
		out, err := served(wired.Of(p), slog.New(slog.NewTextHandler(&log, nil))).Invoke(t.Context(), []byte(payload))
		var a remote.Answer
		if err != nil || remote.Decode(out, &a) != nil || a.Fault == nil || a.Fault.Unanswered || p.got != nil {
			t.Errorf("%s: answer %s, error %v; the provider was told %v", name, out, err, p.got)
		}
		expect.Never(t, name+": what is answered and logged", log.String()+string(out), "canary")
	}
}

// The calls about restored targets go through unchanged.
func TestReconciler(t *testing.T) {
	c := newCall()
	r := c.wired.Reconciler
	c.epoch = target.Epoch{Line: "one", Count: 1 << 60}
	was := target.Epoch{Line: "zero", Count: 9, Mark: "m"}
	target, epoch, err := r.Survey(t.Context(), "east")
	expect.OK(t, err)
	expect.Same(t, "it is", provider.Target{Name: "east", Identity: "s-1"}, target)
	expect.Same(t, "it is at", c.epoch, epoch)
	expect.Same(t, "how to reach it was looked up for", "east", c.asked[0].Name)
	expect.Same(t, "it is now at", c.epoch, expect.Get(r.Advance(t.Context(), target, epoch, was))(t))
	c.page, c.next = []provider.Holding{{Name: "lsb1", Epoch: epoch}}, "2"
	page, next, err := r.Holdings(t.Context(), "east", "1")
	expect.Same(t, "a page", []any{c.page, "2", nil}, []any{page, next, err})
	want := []any{"survey", "east", "advance", fmt.Sprint(target, epoch, was), "holdings", "east 1"}
	expect.Same(t, "told", want, c.got)
}

// A trouble is logged where operators look, and once.
func TestTroublesAreSaidOutside(t *testing.T) {
	c := newCall()
	for _, late := range []error{nil, context.DeadlineExceeded} {
		c.err = &target.Trouble{Kind: target.Full, Target: "east", Message: "make room", Err: late}
		_, err := c.wired.Provider.Provision(t.Context(), provider.Instance{ID: "i"})
		got, _ := errors.AsType[*target.Trouble](err)
		expect.Same(t, "it says", &target.Trouble{Kind: target.Full, Target: "east", Message: "make room"}, got,
			cmpopts.IgnoreFields(target.Trouble{}, "Err"))
		passes(t, "a trouble", late != nil, err)
	}
	expect.Same(t, "what is said inside too", "", c.log.String())
}

// The client promises no more than the provider does outside of a VPC.
func TestItDoesWhatTheProviderDoes(t *testing.T) {
	for does, outside := range map[bool]provider.Provider{true: &told{}, false: struct{ provider.Provider }{}} {
		w := remote.New(nil, remote.Options{Outside: wired.Of(outside)})
		got := []bool{w.Inventory != nil, w.Refuser != nil, w.Quarantiner != nil, w.Adopter != nil, w.Reconciler != nil}
		expect.Same(t, "abilities beside the steps", []bool{does, does, does, does, does}, got)
	}
}

// located is a provider inside whose targets are proven by its caller.
type located struct {
	*told
	account string
}

func (p located) Identify(context.Context, provider.Instance) (provider.Target, error) {
	return provider.Target{Name: "east", Identity: p.account}, nil
}

// The function inside proves the target of each step on its own way there: at another
// account, and before the account is known, it calls nothing.
func TestTargetsAreProvenInside(t *testing.T) {
	at := func(identity string) provider.Target { return provider.Target{Name: "east", Identity: identity} }
	for name, do := range map[string]func(w wired.Provider, t provider.Target) (provider.Status, error){
		"Provision": func(w wired.Provider, at provider.Target) (provider.Status, error) {
			return w.Provider.Provision(t.Context(), provider.Instance{Target: at})
		},
		"Unbind": func(w wired.Provider, at provider.Target) (provider.Status, error) {
			return w.Provider.Unbind(t.Context(), provider.Binding{Instance: provider.Instance{Target: at}})
		},
		"Quarantine": func(w wired.Provider, at provider.Target) (provider.Status, error) {
			return provider.Status{}, w.Quarantiner.Quarantine(t.Context(), provider.Holding{Target: at})
		},
	} {
		c := newCall()
		c.told.status = provider.Status{Done: true}
		c.inside = located{&c.told, "one"}
		st, err := do(c.wired, at(""))
		if err != nil || st.Done || c.got != nil || name != "Quarantine" && (st.Target == nil || *st.Target != at("one")) {
			t.Errorf("%s, before the account is known: %v %v, told %v", name, st, err, c.got)
		}
		passes(t, name+", made at another account", false, expect.Err(do(c.wired, at("two"))))
		expect.Same(t, name+", made at another account, is told", nil, c.got)
		if _, err := do(c.wired, at("one")); err != nil || c.got == nil {
			t.Errorf("%s, at its own account: %v, told %v", name, err, c.got)
		}
	}
}

// No bytes whatever break the function inside, or have it answer what the client does not take.
func FuzzHandler(f *testing.F) {
	for _, seed := range []string{
		`{"version":1,"provider":"told","verb":"bind","binding":{"secret":"AA=="}}`,
		`{"version":1,"provider":"told","verb":"list","until":"2030-01-02T03:04:05Z"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		p := &told{status: provider.Status{Done: true}}
		h := served(wired.Of(p), slog.New(slog.DiscardHandler))
		out, err := h.Invoke(t.Context(), payload)
		var a remote.Answer
		if err != nil || remote.Decode(out, &a) != nil || a.Version != remote.Version {
			t.Fatalf("answer %s, error %v", out, err)
		}
		if (a.Status == nil) == (p.got != nil && p.got[0] != "list") {
			t.Errorf("the provider was told %v, and the answer is %s", p.got, out)
		}
	})
}

// No answer whatever breaks the client; it fails an operation only by a failure.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"version":1,"status":{"done":true,"grant":{"credentials":{"a":1.50}}}}`))
	f.Add([]byte(`{"version":1,"failure":{"message":"no"}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		w := remote.New(invoke(func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
			return &lambda.InvokeOutput{Payload: payload}, nil
		}), remote.Options{Outside: wired.Of(&told{})})
		_, err := w.Provider.Bind(t.Context(), provider.Binding{})
		if _, failed := errors.AsType[*provider.Failure](err); failed && !bytes.Contains(bytes.ToLower(payload), []byte(`failure`)) {
			t.Errorf("%q fails the operation: %v", payload, err)
		}
	})
}
