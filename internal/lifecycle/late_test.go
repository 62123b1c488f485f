package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// What was deleted is looked at once more, by one execution at a time, and by
// none once its id is used again.
func TestLateLook(t *testing.T) {
	i := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Succeed)
	c, at := i.Course, i.LateLook
	id, attempt := c.Operation.ID, c.Operation.Attempt
	if c.LateLookDue(at.Add(-1)) || !c.LateLookDue(at) {
		t.Errorf("it is due at %v, not %v", c.Due, at)
	}
	begun := c.LateLookBegun(at)
	if begun.LateLookDue(at) || !begun.LateLookDue(at.Add(lifecycle.LateLookAgain)) {
		t.Errorf("begun, it is due again at %v", begun.Due)
	}
	if begun.LooksLate(id, attempt) || !begun.LooksLate(id, attempt+1) || begun.LooksLate("other", attempt+1) {
		t.Error("it is not the new attempt alone that may look")
	}
	if begun.InProgress() || begun.Current(id, attempt+1) || begun.Operation.Phase != lifecycle.Succeeded {
		t.Errorf("LOP-19: platforms see it: %+v", begun.Operation)
	}
	again := begun.LookedLate(at.Add(time.Second), false)
	if again.LateLook.IsZero() || !again.Due.Equal(at.Add(time.Second+lifecycle.LateLookAgain)) {
		t.Errorf("what was not seen to be absent is due at %v", again.Due)
	}
	over := begun.LookedLate(at.Add(time.Second), true)
	if over.LooksLate(id, attempt+1) || over.LateLookDue(at.AddDate(1, 0, 0)) || !over.Due.Equal(over.Expires) {
		t.Errorf("what was seen to be absent is due at %v", over.Due)
	}
	i.Course = begun
	next, _, err := i.BeginProvision(lifecycle.Start{ID: "next", Now: at, Received: at, Timeout: time.Hour}, i.Key, "demo", lifecycle.Attributes{})
	if err != nil || next.LooksLate(id, attempt+1) {
		t.Errorf("an id that is used again is looked at as if it were deleted: %v", err)
	}
	never := instances.after(t, lifecycle.Entomb)
	if never.LateLookDue(at.AddDate(1, 0, 0)) {
		t.Error("what never existed is looked at")
	}
}

// A DELETE that was held up until after its own repetition was answered, and the
// id was used again, meant what is gone: it deletes nothing (ORB-01, PROV-27).
func TestADeletionOfAnEarlierIncarnation(t *testing.T) {
	made := at(10)
	start := lifecycle.Start{ID: "again", Now: made.Add(time.Second), Received: made, Timeout: time.Hour}
	i, _, err := lifecycle.Instance{}.BeginProvision(start, instanceKey, "demo", lifecycle.Attributes{})
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := lifecycle.Binding{}.BeginBind(start, bindingKey, lifecycle.Binding{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		received time.Time
		want     lifecycle.Answer
	}{
		"Earlier":   {made.Add(-time.Second), 0},
		"TheSame":   {made, lifecycle.Begin},
		"ClocksOff": {made.Add(-lifecycle.ClockSkew), lifecycle.Begin},
		"Later":     {made.Add(time.Millisecond), lifecycle.Begin},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ofInstance, err := i.OnDeprovision(tc.received)
			ofBinding, err2 := b.OnUnbind(tc.received)
			for _, err := range []error{err, err2} {
				var refusal *lifecycle.Refusal
				if gone := errors.As(err, &refusal) && refusal.Reason == lifecycle.Gone; gone != (tc.want == 0) {
					t.Errorf("%v", err)
				}
			}
			if tc.want != 0 && (ofInstance != tc.want || ofBinding != tc.want) {
				t.Errorf("%v %v", ofInstance, ofBinding)
			}
		})
	}
}

// A PATCH that was held up until a later one was done, or until the id was used
// again, changes nothing: what the platform asked for since is newer.
func TestAnUpdateOfEarlier(t *testing.T) {
	i := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginUpdate, lifecycle.Succeed)
	for name, tc := range map[string]struct {
		received time.Time
		held     bool
	}{
		"BeforeTheUpdate":   {i.UpdateReceived.Add(-time.Second), true},
		"BeforeTheCreation": {i.CreateReceived.Add(-time.Second), true},
		"ClocksOff":         {i.UpdateReceived.Add(-lifecycle.ClockSkew), false},
		"Later":             {i.UpdateReceived.Add(time.Second), false},
	} {
		var refusal *lifecycle.Refusal
		answer, err := i.OnUpdate(false, tc.received)
		if refused := errors.As(err, &refusal) && refusal.Reason == lifecycle.ConcurrencyError; refused != tc.held || !refused && answer != lifecycle.Begin {
			t.Errorf("%s: %v %v", name, answer, err)
		}
	}
}
