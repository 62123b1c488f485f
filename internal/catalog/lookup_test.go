package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/catalog"
)

func TestLookups(t *testing.T) {
	c, err := load(map[string]string{
		"a/offering.yaml": sound,
		"b/offering.yaml": "{id: offering-2, name: two, description: d, provider: demo, bindable: false, plans: [{id: plan-3, " +
			"name: small, " +
			"description: d}]}",
	})
	if err != nil {
		t.Fatal(err)
	}

	type found struct {
		Offering string
		Plan     string
		OK       bool
	}
	cases := map[string]struct {
		reason  string
		service string
		plan    string
		want    found
	}{
		"Found":          {"A plan of its offering is found.", "offering-1", "plan-2", found{"one", "large", true}},
		"OtherOffering":  {"PROV-14: a plan of another offering is not found.", "offering-2", "plan-2", found{}},
		"UnknownPlan":    {"PROV-14: neither is an unknown plan.", "offering-1", "plan-9", found{}},
		"UnknownService": {"PROV-14: nor a plan of an unknown offering.", "offering-9", "plan-1", found{}},
		"CaseMatters":    {"CAT-06: ids are compared as they are.", "offering-1", "Plan-1", found{}},
		"Swapped":        {"An id of one kind is none of the other.", "plan-1", "offering-1", found{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, p, ok := c.Plan(tc.service, tc.plan)
			if diff := cmp.Diff(tc.want, found{o.Name, p.Name, ok}); diff != "" {
				t.Errorf("%s\nPlan(%q, %q): -want +got:\n%s", tc.reason, tc.service, tc.plan, diff)
			}
		})
	}

	if o, ok := c.Offering("offering-2"); !ok || o.Name != "two" {
		t.Errorf("Offering(offering-2): want two, got %q, %t", o.Name, ok)
	}
	if _, ok := c.Offering("plan-1"); ok {
		t.Error("Offering(plan-1): want none")
	}

	offerings := c.Offerings()
	offerings[0].Name = "changed"
	if got := c.Offerings()[0].Name; got != "one" {
		t.Errorf("Offerings(): a caller's change must not reach the catalog, got %q", got)
	}
}

func TestPlanOverridesOffering(t *testing.T) {
	yes, no := true, false
	cases := map[string]struct {
		reason   string
		offering bool
		plan     *bool
		want     bool
	}{
		"Inherited":    {"CAT-13, CAT-15: a plan that says nothing is as its offering.", true, nil, true},
		"InheritedNot": {"Also where the offering says no.", false, nil, false},
		"SwitchedOff":  {"CAT-14, CAT-15: the plan's no overrides.", true, &no, false},
		"SwitchedOn":   {"CAT-14, CAT-15: so does its yes.", false, &yes, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := catalog.Offering{Bindable: tc.offering, PlanUpdateable: tc.offering}
			if got := o.PlanBindable(catalog.Plan{Bindable: tc.plan}); got != tc.want {
				t.Errorf("%s\nPlanBindable(...): want %t, got %t", tc.reason, tc.want, got)
			}
			if got := o.PlanIsUpdateable(catalog.Plan{PlanUpdateable: tc.plan}); got != tc.want {
				t.Errorf("%s\nPlanIsUpdateable(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
