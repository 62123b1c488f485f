package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest/cloudtest"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

// shelves lets the reaper see the demo's things.
type shelves struct{ *cloudtest.Provider }

func (s shelves) List(ctx context.Context, cursor string) (things []lifecycle.Thing, next string, err error) {
	page, next, err := s.Provider.List(ctx, cursor)
	for _, h := range page {
		things = append(things, lifecycle.Thing{Name: h.Name, Broker: h.Tags.Broker, Incarnation: h.Tags.Incarnation,
			Of: h.Tags.Of, Created: h.Created,
			Key: lifecycle.Key{Platform: h.Tags.Platform, Instance: h.Tags.Instance, Binding: h.Tags.Binding}})
	}
	return things, next, err
}

// astray is what a world holds of an instance whose record was lost, with a binding.
func astray(w *world) {
	w.Helper()
	p := w.demo()
	stray := provider.Instance{Broker: testkit.Identity, Platform: "p", ID: "stray", Incarnation: "lost",
		ServiceID: service(), PlanID: planAsyncBind(),
		Operation: provider.Operation{ID: "lost", Kind: operation.Provision, Started: w.clock, Synchronous: true}}
	if s, err := p.Provision(context.Background(), stray); err != nil || !s.Done {
		w.Fatal(s, err)
	}
	if s, err := p.Bind(context.Background(),
		provider.Binding{Instance: stray, ID: "stray-b", Incarnation: "lost", Secret: make([]byte, 32)}); err != nil || !s.Done {
		w.Fatal(s, err)
	}
}

// locked counts what the demo has put out of use.
func (w *world) locked() (n int) {
	w.Helper()
	for _, t := range w.things.Things() {
		if t.Locked {
			n++
		}
	}
	return n
}

// An unrecorded thing is put into quarantine, and an ordinary deletion removes it two weeks
// later; recorded things stay in use.
func TestStraysAreRemovedAfterTheirQuarantine(t *testing.T) {
	w := newWorld(t)
	done(provision, bind)(w)
	astray(w)
	whose := ledger.Identity{Deployment: "test", Broker: testkit.Identity}
	if err := w.ledger().Commit(t.Context(), ledger.Put(whose)); err != nil { // the table is known to be the right one
		t.Fatal(err)
	}
	r := w.reaper()
	r.Inventory = &reaper.InventoryOptions{Records: w.ledger(), Listers: map[string]reaper.Lister{"demo": shelves{w.demo()}},
		Whose: whose, Every: time.Hour}
	sweep := func(hours int) (report reaper.Report) {
		for range hours {
			w.clock = w.clock.Add(time.Hour)
			one, err := r.Sweep(t.Context())
			expect.OK(t, err)
			report.Orphans, report.Quarantined, report.Ended = report.Orphans+one.Orphans, report.Quarantined+one.Quarantined, report.Ended+one.Ended
			w.driveAll(t.Context())
		}
		return report
	}
	if got := sweep(5); got.Quarantined != 2 || got.Orphans != 0 || w.locked() != 2 || w.held() != 4 {
		t.Fatalf("%+v, %d things are out of use, %d exist", got, w.locked(), w.held())
	}
	if got := sweep(13 * 24); w.held() != 4 {
		t.Fatalf("%+v, %d things are left after less than two weeks", got, w.held())
	}
	if got := sweep(24 + 5); got.Ended != 2 || w.held() != 2 || w.locked() != 0 {
		t.Errorf("%+v, %d things are left, %d of them out of use", got, w.held(), w.locked())
	}
	if w.instance().State != lifecycle.Ready || w.recorded(bindingKey).State != lifecycle.Ready {
		t.Error("what is in use is gone")
	}
}

// quarantined is a world with a thing that is to be put out of use.
func quarantined(t *testing.T) (*world, workflow.Ref) {
	t.Helper()
	w := newWorld(t)
	astray(w)
	h := w.holding()
	q, err := w.recorded(strayKey).BeginQuarantine(lifecycle.Start{ID: strings.Repeat("q",
		lifecycle.OperationIDLength), Now: w.clock},
		lifecycle.Thing{Incarnation: "lost", Provider: "demo", Broker: testkit.Identity, Created: h.Created, Name: h.Name})
	expect.OK(t, err)
	expect.OK(t, w.ledger().Commit(t.Context(), ledger.Put(q)))
	return w, workflow.Of(q)
}

var strayKey = lifecycle.Key{Platform: "p", Instance: "stray", Life: "lost"}

// holding is the stray instance, as it is listed.
func (w *world) holding() provider.Holding {
	w.Helper()
	held, _, err := w.demo().List(context.Background(), "")
	expect.OK(w, err)
	for _, h := range held {
		if h.Tags.Instance == "stray" && h.Tags.Binding == "" {
			return h
		}
	}
	w.Fatal("there is no stray")
	panic("unreachable")
}

func (w *world) quarantine() lifecycle.Record { return w.recorded(strayKey) }

// released has an operator release the thing.
func (w *world) released() workflow.Ref {
	w.Helper()
	q, err := w.quarantine().BeginRelease(lifecycle.Start{ID: strings.Repeat("r", lifecycle.OperationIDLength), Now: w.clock})
	expect.OK(w, err)
	expect.OK(w, w.ledger().Commit(context.Background(), ledger.Put(q)))
	return workflow.Of(q)
}

func TestAThingIsPutOutOfUseAndIntoUseAgain(t *testing.T) {
	w, ref := quarantined(t)
	w.drive(t.Context(), ref)
	if q := w.quarantine(); q.State != lifecycle.Quarantined || len(q.Leases) != 0 || w.locked() != 1 {
		t.Fatalf("%+v, %d are out of use", q, w.locked())
	}
	version := w.quarantine().Version
	w.drive(t.Context(), ref) // delivered once more
	expect.Same(t, "the version after a step that has nothing to do", version, w.quarantine().Version)
	back := w.released()
	w.drive(t.Context(), ref) // the old execution
	expect.Same(t, "things out of use after a step of an older attempt", 1, w.locked())
	w.drive(t.Context(), back)
	if q := w.quarantine(); !q.IsReleased() || w.locked() != 0 {
		t.Errorf("%+v, %d are out of use", q, w.locked())
	}
}

// A step dies at any of its effects: the next attempt does it all the same.
func TestAQuarantineSurvivesItsSteps(t *testing.T) {
	for dieAt := 1; dieAt <= 3; dieAt++ {
		for _, after := range []bool{false, true} {
			w, ref := quarantined(t)
			w.effects, w.dieAt, w.after = 0, dieAt, after
			if w.alive(func() { w.drive(t.Context(), ref) }) {
				t.Fatalf("nothing died at effect %d", dieAt)
			}
			w.rest()
			if q := w.quarantine(); q.State != lifecycle.Quarantined || w.locked() != 1 {
				t.Errorf("dead at effect %d, after it: %v: %+v, %d are out of use", dieAt, after, q, w.locked())
			}
		}
	}
}

// troubled is a provider whose quarantine meets what the test says.
type troubled struct {
	cloud
	quarantine func() error
}

func (p troubled) Quarantine(ctx context.Context, h provider.Holding) error {
	if err := p.quarantine(); err != nil {
		return err
	}
	return p.cloud.Quarantine(ctx, h)
}

func (w *world) quarantining(do func() error) *worker.Worker {
	return w.by(troubled{cloud: w.kit().Providers["demo"].(cloud), quarantine: do})
}

func TestAQuarantineThatMeetsAFault(t *testing.T) {
	w, ref := quarantined(t)
	outcome, err := w.quarantining(func() error { return errors.New("throttled") }).Step(t.Context(), ref)
	if q := w.quarantine(); err != nil || outcome.Settled || outcome.Wait <= 0 || q.Operation.Faults != 1 || len(q.Leases) != 0 {
		t.Fatalf("%+v %v, %+v", outcome, err, q)
	}
	w.drive(t.Context(), ref)
	if q := w.quarantine(); q.State != lifecycle.Quarantined || q.Operation.Faults != 0 {
		t.Errorf("%+v", q)
	}
}

// A thing is released while the call that locks it is on its way: the release
// waits for the call, so that it is not locked afterwards.
func TestAReleaseWaitsForACallOnItsWay(t *testing.T) {
	w, ref := quarantined(t)
	var back workflow.Ref
	outcome, err := w.quarantining(func() error {
		back = w.released()
		outcome, err := w.worker().Step(t.Context(), back)
		if err != nil || outcome.Settled || outcome.Wait <= 0 {
			t.Errorf("the release did not wait: %+v %v", outcome, err)
		}
		return nil
	}).Step(t.Context(), ref)
	if err != nil || !outcome.Settled {
		t.Errorf("%+v %v", outcome, err)
	}
	w.drive(t.Context(), back)
	if q := w.quarantine(); !q.IsReleased() || w.locked() != 0 {
		t.Errorf("%+v, %d are out of use", q, w.locked())
	}

	// A call that was given up may land until its lease has run out.
	w, ref = quarantined(t)
	w.step(w.quarantining(func() error { return context.DeadlineExceeded }), ref)
	back = w.released()
	if outcome, err := w.worker().Step(t.Context(), back); err != nil || outcome.Settled || len(w.quarantine().Leases) != 1 {
		t.Errorf("%+v %v", outcome, err)
	}
}

// A call whose time was up may land, whatever its provider makes of that.
func TestAQuarantineWhoseTimeWasUpKeepsItsLease(t *testing.T) {
	w, ref := quarantined(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := w.quarantining(func() error {
		cancel()
		return errors.New("the connection was closed")
	}).Step(ctx, ref)
	if q := w.quarantine(); err != nil || len(q.Leases) != 1 || !q.Leases[0].TimedOut {
		t.Errorf("%v, %+v", err, q)
	}
}

// If the provider has no quarantine, an orphan stays in use until its date.
func TestAProviderWithoutAQuarantine(t *testing.T) {
	w, ref := quarantined(t)
	o := w.kit().WorkerOptions()
	o.Providers = map[string]wired.Provider{"demo": {Inventory: struct{ provider.Inventory }{}}}
	w.settles(worker.New(o), ref)
	if q := w.quarantine(); q.State != lifecycle.Quarantined || w.locked() != 0 {
		t.Errorf("%+v, %d are out of use", q, w.locked())
	}
}

// listening is a provider that is told what its inventory said.
type listening struct {
	cloud
	got *provider.Instance
}

func (l listening) Deprovision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	*l.got = in
	return l.cloud.Deprovision(ctx, in)
}

func TestAnOrphansDeletionIsToldWhatWasListed(t *testing.T) {
	w := newWorld(t)
	astray(w)
	state := provider.State{Format: 7, Data: []byte("key-1")}
	r, err := w.ledger().Record(t.Context(), lifecycle.Key{Platform: "p", Instance: "stray", Life: "lost"}, w.clock)
	if err == nil {
		r, err = r.BeginOrphanDeletion(lifecycle.Start{ID: strings.Repeat("d", lifecycle.OperationIDLength), Now: w.clock,
			Timeout: time.Hour, Own: true},
			lifecycle.Thing{Incarnation: "lost", Provider: "demo", Target: lifecycle.Target{Name: "there"}, State: state.Encode()})
	}
	expect.OK(t, err)
	expect.OK(t, w.ledger().Commit(t.Context(), ledger.Put(r)))
	var got provider.Instance
	w.step(w.by(listening{w.kit().Providers["demo"].(cloud), &got}), workflow.Ref{Token: r.Token(), Attempt: 1})
	if got.Target.Name != "there" || got.State.Format != 7 || string(got.State.Data) != "key-1" {
		t.Errorf("it is told %+v, %+v", got.Target, got.State)
	}
}
