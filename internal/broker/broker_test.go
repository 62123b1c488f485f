package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// A desk is a broker whose engine is the test: what is started stays in progress until the test settles it.
type desk struct {
	*testing.T
	*broker.Broker
	records *ledger.Ledger
	store   store.Store
	ctx     context.Context   // of requests
	ids     map[string]string // plans and offerings by name

	mu      sync.Mutex
	clock   time.Time
	serial  int
	started int
	settles bool // Finish settles the operation well
	// finishing, if there is one, is what Finish does instead.
	finishing func()
	// during happens while a request waits, once.
	during func(lifecycle.Token)
}

// either is an offering whose instances and bindings may be answered now or later.
const either = `
id: 31e9f4e2-9d0c-4a55-8d0d-6d9a1f1f7d01
name: either
description: Now or later
provider: demo
bindable: true
instances_retrievable: true
bindings_retrievable: true
plans:
- id: 1f3b8d52-1fd0-4a1b-93c5-0a3a4a0b6c02
  name: default
  description: Now or later
  asynchronous: allowed
  asynchronous_binding: allowed
`

func newDesk(t *testing.T) *desk {
	t.Helper()
	s := expect.Get(bolt.Open(filepath.Join(t.TempDir(), "records"), bolt.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	offered := testkit.DemoAnd(map[string]string{"either/offering.yaml": either})
	d := &desk{T: t, ctx: context.Background(), store: s, clock: testkit.Epoch, ids: map[string]string{}, settles: true}
	for _, o := range offered.Offerings() {
		d.ids[o.Name] = o.ID
		for _, p := range o.Plans {
			switch o.Name {
			case "demo":
				d.ids[p.Name] = p.ID
			case "either":
				d.ids["of either"] = p.ID
			}
		}
	}
	kit := testkit.New(testkit.Options{
		Store: s, Catalog: offered, Engine: d, Now: d.now, NewID: d.id, SynchronousWait: time.Second, OperationTimeout: time.Hour,
	})
	d.records, d.Broker = kit.Ledger(), kit.Broker()
	return d
}

func (d *desk) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = d.clock.Add(time.Millisecond)
	return d.clock
}

func (d *desk) id() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serial++
	return fmt.Sprintf("operation-%012d", d.serial)
}

// Start implements workflow.Engine.
func (d *desk) Start(context.Context, workflow.Ref) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started++
	return nil
}

// Finish implements workflow.Engine.
func (d *desk) Finish(_ context.Context, ref workflow.Ref) error {
	if during := d.during; during != nil {
		d.during = nil
		during(ref.Token)
	}
	switch {
	case d.finishing != nil:
		d.finishing()
	case d.settles:
		d.settle(ref.Token)
	}
	return nil
}

// settle ends an operation well, as a worker would.
func (d *desk) settle(token lifecycle.Token) {
	ctx := context.Background()
	for range 50 {
		r, err := d.records.Record(ctx, token.Key, d.now())
		if err != nil || !r.Current(token.Operation, 1) {
			return
		}
		sealed, err := d.Vault.Seal(ctx, vault.Label{Key: r.Key, Member: vault.Grant}, []byte(`{"credentials":{"password":"`+r.Incarnation+`"}}`))
		if err != nil {
			d.Error(err)
		}
		if r, err = r.Succeed(d.now(), sealed); err != nil {
			d.Error(err)
		}
		if err := d.records.Commit(ctx, ledger.Put(r)); !errors.Is(err, ledger.ErrConflict) {
			if err != nil {
				d.Error(err)
			}
			return
		}
	}
	d.Error("never settled")
}

func (d *desk) caller(permitted bool) broker.Caller {
	return broker.Caller{Platform: "p", AcceptsIncomplete: permitted, Received: d.now()}
}

// raw is JSON as a request has it: of nothing, nothing.
func raw(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

// order asks for the instance "i".
func (d *desk) order(plan string, c broker.Caller) broker.ProvisionRequest {
	return broker.ProvisionRequest{Caller: c, InstanceID: "i", ServiceID: d.service(plan), PlanID: d.ids[plan],
		OrganizationGUID: "o", SpaceGUID: "s"}
}

func (d *desk) service(plan string) string {
	if plan == "of either" {
		return d.ids["either"]
	}
	return d.ids["demo"]
}

func (d *desk) put(plan string, c broker.Caller, parameters string) (broker.Result, error) {
	q := d.order(plan, c)
	q.Parameters = raw(parameters)
	return d.Provision(d.ctx, q)
}

// change asks for an update of the instance "i".
func (d *desk) change(c broker.Caller, plan, parameters string) (broker.Result, error) {
	return d.Update(d.ctx, broker.UpdateRequest{Caller: c, InstanceID: "i", ServiceID: d.ids["demo"],
		PlanID: d.ids[plan], Parameters: raw(parameters)})
}

func (d *desk) bind(instance, binding, plan string, c broker.Caller) (broker.Result, error) {
	r, err := d.Bind(d.ctx, broker.BindRequest{Caller: c, InstanceID: instance, BindingID: binding,
		ServiceID: d.service(plan), PlanID: d.ids[plan]})
	return r, err
}

func (d *desk) delete(c broker.Caller) (broker.Result, error) { return d.unbind("", c) }

// unbind deletes a binding of the instance "i"; the empty one is the instance itself.
func (d *desk) unbind(binding string, c broker.Caller) (broker.Result, error) {
	return d.Delete(d.ctx,
		broker.DeleteRequest{Caller: c, InstanceID: "i", BindingID: binding, ServiceID: "s", PlanID: "p"})
}

// gives requires what a request comes to: d.gives(broker.Done, "the words")(d.delete(c)).
func (d *desk) gives(want broker.Effect, words string) func(broker.Result, error) broker.Result {
	return func(r broker.Result, err error) broker.Result {
		d.Helper()
		if err != nil || r.Effect != want {
			d.Fatalf("%s: %+v %v, want the effect %v", words, r, err, want)
		}
		return r
	}
}

// reads requires that a poll tells of a phase.
func (d *desk) reads(want lifecycle.Phase, words string) func(broker.Poll, error) broker.Poll {
	return func(p broker.Poll, err error) broker.Poll {
		d.Helper()
		if err != nil || p.Operation.Phase != want {
			d.Errorf("%s: %+v %v, want the phase %q", words, p, err, want)
		}
		return p
	}
}

var (
	sourceKey = lifecycle.Key{Platform: "p", Instance: "i"}
	boundKey  = sourceKey.BindingKey("b")
)

func (d *desk) record(key lifecycle.Key) lifecycle.Record {
	d.Helper()
	return expect.Get(d.records.Record(context.Background(), key, d.now()))(d.T)
}

func (d *desk) instance() lifecycle.Record {
	d.Helper()
	return d.record(sourceKey)
}

func (d *desk) commit(changes ...ledger.Change) {
	d.Helper()
	expect.OK(d.T, d.records.Commit(context.Background(), changes...))
}

func reason(err error) lifecycle.Reason {
	var refusal *lifecycle.Refusal
	if errors.As(err, &refusal) {
		return refusal.Reason
	}
	return -1
}

// refused requires that a request is refused for the reason.
func refused(t *testing.T, want lifecycle.Reason, err error, words string, args ...any) {
	t.Helper()
	if reason(err) != want {
		t.Errorf("%s: %v, want a refusal for reason %v", fmt.Sprintf(words, args...), err, want)
	}
}

// The plan's mode and the client's permission decide whether an answer is asynchronous (PROV-01 to PROV-06).
func TestModes(t *testing.T) {
	for name, tc := range map[string]struct {
		plan      string
		permitted bool
		effect    broker.Effect
		refused   lifecycle.Reason
	}{
		"NeverWithout":    {"sync", false, broker.Created, -1},
		"NeverWith":       {"sync", true, broker.Created, -1},
		"AllowedWithout":  {"async", false, broker.Created, -1},
		"AllowedWith":     {"async", true, broker.Accepted, -1},
		"RequiredWithout": {"async-only", false, 0, lifecycle.AsyncRequired},
		"RequiredWith":    {"async-only", true, broker.Accepted, -1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r, err := d.put(tc.plan, d.caller(tc.permitted), "")
			if r.Effect != tc.effect || reason(err) != tc.refused || (err == nil) != (tc.refused < 0) {
				t.Errorf("%+v %v", r, err)
			}
			if (r.Effect == broker.Accepted) != (d.started == 1) {
				t.Errorf("%d executions were started", d.started)
			}
			if tc.effect == broker.Accepted { // the same request again is told of the same operation, and starts nothing
				again := expect.Get(d.put(tc.plan, d.caller(true), ""))(t)
				if again.Effect != broker.Accepted || again.Token != r.Token || d.started != 1 {
					t.Errorf("%+v then %+v, and %d executions", r, again, d.started)
				}
			}
			if (d.instance().Version == 0) != (tc.refused >= 0) {
				t.Error("ERR-08: a refusal left a record, or a success left none")
			}
		})
	}
}

// A deletion of what does not exist is remembered: a PUT that was received
// before it begins nothing, one that was received later does (ORB-03, PROV-28).
func TestDeletionsOfNothingAreRemembered(t *testing.T) {
	d := newDesk(t)
	early := d.caller(true)
	refused(t, lifecycle.Gone, expect.Err(d.delete(d.caller(true))), "DEPR-03")
	refused(t, lifecycle.ConcurrencyError, expect.Err(d.put("sync", early, "")), "an overtaken PUT")
	refused(t, lifecycle.NotFound, expect.Err(d.LastOperation(t.Context(), sourceKey, "")), "LOP-09: it was never there")
	d.gives(broker.Created, "a later PUT")(d.put("sync", d.caller(true), ""))
}

// A deletion that is asked for again while it runs overtakes what was sent before its repetition, too (ORB-03): a
// platform that gave up on a PUT deletes what the PUT may make, and the PUT may arrive when that is done.
func TestRepeatedDeletionsAreRemembered(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			k.before(d)
			d.settle(expect.Get(k.put(d, d.caller(true)))(t).Token)
			removal := expect.Get(k.remove(d, d.caller(true)))(t)
			late := d.caller(true)
			expect.Same(t, "DEPR-07: the token of the repetition", removal.Token, expect.Get(k.remove(d, d.caller(true)))(t).Token)
			d.settle(removal.Token)
			refused(t, lifecycle.ConcurrencyError, expect.Err(k.put(d, late)), "an overtaken PUT")
			d.gives(broker.Accepted, "a later PUT")(k.put(d, d.caller(true)))
		})
	}
}

// watched are records that a test fails or watches.
type watched struct {
	broker.Records
	before    func() error           // of each call, whose error is the call's
	read      func(lifecycle.Record) // after each reading of a record
	committed func()
}

func (w *watched) fails() error {
	if w.before == nil {
		return nil
	}
	return w.before()
}

func (w *watched) Record(ctx context.Context, key lifecycle.Key, now time.Time) (r lifecycle.Record, err error) {
	if err = w.fails(); err == nil {
		r, err = w.Records.Record(ctx, key, now)
	}
	if w.read != nil {
		w.read(r)
	}
	return r, err
}

func (w *watched) Pointer(ctx context.Context, platform, binding string) (lifecycle.Pointer, error) {
	if err := w.fails(); err != nil {
		return lifecycle.Pointer{}, err
	}
	return w.Records.Pointer(ctx, platform, binding)
}

func (w *watched) PastOperation(ctx context.Context, id string, now time.Time) (lifecycle.PastOperation, error) {
	if err := w.fails(); err != nil {
		return lifecycle.PastOperation{}, err
	}
	return w.Records.PastOperation(ctx, id, now)
}

func (w *watched) Commit(ctx context.Context, changes ...ledger.Change) error {
	if err := w.fails(); err != nil {
		return err
	}
	if w.committed != nil {
		defer w.committed()
	}
	return w.Records.Commit(ctx, changes...)
}

// afterReading has something happen after the n-th reading of the instance from now.
func (d *desk) afterReading(n int, do func()) {
	d.Records = &watched{Records: d.records, read: func(r lifecycle.Record) {
		if !r.Key.IsBinding() {
			if n--; n == 0 {
				do()
			}
		}
	}}
}

// CONC-01, CONC-08: an unbind does not begin under an instance that began to change after the unbind had looked at it.
//
// UNB-09: another operation is in the way.
func TestUnbindMeetsAChangeOfItsInstance(t *testing.T) {
	for name, change := range map[string]func(d *desk) (broker.Result, error){
		"Deletion": func(d *desk) (broker.Result, error) { return d.delete(d.caller(true)) },
		"Update":   func(d *desk) (broker.Result, error) { return d.change(d.caller(true), "", `{"a":2}`) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.settle(expect.Get(d.put("async-bind", d.caller(true), ""))(t).Token)
			d.settle(expect.Get(d.bind("i", "b", "async-bind", d.caller(true)))(t).Token)
			d.afterReading(1, func() { expect.Get(change(d))(t) })
			refused(t, lifecycle.ConcurrencyError, expect.Err(d.unbind("b", d.caller(true))), "the unbind")
		})
	}
}

// Every operation goes on being answered under its own token (LOP-06, LOP-10).
//
// UPD-26: the token says which operation is asked for, not the plan.
func TestPastOperationsAreAnswered(t *testing.T) {
	d := newDesk(t)
	poll := func(token string) (broker.Poll, error) { return d.LastOperation(t.Context(), sourceKey, token) }
	first := expect.Get(d.put("async", d.caller(true), ""))(t).Token
	removal := d.gives(broker.Accepted, "DEPR-08: it overtakes the creation")(d.delete(d.caller(true))).Token
	if p := d.reads(lifecycle.Failed, "LOP-16")(poll(first.String())); !p.Operation.Cancelled {
		t.Errorf("LOP-16: %+v", p.Operation)
	}
	expect.Same(t, "DEPR-07: the token", removal, expect.Get(d.delete(d.caller(true)))(t).Token)
	refused(t, lifecycle.AsyncRequired, expect.Err(d.delete(d.caller(false))), "DEPR-07")
	d.settle(removal)
	refused(t, lifecycle.Gone, expect.Err(poll(removal.String())), "LOP-10: with its token")
	d.reads(lifecycle.Succeeded, "LOP-10: without")(poll("unknown"))
	second := expect.Get(d.put("async", d.caller(true), ""))(t).Token
	if second == first {
		t.Fatalf("PROV-28: the token is %v again", second)
	}
	refused(t, lifecycle.Gone, expect.Err(poll(removal.String())), "the deletion is forgotten")
	expect.Same(t, "LOP-08: the token", second, expect.Get(poll("unknown"))(t).Token)
}

// BIND-19: a binding id belongs to one instance, also when two ask at once.
func TestBindingIDsAreUnique(t *testing.T) {
	d := newDesk(t)
	for _, id := range []string{"one", "two"} {
		q := d.order("sync", d.caller(false))
		q.InstanceID = id
		expect.Get(d.Provision(t.Context(), q))(t)
	}
	var all sync.WaitGroup
	errs := make([]error, 8)
	for n := range errs {
		all.Go(func() { _, errs[n] = d.bind([]string{"one", "two"}[n%2], "b", "sync", d.caller(false)) })
	}
	all.Wait()
	won := map[int]bool{}
	for n, err := range errs {
		switch {
		case err == nil:
			won[n%2] = true
		case reason(err) != lifecycle.Conflict:
			t.Errorf("answered %v", err)
		}
	}
	expect.Same(t, "instances that the id was given to", 1, len(won))
}

// has requires the plan and the parameters of the instance, as they are shown.
func (d *desk) has(plan, parameters, words string) {
	d.Helper()
	v, err := d.View(d.Context(), d.caller(true), "i", "")
	if err != nil || v.Attributes.PlanID != d.ids[plan] || string(v.Parameters) != parameters {
		d.Errorf("%s: %s %s %v, want the plan %s and %s", words, v.Attributes.PlanID, v.Parameters, err, plan, parameters)
	}
}

func TestUpdates(t *testing.T) {
	d := newDesk(t)
	patch := func(plan, parameters string) (broker.Result, error) {
		return d.change(d.caller(true), plan, parameters)
	}
	refused(t, lifecycle.NotFound, expect.Err(patch("", `{"a":1}`)), "UPD-19")
	expect.Get(d.put("async", d.caller(false), `{"a":1}`))(t)
	for _, parameters := range []string{"", `{"a":1.0}`, `{}`} {
		d.gives(broker.Done, "UPD-13 "+parameters)(patch("async", parameters))
	}
	running := d.gives(broker.Accepted, "UPD-02")(patch("", `{"b":2}`)).Token
	expect.Same(t, "UPD-21: the token", running, expect.Get(patch("", `{"b":2}`))(t).Token)
	refused(t, lifecycle.ConcurrencyError, expect.Err(patch("", `{"b":3}`)), "UPD-22")
	refused(t, lifecycle.ConcurrencyError, expect.Err(d.delete(d.caller(true))), "DEPR-09")
	d.settle(running)
	d.has("async", `{"a":1,"b":2}`, "UPD-08")
	refused(t, lifecycle.AsyncRequired, expect.Err(d.change(d.caller(false), "async-only", "")), "UPD-03")
	refused(t, lifecycle.Conflict, expect.Err(d.put("async", d.caller(false), `{"a":1}`)), "IDEM-02: compared with what it was")
	d.gives(broker.Done, "IDEM-02")(d.put("async", d.caller(false), `{"b":2,"a":1}`))
}

// UPD-12: a change of the plan takes with it only what the new plan's schema
// allows, and a refusal names the rest, which null removes.
func TestPlanChangesKeepNothingThatTheNewPlanForbids(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.put("sync", d.caller(true), `{"size":"small","colour":"red"}`))(t)
	for parameters, member := range map[string]string{
		"": "/colour", `{}`: "/colour", `{"size":"large"}`: "/colour", `{"colour":null,"size":"huge"}`: "/size",
	} {
		_, err := d.change(d.caller(true), "schema", parameters)
		if reason(err) != lifecycle.BadRequest || !strings.Contains(err.Error(), member) {
			t.Errorf("with %s: %v, want it to name %s", parameters, err, member)
		}
	}
	d.has("sync", `{"size":"small","colour":"red"}`, "ERR-08: a refusal")
	expect.OK(t, expect.Err(d.change(d.caller(true), "schema", `{"colour":null}`)), "null removes what was in the way")
	d.has("schema", `{"size":"small"}`, "what the plan allows")
}

// UPD-08: null removes a parameter, and removes it once.
func TestNullRemovesAParameter(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.put("async", d.caller(false), `{"a":1,"b":{"c":null}}`))(t)
	patch := func(parameters string) (broker.Result, error) { return d.change(d.caller(true), "", parameters) }
	// The schema wants a number of the second.
	running := d.gives(broker.Accepted, "it begins")(patch(`{"a":null,"delay_seconds":null}`)).Token
	expect.Same(t, "UPD-21: the token of the same update", running, expect.Get(patch(`{"a":null}`))(t).Token)
	d.settle(running)
	d.has("async", `{"b":{"c":null}}`, "what is left")
	d.gives(broker.Done, "UPD-13: what is gone already")(patch(`{"a":null}`))
	d.gives(broker.Done, "IDEM-02")(d.put("async", d.caller(false), `{"b":{"c":null}}`))
}

// A repeated bind gives the same credentials, a binding id that is used again others (BIND-02, IDEM-09).
func TestCredentials(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.put("sync", d.caller(false), ""))(t)
	bind := func(want broker.Effect) any {
		t.Helper()
		r, err := d.Bind(t.Context(), broker.BindRequest{Caller: d.caller(false), InstanceID: "i", BindingID: "b",
			ServiceID: d.ids["demo"], PlanID: d.ids["sync"]})
		d.gives(want, "BIND-02")(r, err)
		return r.Grant.Credentials["password"]
	}
	first := bind(broker.Created)
	if again := bind(broker.Done); first == nil || again != first {
		t.Error("BIND-02: there are no credentials, or others at the second time")
	}
	d.gives(broker.Done, "UNB-05")(d.unbind("b", d.caller(false)))
	refused(t, lifecycle.Gone, expect.Err(d.unbind("b", d.caller(false))), "UNB-03")
	if bind(broker.Created) == first {
		t.Error("IDEM-09: the id that is used again has the credentials of before")
	}
}
