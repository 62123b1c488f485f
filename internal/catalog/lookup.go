package catalog

import "slices"

// Offerings returns all offerings, in the order in which they were compiled. It decodes each of
// them. The slice belongs to the caller; the values that its members point to belong to the
// catalog and must not be changed.
func (c *Catalog) Offerings() []Offering {
	all := make([]Offering, len(c.entries))
	for i, e := range c.entries {
		all[i] = e.offering()
	}
	return all
}

// File returns a file that a provider has kept, by its digest. The content must not be changed.
func (c *Catalog) File(digest string) (content []byte, found bool) {
	content, found = c.files[digest]
	return content, found
}

// Files returns all kept files. Neither the map nor a file may be changed.
func (c *Catalog) Files() map[string][]byte { return c.files }

// Names returns the names of a provider's offerings. It decodes no offering.
func (c *Catalog) Names(provider string) (names []string) {
	for _, e := range c.entries {
		if e.Provider == provider {
			names = append(names, e.Name)
		}
	}
	return names
}

// Without returns the catalog without the offerings of some providers.
func (c *Catalog) Without(providers []string) *Catalog {
	less := newCatalog(c.files)
	for _, e := range c.entries {
		if !slices.Contains(providers, e.Provider) {
			less.add(e)
		}
	}
	return less
}

// Offering finds an offering by its id. As with Offerings, the values that it points to must not be changed.
func (c *Catalog) Offering(id string) (Offering, bool) {
	e, found := c.services[id]
	if !found {
		return Offering{}, false
	}
	return e.offering(), true
}

// ServiceOf finds the id of a plan's offering; ids of plans are unique in a catalog.
func (c *Catalog) ServiceOf(planID string) (serviceID string, found bool) {
	e, found := c.plans[planID]
	if !found {
		return "", false
	}
	return e.ID, true
}

// Plan finds a plan of an offering. A plan of another offering is not found: the two ids of a request must
// belong together (PROV-14). As with Offerings, the values that the results point to must not be changed.
func (c *Catalog) Plan(serviceID, planID string) (Offering, Plan, bool) {
	e, found := c.plans[planID]
	if !found || e.ID != serviceID {
		return Offering{}, Plan{}, false
	}
	o := e.offering()
	return o, o.Plans[slices.Index(e.Plans, planID)], true
}

// PlanBindable reports whether instances of the plan can be bound: the plan decides or, if it
// does not say, the offering (CAT-15).
func (o Offering) PlanBindable(p Plan) bool {
	return either(p.Bindable, o.Bindable)
}

// PlanIsUpdateable reports whether instances may leave the plan for another: the plan decides
// or, if it does not say, the offering (CAT-13, CAT-14).
func (o Offering) PlanIsUpdateable(p Plan) bool {
	return either(p.PlanUpdateable, o.PlanUpdateable)
}

func either(plan *bool, offering bool) bool {
	if plan != nil {
		return *plan
	}
	return offering
}
