package worker_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/longshore/longshore/internal/test/testkit"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/vault"
	"github.com/longshore/longshore/internal/work/worker"
)

// answering is a provider that gives one answer to everything.
type answering struct {
	status provider.Status
	err    error
}

func (a answering) Provision(context.Context, provider.Instance) (provider.Status, error) {
	return a.status, a.err
}

func (a answering) Update(context.Context, provider.Instance) (provider.Status, error) {
	return a.status, a.err
}

func (a answering) Deprovision(context.Context, provider.Instance) (provider.Status, error) {
	return a.status, a.err
}

func (a answering) Bind(context.Context, provider.Binding) (provider.Status, error) {
	return a.status, a.err
}

func (a answering) Unbind(context.Context, provider.Binding) (provider.Status, error) {
	return a.status, a.err
}

// answered is a worker whose provider gives one answer to everything.
func (w *world) answered(a answering) *worker.Worker {
	o := w.worker().Options
	o.Providers = testkit.AsDemo(a)
	return worker.New(o)
}

// overdue is a world where an operation is past its deadline.
func overdue(t *testing.T, before []func(*world, *broker.Broker) (broker.Result, error),
	ask func(*world, *broker.Broker) (broker.Result, error)) (*world, workflow.Ref) {
	t.Helper()
	w := newWorld(t)
	done(before...)(w)
	ref := refOf(w.must(ask), 1)
	w.clock = w.clock.Add(48 * time.Hour)
	return w, ref
}

type asking = func(*world, *broker.Broker) (broker.Result, error)

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
	answers := map[string]struct {
		reason string
		answer answering
		phase  lifecycle.Phase
	}{
		"Done": {"it was done during an outage", answering{status: provider.Status{Done: true, Grant: &provider.Grant{}}},
			lifecycle.Succeeded},
		"Going":   {"it is not done in time", answering{status: provider.Status{Percent: 99}}, lifecycle.Failed},
		"Failed":  {"it has failed by itself", answering{err: provider.Failf("no room")}, lifecycle.Failed},
		"Unknown": {"nothing was seen: another look", answering{err: broken}, lifecycle.InProgress},
	}
	for kind, k := range kinds {
		for what, a := range answers {
			t.Run(kind+what, func(t *testing.T) {
				w, ref := overdue(t, k.before, k.ask)
				outcome, err := w.answered(a.answer).Step(context.Background(), ref)
				c := w.course(ref.Token.Key)
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
			o.Providers = testkit.AsDemo(answering{err: errors.New("unreachable")})
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
				for ; w.course(ref.Token.Key).InProgress(); steps++ {
					outcome, err := worker.New(o).Step(context.Background(), ref)
					if err != nil || steps > 100 {
						t.Fatalf("step %d: %v", steps, err)
					}
					w.clock = w.clock.Add(outcome.Wait)
				}
				if steps < 3 || w.clock.Sub(began) > time.Hour || w.course(ref.Token.Key).State != k.failed {
					t.Errorf("after %d steps and %v it is %q", steps, w.clock.Sub(began), w.course(ref.Token.Key).State)
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
			o.Providers = testkit.AsDemo(answering{status: provider.Status{Done: true}})
			began := w.clock
			for steps := 0; w.course(ref.Token.Key).InProgress(); steps++ {
				outcome, err := worker.New(o).Step(context.Background(), ref)
				if err != nil || steps > 100 {
					t.Fatalf("step %d: %v", steps, err)
				}
				w.clock = w.clock.Add(outcome.Wait)
			}
			if c := w.course(ref.Token.Key); c.State != lifecycle.DeleteFailed || len(c.Leases) != 0 || w.clock.Sub(began) > time.Hour {
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
	if outcome, err := w.worker().Step(context.Background(), ref); err != nil || !outcome.Settled {
		t.Fatalf("%+v %v", outcome, err)
	}
	if c := w.course(ref.Token.Key); c.State != lifecycle.CreateFailed || c.Due.After(w.clock) {
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
			if _, err := w.answered(answering{status: provider.Status{Percent: 50}}).Step(context.Background(), ref); err != nil {
				t.Fatal(err)
			}
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
			if c := w.course(ref.Token.Key); c.State != lifecycle.Deleted || w.held() != kept {
				t.Errorf("it is %q, and %d things are left", c.State, w.held()-kept)
			}
			still("when it is removed")
		})
	}
}
