package demo_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/files"
	"github.com/longshore/longshore/internal/test/demotest"
	"github.com/longshore/longshore/internal/test/providertest"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)

// folder makes a folder, in memory where the system has a place for that: these
// tests sync thousands of times and prove nothing about the disk.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "longshore-demo-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// open opens a folder of things.
func open(t testing.TB, dir string) *files.Folder {
	t.Helper()
	f, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// overFiles is a world in a folder of its own.
func overFiles(t *testing.T) func(testing.TB) demo.Things {
	dir := folder(t)
	return func(t testing.TB) demo.Things { return open(t, dir) }
}

func TestConformanceOverFiles(t *testing.T) { demotest.Run(t, files.PageSize, overFiles) }

// What the race detector is for.
func TestTwoCallers(t *testing.T) {
	providertest.RunTwoCallers(t, demotest.Factory(files.PageSize, "broker", overFiles))
}

// The things that other tests use are as good.
func TestConformanceOverMemory(t *testing.T) {
	demotest.Run(t, demotest.MemoryPageSize, func(*testing.T) func(testing.TB) demo.Things {
		m := demotest.NewMemory()
		return func(testing.TB) demo.Things { return m }
	})
}

// A stand is a demo over a folder, with a clock.
type stand struct {
	*demo.Provider
	dir   string
	clock *providertest.Clock
	ops   int
}

const delay = 4 * time.Second

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{dir: folder(t), clock: providertest.NewClock(start)}
	s.reopen(t)
	return s
}

// reopen is a restart.
func (s *stand) reopen(t *testing.T) {
	t.Helper()
	s.Provider = demo.New(open(t, s.dir), demo.Options{Delay: delay, Now: s.clock.Now})
}

func (s *stand) op(kind provider.Kind) provider.Operation {
	s.ops++
	return provider.Operation{ID: fmt.Sprintf("op-%d", s.ops), Kind: kind, Started: s.clock.Now()}
}

func (s *stand) instance(parameters string) provider.Instance {
	op := s.op(provider.KindProvision)
	return provider.Instance{
		Platform: "platform-1", ID: "instance-1", Incarnation: op.ID, ServiceID: "service-1", PlanID: "plan-1",
		Operation: op, Parameters: json.RawMessage(parameters), Settings: map[string]any{},
	}
}

func (s *stand) binding(in provider.Instance, id, parameters string) provider.Binding {
	in.Operation = s.op(provider.KindBind)
	return provider.Binding{
		Instance: in, ID: id, Incarnation: in.Operation.ID, AppGUID: "app-1", Route: "app.example.com",
		Parameters: json.RawMessage(parameters), Secret: []byte("0123456789abcdef0123456789abcdef"),
	}
}

// as is in, in an operation of the kind.
func (s *stand) as(in provider.Instance, kind provider.Kind) provider.Instance {
	in.Operation = s.op(kind)
	return in
}

// step is one step of what in or b asks for.
func (s *stand) step(in provider.Instance, b *provider.Binding) providertest.Step {
	return func(ctx context.Context) (provider.Status, error) {
		switch in.Operation.Kind {
		case provider.KindProvision:
			return s.Provision(ctx, in)
		case provider.KindUpdate:
			return s.Update(ctx, in)
		case provider.KindDeprovision:
			return s.Deprovision(ctx, in)
		case provider.KindBind:
			b := *b
			b.Instance = in
			return s.Bind(ctx, b)
		default:
			b := *b
			b.Instance, b.Secret = in, nil
			return s.Unbind(ctx, b)
		}
	}
}

// must drives a step to a good end.
func (s *stand) must(t *testing.T, step providertest.Step) provider.Status {
	t.Helper()
	st, f := providertest.Drive(t, s.clock, step)
	if f != nil {
		t.Fatalf("failed: %s", f.Message)
	}
	return st
}

// prepared makes what an operation of the kind needs, without delays, and
// gives the arguments of that operation with these parameters and settings. A
// deletion is given no parameters: they are those of what it deletes.
func (s *stand) prepared(t *testing.T, kind provider.Kind, parameters string,
	settings map[string]any) (provider.Instance, *provider.Binding) {
	t.Helper()
	const quick = `{"delay_seconds":0}`
	in := s.instance(quick)
	b := s.binding(in, "binding-1", quick)
	if kind == provider.KindDeprovision {
		in.Parameters = json.RawMessage(parameters)
	}
	if kind != provider.KindProvision {
		providertest.Drive(t, s.clock, s.step(in, nil)) // it may be asked to fail
	}
	if kind == provider.KindBind || kind == provider.KindUnbind {
		b.Parameters = json.RawMessage(parameters)
	}
	if kind == provider.KindUnbind {
		providertest.Drive(t, s.clock, s.step(b.Instance, &b))
	}
	if in.Settings = settings; kind == provider.KindProvision || kind == provider.KindUpdate {
		in.Parameters = json.RawMessage(parameters)
	}
	switch kind {
	case provider.KindDeprovision, provider.KindUnbind:
		in.Parameters, b.Parameters, b.Instance.Parameters, b.Secret = nil, nil, nil, nil
		return s.as(in, kind), &b
	case provider.KindProvision:
		return in, nil
	case provider.KindBind:
		in.Operation = b.Instance.Operation
		return in, &b
	default:
		return s.as(in, kind), &b
	}
}

var kinds = []provider.Kind{
	provider.KindProvision, provider.KindUpdate, provider.KindDeprovision, provider.KindBind, provider.KindUnbind,
}

func TestDelays(t *testing.T) {
	cases := map[string]struct {
		reason      string
		synchronous bool
		parameters  string
		settings    map[string]any
		want        time.Duration
	}{
		"Usual":                {reason: "asynchronous work takes the usual delay", want: delay},
		"Synchronous":          {reason: "synchronous work is done at once", synchronous: true, want: 0},
		"Parameter":            {reason: "the user chooses", parameters: `{"delay_seconds":90}`, want: 90 * time.Second},
		"Fraction":             {reason: "also parts of a second", parameters: `{"delay_seconds":0.25}`, want: 250 * time.Millisecond},
		"Zero":                 {reason: "also none at all", parameters: `{"delay_seconds":0}`, want: 0},
		"SynchronousParameter": {reason: "also of synchronous work", synchronous: true, parameters: `{"delay_seconds":2}`, want: 2 * time.Second},
		"Plan":                 {reason: "the plan chooses", settings: map[string]any{"delay_seconds": 7}, want: 7 * time.Second},
		"PlanNumber": {reason: "in any number that a decoder gives", settings: map[string]any{"delay_seconds": json.Number("1.5")},
			want: 1500 * time.Millisecond},
		"PlanOverParameter": {reason: "what the operator fixed is final", parameters: `{"delay_seconds":1}`,
			settings: map[string]any{"delay_seconds": 7.0}, want: 7 * time.Second},
		"OtherParameters": {reason: "other parameters have no effect", parameters: `{"parameter1":1,"parameter2":"value"}`, want: delay},
	}
	for name, c := range cases {
		for _, kind := range kinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				s := newStand(t)
				in, b := s.prepared(t, kind, c.parameters, c.settings)
				in.Operation.Synchronous = c.synchronous
				began := s.clock.Now()
				s.must(t, s.step(in, b))
				if took := s.clock.Now().Sub(began); took != c.want {
					t.Errorf("%s: took %v, want %v", c.reason, took, c.want)
				}
			})
		}
	}
}

// The end is fixed at the first step: neither repetitions nor restarts move
// it, and each step says how far the work has come.
func TestProgress(t *testing.T) {
	s := newStand(t)
	in := s.instance(`{"delay_seconds":20}`)
	type look struct {
		Percent     int
		Description string
		After       time.Duration
		Done        bool
	}
	steps := []struct {
		advance time.Duration
		want    look
	}{
		{0, look{0, "Creating the instance, about 20 s left", 10 * time.Second, false}},
		{0, look{0, "Creating the instance, about 20 s left", 10 * time.Second, false}},
		{5 * time.Second, look{25, "Creating the instance, about 15 s left", 10 * time.Second, false}},
		{9500 * time.Millisecond, look{72, "Creating the instance, about 6 s left", 5500 * time.Millisecond, false}},
		{5490 * time.Millisecond, look{99, "Creating the instance, about 1 s left", 50 * time.Millisecond, false}},
		{-time.Hour, look{0, "Creating the instance, about 61 min left", 10 * time.Second, false}},
		{time.Hour + 10*time.Millisecond, look{100, "The instance is ready.", 0, true}},
		{time.Hour, look{100, "The instance is ready.", 0, true}},
	}
	for i, c := range steps {
		s.clock.Advance(c.advance)
		s.reopen(t)
		st, err := s.Provision(t.Context(), in)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if diff := cmp.Diff(c.want, look{st.Percent, st.Description, st.After, st.Done}); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
}

// The time that a deletion has left only shrinks, also while the bindings go one
// by one, each with a delay of its own.
func TestADeletionCountsDown(t *testing.T) {
	s := newStand(t)
	in := s.instance(`{"delay_seconds":25}`)
	s.must(t, s.step(in, nil))
	var bindings []provider.Binding
	for _, id := range []string{"binding-1", "binding-2"} {
		b := s.binding(in, id, `{"delay_seconds":7}`)
		s.must(t, s.step(b.Instance, &b))
		bindings = append(bindings, b)
	}
	in = s.as(in, provider.KindDeprovision)
	var told []string
	look := func(step func() (provider.Status, error)) {
		for range 20 {
			st, err := step()
			if err != nil {
				t.Fatal(err)
			}
			if st.Done {
				return
			}
			told = append(told, fmt.Sprintf("%d %% %s", st.Percent, st.Description))
			s.clock.Advance(st.After)
		}
		t.Fatal("it never ends")
	}
	for _, b := range bindings {
		b.Instance, b.Secret = in, nil
		look(func() (provider.Status, error) { return s.Unbind(t.Context(), b) })
	}
	look(func() (provider.Status, error) { return s.Deprovision(t.Context(), in) })
	want := []string{
		"0 % Deleting the bindings of the instance", "0 % Deleting the bindings of the instance",
		"0 % Deleting the instance, about 25 s left", "40 % Deleting the instance, about 15 s left", "80 % Deleting the instance, about 5 s left",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// Each operation has a delay of its own, and one that is repeated goes on.
func TestEachOperationHasItsOwnDelay(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	first := s.as(in, provider.KindUpdate)
	for _, op := range []provider.Instance{first, s.as(in, provider.KindUpdate), s.as(in, provider.KindDeprovision)} {
		began := s.clock.Now()
		s.must(t, s.step(op, nil))
		if took := s.clock.Now().Sub(began); took != delay {
			t.Errorf("%s took %v, want %v", op.Operation.Kind, took, delay)
		}
		if op.Operation.Kind == provider.KindUpdate {
			if st, err := s.Update(t.Context(), first); err != nil || !st.Done {
				t.Errorf("an update repeated after it ended: done %v, error %v", st.Done, err)
			}
		}
	}
}

// A late repetition of an update does not undo the one that came after it.
func TestLateUpdateChangesNothing(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	old, later := s.as(in, provider.KindUpdate), s.as(in, provider.KindUpdate)
	old.PlanID, later.PlanID = "plan-2", "plan-3"
	s.must(t, s.step(old, nil))
	s.must(t, s.step(later, nil))
	s.must(t, s.step(old, nil))
	if got := s.thing(t, provider.TagsOf(in)).Plan; got != "plan-3" {
		t.Errorf("plan %q, want %q", got, "plan-3")
	}
}

// An update waits for what is being done, and never resurrects what goes.
func TestUpdateMeetsOtherWork(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	if st, err := s.Provision(t.Context(), in); err != nil || st.Done {
		t.Fatalf("provision: done %v, error %v", st.Done, err)
	}
	up := s.as(in, provider.KindUpdate)
	st, err := s.Update(t.Context(), up)
	want := provider.Status{Description: "Waiting for other work on the instance, about 4 s left", After: delay}
	if diff := cmp.Diff(want, st); diff != "" || err != nil {
		t.Errorf("update while creating: error %v (-want +got):\n%s", err, diff)
	}
	b := s.binding(in, "binding-1", "")
	st, err = s.Bind(t.Context(), b)
	if diff := cmp.Diff(want, st); diff != "" || err != nil {
		t.Errorf("bind while creating: error %v (-want +got):\n%s", err, diff)
	}
	s.must(t, s.step(up, nil))
	if _, err := s.Deprovision(t.Context(), s.as(in, provider.KindDeprovision)); err != nil {
		t.Fatal(err)
	}
	for name, step := range map[string]providertest.Step{
		"Update": s.step(s.as(in, provider.KindUpdate), nil),
		"Bind":   s.step(s.as(in, provider.KindBind), &b),
	} {
		if _, f := providertest.Drive(t, s.clock, step); f == nil || !strings.Contains(f.Message, "being deleted") {
			t.Errorf("%s while deleting: failure %v", name, f)
		}
	}
}

// A provision that a failed deletion has overtaken, or that ended so long ago
// that it is not remembered, is answered by what stands there.
func TestLateProvision(t *testing.T) {
	overtaken := func(parameters string) (*stand, provider.Instance) {
		s := newStand(t)
		in := s.instance(parameters)
		d := s.as(in, provider.KindDeprovision)
		d.Operation.Synchronous = true
		d.Settings = map[string]any{"fail": "deprovision"}
		if _, err := s.Provision(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if _, f := providertest.Drive(t, s.clock, s.step(d, nil)); f == nil {
			t.Fatal("the deprovision did not fail")
		}
		return s, in
	}
	t.Run("Overtaken", func(t *testing.T) {
		s, in := overtaken("")
		began := s.clock.Now()
		s.must(t, s.step(in, nil))
		if took := s.clock.Now().Sub(began); took != delay {
			t.Errorf("took %v, want %v", took, delay)
		}
	})
	t.Run("OvertakenFailing", func(t *testing.T) {
		s, in := overtaken(`{"fail":true}`)
		if _, f := providertest.Drive(t, s.clock, s.step(in, nil)); f == nil {
			t.Error("a provision that was to fail succeeded")
		}
	})
	t.Run("LongAgo", func(t *testing.T) {
		s := newStand(t)
		in := s.instance("")
		s.must(t, s.step(in, nil))
		for range 20 {
			s.must(t, s.step(s.as(in, provider.KindUpdate), nil))
		}
		if st, err := s.Provision(t.Context(), in); err != nil || !st.Done {
			t.Errorf("done %v, error %v", st.Done, err)
		}
	})
}

// thing reads what is kept for the tags.
func (s *stand) thing(t *testing.T, tags provider.Tags) demo.Thing {
	t.Helper()
	thing, err := open(t, s.dir).Get(t.Context(), demotest.Name(tags))
	if err != nil {
		t.Fatal(err)
	}
	return thing
}

func TestFailures(t *testing.T) {
	all := func(v any) map[provider.Kind]any {
		m := map[provider.Kind]any{}
		for _, k := range kinds {
			m[k] = v
		}
		return m
	}
	named := func(setting func(provider.Kind) any) map[provider.Kind]any {
		m := map[provider.Kind]any{}
		for _, k := range kinds {
			m[k] = setting(k)
		}
		return m
	}
	cases := map[string]struct {
		reason     string
		parameters map[provider.Kind]any // the parameter "fail"
		settings   map[provider.Kind]any // the setting "fail"
		fails      []provider.Kind
	}{
		"Nothing": {reason: "nothing fails unasked"},
		"True": {
			reason:     "true is for the operation that it is given to, which a deletion never is",
			parameters: all(true),
			fails:      []provider.Kind{provider.KindProvision, provider.KindUpdate, provider.KindBind},
		},
		"False":  {reason: "false asks for nothing", parameters: all(false)},
		"Named":  {reason: "a kind by its name", parameters: named(func(k provider.Kind) any { return string(k) }), fails: kinds},
		"Update": {reason: "another kind by its name does not count", parameters: all("update"), fails: []provider.Kind{provider.KindUpdate}},
		"Plan": {reason: "the plan's list", settings: all([]any{"bind", "deprovision"}),
			fails: []provider.Kind{provider.KindBind, provider.KindDeprovision}},
		"PlanList":  {reason: "a list of strings", settings: all([]string{"unbind"}), fails: []provider.Kind{provider.KindUnbind}},
		"PlanOne":   {reason: "one kind alone", settings: named(func(k provider.Kind) any { return string(k) }), fails: kinds},
		"PlanEmpty": {reason: "no kind at all", settings: all([]any{})},
		"PlanStays": {reason: "the user cannot take the plan's back", settings: all([]any{"bind"}), parameters: all(false),
			fails: []provider.Kind{provider.KindBind}},
	}
	for name, c := range cases {
		for _, kind := range kinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				s := newStand(t)
				parameters, settings := "", map[string]any{}
				if v, ok := c.parameters[kind]; ok {
					body, err := json.Marshal(map[string]any{"fail": v})
					if err != nil {
						t.Fatal(err)
					}
					parameters = string(body)
				}
				if v, ok := c.settings[kind]; ok {
					settings["fail"] = v
				}
				in, b := s.prepared(t, kind, parameters, settings)
				began := s.clock.Now()
				_, f := providertest.Drive(t, s.clock, s.step(in, b))
				if took := s.clock.Now().Sub(began); took != delay {
					t.Errorf("took %v, want %v also for a failure", took, delay)
				}
				if want := slices.Contains(c.fails, kind); (f != nil) != want {
					t.Fatalf("%s: failure %v, want one: %v", c.reason, f, want)
				}
				if f == nil {
					return
				}
				if !strings.Contains(f.Message, "failed this "+string(kind)) || !strings.Contains(f.Message, `"fail"`) {
					t.Errorf("the message does not help: %s", f.Message)
				}
				flags := map[provider.Kind][2]*bool{
					provider.KindUpdate:      {new(true), new(true)},
					provider.KindDeprovision: {new(true), nil},
				}[kind]
				if diff := cmp.Diff(flags, [2]*bool{f.InstanceUsable, f.UpdateRepeatable}); diff != "" {
					t.Errorf("usable, repeatable (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Whoever asked for deletions to fail can still delete, with the same
// parameters: a deletion fails for one operation, however often it is repeated.
func TestDeletionFailsOnce(t *testing.T) {
	for _, kind := range []provider.Kind{provider.KindDeprovision, provider.KindUnbind} {
		for _, plan := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/Plan=%v", kind, plan), func(t *testing.T) {
				s := newStand(t)
				parameters, settings := fmt.Sprintf(`{"fail":%q}`, kind), map[string]any{}
				if plan {
					parameters, settings = "", map[string]any{"fail": []any{string(kind)}}
				}
				first, b := s.prepared(t, kind, parameters, settings)
				_, f := providertest.Drive(t, s.clock, s.step(first, b))
				if f == nil {
					t.Fatal("the first deletion did not fail")
				}
				if kind == provider.KindDeprovision {
					// Many operations later it is still remembered.
					up := first
					up.Settings, up.Parameters = nil, json.RawMessage(parameters)
					for range 20 {
						s.must(t, s.step(s.as(up, provider.KindUpdate), nil))
					}
				} else {
					for range 3 {
						s.reopen(t)
						_, err := s.step(first, b)(t.Context())
						again, ok := errors.AsType[*provider.Failure](err)
						if !ok || again.Message != f.Message {
							t.Errorf("the first deletion, repeated: %v, want %q", err, f.Message)
						}
					}
				}
				s.must(t, s.step(s.as(first, kind), b))
				page, _, err := s.List(t.Context(), "")
				want := map[provider.Kind]int{provider.KindDeprovision: 0, provider.KindUnbind: 1}[kind]
				if err != nil || len(page) != want {
					t.Errorf("left %+v, error %v; want %d", page, err, want)
				}
			})
		}
	}
}

// A deletion that overtakes the one that was to fail works.
func TestDeletionOvertakesFailingDeletion(t *testing.T) {
	s := newStand(t)
	first, _ := s.prepared(t, provider.KindDeprovision, `{"fail":"deprovision"}`, nil)
	if _, err := s.Deprovision(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	s.must(t, s.step(s.as(first, provider.KindDeprovision), nil))
}

func TestFailedUpdateLeavesInstance(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	before := s.thing(t, provider.TagsOf(in))
	up := s.as(in, provider.KindUpdate)
	up.PlanID, up.Parameters = "plan-2", json.RawMessage(`{"fail":true}`)
	if _, f := providertest.Drive(t, s.clock, s.step(up, nil)); f == nil {
		t.Fatal("the update did not fail")
	}
	after := s.thing(t, provider.TagsOf(in))
	if diff := cmp.Diff(before, after, cmpopts.IgnoreFields(demo.Thing{}, "Past", "Revision")); diff != "" {
		t.Errorf("the instance (-before +after):\n%s", diff)
	}
	up = s.as(up, provider.KindUpdate)
	up.Parameters = nil
	s.must(t, s.step(up, nil))
	if got := s.thing(t, provider.TagsOf(in)).Plan; got != "plan-2" {
		t.Errorf("plan %q, want %q", got, "plan-2")
	}
}

func TestRefusedParameters(t *testing.T) {
	const canary = "canary-in-the-wrong-place"
	const theDelay, theFail = `parameter "delay_seconds"`, `parameter "fail"`
	cases := map[string]struct {
		reason     string
		parameters string
		settings   map[string]any
		names      string
	}{
		"DelayString":    {"a delay is a number", `{"delay_seconds":"` + canary + `"}`, nil, theDelay},
		"DelayNegative":  {"no negative delay", `{"delay_seconds":-1}`, nil, theDelay},
		"DelayNull":      {"null is no number", `{"delay_seconds":null}`, nil, theDelay},
		"DelayHuge":      {"beyond a week", `{"delay_seconds":604801}`, nil, theDelay},
		"DelayOverflow":  {"beyond what a float holds", `{"delay_seconds":1e999}`, nil, theDelay},
		"FailUnknown":    {"a kind that there is", `{"fail":"` + canary + `"}`, nil, theFail},
		"FailNumber":     {"no number", `{"fail":1}`, nil, theFail},
		"FailList":       {"no list", `{"fail":["bind"]}`, nil, theFail},
		"NotAnObject":    {"an object", `["` + canary + `"]`, nil, "not a JSON object"},
		"NotJSON":        {"JSON", `{"` + canary, nil, "not a JSON object"},
		"PlanDelay":      {"the operator's mistake is named too", "", map[string]any{"delay_seconds": canary}, `setting "delay_seconds"`},
		"PlanFail":       {"an unknown kind in the plan", "", map[string]any{"fail": []any{canary}}, `setting "fail"`},
		"PlanFailNumber": {"no list in the plan", "", map[string]any{"fail": 1}, `setting "fail"`},
	}
	for name, c := range cases {
		for _, kind := range kinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				s := newStand(t)
				in, b := s.prepared(t, kind, c.parameters, c.settings)
				if kind == provider.KindDeprovision || kind == provider.KindUnbind {
					// Nothing stands in the way of a deletion.
					s.must(t, s.step(in, b))
					return
				}
				began := s.clock.Now()
				_, f := providertest.Drive(t, s.clock, s.step(in, b))
				if f == nil || !strings.Contains(f.Message, c.names) {
					t.Fatalf("%s: failure %v, want one that names %s", c.reason, f, c.names)
				}
				if strings.Contains(f.Message, canary) {
					t.Error("the message repeats a value")
				}
				if !s.clock.Now().Equal(began) {
					t.Error("it took time")
				}
				if kind == provider.KindUpdate && (f.InstanceUsable == nil || !*f.InstanceUsable) {
					t.Error("the instance is not said to be usable")
				}
				for _, h := range s.list(t) {
					if kind == provider.KindProvision || h.Tags.Binding != "" {
						t.Errorf("something was made: %+v", h)
					}
				}
			})
		}
	}
}

func (s *stand) list(t *testing.T) []provider.Holding {
	t.Helper()
	page, next, err := s.List(t.Context(), "")
	if err != nil || next != "" {
		t.Fatalf("listing: next %q, error %v", next, err)
	}
	return page
}

func TestGrants(t *testing.T) {
	cases := map[string]struct {
		reason     string
		grant      any
		app, route string
		want       provider.Grant // without credentials
		plain      bool           // whether it has credentials
	}{
		"Plain": {reason: "credentials unless the plan says otherwise", app: "app-1", route: "app.example.com", plain: true},
		"Volume": {
			reason: "a mount in the final form (BIND-34)", grant: "volume", app: "app-1",
			want: provider.Grant{VolumeMounts: []provider.VolumeMount{{
				Driver:       "longshore-demo",
				ContainerDir: "/var/longshore/instance-iqsjuncxdpt76fubatuhmbt3ne",
				Mode:         "rw",
				DeviceType:   "shared",
				Device: provider.VolumeDevice{
					VolumeID:    "longshore-demo-instance-iqsjuncxdpt76fubatuhmbt3ne",
					MountConfig: map[string]any{"source": "demo://longshore-demo-instance-iqsjuncxdpt76fubatuhmbt3ne.demo.longshore.example/volume"},
				},
			}}},
		},
		"Route": {
			reason: "where to forward to, if there is a route (BIND-32)", grant: "route", route: "app.example.com",
			want: provider.Grant{RouteServiceURL: "https://longshore-demo-instance-iqsjuncxdpt76fubatuhmbt3ne.demo.longshore.example/"},
		},
		"NoRoute": {reason: "nothing to forward", grant: "route", app: "app-1", plain: true},
		"Syslog": {
			reason: "a drain for an application (BIND-31)", grant: "syslog", app: "app-1",
			want: provider.Grant{SyslogDrainURL: "syslog-tls://longshore-demo-instance-iqsjuncxdpt76fubatuhmbt3ne.demo.longshore.example:6514"},
		},
		"SyslogKey": {reason: "a service key has no logs", grant: "syslog", plain: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			in := s.instance("")
			if c.grant != nil {
				in.Settings["grant"] = c.grant
			}
			s.must(t, s.step(in, nil))
			b := s.binding(in, "binding-1", "")
			b.AppGUID, b.Route = c.app, c.route
			got := s.must(t, s.step(b.Instance, &b)).Grant
			if diff := cmp.Diff(c.want, *got, cmpopts.IgnoreFields(provider.Grant{}, "Credentials")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if got.Credentials == nil {
				t.Error("credentials are not an object")
			}
			if plain := len(got.Credentials) > 0; plain != c.plain {
				t.Errorf("%s: has credentials: %v, want %v", c.reason, plain, c.plain)
			}
		})
	}
}

// BIND-27, ROT-09: credentials end by themselves, and a successor's later.
func TestCredentialsExpire(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	in.Settings = map[string]any{"valid_days": 2}
	s.must(t, s.step(in, nil))
	b := s.binding(in, "binding-1", "")
	began := b.Instance.Operation.Started
	grant := s.must(t, s.step(b.Instance, &b)).Grant
	if want := began.Add(48 * time.Hour).Truncate(time.Second); !grant.ExpiresAt.Equal(want) {
		t.Errorf("expires at %v, want %v", grant.ExpiresAt, want)
	}
	if want := began.Add(36 * time.Hour).Truncate(time.Second); !grant.RenewBefore.Equal(want) {
		t.Errorf("renew before %v, want %v", grant.RenewBefore, want)
	}
	if again := s.must(t, s.step(b.Instance, &b)).Grant; !again.ExpiresAt.Equal(grant.ExpiresAt) {
		t.Errorf("a repeated step gave %v", again.ExpiresAt)
	}
	s.clock.Advance(grant.ExpiresAt.Sub(s.clock.Now()) - time.Second)
	if !demotest.Accepts(t, s.Provider, grant) {
		t.Error("refused before its time")
	}
	s.clock.Advance(time.Second)
	if demotest.Accepts(t, s.Provider, grant) {
		t.Error("accepted after its time")
	}
	for name, days := range map[string]any{"Zero": 0, "Negative": -1, "TooLong": 3651, "Text": "30"} {
		b.Instance.Settings = map[string]any{"valid_days": days}
		if _, f := providertest.Drive(t, s.clock, s.step(b.Instance, &b)); f == nil || !strings.Contains(f.Message, "valid_days") {
			t.Errorf("%s: answered %v", name, f)
		}
	}
}

func TestCredentials(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	b := s.binding(in, "binding-1", "")
	grant := s.must(t, s.step(b.Instance, &b)).Grant
	instance, binding := demotest.Name(provider.TagsOf(in)), demotest.Name(provider.BindingTagsOf(b))
	password, _ := grant.Credentials["password"].(string)
	if len(password) != 32 {
		t.Errorf("the password has %d characters, want 32", len(password))
	}
	want := map[string]any{
		"username": binding,
		"password": password,
		"instance": instance,
		"uri":      fmt.Sprintf("demo://%s:%s@%s.demo.longshore.example/", binding, password, instance),
	}
	if diff := cmp.Diff(want, grant.Credentials); diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	if _, err := url.Parse(want["uri"].(string)); err != nil {
		t.Error(err)
	}

	tries := map[string]struct {
		reason             string
		username, password string
		want               bool
	}{
		"Right":         {"the credentials open the service", binding, password, true},
		"WrongPassword": {"another password does not", binding, password + "x", false},
		"NoPassword":    {"nor none", binding, "", false},
		"Instance":      {"an instance is no user", instance, password, false},
		"Unknown":       {"nor is who was never bound", "longshore-demo-binding-a", password, false},
		"NoName":        {"a user name that no thing can have", "../" + binding, password, false},
	}
	for name, c := range tries {
		t.Run(name, func(t *testing.T) {
			got, err := s.Accepts(t.Context(), c.username, c.password)
			if err != nil || got != c.want {
				t.Errorf("%s: accepted %v, error %v; want %v", c.reason, got, err, c.want)
			}
		})
	}

	// A second binding with the same secret has another password all the same.
	other := s.binding(in, "binding-2", "")
	if s.must(t, s.step(other.Instance, &other)).Grant.Credentials["password"] == password {
		t.Error("two bindings have the same password")
	}
	// Credentials that were handed out are not changed under their holder.
	b.Secret = []byte("another secret, of 32 bytes too.")
	if _, f := providertest.Drive(t, s.clock, s.step(b.Instance, &b)); f == nil {
		t.Error("a binding was bound again with another secret")
	}
}

// What is kept tells neither parameters nor secrets nor passwords.
func TestNothingSecretIsKept(t *testing.T) {
	const canary = "canary-of-the-user"
	s := newStand(t)
	in := s.instance(`{"note":"` + canary + `"}`)
	s.must(t, s.step(in, nil))
	b := s.binding(in, "binding-1", `{"note":"`+canary+`"}`)
	password := s.must(t, s.step(b.Instance, &b)).Grant.Credentials["password"].(string)
	up := s.as(in, provider.KindUpdate)
	up.Parameters = json.RawMessage(`{"note":"another ` + canary + `"}`)
	if _, err := s.Update(t.Context(), up); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for what, secret := range map[string]string{
			"a parameter": canary, "a password": password, "a secret": string(b.Secret),
			"a secret in base64": base64.StdEncoding.EncodeToString(b.Secret),
		} {
			if strings.Contains(string(body), secret) {
				t.Errorf("%s holds %s", e.Name(), what)
			}
		}
	}
}

func TestBindRefusals(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	unknownGrant := s.binding(in, "binding-1", "")
	unknownGrant.Instance.Settings = map[string]any{"grant": "gold"}
	noInstance := s.binding(in, "binding-1", "")
	noInstance.Instance.ID = "instance-2"
	anotherInstance := s.binding(in, "binding-1", "")
	anotherInstance.Instance.Incarnation = "another"
	noSecret := s.binding(in, "binding-1", "")
	noSecret.Secret = nil

	cases := map[string]struct {
		reason  string
		b       provider.Binding
		failure bool // or a plain error
	}{
		"UnknownGrant":    {"a plan that asks for what there is not", unknownGrant, true},
		"NoInstance":      {"an instance that does not exist", noInstance, true},
		"AnotherInstance": {"an instance of another incarnation", anotherInstance, true},
		"NoSecret":        {"a caller's mistake is no failure of the operation", noSecret, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := s.Bind(t.Context(), c.b)
			if _, failure := errors.AsType[*provider.Failure](err); err == nil || failure != c.failure {
				t.Errorf("%s: error %v, want one that is a failure: %v", c.reason, err, c.failure)
			}
			if held := s.list(t); len(held) != 1 {
				t.Errorf("%s: holds %+v, want the instance alone", c.reason, held)
			}
		})
	}
}

// A failed provision can neither be updated nor bound to, and is removed like
// any other.
func TestHalfMadeInstance(t *testing.T) {
	s := newStand(t)
	in := s.instance(`{"fail":true}`)
	if _, f := providertest.Drive(t, s.clock, s.step(in, nil)); f == nil {
		t.Fatal("the provision did not fail")
	}
	in.Parameters = nil
	b := s.binding(in, "binding-1", "")
	for name, step := range map[string]providertest.Step{
		"Update": s.step(s.as(in, provider.KindUpdate), nil),
		"Bind":   s.step(b.Instance, &b),
	} {
		_, f := providertest.Drive(t, s.clock, step)
		if f == nil {
			t.Fatalf("%s of a half-made instance succeeded", name)
		}
		if name == "Update" && (f.InstanceUsable == nil || *f.InstanceUsable) {
			t.Error("a half-made instance is said to be usable")
		}
	}
	if held := s.list(t); len(held) != 1 || held[0].Tags != provider.TagsOf(in) {
		t.Errorf("holds %+v, want the half-made instance", held)
	}
	s.must(t, s.step(s.as(in, provider.KindDeprovision), nil))
	if held := s.list(t); len(held) != 0 {
		t.Errorf("holds %+v, want nothing", held)
	}
}

// A damaged file stops what concerns it, by name, and is never taken for an
// absence.
func TestDamagedThing(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	name := demotest.Name(provider.TagsOf(in))
	if err := os.WriteFile(filepath.Join(s.dir, name+".json"), []byte(`{"name":`), 0o600); err != nil {
		t.Fatal(err)
	}
	for verb, step := range map[string]providertest.Step{
		"Provision":   s.step(in, nil),
		"Deprovision": s.step(s.as(in, provider.KindDeprovision), nil),
		"List": func(ctx context.Context) (provider.Status, error) {
			_, _, err := s.List(ctx, "")
			return provider.Status{}, err
		},
	} {
		_, err := step(t.Context())
		if _, failure := errors.AsType[*provider.Failure](err); failure || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want a plain one that names %s", verb, err, name)
		}
	}
}

// stubborn is things that are still seen for a while after their deletion.
type stubborn struct {
	demo.Things
	deleted *demo.Thing
	looks   int
}

func (s *stubborn) Delete(ctx context.Context, t demo.Thing) error {
	s.deleted = &t
	return s.Things.Delete(ctx, t)
}

func (s *stubborn) Get(ctx context.Context, name string) (demo.Thing, error) {
	if s.deleted != nil && s.looks > 0 {
		s.looks--
		return *s.deleted, nil
	}
	return s.Things.Get(ctx, name)
}

// Done from a deletion means that the absence has been seen.
func TestDeletedIsSeenToBeAbsent(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	p := demo.New(&stubborn{Things: open(t, s.dir), looks: 15}, demo.Options{Now: s.clock.Now})
	d := s.as(in, provider.KindDeprovision)
	st, err := p.Deprovision(t.Context(), d)
	want := provider.Status{Percent: 99, Description: "Waiting to see that the instance is gone", After: time.Second}
	if diff := cmp.Diff(want, st); diff != "" || err != nil {
		t.Errorf("still seen: error %v (-want +got):\n%s", err, diff)
	}
	s.must(t, func(ctx context.Context) (provider.Status, error) { return p.Deprovision(ctx, d) })
}

// restless is things that others change at each look.
type restless struct{ demo.Things }

func (restless) Replace(context.Context, demo.Thing) error { return demo.ErrChanged }

func TestContentionIsPassing(t *testing.T) {
	s := newStand(t)
	in := s.instance("")
	s.must(t, s.step(in, nil))
	p := demo.New(restless{open(t, s.dir)}, demo.Options{Delay: delay, Now: s.clock.Now})
	_, err := p.Update(t.Context(), s.as(in, provider.KindUpdate))
	if _, failure := errors.AsType[*provider.Failure](err); failure || err == nil {
		t.Errorf("error %v, want a plain one", err)
	}
}

// What a deletion is like is asked of the creation, or of the last update that
// succeeded: a deletion itself is given no parameters, since it must work when
// they cannot be decrypted.
func TestThingsRememberWhatIsAskedOfTheirDeletion(t *testing.T) {
	steps := map[string]struct {
		reason string
		update string
		want   time.Duration
	}{
		"Never":   {"the creation asked", "", 30 * time.Second},
		"Updated": {"an update asks otherwise", `{"delay_seconds":9}`, 9 * time.Second},
		"Dropped": {"or no more", `{}`, delay},
		"Failed":  {"one that failed asks nothing", `{"delay_seconds":9,"fail":"update"}`, 30 * time.Second},
	}
	for name, c := range steps {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			in := s.instance(`{"delay_seconds":30}`)
			s.must(t, s.step(in, nil))
			if c.update != "" {
				up := s.as(in, provider.KindUpdate)
				up.Parameters = json.RawMessage(c.update)
				providertest.Drive(t, s.clock, s.step(up, nil))
			}
			s.reopen(t)
			gone := s.as(in, provider.KindDeprovision)
			gone.Parameters = nil
			began := s.clock.Now()
			s.must(t, s.step(gone, nil))
			if took := s.clock.Now().Sub(began); took != c.want {
				t.Errorf("%s: the deletion took %v, want %v", c.reason, took, c.want)
			}
		})
	}
}

// cloudBinding is a binding of a plan whose secrets the cloud chooses.
func (s *stand) cloudBinding(in provider.Instance) provider.Binding {
	in.Settings = map[string]any{"secret": "cloud"}
	return s.binding(in, "binding-1", `{"delay_seconds":0}`)
}

// A password that the cloud chooses is recorded before it is granted, is the
// only one, and is not derived from anything that the broker knows.
func TestTheCloudChoosesThePassword(t *testing.T) {
	s := newStand(t)
	in := s.instance(`{"delay_seconds":0}`)
	s.must(t, s.step(in, nil))
	b := s.cloudBinding(in)
	var passwords []string
	for range 3 { // nobody recorded the first two
		st, err := s.Bind(t.Context(), b)
		if err != nil || st.Done || st.State == nil {
			t.Fatalf("the first step: %v %v, want a state and not done", st, err)
		}
		var made struct{ Password string }
		if err := json.Unmarshal(st.State.Data, &made); err != nil || made.Password == "" {
			t.Fatalf("the state holds no password: %v", err)
		}
		passwords = append(passwords, made.Password)
		if len(passwords) == 3 {
			b.State = *st.State
		}
	}
	st, err := s.Bind(t.Context(), b)
	if err != nil || !st.Done {
		t.Fatalf("the last step: %v %v, want done", st, err)
	}
	name, _ := st.Grant.Credentials["username"].(string)
	if st.Grant.Credentials["password"] != passwords[2] || strings.Contains(string(st.State.Data), passwords[2]) {
		t.Error("the grant is not what was recorded, or the state still holds it")
	}
	for i, password := range passwords {
		if ok, err := s.Accepts(t.Context(), name, password); err != nil || ok != (i == 2) {
			t.Errorf("password %d is accepted: %v %v", i, ok, err)
		}
	}
	thing, err := open(t, s.dir).Get(t.Context(), name)
	if err != nil || len(thing.Keys) != 1 || thing.Verifier != nil {
		t.Errorf("its thing has %d keys: %v", len(thing.Keys), err)
	}
}

// A plan that has left the catalog, or means something else today, changes
// nothing for instances that recorded what it meant.
func TestASecretIsChosenAsThePlanMeant(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot string
		settings map[string]any
		state    bool // a first step gives one
	}{
		"Recorded":    {`{"secret":"cloud"}`, nil, true},
		"NotRecorded": {``, map[string]any{"secret": "cloud"}, true},
		"Changed":     {`{"secret":"broker"}`, map[string]any{"secret": "cloud"}, false},
		"Neither":     {``, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			in := s.instance(`{"delay_seconds":0}`)
			s.must(t, s.step(in, nil))
			in.Snapshot, in.Settings = json.RawMessage(c.snapshot), c.settings
			st, err := s.Bind(t.Context(), s.binding(in, "binding-1", `{"delay_seconds":0}`))
			if err != nil || (st.State != nil) != c.state || st.Done == c.state {
				t.Errorf("the first step: done %v, state %v, error %v", st.Done, st.State != nil, err)
			}
		})
	}
}

// A state that cannot be read, or of a later program, is a passing error: no
// key is made or revoked for it.
func TestAStateThatIsNotUnderstood(t *testing.T) {
	for name, state := range map[string]provider.State{
		"Damaged": {Format: 1, Data: []byte(`{"password":"canary`)}, "Later": {Format: 2, Data: []byte(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			in := s.instance(`{"delay_seconds":0}`)
			s.must(t, s.step(in, nil))
			b := s.cloudBinding(in)
			b.State = state
			_, err := s.Bind(t.Context(), b)
			if _, failed := errors.AsType[*provider.Failure](err); err == nil || failed || strings.Contains(err.Error(), "canary") {
				t.Errorf("error %v, want a passing one that tells nothing", err)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]any
		snapshot string
		wrong    string // the setting
	}{
		"Nothing":   {nil, `{}`, ""},
		"Default":   {map[string]any{"secret": "broker"}, `{}`, ""},
		"Cloud":     {map[string]any{"secret": "cloud", "fail": []any{"bind"}, "delay_seconds": 3}, `{"secret":"cloud"}`, ""},
		"Secret":    {map[string]any{"secret": "mine"}, "", "secret"},
		"Delay":     {map[string]any{"delay_seconds": -1}, "", "delay_seconds"},
		"Fail":      {map[string]any{"fail": "bnid"}, "", "fail"},
		"Grant":     {map[string]any{"grant": "disk"}, "", "grant"},
		"ValidDays": {map[string]any{"valid_days": 0}, "", "valid_days"},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot, err := demo.Check(provider.Checked{Settings: c.settings})
			wrong, _ := errors.AsType[*advice.Error](err)
			if c.wrong == "" && (err != nil || string(snapshot) != c.snapshot) {
				t.Errorf("%s %v, want %s", snapshot, err, c.snapshot)
			}
			if c.wrong != "" && (wrong == nil || wrong.Name != c.wrong || wrong.Remedy == "") {
				t.Errorf("error %v, want one about %q with a remedy", err, c.wrong)
			}
		})
	}
}

// A thing that is restored remembers from which.
func TestAThingRemembersItsSource(t *testing.T) {
	s := newStand(t)
	source := s.instance("")
	s.must(t, s.step(source, nil))
	in := s.instance("")
	in.ID, in.Incarnation = in.ID+"-restored", in.Incarnation+"-restored"
	in.Source = &provider.Source{Platform: source.Platform, ID: source.ID, Incarnation: source.Incarnation}
	s.must(t, s.step(in, nil))
	things, _, err := open(t, s.dir).List(t.Context(), "")
	if err != nil || len(things) != 2 {
		t.Fatalf("%d things: %v", len(things), err)
	}
	names := map[string]string{}
	for _, thing := range things {
		names[thing.Tags.Instance] = thing.Name
	}
	for _, thing := range things {
		want := ""
		if thing.Tags.Instance == in.ID {
			want = names[source.ID]
		}
		if thing.Source != want {
			t.Errorf("%s is restored from %q, want %q", thing.Name, thing.Source, want)
		}
	}
}
