package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
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

// failing is a site where something has failed asynchronously: an instance "i", or, on one, a binding "b".
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
	if binding {
		q := s.login("i", "b", "async-bind")
		q.AcceptsIncomplete = permitted
		r, err := s.broker.Bind(s.Context(), q)
		return r, err
	}
	q := s.order("i", "async-bind")
	q.AcceptsIncomplete = permitted
	return s.broker.Provision(s.Context(), q)
}

// stillFailed requires that the platform goes on being told of the failure.
func (s *site) stillFailed(binding bool, token lifecycle.Token) {
	s.Helper()
	expect.Same(s, "asked for again", token, expect.Get(s.ask(binding, true))(s).Token)
}

// isMade requires that the platform's repetition finds what is made.
func (s *site) isMade(binding bool) {
	s.Helper()
	expect.Same(s, "the platform's repetition", broker.Done, expect.Get(s.ask(binding, true))(s).Effect)
}

func refused(err error) bool {
	_, is := errors.AsType[*operator.Refusal](err)
	return is
}

// isRefused requires that the console refuses, and says all this.
func isRefused(t testing.TB, what string, err error, says ...string) {
	t.Helper()
	if !refused(err) {
		t.Errorf("%s: %v, want a refusal", what, err)
		return
	}
	expect.Says(t, what, err.Error(), says...)
}

// each calls a test for an instance, and for a binding.
func each(t *testing.T, test func(t *testing.T, binding bool)) {
	t.Run("Instance", func(t *testing.T) { test(t, false) })
	t.Run("Binding", func(t *testing.T) { test(t, true) })
}

// An operator has what failed created once more: the platform's next repetition finds it.
func TestRecreate(t *testing.T) {
	each(t, func(t *testing.T, binding bool) {
		s, f, failed := failing(t, binding)
		s.stillFailed(binding, failed) // PROV-30
		row, err := s.console.Recreate(t.Context(), failed.String())
		if err != nil || row.Operation.Token == failed.String() {
			t.Fatalf("%+v %v", row, err)
		}
		// There is still no room: it has failed again, under its own token.
		if again, err := s.ask(binding, true); err != nil || again.Effect != broker.Accepted ||
			again.Token.String() != row.Operation.Token {
			t.Errorf("%+v %v", again, err)
		}
		isRefused(t, "an older failure", expect.Err(s.console.Recreate(t.Context(), failed.String())))
		f.noRoom = false
		row = expect.Get(s.console.Recreate(t.Context(), row.Operation.Token))(t)
		s.isMade(binding)
		first := expect.Get(s.broker.Operation(t.Context(), s.caller(), failed.String()))(t)
		expect.Same(t, "LOP-19: the first one", lifecycle.Failed, first.Operation.Phase)
		isRefused(t, "what is there", expect.Err(s.console.Recreate(t.Context(), row.Operation.Token)))
	})
}

// Retry of a failed creation removes what is left of it, and says so; the platform goes on being told that it failed (PROV-30).
func TestRetryOfAFailedCreationRemovesIt(t *testing.T) {
	each(t, func(t *testing.T, binding bool) {
		s, f, failed := failing(t, binding)
		row := expect.Get(s.console.Retry(t.Context(), failed.String()))(t)
		expect.Same(t, "its state", string(lifecycle.Deleting), row.State)
		s.stillFailed(binding, failed)
		history, _, err := s.console.Records.History(t.Context(), failed.Key, "", 0)
		if err != nil ||
			!slices.ContainsFunc(history, func(e lifecycle.Entry) bool { return e.Act == "retry" && e.Key == failed.Key }) {
			t.Errorf("the history has %+v: %v", history, err)
		}
		what := operator.Instances
		if binding {
			what = operator.Bindings
		}
		rows := s.rows(s.console.List, operator.Query{What: what, State: string(lifecycle.Deleted)})
		if len(rows) != 1 || !strings.Contains(rows[0].Note, "it is told that the creation failed") {
			t.Errorf("%+v", rows)
		}
		f.noRoom = false
		_, err = s.console.Recreate(t.Context(), failed.String())
		if binding {
			isRefused(t, "its secret has gone", err)
			return
		}
		expect.OK(t, err)
		s.isMade(binding)
	})
}

// Recreate refuses what was ordered with parameters or a secret that are lost: something else would be made.
func TestRecreateNeedsWhatIsLost(t *testing.T) {
	each(t, func(t *testing.T, binding bool) {
		s, _, failed := failing(t, binding)
		s.sealsWith(local(t, 1)) // whose provider has room
		expect.Get(s.console.Rebuild(t.Context(), operator.None{}))(t)
		isRefused(t, "what is lost", expect.Err(s.console.Recreate(t.Context(), failed.String())))
		s.stillFailed(binding, failed) // PROV-30
	})
}

// A bind is not tried again on an instance that is gone, or on another.
func TestRecreateChecksTheInstance(t *testing.T) {
	s, f, failed := failing(t, true)
	f.noRoom = false
	isRefused(t, "nonsense", expect.Err(s.console.Recreate(t.Context(), "nonsense")))
	expect.OK(t, s.delete("i", ""))
	isRefused(t, "a binding of what is gone", expect.Err(s.console.Recreate(t.Context(), failed.String())))
}

// Recreate makes no empty instance in place of one that was to be restored from another,
// whether the broker has removed what that left or not.
func TestRecreateMakesNothingEmptyThatWasToBeRestored(t *testing.T) {
	for name, removed := range map[string]bool{"Failed": false, "Removed": true} {
		t.Run(name, func(t *testing.T) {
			s, f, _ := failing(t, false)
			order := func(id, parameters string) {
				q := s.order(id, "retained")
				q.AcceptsIncomplete, q.Parameters = true, []byte(parameters)
				expect.Get(s.broker.Provision(t.Context(), q))(t)
			}
			f.noRoom = false
			order("from", `{}`)
			f.noRoom = true
			order("copy", `{"restore_from":"from"}`)
			f.noRoom = false
			r := s.record(lifecycle.Key{Platform: "p", Instance: "copy"})
			expect.Same(t, "its state", lifecycle.CreateFailed, r.State)
			if removed {
				expect.Get(s.console.Retry(t.Context(), r.Token().String()))(t)
			}
			isRefused(t, "a copy", expect.Err(s.console.Recreate(t.Context(), r.Token().String())), "restored")
		})
	}
}

// An instance that is created again is found in the target where it was to be, also once that target has left the settings.
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
	use := expect.Get(s.ledger.TargetUse(t.Context(), is.TargetUse(s.clock)))(t)
	expect.Same(t, "the version of what says that it is in its target", 1, use.Version)
}
