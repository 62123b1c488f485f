package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// A View is the part of the catalog that one platform may see. The nil View is
// all of it.
type View struct {
	plans map[planKey]bool
}

type planKey struct{ service, plan string }

// NewView shows what the names name: an offering with all of its plans, or one
// plan as offering/plan. The error tells which names are of nothing; the view
// holds the others.
func NewView(offerings []Offering, names []string) (*View, error) {
	v := &View{plans: map[planKey]bool{}}
	var unknown []string
	for _, name := range names {
		found := false
		for _, o := range offerings {
			for _, p := range o.Plans {
				if name == o.Name || name == o.Name+"/"+p.Name {
					v.plans[planKey{o.ID, p.ID}] = true
					found = true
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

// Shows reports whether a plan may be seen.
func (v *View) Shows(serviceID, planID string) bool {
	return v == nil || v.plans[planKey{serviceID, planID}]
}

// ShowsOffering reports whether any of an offering's plans may be seen.
func (v *View) ShowsOffering(serviceID string) bool {
	if v == nil {
		return true
	}
	for k := range v.plans {
		if k.service == serviceID {
			return true
		}
	}
	return false
}

// Of is what may be seen of the offerings, in their order.
func (v *View) Of(offerings []Offering) []Offering {
	if v == nil {
		return offerings
	}
	var out []Offering
	for _, o := range offerings {
		if !v.ShowsOffering(o.ID) {
			continue
		}
		o.Plans = slices.DeleteFunc(slices.Clone(o.Plans), func(p Plan) bool { return !v.Shows(o.ID, p.ID) })
		out = append(out, o)
	}
	return out
}
