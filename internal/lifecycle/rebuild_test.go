package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// Credentials that are lost stay so when an unbind has failed: the binding is
// not shown as one that never had any (GETB-01).
func TestLostCredentialsStayLost(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key := lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}
	b, err := lifecycle.Record{Key: key}.Rebuild(lifecycle.Thing{Key: key, Incarnation: "x", Of: "y", Provider: "demo"},
		lifecycle.Attributes{}, now)
	expect.OK(t, err)
	b, _, err = b.BeginDelete(lifecycle.Start{ID: "unbind", Now: now, Received: now, Timeout: time.Hour})
	if err == nil {
		b, err = b.Fail(now, lifecycle.Failure{Message: "No."})
	}
	if err != nil || b.State != lifecycle.DeleteFailed {
		t.Fatalf("%v %v", b.State, err)
	}
	var refusal *lifecycle.Refusal
	if err := onGet(b); !errors.As(err, &refusal) || refusal.Reason != lifecycle.Unprocessable {
		t.Errorf("read as %v", err)
	}
}

// Lose drops what does not open, wherever a record stands; what runs and needs
// it fails, and nothing else changes.
func TestLose(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	gone := func(s lifecycle.Sealed) bool { return string(s) == "lost" }
	start := lifecycle.Start{ID: "op", Now: now, Received: now, Timeout: time.Hour}
	key := lifecycle.Key{Platform: "p", Instance: "i"}
	provision := func(parameters string) lifecycle.Record {
		i, _, err := lifecycle.Record{Key: key}.BeginCreate(start, lifecycle.Record{
			Provider: "demo", Attributes: lifecycle.Attributes{PlanID: "plan", OrganizationGUID: "o", Parameters: lifecycle.Sealed(parameters)},
		})
		return must(t, i, err)
	}
	ready := func(parameters string) lifecycle.Record {
		i, err := provision(parameters).Succeed(now, nil)
		return must(t, i, err)
	}
	update := func(parameters, target string) lifecycle.Record {
		i, _, err := ready(parameters).BeginUpdate(start, lifecycle.Attributes{PlanID: "plan-2", Parameters: lifecycle.Sealed(target)})
		return must(t, i, err)
	}
	deprovision := func(parameters string) lifecycle.Record {
		i, _, err := ready(parameters).BeginDelete(start)
		return must(t, i, err)
	}
	for name, c := range map[string]struct {
		was        lifecycle.Record
		state      lifecycle.State
		phase      lifecycle.Phase
		parameters string
		lost       bool // it is known that its parameters are
	}{
		"Ready":              {ready("lost"), lifecycle.Ready, lifecycle.Succeeded, "", true},
		"Creating":           {provision("lost"), lifecycle.CreateFailed, lifecycle.Failed, "", true},
		"CreatingOther":      {provision("kept"), lifecycle.Creating, lifecycle.InProgress, "kept", false},
		"Updating":           {update("lost", "lost"), lifecycle.Ready, lifecycle.Failed, "", true},
		"UpdatingFromLost":   {update("lost", "kept"), lifecycle.Updating, lifecycle.InProgress, "", true},
		"UpdatingToLost":     {update("kept", "lost"), lifecycle.Ready, lifecycle.Failed, "kept", false},
		"UpdatingNeverGiven": {update("", "lost"), lifecycle.Ready, lifecycle.Failed, "", false},
		"Deleting":           {deprovision("lost"), lifecycle.Deleting, lifecycle.InProgress, "", true},
	} {
		i, err := c.was.Lose(gone, now)
		if err != nil || i.State != c.state || i.Operation.Phase != c.phase || string(i.Attributes.Parameters) != c.parameters ||
			i.LostParameters() != c.lost {
			t.Errorf("%s: %q, %q, parameters %q, lost %v: %v", name, i.State, i.Operation.Phase, []byte(i.Attributes.Parameters),
				i.LostParameters(), err)
		}
		if i.Attributes.PlanID != "plan" || i.Attributes.OrganizationGUID != "o" || i.LostPlace() {
			t.Errorf("%s: it lost more: %+v", name, i.Attributes)
		}
	}
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	expect.OK(t, err)
	return v
}

func TestLoseOfABinding(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	gone := func(s lifecycle.Sealed) bool { return string(s) == "lost" }
	start := lifecycle.Start{ID: "op", Now: now, Received: now, Timeout: time.Hour}
	bind := func(parameters, secret string) lifecycle.Record {
		key := lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}
		b, _, err := lifecycle.Record{Key: key}.BeginCreate(start, lifecycle.Record{
			Attributes:  lifecycle.Attributes{Parameters: lifecycle.Sealed(parameters)},
			BindingOnly: lifecycle.BindingOnly{AppGUID: "app", Secret: lifecycle.Sealed(secret)}})
		return must(t, b, err)
	}
	ready := func(secret, grant string) lifecycle.Record {
		b, err := bind("", secret).Succeed(now, lifecycle.Sealed(grant))
		return must(t, b, err)
	}
	unbind, _, err := ready("lost", "lost").BeginDelete(start)
	must(t, unbind, err)
	for name, c := range map[string]struct {
		was   lifecycle.Record
		state lifecycle.State
		phase lifecycle.Phase
		reads lifecycle.Reason // -1 if it is read
	}{
		"Ready":              {ready("lost", "lost"), lifecycle.Ready, lifecycle.Succeeded, lifecycle.Unprocessable},
		"GrantAlone":         {ready("kept", "lost"), lifecycle.Ready, lifecycle.Succeeded, lifecycle.Unprocessable},
		"SecretAlone":        {ready("lost", "kept"), lifecycle.Ready, lifecycle.Succeeded, -1},
		"Creating":           {bind("", "lost"), lifecycle.CreateFailed, lifecycle.Failed, lifecycle.NotFound},
		"CreatingParameters": {bind("lost", "kept"), lifecycle.CreateFailed, lifecycle.Failed, lifecycle.NotFound},
		"CreatingOther":      {bind("kept", "kept"), lifecycle.Creating, lifecycle.InProgress, lifecycle.NotFound},
		"Deleting":           {unbind, lifecycle.Deleting, lifecycle.InProgress, lifecycle.ConcurrencyError},
	} {
		b, err := c.was.Lose(gone, now)
		if err != nil || b.State != c.state || b.Operation.Phase != c.phase || b.AppGUID != "app" || gone(b.Secret) || gone(b.Grant) ||
			gone(b.Attributes.Parameters) {
			t.Errorf("%s: %q, %q: %v", name, b.State, b.Operation.Phase, err)
		}
		if known := b.LostParameters(); gone(c.was.Attributes.Parameters) && !known {
			t.Errorf("%s: it is not known that its parameters are lost", name)
		}
		var refusal *lifecycle.Refusal
		if err := onGet(b); errors.As(err, &refusal) != (c.reads >= 0) || refusal != nil && refusal.Reason != c.reads {
			t.Errorf("%s: read as %v", name, err)
		}
	}
}

// A binding whose record was rebuilt has no operation that could look once more
// for what came late: when it goes with its instance, nothing is due before its
// tombstone expires, and the inventory may adopt what it finds.
func TestARebuiltBindingGoesWithItsInstance(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	key := lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}
	b, err := lifecycle.Record{Key: key}.Rebuild(lifecycle.Thing{Key: key, Incarnation: "x", Of: "y", Provider: "demo"},
		lifecycle.Attributes{}, now)
	if err == nil {
		b, err = b.Remove(now, now)
	}
	if err != nil || b.State != lifecycle.Deleted || !b.Due.Equal(b.Expires) || b.Owns("x") {
		t.Errorf("%v: it is %q, due at %v and remembered until %v", err, b.State, b.Due, b.Expires)
	}
}

// A lost provider state changes nothing else in the record: the provider finds its things
// without it.
func TestLosingAProvidersState(t *testing.T) {
	r := instances.after(t, lifecycle.BeginCreate)
	r.Made.State = lifecycle.Sealed("remembered")
	got, err := r.Lose(func(s lifecycle.Sealed) bool { return string(s) == "remembered" }, at(9))
	expect.OK(t, err)
	r.Made.State = nil
	same(t, "only the state is gone, and the operation goes on", r, got)
}
