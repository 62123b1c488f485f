package broker_test

import (
	"testing"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
)

// of is a caller of another platform than the desk's.
func (d *desk) of(platform string, permitted bool) broker.Caller {
	c := d.caller(permitted)
	c.Platform = platform
	return c
}

// The same ids may exist on two platforms, and neither touches the other's.
func TestPlatformsAreApart(t *testing.T) {
	d := newDesk(t)
	first, err := d.put("async", d.of("a", true), "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := d.put("async", d.of("b", true), `{"delay_seconds":1}`)
	if err != nil || second.Effect != broker.Accepted || second.Token == first.Token {
		t.Fatalf("the same id on another platform: %+v %v", second, err)
	}
	d.settle(first.Token)
	d.settle(second.Token)
	for _, platform := range []string{"a", "b"} {
		if _, err := d.bind("i", "b", "async", d.of(platform, false)); err != nil {
			t.Errorf("BIND-19 is of one platform: %v", err)
		}
	}
	one, err := d.Binding(t.Context(), d.of("a", false), "i", "b")
	if err != nil {
		t.Fatal(err)
	}
	other, err := d.Binding(t.Context(), d.of("b", false), "i", "b")
	if err != nil || other.Grant.Credentials["password"] == one.Grant.Credentials["password"] {
		t.Errorf("two platforms share credentials: %v", err)
	}
	// A deletion by one platform leaves the other's instance alone.
	if _, err := d.delete(d.of("a", true)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Instance(t.Context(), d.of("b", false), "i"); err != nil {
		t.Errorf("it is gone for the other: %v", err)
	}
	// Nor is anything told of a third.
	nobody := d.of("c", true)
	if _, err := d.Instance(t.Context(), nobody, "i"); reason(err) != lifecycle.NotFound {
		t.Errorf("an instance is shown: %v", err)
	}
	if _, err := d.Operation(t.Context(), nobody, second.Token.String()); reason(err) != lifecycle.NotFound {
		t.Errorf("FAC-12: an operation is shown: %v", err)
	}
	if _, _, err := d.Cancel(t.Context(), nobody, second.Token.String()); reason(err) != lifecycle.NotFound {
		t.Errorf("FAC-12: an operation is cancelled: %v", err)
	}
	if _, err := d.delete(nobody); reason(err) != lifecycle.Gone {
		t.Errorf("a deletion reached another's: %v", err)
	}
	if _, err := d.Instance(t.Context(), d.of("b", false), "i"); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// A platform can order nothing that it may not see, but keeps what it ordered before.
func TestAViewLimitsWhatCanBegin(t *testing.T) {
	d := newDesk(t)
	offered := d.Broker.Catalog.(*catalog.Catalog).Offerings()
	view, err := catalog.NewView(offered, []string{"demo/async", "demo/sync"})
	if err != nil {
		t.Fatal(err)
	}
	seeing := func(permitted bool) broker.Caller {
		c := d.caller(permitted)
		c.View = view
		return c
	}
	if _, err := d.put("maintenance", seeing(true), ""); reason(err) != lifecycle.BadRequest {
		t.Errorf("a plan that is not seen was provisioned: %v", err)
	}
	hidden := broker.ProvisionRequest{
		Caller: seeing(true), InstanceID: "i", ServiceID: d.ids["demo-other"], PlanID: d.ids["default"], OrganizationGUID: "o", SpaceGUID: "s",
	}
	if _, err := d.Provision(t.Context(), hidden); reason(err) != lifecycle.BadRequest {
		t.Errorf("an offering that is not seen was provisioned: %v", err)
	}
	// It had this one before its view was narrowed.
	if _, err := d.put("maintenance", d.caller(false), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := d.bind("i", "b", "maintenance", seeing(false)); err != nil {
		t.Errorf("CAT-28: a bind is refused: %v", err)
	}
	if again, err := d.put("maintenance", seeing(false), ""); err != nil || again.Effect != broker.Done {
		t.Errorf("CAT-28: the same request is refused: %v", err)
	}
	update := broker.UpdateRequest{Caller: seeing(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["rotatable"]}
	if _, err := d.Update(t.Context(), update); reason(err) != lifecycle.BadRequest {
		t.Errorf("an update to a plan that is not seen: %v", err)
	}
	update.PlanID, update.Parameters = "", []byte(`{"delay_seconds":1}`)
	if _, err := d.Update(t.Context(), update); err != nil {
		t.Errorf("CAT-28: an update is refused: %v", err)
	}
	if _, err := d.delete(seeing(true)); err != nil {
		t.Errorf("CAT-28: a deletion is refused: %v", err)
	}
}
