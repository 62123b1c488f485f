package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/lifecycle/workflow"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/testkit"
	"github.com/longshore/longshore/internal/work/worker"
)

// freed has "i" be retained, and an operator allow that it is given back.
func freed(w *world) {
	w.Helper()
	done(provisionKept, deprovision)(w)
	r, ok := w.retained()[0].Free(w.clock)
	if !ok {
		w.Fatal("it cannot be given back")
	}
	if err := w.ledger().Commit(context.Background(), ledger.Put(r)); err != nil {
		w.Fatal(err)
	}
	w.handle = r.Handle()
}

// undeleteAs asks for an instance of an id that "i" becomes, with more parameters.
func undeleteAs(id string, more map[string]any) func(*world, *broker.Broker) (broker.Result, error) {
	return func(w *world, b *broker.Broker) (broker.Result, error) {
		parameters := map[string]any{"restore_from": w.handle}
		for name, v := range more {
			parameters[name] = v
		}
		raw, err := json.Marshal(parameters)
		if err != nil {
			w.Fatal(err)
		}
		_, plan := testkit.PlanIDs("retained")
		return b.Provision(context.Background(), broker.ProvisionRequest{
			Caller: w.caller(), InstanceID: id, ServiceID: service(), PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s", Parameters: raw,
		})
	}
}

var undelete = undeleteAs("r", nil)

// remove asks for the end of the instance "r".
func remove(w *world, b *broker.Broker) (broker.Result, error) {
	return b.Delete(context.Background(),
		broker.DeleteRequest{Caller: w.caller(), InstanceID: "r", ServiceID: service(), PlanID: planAsyncBind()})
}

// moved requires that "r" was made of the retained thing.
func (w *world) moved(when string) {
	w.Helper()
	things := w.things.Things()
	if len(things) != 1 || things[0].Tags.Instance != "r" || things[0].Source == "" || len(w.retained()) != 0 {
		w.Errorf("%s: there are %+v, on record as retained: %+v", when, things, w.retained())
	}
}

// isBack requires that "i" is retained again, and may become another instance.
func (w *world) isBack(when string) {
	w.Helper()
	w.isKept(when)
	if all := w.retained(); len(all) == 1 && (all[0].Phase != lifecycle.Keeping || all[0].Freed.IsZero() || all[0].By != "") {
		w.Errorf("%s: it is on record as %+v", when, all[0])
	}
}

// What is given back is one thing, wherever the process dies: the new instance, or,
// if that fails or is deleted midway, retained as before. It is never lost, and
// nothing is left behind.
func TestWhatIsGivenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		deed
		ends   func(*world, string)
		deaths int
	}{
		"Ready": {deed{freed, undelete, 1, lifecycle.Ready, restoredKey}, (*world).moved, 12},
		"Fails": {deed{freed, undeleteAs("r", map[string]any{"fail": true}), 1, lifecycle.CreateFailed, restoredKey},
			func(w *world, when string) {
				done(remove)(w)
				w.isBack(when)
			}, 12},
		"DeletedMidway": {deed{both(freed, begun(undelete)), remove, 1, lifecycle.Deleted, restoredKey}, (*world).isBack, 12},
		"DeletedOnceItFailed": {deed{both(freed, done(undeleteAs("r", map[string]any{"fail": true}))), remove, 1, lifecycle.Deleted,
			restoredKey}, (*world).isBack, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if total := tc.deed.dies(t, tc.ends); total < tc.deaths {
				t.Errorf("died %d times only: the test proves little", total)
			}
		})
	}
}

// A provision of it that was on its way while its instance was deleted takes it along:
// the late look after the deletion gives it back.
func TestWhatIsTakenLateIsGivenBack(t *testing.T) {
	w := newWorld(t)
	both(freed, begun(undelete))(w)
	r := w.restored()
	w.started = map[string]workflow.Ref{}
	done(remove)(w)
	w.isBack("deleted")
	kept := w.retained()[0]
	late := provider.Instance{
		Broker: testkit.Identity, Platform: "p", ID: "r", Incarnation: r.Incarnation, ServiceID: service(), PlanID: r.Attributes.PlanID,
		Operation: provider.Operation{ID: "late", Kind: provider.KindProvision, Synchronous: true, Started: w.clock},
		Source: &provider.Source{Platform: "p", ID: "i", Incarnation: kept.Incarnation,
			Retained: &provider.Retained{Name: kept.Name, Until: kept.Until}},
	}
	if s, err := w.demo().Provision(t.Context(), late); err != nil || !s.Done {
		t.Fatal(s, err)
	}
	if h := w.shelved()[kept.Name]; h.Name != "" || w.held() != 1 {
		t.Fatalf("nothing came late: %+v", h)
	}
	w.clock = w.clock.Add(lifecycle.LateLook)
	w.restForLong()
	w.isBack("looked at late")
}

// Of two that ask for it, and of its removal, one wins.
func TestOneWins(t *testing.T) {
	t.Run("TwoProvisions", func(t *testing.T) {
		w := newWorld(t)
		freed(w)
		w.must(undelete)
		if _, err := undeleteAs("r2", nil)(w, w.broker()); !isRefusal(err) {
			t.Errorf("the second one is answered %v", err)
		}
		w.rest()
		w.moved("the first one")
	})
	t.Run("RemovalFirst", func(t *testing.T) {
		w := newWorld(t)
		freed(w)
		w.clock = w.clock.Add(lifecycle.LateLook)
		w.rest()
		w.clock = w.retained()[0].Until
		ref, _ := w.begins()
		if _, err := undelete(w, w.broker()); !isRefusal(err) {
			t.Errorf("what is being removed is given back: %v", err)
		}
		w.drive(t.Context(), ref)
		if w.held() != 0 || len(w.retained()) != 0 {
			t.Errorf("%d things, %+v", w.held(), w.retained())
		}
	})
	t.Run("UndeleteFirst", func(t *testing.T) {
		w := newWorld(t)
		freed(w)
		w.clock = w.retained()[0].Until.Add(-time.Second)
		r := w.must(undelete)
		w.clock = w.clock.Add(time.Hour) // its time is over, and it is looked at
		report, err := w.reaper().Sweep(t.Context())
		if err != nil || report.Removed != 0 || w.retained()[0].Phase != lifecycle.Restoring {
			t.Errorf("%+v %v, %+v", report, err, w.retained()[0])
		}
		w.drive(t.Context(), workflow.Ref{Token: r.Token, Attempt: w.restored().Operation.Attempt})
		w.moved("when its time is over")
	})
	t.Run("AtOnce", func(t *testing.T) { // the removal begins while the request is decided
		w := newWorld(t)
		freed(w)
		now := w.retained()[0]
		if err := w.ledger().Commit(t.Context(), ledger.Put(now.BeginRemoval("op", w.clock))); err != nil {
			t.Fatal(err)
		}
		err := w.ledger().Commit(t.Context(), ledger.Put(now.Taken(restoredKey, "op2", w.clock)))
		if !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("both win: %v", err)
		}
	})
}

// What an instance was to be made of and is not there fails it: nothing else is made
// in its place.
func TestWhatIsNotThereIsNotGivenBack(t *testing.T) {
	w := newWorld(t)
	freed(w)
	w.things.Take(w.retained()[0].Name)
	done(undelete)(w)
	if r := w.restored(); r.State != lifecycle.CreateFailed || w.held() != 0 {
		t.Fatalf("it is %q, %d things", r.State, w.held())
	}
	done(remove)(w)
	w.clock = w.retained()[0].Until
	w.rest()
	if len(w.retained()) != 0 {
		t.Errorf("%+v", w.retained())
	}
}

// An instance whose record was lost does not keep it for ever.
func TestWhatWasTakenByNobodyIsGivenBack(t *testing.T) {
	w := newWorld(t)
	freed(w)
	r := w.retained()[0].Taken(lifecycle.Key{Platform: "p", Instance: "unknown"}, "op", w.clock)
	if err := w.ledger().Commit(t.Context(), ledger.Put(r)); err != nil {
		t.Fatal(err)
	}
	w.clock = w.clock.Add(2 * time.Hour)
	w.rest()
	w.isBack("looked at")
}

// A provider is told what is retained, with its state, in each step, also in the
// deletion of what it did not become.
func TestAProviderIsToldWhatIsGivenBack(t *testing.T) {
	w := newWorld(t)
	freed(w)
	kept := w.retained()[0]
	ref := refOf(w.must(undelete), 1)
	var told []provider.Instance
	o := w.worker().Options
	o.Providers = testkit.AsDemo(telling{Provider: o.Providers["demo"].Provider, tell: func(in provider.Instance) (provider.Status, error) {
		told = append(told, in)
		return provider.Status{After: time.Second}, nil
	}})
	for range 2 {
		if _, err := worker.New(o).Step(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	for n, in := range told {
		if s := in.Source; s == nil || s.Retained == nil || s.Retained.Name != kept.Name || !s.Retained.Until.Equal(kept.Until) || s.ID != "i" ||
			s.Incarnation != kept.Incarnation || s.Platform != "p" || string(s.Snapshot) != string(kept.Snapshot) {
			t.Errorf("step %d is told %+v", n, s)
		}
	}
	if len(told) != 2 {
		t.Errorf("%d steps", len(told))
	}
}

func isRefusal(err error) bool {
	var refusal *lifecycle.Refusal
	return errors.As(err, &refusal)
}
