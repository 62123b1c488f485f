package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// ends steps an operation that is past its deadline until it has settled.
func (w *world) ends(ref workflow.Ref, o worker.Options) lifecycle.Record {
	w.Helper()
	began := w.clock
	for steps := 0; w.course(ref.Token.Key).InProgress(); steps++ {
		outcome, err := worker.New(o).Step(context.Background(), ref)
		if err != nil || steps > 100 || w.clock.Sub(began) > time.Hour {
			w.Fatalf("step %d, %v past the deadline: %+v %v", steps, w.clock.Sub(began), outcome, err)
		}
		w.clock = w.clock.Add(outcome.Wait)
	}
	return w.course(ref.Token.Key)
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
	b := w.course(bindingKey).Leased("step", w.clock, w.clock.Add(time.Minute), nil)
	if err := w.ledger().Commit(t.Context(), ledger.Put(b)); err != nil {
		t.Fatal(err)
	}
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
			o.Providers = testkit.AsDemo(answering{status: provider.Status{State: state}})
		},
		"State": func(_ *world, o *worker.Options) {
			state := &provider.State{Format: 1, Data: make([]byte, limits.State+1)}
			o.Providers = testkit.AsDemo(answering{status: provider.Status{State: state}})
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
	if _, err := worker.New(o).Step(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
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
