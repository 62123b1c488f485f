package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/google/go-cmp/cmp"

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
	_, err := p.step(ctx, "refuses", in)
	return err
}

func (p *told) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.step(ctx, "bind", b)
}

func (p *told) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return p.step(ctx, "unbind", b)
}

func (p *told) List(ctx context.Context, cursor string) ([]provider.Holding, string, error) {
	_, err := p.step(ctx, "list", cursor)
	return p.page, p.next, err
}

func (p *told) Quarantine(ctx context.Context, h provider.Holding) error {
	_, err := p.step(ctx, "quarantine", h)
	return err
}

func (p *told) Release(ctx context.Context, h provider.Holding) error {
	_, err := p.step(ctx, "release", h)
	return err
}

func (p *told) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) error {
	_, err := p.step(ctx, "adopt", adoption{h, former})
	return err
}

type adoption struct {
	Holding provider.Holding
	Former  provider.Tags
}

func (p *told) Survey(ctx context.Context, target string) (provider.Target, target.Epoch, error) {
	_, err := p.step(ctx, "survey", target)
	return provider.Target{Name: target, Identity: "s-1"}, p.epoch, err
}

func (p *told) Holdings(ctx context.Context, target, cursor string) ([]provider.Holding, string, error) {
	_, err := p.step(ctx, "holdings", target+" "+cursor)
	return p.page, p.next, err
}

func (p *told) Advance(ctx context.Context, t provider.Target, now, was target.Epoch) (target.Epoch, error) {
	_, err := p.step(ctx, "advance", fmt.Sprint(t, now, was))
	return p.epoch, err
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
	c.wired = remote.New(invoke(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
		out, err := handler.Invoke(ctx, in.Payload)
		return &lambda.InvokeOutput{Payload: out}, err
	}), remote.Options{Provider: "told", Outside: wired.Of(&c.told), Reach: remote.Reach{LookUp: reach}})
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

// Every field of the contract arrives, in both directions: also one that is added tomorrow.
func TestEverythingTravels(t *testing.T) {
	in, b, h := filled[provider.Instance](t), filled[provider.Binding](t), filled[provider.Holding](t)
	status := filled[provider.Status](t)
	for verb, c := range map[string]struct {
		sent any
		step func(w wired.Provider, ctx context.Context) (provider.Status, error)
	}{
		"provision": {in, func(w wired.Provider, ctx context.Context) (provider.Status, error) {
			return w.Provider.Provision(ctx, in)
		}},
		"update": {in, func(w wired.Provider, ctx context.Context) (provider.Status, error) {
			return w.Provider.Update(ctx, in)
		}},
		"deprovision": {in, func(w wired.Provider, ctx context.Context) (provider.Status, error) {
			return w.Provider.Deprovision(ctx, in)
		}},
		"bind":   {b, func(w wired.Provider, ctx context.Context) (provider.Status, error) { return w.Provider.Bind(ctx, b) }},
		"unbind": {b, func(w wired.Provider, ctx context.Context) (provider.Status, error) { return w.Provider.Unbind(ctx, b) }},
	} {
		for what, sent := range map[string]any{"Full": c.sent, "Empty": reflect.Zero(reflect.TypeOf(c.sent)).Interface()} {
			t.Run(verb+"/"+what, func(t *testing.T) {
				call := newCall()
				if call.status = status; what == "Empty" {
					call.status = provider.Status{}
					in, b, h = provider.Instance{}, provider.Binding{}, provider.Holding{}
					defer func() {
						in, b, h = filled[provider.Instance](t), filled[provider.Binding](t), filled[provider.Holding](t)
					}()
				}
				got := expect.Get(c.step(call.wired, t.Context()))(t)
				expect.Same(t, "what the provider inside is told", []any{verb, sent}, call.got)
				expect.Same(t, "what it answers", call.status, got)
			})
		}
	}
	call := newCall()
	call.page, call.next = filled[[]provider.Holding](t), "canary <next>"
	page, next, err := call.wired.Inventory.List(t.Context(), "canary <cursor>")
	expect.Same(t, "a page", []any{call.page, call.next, nil}, []any{page, next, err})
	expect.Same(t, "what is asked for a page", []any{"list", "canary <cursor>"}, call.got)
	for verb, do := range map[string]func(provider.Quarantiner) error{
		"quarantine": func(q provider.Quarantiner) error { return q.Quarantine(t.Context(), h) },
		"release":    func(q provider.Quarantiner) error { return q.Release(t.Context(), h) },
	} {
		call = newCall()
		expect.OK(t, do(call.wired.Quarantiner))
		expect.Same(t, verb+" is told", []any{verb, h}, call.got)
	}
	call = newCall()
	former := provider.Tags{Broker: "b", Platform: "p", Instance: "i", Incarnation: "n",
		Origin: provider.Origin{Instance: "o", Incarnation: "m"}}
	expect.OK(t, call.wired.Adopter.Adopt(t.Context(), h, former))
	expect.Same(t, "adopt is told", []any{"adopt", adoption{h, former}}, call.got)
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
		var got *provider.Failure
		if !errors.As(err, &got) {
			t.Fatalf("not a failure: %v", err)
		}
		expect.Same(t, "the failure", &want, got)
		if c.log.Len() > 0 {
			t.Errorf("logged: %s", &c.log)
		}
	}
}

// Whether a deletion is refused is asked inside, too: a refusal and all that the
// question needs arrive. Where the provider inside refuses none, nor does this one.
func TestRefusesInside(t *testing.T) {
	in := filled[provider.Instance](t)
	refuses := func(c *call) error { return c.wired.Refuser.Refuses(t.Context(), in) }
	c := newCall()
	if err := refuses(c); err != nil {
		t.Errorf("what is not refused: %v", err)
	}
	expect.Same(t, "what is asked", []any{"refuses", in}, c.got)
	want := &provider.Failure{Message: "it is not empty", InstanceUsable: new(true), Untouched: true}
	c.err = want
	got, ok := errors.AsType[*provider.Failure](refuses(c))
	if d := cmp.Diff(want, got); !ok || d != "" {
		t.Errorf("a refusal: -want +got:\n%s", d)
	}
	if c.err = errors.New("canary: no route to db-2"); !passing(refuses(c)) {
		t.Error("a fault is taken for an answer")
	}
	c = newCall()
	c.inside = struct{ provider.Provider }{&c.told} // which is no Refuser
	if err := refuses(c); err != nil || c.got != nil {
		t.Errorf("a provider that refuses nothing was told %v: %v", c.got, err)
	}
}

// A target that does not answer hides none of the others.
func TestAPageBesideAnError(t *testing.T) {
	for name, want := range map[string]struct {
		page []provider.Holding
		next string
	}{
		"Both":  {[]provider.Holding{{Name: "thing"}}, "further"},
		"Next":  {nil, "further"},
		"Page":  {[]provider.Holding{{Name: "thing"}}, ""},
		"Alone": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall()
			c.page, c.next, c.err = want.page, want.next, errors.New("canary: no route to db-2")
			page, next, err := c.wired.Inventory.List(t.Context(), "")
			if d := cmp.Diff(want.page, page); d != "" || next != want.next {
				t.Errorf("next %q, page -want +got:\n%s", next, d)
			}
			if !passing(err) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// The function inside is told how to reach the targets that a call names, and none for the inventory, which is of all.
func TestReach(t *testing.T) {
	here, there := provider.Target{Name: "here", Identity: "1"}, provider.Target{Name: "there"}
	restored := provider.Instance{Target: here, Source: &provider.Source{Target: there}}
	bound, held := provider.Binding{Instance: provider.Instance{Target: there}}, provider.Holding{Target: there}
	ordered := provider.Instance{Target: here}
	for name, test := range map[string]struct {
		call func(w wired.Provider) error
		want []provider.Target
	}{
		"Step": {
			func(w wired.Provider) error {
				_, err := w.Provider.Provision(t.Context(), ordered)
				return err
			}, []provider.Target{here},
		},
		"Restore": {
			func(w wired.Provider) error {
				_, err := w.Provider.Provision(t.Context(), restored)
				return err
			}, []provider.Target{here, there},
		},
		"Binding": {
			func(w wired.Provider) error { _, err := w.Provider.Bind(t.Context(), bound); return err }, []provider.Target{there},
		},
		"Inventory": {
			func(w wired.Provider) error { _, _, err := w.Inventory.List(t.Context(), ""); return err }, nil,
		},
		"Quarantine": {
			func(w wired.Provider) error { return w.Quarantiner.Quarantine(t.Context(), held) }, []provider.Target{there},
		},
		"Adopt": {
			func(w wired.Provider) error {
				return w.Adopter.Adopt(t.Context(), held, held.Tags)
			}, []provider.Target{there},
		},
		"Release": {
			func(w wired.Provider) error { return w.Quarantiner.Release(t.Context(), held) }, []provider.Target{there},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCall()
			expect.OK(t, test.call(c.wired))
			expect.Same(t, "targets", test.want, c.asked)
			if string(c.reached) != `{"password":"canary"}` {
				t.Errorf("the provider inside was opened with %s", c.reached)
			}
		})
	}
	failing := remote.New(nil, remote.Options{Provider: "told", Outside: wired.Of(&told{}), Reach: remote.Reach{
		LookUp: func(context.Context, []provider.Target) (json.RawMessage, error) {
			return nil, errors.New("no such secret")
		},
	}})
	if _, err := failing.Provider.Provision(t.Context(), provider.Instance{}); !passing(err) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a target that cannot be looked up: %v", err)
	}
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
		w := remote.New(invoke(func(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
			out, err := handler.Invoke(ctx, in.Payload)
			return &lambda.InvokeOutput{Payload: out}, err
		}), remote.Options{Provider: "told", Outside: wired.Of(&told{}), Reach: remote.Reach{
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

// passing reports whether an error has the step repeated.
func passing(err error) bool {
	var f *provider.Failure
	return err != nil && !errors.As(err, &f)
}

// A fault between the two functions passes. A call that may still run inside counts as one
// whose time was up: no other call may begin meanwhile.
func TestFaultsPass(t *testing.T) {
	answered := func(payload string) invoke {
		return func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
			return &lambda.InvokeOutput{Payload: []byte(payload)}, nil
		}
	}
	failed := func(err error) invoke {
		return func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error) { return nil, err }
	}
	for name, test := range map[string]struct {
		invoker    invoke
		unanswered bool
	}{
		"Throttled": {failed(fmt.Errorf("operation error: %w", refusal())), false},
		"Cut":       {failed(errors.New("connection reset")), true},
		"TimeIsUp":  {failed(context.DeadlineExceeded), true},
		"Crashed": {func(context.Context, *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
			return &lambda.InvokeOutput{FunctionError: new("Unhandled"), Payload: []byte(`{"errorMessage":"canary"}`)}, nil
		}, true},
		"NoAnswer":     {answered(``), false},
		"OtherVersion": {answered(`{"version":2,"status":{"done":true}}`), false},
		"NewerMember":  {answered(`{"version":1,"status":{"done":true,"canary":1}}`), false},
		"Two":          {answered(`{"version":1,"status":{"done":true}}{}`), false},
		"OtherAnswer":  {answered(`{"version":1,"page":{"holdings":null}}`), false},
		"Nothing":      {answered(`{"version":1}`), false},
		"Fault":        {answered(`{"version":1,"fault":{"what":"it says"}}`), false},
		"FaultLate":    {answered(`{"version":1,"fault":{"what":"it says","unanswered":true}}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			w := remote.New(test.invoker, remote.Options{Provider: "told", Outside: wired.Of(&told{})})
			st, err := w.Provider.Provision(t.Context(), provider.Instance{})
			if !passing(err) || errors.Is(err, context.DeadlineExceeded) != test.unanswered || !reflect.ValueOf(st).IsZero() {
				t.Errorf("got %v and error %v", st, err)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error repeats what the function said: %v", err)
			}
			if name == "OtherAnswer" {
				return
			}
			if page, next, err := w.Inventory.List(t.Context(), ""); !passing(err) || page != nil || next != "" {
				t.Errorf("a page: got %v, %q and error %v", page, next, err)
			}
		})
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
		t.Run(name, func(t *testing.T) {
			c := newCall()
			test.arrange(c)
			_, err := c.wired.Provider.Bind(t.Context(), provider.Binding{ID: "b", Secret: []byte("canary"),
				Instance: provider.Instance{ID: "i-1"}})
			if !passing(err) || errors.Is(err, context.DeadlineExceeded) != test.unanswered {
				t.Errorf("error %v", err)
			}
			expect.Never(t, "the error", err.Error(), "10.0.0.1", "canary")
			if log := c.log.String(); !strings.Contains(log, test.logged) || strings.Contains(log, "canary") {
				t.Errorf("log: %s", log)
			}
		})
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
	if _, err := c.wired.Provider.Provision(ctx, provider.Instance{}); !passing(err) || !errors.Is(err, context.DeadlineExceeded) || c.got != nil {
		t.Errorf("too late: error %v, and the provider was told %v", err, c.got)
	}
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
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p := &told{}
			h := remote.NewHandler(map[string]remote.Open{"told": func(json.RawMessage) (wired.Provider, error) {
				return wired.Of(p), nil
			}}, slog.New(slog.NewTextHandler(&log, nil)))
			out, err := h.Invoke(t.Context(), []byte(payload))
			var a remote.Answer
			if err != nil || remote.Decode(out, &a) != nil || a.Fault == nil || a.Fault.Unanswered || p.got != nil {
				t.Errorf("answer %s, error %v; the provider was told %v", out, err, p.got)
			}
			expect.Never(t, "what is answered and logged", log.String()+string(out), "canary")
		})
	}
}

// The calls about restored targets go through unchanged.
func TestReconciler(t *testing.T) {
	c := newCall()
	r := c.wired.Reconciler
	c.epoch = target.Epoch{Line: "one", Count: 1 << 60}
	was := target.Epoch{Line: "zero", Count: 9, Mark: "m"}
	target, epoch, err := r.Survey(t.Context(), "east")
	if want := (provider.Target{Name: "east", Identity: "s-1"}); err != nil || target != want || epoch != c.epoch {
		t.Errorf("it is %v, at %v: %v", target, epoch, err)
	}
	if c.asked[0].Name != "east" {
		t.Errorf("how to reach %v was looked up", c.asked)
	}
	if next, err := r.Advance(t.Context(), target, epoch, was); err != nil || next != c.epoch {
		t.Errorf("it is at %v now: %v", next, err)
	}
	c.page, c.next = []provider.Holding{{Name: "lsb1", Epoch: epoch}}, "2"
	page, next, err := r.Holdings(t.Context(), "east", "1")
	if d := cmp.Diff(c.page, page); d != "" || next != "2" || err != nil {
		t.Errorf("next %q, %v, -want +got:\n%s", next, err, d)
	}
	want := []any{"survey", "east", "advance", fmt.Sprint(target, epoch, was), "holdings", "east 1"}
	expect.Same(t, "told", want, c.got)
}

// A trouble is logged where operators look, and once.
func TestTroublesAreSaidOutside(t *testing.T) {
	c := newCall()
	for _, late := range []error{nil, context.DeadlineExceeded} {
		c.err = &target.Trouble{Kind: target.Full, Target: "east", Message: "make room", Err: late}
		_, err := c.wired.Provider.Provision(t.Context(), provider.Instance{ID: "i"})
		var got *target.Trouble
		if !errors.As(err, &got) || got.Kind != target.Full || got.Target != "east" || got.Message != "make room" || !passing(err) {
			t.Errorf("it says %v", err)
		}
		if errors.Is(err, context.DeadlineExceeded) != (late != nil) {
			t.Errorf("%v: may it still land?", err)
		}
	}
	if c.log.Len() > 0 {
		t.Errorf("it is said inside too: %s", &c.log)
	}
}

// The client promises no more than the provider does outside of a VPC.
func TestItDoesWhatTheProviderDoes(t *testing.T) {
	whole := remote.New(nil, remote.Options{Outside: wired.Of(&told{})})
	if whole.Inventory == nil || whole.Refuser == nil || whole.Quarantiner == nil || whole.Adopter == nil || whole.Reconciler == nil {
		t.Errorf("of a provider that does all: %+v", whole)
	}
	least := remote.New(nil, remote.Options{Outside: wired.Of(struct{ provider.Provider }{})})
	if least.Inventory != nil || least.Refuser != nil || least.Quarantiner != nil || least.Adopter != nil || least.Reconciler != nil {
		t.Errorf("of one that does nothing but its steps: %+v", least)
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
		if _, err := do(c.wired, at("two")); !passing(err) || c.got != nil {
			t.Errorf("%s, made at another account: %v, told %v", name, err, c.got)
		}
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
		h := remote.NewHandler(map[string]remote.Open{"told": func(json.RawMessage) (wired.Provider, error) {
			return wired.Of(p), nil
		}}, slog.New(slog.DiscardHandler))
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
		if err != nil && !passing(err) && !bytes.Contains(bytes.ToLower(payload), []byte(`failure`)) {
			t.Errorf("%q fails the operation: %v", payload, err)
		}
	})
}
