package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// rebuilt is a binding whose record was derived again.
func rebuilt(t *testing.T) lifecycle.Record {
	t.Helper()
	thing := lifecycle.Thing{Key: bindingKey, Incarnation: "x", Of: "y", Provider: "demo"}
	return expect.Get(lifecycle.Record{Key: bindingKey}.Rebuild(thing, lifecycle.Attributes{}, at(0)))(t)
}

// reads is the reason for which a record is not shown; -1 if it is.
func reads(r lifecycle.Record) lifecycle.Reason {
	if refusal := (*lifecycle.Refusal)(nil); errors.As(onGet(r), &refusal) {
		return refusal.Reason
	}
	return -1
}

// Credentials that are lost stay so when an unbind has failed: the binding is
// not shown as one that never had any (GETB-01).
func TestLostCredentialsStayLost(t *testing.T) {
	b := expect.Get(rebuilt(t).BeginDelete(start("unbind", at(0))))(t)
	b = expect.Get(b.Fail(at(0), lifecycle.Failure{Message: "No."}))(t)
	expect.Same(t, "the state", lifecycle.DeleteFailed, b.State)
	expect.Same(t, "read", lifecycle.Unprocessable, reads(b))
}

// gone says that a sealed text cannot be opened.
func gone(s lifecycle.Sealed) bool { return string(s) == "lost" }

// Lose drops what does not open, wherever a record stands; what runs and needs it fails, and nothing else changes.
func TestLose(t *testing.T) {
	begun := start("op", at(0))
	provision := func(parameters string) lifecycle.Record {
		return expect.Get(lifecycle.Record{Key: instanceKey}.BeginCreate(begun, lifecycle.Record{Provider: "demo",
			Attributes: lifecycle.Attributes{PlanID: "plan", OrganizationGUID: "o", Parameters: lifecycle.Sealed(parameters)}}))(t)
	}
	ready := func(parameters string) lifecycle.Record {
		return expect.Get(provision(parameters).Succeed(at(0), nil))(t)
	}
	update := func(parameters, target string) lifecycle.Record {
		to := lifecycle.Attributes{PlanID: "plan-2", Parameters: lifecycle.Sealed(target)}
		return expect.Get(ready(parameters).BeginUpdate(begun, to))(t)
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
		"Deleting":           {expect.Get(ready("lost").BeginDelete(begun))(t), lifecycle.Deleting, lifecycle.InProgress, "", true},
	} {
		i, err := c.was.Lose(gone, at(0))
		if err != nil || i.State != c.state || i.Operation.Phase != c.phase || string(i.Attributes.Parameters) != c.parameters ||
			i.LostParameters() != c.lost {
			t.Errorf("%s: %q, %q, parameters %q, lost %v: %v", name, i.State, i.Operation.Phase, []byte(i.Attributes.Parameters),
				i.LostParameters(), err)
		}
		a := i.Attributes
		holds(t, a.PlanID == "plan" && a.OrganizationGUID == "o" && !i.LostPlace(), name+": it lost more", a)
	}
}

func TestLoseOfABinding(t *testing.T) {
	bind := func(parameters, secret string) lifecycle.Record {
		return expect.Get(lifecycle.Record{Key: bindingKey}.BeginCreate(start("op", at(0)), lifecycle.Record{
			Attributes:  lifecycle.Attributes{Parameters: lifecycle.Sealed(parameters)},
			BindingOnly: lifecycle.BindingOnly{AppGUID: "app", Secret: lifecycle.Sealed(secret)}}))(t)
	}
	ready := func(secret, grant string) lifecycle.Record {
		return expect.Get(bind("", secret).Succeed(at(0), lifecycle.Sealed(grant)))(t)
	}
	unbind := expect.Get(ready("lost", "lost").BeginDelete(start("op", at(0))))(t)
	for name, c := range map[string]struct {
		was   lifecycle.Record
		state lifecycle.State
		phase lifecycle.Phase
		reads lifecycle.Reason
	}{
		"Ready":              {ready("lost", "lost"), lifecycle.Ready, lifecycle.Succeeded, lifecycle.Unprocessable},
		"GrantAlone":         {ready("kept", "lost"), lifecycle.Ready, lifecycle.Succeeded, lifecycle.Unprocessable},
		"SecretAlone":        {ready("lost", "kept"), lifecycle.Ready, lifecycle.Succeeded, -1},
		"Creating":           {bind("", "lost"), lifecycle.CreateFailed, lifecycle.Failed, lifecycle.NotFound},
		"CreatingParameters": {bind("lost", "kept"), lifecycle.CreateFailed, lifecycle.Failed, lifecycle.NotFound},
		"CreatingOther":      {bind("kept", "kept"), lifecycle.Creating, lifecycle.InProgress, lifecycle.NotFound},
		"Deleting":           {unbind, lifecycle.Deleting, lifecycle.InProgress, lifecycle.ConcurrencyError},
	} {
		b, err := c.was.Lose(gone, at(0))
		if err != nil || b.State != c.state || b.Operation.Phase != c.phase || b.AppGUID != "app" || gone(b.Secret) || gone(b.Grant) ||
			gone(b.Attributes.Parameters) {
			t.Errorf("%s: %q, %q: %v", name, b.State, b.Operation.Phase, err)
		}
		holds(t, !gone(c.was.Attributes.Parameters) || b.LostParameters(), name+": it is not known that its parameters are lost")
		expect.Same(t, name+": read", c.reads, reads(b))
	}
}

// A binding whose record was rebuilt has no operation that could look once more for what came late: when it goes with
// its instance, nothing is due before its tombstone expires, and the inventory may adopt what it finds.
func TestARebuiltBindingGoesWithItsInstance(t *testing.T) {
	b := expect.Get(rebuilt(t).Remove(at(0), at(0)))(t)
	holds(t, b.State == lifecycle.Deleted && b.Due.Equal(b.Expires) && !b.Owns("x"), "its tombstone", b)
}

// A lost provider state changes nothing else in the record: the provider finds its things without it.
func TestLosingAProvidersState(t *testing.T) {
	r := instances.after(t, lifecycle.BeginCreate)
	r.Made.State = lifecycle.Sealed("lost")
	got := expect.Get(r.Lose(gone, at(9)))(t)
	r.Made.State = nil
	same(t, "only the state is gone, and the operation goes on", r, got)
}
