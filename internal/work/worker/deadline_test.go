package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/wired"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// overdue is a world where an operation is past its deadline.
func overdue(t *testing.T, before []asking, ask asking) (*world, workflow.Ref) {
	t.Helper()
	w := newWorld(t)
	done(before...)(w)
	ref := w.asks(ask)
	w.clock = w.clock.Add(48 * time.Hour)
	return w, ref
}

var kinds = map[string]struct {
	before            []asking
	ask               asking
	succeeded, failed lifecycle.State
	reclaimed, usable bool // what has failed is removed; an update leaves the instance usable

}{
	"Provision":   {nil, provision, lifecycle.Ready, lifecycle.CreateFailed, true, false},
	"Update":      {[]asking{provision}, update, lifecycle.Ready, lifecycle.Ready, false, true},
	"Deprovision": {[]asking{provision}, deprovision, lifecycle.Deleted, lifecycle.DeleteFailed, false, false},
	"Bind":        {[]asking{provision}, bind, lifecycle.Ready, lifecycle.CreateFailed, true, false},
	"Unbind":      {[]asking{provision, bind}, unbind, lifecycle.Deleted, lifecycle.DeleteFailed, false, false},
}

// LOP-20: a deadline ends an operation, but only after a look from then on: what
// was done during an outage has succeeded.
func TestADeadlineIsFollowedByOneLook(t *testing.T) {
	broken := errors.New("the cloud cannot be reached")
	looks := map[string]struct {
		reason string
		status provider.Status
		err    error
		phase  lifecycle.Phase
	}{
		"Done":    {"done during an outage", provider.Status{Done: true, Grant: &provider.Grant{}}, nil, lifecycle.Succeeded},
		"Going":   {"it is not done in time", provider.Status{Percent: 99}, nil, lifecycle.Failed},
		"Failed":  {"it has failed by itself", provider.Status{}, provider.Failf("no room"), lifecycle.Failed},
		"Unknown": {"nothing was seen: another look", provider.Status{}, broken, lifecycle.InProgress},
	}
	for kind, k := range kinds {
		for what, a := range looks {
			t.Run(kind+what, func(t *testing.T) {
				w, ref := overdue(t, k.before, k.ask)
				outcome, err := w.with(answers(a.status, a.err)).Step(context.Background(), ref)
				c := w.recorded(ref.Token.Key)
				if err != nil || c.Operation.Phase != a.phase || outcome.Settled != (a.phase != lifecycle.InProgress) {
					t.Fatalf("%s: %+v %v, %+v", a.reason, outcome, err, c.Operation)
				}
				if want := map[lifecycle.Phase]lifecycle.State{lifecycle.Succeeded: k.succeeded, lifecycle.Failed: k.failed}[a.phase]; want != "" &&
					c.State != want {
					t.Errorf("%s: it is %q, want %q", a.reason, c.State, want)
				}
				expect.Same(t, "its leases", 0, len(c.Leases))
				if now := c.State == lifecycle.CreateFailed && !c.Due.After(w.clock); now != (k.reclaimed && what == "Going") {
					t.Errorf("what is left is due at %v, and it is %v", c.Due, w.clock)
				}
				if k.usable && w.instance().Unusable {
					t.Error("an update that was too slow says that the instance is unusable")
				}
			})
		}
	}
}

// damaged are records of which some cannot be read.
type damaged struct {
	worker.Records
	pointer bool // the binding's pointer, and not the binding
}

func (d damaged) NextBinding(ctx context.Context, instance lifecycle.Key, after string) (*lifecycle.Record, string, error) {
	if d.pointer {
		return d.Records.NextBinding(ctx, instance, after)
	}
	return nil, "", errors.New("decoding a record")
}

func (damaged) Pointer(context.Context, string, string) (lifecycle.Pointer, error) {
	return lifecycle.Pointer{}, errors.New("decoding a record")
}

// shut is a vault that opens and seals nothing, and says why.
type shut struct{ why error }

func (s shut) Open(context.Context, vault.Label, []byte) ([]byte, error) { return nil, s.why }
func (s shut) Seal(context.Context, vault.Label, []byte) ([]byte, error) { return nil, s.why }

// A bind whose instance is being updated is not looked at meanwhile, and does not wait past its deadline.
func TestABindDoesNotOutwaitAnUpdate(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	ref := w.asks(bind)
	w.clock = w.clock.Add(23 * time.Hour)
	w.must(update)
	w.clock = w.clock.Add(2 * time.Hour)
	w.settles(w.worker(), ref)
	if c := w.recorded(bindingKey); c.State != lifecycle.CreateFailed || c.Due.After(w.clock) {
		t.Errorf("it is %q, and due at %v", c.State, c.Due)
	}
}

// A creation that fails by its deadline is cleaned up at once, by the broker, and
// its token goes on saying that it failed (PROV-30).
func TestWhatFailsByItsDeadlineIsCleanedUp(t *testing.T) {
	for _, kind := range []string{"Provision", "Bind"} {
		t.Run(kind, func(t *testing.T) {
			k := kinds[kind]
			w := newWorld(t)
			done(k.before...)(w)
			kept := w.held()
			ref := w.asks(k.ask)
			// A failed provision leaves a half-made thing, which would still be completed.
			w.step(w.worker(), ref)
			expect.Same(t, "things that the first step made", 1, w.held()-kept)
			w.clock = w.clock.Add(48 * time.Hour)
			w.step(w.with(answers(provider.Status{Percent: 50}, nil)), ref)
			still := func(when string) {
				t.Helper()
				if r := w.must(k.ask); r.Effect != broker.Accepted || r.Token != ref.Token {
					t.Errorf("PROV-30: %s, its repetition is answered %+v", when, r)
				}
				poll := expect.Get(w.broker().LastOperation(context.Background(), ref.Token.Key, ref.Token.String()))(t)
				expect.Same(t, "LOP-15: "+when+", its poll", lifecycle.Failed, poll.Operation.Phase)
			}
			still("when it has failed")
			expect.Same(t, "reclaimed by the next sweep", 1, w.sweep().Reclaimed)
			still("while it is removed")
			w.rest()
			w.left("when it is removed", ref.Token.Key, lifecycle.Deleted, kept)
			still("when it is removed")
		})
	}
}

// No operation runs for ever past its deadline, whatever cannot be had: a cloud that cannot be reached is asked again
// for a while, and not for ever; so is one that nothing can be asked of. An update that has asked for nothing yet asks
// for nothing beside a step of a binding that may be calling the cloud.
func TestWhatIsOverdueEnds(t *testing.T) {
	state := func(size int) *provider.State { return &provider.State{Format: 1, Data: make([]byte, size)} }
	damage := func(by *worker.Worker, pointer bool) *worker.Worker {
		by.Records = damaged{by.Records, pointer}
		return by
	}
	shutting := func(by *worker.Worker) *worker.Worker {
		by.Vault = shut{errors.New("no key")}
		return by
	}
	cloud := func(w *world) *worker.Worker { return w.with(answers(provider.Status{}, errors.New("unreachable"))) }
	none := func(w *world) *worker.Worker {
		by := w.worker()
		by.Providers = nil
		return by
	}
	vault := func(w *world) *worker.Worker { return shutting(w.worker()) }
	for name, tc := range map[string]struct {
		kind  string
		bound bool // the instance has a binding
		by    func(w *world) *worker.Worker
	}{
		"CloudProvision":      {"Provision", false, cloud},
		"CloudBind":           {"Bind", false, cloud},
		"CloudUpdate":         {"Update", false, cloud},
		"NoProviderProvision": {"Provision", false, none},
		"NoProviderBind":      {"Bind", false, none},
		"NoProviderUpdate":    {"Update", false, none},
		"VaultProvision":      {"Provision", false, vault},
		"VaultBind":           {"Bind", false, vault},
		"VaultUpdate":         {"Update", false, vault},

		"DamagedBinding": {"Deprovision", true, func(w *world) *worker.Worker { return damage(w.with(finished), false) }},
		"DamagedPointer": {"Deprovision", true, func(w *world) *worker.Worker { return damage(w.with(finished), true) }},
		"UnbindThatCannotSeal": {"Deprovision", true, func(w *world) *worker.Worker {
			return shutting(w.with(answers(provider.Status{State: state(6)}, nil)))
		}},
		"UnbindOfALargeState": {"Deprovision", true, func(w *world) *worker.Worker {
			return w.with(answers(provider.Status{State: state(limits.State + 1)}, nil))
		}},
		"UpdateDamagedBinding": {"Update", true, func(w *world) *worker.Worker {
			return damage(w.silent("for an update, and a bind may be doing so"), false)
		}},
		"UpdateBesideABinding": {"Update", true, func(w *world) *worker.Worker {
			w.commits(ledger.Put(w.recorded(bindingKey).Leased("step", w.clock, w.clock.Add(time.Minute), nil)))
			return w.silent("for an update beside a step of a binding")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := kinds[tc.kind]
			least := 3
			if tc.bound {
				k.before, least = []asking{provision, bind}, 1
			}
			w, ref := overdue(t, k.before, k.ask)
			began := w.clock
			steps := w.drive(tc.by(w), ref)
			c := w.recorded(ref.Token.Key)
			if steps < least || w.clock.Sub(began) > time.Hour || c.State != k.failed || c.Operation.Phase != lifecycle.Failed ||
				len(c.Leases) != 0 {
				t.Errorf("after %d steps and %v it is %q, with %+v and the leases %+v", steps, w.clock.Sub(began), c.State,
					c.Operation, c.Leases)
			}
		})
	}
}

// The instance changes while the last step of a bind is on its way: its grant is
// not recorded, and so the secret stays in the state until it is.
func TestASecretIsErasedOnlyWithItsGrant(t *testing.T) {
	s := newSecretive(t)
	calls, touched := 0, false
	s.during = func(b provider.Binding, after bool) {
		if calls++; !after || len(b.State.Data) == 0 || touched {
			return
		}
		touched = true
		i := s.instance().SetContext(lifecycle.Attributes{Context: json.RawMessage(`{"platform":"cloudfoundry"}`)}, s.clock)
		expect.OK(t, s.ledger().Commit(context.Background(), ledger.Put(i)))
	}
	s.does(bind)
	s.granted()
	expect.Same(t, "the instance has changed", true, touched)
	if calls != 6 {
		t.Errorf("the bind took %d calls, want the last one made again, and no key made anew", calls/2)
	}
}

// slowly is a provider that takes 45 s to say that it does not refuse a deletion.
type slowly struct{ stub }

func (slowly) Refuses(context.Context, provider.Instance) error {
	time.Sleep(45 * time.Second)
	return nil
}

// The second of two calls in one step ends in time to record its answer, before the step's process ends. It may still land,
// whatever error its provider makes of that: it keeps its lease, and a deletion that overtakes it waits.
func TestTheSecondCallOfAStepIsRecordedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.clock = time.Now()
		done(provision, bind)(w)
		ref, o := w.asks(deprovision), w.kit().WorkerOptions()
		time.Sleep(time.Until(w.clock)) // from here on, the clock is the bubble's
		o.Now = time.Now
		gives := func(ctx context.Context, _ provider.Binding) (provider.Status, error) {
			<-ctx.Done()
			return provider.Status{}, errors.New("connection reset")
		}
		o.Providers = map[string]wired.Provider{"demo": testkit.Wire(slowly{stub{unbind: gives}}, 45*time.Second)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		expect.Get(worker.New(o).Step(ctx, ref))(t)
		ends, _ := ctx.Deadline()
		expect.Same(t, "the time that is left to record the answer", 10*time.Second, time.Until(ends))
		i := w.instance()
		if i.Operation.Faults != 1 || len(i.Leases) != 1 || !i.Leases[0].TimedOut {
			t.Errorf("%+v, leases %+v", i.Operation, i.Leases)
		}
	})
}
