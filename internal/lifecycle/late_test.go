package lifecycle_test

import (
	"testing"
	"time"

	"github.com/longshore/longshore/internal/lifecycle"
)

// One execution at a time takes the late look at a tombstone, and none does once the id is
// used again.
func TestLateLook(t *testing.T) {
	i := instances.after(t, lifecycle.BeginCreate, lifecycle.Succeed, lifecycle.BeginDelete, lifecycle.Succeed)
	c, at := i, i.LateLook
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
	i = begun
	next, _, err := i.BeginCreate(lifecycle.Start{ID: "next", Now: at, Received: at, Timeout: time.Hour}, lifecycle.Record{Provider: "demo"})
	if err != nil || next.LooksLate(id, attempt+1) {
		t.Errorf("an id that is used again is looked at as if it were deleted: %v", err)
	}
	never := instances.after(t, lifecycle.Entomb)
	if never.LateLookDue(at.AddDate(1, 0, 0)) {
		t.Error("what never existed is looked at")
	}
}
