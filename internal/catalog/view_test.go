package catalog_test

import (
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
)

func TestView(t *testing.T) {
	offerings := []catalog.Offering{
		{ID: "1", Name: "first", Plans: []catalog.Plan{{ID: "1a", Name: "a"}, {ID: "1b", Name: "b"}}},
		{ID: "2", Name: "second", Plans: []catalog.Plan{{ID: "2a", Name: "a"}}},
	}
	named := func(v *catalog.View) string {
		var names []string
		for _, o := range v.Of(offerings) {
			for _, p := range o.Plans {
				if !v.Shows(o.ID, p.ID) || !v.ShowsOffering(o.ID) {
					t.Errorf("%s/%s is listed, and not shown", o.Name, p.Name)
				}
				names = append(names, o.Name+"/"+p.Name)
			}
		}
		return strings.Join(names, " ")
	}
	cases := map[string]struct {
		reason  string
		names   []string
		want    string
		unknown string
	}{
		"Offering": {"an offering is all of its plans", []string{"first"}, "first/a first/b", ""},
		"Plan":     {"a plan is itself", []string{"first/b"}, "first/b", ""},
		"Both":     {"names add up", []string{"second/a", "first/a"}, "first/a second/a", ""},
		"Unknown": {"what is not there is said, and the rest holds", []string{"third", "first/c", "second"},
			"second/a", "third, first/c"},
		"Nothing": {"nothing is not everything", []string{"third"}, "", "third"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := catalog.NewView(offerings, tc.names)
			if got := named(v); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
			if (err != nil) != (tc.unknown != "") || err != nil && !strings.Contains(err.Error(), tc.unknown) {
				t.Errorf("%s: error %v, want one about %q", tc.reason, err, tc.unknown)
			}
		})
	}
	if got := named(nil); got != "first/a first/b second/a" {
		t.Errorf("without a view: %q", got)
	}
	if len(offerings[0].Plans) != 2 {
		t.Error("the catalog itself was changed")
	}
}
