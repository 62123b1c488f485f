package operator_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/paging"
	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/operator"
)

// TestUpgrades proves that an instance is listed exactly if an update by its platform, or a
// newer version by the operator, would change it.
func TestUpgrades(t *testing.T) {
	s := newSite(t)
	for id, plan := range map[string]string{"as-it-was": "retained", "left": "async", "gone": "maintenance"} {
		s.provision(id, plan)
	}
	s.provision("behind", "maintenance")
	s.provision("edited", "sync")
	if err := s.bind("behind", "bound", "maintenance", ""); err != nil {
		t.Fatal(err)
	}
	service, plan := s.plan("maintenance")
	if _, err := s.broker.Delete(s.Context(), broker.DeleteRequest{Caller: s.caller(), InstanceID: "gone", ServiceID: service,
		PlanID: plan}); err != nil {
		t.Fatal(err)
	}
	s.stalled = true
	s.provision("half-made", "async-only")
	is := s.console.Catalog
	s.console.Catalog = func(service, plan string) (catalog.Offering, catalog.Plan, bool) {
		offering, p, ok := is(service, plan)
		switch p.Name {
		case "maintenance", "async-only":
			p.MaintenanceInfo = &catalog.MaintenanceInfo{Version: "3.0.0"}
		case "sync":
			p.Snapshot = json.RawMessage(`{"edited":true}`)
		case "retained":
			p.Snapshot = append([]byte(" "), p.Snapshot...)
		case "async":
			return offering, p, false
		}
		return offering, p, ok
	}
	var got []operator.Row
	for u, err := range paging.All(context.Background(), func(ctx context.Context, after string) ([]operator.Row, string, error) {
		return s.console.Upgrades(ctx, operator.Query{After: after, State: "ready", Offering: "demo"})
	}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, operator.Row{Instance: u.Instance, Plan: u.Plan, IsAt: u.IsAt, PlanIsAt: u.PlanIsAt, Edited: u.Edited})
	}
	want := []operator.Row{
		{Instance: "edited", Plan: "sync", Edited: true},
		{Instance: "behind", Plan: "maintenance", IsAt: "2.0.0", PlanIsAt: "3.0.0"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
