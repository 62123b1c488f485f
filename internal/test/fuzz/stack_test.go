package fuzz_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

const synchronousWait = 15 * time.Second

// A stack is the whole broker. It drives operations when it is told to.
type stack struct {
	clock   time.Time
	serial  int
	records *memory.Store
	things  *cloudtest.Cloud
	started []workflow.Ref

	handler http.Handler
	worker  *worker.Worker
	reaper  *reaper.Reaper
	ledger  *ledger.Ledger
	demo    *cloudtest.Provider
}

// The platforms, by their user names: one at the root, one behind a prefix.
var users = testkit.Platforms{"root": {ID: "p-root"}, "eu": {ID: "p-eu", Path: "/cf-eu", Offerings: []string{"demo"}}}

// build wires what a stack is made of over its records and things.
func (s *stack) build() *stack {
	s.demo = cloudtest.Demo(s.things, 3*time.Second)
	kit := testkit.New(testkit.Options{Store: s.records, Engine: s, Now: s.now, SynchronousWait: synchronousWait,
		NewID: s.newID, Providers: map[string]provider.Provider{"demo": s.demo}})
	s.ledger, s.worker, s.reaper = kit.Ledger(), kit.Worker(), kit.Reaper()
	s.handler = kit.Handler(kit.Broker(), users)
	return s
}

func (s *stack) now() time.Time { return s.clock }

func (s *stack) newID() string {
	s.serial++
	return fmt.Sprintf("id%0*d", lifecycle.OperationIDLength-2, s.serial)
}

// Start remembers what is to be driven.
func (s *stack) Start(_ context.Context, ref workflow.Ref) error {
	s.started = append(s.started, ref)
	return nil
}

// Finish drives for as long as a request waits; the rest is driven later.
func (s *stack) Finish(ctx context.Context, ref workflow.Ref) error {
	end := s.clock.Add(synchronousWait)
	for s.clock.Before(end) {
		outcome, err := s.worker.Step(ctx, ref)
		if err != nil || outcome.Settled {
			return err
		}
		s.clock = s.clock.Add(max(outcome.Wait, time.Millisecond))
	}
	return s.Start(ctx, ref)
}

// drive drives what was started, one after the other.
func (s *stack) drive() error {
	refs := s.started
	s.started = nil
	for _, ref := range refs {
		if err := s.Finish(context.Background(), ref); err != nil {
			return fmt.Errorf("step of %s: %w", ref.Name(), err)
		}
	}
	return nil
}

// rest drives all that was started, and all that the reaper finds, to its end.
func (s *stack) rest(t testing.TB) {
	t.Helper()
	for range 50 {
		expect.OK(t, s.drive())
		s.clock = s.clock.Add(time.Hour)
		if report := expect.Get(s.reaper.Sweep(context.Background()))(t, "sweep"); report.Empty() && len(s.started) == 0 {
			return
		}
	}
	t.Fatal("the broker never comes to rest")
}

// owned requires that a record knows of everything that exists.
func (s *stack) owned(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	for h, err := range paging.All(ctx, s.demo.List) {
		expect.OK(t, err)
		key := lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding}
		if r := expect.Get(s.ledger.Record(ctx, key, s.clock))(t); !r.Exists() {
			t.Errorf("a thing of %+v exists, whose record is %q", h.Tags, r.State)
		}
	}
}

// A request is one, as a platform might send it.
type request struct {
	user, method, target string
	header               map[string]string
	body                 string
}

func (s *stack) send(q request) (*httptest.ResponseRecorder, error) {
	r, err := http.NewRequest(q.method, "http://broker"+q.target, strings.NewReader(q.body))
	if err != nil {
		return nil, err // no client can send it
	}
	r.SetBasicAuth(q.user, testkit.Password)
	for name, value := range q.header {
		r.Header.Set(name, value)
	}
	s.clock = s.clock.Add(time.Millisecond)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w, nil
}

// states are instances of the snapshot, each named by the state that it is in.
// "binding" is of a plan that binds asynchronously, and its binding still runs.
var states = []string{"absent", "creating", "ready", "updating", "failed", "deleting", "deleted", "sync", "rotatable",
	"maintained", "binding"}

// A snapshot is a broker in use, made once and copied for each request.
type snapshot struct {
	*stack
	tokens map[string]string // of the operation that each instance was last asked for
}

var used = sync.OnceValue(func() snapshot {
	empty := &stack{clock: testkit.Epoch, records: memory.New()}
	empty.things = cloudtest.NewCloud(empty.now)
	s := snapshot{empty.build(), map[string]string{}}
	do := func(id, method, target, body string) {
		w, err := s.send(request{user: "root", method: method, target: target, body: body,
			header: map[string]string{"X-Broker-API-Version": "2.17"}})
		if err != nil || w.Code >= 300 {
			panic(fmt.Sprintf("%s %s: %d %s %v", method, target, w.Code, w.Body, err))
		}
		var answer struct{ Operation string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			panic(err)
		}
		if answer.Operation != "" {
			s.tokens[id] = answer.Operation
		}
	}
	rest := func() {
		if err := s.drive(); err != nil {
			panic(err)
		}
	}
	const later = "?" + later
	provision := func(id, plan string) { do(id, "PUT", instancePath+id+later, provisioning(plan)) }
	remove := func(id, plan string) { do(id, "DELETE", instancePath+id+later+"&"+idsOf(plan), "") }
	bind := func(id, plan string) { do(id, "PUT", instancePath+id+bindingPath+"b-"+id+later, binding(plan)) }

	for _, id := range []string{"ready", "updating", "deleting", "deleted"} {
		provision(id, "async")
	}
	provision("sync", "sync")
	provision("rotatable", "rotatable")
	provision("maintained", "maintenance")
	provision("failed", "fail")
	provision("binding", "async-bind")
	rest()
	bind("ready", "async")
	bind("sync", "sync")
	bind("rotatable", "rotatable")
	remove("deleted", "async")
	rest()
	bind("binding", "async-bind")
	do("updating", "PATCH", instancePath+"updating"+later, `{"service_id":"`+serviceID+`","parameters":{"a":2}}`)
	remove("deleting", "async")
	provision("creating", "async")
	return s
})

// copied is a broker in the state of the snapshot.
func copied() *stack {
	from := used()
	s := &stack{clock: from.clock, serial: from.serial, records: from.records.Clone(), started: slices.Clone(from.started)}
	s.things = from.things.Clone(s.now)
	return s.build()
}

const (
	instancePath = "/v2/service_instances/"
	bindingPath  = "/service_bindings/"
	serviceID    = "f95c6dc5-becc-415a-96b6-c5997d1a68fe"
)

func planID(name string) string {
	_, id := testkit.PlanIDs(name)
	return id
}

func idsOf(plan string) string { return "service_id=" + serviceID + "&plan_id=" + planID(plan) }

func provisioning(plan string) string { return body(plan, `"organization_guid":"o","space_guid":"s"`) }
func binding(plan string) string      { return body(plan, `"bind_resource":{"app_guid":"a"}`) }

func body(plan, members string) string {
	return fmt.Sprintf(`{"service_id":%q,"plan_id":%q,%s,"parameters":{"a":1}}`, serviceID, planID(plan), members)
}
