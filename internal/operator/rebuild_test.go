package operator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/demo"
	"github.com/longshore/longshore/internal/provider/demo/demotest"
	"github.com/longshore/longshore/internal/store/memory"
	"github.com/longshore/longshore/internal/vault"
	"github.com/longshore/longshore/internal/worker"
	"github.com/longshore/longshore/internal/workflow"
	"github.com/longshore/longshore/offerings"
)

// A site is a broker that does everything at once, and its things.
type site struct {
	*testing.T
	clock   time.Time
	serial  int
	offered *catalog.Catalog
	things  *demotest.Memory
	worker  *worker.Worker
	broker  *broker.Broker
	console *operator.Console
	ledger  *ledger.Ledger
}

func newSite(t *testing.T, things *demotest.Memory) *site {
	t.Helper()
	offered, err := catalog.Load([]string{"demo"}, catalog.Source{Name: "offerings", FS: offerings.FS})
	if err != nil {
		t.Fatal(err)
	}
	key, err := vault.NewLocal(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, clock: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), offered: offered, things: things}
	now, log := func() time.Time { return s.clock }, slog.New(slog.DiscardHandler)
	id := func() string {
		s.serial++
		return fmt.Sprintf("id%0*d", lifecycle.OperationIDLength-2, s.serial)
	}
	s.ledger = ledger.New(memory.New(), "account", "region", id)
	p := demo.New(things, demo.Options{Now: now})
	s.worker = worker.New(worker.Options{
		Records: s.ledger, Vault: key, Plans: offered, Providers: map[string]provider.Provider{"demo": p}, Now: now, NewID: id, Log: log,
		CallTimeout: time.Minute, HardTimeout: time.Minute,
	})
	s.broker = broker.New(broker.Options{
		Records: s.ledger, Catalog: offered, Vault: key, Engine: s, Now: now, NewID: id, Log: log,
		NewSecret:       func() []byte { return []byte("0123456789abcdef0123456789abcdef") },
		SynchronousWait: time.Minute, OperationTimeout: time.Hour,
	})
	s.console = operator.New(operator.Options{
		Records: s.ledger, Start: s.Start, Catalog: offered.Plan, ServiceOf: offered.ServiceOf, Now: now, NewID: id, Deployment: "site",
		OperationTimeout: time.Hour, Inventories: map[string]provider.Inventory{"demo": p},
	})
	return s
}

func (s *site) Start(ctx context.Context, ref workflow.Ref) error { return s.Finish(ctx, ref) }

func (s *site) Finish(ctx context.Context, ref workflow.Ref) error {
	for range 100 {
		outcome, err := s.worker.Step(ctx, ref)
		if err != nil || outcome.Settled {
			return err
		}
		s.clock = s.clock.Add(max(outcome.Wait, time.Millisecond))
	}
	return errors.New("it never ends")
}

func (s *site) caller() broker.Caller {
	s.clock = s.clock.Add(time.Second)
	return broker.Caller{Platform: "p", API: 17, Received: s.clock}
}

func (s *site) plan(name string) (service, plan string) {
	for _, o := range s.offered.Offerings() {
		for _, p := range o.Plans {
			if o.Name == "demo" && p.Name == name {
				return o.ID, p.ID
			}
		}
	}
	s.Fatalf("no plan %q", name)
	return "", ""
}

func (s *site) provision(id, plan string) {
	s.Helper()
	service, planID := s.plan(plan)
	if _, err := s.broker.Provision(s.Context(), broker.ProvisionRequest{
		Caller: s.caller(), InstanceID: id, ServiceID: service, PlanID: planID, OrganizationGUID: "o", SpaceGUID: "s", Parameters: []byte(`{"a":1}`),
	}); err != nil {
		s.Fatal(err)
	}
}

func (s *site) bind(instance, id, plan, predecessor string) error {
	service, planID := s.plan(plan)
	q := broker.BindRequest{Caller: s.caller(), InstanceID: instance, BindingID: id, ServiceID: service, PlanID: planID, AppGUID: "app"}
	if predecessor != "" {
		q = broker.BindRequest{Caller: s.caller(), InstanceID: instance, BindingID: id, Predecessor: predecessor}
	}
	_, err := s.broker.Bind(s.Context(), q)
	return err
}

// lost requires that GET and PUT of a binding say that its credentials are lost,
// whatever the PUT asks for (GETB-02, BIND-02).
func (s *site) lost(instance, id, plan string) {
	s.Helper()
	_, read := s.broker.Binding(s.Context(), s.caller(), instance, id)
	service, planID := s.plan(plan)
	q := broker.BindRequest{InstanceID: instance, BindingID: id, ServiceID: service, PlanID: planID}
	_, asKey := s.broker.Bind(s.Context(), s.called(q))
	q.AppGUID = "app"
	_, same := s.broker.Bind(s.Context(), s.called(q))
	q.Parameters = []byte(`{"b":1}`)
	_, other := s.broker.Bind(s.Context(), s.called(q))
	for what, err := range map[string]error{"GET": read, "PUT": same, "PUT of another": other, "PUT of a service key": asKey} {
		var refusal *lifecycle.Refusal
		if !errors.As(err, &refusal) || refusal.Reason != lifecycle.Unprocessable || !strings.Contains(refusal.Message, "credentials of this service binding were lost; rotate it") {
			s.Errorf("%s of %s/%s, whose credentials are lost: %v", what, instance, id, err)
		}
	}
	q.PlanID = "nobody's"
	var refusal *lifecycle.Refusal
	if _, err := s.broker.Bind(s.Context(), s.called(q)); !errors.As(err, &refusal) || refusal.Reason != lifecycle.BadRequest {
		s.Errorf("PUT with an unknown plan: %v", err) // CLI-07
	}
}

func (s *site) called(q broker.BindRequest) broker.BindRequest {
	q.Caller = s.caller()
	return q
}

// again repeats a provision, which is the same as far as it is known (PROV-07),
// and is not with another plan (PROV-08).
func (s *site) again(id, plan string) {
	s.Helper()
	s.provision(id, plan)
	service, other := s.plan("async")
	var refusal *lifecycle.Refusal
	if _, err := s.broker.Provision(s.Context(), broker.ProvisionRequest{
		Caller: s.caller(), InstanceID: id, ServiceID: service, PlanID: other, OrganizationGUID: "o", SpaceGUID: "s",
	}); !errors.As(err, &refusal) || refusal.Reason != lifecycle.Conflict {
		s.Errorf("provisioning %s again, of another plan: %v", id, err)
	}
}

// With its records lost, a broker gets them again from what exists, and goes on:
// instances can be updated, bound and deleted, bindings rotated and removed.
func TestRebuild(t *testing.T) {
	before := newSite(t, demotest.NewMemory())
	before.provision("one", "rotatable")
	before.provision("two", "sync")
	if err := errors.Join(before.bind("one", "b", "rotatable", ""), before.bind("two", "c", "sync", "")); err != nil {
		t.Fatal(err)
	}
	// A thing of somebody else, and one of a plan that nobody offers.
	for name, tags := range map[string]provider.Tags{"odd": {}, "old": {Platform: "p", Instance: "three", Incarnation: "x"}} {
		if err := before.things.Create(t.Context(), demo.Thing{Name: name, Tags: tags, Plan: "gone"}); err != nil {
			t.Fatal(err)
		}
	}

	s := newSite(t, before.things) // its records are lost
	found, err := s.console.Rebuild(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found.Instances)
	slices.Sort(found.Rotate)
	if !slices.Equal(found.Instances, []string{"one", "two"}) || !slices.Equal(found.Rotate, []string{"one/b", "two/c"}) || found.Kept != 0 || len(found.Unknown) != 2 {
		t.Fatalf("%+v", found)
	}
	again, err := s.console.Rebuild(t.Context())
	if err != nil || len(again.Instances)+len(again.Rotate) != 0 || again.Kept != 4 {
		t.Errorf("rebuilt twice: %+v %v", again, err)
	}
	if id, err := s.ledger.Identity(t.Context()); err != nil || id.Deployment != "site" {
		t.Errorf("the table says that it is of %+v, %v", id, err)
	}

	if len(again.Gone) != 0 {
		t.Errorf("%v exist", again.Gone)
	}

	view, err := s.broker.Instance(t.Context(), s.caller(), "one")
	if _, plan := s.plan("rotatable"); err != nil || view.PlanID != plan {
		t.Errorf("%+v %v", view, err)
	}
	s.lost("one", "b", "rotatable")
	s.again("one", "rotatable")
	if err := s.bind("one", "next", "rotatable", "b"); err != nil {
		t.Errorf("rotating: %v", err)
	}
	if _, err := s.broker.Binding(t.Context(), s.caller(), "one", "next"); err != nil {
		t.Errorf("the new credentials: %v", err)
	}
	if err := s.bind("two", "d", "sync", ""); err != nil {
		t.Errorf("binding: %v", err)
	}
	service, plan := s.plan("sync")
	if _, err := s.broker.Update(t.Context(), broker.UpdateRequest{Caller: s.caller(), InstanceID: "two", ServiceID: service, Parameters: []byte(`{"a":2}`)}); err != nil {
		t.Errorf("updating: %v", err)
	}
	if _, err := s.broker.Unbind(t.Context(), broker.DeleteRequest{Caller: s.caller(), InstanceID: "two", BindingID: "c", ServiceID: service, PlanID: plan}); err != nil {
		t.Errorf("unbinding: %v", err)
	}
	for _, id := range []string{"one", "two"} {
		if _, err := s.broker.Deprovision(t.Context(), broker.DeleteRequest{Caller: s.caller(), InstanceID: id, ServiceID: service, PlanID: plan}); err != nil {
			t.Errorf("deleting %s: %v", id, err)
		}
	}
	page, _, err := s.things.List(t.Context(), "")
	if err != nil || len(page) != 2 { // those that were never ours
		t.Errorf("%d things are left: %+v %v", len(page), page, err)
	}
}

// A table that was restored to an earlier time has records of what was deleted
// since: they are named, and their deletion leaves nothing.
func TestRebuildNamesWhatIsGone(t *testing.T) {
	s := newSite(t, demotest.NewMemory())
	s.provision("here", "sync")
	s.provision("gone", "sync")
	page, _, err := s.things.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, thing := range page {
		if thing.Tags.Instance == "gone" {
			if err := s.things.Delete(t.Context(), thing); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := s.console.Rebuild(t.Context())
	if err != nil || !slices.Equal(found.Gone, []string{"gone"}) || found.Kept != 1 {
		t.Fatalf("%+v %v", found, err)
	}
	service, plan := s.plan("sync")
	if _, err := s.broker.Deprovision(t.Context(), broker.DeleteRequest{Caller: s.caller(), InstanceID: "gone", ServiceID: service, PlanID: plan}); err != nil {
		t.Errorf("deleting it: %v", err)
	}
	if found, err := s.console.Rebuild(t.Context()); err != nil || len(found.Gone) != 0 {
		t.Errorf("%+v %v", found, err)
	}
}

// A moving inventory pages by number, as some clouds do: what is deleted from
// the front while it is listed moves the rest onto the page before.
type moving struct {
	things []provider.Holding
	// disturbed is in how many passes something in front comes and goes.
	disturbed, passes int
	others            func(n int) provider.Holding
}

func (m *moving) List(_ context.Context, cursor string) ([]provider.Holding, string, error) {
	at := 0
	if cursor == "" {
		m.passes++
	} else if _, err := fmt.Sscan(cursor, &at); err != nil {
		return nil, "", err
	}
	all := m.things
	if m.passes <= m.disturbed && cursor == "" {
		all = append([]provider.Holding{m.others(m.passes)}, all...)
	}
	end := min(at+2, len(all))
	next := ""
	if end < len(m.things) {
		next = fmt.Sprint(end)
	}
	return all[at:end], next, nil
}

// Others make and delete things while everything is listed: nothing is missed
// that was there all the time, and nothing is said to be gone.
func TestRebuildWhileTheListingChanges(t *testing.T) {
	for disturbed := range 6 {
		s := newSite(t, demotest.NewMemory())
		_, plan := s.plan("sync")
		holding := func(id, binding string) provider.Holding {
			return provider.Holding{Name: "thing-" + id + binding, PlanID: plan, Created: s.clock, Tags: provider.Tags{Platform: "p", Instance: id, Binding: binding, Incarnation: "of-" + id + binding}}
		}
		m := &moving{disturbed: disturbed, others: func(n int) provider.Holding { return holding(fmt.Sprint("passing-", n), "") }}
		for _, id := range []string{"a", "b", "c", "d"} {
			m.things = append(m.things, holding(id, ""))
		}
		m.things = append(m.things, holding("b", "bound"))
		s.console.Inventories = map[string]provider.Inventory{"demo": m}
		s.provision("d", "sync") // has a record before
		found, err := s.console.Rebuild(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found.Instances)
		found.Instances = slices.DeleteFunc(found.Instances, func(id string) bool { return strings.HasPrefix(id, "passing") })
		if !slices.Equal(found.Instances, []string{"a", "b", "c"}) || !slices.Equal(found.Rotate, []string{"b/bound"}) || found.Kept != 1 || len(found.Gone)+len(found.Unknown) != 0 {
			t.Errorf("%d disturbed passes, %d passes in all: %+v", disturbed, m.passes, found)
		}
	}
}

// A listing that changes all the time ends all the same.
func TestRebuildEnds(t *testing.T) {
	s := newSite(t, demotest.NewMemory())
	m := &moving{disturbed: 1 << 30, others: func(n int) provider.Holding { return provider.Holding{Name: fmt.Sprint("odd-", n)} }}
	s.console.Inventories = map[string]provider.Inventory{"demo": m}
	if _, err := s.console.Rebuild(t.Context()); err != nil || m.passes != 10 {
		t.Errorf("%d passes: %v", m.passes, err)
	}
}
