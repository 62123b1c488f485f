package broker_test

import (
	"testing"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
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
	expect.OK(t, err)
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
	expect.OK(t, err)
	other, err := d.Binding(t.Context(), d.of("b", false), "i", "b")
	if err != nil || other.Grant.Credentials["password"] == one.Grant.Credentials["password"] {
		t.Errorf("two platforms share credentials: %v", err)
	}
	// A deletion by one platform leaves the other's instance alone.
	expect.Get(d.delete(d.of("a", true)))(t)
	if _, err := d.Instance(t.Context(), d.of("b", false), "i"); err != nil {
		t.Errorf("it is gone for the other: %v", err)
	}
	// Nor is anything told of a third.
	nobody := d.of("c", true)
	refused(t, lifecycle.NotFound, expect.Err(d.Instance(t.Context(), nobody, "i")), "an instance is shown")
	refused(t, lifecycle.NotFound, expect.Err(d.Operation(t.Context(), nobody, second.Token.String())),
		"FAC-12: an operation is shown")
	if _, _, err := d.Cancel(t.Context(), nobody, second.Token.String()); reason(err) != lifecycle.NotFound {
		t.Errorf("FAC-12: an operation is cancelled: %v", err)
	}
	refused(t, lifecycle.Gone, expect.Err(d.delete(nobody)), "a deletion reached another's")
	if _, err := d.Instance(t.Context(), d.of("b", false), "i"); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// A platform can order nothing that it may not see, but keeps what it ordered before.
func TestAViewLimitsWhatCanBegin(t *testing.T) {
	d := newDesk(t)
	offered := d.Broker.Catalog.(*catalog.Catalog).Offerings()
	view, err := catalog.NewView(offered, []string{"demo/async", "demo/sync"})
	expect.OK(t, err)
	seeing := func(permitted bool) broker.Caller {
		c := d.caller(permitted)
		c.View = view
		return c
	}
	refused(t, lifecycle.BadRequest, expect.Err(d.put("maintenance", seeing(true), "")),
		"a plan that is not seen was provisioned")
	hidden := broker.ProvisionRequest{
		Caller: seeing(true), InstanceID: "i", ServiceID: d.ids["demo-other"], PlanID: d.ids["default"], OrganizationGUID: "o", SpaceGUID: "s",
	}
	refused(t, lifecycle.BadRequest, expect.Err(d.Provision(t.Context(), hidden)),
		"an offering that is not seen was provisioned")
	// It had this one before its view was narrowed.
	expect.Get(d.put("maintenance", d.caller(false), ""))(t)
	if _, err := d.bind("i", "b", "maintenance", seeing(false)); err != nil {
		t.Errorf("CAT-28: a bind is refused: %v", err)
	}
	if again, err := d.put("maintenance", seeing(false), ""); err != nil || again.Effect != broker.Done {
		t.Errorf("CAT-28: the same request is refused: %v", err)
	}
	update := broker.UpdateRequest{Caller: seeing(true), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids["rotatable"]}
	refused(t, lifecycle.BadRequest, expect.Err(d.Update(t.Context(), update)), "an update to a plan that is not seen")
	update.PlanID, update.Parameters = "", []byte(`{"delay_seconds":1}`)
	if _, err := d.Update(t.Context(), update); err != nil {
		t.Errorf("CAT-28: an update is refused: %v", err)
	}
	if _, err := d.delete(seeing(true)); err != nil {
		t.Errorf("CAT-28: a deletion is refused: %v", err)
	}
}
