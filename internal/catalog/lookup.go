package catalog

import "slices"

// Offerings are all offerings, in the order in which they were loaded. The
// slice is the caller's; what its members point to is the catalog's and must
// not be changed.
func (c *Catalog) Offerings() []Offering { return slices.Clone(c.offerings) }

// Offering finds an offering by its id. As with Offerings, what it points to
// must not be changed.
func (c *Catalog) Offering(id string) (Offering, bool) {
	i, ok := c.services[id]
	if !ok {
		return Offering{}, false
	}
	return c.offerings[i], true
}

// ServiceOf finds the offering that a plan is of: ids of plans are unique in a
// catalog.
func (c *Catalog) ServiceOf(planID string) (serviceID string, found bool) {
	for _, o := range c.offerings {
		for _, p := range o.Plans {
			if p.ID == planID {
				return o.ID, true
			}
		}
	}
	return "", false
}

// Plan finds a plan of an offering. A plan of another offering is not found:
// the two ids of a request must belong together (PROV-14). As with Offerings,
// what the results point to must not be changed.
func (c *Catalog) Plan(serviceID, planID string) (Offering, Plan, bool) {
	at, ok := c.plan(serviceID, planID)
	if !ok {
		return Offering{}, Plan{}, false
	}
	o := c.offerings[at.offering]
	return o, o.Plans[at.plan], true
}

func (c *Catalog) plan(serviceID, planID string) (planAt, bool) {
	at, ok := c.plans[planID]
	if !ok || c.offerings[at.offering].ID != serviceID {
		return planAt{}, false
	}
	return at, true
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
