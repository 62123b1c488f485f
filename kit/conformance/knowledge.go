package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Knowledge is what the plans of a broker can do, according to the catalog and as learned by trying.
type Knowledge struct {
	plans    []*plan // the quick ones first
	services []*service
	// refused are the minor versions to which the broker answers 412.
	refused map[int]bool
	// unguarded says that the broker accepts requests without a password, and with a wrong one.
	unguarded bool
	// pages says that the broker itself answers unknown paths with a page in HTML, as many web frameworks do.
	pages bool
}

func (k *Knowledge) serves(minor int) bool { return !k.refused[minor] }

type service struct {
	id, name                                            string
	bindable, instancesRetrievable, bindingsRetrievable bool
	contextUpdates                                      bool
	needed                                              []string
	plans                                               []*plan
}

func (s *service) requires(permission string) bool { return slices.Contains(s.needed, permission) }

// A plan is one plan of the catalog. The fields from trouble on were learned by trying.
type plan struct {
	knowledge                       *Knowledge
	service                         *service
	id, name                        string
	bindable, updateable, rotatable bool
	maintenance                     string // its version
	schemas                         object
	parameters, bindParameters      object // parameters that requests need

	// trouble is the reason why trying taught nothing; refusal says that the broker refused the
	// request for what may be a legitimate reason.
	trouble string
	refusal bool

	works                         bool // it can be provisioned
	sync, async, asyncOnly, fails bool
	freeParameters                bool
	changes                       []object
	changeAsync, changeFails      bool
	deleteAsync                   bool
	binds                         bool
	bindSync, bindAsync           bool
	bindAsyncOnly, requiresApp    bool
	bindFreeParameters            bool
	credentials, facade           bool
	// noUpdates says that a well-formed update of an existing instance is answered as if the path were not served.
	noUpdates bool
}

// String returns the name of the plan with that of its service.
func (p *plan) String() string { return p.service.name + "/" + p.name }

// sibling returns another plan of the offering, preferably one that works, or nil.
func (p *plan) sibling() *plan {
	for _, works := range []bool{true, false} {
		for _, other := range p.service.plans {
			if other != p && (other.works && !other.fails || !works) {
				return other
			}
		}
	}
	return nil
}

// later returns a plan of the offering that is provisioned and updated only asynchronously, or nil.
func (p *plan) later() *plan {
	for _, other := range p.service.plans {
		if other != p && other.works && other.asyncOnly && other.changeAsync {
			return other
		}
	}
	return nil
}

// foreign returns a plan of another offering, or nil.
func (p *plan) foreign() *plan {
	for _, s := range p.knowledge.services {
		if s != p.service && len(s.plans) > 0 {
			return s.plans[0]
		}
	}
	return nil
}

func (k *Knowledge) usable() bool {
	return slices.ContainsFunc(k.plans, func(p *plan) bool { return p.works })
}

// unusable says why no plan works.
func (k *Knowledge) unusable() string {
	for _, p := range k.plans {
		if p.trouble != "" {
			return "no plan could be provisioned; " + p.String() + ": " + p.trouble
		}
	}
	return "no plan could be provisioned"
}

// hazards returns the dangerous behaviour of the broker that no case covers.
func (k *Knowledge) hazards(minor int) []Hazard {
	if !k.unguarded {
		return nil
	}
	for _, s := range guarded {
		if s.holds(minor) {
			return []Hazard{{Level: s.Level, Source: s.in(minor),
				Text: "the broker asks for no password, and takes any: whoever reaches it can order and delete, and read " +
					"credentials"}}
		}
	}
	return nil
}

// results returns a result for each plan that could not be tried.
func (k *Knowledge) results(r *runner) []Result {
	var out []Result
	for _, p := range k.plans {
		if p.trouble == "" || r.Known != nil {
			continue
		}
		result := Result{ID: "PLAN/" + p.String(), Section: "plans",
			Title: "the plan can be provisioned, bound and deleted", Level: Must,
			Since: OldestMinor,
			Plan:  p.String(), Outcome: Blocked, Reason: r.secrets.hide(p.trouble)}
		if p.refusal {
			result.Outcome = NotApplicable
		}
		out = append(out, result)
	}
	return out
}

// slowness orders the plans: the quick ones come first, and last those that cannot be provisioned,
// which serve only cases that need no instance.
func (p *plan) slowness() int {
	switch {
	case !p.works:
		return 2
	case p.sync:
		return 0
	default:
		return 1
	}
}

// read reads as much of a catalog as it can; the cases about the catalog report what is malformed.
func read(body object) *Knowledge {
	k := &Knowledge{}
	for _, v := range list(body["services"]) {
		s := &service{
			id: text(v, "id"), name: text(v, "name"), bindable: flag(v, "bindable", false),
			contextUpdates:       flag(v, "allow_context_updates", false),
			instancesRetrievable: flag(v, "instances_retrievable", false),
			bindingsRetrievable:  flag(v, "bindings_retrievable", false),
		}
		requires, _ := find(v, "requires")
		if items, ok := requires.([]any); ok {
			for _, item := range items {
				s.needed = append(s.needed, fmt.Sprint(item))
			}
		}
		plans, _ := find(v, "plans")
		for _, w := range list(plans) {
			p := &plan{
				knowledge: k, service: s, id: text(w, "id"), name: text(w, "name"),
				maintenance: text(w, "maintenance_info.version"), bindable: flag(w, "bindable", s.bindable),
				rotatable:  flag(w, "binding_rotatable", false),
				updateable: flag(w, "plan_updateable", flag(v, "plan_updateable", false)),
			}
			p.schemas, _ = w["schemas"].(object)
			if p.id != "" && s.id != "" {
				s.plans = append(s.plans, p)
				k.plans = append(k.plans, p)
			}
		}
		k.services = append(k.services, s)
	}
	return k
}

func list(v any) []object {
	var out []object
	items, _ := v.([]any)
	for _, item := range items {
		if o, ok := item.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

func text(o object, path string) string {
	v, _ := find(o, path)
	t, _ := v.(string)
	return t
}

func flag(o object, path string, otherwise bool) bool {
	v, _ := find(o, path)
	if b, ok := v.(bool); ok {
		return b
	}
	return otherwise
}

// listed lists the names of plans to choose from.
func listed(plans []*plan) string {
	var names []string
	for _, p := range plans {
		names = append(names, p.String())
	}
	if len(names) == 0 {
		return "none at all"
	}
	return strings.Join(names, ", ")
}
