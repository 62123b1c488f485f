package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/lifecycle"
)

// The entry of a settled operation names its plan and its parameters, and says why a failure
// failed. A record on which no operation has ended gives none.
func TestEnded(t *testing.T) {
	start := lifecycle.Start{ID: "op", Now: at(0), Timeout: 3600e9, Parameters: []string{"size"}}
	running, _, err := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: "i"}}.BeginCreate(start,
		lifecycle.Record{Attributes: lifecycle.Attributes{PlanID: "small"}})
	if err != nil {
		t.Fatal(err)
	}
	failed, err := running.Fail(at(5), lifecycle.Failure{Message: "No room."})
	if err != nil {
		t.Fatal(err)
	}
	want := &lifecycle.Entry{
		Key: running.Key, Incarnation: "op", ID: "op", Kind: lifecycle.Provision, Phase: lifecycle.Failed,
		Description: "No room.", Started: at(0), Ended: at(5), PlanID: "small", Parameters: []string{"size"},
	}
	if diff := cmp.Diff(want, failed.Ended(running)); diff != "" {
		t.Errorf("of a failure (-want +got):\n%s", diff)
	}
	if looked := running.Looked(at(1), lifecycle.Look{}); looked.Ended(running) != nil {
		t.Error("a running operation has an entry")
	}
	if failed.Ended(failed) != nil {
		t.Error("an operation has another entry at each later write of its record")
	}
}

// A deletion that overtakes a creation ends it, as cancelled; a tombstone's entry keeps the plan
// that the instance had.
func TestEndedByADeletion(t *testing.T) {
	running, _, err := lifecycle.Record{Key: lifecycle.Key{Platform: "p", Instance: "i"}}.BeginCreate(
		lifecycle.Start{ID: "make", Now: at(0)}, lifecycle.Record{Attributes: lifecycle.Attributes{PlanID: "small"}})
	if err != nil {
		t.Fatal(err)
	}
	deleting, past, err := running.BeginDelete(lifecycle.Start{ID: "remove", Now: at(3)})
	if err != nil {
		t.Fatal(err)
	}
	if e := past.Ended; e == nil || e.ID != "make" || !e.Cancelled || e.Phase != lifecycle.Failed || e.PlanID != "small" {
		t.Errorf("the cancelled creation has entry %+v", e)
	}
	gone, err := deleting.Succeed(at(4), nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := gone.Ended(deleting); e == nil || e.ID != "remove" || e.Kind != lifecycle.Deprovision || e.PlanID != "small" {
		t.Errorf("the deletion has entry %+v", e)
	}
}

// An operation keeps the names of parameters, in order, as far as there is room: never a
// value.
func TestParameterNames(t *testing.T) {
	if got := lifecycle.ParameterNames(json.RawMessage(`{"size":"s3cret","b":{"c":1}}`)); !cmp.Equal(got, []string{"b", "size"}) {
		t.Errorf("the names are %q", got)
	}
	members := map[string]bool{}
	for n := range 100 {
		members[fmt.Sprintf("%03d%s", n, strings.Repeat("\x01", 4))] = true
	}
	many, _ := json.Marshal(members)
	names := lifecycle.ParameterNames(many)
	if kept, _ := json.Marshal(names); len(kept) > limits.ParameterNames+1 || len(names) < 5 {
		t.Errorf("%d names take %d bytes", len(names), len(kept))
	}
	if got := lifecycle.ParameterNames(nil); got != nil {
		t.Errorf("no parameters have names %q", got)
	}
}
