package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// A View is the part of the catalog that one platform may see. The nil View is the whole catalog.
// It holds the ids of offerings and plans, of which no two in a catalog are the same (CAT-04).
type View map[string]bool

// NewView returns a view of the named offerings and plans: a name is that of an offering, for
// all of its plans, or of one plan as offering/plan. The error tells which names the catalog
// does not have; the view holds the others.
func NewView(offerings []Offering, names []string) (View, error) {
	v := View{}
	var unknown []string
	for _, name := range names {
		found := false
		for _, o := range offerings {
			for _, p := range o.Plans {
				if name == o.Name || name == o.Name+"/"+p.Name {
					found, v[o.ID], v[p.ID] = true, true, true
				}
			}
		}
		if !found {
			unknown = append(unknown, name)
		}
	}
	if unknown != nil {
		return v, fmt.Errorf("the catalog has no %s: give names of offerings, or offering/plan", strings.Join(unknown, ", "))
	}
	return v, nil
}

// Shows reports whether the plan with an id may be seen, or any plan of the offering with that id.
func (v View) Shows(id string) bool { return v == nil || v[id] }

// Of returns the visible offerings with their visible plans, in order.
func (v View) Of(offerings []Offering) []Offering {
	if v == nil {
		return offerings
	}
	var out []Offering
	for _, o := range offerings {
		if !v.Shows(o.ID) {
			continue
		}
		o.Plans = slices.DeleteFunc(slices.Clone(o.Plans), func(p Plan) bool { return !v.Shows(p.ID) })
		out = append(out, o)
	}
	return out
}
