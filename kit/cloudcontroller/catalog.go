package cloudcontroller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// A Catalog is what a broker offers, as far as a platform uses it.
type Catalog struct {
	Services []Service `json:"services"`
}

// A Service is one offering.
type Service struct {
	ID                   string   `json:"id"`
	Name                 string   `json:"name"`
	Description          string   `json:"description"`
	Bindable             bool     `json:"bindable"`
	Requires             []string `json:"requires"`
	PlanUpdateable       bool     `json:"plan_updateable"`
	InstancesRetrievable bool     `json:"instances_retrievable"`
	BindingsRetrievable  bool     `json:"bindings_retrievable"`
	Plans                []Plan   `json:"plans"`
}

// A Plan is one plan of an offering.
type Plan struct {
	ID                     string `json:"id"`
	Name                   string `json:"name"`
	Description            string `json:"description"`
	Free                   *bool  `json:"free"` // nil means free
	Bindable               *bool  `json:"bindable"`
	PlanUpdateable         *bool  `json:"plan_updateable"`
	MaximumPollingDuration int    `json:"maximum_polling_duration"` // in seconds
	MaintenanceInfo        *struct {
		Version string `json:"version"`
	} `json:"maintenance_info"`
	Schemas struct {
		Instance struct {
			Create Schema `json:"create"`
		} `json:"service_instance"`
		Binding struct {
			Create Schema `json:"create"`
		} `json:"service_binding"`
	} `json:"schemas"`
}

// A Schema describes the parameters that are accepted.
type Schema struct {
	Parameters json.RawMessage `json:"parameters"`
}

// Required returns the names of the parameters that must be given.
func (s Schema) Required() []string {
	var schema struct {
		Required []string `json:"required"`
	}
	_ = json.Unmarshal(s.Parameters, &schema) // drafts up to 3 have no such list
	return schema.Required
}

// IsFree reports whether the plan costs nothing, which is the default.
func (p Plan) IsFree() bool { return p.Free == nil || *p.Free }

// CanBind reports whether instances of the plan can be bound.
func (s Service) CanBind(p Plan) bool {
	return either(p.Bindable, s.Bindable)
}

func (s Service) canChange(p Plan) bool { return either(p.PlanUpdateable, s.PlanUpdateable) }

func either(plan *bool, service bool) bool {
	if plan != nil {
		return *plan
	}
	return service
}

// Catalog fetches the catalog. It keeps the catalog only if it is valid (SIM-01).
func (c *Client) Catalog(ctx context.Context) (Catalog, error) {
	a := c.send(ctx, request{method: http.MethodGet, path: []string{"v2", "catalog"}})
	fetched, problem := readCatalog(a)
	if problem != "" {
		c.tell(a, "the broker cannot be registered")
		return Catalog{}, &Failure{Kind: "catalog", Status: a.status, Description: c.secrets.hide(problem),
			Then: "The broker is not registered."}
	}
	c.tell(a, "%s", offers(fetched))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catalog = &fetched
	return fetched, nil
}

func offers(c Catalog) string {
	plans := 0
	for _, s := range c.Services {
		plans += len(s.Plans)
	}
	return fmt.Sprintf("%d plans of %d services", plans, len(c.Services))
}

func readCatalog(a response) (_ Catalog, problem string) {
	var out Catalog
	switch {
	case a.fault != "":
		return out, "The broker does not answer: " + a.fault
	case a.status == http.StatusUnauthorized:
		return out, "The broker refuses the credentials (401)."
	case a.status != http.StatusOK:
		return out, a.failure("catalog", verdict{}).Description
	case json.Unmarshal(a.raw, &out) != nil:
		return out, "The catalog is not what it should be: a member is of the wrong type, or it is not JSON."
	}
	return out, out.valid()
}

// valid describes the first fault for which a platform would refuse the catalog: a required member
// is missing, or an id or a name is used twice (CAT-02 to CAT-04).
func (c Catalog) valid() (problem string) {
	var ids, names []string
	for _, s := range c.Services {
		if s.ID == "" || s.Name == "" || s.Description == "" || len(s.Plans) == 0 {
			return fmt.Sprintf("Service %q needs an id, a name, a description and a plan.", cmp.Or(s.Name, s.ID))
		}
		ids, names = append(ids, s.ID), append(names, s.Name)
		var plans []string
		for _, p := range s.Plans {
			if p.ID == "" || p.Name == "" || p.Description == "" {
				return fmt.Sprintf("Plan %q of service %q needs an id, a name and a description.", cmp.Or(p.Name, p.ID), s.Name)
			}
			ids, plans = append(ids, p.ID), append(plans, p.Name)
		}
		if twice(plans) {
			return fmt.Sprintf("Two plans of service %q have one name.", s.Name)
		}
	}
	if twice(ids) {
		return "Two services or plans have one id."
	}
	if twice(names) {
		return "Two services have one name."
	}
	return ""
}

func twice(texts []string) bool {
	sorted := slices.Sorted(slices.Values(texts))
	return len(slices.Compact(sorted)) < len(texts)
}

// plan finds a plan in the catalog as it was last fetched.
func (c *Client) plan(serviceID, planID string) (Service, Plan, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.catalog == nil {
		return Service{}, Plan{}, false
	}
	for _, s := range c.catalog.Services {
		for _, p := range s.Plans {
			if s.ID == serviceID && p.ID == planID {
				return s, p, true
			}
		}
	}
	return Service{}, Plan{}, false
}

// limit returns how long an operation on a plan is polled (POLL-05).
func (c *Client) limit(i Instance) time.Duration {
	out := cmp.Or(c.PollLimit, pollLimit)
	if _, p, ok := c.plan(i.ServiceID, i.PlanID); ok && p.MaximumPollingDuration > 0 {
		out = min(out, time.Duration(p.MaximumPollingDuration)*time.Second)
	}
	return out
}
