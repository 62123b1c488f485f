package broker_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/broker"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// versioned is a catalog whose plans, by their ids, mean something that changes.
type versioned struct {
	broker.Catalog
	plans map[string]version
}

type version struct{ maintenance, snapshot string }

func (v versioned) Plan(service, plan string) (catalog.Offering, catalog.Plan, bool) {
	offering, found, ok := v.Catalog.Plan(service, plan)
	if is, there := v.plans[plan]; there {
		found.Snapshot, found.MaintenanceInfo = raw(is.snapshot), nil
		if is.maintenance != "" {
			found.MaintenanceInfo = &catalog.MaintenanceInfo{Version: is.maintenance}
		}
	}
	return offering, found, ok
}

// means has a plan mean something else from now on.
func (d *desk) means(plan string, is version) {
	if _, ok := d.Catalog.(versioned); !ok {
		d.Catalog = versioned{Catalog: d.Catalog, plans: map[string]version{}}
	}
	d.Catalog.(versioned).plans[d.ids[plan]] = is
}

// A patch of the instance i.
type patch struct{ plan, parameters, maintenance string }

func (d *desk) patch(p patch) error {
	q := broker.UpdateRequest{Caller: d.caller(false), InstanceID: "i", ServiceID: d.ids["demo"], PlanID: d.ids[p.plan],
		Parameters: raw(p.parameters)}
	if p.maintenance != "" {
		q.MaintenanceVersion = &p.maintenance
	}
	return expect.Err(d.Update(d.Context(), q))
}

const (
	oldPlan = `{"accepts":["a","b"],"fixed":["b"],"shape":"1","template":"old"}`
	newPlan = `{"accepts":["a","b","c"],"fixed":["b"],"shape":"1","template":"new"}`
	// A plan or version of another shape cannot be moved to.
	otherShape = `{"accepts":["a","b"],"shape":"2"}`
)

// UPD-11: what can only be done with another thing in the place of the one that holds the data is refused before
// anything is touched, and so is what the instance's own version of the plan does not know (ERR-08, ERR-10).
func TestUpdatesStayInPlace(t *testing.T) {
	same, next := version{"1.0.0", oldPlan}, version{"1.1.0", newPlan}
	edited, reshaped := version{"1.0.0", newPlan}, version{"2.0.0", otherShape}
	for name, tc := range map[string]struct {
		reason string
		patch  patch
		is     version // what the plan means by then
		says   string  // empty where it is done
		leaves string  // the template
	}{
		"AnotherValue":     {"what may change does", patch{parameters: `{"a":2}`}, next, "", "old"},
		"SameValue":        {"what is given again does not differ", patch{parameters: `{"a":2,"b":1.0}`}, next, "", "old"},
		"Fixed":            {"another value would replace data", patch{parameters: `{"b":2}`}, same, "parameter b", "old"},
		"FixedRemoved":     {"its default is another value, too", patch{parameters: `{"b":null}`}, same, "parameter b", "old"},
		"FixedAnyhow":      {"no upgrade helps", patch{parameters: `{"b":2}`, maintenance: "1.1.0"}, next, "parameter b", "old"},
		"NotKnownYet":      {"the user can help himself", patch{parameters: `{"c":1}`}, next, "maintenance_info.version 1.1.0", "old"},
		"WithTheUpdate":    {"the new version knows it", patch{parameters: `{"c":1}`, maintenance: "1.1.0"}, next, "", "new"},
		"NoUpgrade":        {"no version to upgrade to", patch{parameters: `{"c":1}`}, edited, "there is no upgrade", "old"},
		"NotThere":         {"what is not known is not there to be removed", patch{parameters: `{"c":null}`}, next, "", "old"},
		"Upgrade":          {"by its version alone", patch{maintenance: "1.1.0"}, next, "", "new"},
		"ShapeOfAVersion":  {"a version that would replace what holds data", patch{maintenance: "2.0.0"}, reshaped, "in place", "old"},
		"ShapeOfAPlan":     {"a plan that would", patch{plan: "async"}, same, "in place", "old"},
		"OtherPlan":        {"a plan of the same shape", patch{plan: "sync", parameters: `{"c":3}`}, same, "", "of sync"},
		"OtherPlanWithout": {"the plan does not know it", patch{plan: "sync", parameters: `{"d":3}`}, same, "parameter d", "old"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.means("maintenance", version{"1.0.0", oldPlan})
			d.means("async", version{"", otherShape})
			d.means("sync", version{"", strings.Replace(newPlan, "new", "of sync", 1)})
			expect.Get(d.put("maintenance", d.caller(false), `{"a":1,"b":1}`))(t)
			d.means("maintenance", tc.is)
			before := d.instance()
			err := d.patch(tc.patch)
			after := d.instance()
			if !strings.Contains(string(after.Attributes.Snapshot), `"template":"`+tc.leaves+`"`) {
				t.Errorf("%s: it means %s, want %q", tc.reason, after.Attributes.Snapshot, tc.leaves)
			}
			if tc.says == "" {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			refusal, _ := err.(*lifecycle.Refusal)
			if refusal == nil || refusal.Reason != lifecycle.Unprocessable || !strings.Contains(refusal.Message, tc.says) ||
				refusal.InstanceUsable == nil || !*refusal.InstanceUsable || refusal.UpdateRepeatable == nil || *refusal.UpdateRepeatable {
				t.Errorf("%s: %v, want it to say %q", tc.reason, err, tc.says)
			}
			expect.Same(t, "a refusal changed the record", before.Version, after.Version)
		})
	}
}

// An update of parameters keeps what the plan meant for the instance: an operator's
// edit of the plan comes with an upgrade, not with what a user happens to change.
func TestUpdatesKeepTheInstancesOwnVersion(t *testing.T) {
	d := newDesk(t)
	d.means("maintenance", version{"1.0.0", oldPlan})
	expect.Get(d.put("maintenance", d.caller(false), `{"a":1}`))(t)
	d.means("maintenance", version{"1.1.0", newPlan})
	for _, step := range []struct {
		patch patch
		want  version
	}{
		{patch{parameters: `{"a":2}`}, version{"1.0.0", oldPlan}},
		{patch{maintenance: "1.1.0"}, version{"1.1.0", newPlan}},
		{patch{parameters: `{"c":2}`}, version{"1.1.0", newPlan}},
		{patch{plan: "sync"}, version{"", ""}},
	} {
		if step.patch.plan != "" {
			d.means(step.patch.plan, step.want)
		}
		expect.OK(t, d.patch(step.patch), step.patch)
		if a := d.instance().Attributes; string(a.Snapshot) != step.want.snapshot || a.MaintenanceVersion != step.want.maintenance {
			t.Errorf("after %+v it is at %q and means %s", step.patch, a.MaintenanceVersion, a.Snapshot)
		}
	}
}

// An instance without a snapshot of its plan gets one with its next update.
func TestUpdatesOfWhatHasNoSnapshot(t *testing.T) {
	d := newDesk(t)
	d.means("maintenance", version{"1.0.0", ""})
	expect.Get(d.put("maintenance", d.caller(false), `{"b":1}`))(t)
	d.means("maintenance", version{"1.0.0", oldPlan})
	expect.OK(t, d.patch(patch{parameters: `{"a":2}`}))
	expect.Same(t, "it means", oldPlan, string(d.instance().Attributes.Snapshot))
}

// A pending upgrade blocks nothing else.
func TestPendingUpgradesBlockNoBinding(t *testing.T) {
	d := newDesk(t)
	d.means("maintenance", version{"1.0.0", oldPlan})
	expect.Get(d.put("maintenance", d.caller(false), ""))(t)
	d.means("maintenance", version{"2.0.0", otherShape})
	d.gives(broker.Created, "bind")(d.bind("i", "b", "maintenance", d.caller(false)))
	d.gives(broker.Done, "unbind")(d.unbind("b", d.caller(false)))
	d.gives(broker.Done, "deprovision")(d.delete(d.caller(false)))
}
