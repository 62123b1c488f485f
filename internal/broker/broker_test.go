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

// A desk is a broker whose engine is the test: what is started stays in
// progress until the test settles it.
type desk struct {
	*testing.T
	*broker.Broker
	records *ledger.Ledger
	store   store.Store
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
	s, err := bolt.Open(filepath.Join(t.TempDir(), "records"))
	expect.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	offered := testkit.DemoAnd(map[string]string{"either/offering.yaml": either})
	d := &desk{T: t, store: s, clock: testkit.Epoch, ids: map[string]string{}, settles: true}
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

func (d *desk) put(plan string, c broker.Caller, parameters string) (broker.Result, error) {
	q := broker.ProvisionRequest{Caller: c, InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids[plan], OrganizationGUID: "o",
		SpaceGUID: "s"}
	if parameters != "" {
		q.Parameters = json.RawMessage(parameters)
	}
	return d.Provision(context.Background(), q)
}

func (d *desk) bind(instance, binding, plan string, c broker.Caller) (broker.BindResult, error) {
	return d.Bind(context.Background(),
		broker.BindRequest{Caller: c, InstanceID: instance, BindingID: binding, ServiceID: d.ids["demo"], PlanID: d.ids[plan]})
}

func (d *desk) delete(c broker.Caller) (broker.Result, error) {
	return d.Delete(context.Background(), broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: "s", PlanID: "p"})
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

// The plan's mode and the client's permission decide whether an answer is asynchronous
// (PROV-01 to PROV-06).
func TestModes(t *testing.T) {
	cases := map[string]struct {
		plan      string
		permitted bool
		effect    broker.Effect
		refused   lifecycle.Reason
	}{
		"NeverWithout":    {"sync", false, broker.Created, 0},
		"NeverWith":       {"sync", true, broker.Created, 0},
		"AllowedWithout":  {"async", false, broker.Created, 0},
		"AllowedWith":     {"async", true, broker.Accepted, 0},
		"RequiredWithout": {"async-only", false, 0, lifecycle.AsyncRequired},
		"RequiredWith":    {"async-only", true, broker.Accepted, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			r, err := d.put(tc.plan, d.caller(tc.permitted), "")
			if r.Effect != tc.effect || tc.refused != 0 && reason(err) != tc.refused || tc.refused == 0 && err != nil {
				t.Errorf("%+v %v", r, err)
			}
			if (r.Effect == broker.Accepted) != (d.started == 1) {
				t.Errorf("%d executions were started", d.started)
			}
			if tc.refused != 0 {
				if i, err := d.records.Record(context.Background(), lifecycle.Key{Platform: "p", Instance: "i"}, d.now()); err != nil ||
					i.Version != 0 {
					t.Errorf("ERR-08: a refusal left a record: %v", err)
				}
			}
		})
	}
}

// IDEM-03: sixteen identical requests at once are one operation.
func TestOneTokenForIdenticalRequests(t *testing.T) {
	d := newDesk(t)
	var all sync.WaitGroup
	results := make([]broker.Result, 16)
	for n := range results {
		all.Go(func() {
			r, err := d.put("async", d.caller(true), `{"a":1}`)
			if err != nil {
				t.Error(err)
			}
			results[n] = r
		})
	}
	all.Wait()
	for _, r := range results {
		if r.Effect != broker.Accepted || r.Token != results[0].Token {
			t.Errorf("%+v, the first was given %+v", r, results[0])
		}
	}
	expect.Same(t, "executions that were started", 1, d.started)
}

// A deletion of what does not exist is remembered: a PUT that was received
// before it begins nothing, one that was received later does (ORB-03, PROV-28).
func TestDeletionsOfNothingAreRemembered(t *testing.T) {
	d := newDesk(t)
	early := d.caller(true)
	if _, err := d.delete(d.caller(true)); reason(err) != lifecycle.Gone {
		t.Fatalf("DEPR-03: %v", err)
	}
	refused(t, lifecycle.ConcurrencyError, expect.Err(d.put("sync", early, "")), "an overtaken PUT")
	_, err := d.LastOperation(context.Background(), lifecycle.Key{Platform: "p", Instance: "i"}, "")
	refused(t, lifecycle.NotFound, err, "LOP-09: it was never there")
	if r, err := d.put("sync", d.caller(true), ""); err != nil || r.Effect != broker.Created {
		t.Errorf("a later PUT: %+v %v", r, err)
	}
}

// A deletion that is asked for again while it runs overtakes what was sent
// before its repetition, too (ORB-03): a platform that gave up on a PUT deletes
// what the PUT may make, and the PUT may arrive when that is done.
func TestRepeatedDeletionsAreRemembered(t *testing.T) {
	d := newDesk(t)
	asks := map[string]struct {
		put, remove func(c broker.Caller) (broker.Result, error)
	}{
		"Instance": {func(c broker.Caller) (broker.Result, error) { return d.put("async-bind", c, "") }, d.delete},
		"Binding": {
			func(c broker.Caller) (broker.Result, error) {
				r, err := d.bind("i", "b", "async-bind", c)
				return r.Result, err
			},
			func(c broker.Caller) (broker.Result, error) {
				return d.Delete(context.Background(), broker.DeleteRequest{Caller: c, InstanceID: "i", BindingID: "b", ServiceID: "s", PlanID: "p"})
			},
		},
	}
	for _, name := range []string{"Instance", "Binding"} {
		ask := asks[name]
		made, err := ask.put(d.caller(true))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		d.settle(made.Token)
		removal, err := ask.remove(d.caller(true))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		late := d.caller(true)
		if again, err := ask.remove(d.caller(true)); err != nil || again.Token != removal.Token {
			t.Fatalf("%s: DEPR-07: %+v %v", name, again, err)
		}
		d.settle(removal.Token)
		if r, err := ask.put(late); reason(err) != lifecycle.ConcurrencyError {
			t.Errorf("%s: an overtaken PUT: %+v %v", name, r, err)
		}
		last, err := ask.put(d.caller(true))
		if err != nil || last.Effect != broker.Accepted {
			t.Fatalf("%s: a later PUT: %+v %v", name, last, err)
		}
		d.settle(last.Token)
	}
}

// between does something after an instance was read, once.
type between struct {
	broker.Records
	do func()
}

func (b *between) Record(ctx context.Context, key lifecycle.Key, now time.Time) (lifecycle.Record, error) {
	i, err := b.Records.Record(ctx, key, now)
	if do := b.do; do != nil && !key.IsBinding() {
		b.do = nil
		do()
	}
	return i, err
}

// CONC-01, CONC-08: an unbind does not begin under an instance that began to
// change after the unbind had looked at it.
//
// UNB-09: another operation is in the way.
func TestUnbindMeetsAChangeOfItsInstance(t *testing.T) {
	changes := map[string]func(d *desk) error{
		"Deletion": func(d *desk) error { _, err := d.delete(d.caller(true)); return err },
		"Update": func(d *desk) error {
			_, err := d.Update(context.Background(),
				broker.UpdateRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"], Parameters: json.RawMessage(`{"a":2}`)})
			return err
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			for _, ask := range []func() (broker.Result, error){
				func() (broker.Result, error) { return d.put("async-bind", d.caller(true), "") },
				func() (broker.Result, error) {
					r, err := d.bind("i", "b", "async-bind", d.caller(true))
					return r.Result, err
				},
			} {
				r, err := ask()
				expect.OK(t, err)
				d.settle(r.Token)
			}
			o := d.Options
			o.Records = &between{d.records, func() {
				if err := change(d); err != nil {
					t.Error(err)
				}
			}}
			r, err := broker.New(o).Delete(context.Background(),
				broker.DeleteRequest{Caller: d.caller(true), InstanceID: "i", BindingID: "b", ServiceID: "s", PlanID: "p"})
			if reason(err) != lifecycle.ConcurrencyError {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestTokensOfOthersTellNothing(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	r, err := d.put("async", d.caller(true), "")
	expect.OK(t, err)
	other := d.caller(true)
	other.Platform = "q"
	refused(t, lifecycle.NotFound, expect.Err(d.Operation(ctx, other, r.Token.String())), "FAC-12: another platform reads it")
	forged := r.Token
	forged.Key.Platform = "q"
	refused(t, lifecycle.NotFound, expect.Err(d.Operation(ctx, other, forged.String())), "a forged token reads")
	if p, err := d.Operation(ctx, d.caller(true), r.Token.String()); err != nil || p.Operation.Phase != lifecycle.InProgress ||
		p.RetryAfter <= 0 {
		t.Errorf("%+v %v", p, err)
	}
}

// Every operation goes on being answered under its own token (LOP-06, LOP-10).
//
// UPD-26: the token says which operation is asked for, not the plan.
func TestPastOperationsAreAnswered(t *testing.T) {
	d := newDesk(t)
	ctx, key := context.Background(), lifecycle.Key{Platform: "p", Instance: "i"}
	first, err := d.put("async", d.caller(true), "")
	expect.OK(t, err)
	removal, err := d.delete(d.caller(true)) // overtakes it
	if err != nil || removal.Effect != broker.Accepted {
		t.Fatalf("DEPR-08: %+v %v", removal, err)
	}
	if p, err := d.LastOperation(ctx, key, first.Token.String()); err != nil || p.Operation.Phase != lifecycle.Failed ||
		!p.Operation.Cancelled {
		t.Errorf("LOP-16: %+v %v", p.Operation, err)
	}
	if again, err := d.delete(d.caller(true)); err != nil || again.Token != removal.Token {
		t.Errorf("DEPR-07: %+v %v", again, err)
	}
	refused(t, lifecycle.AsyncRequired, expect.Err(d.delete(d.caller(false))), "DEPR-07")
	d.settle(removal.Token)
	refused(t, lifecycle.Gone, expect.Err(d.LastOperation(ctx, key, removal.Token.String())), "LOP-10: with its token")
	if p, err := d.LastOperation(ctx, key, "unknown"); err != nil || p.Operation.Phase != lifecycle.Succeeded {
		t.Errorf("LOP-10: without: %+v %v", p.Operation, err)
	}
	second, err := d.put("async", d.caller(true), "")
	if err != nil || second.Token == first.Token {
		t.Fatalf("PROV-28: %+v %v", second, err)
	}
	refused(t, lifecycle.Gone, expect.Err(d.LastOperation(ctx, key, removal.Token.String())), "the deletion is forgotten")
	if p, err := d.LastOperation(ctx, key, "unknown"); err != nil || p.Token != second.Token {
		t.Errorf("LOP-08: %+v %v", p, err)
	}
}

// BIND-19: a binding id belongs to one instance, also when two ask at once.
func TestBindingIDsAreUnique(t *testing.T) {
	d := newDesk(t)
	for _, id := range []string{"one", "two"} {
		_, err := d.Provision(context.Background(), broker.ProvisionRequest{
			Caller: d.caller(false), InstanceID: id, ServiceID: d.ids["demo"], PlanID: d.ids["sync"], OrganizationGUID: "o", SpaceGUID: "s",
		})
		expect.OK(t, err)
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

func TestUpdates(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	patch := func(c broker.Caller, plan, parameters string) (broker.Result, error) {
		q := broker.UpdateRequest{Caller: c, InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids[plan]}
		if parameters != "" {
			q.Parameters = json.RawMessage(parameters)
		}
		return d.Update(ctx, q)
	}
	refused(t, lifecycle.NotFound, expect.Err(patch(d.caller(true), "", `{"a":1}`)), "UPD-19")
	expect.Get(d.put("async", d.caller(false), `{"a":1}`))(t)
	for name, parameters := range map[string]string{"Nothing": "", "Same": `{"a":1.0}`, "Empty": `{}`} {
		if r, err := patch(d.caller(true), "async", parameters); err != nil || r.Effect != broker.Done {
			t.Errorf("UPD-13 %s: %+v %v", name, r, err)
		}
	}
	running, err := patch(d.caller(true), "", `{"b":2}`)
	if err != nil || running.Effect != broker.Accepted {
		t.Fatalf("UPD-02: %+v %v", running, err)
	}
	if same, err := patch(d.caller(true), "", `{"b":2}`); err != nil || same.Token != running.Token {
		t.Errorf("UPD-21: %+v %v", same, err)
	}
	refused(t, lifecycle.ConcurrencyError, expect.Err(patch(d.caller(true), "", `{"b":3}`)), "UPD-22")
	refused(t, lifecycle.ConcurrencyError, expect.Err(d.delete(d.caller(true))), "DEPR-09")
	d.settle(running.Token)
	if v, err := d.Instance(ctx, d.caller(true), "i"); err != nil || string(v.Parameters) != `{"a":1,"b":2}` {
		t.Errorf("UPD-08: %s %v", v.Parameters, err)
	}
	refused(t, lifecycle.AsyncRequired, expect.Err(patch(d.caller(false), "async-only", "")), "UPD-03")
	refused(t, lifecycle.Conflict, expect.Err(d.put("async", d.caller(false), `{"a":1}`)), "IDEM-02: compared with what it was")
	if r, err := d.put("async", d.caller(false), `{"b":2,"a":1}`); err != nil || r.Effect != broker.Done {
		t.Errorf("IDEM-02: %+v %v", r, err)
	}
}

// UPD-12: a change of the plan takes with it only what the new plan's schema
// allows, and a refusal names the rest, which null removes.
func TestPlanChangesKeepNothingThatTheNewPlanForbids(t *testing.T) {
	d := newDesk(t)
	ctx, c := context.Background(), d.caller(true)
	expect.Get(d.put("sync", c, `{"size":"small","colour":"red"}`))(t)
	patch := func(plan, parameters string) error {
		q := broker.UpdateRequest{Caller: c, InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids[plan]}
		if parameters != "" {
			q.Parameters = json.RawMessage(parameters)
		}
		_, err := d.Update(ctx, q)
		return err
	}
	for _, parameters := range []string{"", `{}`, `{"size":"large"}`, `{"colour":null,"size":"huge"}`} {
		member := "/colour"
		if strings.Contains(parameters, "huge") {
			member = "/size"
		}
		if err := patch("schema", parameters); reason(err) != lifecycle.BadRequest || !strings.Contains(err.Error(), member) {
			t.Errorf("with %s: %v, want it to name %s", parameters, err, member)
		}
	}
	if v, err := d.Instance(ctx, c, "i"); err != nil || v.PlanID != d.ids["sync"] ||
		string(v.Parameters) != `{"size":"small","colour":"red"}` {
		t.Errorf("ERR-08: a refusal changed %s %s, %v", v.PlanID, v.Parameters, err)
	}
	if err := patch("schema", `{"colour":null}`); err != nil {
		t.Errorf("null removes what was in the way: %v", err)
	}
	if v, err := d.Instance(ctx, c, "i"); err != nil || v.PlanID != d.ids["schema"] || string(v.Parameters) != `{"size":"small"}` {
		t.Errorf("%s %s, %v", v.PlanID, v.Parameters, err)
	}
}

// UPD-08: null removes a parameter, and removes it once.
func TestNullRemovesAParameter(t *testing.T) {
	d := newDesk(t)
	ctx := context.Background()
	expect.Get(d.put("async", d.caller(false), `{"a":1,"b":{"c":null}}`))(t)
	patch := func(parameters string) (broker.Result, error) {
		return d.Update(ctx, broker.UpdateRequest{Caller: d.caller(true), InstanceID: "i", ServiceID: d.ids["demo"],
			Parameters: json.RawMessage(parameters)})
	}
	running, err := patch(`{"a":null,"delay_seconds":null}`) // of which the schema wants a number
	if err != nil || running.Effect != broker.Accepted {
		t.Fatalf("%+v %v", running, err)
	}
	if again, err := patch(`{"a":null}`); err != nil || again.Token != running.Token {
		t.Errorf("UPD-21: the same update: %+v %v", again, err)
	}
	d.settle(running.Token)
	if v, err := d.Instance(ctx, d.caller(true), "i"); err != nil || string(v.Parameters) != `{"b":{"c":null}}` {
		t.Errorf("left with %s, %v", v.Parameters, err)
	}
	if r, err := patch(`{"a":null}`); err != nil || r.Effect != broker.Done {
		t.Errorf("UPD-13: what is gone already: %+v %v", r, err)
	}
	if r, err := d.put("async", d.caller(false), `{"b":{"c":null}}`); err != nil || r.Effect != broker.Done {
		t.Errorf("IDEM-02: %+v %v", r, err)
	}
}

// A repeated bind gives the same credentials, a binding id that is used again
// others (BIND-02, IDEM-09).
func TestCredentials(t *testing.T) {
	d := newDesk(t)
	expect.Get(d.put("sync", d.caller(false), ""))(t)
	first, err := d.bind("i", "b", "sync", d.caller(false))
	if err != nil || first.Effect != broker.Created || len(first.Grant.Credentials) == 0 {
		t.Fatalf("%+v %v", first.Effect, err)
	}
	again, err := d.bind("i", "b", "sync", d.caller(false))
	if err != nil || again.Effect != broker.Done || again.Grant.Credentials["password"] != first.Grant.Credentials["password"] {
		t.Errorf("BIND-02: %v %v", again.Effect, err)
	}
	remove := broker.DeleteRequest{Caller: d.caller(false), InstanceID: "i", BindingID: "b", ServiceID: "x", PlanID: "y"}
	if r, err := d.Delete(context.Background(), remove); err != nil || r.Effect != broker.Done {
		t.Fatalf("UNB-05: %+v %v", r, err)
	}
	refused(t, lifecycle.Gone, expect.Err(d.Delete(context.Background(), remove)), "UNB-03")
}
