package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/work/worker"
)

// full is a provider that makes nothing while it has no room.
type full struct {
	provider.Provider
	noRoom bool
}

func (f *full) Provision(ctx context.Context, in provider.Instance) (provider.Status, error) {
	if f.noRoom {
		return provider.Status{}, provider.Failf("no room")
	}
	return f.Provider.Provision(ctx, in)
}

func (f *full) Bind(ctx context.Context, in provider.Binding) (provider.Status, error) {
	if f.noRoom {
		return provider.Status{}, provider.Failf("no room")
	}
	return f.Provider.Bind(ctx, in)
}

// failing is a site where something has failed asynchronously: an instance "i",
// or, on one, a binding "b".
func failing(t *testing.T, binding bool) (s *site, f *full, token lifecycle.Token) {
	t.Helper()
	s = newSite(t)
	o := s.worker.Options
	f = &full{Provider: o.Providers["demo"].Provider}
	o.Providers = testkit.AsDemo(f)
	s.worker = worker.New(o)
	if binding {
		s.ask(false, true)
	}
	f.noRoom = true
	r, err := s.ask(binding, true)
	if err != nil || r.Effect != broker.Accepted {
		t.Fatalf("%+v %v", r, err)
	}
	return s, f, r.Token
}

// ask sends the same PUT at each call.
func (s *site) ask(binding, permitted bool) (broker.Result, error) {
	service, plan := s.plan("async-bind")
	c := s.caller()
	c.AcceptsIncomplete = permitted
	if binding {
		r, err := s.broker.Bind(s.Context(), broker.BindRequest{Caller: c, InstanceID: "i", BindingID: "b", ServiceID: service,
			PlanID: plan})
		return r.Result, err
	}
	return s.broker.Provision(s.Context(), broker.ProvisionRequest{Caller: c, InstanceID: "i", ServiceID: service,
		PlanID: plan, OrganizationGUID: "o", SpaceGUID: "s", Parameters: []byte(`{"a":1}`)})
}

func refused(err error) bool {
	var refusal *operator.Refusal
	return errors.As(err, &refusal)
}

// An operator has what failed created once more: the platform's next repetition
// finds it.
func TestRecreate(t *testing.T) {
	for name, binding := range map[string]bool{"Instance": false, "Binding": true} {
		t.Run(name, func(t *testing.T) {
			s, f, failed := failing(t, binding)
			if again, err := s.ask(binding, true); err != nil || again.Token != failed {
				t.Fatalf("PROV-30: %+v %v", again, err)
			}
			row, err := s.console.Recreate(t.Context(), failed.String())
			if err != nil || row.Operation.Token == failed.String() {
				t.Fatalf("%+v %v", row, err)
			}
			// There is still no room: it has failed again, under its own token.
			if again, err := s.ask(binding, true); err != nil || again.Effect != broker.Accepted ||
				again.Token.String() != row.Operation.Token {
				t.Errorf("%+v %v", again, err)
			}
			if _, err := s.console.Recreate(t.Context(), failed.String()); !refused(err) {
				t.Errorf("an older failure was tried again: %v", err)
			}
			f.noRoom = false
			if row, err = s.console.Recreate(t.Context(), row.Operation.Token); err != nil {
				t.Fatal(err)
			}
			if done, err := s.ask(binding, true); err != nil || done.Effect != broker.Done {
				t.Errorf("the platform's repetition: %+v %v", done, err)
			}
			if p, err := s.broker.Operation(t.Context(), s.caller(), failed.String()); err != nil ||
				p.Operation.Phase != lifecycle.Failed {
				t.Errorf("LOP-19: the first one: %+v %v", p, err)
			}
			if _, err := s.console.Recreate(t.Context(), row.Operation.Token); !refused(err) {
				t.Errorf("what is there was created again: %v", err)
			}
		})
	}
}

// Retry of a failed creation removes what is left of it, and says so; the
// platform goes on being told that it failed (PROV-30).
func TestRetryOfAFailedCreationRemovesIt(t *testing.T) {
	for name, binding := range map[string]bool{"Instance": false, "Binding": true} {
		t.Run(name, func(t *testing.T) {
			s, f, failed := failing(t, binding)
			row, err := s.console.Retry(t.Context(), failed.String())
			if err != nil || row.State != string(lifecycle.Deleting) {
				t.Fatalf("%+v %v", row, err)
			}
			if again, err := s.ask(binding, true); err != nil || again.Token != failed {
				t.Errorf("PROV-30: %+v %v", again, err)
			}
			history, _, err := s.console.Records.History(t.Context(), failed.Key, "", 0)
			if err != nil || !slices.ContainsFunc(history, func(e lifecycle.Entry) bool {
				return e.Act == "retry" && e.Key == failed.Key
			}) {
				t.Errorf("the history has %+v: %v", history, err)
			}
			what := operator.Instances
			if binding {
				what = operator.Bindings
			}
			rows, _, err := s.console.List(t.Context(), operator.Query{What: what, State: string(lifecycle.Deleted)})
			if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Note, "it is told that the creation failed") {
				t.Errorf("%+v %v", rows, err)
			}
			f.noRoom = false
			_, err = s.console.Recreate(t.Context(), failed.String())
			if binding { // its secret has gone
				if !refused(err) {
					t.Errorf("%v", err)
				}
				return
			}
			expect.OK(t, err)
			if done, err := s.ask(binding, true); err != nil || done.Effect != broker.Done {
				t.Errorf("the platform's repetition: %+v %v", done, err)
			}
		})
	}
}

// Recreate refuses what was ordered with parameters or a secret that are lost: something
// else would be made.
func TestRecreateNeedsWhatIsLost(t *testing.T) {
	for name, binding := range map[string]bool{"Instance": false, "Binding": true} {
		t.Run(name, func(t *testing.T) {
			s, _, failed := failing(t, binding)
			s.sealsWith(local(t, 1)) // whose provider has room
			expect.Get(s.console.Rebuild(t.Context()))(t)
			if row, err := s.console.Recreate(t.Context(), failed.String()); !refused(err) {
				t.Errorf("it was tried again: %+v %v", row, err)
			}
			if again, err := s.ask(binding, true); err != nil || again.Token != failed {
				t.Errorf("PROV-30: %+v %v", again, err)
			}
		})
	}
}

// A bind is not tried again on an instance that is gone, or on another.
func TestRecreateChecksTheInstance(t *testing.T) {
	s, f, failed := failing(t, true)
	f.noRoom = false
	if _, err := s.console.Recreate(t.Context(), "nonsense"); !refused(err) {
		t.Error(err)
	}
	expect.OK(t, s.delete("i", ""))
	if _, err := s.console.Recreate(t.Context(), failed.String()); !refused(err) {
		t.Errorf("a binding of what is gone was made: %v", err)
	}
}

// Recreate makes no empty instance in place of one that was to be restored from another,
// whether the broker has removed what that left or not.
func TestRecreateMakesNothingEmptyThatWasToBeRestored(t *testing.T) {
	for name, removed := range map[string]bool{"Failed": false, "Removed": true} {
		t.Run(name, func(t *testing.T) {
			s, f, _ := failing(t, false)
			service, plan := s.plan("retained")
			order := func(id, parameters string) {
				c := s.caller()
				c.AcceptsIncomplete = true
				expect.Get(s.broker.Provision(t.Context(), broker.ProvisionRequest{Caller: c, InstanceID: id,
					ServiceID: service, PlanID: plan,
					OrganizationGUID: "o", SpaceGUID: "s", Parameters: []byte(parameters)}))(t)

			}
			f.noRoom = false
			order("from", `{}`)
			f.noRoom = true
			order("copy", `{"restore_from":"from"}`)
			f.noRoom = false
			r := s.record(lifecycle.Key{Platform: "p", Instance: "copy"})
			if r.State != lifecycle.CreateFailed {
				t.Fatal(r.State)
			}
			if removed {
				expect.Get(s.console.Retry(t.Context(), r.Token().String()))(t)
			}
			if row, err := s.console.Recreate(t.Context(), r.Token().String()); !refused(err) || !strings.Contains(err.Error(),
				"restored") {
				t.Errorf("%+v %v", row, err)
			}
		})
	}
}

// An instance that is created again is found in the target where it was to be, also once
// that target has left the settings.
func TestRecreateInATarget(t *testing.T) {
	s, _, failed := failing(t, false)
	key := lifecycle.Key{Platform: "p", Instance: "i"}
	was := s.record(key)
	was.Made.Target = lifecycle.Target{Name: "east", Identity: "account"}
	expect.OK(t, s.ledger.Commit(t.Context(), ledger.Put(was)))
	expect.Get(s.console.Recreate(t.Context(), failed.String()))(t)
	is := s.record(key)
	if is.Incarnation == was.Incarnation || is.Made.Target != was.Made.Target {
		t.Fatalf("%+v", is)
	}
	if use, err := s.ledger.TargetUse(t.Context(), is.TargetUse(s.clock)); err != nil || use.Version != 1 {
		t.Errorf("nothing says that it is in its target: %+v %v", use, err)
	}
}
