package races_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/records/store/bolt"
	"github.com/longshore/longshore/internal/records/store/dynamo"
	"github.com/longshore/longshore/internal/test/dynamotest"
	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/inprocess"
	"github.com/longshore/longshore/internal/work/worker"
)

// stores are what every race is run on.
var stores = map[string]func(t *testing.T) store.Store{"Bolt": newBolt, "Dynamo": newDynamo}

func newBolt(t *testing.T) store.Store {
	t.Helper()
	s := expect.Get(bolt.Open(filepath.Join(t.TempDir(), "records"), bolt.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return unsteady{s}
}

func newDynamo(t *testing.T) store.Store {
	t.Helper()
	client := dynamodb.NewFromConfig(emulator.Config(t))
	return dynamo.New(client, dynamotest.NewTable(t, client))
}

// unsteady is a store with a network before it: on one machine each call is so quick that requests would hardly ever meet.
type unsteady struct{ store.Store }

func dawdle() { time.Sleep(time.Duration(mathrand.IntN(300)) * time.Microsecond) }

func (s unsteady) Get(ctx context.Context, k store.Key) (store.Record, error) {
	r, err := s.Store.Get(ctx, k)
	dawdle()
	return r, err
}

func (s unsteady) Commit(ctx context.Context, changes ...store.Change) error {
	dawdle()
	return s.Store.Commit(ctx, changes...)
}

const (
	service  = "5d5ff4c2-51ee-4f4c-8a5a-0b8f6e3c9d10"
	plan     = "0c6a4c5e-2d7b-4a27-9f6d-6f2f4a3b7c11"
	platform = "p"
)

// offered is one plan where every request may be answered now or later.
var offered = sync.OnceValue(func() *catalog.Catalog {
	return testkit.Offering("quick", `
id: `+service+`
name: races
description: For requests that race
provider: quick
bindable: true
instances_retrievable: true
bindings_retrievable: true
plans:
- id: `+plan+`
  name: either
  description: Now or later
  asynchronous: allowed
  asynchronous_binding: allowed
`)
})

// api is what a client asks of a broker.
type api interface {
	Provision(context.Context, broker.ProvisionRequest) (broker.Result, error)
	Update(context.Context, broker.UpdateRequest) (broker.Result, error)
	Delete(context.Context, broker.DeleteRequest) (broker.Result, error)
	Bind(context.Context, broker.BindRequest) (broker.Result, error)
	LastOperation(context.Context, lifecycle.Key, string) (broker.Poll, error)
	View(ctx context.Context, c broker.Caller, instance, binding string) (broker.View, error)
}

// A mutant replaces a part of the broker by one that is broken, to prove that
// it would be noticed. The zero mutant replaces nothing.
type mutant struct {
	store   func(store.Store) store.Store
	steps   func(store.Store) store.Store // the store of workers alone
	records func(broker.Records) broker.Records
	api     func(api) api
}

// An arena is several brokers, each with an engine and a memory of its own, over one store and one cloud.
type arena struct {
	*testing.T
	brokers []api
	cloud   *cloud
	// patience is when an operation that runs counts as forgotten.
	patience time.Duration
	// off is how far the brokers' clocks are from the right one.
	off atomic.Int64
}

// now is what the brokers' clocks show.
func (a *arena) now() time.Time { return now().Add(time.Duration(a.off.Load())) }

// processes is how many brokers answer for one store.
const processes = 2

func newArena(t *testing.T, s store.Store, m mutant) *arena {
	t.Helper()
	if m.store != nil {
		s = m.store(s)
	}
	a := &arena{T: t, patience: time.Minute, cloud: &cloud{things: map[string]string{}, looks: map[string]int{},
		refused: map[string]bool{}}}
	kit := testkit.New(testkit.Options{Store: s, Catalog: offered(),
		Providers: map[string]provider.Provider{"quick": a.cloud}, Now: a.now, NewID: operationID,
		SynchronousWait: 20 * time.Second, OperationTimeout: 3 * time.Hour, CallTimeout: 20 * time.Second,
		HardTimeout: 30 * time.Second})
	loud := slog.New(slog.NewTextHandler(complaints{t}, nil))
	if m.store != nil || m.steps != nil || m.records != nil || m.api != nil {
		a.patience, loud = 100*time.Millisecond, kit.Log
	}
	for range processes {
		steps := kit.WorkerOptions()
		if m.steps != nil {
			steps.Records = kit.LedgerOver(m.steps(s))
		}
		engine := inprocess.New(worker.New(steps).Step, inprocess.Options{After: soon, Log: loud})
		t.Cleanup(engine.Close)
		o := kit.BrokerOptions()
		o.Engine, o.RecordsTimeout = usher{engine}, time.Minute
		if m.records != nil {
			o.Records = m.records(o.Records)
		}
		var b api = broker.New(o)
		if m.api != nil {
			b = m.api(b)
		}
		a.brokers = append(a.brokers, b)
	}
	return a
}

// began lets now go on evenly, whatever is done to the machine's clock.
var began = time.Now()

func now() time.Time { return began.Add(time.Since(began)).Round(0).UTC() }

// soon is the pause of an engine, but not for long.
func soon(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(min(d, 2*time.Millisecond), f).Stop
}

func operationID() string { return rand.Text()[:lifecycle.OperationIDLength] }

// complaints are executions that ended by an error: nothing would drive their operations any more.
type complaints struct{ *testing.T }

func (c complaints) Write(line []byte) (int, error) {
	c.Errorf("%s", line)
	return len(line), nil
}

// An usher is an engine that notes for which operation a request waits, which
// its answer does not tell, and which ones it has started.
type usher struct{ workflow.Engine }

type note struct {
	waited, started string
}

type noteKey struct{}

func (u usher) Start(ctx context.Context, ref workflow.Ref) error {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		n.started = ref.Token.Operation
	}
	return u.Engine.Start(ctx, ref)
}

func (u usher) Finish(ctx context.Context, ref workflow.Ref) error {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		n.waited = ref.Token.Operation
	}
	return u.Engine.Finish(ctx, ref)
}

// A cloud is a provider whose things take a few looks each. The parameter v says what fails.
type cloud struct {
	mu      sync.Mutex
	things  map[string]string // incarnations by name
	made    int               // so far
	looks   map[string]int    // so far, by operation
	refused map[string]bool   // deletions that have failed once, by name and incarnation
	holding bool              // nothing is ever done
}

// parameters are those of every request.
type parameters struct {
	V int8 `json:"v"`
}

func decoded(raw json.RawMessage) int8 {
	var p parameters
	_ = json.Unmarshal(raw, &p)
	return p.V
}

// look is one call for an operation: done after none to two others.
func (c *cloud) look(op provider.Operation) bool {
	c.looks[op.ID]++
	return !c.holding && c.looks[op.ID] > int(op.ID[0])%3
}

// hold lets no operation end, or lets them all go on.
func (c *cloud) hold(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = on
}

func (c *cloud) make(name, incarnation string, v, bad int8, op provider.Operation) (provider.Status, error) {
	dawdle()
	c.mu.Lock()
	defer c.mu.Unlock()
	if v == bad {
		return provider.Status{}, provider.Failf("as was asked for")
	}
	if c.things[name] != incarnation {
		c.things[name] = incarnation
		c.made++
	}
	return provider.Status{Done: c.look(op), After: time.Millisecond,
		Grant: &provider.Grant{Credentials: map[string]any{"incarnation": incarnation}}}, nil
}

func (c *cloud) remove(name, incarnation string, v int8, op provider.Operation) (provider.Status, error) {
	dawdle()
	c.mu.Lock()
	defer c.mu.Unlock()
	if once := name + " " + incarnation; v == failsToDelete && !c.refused[once] {
		c.refused[once] = true
		return provider.Status{}, provider.Failf("as was asked for")
	}
	delete(c.things, name)
	return provider.Status{Done: c.look(op), After: time.Millisecond}, nil
}

func (c *cloud) Provision(_ context.Context, in provider.Instance) (provider.Status, error) {
	return c.make(in.ID, in.Incarnation, decoded(in.Parameters), failsToCreate, in.Operation)
}

func (c *cloud) Update(_ context.Context, in provider.Instance) (provider.Status, error) {
	return c.make(in.ID, in.Incarnation, decoded(in.Parameters), failsToUpdate, in.Operation)
}

func (c *cloud) Deprovision(_ context.Context, in provider.Instance) (provider.Status, error) {
	return c.remove(in.ID, in.Incarnation, decoded(in.Parameters), in.Operation)
}

func (c *cloud) Bind(_ context.Context, b provider.Binding) (provider.Status, error) {
	return c.make(b.Instance.ID+"/"+b.ID, b.Incarnation, decoded(b.Parameters), failsToCreate, b.Instance.Operation)
}

func (c *cloud) Unbind(_ context.Context, b provider.Binding) (provider.Status, error) {
	return c.remove(b.Instance.ID+"/"+b.ID, b.Incarnation, decoded(b.Parameters), b.Instance.Operation)
}

// holds reports whether there is a thing of this name.
func (c *cloud) holds(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.things[name]
	return ok
}

// raw is what one request came to.
type raw struct {
	broker.Result
	err        error
	grant      *provider.Grant
	parameters json.RawMessage
	poll       *broker.Poll
	note       note
}

// refusal is nil if it was not refused.
func (r raw) refusal() *lifecycle.Refusal {
	refusal, _ := errors.AsType[*lifecycle.Refusal](r.err)
	return refusal
}

// credentials names the operation that they are of.
func (r raw) credentials() string {
	if r.grant == nil {
		return ""
	}
	of, _ := r.grant.Credentials["incarnation"].(string)
	return of
}

// names are what a request is about on the platform.
type names struct{ instance, binding string }

// ask sends one request to one of the brokers. Token is that of a poll.
func (a *arena) ask(process int, q request, about names, token string) (r raw) {
	b, instance, binding := a.brokers[process%len(a.brokers)], about.instance, about.binding
	ctx := context.WithValue(a.Context(), noteKey{}, &r.note)
	c := broker.Caller{Platform: platform, Received: time.Unix(0, q.sent).UTC(), AcceptsIncomplete: q.permitted}
	given := json.RawMessage(fmt.Sprintf(`{"v":%d}`, q.parameters))
	key := lifecycle.Key{Platform: platform, Instance: instance}
	switch q.verb {
	case provision:
		r.Result, r.err = b.Provision(ctx, broker.ProvisionRequest{Caller: c, InstanceID: instance, ServiceID: service,
			PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s", Parameters: given})
	case update:
		r.Result, r.err = b.Update(ctx, broker.UpdateRequest{Caller: c, InstanceID: instance, ServiceID: service,
			Parameters: given})
	case bind:
		r.Result, r.err = b.Bind(ctx, broker.BindRequest{Caller: c, InstanceID: instance, BindingID: binding, ServiceID: service,
			PlanID: plan, Parameters: given})
		r.grant, r.Result.Grant = r.Result.Grant, nil
	case deprovision:
		r.Result, r.err = b.Delete(ctx, broker.DeleteRequest{Caller: c, InstanceID: instance, ServiceID: service, PlanID: plan})
	case unbind:
		r.Result, r.err = b.Delete(ctx, broker.DeleteRequest{Caller: c, InstanceID: instance, BindingID: binding,
			ServiceID: service, PlanID: plan})
	case pollInstance, pollBinding:
		if q.verb == pollBinding {
			key = key.BindingKey(binding)
		}
		var p broker.Poll
		if p, r.err = b.LastOperation(ctx, key, token); r.err == nil {
			r.poll = &p
		}
	case getInstance:
		var v broker.View
		v, r.err = b.View(ctx, c, instance, "")
		r.parameters = v.Parameters
	case getBinding:
		var v broker.View
		v, r.err = b.View(ctx, c, instance, binding)
		r.parameters, r.grant = v.Parameters, v.Grant
	}
	return r
}

// latest waits until the latest operation of an instance or a binding has settled, and gives what is said of it.
func (a *arena) latest(process int, v verb, on names) (said *broker.Poll, settles bool) {
	for end := time.Now().Add(a.patience); ; time.Sleep(time.Millisecond) {
		r := a.ask(process, request{verb: v}, on, "")
		if r.poll == nil || r.poll.Operation.Phase != lifecycle.InProgress {
			return r.poll, true
		}
		if time.Now().After(end) {
			return r.poll, false
		}
	}
}
