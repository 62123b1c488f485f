package broker_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/records/ledger"
)

// Whoever names what is retained gets it if an operator has allowed it, in the place
// where it was ordered; all others are told the same, whether or not there is such a
// thing.
func TestWhoMayHaveWhatIsRetained(t *testing.T) {
	retain := func(t *testing.T, change func(*lifecycle.Retained)) (*desk, lifecycle.Retained) {
		d := newDesk(t)
		r := lifecycle.Record{Key: sourceKey, Incarnation: "first", Provider: "demo", Attributes: lifecycle.Attributes{
			ServiceID: d.ids["demo"], OrganizationGUID: "o", SpaceGUID: "s", Context: json.RawMessage(`{"namespace":"n"}`)},
			Made: lifecycle.Made{Target: lifecycle.Target{Name: "east", Identity: "account"}},
		}.Retain("kept", d.now().Add(time.Hour), d.now())
		r.Freed = d.now()
		if change != nil {
			change(&r)
		}
		if err := d.records.Commit(t.Context(), ledger.Put(r)); err != nil {
			t.Fatal(err)
		}
		return d, r
	}
	ask := func(d *desk, handle string, change func(*broker.ProvisionRequest)) error {
		_, err := d.restore(func(q *broker.ProvisionRequest) {
			raw, _ := json.Marshal(map[string]string{"restore_from": handle})
			q.Parameters = raw
			if change != nil {
				change(q)
			}
		})
		return err
	}
	d, _ := retain(t, nil)
	refusal := ask(d, "nothing@first", nil)
	if reason(refusal) != lifecycle.BadRequest {
		t.Fatalf("what there is not: %v", refusal)
	}
	for name, tc := range map[string]struct {
		record func(*lifecycle.Retained)
		asks   func(*broker.ProvisionRequest)
		handle string
	}{
		"OtherSpace":        {nil, func(q *broker.ProvisionRequest) { q.SpaceGUID = "s2" }, ""},
		"OtherOrganization": {nil, func(q *broker.ProvisionRequest) { q.OrganizationGUID = "o2" }, ""},
		"OtherNamespace":    {nil, func(q *broker.ProvisionRequest) { q.Context = json.RawMessage(`{"namespace":"n2"}`) }, ""},
		"OtherPlatform":     {nil, func(q *broker.ProvisionRequest) { q.Platform = "p2" }, ""},
		"OtherLife":         {nil, nil, "i@second"},
		"NoLife":            {nil, nil, "i@"},
		"ItsID":             {nil, nil, "i"},
		"OtherProvider":     {func(r *lifecycle.Retained) { r.Provider = "postgres" }, nil, ""},
		"NotAllowed":        {func(r *lifecycle.Retained) { r.Freed = time.Time{} }, nil, ""},
		"NoPlace": {func(r *lifecycle.Retained) { r.SpaceGUID, r.OrganizationGUID = "", "" },
			func(q *broker.ProvisionRequest) { q.SpaceGUID, q.OrganizationGUID = "", "" }, ""},
		"Taken":        {func(r *lifecycle.Retained) { *r = r.Taken(restoredKey, "op", r.Deleted) }, nil, ""},
		"BeingRemoved": {func(r *lifecycle.Retained) { *r = r.BeginRemoval("op", r.Deleted) }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := retain(t, tc.record)
			handle := r.Handle()
			if tc.handle != "" {
				handle = tc.handle
			}
			err := ask(d, handle, tc.asks)
			if reason(err) != lifecycle.BadRequest || err.Error() != refusal.Error() {
				t.Errorf("answered %v, want %v", err, refusal)
			}
			got, err := d.records.Retained(t.Context(), r.Key, r.Incarnation)
			r.Version = 1
			if diff := cmp.Diff(r, got); err != nil || diff != "" {
				t.Errorf("a refusal changed what is retained: %v -want +got:\n%s", err, diff)
			}
		})
	}
	d, r := retain(t, nil)
	if _, err := d.restore(func(q *broker.ProvisionRequest) {
		q.Parameters, q.AcceptsIncomplete = json.RawMessage(`{"restore_from":"i@first"}`), true
	}); err != nil {
		t.Fatal(err)
	}
	i, err := d.records.Record(t.Context(), restoredKey, d.now())
	if err != nil || i.Made.Target != r.Made.Target {
		t.Errorf("it is made in %+v: %v", i.Made.Target, err)
	}
	want := &lifecycle.Source{Instance: "i", Incarnation: "first", Retained: true}
	if diff := cmp.Diff(want, i.Operation.Source); diff != "" {
		t.Errorf("made of: -want +got:\n%s", diff)
	}
}
