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

// settles requires that one step more settles an execution.
func (w *world) settles(by *worker.Worker, ref workflow.Ref) {
	w.Helper()
	if outcome := w.step(by, ref); !outcome.Settled {
		w.Fatalf("%s has not settled: %+v", ref.Name(), outcome)
	}
}

// waits requires that a step has not settled its execution, and is followed by a pause.
func (w *world) waits(by *worker.Worker, ref workflow.Ref) time.Duration {
	w.Helper()
	outcome := w.step(by, ref)
	if outcome.Settled || outcome.Wait <= 0 {
		w.Errorf("%s does not wait: %+v", ref.Name(), outcome)
	}
	return outcome.Wait
}

// dies has a step die in the middle of its call.
func (w *world) dies(ref workflow.Ref) {
	w.Helper()
	dying := w.with(func(context.Context) (provider.Status, error) { panic(died{}) })
	if w.alive(func() { w.step(dying, ref) }) {
		w.Fatal("the step lives on")
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
	return expect.Get(ask(w, w.broker()))(w)
}

// asks is the first attempt of the operation that a request begins.
func (w *world) asks(ask asking) workflow.Ref {
	w.Helper()
	return refOf(w.must(ask), 1)
}

func refOf(r broker.Result, attempt int) workflow.Ref {
	return workflow.Ref{Token: r.Token, Attempt: attempt}
}

// with is a worker whose provider steps as given, whatever it is asked for.
func (w *world) with(step func(context.Context) (provider.Status, error)) *worker.Worker {
	binding := func(ctx context.Context, _ provider.Binding) (provider.Status, error) { return step(ctx) }
	return w.by(stub{instance: func(ctx context.Context, _ provider.Instance) (provider.Status, error) { return step(ctx) },
		bind: binding, unbind: binding})
}

// telling is a worker whose provider tells a test of what it is asked of instances.
func (w *world) telling(tell func(provider.Instance) (provider.Status, error)) *worker.Worker {
	return w.by(w.tells(tell))
}

func (w *world) tells(tell func(provider.Instance) (provider.Status, error)) stub {
	return stub{cloud: w.cloud(), instance: func(_ context.Context, in provider.Instance) (provider.Status, error) { return tell(in) }}
}

// silent is a worker that must not call the cloud for an instance.
func (w *world) silent(why string) *worker.Worker {
	return w.telling(func(provider.Instance) (provider.Status, error) {
		w.Errorf("the cloud was called %s", why)
		return provider.Status{Done: true}, nil
	})
}

// answers is the one answer of a provider to everything.
func answers(s provider.Status, err error) func(context.Context) (provider.Status, error) {
	return func(context.Context) (provider.Status, error) { return s, err }
}

// finished is a provider's answer that all is done.
var finished = answers(provider.Status{Done: true}, nil)

// reason is why a request is refused; -1 if it is not.
func reason(err error) lifecycle.Reason {
	if refusal := (*lifecycle.Refusal)(nil); errors.As(err, &refusal) {
		return refusal.Reason
	}
	return -1
}

func TestStepAnswersOfAProvider(t *testing.T) {
	for name, tc := range map[string]struct {
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
		"Failure": {"LOP-03: in the provider's safe words", provider.Status{},
			&provider.Failure{Message: "no room", InstanceUsable: new(bool)}, lifecycle.CreateFailed, lifecycle.Failed, 0, "no room"},
		"Fault": {"what is passing is repeated, and never shown", provider.Status{}, errors.New("throttled at 10.0.0.4"),
			lifecycle.Creating, lifecycle.InProgress, time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			outcome := w.step(w.with(answers(tc.status, tc.err)), w.asks(provision))
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

func TestAStepThatIsNotCurrentDoesNothing(t *testing.T) {
	w := newWorld(t)
	r := w.must(provision)
	other, unknown := refOf(r, 1), refOf(r, 1)
	other.Token.Operation = strings.Repeat("x", lifecycle.OperationIDLength)
	unknown.Token.Key.Instance = "other"
	before := w.instance().Version
	for _, ref := range []workflow.Ref{refOf(r, 0), refOf(r, 2), other, unknown} {
		w.settles(w.silent("by a step that is not current"), ref)
	}
	expect.Same(t, "CONC-09: the version", before, w.instance().Version)
}

// The step's own context ends in the middle of the call: the call's deadline
// came before, and what happened is recorded all the same.
func TestTheResultIsRecordedAfterTheStepsTime(t *testing.T) {
	w := newWorld(t)
	ref := w.asks(provision)
	for _, gives := range []error{errors.New("the connection was closed"), nil} {
		ctx, cancel := context.WithCancel(context.Background())
		outcome, err := w.with(func(call context.Context) (provider.Status, error) {
			if _, bounded := call.Deadline(); !bounded {
				t.Error("the call has no deadline")
			}
			cancel()
			return provider.Status{Done: true}, gives
		}).Step(ctx, ref)
		i := w.instance()
		if err != nil || outcome.Settled != (gives == nil) || (i.State == lifecycle.Ready) != (gives == nil) {
			t.Errorf("%v: %+v %v, %q", gives, outcome, err, i.State)
		}
		if len(i.Leases) != 1 || !i.Leases[0].TimedOut { // the first call may still land
			t.Errorf("%v: its leases are %+v", gives, i.Leases)
		}
	}
}

// A step is in the middle of its call when a deletion overtakes it: the deletion waits for it, and what it made is
// removed. A laptop that falls asleep in the middle of the call, and wakes up hours later, loses no lease.
func TestADeletionWaitsForACallOnItsWay(t *testing.T) {
	for name, tc := range map[string]struct {
		alone        bool
		sleeps, most time.Duration
	}{
		// A request may be waiting for the answer, and the call is over soon.
		"Awake": {false, 0, time.Second}, "Asleep": {true, 3 * time.Hour, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.alone = tc.alone
			create := w.asks(provision)
			var by *worker.Worker
			var remove workflow.Ref
			by = w.with(func(context.Context) (provider.Status, error) {
				if remove.Attempt == 0 {
					w.clock = w.clock.Add(tc.sleeps)
					remove = w.asks(deprovision)
					deleting := by
					if !tc.alone {
						deleting = w.worker() // of another process
					}
					if wait := w.waits(deleting, remove); wait > tc.most {
						t.Errorf("the deletion looks again only after %v", wait)
					}
				}
				return provider.Status{Done: true}, nil
			})
			w.settles(by, create)
			w.left("CONC-09: after the overtaken step", instanceKey, lifecycle.Deleting, 0)
			// Its lease was given up, so that one look is enough.
			w.settles(by, remove)
		})
	}
}

// The step died with its call on its way: only two looks, some time apart and
// past the lease, prove that nothing is left.
func TestALostCallIsLookedForTwice(t *testing.T) {
	w := newWorld(t)
	w.dies(w.asks(provision))
	remove := w.asks(deprovision)
	began, looks := w.clock, []time.Duration{}
	steps := w.drive(w.with(func(context.Context) (provider.Status, error) {
		looks = append(looks, w.clock.Sub(began))
		return provider.Status{Done: true}, nil
	}), remove)
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
	w.settles(w.by(stub{cloud: w.cloud(), bind: func(context.Context, provider.Binding) (provider.Status, error) {
		w.must(deprovision)
		return provider.Status{Done: true, Grant: &provider.Grant{}}, nil
	}}), w.asks(bind))
	b := w.recorded(bindingKey)
	if b.State != lifecycle.Creating || b.Grant != nil || len(b.Leases) != 0 {
		t.Errorf("the late bind left %q, a grant: %v, leases %v", b.State, b.Grant != nil, b.Leases)
	}
	w.rest()
	w.left("after the deletion", bindingKey, lifecycle.Deleted, 0)
}

// The same step delivered twice at once gives one result.
//
// NFR-09: delivery is at least once.
func TestAStepDeliveredTwice(t *testing.T) {
	w := newWorld(t)
	ref := w.asks(provision)
	w.clock = w.clock.Add(time.Second)
	step := w.with(finished)
	step.Records = quietLedger(w) // effects are not made for two at once
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { untilSettled(t, step, ref) })
	}
	all.Wait()
	w.left("after four", instanceKey, lifecycle.Ready, 0)
}

type failingEngine struct{}

func (failingEngine) Start(context.Context, workflow.Ref) error  { return errors.New("throttled") }
func (failingEngine) Finish(context.Context, workflow.Ref) error { return errors.New("throttled") }

// Start fails after the commit: the answer is 202 all the same, and the reaper starts it.
func TestAStartThatFailsIsMadeUpFor(t *testing.T) {
	w := newWorld(t)
	b := w.broker()
	b.Engine = failingEngine{}
	r, err := provision(w, b)
	if err != nil || r.Effect != broker.Accepted || len(w.started) != 0 {
		t.Fatalf("%+v %v, started %v", r, err, w.started)
	}
	w.clock = w.clock.Add(lifecycle.Grace)
	expect.Same(t, "driven again", 1, w.sweep().Redriven)
	expect.Same(t, "started", map[string]workflow.Ref{refOf(r, 2).Name(): refOf(r, 2)}, w.started)
	w.rest()
	expect.Same(t, "state", lifecycle.Ready, w.instance().State)
}

// Synchronous work that does not settle: 202 where the client allows it, else
// it is turned into a deletion (docs/decisions/0004-requests.md).
//
// ERR-09: what an error leaves behind is removed, and of an update it is said.
func TestSlowSynchronousWork(t *testing.T) {
	w := newWorld(t)
	b := w.broker()
	b.Engine = failingEngine{} // Finish comes back with nothing done
	c := w.caller()
	c.AcceptsIncomplete = false
	_, err := b.Provision(context.Background(), broker.ProvisionRequest{
		Caller: c, InstanceID: "i", ServiceID: service(), PlanID: planAsyncBind(), OrganizationGUID: "o", SpaceGUID: "s",
	})
	expect.Same(t, "answered", lifecycle.OperationFailed, reason(err))
	expect.Same(t, "the creation went on: state", lifecycle.Deleting, w.instance().State)
	w.rest()
	w.left("in the end", instanceKey, lifecycle.Deleted, 0)
}

// Losing races is never shown to a user, up to a point.
func TestRacesAreLostSilently(t *testing.T) {
	for losses, want := range map[int]lifecycle.Reason{25: -1, math.MaxInt: lifecycle.ConcurrencyError} {
		w := newWorld(t)
		b := w.broker()
		left := losses
		b.Records = ledgerOver(w, &storetest.Faulty{Store: w.records, Before: func([]store.Change) error {
			if left--; left >= 0 {
				return store.ErrConflict
			}
			return nil
		}})
		synctest.Test(t, func(t *testing.T) {
			if r, err := provision(w, b); reason(err) != want || want < 0 && (err != nil || r.Effect != broker.Accepted) {
				t.Errorf("after %d losses: %+v %v", losses, r, err)
			}
		})
	}
}

func TestReaper(t *testing.T) {
	w := newWorld(t)
	w.must(provision)
	swept := func(when string, want ledger.Swept) {
		t.Helper()
		expect.Same(t, when, reaper.Report{Swept: want}, w.sweep())
	}
	swept("nothing is due", ledger.Swept{})
	refs := expect.Get(w.reaper().Unsettled(context.Background()))(t)
	expect.Same(t, "unsettled", 1, len(refs))
	w.clock = w.clock.Add(25 * time.Hour)
	swept("past the deadline", ledger.Swept{Overdue: 1})
	expect.Same(t, "nobody has looked: state", lifecycle.Creating, w.instance().State)
	w.step(w.with(answers(provider.Status{}, provider.Failf("no room"))), workflow.Ref{Token: refs[0].Token, Attempt: 2})
	swept("a failed creation is left alone for now", ledger.Swept{})
	w.clock = w.clock.Add(lifecycle.ReclaimAfter)
	swept("ORB-04", ledger.Swept{Reclaimed: 1})
	w.rest()
	expect.Same(t, "ORB-04: state", lifecycle.Deleted, w.instance().State)
	w.clock = w.clock.Add(lifecycle.Retention)
	expect.Same(t, "dropped: the tombstone, and the provision that the deletion replaced", 2, w.sweep().Dropped)
	if i := w.instance(); i.State != lifecycle.Absent || i.Version != 0 {
		t.Errorf("the tombstone is still there: %q, version %d", i.State, i.Version)
	}
}

// Drive waits out short pauses by itself, leaves long ones to its caller, and
// begins no step that could not be recorded any more.
func TestDrive(t *testing.T) {
	for name, tc := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clock = w.clock.AddDate(100, 0, 0) // the deadline never ends the context
			ref := w.asks(provision)
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

// deadlined is a context with a deadline of the fake clock.
type deadlined struct {
	context.Context
	at time.Time
}

func (d deadlined) Deadline() (time.Time, bool) { return d.at, true }

// Each line of a step's log names the operation and the request that asked for it.
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
