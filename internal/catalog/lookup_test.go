package catalog_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// The tests of the catalog and of its compiler share these.
const sound = catalogtest.Sound

var spoil, load = catalogtest.Spoil, catalogtest.Load

func TestLookups(t *testing.T) {
	c := expect.Get(load(map[string]string{"a/offering.yaml": sound, "b/offering.yaml": "{id: offering-2, name: two, " +
		"description: d, provider: demo, bindable: false, plans: [{id: plan-3, name: small, description: d}]}"}))(t)
	type found struct {
		Offering, Plan string
		OK             bool
	}
	for _, tc := range []struct {
		reason, service, plan string
		want                  found
	}{
		{"A plan of its offering is found.", "offering-1", "plan-2", found{"one", "large", true}},
		{"PROV-14: a plan of another offering is not found.", "offering-2", "plan-2", found{}},
		{"PROV-14: neither is an unknown plan.", "offering-1", "plan-9", found{}},
		{"PROV-14: nor a plan of an unknown offering.", "offering-9", "plan-1", found{}},
		{"CAT-06: ids are compared as they are.", "offering-1", "Plan-1", found{}},
		{"An id of one kind is none of the other.", "plan-1", "offering-1", found{}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			o, p, ok := c.Plan(tc.service, tc.plan)
			expect.Same(t, tc.reason, tc.want, found{o.Name, p.Name, ok})
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
	expect.Same(t, "Offerings(): a caller's change must not reach the catalog", "one", c.Offerings()[0].Name)
}

func TestPlanOverridesOffering(t *testing.T) {
	yes, no := true, false
	for _, tc := range []struct {
		reason   string
		offering bool
		plan     *bool
		want     bool
	}{
		{"CAT-13, CAT-15: a plan that says nothing is as its offering.", true, nil, true},
		{"Also where the offering says no.", false, nil, false},
		{"CAT-14, CAT-15: the plan's no overrides.", true, &no, false},
		{"CAT-14, CAT-15: so does its yes.", false, &yes, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			o := catalog.Offering{Bindable: tc.offering, PlanUpdateable: tc.offering}
			expect.Same(t, tc.reason+"\nPlanBindable", tc.want, o.PlanBindable(catalog.Plan{Bindable: tc.plan}))
			expect.Same(t, tc.reason+"\nPlanIsUpdateable", tc.want, o.PlanIsUpdateable(catalog.Plan{PlanUpdateable: tc.plan}))
		})
	}
}

// A compiled catalog of another version, or damaged, is refused whole; the same offerings give the same bytes.
func TestOpen(t *testing.T) {
	c := expect.Get(load(map[string]string{"a/offering.yaml": sound}))(t)
	compiled := expect.Get(catalog.Encode(c.Offerings(), nil))(t)
	opened := expect.Get(catalog.Open(compiled))(t)
	if again, err := catalog.Encode(opened.Offerings(), nil); err != nil || !bytes.Equal(again, compiled) {
		t.Errorf("it changes when it is read and written: %v\n%s\n%s", err, compiled, again)
	}
	for about, damaged := range map[string][]byte{
		"version": bytes.Replace(compiled, []byte("catalog 1"), []byte("catalog 2"), 1),
		"damaged": bytes.Replace(compiled, []byte("The small one"), []byte("The smell one"), 1),
	} {
		if _, err := catalog.Open(damaged); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("want an error about %q, got %v", about, err)
		}
	}
	if _, err := catalog.Open(compiled[:len(compiled)-1]); err == nil {
		t.Error("a catalog that was cut off is opened")
	}
}

func TestView(t *testing.T) {
	offerings := []catalog.Offering{
		{ID: "1", Name: "first", Plans: []catalog.Plan{{ID: "1a", Name: "a"}, {ID: "1b", Name: "b"}}},
		{ID: "2", Name: "second", Plans: []catalog.Plan{{ID: "2a", Name: "a"}}},
	}
	named := func(v catalog.View) string {
		var names []string
		for _, o := range v.Of(offerings) {
			for _, p := range o.Plans {
				if !v.Shows(p.ID) || !v.Shows(o.ID) {
					t.Errorf("%s/%s is listed, and not shown", o.Name, p.Name)
				}
				names = append(names, o.Name+"/"+p.Name)
			}
		}
		return strings.Join(names, " ")
	}
	for _, tc := range []struct {
		reason        string
		names         []string
		want, unknown string
	}{
		{"an offering is all of its plans", []string{"first"}, "first/a first/b", ""},
		{"a plan is itself", []string{"first/b"}, "first/b", ""},
		{"names add up", []string{"second/a", "first/a"}, "first/a second/a", ""},
		{"what is not there is said, and the rest holds", []string{"third", "first/c", "second"}, "second/a", "third, first/c"},
		{"nothing is not everything", []string{"third"}, "", "third"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			v, err := catalog.NewView(offerings, tc.names)
			expect.Same(t, tc.reason, tc.want, named(v))
			if (err != nil) != (tc.unknown != "") || err != nil && !strings.Contains(err.Error(), tc.unknown) {
				t.Errorf("%s: error %v, want one about %q", tc.reason, err, tc.unknown)
			}
		})
	}
	expect.Same(t, "without a view", "first/a first/b second/a", named(nil))
	expect.Same(t, "plans of the catalog itself", 2, len(offerings[0].Plans))
}
