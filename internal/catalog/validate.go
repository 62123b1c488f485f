package catalog

import (
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/spelling"
)

// choose is the remedy for a value outside a known set.
func choose(v string, known []string) string {
	if near := spelling.Nearest(v, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "choose one of: " + strings.Join(known, ", ")
}

// agree notes where a plan contradicts its offering or itself. What would
// have no effect is refused as well: the operator meant something by it. An
// offering that does not say whether it is bindable contradicts nothing.
func agree(offering Offering, said bool, plan Plan, o object) {
	if plan.AsynchronousBinding != Never && !offering.BindingsRetrievable {
		// CAT-18: a binding made asynchronously has its credentials fetched.
		o.problem("asynchronous_binding", fmt.Sprintf("is %s, but the offering's bindings cannot be fetched", plan.AsynchronousBinding),
			"set bindings_retrievable: true on the offering")
	}
	if most := plan.MaximumPollingDuration; most > 0 && plan.TypicalDuration > most {
		o.problem("typical_duration", "is longer than maximum_polling_duration, the deadline", "make it shorter, or the deadline longer")
	}
	if offering.PlanBindable(plan) || plan.Bindable == nil && !said {
		return
	}
	const remedy = "remove it, or set bindable: true on the plan"
	if plan.AsynchronousBinding != Never {
		o.problem("asynchronous_binding", "is set on a plan that is not bindable", remedy)
	}
	if plan.BindingRotatable != nil && *plan.BindingRotatable {
		o.problem("binding_rotatable", "is true on a plan that is not bindable", remedy)
	}
	if plan.RequiresApp {
		o.problem("requires_app", "is true on a plan that is not bindable", remedy)
	}
	if plan.Schemas != nil && plan.Schemas.ServiceBinding != nil {
		o.problem("schemas", "describes bindings on a plan that is not bindable", remedy)
	}
}

// A claim is the first use of something that must be unique.
type claim struct {
	file string
	line int
}

// duplicates notes every second use of what must be unique (CAT-04).
func duplicates(drafts []draft) []Problem {
	var problems []Problem
	claims := map[string]claim{}
	// The first parameter says within what the value is unique.
	unique := func(scope, kind, value, file string, line int, remedy string) {
		if value == "" {
			return // missing or wrong, which is noted already
		}
		key := scope + "\x00" + value
		if first, taken := claims[key]; taken {
			problems = append(problems, Problem{File: file, Line: line,
				What:   fmt.Sprintf("%s %q is used already (%s:%d)", kind, value, first.file, first.line),
				Remedy: remedy})
			return
		}
		claims[key] = claim{file, line}
	}
	const (
		newID   = "give each offering and each plan an id of its own, best a new UUID"
		newName = "choose another name"
	)
	for i, d := range drafts {
		o := d.offering
		unique("id", "offering id", o.ID, d.file, d.lines["id"], newID)
		unique("offering name", "offering name", o.Name, d.file, d.lines["name"], newName)
		if o.DashboardClient != nil {
			unique("client", "dashboard_client.id", o.DashboardClient.ID, d.file, d.lines["dashboard_client"],
				"register a client for each offering")
		}
		for j, p := range o.Plans {
			at := fmt.Sprintf("plans[%d]", j)
			unique("id", "plan id", p.ID, d.file, d.lines[at+".id"], newID)
			unique(fmt.Sprintf("plan name %d", i), "plan name", p.Name, d.file, d.lines[at+".name"], newName)
		}
	}
	return problems
}
