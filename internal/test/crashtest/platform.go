package crashtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// canary is in everything that must stay secret.
const canary = "canary-7f3a"

const parameters = `{"note":"` + canary + `"}`

// A platform is what the other side believes, and has seen.
type platform struct {
	has     map[lifecycle.Key]bool // what it believes to exist
	plan    string                 // of the instance
	order   string                 // its parameters
	handle  string                 // of the kept life that may be given back; empty for none
	data    time.Time              // when what is kept, or was given back, was made; zero for nothing
	tokens  map[string]lifecycle.Token
	running map[string]lifecycle.Token // by the request: it must not get two
	ended   map[lifecycle.Token]lifecycle.Phase
	// arrivals are requests that were held up on their way.
	arrivals []func()
	doubles  int
}

func newPlatform() platform {
	return platform{
		order: parameters, has: map[lifecycle.Key]bool{}, tokens: map[string]lifecycle.Token{},
		running: map[string]lifecycle.Token{},
		ended:   map[lifecycle.Token]lifecycle.Phase{},
	}
}

func instanceKey() lifecycle.Key { return lifecycle.Key{Platform: "p", Instance: "i"} }
func bindingKey(b string) lifecycle.Key {
	return lifecycle.Key{Platform: "p", Instance: "i", Binding: b}
}
func (a act) key() lifecycle.Key {
	return lifecycle.Key{Platform: "p", Instance: "i", Binding: a.binding}
}
func (w *world) caller() broker.Caller { return w.callerAt(w.tick()) }
func (w *world) callerAt(t time.Time) broker.Caller {
	return broker.Caller{Platform: "p", Received: t, AcceptsIncomplete: !w.patient}
}

// tick is when the next request arrives, by the clock of whatever it arrives at.
func (w *world) tick() time.Time {
	w.clock = w.clock.Add(time.Millisecond)
	at := w.now()
	switch w.times {
	case behind:
		at = at.Add(-w.amiss)
	case anyhow:
		at = at.Add(time.Duration(w.rng.Int64N(int64(2*time.Hour))) - time.Hour)
	}
	return at
}

// An answer is what the platform gets, if it gets one.
type answer struct {
	broker.Result
	refusal *lifecycle.Refusal
	lost    bool // no answer, or a 5xx, which is as good as none
}

func (a answer) is(r lifecycle.Reason) bool { return a.refusal != nil && a.refusal.Reason == r }

// ask sends one request.
func (w *world) ask(what string, do func(ctx context.Context) (broker.Result, error)) answer {
	w.tell("platform: %s", what)
	var a answer
	var err error
	a.lost = !w.run(what, requestTime, func() { a.Result, err = do(context.Background()) })
	if !a.lost && err != nil && (!errors.As(err, &a.refusal) || a.refusal.Cause != nil) {
		a.lost = true
	}
	switch {
	case a.lost:
		w.tell("platform: no answer")
		w.clock = w.clock.Add(time.Second) // before it does anything else
		a.Result, a.refusal = broker.Result{}, nil
	case a.refusal != nil:
		w.tell("platform: refused: %s", a.refusal.Message)
	default:
		w.tell("platform: effect %d, %s", a.Effect, a.Token)
	}
	if !a.lost && a.Effect == broker.Accepted {
		w.sameToken(what, a.Token)
	}
	return a
}

// sameToken requires that a request that is repeated while its operation runs
// gets the same operation.
func (w *world) sameToken(what string, t lifecycle.Token) {
	if before, ok := w.running[what]; ok && before != t {
		if _, over := w.ended[before]; !over {
			if p, err := w.broker.Operation(context.Background(), w.callerAt(w.now()), before.String()); err == nil &&
				p.Operation.Phase == lifecycle.InProgress {
				w.doubles++
				w.fail("%s runs twice: as %s and as %s", what, before, t)
			}
		}
	}
	w.running[what] = t
}

// await polls an operation to its end.
func (w *world) await(key lifecycle.Key, t lifecycle.Token) lifecycle.Phase {
	for range 1000 {
		p, err := w.broker.LastOperation(context.Background(), key, t.String())
		var refusal *lifecycle.Refusal
		switch {
		case errors.As(err, &refusal) && refusal.Reason == lifecycle.Gone:
			w.seen(t, lifecycle.Succeeded)
			return lifecycle.Succeeded
		case err != nil:
			w.fail("LOP-06: a poll of %s is answered: %v", t, err)
			return lifecycle.Failed
		case p.Operation.Phase != lifecycle.InProgress:
			w.seen(t, p.Operation.Phase)
			return p.Operation.Phase
		}
		w.goOn()
	}
	w.fail("%s never ends", t)
	return lifecycle.Failed
}

// seen remembers how an operation ended: it may never read otherwise again.
func (w *world) seen(t lifecycle.Token, phase lifecycle.Phase) {
	w.tell("platform: %s has %s", t, phase)
	if before, ok := w.ended[t]; ok && before != phase {
		w.fail("LOP-19: %s had %s, and now has %s", t, before, phase)
	}
	w.ended[t] = phase
}

// do is one act, with all that a platform does to see it through.
func (w *world) do(a act) {
	steps := a.steps
	finish := func(t lifecycle.Token) (lifecycle.Phase, bool) {
		w.tokens[a.do+a.binding] = t
		if steps == wait {
			return w.await(a.key(), t), true
		}
		for range steps {
			w.goOn()
		}
		return "", false
	}
	// It leaves alone what it has given up.
	switch {
	case (a.do == "bind" || a.do == "rotate" || a.do == "update" || a.do == "late bind") && !w.has[instanceKey()],
		a.do == "rotate" && !w.has[bindingKey("b")]:
		return
	}
	switch a.do {
	case "provision", "provision kept":
		w.platform.plan, w.order = w.another(), parameters // an id that is used again is for something else
		if a.do == "provision kept" {
			w.platform.plan = planKept
		}
		w.create(a, finish, w.provision, w.deprovision)
	case "bind", "rotate":
		w.create(a, finish, func() (string, func(context.Context) (broker.Result, error)) { return w.bind(a) },
			func() { w.unbind(a.binding) })
	case "update":
		w.update(a, finish)
	case "deprovision":
		w.deprovision()
	case "unbind":
		w.unbind(a.binding)
	case "cancel":
		w.cancel(a)
	case "undelete", "undelete in vain":
		if w.handle == "" {
			return // it was given up before it was ready: nothing is kept
		}
		w.platform.plan, w.order = planKept, fmt.Sprintf(`{%q:%q,"fail":%v}`, restoreFrom, w.handle, a.do != "undelete")
		w.create(a, finish, w.provision, w.deprovision)
	case "free":
		w.free()
	case "date":
		w.date()
	case "late provision":
		w.platform.plan, w.order = w.another(), parameters
		sent := w.tick()
		_, send := w.provisionAt(sent)
		w.arrivals = append(w.arrivals, func() { w.ask("a PUT of the instance that was held up", send) })
	case "late bind":
		sent := w.tick()
		_, send := w.bindAt(act{"bind", a.binding, wait}, sent)
		w.arrivals = append(w.arrivals, func() { w.ask("a PUT of the binding that was held up", send) })
	case "late deprovision":
		c := w.caller()
		q := broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: serviceID, PlanID: planA}
		w.arrivals = append(w.arrivals, func() {
			w.ask("a DELETE of the instance that was held up", func(ctx context.Context) (broker.Result, error) {
				return w.broker.Delete(ctx, q)
			})
		})
	case "clock back":
		w.steps(-1)
	case "clock on":
		w.steps(1)
	case "sleep":
		w.sleeps(3 * time.Hour)
	case "arrivals":
		for _, arrive := range w.arrivals {
			arrive()
		}
		w.arrivals = nil
	default:
		panic("no platform does " + a.do)
	}
}

// kept are the lives that are kept.
func (w *world) kept() (all []lifecycle.Record) {
	for d, err := range paging.All(context.Background(), func(ctx context.Context, cursor string) ([]ledger.Due, string, error) {
		return w.ledger.Due(ctx, w.now().AddDate(100, 0, 0), cursor)
	}) {
		if err != nil {
			panic(err)
		}
		if d.Record != nil && d.Record.State == lifecycle.Quarantined {
			all = append(all, *d.Record)
		}
	}
	return all
}

func (w *world) isKept(handle string) bool {
	return slices.ContainsFunc(w.kept(), func(r lifecycle.Record) bool { return r.Handle() == handle })
}

// free is an operator who allows that what was kept last is given back.
func (w *world) free() {
	w.handle = ""
	for _, r := range w.kept() {
		if r, ok := r.Free(lifecycle.Attributes{}, w.now()); ok {
			if err := w.ledger.Commit(context.Background(), ledger.Put(r)); err != nil {
				w.fail("freeing what is kept: %v", err)
			}
			w.handle = r.Handle()
		}
	}
	w.tell("operator: %q may be given back", w.handle)
	if w.handle == "" && !w.data.IsZero() {
		w.fail("what was to be kept is not on record")
	}
}

// date is when all that is kept is kept no longer.
func (w *world) date() {
	w.handle, w.data = "", time.Time{}
	for _, r := range w.kept() {
		if r.Kept.Until.After(w.clock) {
			w.clock = r.Kept.Until
		}
	}
	w.tell("the date of all that is kept has come")
	w.sweep(time.Minute)
}

// steps sets the clock of the one machine there is, back or on.
func (w *world) steps(direction time.Duration) {
	by := direction * (5*time.Second + time.Duration(w.rng.Int64N(int64(2*time.Minute))))
	w.off += by
	w.tell("the clock is set by %v", by)
}

// sleeps is a laptop that is closed and opened: the clock goes on, and what waits
// or stands still in a process does not.
func (w *world) sleeps(d time.Duration) {
	w.clock = w.clock.Add(d)
	for _, t := range w.still {
		t.until = t.until.Add(d)
	}
	for n := range w.visits {
		w.visits[n].at = w.visits[n].at.Add(d)
	}
	w.tell("the machine has slept for %v", d)
}

const tries = 120

// later is when a platform asks again.
func (w *world) later() {
	w.clock = w.clock.Add(5 * time.Second)
	w.goOn()
}

// create sends a PUT until it is answered, or gives it up and deletes what it
// may have made, as platforms do.
func (w *world) create(a act, finish func(lifecycle.Token) (lifecycle.Phase, bool),
	request func() (string, func(context.Context) (broker.Result, error)), mitigate func()) {
	for range tries {
		what, send := request()
		got := w.ask(what, send)
		switch {
		case got.lost && w.lively && w.rng.IntN(2) == 0:
			w.tell("platform: gives up, and deletes")
			mitigate()
			return
		case got.lost:
			continue
		case got.is(lifecycle.ConcurrencyError):
			w.later()
			continue
		case strings.HasPrefix(a.do, "undelete") && (got.is(lifecycle.OperationFailed) ||
			got.is(lifecycle.BadRequest) && !w.isKept(w.handle)):
			w.tell("platform: it has failed, now or when no answer came")
			mitigate()
			return
		case got.refusal != nil:
			w.fail("%s is refused: %s", what, got.refusal.Message)
			return
		case got.Effect == broker.Accepted:
			phase, ended := finish(got.Token)
			if ended && phase != lifecycle.Succeeded {
				mitigate()
				return
			}
		}
		w.has[a.key()] = true
		return
	}
	w.fail("%s is never answered", a.do)
}

func (w *world) provision() (string, func(context.Context) (broker.Result, error)) {
	return w.provisionAt(w.tick())
}

func (w *world) provisionAt(at time.Time) (string, func(context.Context) (broker.Result, error)) {
	plan := w.platform.plan
	return "PUT of the instance", func(ctx context.Context) (broker.Result, error) {
		return w.broker.Provision(ctx, broker.ProvisionRequest{
			Caller: w.callerAt(at), InstanceID: "i", ServiceID: serviceID, PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s",
			Parameters: []byte(w.order),
		})
	}
}

// another is the plan that the instance is not of.
func (w *world) another() string {
	if w.platform.plan == planA {
		return planB
	}
	return planA
}

func (w *world) bind(a act) (string, func(context.Context) (broker.Result, error)) {
	return w.bindAt(a, w.tick())
}

func (w *world) bindAt(a act, at time.Time) (string, func(context.Context) (broker.Result, error)) {
	q := broker.BindRequest{
		Caller: w.callerAt(at), InstanceID: "i", BindingID: a.binding, ServiceID: serviceID, PlanID: w.platform.plan,
		AppGUID: "app", Parameters: []byte(parameters),
	}
	if a.do == "rotate" {
		q = broker.BindRequest{Caller: q.Caller, InstanceID: "i", BindingID: a.binding, Predecessor: "b"}
	}
	return a.do + " of " + a.binding, func(ctx context.Context) (broker.Result, error) {
		return w.broker.Bind(ctx, q)
	}
}

func (w *world) update(a act, finish func(lifecycle.Token) (lifecycle.Phase, bool)) {
	for range tries {
		q := broker.UpdateRequest{Caller: w.caller(), InstanceID: "i", ServiceID: serviceID, PlanID: w.another(),
			Parameters: []byte(parameters)}
		got := w.ask("PATCH of the instance", func(ctx context.Context) (broker.Result, error) { return w.broker.Update(ctx, q) })
		switch {
		case got.lost:
			continue
		case got.is(lifecycle.ConcurrencyError):
			w.later()
			continue
		case got.refusal != nil && !w.has[a.key()]:
			return // it was given up before
		case got.refusal != nil:
			w.fail("the update is refused: %s", got.refusal.Message)
			return
		case got.Effect == broker.Accepted:
			if phase, ended := finish(got.Token); ended && phase != lifecycle.Succeeded {
				w.fail("the update failed")
				return
			}
		}
		w.platform.plan = w.another()
		return
	}
	w.fail("the update is never answered")
}

func (w *world) deprovision() {
	if i := w.record(instanceKey()); w.platform.plan == planKept && i.State == lifecycle.Ready {
		for _, h := range w.holdings() {
			if h.Tags.Binding == "" && h.Tags.Incarnation == i.Incarnation {
				w.data = h.Created
			}
		}
	}
	w.remove(instanceKey(), "DELETE of the instance", func(ctx context.Context, c broker.Caller) (broker.Result, error) {
		return w.broker.Delete(ctx, broker.DeleteRequest{Caller: c, InstanceID: "i", ServiceID: serviceID,
			PlanID: w.platform.plan})
	})
	for key := range w.has {
		delete(w.has, key) // bindings go with it
	}
}

func (w *world) unbind(b string) {
	w.remove(bindingKey(b), "DELETE of "+b, func(ctx context.Context, c broker.Caller) (broker.Result, error) {
		return w.broker.Delete(ctx, broker.DeleteRequest{Caller: c, InstanceID: "i", BindingID: b, ServiceID: serviceID,
			PlanID: w.platform.plan})
	})
	delete(w.has, bindingKey(b))
}

// remove sends a DELETE until the thing is gone.
func (w *world) remove(key lifecycle.Key, what string, send func(context.Context, broker.Caller) (broker.Result, error)) {
	for range tries {
		c := w.caller()
		got := w.ask(what, func(ctx context.Context) (broker.Result, error) { return send(ctx, c) })
		switch {
		case got.lost:
		case got.is(lifecycle.Gone), got.Effect == broker.Done:
			return
		case got.is(lifecycle.ConcurrencyError):
			w.later()
		case got.refusal != nil:
			w.fail("%s is refused: %s", what, got.refusal.Message)
			return
		case w.await(key, got.Token) == lifecycle.Succeeded:
			return
		}
	}
	w.fail("%s never succeeds", what)
}

// cancel asks the status façade to cancel the creation.
func (w *world) cancel(a act) {
	of := "provision"
	if a.binding != "" {
		of = "bind" + a.binding
	}
	token, ok := w.tokens[of]
	if !ok || !w.has[a.key()] {
		return // it was given up before, or had no operation
	}
	for range tries {
		var deletion *broker.Poll
		got := w.ask("cancelling of "+token.String(), func(ctx context.Context) (broker.Result, error) {
			_, d, err := w.broker.Cancel(ctx, w.callerAt(w.now()), token.String())
			deletion = d
			return broker.Result{}, err
		})
		switch {
		case got.lost:
			continue
		case got.is(lifecycle.Conflict):
			// Too late: it has ended. What was made stays.
			if w.await(a.key(), token) == lifecycle.Failed {
				delete(w.has, a.key())
			}
			return
		case got.refusal != nil:
			w.fail("cancelling is refused: %s", got.refusal.Message)
			return
		case deletion != nil && w.await(a.key(), deletion.Token) != lifecycle.Succeeded:
			w.fail("what was cancelled is not removed")
		}
		w.seen(token, lifecycle.Failed)
		delete(w.has, a.key())
		return
	}
	w.fail("cancelling is never answered")
}

func (w *world) String() string {
	return fmt.Sprintf("%s (alone %v, raw %v, patient %v, times %v)", w.name, w.alone, w.raw, w.patient, w.times)
}
