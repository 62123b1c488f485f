package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"

	"github.com/longshore/longshore/internal/base/logs"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/store"
	"github.com/longshore/longshore/internal/test/storetest"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

func (w *world) instance() lifecycle.Record { return w.recorded(instanceKey) }

// step makes one step of an execution.
func (w *world) step(by *worker.Worker, ref workflow.Ref) workflow.Outcome {
	w.Helper()
	outcome, err := by.Step(context.Background(), ref)
	expect.OK(w, err)
	return outcome
}

// settles requires that one step more settles an execution.
func (w *world) settles(by *worker.Worker, ref workflow.Ref) {
	w.Helper()
	if outcome := w.step(by, ref); !outcome.Settled {
		w.Fatalf("%s has not settled: %+v", ref.Name(), outcome)
	}
}

// untilSettled makes the steps of an execution beside other goroutines.
func untilSettled(t *testing.T, by *worker.Worker, ref workflow.Ref) {
	for {
		outcome, err := by.Step(t.Context(), ref)
		if err != nil {
			t.Error(err)
		}
		if err != nil || outcome.Settled {
			return
		}
	}
}

// by is a worker of another provider than the demo.
func (w *world) by(p provider.Provider) *worker.Worker {
	o := w.kit().WorkerOptions()
	o.Providers = testkit.AsDemo(p)
	return worker.New(o)
}

func (w *world) must(ask asking) broker.Result {
	w.Helper()
	r, err := ask(w, w.broker())
	expect.OK(w, err)
	return r
}

// scripted is a provider whose every step is given.
type scripted struct {
	cloud
	step func(context.Context) (provider.Status, error)
}

func (s scripted) Provision(ctx context.Context, _ provider.Instance) (provider.Status, error) {
	return s.step(ctx)
}
func (s scripted) Update(ctx context.Context, _ provider.Instance) (provider.Status, error) {
	return s.step(ctx)
}
func (s scripted) Deprovision(ctx context.Context, _ provider.Instance) (provider.Status, error) {
	return s.step(ctx)
}
func (s scripted) Bind(ctx context.Context, _ provider.Binding) (provider.Status, error) {
	return s.step(ctx)
}
func (s scripted) Unbind(ctx context.Context, _ provider.Binding) (provider.Status, error) {
	return s.step(ctx)
}

// with is a worker whose provider steps as given.
func (w *world) with(step func(context.Context) (provider.Status, error)) *worker.Worker {
	return w.by(scripted{step: step})
}

// answers is the one answer of a provider to everything.
func answers(s provider.Status, err error) func(context.Context) (provider.Status, error) {
	return func(context.Context) (provider.Status, error) { return s, err }
}

// finished is a provider's answer that all is done.
var finished = answers(provider.Status{Done: true}, nil)

func refOf(r broker.Result, attempt int) workflow.Ref {
	return workflow.Ref{Token: r.Token, Attempt: attempt}
}

func TestStepAnswersOfAProvider(t *testing.T) {
	bad := false
	cases := map[string]struct {
		reason  string
		status  provider.Status
		err     error
		state   lifecycle.State
		phase   lifecycle.Phase
		wait    time.Duration
		message string
	}{
		"Done": {"LOP-02", provider.Status{Done: true}, nil, lifecycle.Ready, lifecycle.Succeeded, 0, ""},
		"InProgress": {"the provider says when to look", provider.Status{Percent: 40, Description: "halfway", After: 3 * time.Second}, nil,
			lifecycle.Creating, lifecycle.InProgress, 3 * time.Second, "halfway"},
		"Silent": {"waits begin at ten seconds", provider.Status{}, nil, lifecycle.Creating, lifecycle.InProgress, 10 * time.Second, ""},
		"TooFar": {"no wait is longer than five minutes", provider.Status{After: time.Hour}, nil, lifecycle.Creating, lifecycle.InProgress,
			5 * time.Minute, ""},
		"Failure": {"LOP-03: in the provider's safe words", provider.Status{}, &provider.Failure{Message: "no room", InstanceUsable: &bad},
			lifecycle.CreateFailed, lifecycle.Failed, 0, "no room"},
		"Fault": {"what is passing is repeated, and never shown", provider.Status{}, errors.New("throttled at 10.0.0.4"),
			lifecycle.Creating, lifecycle.InProgress, time.Second, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ref := refOf(w.must(provision), 1)
			outcome := w.step(w.with(answers(tc.status, tc.err)), ref)
			i := w.instance()
			if i.State != tc.state || i.Operation.Phase != tc.phase || i.Operation.Description != tc.message || len(i.Leases) != 0 {
				t.Errorf("%s: %q, %+v, leases %v", tc.reason, i.State, i.Operation, i.Leases)
			}
			if outcome.Settled != (tc.phase != lifecycle.InProgress) || outcome.Wait != tc.wait {
				t.Errorf("%s: outcome %+v, want a wait of %v", tc.reason, outcome, tc.wait)
			}
			if name == "InProgress" && i.Operation.Percent != 40 {
				t.Errorf("percent %d", i.Operation.Percent)
			}
		})
	}
}

func TestFaultsAreRepeatedLessAndLessOften(t *testing.T) {
	w := newWorld(t)
	ref := refOf(w.must(provision), 1)
	failing := w.with(answers(provider.Status{}, errors.New("throttled")))
	var waits []time.Duration
	for range 8 {
		outcome := w.step(failing, ref)
		waits = append(waits, outcome.Wait)
		w.clock = w.clock.Add(outcome.Wait)
	}
	if waits[0] != time.Second || waits[1] != 2*time.Second || waits[7] != time.Minute {
		t.Errorf("waits %v", waits)
	}
}

func TestAStepThatIsNotCurrentDoesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.must(provision)
	never := w.with(func(context.Context) (provider.Status, error) {
		t.Error("the cloud was called")
		return provider.Status{}, nil
	})
	other := refOf(r, 1)
	other.Token.Operation = strings.Repeat("x", lifecycle.OperationIDLength)
	unknown := refOf(r, 1)
	unknown.Token.Key.Instance = "other"
	before := w.instance().Version
	for name, ref := range map[string]workflow.Ref{"OlderAttempt": refOf(r, 0), "LaterAttempt": refOf(r, 2), "OtherOperation": other,
		"UnknownInstance": unknown} {
		outcome, err := never.Step(context.Background(), ref)
		if err != nil || !outcome.Settled {
			t.Errorf("%s: %+v %v", name, outcome, err)
		}
	}
	expect.Same(t, "CONC-09: the version", before, w.instance().Version)
}

// The step's own context ends in the middle of the call: the call's deadline
// came before, and what happened is recorded all the same.
func TestTheResultIsRecordedAfterTheStepsTime(t *testing.T) {
	w := newWorld(t)
	ref := refOf(w.must(provision), 1)
	ctx, cancel := context.WithCancel(context.Background())
	outcome, err := w.with(func(call context.Context) (provider.Status, error) {
		if _, bounded := call.Deadline(); !bounded {
			t.Error("the call has no deadline")
		}
		cancel()
		return provider.Status{Done: true}, nil
	}).Step(ctx, ref)
	if err != nil || !outcome.Settled || w.instance().State != lifecycle.Ready {
		t.Errorf("%+v %v, %q", outcome, err, w.instance().State)
	}
}

// A step is in the middle of its call when a deletion overtakes it: the
// deletion waits for it, and what it made is removed.
func TestADeletionWaitsForACallOnItsWay(t *testing.T) {
	w := newWorld(t)
	create := refOf(w.must(provision), 1)
	var remove workflow.Ref
	inTheMiddle := func(ctx context.Context) (provider.Status, error) {
		remove = refOf(w.must(deprovision), 1)
		outcome, err := w.worker().Step(context.Background(), remove)
		if err != nil || outcome.Settled || outcome.Wait <= 0 {
			t.Errorf("the deletion did not wait: %+v %v", outcome, err)
		}
		// A request may be waiting for the answer, and the call is over soon.
		if outcome.Wait > time.Second {
			t.Errorf("the deletion looks again only after %v", outcome.Wait)
		}
		return provider.Status{Done: true}, nil
	}
	w.settles(w.with(inTheMiddle), create)
	if i := w.instance(); i.State != lifecycle.Deleting || len(i.Leases) != 0 {
		t.Errorf("CONC-09: the overtaken step left %q and leases %v", i.State, i.Leases)
	}
	// Its lease was given up, so that one look is enough.
	w.settles(w.with(finished), remove)
}

// The step died with its call on its way: only two looks, some time apart and
// past the lease, prove that nothing is left.
func TestALostCallIsLookedForTwice(t *testing.T) {
	w := newWorld(t)
	create := refOf(w.must(provision), 1)
	dying := w.with(func(context.Context) (provider.Status, error) { panic(died{}) })
	if w.alive(func() { _, _ = dying.Step(context.Background(), create) }) {
		t.Fatal("the step lived on")
	}
	remove := refOf(w.must(deprovision), 1)
	began, looks := w.clock, []time.Duration{}
	looking := w.with(func(context.Context) (provider.Status, error) {
		looks = append(looks, w.clock.Sub(began))
		return provider.Status{Done: true}, nil
	})
	steps := 0
	for range 100 {
		outcome := w.step(looking, remove)
		if outcome.Settled {
			break
		}
		steps++
		w.clock = w.clock.Add(outcome.Wait)
	}
	if len(looks) != 2 || looks[0] < time.Minute || looks[1]-looks[0] < lifecycle.SecondLook {
		t.Errorf("looked after %v, want two looks past the lease, %v apart", looks, lifecycle.SecondLook)
	}
	if steps > 40 {
		t.Errorf("%d steps, more than waiting is worth", steps)
	}
	expect.Same(t, "state", lifecycle.Deleted, w.instance().State)
}

// A bind that is in the middle of its call when its instance is deleted
// records nothing (section 14: a bind cannot outlive its instance).
func TestABindDoesNotOutliveItsInstance(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	ref := refOf(w.must(bind), 1)
	w.settles(w.by(lateBind{cloud: cloud{w, nil}, during: func() { w.must(deprovision) }}), ref)
	b := w.recorded(bindingKey)
	if b.State != lifecycle.Creating || b.Grant != nil || len(b.Leases) != 0 {
		t.Errorf("the late bind left %q, a grant: %v, leases %v", b.State, b.Grant != nil, b.Leases)
	}
	w.rest()
	if b = w.recorded(bindingKey); b.State != lifecycle.Deleted {
		t.Errorf("the deletion left the binding %q", b.State)
	}
	expect.Same(t, "things that are left", 0, w.held())
}

type lateBind struct {
	cloud
	during func()
}

func (l lateBind) Bind(context.Context, provider.Binding) (provider.Status, error) {
	l.during()
	return provider.Status{Done: true, Grant: &provider.Grant{}}, nil
}

// The same step delivered twice at once gives one result.
//
// NFR-09: delivery is at least once.
func TestAStepDeliveredTwice(t *testing.T) {
	w := newWorld(t)
	ref := refOf(w.must(provision), 1)
	w.clock = w.clock.Add(time.Second)
	var mu sync.Mutex // the world's effects are not made for two at once
	step := w.with(func(context.Context) (provider.Status, error) {
		mu.Lock()
		defer mu.Unlock()
		return provider.Status{Done: true}, nil
	})
	quiet := step.Options
	quiet.Records = quietLedger(w)
	step = worker.New(quiet)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { untilSettled(t, step, ref) })
	}
	all.Wait()
	if i := w.instance(); i.State != lifecycle.Ready || len(i.Leases) != 0 {
		t.Errorf("state %q, leases %v", i.State, i.Leases)
	}
}

// Start fails after the commit: the answer is 202 all the same, and the reaper
// starts it.
func TestAStartThatFailsIsMadeUpFor(t *testing.T) {
	w := newWorld(t)
	o := w.broker().Options
	o.Engine = failingEngine{}
	r, err := provision(w, broker.New(o))
	if err != nil || r.Effect != broker.Accepted {
		t.Fatalf("%+v %v", r, err)
	}
	if len(w.started) != 0 {
		t.Fatal("it was started")
	}
	w.clock = w.clock.Add(lifecycle.Grace)
	report, err := w.reaper().Sweep(context.Background())
	if err != nil || report.Redriven != 1 {
		t.Fatalf("%+v %v", report, err)
	}
	if ref, ok := w.started[refOf(r, 2).Name()]; !ok || ref != refOf(r, 2) {
		t.Errorf("started %v", w.started)
	}
	w.rest()
	expect.Same(t, "state", lifecycle.Ready, w.instance().State)
}

type failingEngine struct{}

func (failingEngine) Start(context.Context, workflow.Ref) error  { return errors.New("throttled") }
func (failingEngine) Finish(context.Context, workflow.Ref) error { return errors.New("throttled") }

// Synchronous work that does not settle: 202 where the client allows it, else
// it is turned into a deletion (docs/decisions/0004-requests.md).
//
// ERR-09: what an error leaves behind is removed, and of an update it is said.
func TestSlowSynchronousWork(t *testing.T) {
	w := newWorld(t)
	o := w.broker().Options
	o.Engine = failingEngine{} // Finish comes back with nothing done
	c := w.caller()
	c.AcceptsIncomplete = false
	_, err := broker.New(o).Provision(context.Background(), broker.ProvisionRequest{
		Caller: c, InstanceID: "i", ServiceID: service(), PlanID: planAsyncBind(), OrganizationGUID: "o", SpaceGUID: "s",
	})
	var refusal *lifecycle.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != lifecycle.OperationFailed {
		t.Errorf("answered %v", err)
	}
	expect.Same(t, "the creation went on: state", lifecycle.Deleting, w.instance().State)
	w.rest()
	if w.instance().State != lifecycle.Deleted || w.held() != 0 {
		t.Errorf("left %q and %d things", w.instance().State, w.held())
	}
}

// Losing races is never shown to a user, up to a point.
func TestRacesAreLostSilently(t *testing.T) {
	for name, tc := range map[string]struct {
		losses int
		want   lifecycle.Reason // 0: accepted
	}{"Few": {25, 0}, "AllTheTime": {math.MaxInt, lifecycle.ConcurrencyError}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				o := w.broker().Options
				left := tc.losses
				o.Records = ledgerOver(w, &storetest.Faulty{Store: w.records, Before: func([]store.Change) error {
					if left--; left >= 0 {
						return store.ErrConflict
					}
					return nil
				}})
				r, err := provision(w, broker.New(o))
				var refusal *lifecycle.Refusal
				if errors.As(err, &refusal) {
					if refusal.Reason != tc.want {
						t.Errorf("answered %v", err)
					}
				} else if tc.want != 0 || r.Effect != broker.Accepted {
					t.Errorf("answered %+v %v", r, err)
				}
			})
		})
	}
}

func TestReaper(t *testing.T) {
	w := newWorld(t)
	w.must(provision)
	if report, err := w.reaper().Sweep(context.Background()); err != nil || !report.Empty() {
		t.Errorf("nothing is due, but: %+v %v", report, err)
	}
	refs, err := w.reaper().Unsettled(context.Background())
	if err != nil || len(refs) != 1 {
		t.Errorf("unsettled %v %v", refs, err)
	}
	w.clock = w.clock.Add(25 * time.Hour)
	if report, err := w.reaper().Sweep(context.Background()); err != nil || report != (reaper.Report{Swept: ledger.Swept{Overdue: 1}}) {
		t.Errorf("past the deadline: %+v %v", report, err)
	}
	expect.Same(t, "nobody has looked: state", lifecycle.Creating, w.instance().State)
	w.step(w.with(answers(provider.Status{}, provider.Failf("no room"))), workflow.Ref{Token: refs[0].Token, Attempt: 2})
	if report, err := w.reaper().Sweep(context.Background()); err != nil || !report.Empty() {
		t.Errorf("a failed creation is left alone for now: %+v %v", report, err)
	}
	w.clock = w.clock.Add(lifecycle.ReclaimAfter)
	if report, err := w.reaper().Sweep(context.Background()); err != nil || report != (reaper.Report{Swept: ledger.Swept{Reclaimed: 1}}) {
		t.Errorf("ORB-04: %+v %v", report, err)
	}
	w.rest()
	expect.Same(t, "ORB-04: state", lifecycle.Deleted, w.instance().State)
	w.clock = w.clock.Add(lifecycle.Retention)
	report, err := w.reaper().Sweep(context.Background())
	if err != nil || report.Dropped != 2 { // the tombstone, and the provision that the deletion replaced
		t.Errorf("expired records: %+v %v", report, err)
	}
	if i := w.instance(); i.State != lifecycle.Absent || i.Version != 0 {
		t.Errorf("the tombstone is still there: %q, version %d", i.State, i.Version)
	}
}

// Drive waits out short pauses by itself, leaves long ones to its caller, and
// begins no step that could not be recorded any more.
func TestDrive(t *testing.T) {
	cases := map[string]struct {
		reason string
		pauses []time.Duration // what the provider asks for, step by step; then it is done
		left   time.Duration   // until the deadline; 0: none
		steps  int
		want   workflow.Outcome
	}{
		"ShortPauses": {"they are waited out", []time.Duration{time.Second, 10 * time.Second}, 0, 3, workflow.Outcome{Settled: true}},
		"LongPause": {"it is left to the caller", []time.Duration{time.Second, 11 * time.Second}, 0, 2,
			workflow.Outcome{Wait: 11 * time.Second}},
		"NoTime": {"a step does not fit any more", []time.Duration{time.Second, time.Second, time.Second}, 71 * time.Second, 1,
			workflow.Outcome{Wait: time.Second}},
		"SomeTime": {"one more step fits", []time.Duration{time.Second, time.Second, time.Second}, 72 * time.Second, 2,
			workflow.Outcome{Wait: time.Second}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ref := refOf(w.must(provision), 1)
			ctx := context.Background()
			if tc.left > 0 {
				ctx = deadlined{ctx, w.clock.Add(tc.left)}
			}
			steps := 0
			driven := w.with(func(context.Context) (provider.Status, error) {
				if steps++; steps > len(tc.pauses) {
					return provider.Status{Done: true}, nil
				}
				return provider.Status{After: tc.pauses[steps-1]}, nil
			})
			got, err := driven.Drive(ctx, ref, func(_ context.Context, d time.Duration) error {
				w.clock = w.clock.Add(d)
				return nil
			})
			if err != nil || got != tc.want || steps != tc.steps {
				t.Errorf("%s: %+v after %d steps, want %+v after %d: %v", tc.reason, got, steps, tc.want, tc.steps, err)
			}
		})
	}
}

// deadlined is a context with a deadline of the fake clock, which never ends
// it.
type deadlined struct {
	context.Context
	at time.Time
}

func (d deadlined) Deadline() (time.Time, bool) { return d.at, true }

// Each line of a step's log names the operation and the request that asked for
// it.
func TestLinesNameTheOperationAndTheRequest(t *testing.T) {
	w := newWorld(t)
	c := broker.Caller{Platform: "p", Received: w.clock, AcceptsIncomplete: true, Asker: lifecycle.Asker{Request: "request-7"}}
	r, err := w.broker().Provision(context.Background(), broker.ProvisionRequest{Caller: c, InstanceID: "i",
		ServiceID: service(), PlanID: planAsyncBind(), OrganizationGUID: "o", SpaceGUID: "s",
		Parameters: []byte(`{"a":"canary"}`)})
	expect.OK(t, err)
	var log bytes.Buffer
	for _, answer := range []error{errors.New("throttled"), nil} {
		steps := w.with(answers(provider.Status{Done: answer == nil}, answer))
		steps.Log = slog.New(logs.Handler{Handler: slog.NewTextHandler(&log, nil)})
		w.step(steps, refOf(r, 1))
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	expect.Same(t, "lines, of a fault and of an end", 2, len(lines))
	for _, line := range lines {
		if !strings.Contains(line, "operation="+r.Token.String()) || !strings.Contains(line, "request_identity=request-7") ||
			strings.Contains(line, "canary") {
			t.Errorf("line %q", line)
		}
	}
}
