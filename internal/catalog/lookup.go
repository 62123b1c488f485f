package catalog

import "slices"

// Offerings are all offerings, in the order in which they were compiled. It
// decodes each of them. The slice is the caller's; what its members point to is
// the catalog's and must not be changed.
func (c *Catalog) Offerings() []Offering {
	all := make([]Offering, len(c.decode))
	for i, decode := range c.decode {
		all[i] = decode()
	}
	return all
}

// File is a file that a provider has kept, by its digest. It must not be changed.
func (c *Catalog) File(digest string) (content []byte, found bool) {
	content, found = c.files[digest]
	return content, found
}

// Files are all files that providers have kept, by their digests. Neither the map nor what
// is in it may be changed.
func (c *Catalog) Files() map[string][]byte { return c.files }

// Names are those of a provider's offerings. It decodes none.
func (c *Catalog) Names(provider string) (names []string) {
	for _, e := range c.entries {
		if e.Provider == provider {
			names = append(names, e.Name)
		}
	}
	return names
}

// Without is the catalog without the offerings of some providers.
func (c *Catalog) Without(providers []string) *Catalog {
	if len(providers) == 0 {
		return c
	}
	less := &Catalog{services: map[string]int{}, plans: map[string]int{}, files: c.files}
	for i, e := range c.entries {
		if !slices.Contains(providers, e.Provider) {
			less.add(e, c.decode[i])
		}
	}
	return less
}

// Offering finds an offering by its id. As with Offerings, what it points to
// must not be changed.
func (c *Catalog) Offering(id string) (Offering, bool) {
	i, ok := c.services[id]
	if !ok {
		return Offering{}, false
	}
	return c.decode[i](), true
}

// ServiceOf finds the offering that a plan is of: ids of plans are unique in a
// catalog.
func (c *Catalog) ServiceOf(planID string) (serviceID string, found bool) {
	i, ok := c.plans[planID]
	if !ok {
		return "", false
	}
	return c.entries[i].ID, true
}

// Plan finds a plan of an offering. A plan of another offering is not found:
// the two ids of a request must belong together (PROV-14). As with Offerings,
// what the results point to must not be changed.
func (c *Catalog) Plan(serviceID, planID string) (Offering, Plan, bool) {
	i, ok := c.plans[planID]
	if !ok || c.entries[i].ID != serviceID {
		return Offering{}, Plan{}, false
	}
	o := c.decode[i]()
	for _, p := range o.Plans {
		if p.ID == planID {
			return o, p, true
		}
	}
	return Offering{}, Plan{}, false
}

// PlanBindable reports whether instances of the plan can be bound: the plan's
// own word, else the offering's (CAT-15).
func (o Offering) PlanBindable(p Plan) bool {
	if p.Bindable != nil {
		return *p.Bindable
	}
	return o.Bindable
}

// PlanIsUpdateable reports whether instances may leave the plan for another:
// the plan's own word, else the offering's (CAT-13, CAT-14).
func (o Offering) PlanIsUpdateable(p Plan) bool {
	if p.PlanUpdateable != nil {
		return *p.PlanUpdateable
	}
	return o.PlanUpdateable
}
