package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
	"github.com/longshore/longshore/internal/test/memory"
)

func TestWhatIsRetainedIsKept(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	serial := 0
	l := ledger.New(memory.New(), func() string { serial++; return fmt.Sprint(serial) })
	instance := lifecycle.Record{
		Key: lifecycle.Key{Platform: "p", Instance: "i#1"}, Incarnation: "first", Provider: "demo", Created: now.Add(-time.Hour),
		Attributes: lifecycle.Attributes{ServiceID: "s", PlanID: "plan", OrganizationGUID: "o", SpaceGUID: "space"},
	}
	first := instance.Retain("thing-1-kept", now.Add(30*24*time.Hour), now)
	instance.Incarnation = "second"
	second := instance.Retain("thing-2-kept", now.Add(time.Hour), now)
	if err := l.Commit(t.Context(), ledger.Put(first), ledger.Put(second)); err != nil {
		t.Fatal(err)
	}
	first.Version, second.Version = 1, 1
	if got, err := l.Retained(t.Context(), instance.Key, "first"); err != nil || !cmp.Equal(got, first) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(first, got))
	}
	due, _, err := l.Due(t.Context(), now.Add(time.Hour), "")
	if err != nil || len(due) != 1 || due[0].Retained == nil || !cmp.Equal(*due[0].Retained, second) {
		t.Errorf("due: %+v %v", due, err)
	}
	page, next, err := l.AllRetained(t.Context(), "")
	if d := cmp.Diff([]lifecycle.Retained{first, second}, page); d != "" || next != "" || err != nil {
		t.Errorf("%q %v (-want +got):\n%s", next, err, d)
	}
}
