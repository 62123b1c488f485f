package worker_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

// A world is the whole broker on a fake clock: what it does is driven by the
// test, step by step, and it dies at a chosen effect.
type world struct {
	*testing.T
	clock   time.Time
	records store.Store
	things  *cloudtest.Cloud
	vault   vault.Vault
	offered *catalog.Catalog
	ids     func() string
	alone   bool // whoever took a lease is dead
	started map[string]workflow.Ref
	handle  string // of what may be given back

	effects int // so far
	dieAt   int // 0: never
	after   bool
}

// died is how an effect ends the process.
type died struct{}

var (
	service       = sync.OnceValue(func() string { s, _ := testkit.PlanIDs("async-bind"); return s })
	planAsyncBind = sync.OnceValue(func() string { _, p := testkit.PlanIDs("async-bind"); return p })
)

func newWorld(t *testing.T) *world {
	t.Helper()
	records := expect.Get(bolt.Open(filepath.Join(t.TempDir(), "records"), bolt.Options{}))(t)
	t.Cleanup(func() { _ = records.Close() })
	w := &world{T: t, clock: testkit.Epoch, records: records, ids: testkit.IDs(), vault: testkit.Key(),
		offered: testkit.Demo(), started: map[string]workflow.Ref{}}
	w.things = cloudtest.NewCloud(w.now)
	return w
}

func (w *world) now() time.Time { return w.clock }

// effect is called around everything that outlives the process.
func (w *world) effect(do func()) {
	w.effects++
	if w.effects == w.dieAt && !w.after {
		panic(died{})
	}
	do()
	if w.effects == w.dieAt {
		panic(died{})
	}
}

// effects is a store whose writes are effects of the world.
type effects struct {
	store.Store
	w *world
}

func (e effects) Commit(ctx context.Context, changes ...store.Change) (err error) {
	e.w.effect(func() { err = e.Store.Commit(ctx, changes...) })
	return err
}

// A cloud is the provider of a world.
type cloud struct {
	w *world
	*cloudtest.Provider
}

// A call is one of a provider.
type call[T any] = func(context.Context, T) (provider.Status, error)

// A stub is a provider that answers as a test says; what the test leaves out, the cloud does, and each change of it is an effect.
type stub struct {
	cloud
	instance     call[provider.Instance]
	bind, unbind call[provider.Binding]
	quarantine   func(provider.Holding) error
	adopt        func(h provider.Holding, former provider.Tags) error
}

// given makes a call as the test says, or else by the cloud.
func given[T any](s stub, ctx context.Context, in T, by, otherwise call[T]) (st provider.Status, err error) {
	if by != nil {
		return by(ctx, in)
	}
	s.w.effect(func() { st, err = otherwise(ctx, in) })
	return st, err
}

func (s stub) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return given(s, ctx, in, s.instance, s.Provider.Provision)
}

func (s stub) Update(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return given(s, ctx, in, s.instance, s.Provider.Update)
}

func (s stub) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	return given(s, ctx, in, s.instance, s.Provider.Deprovision)
}

func (s stub) Bind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return given(s, ctx, b, s.bind, s.Provider.Bind)
}

func (s stub) Unbind(ctx context.Context, b provider.Binding) (provider.Status, error) {
	return given(s, ctx, b, s.unbind, s.Provider.Unbind)
}

func (s stub) Quarantine(ctx context.Context, h provider.Holding) (err error) {
	if s.quarantine != nil {
		return s.quarantine(h)
	}
	s.w.effect(func() { err = s.Provider.Quarantine(ctx, h) })
	return err
}

func (s stub) Release(ctx context.Context, h provider.Holding) (err error) {
	s.w.effect(func() { err = s.Provider.Release(ctx, h) })
	return err
}

func (s stub) Adopt(ctx context.Context, h provider.Holding, former provider.Tags) (err error) {
	if s.adopt != nil {
		return s.adopt(h, former)
	}
	s.w.effect(func() { err = s.Provider.Adopt(ctx, h, former) })
	return err
}

// cloud is the provider of the process that runs now.
func (w *world) cloud() cloud { return cloud{w, cloudtest.Demo(w.things, 3*time.Second)} }

// Start and Finish make a world an engine that only remembers.
func (w *world) Start(_ context.Context, ref workflow.Ref) error {
	w.effect(func() { w.started[ref.Name()] = ref })
	return nil
}

// Finish drives to the end, as a synchronous request does.
func (w *world) Finish(_ context.Context, ref workflow.Ref) error {
	w.drive(w.worker(), ref)
	return nil
}

// kit is what the process is made of that runs now.
func (w *world) kit() *testkit.Kit {
	return testkit.New(testkit.Options{Store: effects{w.records, w}, Catalog: w.offered, Vault: w.vault, Engine: w, Now: w.now,
		NewID: w.ids, Alone: w.alone, Providers: map[string]provider.Provider{"demo": stub{cloud: w.cloud()}}})
}

// ledgerOver is a ledger over another store.
func ledgerOver(w *world, s store.Store) *ledger.Ledger { return w.kit().LedgerOver(s) }

// quietLedger writes without effects, for tests with several goroutines.
func quietLedger(w *world) *ledger.Ledger { return ledgerOver(w, w.records) }

func (w *world) ledger() *ledger.Ledger { return w.kit().Ledger() }
func (w *world) broker() *broker.Broker { return w.kit().Broker() }
func (w *world) worker() *worker.Worker { return w.kit().Worker() }
func (w *world) reaper() *reaper.Reaper { return w.kit().Reaper() }

// step makes one step of an execution.
func (w *world) step(by *worker.Worker, ref workflow.Ref) workflow.Outcome {
	w.Helper()
	return expect.Get(by.Step(context.Background(), ref))(w, "a step of", ref.Name())
}

// drive makes the steps of an execution until it has settled, and counts them; waiting moves the clock.
func (w *world) drive(by *worker.Worker, ref workflow.Ref) int {
	w.Helper()
	for n := range 100 {
		outcome := w.step(by, ref)
		if outcome.Settled {
			return n + 1
		}
		w.clock = w.clock.Add(max(outcome.Wait, time.Millisecond))
	}
	w.Fatalf("%s does not settle", ref.Name())
	panic("unreachable")
}

// driveAll steps what was started, in turns, until all of it is settled: a deletion waits for those of its bindings.
func (w *world) driveAll() {
	w.Helper()
	for range 100 {
		wait := time.Millisecond
		for _, name := range slices.Sorted(maps.Keys(w.started)) {
			outcome := w.step(w.worker(), w.started[name])
			if outcome.Settled {
				delete(w.started, name)
			}
			wait = max(wait, outcome.Wait)
		}
		if len(w.started) == 0 {
			return
		}
		w.clock = w.clock.Add(wait)
	}
	w.Fatalf("%d operations do not settle", len(w.started))
}

// alive runs a part of the history, and reports whether it came to its end.
func (w *world) alive(part func()) (survived bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(died); !ok {
				panic(p)
			}
			w.dieAt = 0
		}
	}()
	part()
	return true
}

// restarts is the next process, after one that died.
func (w *world) restarts() {
	w.dieAt, w.started, w.clock = 0, map[string]workflow.Ref{}, w.clock.Add(time.Second)
}

// rest lets everything that was started, or that the reaper finds, come to its end.
func (w *world) rest() {
	for range 50 {
		w.driveAll()
		w.clock = w.clock.Add(2 * lifecycle.Grace)
		if w.sweep().Empty() && len(w.started) == 0 {
			return
		}
	}
	w.Fatal("the reaper never comes to rest")
}

// sweep is one of a reaper.
func (w *world) sweep() reaper.Report {
	w.Helper()
	return expect.Get(w.reaper().Sweep(context.Background()))(w)
}

func (w *world) caller() broker.Caller {
	w.clock = w.clock.Add(time.Millisecond)
	return broker.Caller{Platform: "p", Received: w.clock, AcceptsIncomplete: true}
}

func (w *world) held() int { return len(w.things.Things()) }

// demo is the provider as a test calls it, without effects.
func (w *world) demo() *cloudtest.Provider { return cloudtest.Demo(w.things, 0) }

// A deed is one request of a platform, in a state that it needs, and what the world is afterwards.
type deed struct {
	before func(w *world) // without any crash
	ask    asking
	held   int             // things that exist in the end
	state  lifecycle.State // of what was asked about
	key    lifecycle.Key
}

var (
	instanceKey = lifecycle.Key{Platform: "p", Instance: "i"}
	bindingKey  = lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}
)

// asking is a request of a platform.
type asking = func(*world, *broker.Broker) (broker.Result, error)

// orders asks for an instance.
func orders(id, plan string, parameters []byte) asking {
	return func(w *world, b *broker.Broker) (broker.Result, error) {
		_, planID := testkit.PlanIDs(plan)
		return b.Provision(context.Background(), broker.ProvisionRequest{Caller: w.caller(), InstanceID: id,
			ServiceID: service(), PlanID: planID, OrganizationGUID: "o", SpaceGUID: "s", Parameters: parameters})
	}
}

// binds asks for a binding of the instance "i".
func binds(id, plan string, parameters []byte) asking {
	return func(w *world, b *broker.Broker) (broker.Result, error) {
		_, planID := testkit.PlanIDs(plan)
		r, err := b.Bind(context.Background(), broker.BindRequest{
			Caller: w.caller(), InstanceID: "i", BindingID: id, ServiceID: service(), PlanID: planID, Parameters: parameters,
		})
		return r, err
	}
}

// deletes asks for the end of an instance, or of its binding.
func deletes(id, binding string) asking {
	return func(w *world, b *broker.Broker) (broker.Result, error) {
		return b.Delete(context.Background(), broker.DeleteRequest{
			Caller: w.caller(), InstanceID: id, BindingID: binding, ServiceID: service(), PlanID: planAsyncBind(),
		})
	}
}

var (
	provision   = orders("i", "async-bind", []byte(`{"a":1}`))
	bind        = bindAs("b")
	unbind      = deletes("i", "b")
	deprovision = deletes("i", "")
	update      = updates(`{"a":2}`)
)

func bindAs(id string) asking { return binds(id, "async-bind", nil) }

// updates asks for other parameters of the instance "i".
func updates(parameters string) asking {
	return func(w *world, b *broker.Broker) (broker.Result, error) {
		return b.Update(context.Background(),
			broker.UpdateRequest{Caller: w.caller(), InstanceID: "i", ServiceID: service(), Parameters: []byte(parameters)})
	}
}

// done is a request that is carried through, without crashes.
func done(asks ...asking) func(*world) {
	return func(w *world) {
		for _, ask := range asks {
			w.must(ask)
			w.rest()
		}
	}
}

// begun is a request whose work has made its first step only.
func begun(ask asking) func(*world) {
	return func(w *world) {
		w.must(ask)
		for _, ref := range w.started {
			w.step(w.worker(), ref)
		}
	}
}

func both(first, second func(*world)) func(*world) { return func(w *world) { first(w); second(w) } }

var deeds = map[string]deed{
	"Provision":                    {func(*world) {}, provision, 1, lifecycle.Ready, instanceKey},
	"Restore":                      {done(provision), restore, 2, lifecycle.Ready, restoredKey},
	"Update":                       {done(provision), update, 1, lifecycle.Ready, instanceKey},
	"Deprovision":                  {done(provision), deprovision, 0, lifecycle.Deleted, instanceKey},
	"DeprovisionWithBinding":       {done(provision, bind), deprovision, 0, lifecycle.Deleted, instanceKey},
	"DeprovisionWithBindings":      {done(provision, bind, unbind, bindAs("c"), bindAs("d")), deprovision, 0, lifecycle.Deleted, instanceKey},
	"DeprovisionOvertakes":         {begun(provision), deprovision, 0, lifecycle.Deleted, instanceKey},
	"DeprovisionOvertakesABind":    {both(done(provision), begun(bind)), deprovision, 0, lifecycle.Deleted, instanceKey},
	"DeprovisionOvertakesAnUnbind": {both(done(provision, bind), begun(unbind)), deprovision, 0, lifecycle.Deleted, instanceKey},
	"Bind":                         {done(provision), bind, 2, lifecycle.Ready, bindingKey},
	"Unbind":                       {done(provision, bind), unbind, 1, lifecycle.Deleted, bindingKey},
	"UnbindOvertakes":              {both(done(provision), begun(bind)), unbind, 1, lifecycle.Deleted, bindingKey},
}

// Dying before or after each effect of each request, and repeating the request as a platform does, always ends as
// asked, with nothing left behind. It is done once where the next process knows that the last one is dead, and once
// where it does not and has to wait for its leases.
func TestDyingAtEveryEffect(t *testing.T) {
	for name, d := range deeds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if total := d.dies(t, func(*world, string) {}); total < 12 {
				t.Errorf("died %d times only: the test proves little", total)
			}
		})
	}
}

// deaths has a history happen again and again, in which the process dies before or after its n-th effect, until there is
// no such effect, and counts the deaths.
func deaths(history func(at int, after bool) (survived bool)) (total int) {
	for _, after := range []bool{false, true} {
		for at := 1; !history(at, after); at++ {
			total++
		}
	}
	return total
}

// dies has the process die at each effect of a deed, and counts how often.
func (d deed) dies(t *testing.T, ends func(w *world, when string)) (total int) {
	t.Helper()
	for _, alone := range []bool{true, false} {
		total += deaths(func(at int, after bool) bool {
			w := newWorld(t)
			d.before(w)
			w.effects, w.dieAt, w.after = 0, at, after
			when := fmt.Sprintf("dying at effect %d (after: %v, alone: %v)", at, after, alone)
			var first, second broker.Result
			var err error
			answered := w.alive(func() { first, err = d.ask(w, w.broker()) })
			if answered && err != nil {
				t.Fatalf("asking: %v", err)
			}
			survived := answered && w.alive(w.rest)
			if w.dieAt = 0; !survived {
				w.restarts()
				w.alone = alone
			}
			second, err = d.ask(w, w.broker())
			if err != nil && reason(err) != lifecycle.Gone {
				t.Fatalf("%s: the repeated request is answered: %v", when, err)
			}
			if answered && second.Effect == broker.Accepted && first.Token != second.Token {
				t.Errorf("%s: two tokens for one request", when)
			}
			w.rest()
			expect.Same(t, when+": things that exist", d.held, w.held())
			w.ended(d, when)
			ends(w, when)
			return survived
		})
	}
	return total
}

// left requires the state of a record, without a lease, and how many things exist.
func (w *world) left(when string, key lifecycle.Key, state lifecycle.State, things int) {
	w.Helper()
	if r := w.recorded(key); r.State != state || len(r.Leases) != 0 || w.held() != things {
		w.Errorf("%s: it is %q, want %q, and %d things exist, want %d; %+v, leases %v", when, r.State, state, w.held(), things,
			r.Operation, r.Leases)
	}
}

// ended requires the state in the end, and that no lease is left.
func (w *world) ended(d deed, when string) {
	w.Helper()
	c := w.recorded(d.key)
	if c.State != d.state || c.InProgress() || len(c.Leases) != 0 {
		w.Errorf("%s: state %q, operation %+v, leases %v; want %q at rest", when, c.State, c.Operation, c.Leases, d.state)
	}
}
