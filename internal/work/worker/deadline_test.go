package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
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
	ref := refOf(w.must(ask), 1)
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
				if len(c.Leases) != 0 {
					t.Errorf("its leases are %+v", c.Leases)
				}
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

// A cloud that cannot be reached is asked again for a while past the deadline, and
// not for ever; so is one that nothing can be asked of.
func TestFaultsPastADeadlineEnd(t *testing.T) {
	tests := map[string]func(w *world, o *worker.Options){
		"Cloud": func(_ *world, o *worker.Options) {
			o.Providers = testkit.AsDemo(scripted{step: answers(provider.Status{}, errors.New("unreachable"))})
		},
		"NoProvider": func(_ *world, o *worker.Options) { o.Providers = nil },
		"Vault":      func(w *world, o *worker.Options) { o.Vault = shut{w.vault} },
	}
	for name, breaks := range tests {
		for _, kind := range []string{"Provision", "Bind", "Update"} {
			t.Run(name+kind, func(t *testing.T) {
				k := kinds[kind]
				w, ref := overdue(t, k.before, k.ask)
				o := w.worker().Options
				breaks(w, &o)
				steps, began := 0, w.clock
				for ; w.recorded(ref.Token.Key).InProgress(); steps++ {
					outcome, err := worker.New(o).Step(context.Background(), ref)
					if err != nil || steps > 100 {
						t.Fatalf("step %d: %v", steps, err)
					}
					w.clock = w.clock.Add(outcome.Wait)
				}
				if steps < 3 || w.clock.Sub(began) > time.Hour || w.recorded(ref.Token.Key).State != k.failed {
					t.Errorf("after %d steps and %v it is %q", steps, w.clock.Sub(began), w.recorded(ref.Token.Key).State)
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

// A deprovision that cannot read what is recorded of its instance's bindings does
// not run for ever.
func TestADeprovisionWithADamagedBindingEnds(t *testing.T) {
	for _, pointer := range []bool{false, true} {
		t.Run(fmt.Sprintf("Pointer=%v", pointer), func(t *testing.T) {
			w, ref := overdue(t, []asking{provision, bind}, deprovision)
			o := w.worker().Options
			o.Records = damaged{o.Records, pointer}
			o.Providers = testkit.AsDemo(scripted{step: finished})
			began := w.clock
			for steps := 0; w.recorded(ref.Token.Key).InProgress(); steps++ {
				outcome, err := worker.New(o).Step(context.Background(), ref)
				if err != nil || steps > 100 {
					t.Fatalf("step %d: %v", steps, err)
				}
				w.clock = w.clock.Add(outcome.Wait)
			}
			if c := w.recorded(ref.Token.Key); c.State != lifecycle.DeleteFailed || len(c.Leases) != 0 || w.clock.Sub(began) > time.Hour {
				t.Errorf("after %v it is %q, with the leases %+v", w.clock.Sub(began), c.State, c.Leases)
			}
		})
	}
}

// shut is a vault that opens and seals nothing.
type shut struct{ vault.Vault }

func (shut) Open(context.Context, vault.Label, []byte) ([]byte, error) {
	return nil, errors.New("no key")
}

func (shut) Seal(context.Context, vault.Label, []byte) ([]byte, error) {
	return nil, errors.New("no key")
}

// A bind whose instance is being updated is not looked at meanwhile, and does not
// wait past its deadline.
func TestABindDoesNotOutwaitAnUpdate(t *testing.T) {
	w := newWorld(t)
	done(provision)(w)
	ref := refOf(w.must(bind), 1)
	w.clock = w.clock.Add(23 * time.Hour)
	w.must(update)
	w.clock = w.clock.Add(2 * time.Hour)
	w.settles(w.worker(), ref)
	if c := w.recorded(ref.Token.Key); c.State != lifecycle.CreateFailed || c.Due.After(w.clock) {
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
			ref := refOf(w.must(k.ask), 1)
			// A failed provision leaves a half-made thing, which would still be completed.
			if _, err := w.worker().Step(context.Background(), ref); err != nil || w.held() != kept+1 {
				t.Fatalf("%d things, %v", w.held(), err)
			}
			w.clock = w.clock.Add(48 * time.Hour)
			w.step(w.with(answers(provider.Status{Percent: 50}, nil)), ref)
			still := func(when string) {
				t.Helper()
				if r, err := k.ask(w, w.broker()); err != nil || r.Effect != broker.Accepted || r.Token != ref.Token {
					t.Errorf("PROV-30: %s, its repetition is answered %+v %v", when, r, err)
				}
				if p, err := w.broker().LastOperation(context.Background(), ref.Token.Key, ref.Token.String()); err != nil ||
					p.Operation.Phase != lifecycle.Failed {
					t.Errorf("LOP-15: %s, its poll: %+v %v", when, p, err)
				}
			}
			still("when it has failed")
			if report, err := w.reaper().Sweep(context.Background()); err != nil || report.Reclaimed != 1 {
				t.Fatalf("the next sweep: %+v %v", report, err)
			}
			still("while it is removed")
			w.rest()
			if c := w.recorded(ref.Token.Key); c.State != lifecycle.Deleted || w.held() != kept {
				t.Errorf("it is %q, and %d things are left", c.State, w.held()-kept)
			}
			still("when it is removed")
		})
	}
}

// ends steps an operation that is past its deadline until it has settled.
func (w *world) ends(ref workflow.Ref, o worker.Options) lifecycle.Record {
	w.Helper()
	began := w.clock
	for steps := 0; w.recorded(ref.Token.Key).InProgress(); steps++ {
		outcome, err := worker.New(o).Step(context.Background(), ref)
		if err != nil || steps > 100 || w.clock.Sub(began) > time.Hour {
			w.Fatalf("step %d, %v past the deadline: %+v %v", steps, w.clock.Sub(began), outcome, err)
		}
		w.clock = w.clock.Add(outcome.Wait)
	}
	return w.recorded(ref.Token.Key)
}

// An update that cannot read what is recorded of its instance's bindings does not
// wait for them for ever, and asks nothing of the cloud.
func TestAnUpdateWithADamagedBindingEnds(t *testing.T) {
	w, ref := overdue(t, []asking{provision, bind}, update)
	o := w.worker().Options
	o.Records = damaged{o.Records, false}
	o.Providers = testkit.AsDemo(telling{tell: func(provider.Instance) (provider.Status, error) {
		t.Error("the update calls the cloud, and a bind may be doing so")
		return provider.Status{Done: true}, nil
	}})
	if i := w.ends(ref, o); i.State != lifecycle.Ready || i.Operation.Phase != lifecycle.Failed {
		t.Errorf("it is %q: %+v", i.State, i.Operation)
	}
}

// Past its deadline, an update does not begin beside a step of a binding that may
// be calling the cloud: it has asked for nothing yet, and fails.
func TestAnOverdueUpdateDoesNotMeetABinding(t *testing.T) {
	w, ref := overdue(t, []asking{provision, bind}, update)
	b := w.recorded(bindingKey).Leased("step", w.clock, w.clock.Add(time.Minute), nil)
	expect.OK(t, w.ledger().Commit(t.Context(), ledger.Put(b)))
	o := w.worker().Options
	o.Alone = false
	o.Providers = testkit.AsDemo(telling{tell: func(provider.Instance) (provider.Status, error) {
		t.Error("the update calls the cloud beside a step of a binding")
		return provider.Status{Done: true}, nil
	}})
	if i := w.ends(ref, o); i.State != lifecycle.Ready || i.Operation.Phase != lifecycle.Failed {
		t.Errorf("it is %q: %+v", i.State, i.Operation)
	}
}

// A deprovision that cannot remove a binding ends all the same.
func TestADeprovisionThatCannotUnbindEnds(t *testing.T) {
	for name, breaks := range map[string]func(w *world, o *worker.Options){
		"Vault": func(w *world, o *worker.Options) {
			o.Vault = shut{w.vault}
			state := &provider.State{Format: 1, Data: []byte("sealed")}
			o.Providers = testkit.AsDemo(scripted{step: answers(provider.Status{State: state}, nil)})
		},
		"State": func(_ *world, o *worker.Options) {
			state := &provider.State{Format: 1, Data: make([]byte, limits.State+1)}
			o.Providers = testkit.AsDemo(scripted{step: answers(provider.Status{State: state}, nil)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, ref := overdue(t, []asking{provision, bind}, deprovision)
			o := w.worker().Options
			breaks(w, &o)
			if i := w.ends(ref, o); i.State != lifecycle.DeleteFailed || len(i.Leases) != 0 {
				t.Errorf("it is %q, with the leases %+v", i.State, i.Leases)
			}
		})
	}
}

// The instance changes while the last step of a bind is on its way: its grant is
// not recorded, and so the secret stays in the state until it is.
func TestASecretIsErasedOnlyWithItsGrant(t *testing.T) {
	s := newSecretive(t)
	ref := s.must(bind)
	calls, touched := 0, false
	var was []byte
	s.asks = func(b provider.Binding, after bool) {
		if calls++; !after || len(b.State.Data) == 0 || touched {
			return
		}
		touched, was = true, b.State.Data
		i := s.instance().SetContext(lifecycle.Attributes{Context: json.RawMessage(`{"platform":"cloudfoundry"}`)}, s.clock)
		if err := s.ledger().Commit(context.Background(), ledger.Put(i)); err != nil {
			t.Error(err)
		}
	}
	s.drives(ref)
	s.granted()
	if !touched || was == nil {
		t.Error("the instance has not changed: the test proves nothing")
	}
	if calls != 6 {
		t.Errorf("the bind took %d calls, want the last one made again, and no key made anew", calls/2)
	}
}

// A call whose time was up may still land, whatever error its provider makes of
// that: a deletion that overtakes it waits for the lease.
func TestACallWhoseTimeWasUpKeepsItsLease(t *testing.T) {
	w := newWorld(t)
	ref := refOf(w.must(provision), 1)
	o := w.worker().Options
	o.Providers = testkit.AsDemo(waiting{})
	slow := o.Providers["demo"]
	slow.CallTimeout = time.Millisecond
	o.Providers["demo"] = slow
	w.step(worker.New(o), ref)
	if i := w.instance(); len(i.Leases) != 1 || !i.Leases[0].TimedOut {
		t.Errorf("its leases are %+v", i.Leases)
	}
}

// waiting is a provider that gives up when its time is up, and does not say why.
type waiting struct{ provider.Provider }

func (waiting) Provision(ctx context.Context, _ provider.Instance) (provider.Status, error) {
	<-ctx.Done()
	return provider.Status{}, errors.New("connection reset")
}
