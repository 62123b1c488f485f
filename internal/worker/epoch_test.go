package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/ledger"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/metrics"
	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/testkit"
	"github.com/longshore/longshore/internal/worker"
	"github.com/longshore/longshore/internal/workflow"
)

// An aged provider has one target with an epoch, which each change raises. Its steps
// are done at once.
type aged struct {
	provider.Provider // none
	mu                sync.Mutex
	said              provider.Epoch
	told              []provider.Epoch
	changes           int
}

func (a *aged) step(in provider.Instance) (provider.Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if in.Target.Identity == "" {
		return provider.Status{Target: &provider.Target{Name: "east", Identity: "s-1"}, Epoch: a.said, After: time.Millisecond}, nil
	}
	a.told = append(a.told, in.Epoch)
	if err := a.said.Check("east", in.Epoch); err != nil {
		return provider.Status{}, err
	}
	a.changes++
	a.said.Count++
	return provider.Status{Done: true, Epoch: a.said}, nil
}

func (a *aged) Provision(_ context.Context, in provider.Instance) (provider.Status, error) {
	return a.step(in)
}

func (a *aged) Update(_ context.Context, in provider.Instance) (provider.Status, error) {
	return a.step(in)
}

func (a *aged) Bind(_ context.Context, b provider.Binding) (provider.Status, error) {
	return a.step(b.Instance)
}

func (a *aged) wired() map[string]provider.Wired {
	return map[string]provider.Wired{"demo": {Provider: a, Epochs: true}}
}

// A target that is as it was earlier is changed by no step: operations wait, the
// operator is told once, and the user no more than that it waits.
func TestARestoredTargetIsLeftAlone(t *testing.T) {
	w, log, counts := newWorld(t), &bytes.Buffer{}, &bytes.Buffer{}
	a := &aged{said: provider.Epoch{Line: "one", Count: 7}}
	o := w.worker().Options
	o.Providers, o.Log = a.wired(), slog.New(slog.NewTextHandler(log, nil))
	o.Metrics = metrics.New("s", counts, func() time.Time { return w.clock })
	worker := worker.New(o)
	step := func(ref workflow.Ref) workflow.Outcome {
		t.Helper()
		outcome, err := worker.Step(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		w.clock = w.clock.Add(outcome.Wait)
		return outcome
	}
	ref := refOf(w.must(provision), 1)
	for !step(ref).Settled {
	}
	if len(a.told) != 1 || a.told[0] != (provider.Epoch{Line: "one", Count: 7}) {
		t.Fatalf("its first step was told %v", a.told)
	}
	for name, restored := range map[string]provider.Epoch{"Earlier": {Line: "one", Count: 7}, "OtherLine": {Line: "two", Count: 90}} {
		was, made := a.said, a.changes
		a.said = restored
		log.Reset()
		counts.Reset()
		ref := refOf(w.must(func(w *world, b *broker.Broker) (broker.Result, error) {
			return b.Update(t.Context(), broker.UpdateRequest{Caller: w.caller(), InstanceID: "i", ServiceID: service(),
				Parameters: []byte(`{"of":"` + name + `"}`)})
		}), 1)
		for range 5 {
			if step(ref).Settled {
				t.Fatalf("%s: the update has settled", name)
			}
		}
		op := w.instance().Operation
		if a.changes != made || a.told[len(a.told)-1] != was {
			t.Errorf("%s: %d changes were made, and the last step was told %v", name, a.changes-made, a.told)
		}
		if !strings.Contains(op.Trouble, "longshore reconcile") || strings.Contains(op.Description, "restored") || op.Description == "" {
			t.Errorf("%s: the operator reads %q, and the user %q", name, op.Trouble, op.Description)
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "trouble=restored") {
			t.Errorf("%s: of 5 steps, %d lines tell: %s", name, n, log)
		}
		if said := counts.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, `"Dimensions":[["Stack"]]`) ||
			!strings.Contains(said, `"Trouble":1`) || !strings.Contains(said, `"trouble":"restored"`) {
			t.Errorf("%s: the alarm's metric is %s", name, said)
		}
		a.said = was
		for !step(ref).Settled {
		}
		if op := w.instance().Operation; op.Phase != lifecycle.Succeeded || op.Trouble != "" || op.Description != "" {
			t.Errorf("%s: it ends as %+v", name, op)
		}
		w.clock = w.clock.Add(time.Hour)
	}
	known, err := w.ledger().Epoch(t.Context(), "demo", "s-1")
	if err != nil || known.Line != a.said.Line || known.Count != a.said.Count {
		t.Errorf("it is known as %+v, and is %v: %v", known, a.said, err)
	}
}

// However many steps see a new epoch at once, the latest one is recorded, and none of
// them fails.
func TestManyStepsSeeANewEpoch(t *testing.T) {
	w := newWorld(t)
	k := testkit.New(testkit.Options{Vault: w.vault, Catalog: w.offered})
	a := &aged{said: provider.Epoch{Line: "one", Count: 1}}
	o := k.WorkerOptions()
	o.Providers = a.wired()
	b := k.Broker()
	var all sync.WaitGroup
	for _, id := range strings.Fields("a b c d e f g h i j k l m n o p") {
		r, err := b.Provision(t.Context(), broker.ProvisionRequest{
			Caller: w.caller(), InstanceID: id, ServiceID: service(), PlanID: planAsyncBind(), OrganizationGUID: "o", SpaceGUID: "s",
		})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for w := worker.New(o); ; {
				outcome, err := w.Step(t.Context(), refOf(r, 1))
				if err != nil {
					t.Error(err)
				}
				if err != nil || outcome.Settled {
					return
				}
			}
		})
	}
	all.Wait()
	known, err := k.Ledger().Epoch(t.Context(), "demo", "s-1")
	if err != nil || known.Count != a.said.Count || a.changes != 16 {
		t.Errorf("after %d changes it is known as %+v, and is %v: %v", a.changes, known, a.said, err)
	}
}

// RemoveRetained raises the epoch as other changes do.
func (a *aged) RemoveRetained(_ context.Context, h provider.Holding) (provider.Status, error) {
	return a.step(provider.Instance{Target: h.Target, Epoch: h.Epoch})
}

// The removal of what was retained is on record: a target that is restored to before it,
// where the thing is there again, is seen to be restored.
func TestARemovalOfWhatIsRetainedKeepsTheEpoch(t *testing.T) {
	w := newWorld(t)
	a := &aged{said: provider.Epoch{Line: "one", Count: 7}}
	o := w.worker().Options
	o.Providers = a.wired()
	kept := lifecycle.Retained{Key: instanceKey, Incarnation: "old", Provider: "demo", Name: "thing", Until: w.clock,
		Made: lifecycle.Made{Target: lifecycle.Target{Name: "east", Identity: "s-1"}}}
	kept = kept.BeginRemoval("op", w.clock)
	if err := w.ledger().Commit(t.Context(), ledger.PutRetained(kept),
		ledger.PutEpoch(lifecycle.TargetEpoch{Provider: "demo", Identity: "s-1", Line: "one", Count: 7})); err != nil {
		t.Fatal(err)
	}
	outcome, err := worker.New(o).Step(t.Context(), workflow.Ref{Token: kept.Token(), Attempt: kept.Attempt})
	if err != nil || !outcome.Settled || len(w.retained()) != 0 {
		t.Fatalf("it is not removed: %+v %v", outcome, err)
	}
	known, err := w.ledger().Epoch(t.Context(), "demo", "s-1")
	if err != nil || known.Count != 8 {
		t.Errorf("the target is at %v, and known as %+v: %v", a.said, known, err)
	}
}
