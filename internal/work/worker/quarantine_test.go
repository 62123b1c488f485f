package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

// astray is what a world holds of an instance whose record was lost, with a binding.
func astray(w *world) {
	w.Helper()
	p := w.demo()
	stray := provider.Instance{Broker: testkit.Identity, Platform: "p", ID: "stray", Incarnation: "lost",
		ServiceID: service(), PlanID: planAsyncBind(),
		Operation: provider.Operation{ID: "lost", Kind: operation.Provision, Started: w.clock, Synchronous: true}}
	made := expect.Get(p.Provision(context.Background(), stray))(w)
	bound := expect.Get(p.Bind(context.Background(),
		provider.Binding{Instance: stray, ID: "stray-b", Incarnation: "lost", Secret: make([]byte, 32)}))(w)
	if !made.Done || !bound.Done {
		w.Fatal(made, bound)
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
	w.commits(ledger.Put(whose)) // the table is known to be the right one
	r := w.reaper()
	r.Inventory = &reaper.InventoryOptions{Records: w.ledger(), Whose: whose,
		Listers: map[string]reaper.Lister{"demo": {List: testkit.Lister{Inventory: w.demo()}.List}}}
	sweep := func(hours int) (report reaper.Report) {
		t.Helper()
		for range hours {
			w.clock = w.clock.Add(time.Hour)
			one := expect.Get(r.Sweep(t.Context()))(t)
			report.Orphans, report.Quarantined = report.Orphans+one.Orphans, report.Quarantined+one.Quarantined
			report.Ended += one.Ended
			w.driveAll()
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
	w.commits(ledger.Put(q))
	return w, workflow.Of(q)
}

var strayKey = lifecycle.Key{Platform: "p", Instance: "stray", Life: "lost"}

// holding is the stray instance, as it is listed.
func (w *world) holding() provider.Holding {
	w.Helper()
	held, _, err := w.demo().List(context.Background(), "")
	expect.OK(w, err)
	n := slices.IndexFunc(held, func(h provider.Holding) bool { return h.Tags.Instance == "stray" && h.Tags.Binding == "" })
	return held[n]
}

func (w *world) quarantine() lifecycle.Record { return w.recorded(strayKey) }

// released has an operator release the thing.
func (w *world) released() workflow.Ref {
	w.Helper()
	s := lifecycle.Start{ID: strings.Repeat("r", lifecycle.OperationIDLength), Now: w.clock}
	q := expect.Get(w.quarantine().BeginRelease(s))(w)
	w.commits(ledger.Put(q))
	return workflow.Of(q)
}

// isLocked requires that the thing is out of use, and on record so; isReleased, that it is in use again.
func (w *world) isLocked(when string) {
	w.Helper()
	if q := w.quarantine(); q.State != lifecycle.Quarantined || len(q.Leases) != 0 || q.Operation.Faults != 0 || w.locked() != 1 {
		w.Errorf("%s: %+v, %d are out of use", when, q, w.locked())
	}
}

func (w *world) isReleased(when string) {
	w.Helper()
	if q := w.quarantine(); !q.IsReleased() || w.locked() != 0 {
		w.Errorf("%s: %+v, %d are out of use", when, q, w.locked())
	}
}

func TestAThingIsPutOutOfUseAndIntoUseAgain(t *testing.T) {
	w, ref := quarantined(t)
	w.drive(w.worker(), ref)
	w.isLocked("the quarantine")
	version := w.quarantine().Version
	w.drive(w.worker(), ref) // delivered once more
	expect.Same(t, "the version after a step that has nothing to do", version, w.quarantine().Version)
	back := w.released()
	w.drive(w.worker(), ref) // the old execution
	expect.Same(t, "things out of use after a step of an older attempt", 1, w.locked())
	w.drive(w.worker(), back)
	w.isReleased("the release")
}

// A step dies at any of its effects: the next attempt does it all the same.
func TestAQuarantineSurvivesItsSteps(t *testing.T) {
	for dieAt := 1; dieAt <= 3; dieAt++ {
		for _, after := range []bool{false, true} {
			w, ref := quarantined(t)
			w.effects, w.dieAt, w.after = 0, dieAt, after
			if w.alive(func() { w.drive(w.worker(), ref) }) {
				t.Fatalf("nothing died at effect %d", dieAt)
			}
			w.rest()
			w.isLocked(fmt.Sprintf("dead at effect %d, after it: %v", dieAt, after))
		}
	}
}

// quarantining is a worker whose provider first meets, at a quarantine, what the test says.
func (w *world) quarantining(do func() error) *worker.Worker {
	cloud := w.cloud()
	return w.by(stub{cloud: cloud, quarantine: func(h provider.Holding) error {
		if err := do(); err != nil {
			return err
		}
		return cloud.Quarantine(context.Background(), h)
	}})
}

func TestAQuarantineThatMeetsAFault(t *testing.T) {
	w, ref := quarantined(t)
	w.waits(w.quarantining(func() error { return errors.New("throttled") }), ref)
	if q := w.quarantine(); q.Operation.Faults != 1 || len(q.Leases) != 0 {
		t.Fatalf("%+v", q)
	}
	w.drive(w.worker(), ref)
	w.isLocked("after the fault")
}

// Nothing that is asked of an absent provider counts as done: it waits, and is done once the provider is back.
func TestAnAbsentProviderIsWaitedFor(t *testing.T) {
	absent := func(w *world) *worker.Worker {
		o := w.kit().WorkerOptions()
		o.Providers = map[string]wired.Provider{"demo": wired.Absent(errors.New("no server"))}
		return worker.New(o)
	}
	w, ref := quarantined(t)
	w.waits(absent(w), ref)
	expect.Same(t, "faults of the quarantine", 1, w.quarantine().Operation.Faults)
	w.drive(w.worker(), ref)
	w.isLocked("once the provider is back")
	back := w.released()
	w.waits(absent(w), back)
	expect.Same(t, "faults of the release", 1, w.quarantine().Operation.Faults)
	w.drive(w.worker(), back)
	w.isReleased("once the provider is back")

	w = newWorld(t)
	freed(w)
	taken := w.asks(undelete)
	w.waits(absent(w), taken)
	if r := w.restored(); r.Operation.Faults != 1 || !r.Adopts() {
		t.Errorf("the adoption: %+v", r)
	}
}

// A thing is released while the call that locks it is on its way: the release
// waits for the call, so that it is not locked afterwards.
func TestAReleaseWaitsForACallOnItsWay(t *testing.T) {
	w, ref := quarantined(t)
	var back workflow.Ref
	w.settles(w.quarantining(func() error {
		back = w.released()
		w.waits(w.worker(), back)
		return nil
	}), ref)
	w.drive(w.worker(), back)
	w.isReleased("after the call")

	// A call that was given up may land until its lease has run out.
	w, ref = quarantined(t)
	w.step(w.quarantining(func() error { return context.DeadlineExceeded }), ref)
	w.waits(w.worker(), w.released())
	expect.Same(t, "leases", 1, len(w.quarantine().Leases))
}

// If the provider has no quarantine, an orphan stays in use until its date.
func TestAProviderWithoutAQuarantine(t *testing.T) {
	w, ref := quarantined(t)
	by := w.worker()
	by.Providers = map[string]wired.Provider{"demo": {Inventory: struct{ provider.Inventory }{}}}
	w.settles(by, ref)
	w.left("without a quarantine", strayKey, lifecycle.Quarantined, 2)
	expect.Same(t, "things that are out of use", 0, w.locked())
}

func TestAnOrphansDeletionIsToldWhatWasListed(t *testing.T) {
	w := newWorld(t)
	astray(w)
	state := provider.State{Format: 7, Data: []byte("key-1")}
	start := lifecycle.Start{ID: strings.Repeat("d", lifecycle.OperationIDLength), Now: w.clock, Timeout: time.Hour, Own: true}
	r := expect.Get(w.quarantine().BeginOrphanDeletion(start, lifecycle.Thing{Incarnation: "lost", Provider: "demo",
		Target: lifecycle.Target{Name: "there"}, State: state.Encode()}))(t)
	w.commits(ledger.Put(r))
	var got provider.Instance
	w.step(w.telling(func(in provider.Instance) (provider.Status, error) {
		got = in
		return provider.Status{Done: true}, nil
	}), workflow.Of(r))
	if got.Target.Name != "there" || got.State.Format != 7 || string(got.State.Data) != "key-1" {
		t.Errorf("it is told %+v, %+v", got.Target, got.State)
	}
}
