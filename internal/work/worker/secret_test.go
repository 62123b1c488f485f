package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/work/worker"
)

// A secretive world is one whose provider's cloud chooses the secrets.
type secretive struct {
	*world
	cloud *cloudtest.Cloud
	p     *cloudtest.Provider
	// during, if set, comes before and after each bind of the provider.
	during func(b provider.Binding, after bool)
}

func newSecretive(t *testing.T) *secretive {
	t.Helper()
	w := newWorld(t)
	s := &secretive{world: w, cloud: cloudtest.NewCloud(w.now)}
	s.p = cloudtest.New(s.cloud, "broker-1")
	s.does(provision)
	return s
}

// steps is a worker of that provider.
func (s *secretive) steps() *worker.Worker {
	return s.by(stub{cloud: cloud{s.world, s.p}, bind: func(ctx context.Context, b provider.Binding) (provider.Status, error) {
		if s.during != nil {
			s.during(b, false)
			defer s.during(b, true)
		}
		return s.p.Bind(ctx, b)
	}})
}

func (s *secretive) drives(ref workflow.Ref) {
	s.Helper()
	s.drive(s.steps(), ref)
}

// does carries a request through.
func (s *secretive) does(ask asking) {
	s.Helper()
	s.drives(s.asks(ask))
}

// isEmpty requires that nothing is left.
func (s *secretive) isEmpty() {
	s.Helper()
	if held, _, err := s.p.List(context.Background(), ""); err != nil || len(held) != 0 {
		s.Errorf("left behind: %+v %v", held, err)
	}
}

// granted requires that the binding is ready, and that what is recorded of it is
// the one key that opens; its state holds no secret.
func (s *secretive) granted() {
	s.Helper()
	b := s.recorded(bindingKey)
	expect.Same(s, "the binding", lifecycle.Ready, b.State)
	var g provider.Grant
	plain := expect.Get(s.vault.Open(context.Background(), vault.Label{Key: bindingKey, Member: vault.Grant}, b.Grant))(s)
	expect.OK(s, json.Unmarshal(plain, &g))
	text := func(name string) string { v, _ := g.Credentials[name].(string); return v }
	expect.Same(s, "its grant opens", true, s.cloud.Opens(&g))
	expect.Same(s, "keys that are accepted", 1, s.cloud.Secrets(text("username")))
	state, err := s.vault.Open(context.Background(), vault.Label{Key: bindingKey, Member: vault.State}, b.Made.State)
	if err != nil || len(state) == 0 || text("password") == "" || bytes.Contains(state, []byte(text("password"))) {
		s.Errorf("the state is lost, or holds the secret still: %v", err)
	}
}

// Two steps of one bind run at once: an execution that was started twice, or one that the reaper took for dead. Each
// would take the other's key for one that nobody recorded, and revoke it: the binding would be ready, its key dead.
func TestTwoStepsOfOneBind(t *testing.T) {
	for name, during := range map[string]bool{"BeforeTheCall": false, "AfterTheCall": true} {
		t.Run(name, func(t *testing.T) {
			s := newSecretive(t)
			ref := s.asks(bind)
			nested := false
			s.during = func(_ provider.Binding, after bool) {
				if after != during || nested {
					return
				}
				nested = true
				defer func() { nested = false }()
				for range 5 { // a step that is there, too, goes on to the end if it can
					if wait := s.waits(s.steps(), ref); wait <= worker.Patience {
						t.Errorf("the second step waits %v, want a wait that is left to the engine", wait)
					}
				}
			}
			s.drives(ref)
			s.granted()
		})
	}
}

// Each call by which a bind reaches its cloud goes wrong once, in each way, and
// the operation goes on as its lease allows.
func TestFaultsOfATwoStepBind(t *testing.T) {
	for _, fault := range []providertest.Fault{providertest.Refused, providertest.Lost, providertest.Late, providertest.Killed} {
		t.Run(fault.String(), func(t *testing.T) {
			for n, struck := 1, true; struck; n++ {
				s := newSecretive(t)
				ref := s.asks(bind)
				hit, disarm := s.p.Calls.Arm(n, fault)
				before := s.clock
				for !hit() {
					outcome := s.step(s.steps(), ref)
					if outcome.Settled {
						break
					}
					s.clock = s.clock.Add(max(outcome.Wait, time.Millisecond))
				}
				struck = hit()
				disarm()
				s.drives(ref)
				s.granted()
				if took := s.clock.Sub(before); took > 40*time.Second {
					t.Errorf("with a fault at call %d it took %v: it waited for its own lease", n, took)
				}
				s.does(unbind)
				if b := s.recorded(bindingKey); b.State != lifecycle.Deleted || b.Made.State != nil {
					t.Errorf("the binding is %q, with state %v", b.State, b.Made.State != nil)
				}
				s.does(deprovision)
				s.isEmpty()
			}
		})
	}
}

// A step dies in the middle of its call: nobody knows whether the call goes on,
// and the next step waits until the lease has run out.
func TestAStepThatDiedKeepsItsLease(t *testing.T) {
	s := newSecretive(t)
	ref := s.asks(bind)
	s.dies(ref)
	before := s.clock
	s.drives(ref)
	s.granted()
	if took := s.clock.Sub(before); took < time.Minute {
		t.Errorf("the next step called the cloud after %v", took)
	}
}

// A provider is told the recorded broker, the target and the state of the first step and,
// in an update, the former snapshot of the plan.
func TestWhatAProviderIsTold(t *testing.T) {
	w := newWorld(t)
	var told []provider.Instance
	state := provider.State{Format: 3, Data: []byte("remembered")}
	target := provider.Target{Name: "east", Identity: "account"}
	by := w.telling(func(in provider.Instance) (provider.Status, error) {
		if told = append(told, in); len(told) == 1 {
			return provider.Status{State: &state, Target: &target, After: time.Second}, nil
		}
		return provider.Status{Done: true}, nil
	})
	run := func(r broker.Result, err error) provider.Instance {
		t.Helper()
		expect.OK(t, err)
		w.drive(by, refOf(r, 1))
		return told[len(told)-1]
	}
	b := w.broker()
	b.Identity, b.Catalog = "broker-1", planned{w.offered, json.RawMessage(`{"means":"this"}`), "1.0.0"}
	in := run(provision(w, b))
	if in.Broker != "broker-1" || in.Target != target || string(in.State.Data) != "remembered" || in.State.Format != 3 ||
		string(in.Snapshot) != `{"means":"this"}` || in.Former != nil || in.Place.Organization != "o" || in.Place.Space != "s" {
		t.Errorf("the second step of a provision is told %+v of broker %q, target %v, state %v", in.Place, in.Broker, in.Target, in.State)
	}
	if op := w.instance().Operation; !in.Operation.Deadline.Equal(op.Deadline) || op.Deadline.IsZero() {
		t.Errorf("the provider is told the deadline %v of %v", in.Operation.Deadline, op.Deadline)
	}
	use, err := w.ledger().NextTargetUse(t.Context(), lifecycle.TargetUse{}, false)
	if err != nil || use == nil || use.Target != "east" || use.Provider != "demo" || use.Key != w.instance().Key {
		t.Errorf("the target is not among those in use: %+v %v", use, err)
	}
	if first := told[0]; first.State.Data != nil || first.Target != (provider.Target{}) {
		t.Errorf("the first step is told a state or a target: %v", first.Target)
	}
	b.Catalog = planned{w.offered, json.RawMessage(`{"means":"more"}`), "2.0.0"}
	newer := "2.0.0"
	in = run(b.Update(t.Context(), broker.UpdateRequest{Caller: w.caller(), InstanceID: "i", ServiceID: service(),
		MaintenanceVersion: &newer}))
	if string(in.Snapshot) != `{"means":"more"}` || string(in.Former) != `{"means":"this"}` || string(in.State.Data) != "remembered" {
		t.Errorf("an update is told %s, formerly %s", in.Snapshot, in.Former)
	}
	in = run(deprovision(w, w.broker()))
	if in.Parameters != nil || string(in.Snapshot) != `{"means":"more"}` || string(in.State.Data) != "remembered" ||
		in.Target != target {
		t.Errorf("a deletion is told %s, target %v", in.Snapshot, in.Target)
	}
	if i := w.instance(); i.Made.State != nil || i.Made.Target.Name != "east" || i.Made.Broker != "broker-1" {
		t.Errorf("the tombstone keeps %+v, want all but the state", i.Made)
	}
}

// The key that sealed a provider's state is lost, or cannot be asked: what was made is deleted all the same.
func TestADeletionWorksWithoutTheState(t *testing.T) {
	s := newSecretive(t)
	s.does(bind)
	s.granted()
	s.vault = shut{errors.New("the key is disabled")}
	s.does(unbind)
	s.does(deprovision)
	s.isEmpty()
}

// A state that is too large fails the operation, and one that a failure gives is recorded.
func TestStatesAtTheirBounds(t *testing.T) {
	state := func(bytes int) *provider.State { return &provider.State{Format: 1, Data: make([]byte, bytes)} }
	long, failure := provider.Target{Name: strings.Repeat("x", limits.Record)}, provider.Failf("no")
	failure.State = state(1)
	for name, c := range map[string]struct {
		status provider.Status
		err    error
		fails  bool
		kept   bool
	}{
		"Largest":       {provider.Status{Done: true, State: state(limits.State)}, nil, false, true},
		"TooLarge":      {provider.Status{Done: true, State: state(limits.State + 1)}, nil, true, false},
		"TargetTooLong": {provider.Status{Done: true, Target: &long}, nil, true, false},
		"OfAFailure":    {provider.Status{}, failure, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.step(w.with(answers(c.status, c.err)), w.asks(provision))
			i := w.instance()
			if (i.State == lifecycle.CreateFailed) != c.fails || (i.Made.State != nil) != c.kept {
				t.Errorf("the instance is %q, with a state: %v", i.State, i.Made.State != nil)
			}
		})
	}
}

// planned is a catalog whose plans mean something.
type planned struct {
	*catalog.Catalog
	snapshot    json.RawMessage
	maintenance string
}

func (p planned) Plan(service, plan string) (catalog.Offering, catalog.Plan, bool) {
	offering, found, ok := p.Catalog.Plan(service, plan)
	found.Snapshot, found.MaintenanceInfo = p.snapshot, &catalog.MaintenanceInfo{Version: p.maintenance}
	return offering, found, ok
}

func (p planned) Offering(service string) (catalog.Offering, bool) {
	offering, ok := p.Catalog.Offering(service)
	offering.Plans = slices.Clone(offering.Plans)
	for i := range offering.Plans {
		offering.Plans[i].Snapshot = p.snapshot
	}
	return offering, ok
}

// A record that was derived again does not know what the plan meant: a binding of it is
// made by what the plan means now, and a deletion by what the provider itself finds.
func TestABindingOfARebuiltInstance(t *testing.T) {
	s := newSecretive(t)
	i := s.instance()
	i.Attributes.Snapshot = nil
	expect.OK(t, quietLedger(s.world).Commit(t.Context(), ledger.Put(i)))
	ref := s.asks(bind)
	var told []string
	s.during = func(b provider.Binding, _ bool) { told = append(told, string(b.Instance.Snapshot)) }
	by := s.steps()
	by.Plans = planned{s.offered, json.RawMessage(`{"means":"this"}`), ""}
	s.step(by, ref)
	if len(told) == 0 || told[0] != `{"means":"this"}` {
		t.Errorf("the provider is told %q", told)
	}
}

// An update waits until no step of a binding calls the cloud, and a bind whose
// instance has changed since it was asked is not recorded.
func TestUpdatesAndBindsDoNotMeet(t *testing.T) {
	s := newSecretive(t)
	ref := s.asks(bind)
	var updated workflow.Ref
	s.during = func(_ provider.Binding, after bool) {
		if after || updated.Attempt != 0 {
			return
		}
		updated = s.asks(update)
		s.waits(s.silent("for an update beside the bind"), updated)
	}
	for range 5 {
		s.clock = s.clock.Add(s.step(s.steps(), ref).Wait)
	}
	expect.Same(t, "the binding waits while its instance is updated", true, s.recorded(bindingKey).InProgress())
	s.drives(updated)
	expect.Same(t, "the instance", lifecycle.Ready, s.instance().State)
	s.drives(ref)
	s.granted()
}
