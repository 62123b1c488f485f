package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)

// A stand is a demo with a clock, and the records of an instance and its bindings.
type stand struct {
	*demo.Provider
	clock  *providertest.Clock
	ops    int
	states map[string]provider.State // of the instance under "", of bindings under their ids
}

const delay = 4 * time.Second

func newStand(t *testing.T) *stand {
	t.Helper()
	clock := providertest.NewClock(start)
	return &stand{Provider: demo.New(delay, clock.Now), clock: clock, states: map[string]provider.State{}}
}

func (s *stand) op(kind operation.Kind) provider.Operation {
	s.ops++
	return provider.Operation{ID: fmt.Sprintf("op-%d", s.ops), Kind: kind, Started: s.clock.Now()}
}

func (s *stand) instance(parameters string) provider.Instance {
	op := s.op(operation.Provision)
	return provider.Instance{
		Platform: "platform-1", ID: "instance-1", Incarnation: op.ID, ServiceID: "service-1", PlanID: "plan-1",
		Operation: op, Parameters: json.RawMessage(parameters), Settings: map[string]any{},
	}
}

func (s *stand) binding(in provider.Instance, id, parameters string) provider.Binding {
	in.Operation = s.op(operation.Bind)
	return provider.Binding{
		Instance: in, ID: id, Incarnation: in.Operation.ID, AppGUID: "app-1", Route: "app.example.com",
		Parameters: json.RawMessage(parameters), Secret: []byte("0123456789abcdef0123456789abcdef"),
	}
}

// as is in, in an operation of the kind.
func (s *stand) as(in provider.Instance, kind operation.Kind) provider.Instance {
	in.Operation = s.op(kind)
	return in
}

// step is one step of what in or b asks for: it is given the state of the record, and what it answers is recorded.
func (s *stand) step(in provider.Instance, b *provider.Binding) providertest.Step {
	var bound provider.Binding
	if kind := in.Operation.Kind; kind == operation.Bind || kind == operation.Unbind {
		bound = *b
	}
	return func(ctx context.Context) (st provider.Status, err error) {
		in.State, bound.State = s.states[""], s.states[bound.ID]
		bound.Instance = in
		switch in.Operation.Kind {
		case operation.Provision:
			st, err = s.Provision(ctx, in)
		case operation.Update:
			st, err = s.Update(ctx, in)
		case operation.Deprovision:
			st, err = s.Deprovision(ctx, in)
		case operation.Bind:
			st, err = s.Bind(ctx, bound)
		default:
			st, err = s.Unbind(ctx, bound)
		}
		state := st.State
		if f, ok := errors.AsType[*provider.Failure](err); ok {
			state = f.State
		}
		if state != nil {
			s.states[bound.ID] = *state
		}
		return st, err
	}
}

// must drives a step to a good end.
func (s *stand) must(t *testing.T, step providertest.Step) provider.Status {
	t.Helper()
	return providertest.Must(t, s.clock, step)
}

// ready is a stand with an instance that was made with these parameters.
func ready(t *testing.T, parameters string) (*stand, provider.Instance) {
	t.Helper()
	s := newStand(t)
	in := s.instance(parameters)
	s.must(t, s.step(in, nil))
	return s, in
}

// prepared makes what an operation of the kind needs, without delays, and gives the arguments of that operation with these
// parameters and settings. A deletion is given no parameters: they are those of what it deletes.
func (s *stand) prepared(t *testing.T, kind operation.Kind, parameters string,
	settings map[string]any) (provider.Instance, *provider.Binding) {
	t.Helper()
	const quick = `{"delay_seconds":0}`
	in := s.instance(quick)
	b := s.binding(in, "binding-1", quick)
	switch kind {
	case operation.Deprovision:
		in.Parameters = json.RawMessage(parameters)
	case operation.Bind, operation.Unbind:
		b.Parameters = json.RawMessage(parameters)
	}
	if kind != operation.Provision {
		providertest.Drive(t, s.clock, s.step(in, nil)) // it may be asked to fail
	}
	if kind == operation.Unbind {
		providertest.Drive(t, s.clock, s.step(b.Instance, &b))
	}
	if in.Settings = settings; kind == operation.Bind {
		in.Operation = b.Instance.Operation
		return in, &b
	}
	if kind != operation.Provision {
		in = s.as(in, kind)
	}
	if in.Parameters = json.RawMessage(parameters); kind.Deletes() {
		in.Parameters, b.Parameters, b.Instance.Parameters, b.Secret = nil, nil, nil, nil
	}
	return in, &b
}

var kinds = []operation.Kind{operation.Provision, operation.Update, operation.Deprovision, operation.Bind, operation.Unbind}

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
				expect.Same(t, c.reason+": took", c.want, s.clock.Now().Sub(began))
			})
		}
	}
}

// The end is fixed when the operation begins: repetitions do not move it, and each step says how far the work has come.
func TestProgress(t *testing.T) {
	s := newStand(t)
	in := s.instance(`{"delay_seconds":20}`)
	type look struct {
		Percent     int
		Description string
		After       time.Duration
		Done        bool
	}
	for i, c := range []struct {
		advance time.Duration
		want    look
	}{
		{0, look{0, "Creating the instance, about 20s left", 10 * time.Second, false}},
		{0, look{0, "Creating the instance, about 20s left", 10 * time.Second, false}},
		{5 * time.Second, look{25, "Creating the instance, about 15s left", 10 * time.Second, false}},
		{9500 * time.Millisecond, look{72, "Creating the instance, about 6s left", 5500 * time.Millisecond, false}},
		{5490 * time.Millisecond, look{99, "Creating the instance, about 1s left", 50 * time.Millisecond, false}},
		{-time.Hour, look{0, "Creating the instance, about 20s left", 10 * time.Second, false}},
		{time.Hour + 10*time.Millisecond, look{100, "The instance is ready.", 0, true}},
		{time.Hour, look{100, "The instance is ready.", 0, true}},
	} {
		s.clock.Advance(c.advance)
		st := expect.Get(s.Provision(t.Context(), in))(t, "step", i)
		expect.Same(t, fmt.Sprintf("step %d", i), c.want, look{st.Percent, st.Description, st.After, st.Done})
	}
}

func TestFailures(t *testing.T) {
	const own = "the operation's kind"
	named := func(v any, kind operation.Kind) any {
		if v == own {
			return string(kind)
		}
		return v
	}
	cases := map[string]struct {
		reason   string
		asked    any // the parameter "fail"
		settings any // the setting "fail"
		fails    []operation.Kind
	}{
		"Nothing": {reason: "nothing fails unasked"},
		"True": {reason: "true is for the operation that it is given to, which a deletion never is", asked: true,
			fails: []operation.Kind{operation.Provision, operation.Update, operation.Bind}},
		"False":  {reason: "false asks for nothing", asked: false},
		"Named":  {reason: "a kind by its name", asked: own, fails: kinds},
		"Update": {reason: "another kind by its name does not count", asked: "update", fails: []operation.Kind{operation.Update}},
		"Plan": {reason: "the plan's list", settings: []any{"bind", "deprovision"},
			fails: []operation.Kind{operation.Bind, operation.Deprovision}},
		"PlanList":  {reason: "a list of strings", settings: []string{"unbind"}, fails: []operation.Kind{operation.Unbind}},
		"PlanOne":   {reason: "one kind alone", settings: own, fails: kinds},
		"PlanEmpty": {reason: "no kind at all", settings: []any{}},
		"PlanStays": {reason: "the user cannot take the plan's back", settings: []any{"bind"}, asked: false,
			fails: []operation.Kind{operation.Bind}},
	}
	for name, c := range cases {
		for _, kind := range kinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				s := newStand(t)
				parameters, settings := "", map[string]any{}
				if c.asked != nil {
					parameters = string(expect.Get(json.Marshal(map[string]any{"fail": named(c.asked, kind)}))(t))
				}
				if c.settings != nil {
					settings["fail"] = named(c.settings, kind)
				}
				in, b := s.prepared(t, kind, parameters, settings)
				began := s.clock.Now()
				_, f := providertest.Drive(t, s.clock, s.step(in, b))
				expect.Same(t, "took, also for a failure", delay, s.clock.Now().Sub(began))
				if want := slices.Contains(c.fails, kind); (f != nil) != want {
					t.Fatalf("%s: failure %v, want one: %v", c.reason, f, want)
				}
				if f == nil {
					return
				}
				expect.Says(t, "the message", f.Message, "failed this "+string(kind), `"fail"`)
				flags := map[operation.Kind][2]*bool{
					operation.Update:      {new(true), new(true)},
					operation.Deprovision: {new(true), nil},
				}[kind]
				expect.Same(t, "usable, repeatable", flags, [2]*bool{f.InstanceUsable, f.UpdateRepeatable})
			})
		}
	}
}

// A deletion that is asked to fail does so in one operation, however often its step is repeated. The next one
// succeeds, with the same parameters.
func TestDeletionFailsOnce(t *testing.T) {
	for _, kind := range []operation.Kind{operation.Deprovision, operation.Unbind} {
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
				if kind == operation.Deprovision {
					// Many operations later it is still remembered.
					up := first
					up.Settings, up.Parameters = nil, json.RawMessage(parameters)
					for range 20 {
						s.must(t, s.step(s.as(up, operation.Update), nil))
					}
				} else {
					for range 3 {
						_, err := s.step(first, b)(t.Context())
						if again, ok := errors.AsType[*provider.Failure](err); !ok || again.Message != f.Message {
							t.Errorf("the first deletion, repeated: %v, want %q", err, f.Message)
						}
					}
				}
				s.must(t, s.step(s.as(first, kind), b))
			})
		}
	}
}

// A deletion that overtakes the one that was to fail works.
func TestDeletionOvertakesFailingDeletion(t *testing.T) {
	s := newStand(t)
	first, _ := s.prepared(t, operation.Deprovision, `{"fail":"deprovision"}`, nil)
	expect.Get(s.step(first, nil)(t.Context()))(t)
	s.must(t, s.step(s.as(first, operation.Deprovision), nil))
}

func TestRefusedParameters(t *testing.T) {
	const canary = "canary-in-the-wrong-place"
	const theDelay, theFail = `parameter "delay_seconds"`, `parameter "fail"`
	cases := map[string]struct {
		reason     string
		parameters string
		names      string
	}{
		"DelayString":   {"a delay is a number", `{"delay_seconds":"` + canary + `"}`, theDelay},
		"DelayNegative": {"no negative delay", `{"delay_seconds":-1}`, theDelay},
		"DelayHuge":     {"beyond a week", `{"delay_seconds":604801}`, theDelay},
		"DelayOverflow": {"beyond what a float holds", `{"delay_seconds":1e999}`, theDelay},
		"FailUnknown":   {"a kind that there is", `{"fail":"` + canary + `"}`, theFail},
		"FailNumber":    {"no number", `{"fail":1}`, theFail},
		"FailList":      {"a list of kinds that there are", `{"fail":["bnid"]}`, theFail},
		"NotAnObject":   {"an object", `["` + canary + `"]`, "not a JSON object"},
		"NotJSON":       {"JSON", `{"` + canary, "not a JSON object"},
	}
	for name, c := range cases {
		for _, kind := range kinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				s := newStand(t)
				in, b := s.prepared(t, kind, c.parameters, nil)
				if kind == operation.Deprovision || kind == operation.Unbind {
					// Nothing stands in the way of a deletion.
					s.must(t, s.step(in, b))
					return
				}
				began := s.clock.Now()
				_, f := providertest.Drive(t, s.clock, s.step(in, b))
				if f == nil {
					t.Fatalf("%s: want a failure", c.reason)
				}
				expect.Says(t, c.reason+": the message", f.Message, c.names)
				expect.Never(t, "the message", f.Message, canary)
				expect.Same(t, "it took until", began, s.clock.Now())
				if kind == operation.Update {
					expect.Same(t, "the instance is said to be usable", new(true), f.InstanceUsable)
				}
			})
		}
	}
}

func TestGrants(t *testing.T) {
	const id = "iqsjuncxdpt76fubatuhmbt3ne"
	const name = "longshore-demo-instance-" + id
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
				Driver: "longshore-demo", ContainerDir: "/var/longshore/instance-" + id, Mode: "rw", DeviceType: "shared",
				Device: provider.VolumeDevice{VolumeID: name,
					MountConfig: map[string]any{"source": "demo://" + name + ".demo.longshore.example/volume"}},
			}}},
		},
		"Route": {
			reason: "where to forward to, if there is a route (BIND-32)", grant: "route", route: "app.example.com",
			want: provider.Grant{RouteServiceURL: "https://" + name + ".demo.longshore.example/"},
		},
		"NoRoute": {reason: "nothing to forward", grant: "route", app: "app-1", plain: true},
		"Syslog": {
			reason: "a drain for an application (BIND-31)", grant: "syslog", app: "app-1",
			want: provider.Grant{SyslogDrainURL: "syslog-tls://" + name + ".demo.longshore.example:6514"},
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
			expect.Same(t, c.reason, c.want, *got, cmpopts.IgnoreFields(provider.Grant{}, "Credentials"))
			if got.Credentials == nil {
				t.Error("credentials are not an object")
			}
			expect.Same(t, c.reason+": has credentials", c.plain, len(got.Credentials) > 0)
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
	expect.Same(t, "expires at", began.Add(48*time.Hour).Truncate(time.Second), grant.ExpiresAt)
	expect.Same(t, "renew before", began.Add(36*time.Hour).Truncate(time.Second), grant.RenewBefore)
	expect.Same(t, "a repeated step gave", grant.ExpiresAt, s.must(t, s.step(b.Instance, &b)).Grant.ExpiresAt)
}

func TestCredentials(t *testing.T) {
	s, in := ready(t, "")
	b := s.binding(in, "binding-1", "")
	grant := s.must(t, s.step(b.Instance, &b)).Grant
	instance := provider.Name("longshore-demo", "instance", provider.TagsOf(in))
	binding := provider.Name("longshore-demo", "binding", provider.BindingTagsOf(b))
	password, _ := grant.Credentials["password"].(string)
	expect.Same(t, "characters of the password", 32, len(password))
	expect.Same(t, "credentials", map[string]any{"username": binding, "password": password, "instance": instance,
		"uri": fmt.Sprintf("demo://%s:%s@%s.demo.longshore.example/", binding, password, instance)}, grant.Credentials)
	// A second binding with the same secret has another password all the same.
	other := s.binding(in, "binding-2", "")
	if s.must(t, s.step(other.Instance, &other)).Grant.Credentials["password"] == password {
		t.Error("two bindings have the same password")
	}
	b.Secret = nil // a caller's mistake is no failure of the operation
	_, err := s.step(b.Instance, &b)(t.Context())
	passes(t, "without a secret", err)
}

// passes requires an error that fails no operation.
func passes(t *testing.T, what string, err error) {
	t.Helper()
	if _, failed := errors.AsType[*provider.Failure](err); err == nil || failed {
		t.Errorf("%s: error %v, want a passing one", what, err)
	}
}

// A deletion that nothing is known of any more is done: what is deleted after its
// record was lost, or looked at once more.
func TestADeletionWithoutState(t *testing.T) {
	s := newStand(t)
	in := s.as(s.instance(""), operation.Deprovision)
	in.Settings, in.PlanID = nil, ""
	s.clock.Advance(time.Hour)
	if st, err := s.Deprovision(t.Context(), in); err != nil || !st.Done || st.State != nil {
		t.Errorf("%+v %v", st, err)
	}
}

// The state has the demo's own parameters alone. An instance without any has no state: sealing one costs time.
func TestWhatIsKept(t *testing.T) {
	for parameters, want := range map[string]string{
		"": "", `{"note":"canary"}`: "",
		`{"note":"canary","delay_seconds":0,"fail":"unbind"}`: `{"asked":{"delay_seconds":0,"fail":["unbind"]}}`,
	} {
		s := newStand(t)
		s.must(t, s.step(s.instance(parameters), nil))
		expect.Same(t, fmt.Sprintf("of %s is kept", parameters), want, string(s.states[""].Data))
	}
}

// A deletion follows the parameters of the creation, or of the last update that succeeded: it is given none
// itself, since it must work if they cannot be decrypted.
func TestWhatIsAskedOfADeletionIsRemembered(t *testing.T) {
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
			s, in := ready(t, `{"delay_seconds":30}`)
			if c.update != "" {
				up := s.as(in, operation.Update)
				up.Parameters = json.RawMessage(c.update)
				providertest.Drive(t, s.clock, s.step(up, nil))
			}
			gone := s.as(in, operation.Deprovision)
			gone.Parameters = nil
			began := s.clock.Now()
			s.must(t, s.step(gone, nil))
			expect.Same(t, c.reason+": the deletion took", c.want, s.clock.Now().Sub(began))
		})
	}
}

// A state that cannot be read, or of a later program, is a passing error: no
// key is made or revoked for it.
func TestAStateThatIsNotUnderstood(t *testing.T) {
	for name, state := range map[string]provider.State{
		"Damaged": {Format: 1, Data: []byte(`{"password":"canary`)}, "Later": {Format: 2, Data: []byte(`{}`)},
	} {
		s, in := ready(t, `{"delay_seconds":0}`)
		b := s.binding(in, "binding-1", "")
		b.State = state
		_, err := s.Bind(t.Context(), b)
		passes(t, name, err)
		expect.Never(t, name+": the error", fmt.Sprint(err), "canary")
	}
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]any
		wrong    string // the setting
	}{
		"Nothing": {nil, ""},
		"All": {map[string]any{
			"fail": []any{"bind"}, "delay_seconds": json.Number("3.5"), "grant": "route", "valid_days": uint64(2),
		}, ""},
		"Unknown":   {map[string]any{"secret": "mine"}, "secret"},
		"Delay":     {map[string]any{"delay_seconds": -1}, "delay_seconds"},
		"Fail":      {map[string]any{"fail": "bnid"}, "fail"},
		"Grant":     {map[string]any{"grant": "disk"}, "grant"},
		"Null":      {map[string]any{"grant": nil}, "grant"},
		"ValidDays": {map[string]any{"valid_days": 0}, "valid_days"},
		"Always":    {map[string]any{"fail": true}, ""},
		"FailOne":   {map[string]any{"fail": []any{"bind", "bnid"}}, "fail.1"},
		"FailNull":  {map[string]any{"fail": nil}, "fail"},
		"Long":      {map[string]any{"delay_seconds": 604800.5}, "delay_seconds"},
		"LongValid": {map[string]any{"valid_days": 3651}, "valid_days"},
		"Case":      {map[string]any{"Grant": "route", "FAIL": "bind"}, ""},
		"OtherCase": {map[string]any{"Grant": "disk"}, "Grant"},
	} {
		snapshot, err := demo.Check(check.Plan{Settings: c.settings})
		wrong, _ := errors.AsType[*advice.Error](err)
		if c.wrong == "" && (err != nil || snapshot != nil) {
			t.Errorf("%s: %s %v", name, snapshot, err)
		}
		if c.wrong != "" && (wrong == nil || wrong.Name != c.wrong || wrong.Remedy == "") {
			t.Errorf("%s: error %v, want one about %q with a remedy", name, err, c.wrong)
		}
	}
}
