package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/memory"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/reaper"
	"github.com/longshore/longshore/internal/work/worker"
)

const (
	hardTimeout     = time.Minute
	leaseTime       = 2 * time.Minute // as the worker takes it: the timeout, and a margin for clocks
	requestTime     = 20 * time.Second
	synchronousWait = 15 * time.Second
	serviceID       = "5d5ff4c2-51ee-4f4c-8a5a-0b8f6e3c9d20"
	planA           = "0c6a4c5e-2d7b-4a27-9f6d-6f2f4a3b7c21"
	planB           = "0c6a4c5e-2d7b-4a27-9f6d-6f2f4a3b7c22"
	planKept        = "0c6a4c5e-2d7b-4a27-9f6d-6f2f4a3b7c23"
	restoreFrom     = "restore_from"
)

// whose is the broker of all histories.
var whose = ledger.Identity{Deployment: "crashtest", Broker: testkit.Identity}

// catalogOf is the catalog of a subject: plans where every request may be
// answered now or later.
func catalogOf(s Subject) *catalog.Catalog {
	settings := func(fixed map[string]any) string {
		text, err := json.Marshal(fixed) // which is YAML, too
		if err != nil || fixed == nil {
			return "{}"
		}
		return string(text)
	}
	plan := `
- id: %s
  name: %s
  description: One of two
  asynchronous: allowed
  asynchronous_binding: allowed
  binding_rotatable: true
  settings: %s
`
	plans := fmt.Sprintf(plan, planA, "a", settings(s.Settings)) + fmt.Sprintf(plan, planB, "b", settings(s.Others))
	if s.Keeps != nil {
		plans += fmt.Sprintf(plan, planKept, "kept", settings(s.Keeps)) + "  restore_parameter: " + restoreFrom + "\n"
	}
	return testkit.Offering(s.Name, `
id: `+serviceID+`
name: crashtest
description: For histories
provider: `+s.Name+`
bindable: true
plan_updateable: true
instances_retrievable: true
bindings_retrievable: true
plans:`+plans)
}

// A visit is an execution that waits for its next step.
type visit struct {
	ref workflow.Ref
	at  time.Time
}

// A world is one history.
type world struct {
	plan
	subject Subject
	without *Safeguard

	clock time.Time     // the true one
	off   time.Duration // of the machine's clock
	// last is what the broker's clock showed when it was asked last.
	last, asked time.Time
	records     *memory.Store
	cloud       provider.Provider
	holds       provider.Inventory
	key         vault.Vault
	ids         func() string
	effects     int
	struck      int // faults that happened
	current     *task
	still       []*task // that stand still
	late        []landing
	lateRelease bool // a release lands later than any lease lasts
	visits      []visit
	transcript  []string
	log         bytes.Buffer
	wrong       []error

	broker *broker.Broker
	worker *worker.Worker
	reaper *reaper.Reaper
	ledger *ledger.Ledger

	platform
}

func newWorld(s Subject, p plan, g *Safeguard) *world {
	w := &world{
		plan: p, subject: s, without: g, clock: testkit.Epoch,
		records: memory.New(), key: testkit.Key(), ids: testkit.IDs(), platform: newPlatform(),
	}
	w.cloud, w.holds = s.New(func() time.Time { return w.clock }, w.cloudEffect)
	w.begin()
	return w
}

// now is the broker's time.
func (w *world) now() time.Time {
	if now := w.clock.Add(w.off); w.raw || now.After(w.last.Add(w.clock.Sub(w.asked))) {
		w.last = now
	} else {
		w.last = w.last.Add(w.clock.Sub(w.asked))
	}
	w.asked = w.clock
	return w.last
}

func (w *world) lacks(g Safeguard) bool { return w.without != nil && *w.without == g }

// begin starts the processes anew: what they remember is gone.
func (w *world) begin() {
	kit := testkit.New(testkit.Options{
		Store: crashing{w.records, w}, Catalog: w.subject.compiled, Vault: crashingVault{w.key, w}, Engine: engine{w},
		Now: w.now, NewID: w.ids, Providers: map[string]provider.Provider{w.subject.Name: w.provider()},
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), Secret: []byte(canary + strings.Repeat("x", 32-len(canary))),
		SynchronousWait: synchronousWait, CallTimeout: 20 * time.Second, HardTimeout: hardTimeout,
		Alone: w.alone && !w.lacks(Memory),
	})
	w.ledger = kit.Ledger()
	b, s, r := kit.BrokerOptions(), kit.WorkerOptions(), kit.ReaperOptions()
	b.Records, s.Records = w.brokersRecords(), w.workersRecords()
	r.Inventory = &reaper.InventoryOptions{
		Records: w.ledger, Whose: whose,
		Listers: map[string]reaper.Lister{w.subject.Name: {List: testkit.Lister{Inventory: w.holds}.List}},
	}
	w.broker, w.worker, w.reaper = broker.New(b), worker.New(s), reaper.New(r)
}

func (w *world) tell(format string, args ...any) {
	w.transcript = append(w.transcript, w.clock.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	w.tell("WRONG: %v", err)
	w.wrong = append(w.wrong, err)
}

// run lets a process run until it ends, dies or stands still, and reports
// whether it came to its end.
func (w *world) run(name string, limit time.Duration, do func()) bool {
	t := &task{name: name, ended: make(chan any), resume: make(chan bool), until: w.clock.Add(limit),
		request: limit == requestTime}
	w.current = t
	go func() {
		defer func() { t.ended <- recover() }()
		do()
	}()
	return w.attend(t)
}

// attend waits until the current process ends or stands still: one runs at a
// time.
func (w *world) attend(t *task) bool {
	how := <-t.ended
	w.current = nil
	switch how.(type) {
	case nil:
		return true
	case died:
		w.tell("%s dies", t.name)
		if w.alone {
			w.crash()
		}
		return false
	case paused:
		w.still = append(w.still, t)
		return false
	default:
		panic(how)
	}
}

// crash ends the one process there is, and starts the next.
func (w *world) crash() {
	for _, t := range w.still {
		t.resume <- false
		<-t.ended
	}
	w.still, w.visits = nil, nil
	w.clock = w.clock.Add(time.Second)
	w.begin()
	refs, err := w.reaper.Unsettled(context.Background())
	if err != nil {
		w.fail("resuming: %v", err)
	}
	for _, ref := range refs {
		w.visits = append(w.visits, visit{ref, w.clock})
	}
}

// goOn does the next thing that happens: something lands, a process goes on,
// an execution makes a step, or time passes and the reaper looks.
func (w *world) goOn() {
	w.land()
	w.goneIsGone()
	if w.lively && len(w.still) > 0 && w.rng.IntN(2) == 0 {
		w.wake(w.rng.IntN(len(w.still)))
		return
	}
	if n := w.nextVisit(); n >= 0 {
		v := w.visits[n]
		w.visits = slices.Delete(w.visits, n, n+1)
		if v.at.After(w.clock) {
			w.clock = v.at
			w.land()
		}
		w.step(v.ref)
		if w.lively && w.rng.IntN(8) == 0 && len(w.visits) < 4 { // of copies there are copies, and time must go on
			w.step(v.ref) // delivered twice
		}
		return
	}
	if len(w.still) > 0 {
		w.wake(0)
		return
	}
	w.sweep(time.Minute)
}

// nextVisit is the execution whose step comes next; -1 if none waits.
func (w *world) nextVisit() int {
	if len(w.visits) == 0 {
		return -1
	}
	if w.lively && w.rng.IntN(4) == 0 {
		return w.rng.IntN(len(w.visits))
	}
	next := 0
	for n, v := range w.visits {
		if v.at.Before(w.visits[next].at) {
			next = n
		}
	}
	return next
}

func (w *world) step(ref workflow.Ref) {
	w.run("step of "+ref.Name(), hardTimeout, func() {
		outcome, err := w.stepped(ref)
		if err == nil && !outcome.Settled {
			w.visits = append(w.visits, visit{ref, w.clock.Add(max(outcome.Wait, time.Millisecond))})
		}
	})
}

func (w *world) sweep(after time.Duration) {
	w.clock = w.clock.Add(after)
	w.land()
	w.run("sweep", hardTimeout, func() {
		// The next sweep does what this one could not.
		_, _ = w.reaper.Sweep(context.Background())
	})
}

// wake lets a process go on that stood still, if its time is not over.
func (w *world) wake(n int) {
	t := w.still[n]
	w.still = slices.Delete(w.still, n, n+1)
	if w.clock.After(t.until) {
		w.tell("%s is ended from outside", t.name)
		t.resume <- false
		<-t.ended
		return
	}
	w.tell("%s goes on", t.name)
	w.current = t
	t.resume <- true
	w.attend(t)
}

// land lets arrive what is due to. Whoever is alone ends its own calls when their
// time is up: nobody else does.
func (w *world) land() {
	w.still = slices.DeleteFunc(w.still, func(t *task) bool {
		over := w.alone && w.clock.After(t.until)
		if over {
			w.tell("%s is over: its time is up", t.name)
			t.resume <- false
			<-t.ended
		}
		return over
	})
	for n := 0; n < len(w.late); {
		l := w.late[n]
		if l.at.After(w.clock) {
			n++
			continue
		}
		w.late = slices.Delete(w.late, n, n+1)
		w.tell("  landing: %s: %v", l.name, l.do())
	}
}
