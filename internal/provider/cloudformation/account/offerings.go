package account

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// Provider is the name by which offerings name this provider.
const Provider = "cloudformation"

// An Offering has the policies of one offering.
type Offering struct {
	Name string
	// Permissions are the permissions of CloudFormation for the plans; each is listed once.
	Permissions []iampolicy.Document
	// Policies are the policies of bindings, by plan.
	Policies []Policy
}

// A Policy is the policy of a plan's bindings.
type Policy struct {
	iampolicy.Document
	// Existing says that the broker does not make the resource: it may be anywhere in the account.
	Existing bool
}

// OfferingsOf returns the offerings of this provider in a compiled catalog.
func OfferingsOf(c *catalog.Catalog) ([]Offering, error) {
	var all []Offering
	for _, o := range c.Offerings() {
		if o.Provider != Provider {
			continue
		}
		one := Offering{Name: o.Name}
		seen := map[string]bool{}
		for _, p := range o.Plans {
			m, err := plan.Parse(p.Snapshot)
			if err == nil {
				err = one.add(c, m, seen)
			}
			if err != nil {
				return nil, fmt.Errorf("plan %s of offering %s: %w", p.Name, o.Name, err)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// add adds the policies of one plan. seen holds the permissions that were added before.
func (o *Offering) add(c *catalog.Catalog, m plan.Settings, seen map[string]bool) error {
	if m.Permissions != "" && !seen[m.Permissions] {
		seen[m.Permissions] = true
		raw, ok := c.File(m.Permissions)
		if !ok {
			return fmt.Errorf("the catalog has no permissions %s", m.Permissions)
		}
		d, err := iampolicy.Parse(raw)
		if err != nil {
			return err
		}
		o.Permissions = append(o.Permissions, d)
	}
	if len(m.Policy) > 0 {
		d, err := iampolicy.Parse(m.Policy)
		if err != nil {
			return err
		}
		o.Policies = append(o.Policies, Policy{Document: d, Existing: m.Existing != nil})
	}
	return nil
}

// permissions returns the statements of permissions.json with the broker's prefix filled in. They
// have no Sids: those of two plans, or of a plan and a guard, could be the same, and IAM takes each
// once in a policy.
func (o Offering) permissions(scope plan.Scope) (all []iampolicy.Statement) {
	for _, d := range o.Permissions {
		for _, s := range d.Statement {
			s.Sid = ""
			all = append(all, s.Map(prefixed(scope)))
		}
	}
	return all
}

// serviceRole returns the role that CloudFormation uses for an offering.
func serviceRole(scope plan.Scope, o Offering) (Resource, error) {
	return withPolicy(scope, "ServiceRole", "its service role", ServiceRights(scope, o), mapping{
		"Name": scope.ServiceRole(o.Name, Here.Region), "Description": "What CloudFormation does for instances of " + o.Name,
	})
}

// ServiceRights returns the rights of an offering's service role: its permissions, and the guards,
// which deny some of them.
func ServiceRights(scope plan.Scope, o Offering) []iampolicy.Statement {
	guards := readRights(scope)
	return slices.Concat(o.permissions(scope), guards.ServiceRole, guards.Both)
}

// boundary returns the policy that bounds the principals of an offering's bindings.
func boundary(scope plan.Scope, o Offering) (Resource, error) {
	all, err := Bounds(scope, o)
	if err != nil {
		return Resource{}, fmt.Errorf("its boundary: %w", err)
	}
	return withPolicy(scope, "Boundary", "its boundary", all, mapping{
		"Name": scope.Boundary(o.Name, Here.Region), "Description": "The most that bindings of " + o.Name + " may do",
	})
}

// Bounds returns the most that a binding of an offering may do: the actions of its plans' policies,
// on all resources that its service role can make. They allow no change of rights, and nothing on
// the broker's own resources.
func Bounds(scope plan.Scope, o Offering) ([]iampolicy.Statement, error) {
	reach, all := o.reach(scope), map[string]iampolicy.Statement{}
	for _, p := range o.Policies {
		for _, s := range p.Statement {
			if s.Effect != iampolicy.EffectAllow {
				continue
			}
			if s.Action == nil || s.Resource == nil {
				return nil, fmt.Errorf("a binding's policy has NotAction or NotResource: say what it may do")
			}
			s = s.Map(prefixed(scope))
			wide := s.Map(anything)
			condition := common(s.Condition, wide.Condition)
			for _, action := range s.Action {
				service, unnamed := serviceOf(action), plan.Unnamed(action)
				on := reach[service]
				if p.Existing || on == nil || unnamed {
					on = wide.Resource
				}
				// A boundary has a statement for each of these. The condition is one of them: it limits
				// resources without names by their tags, and by its target an action that makes another
				// service act. Actions without resources get statements of their own, so that no other
				// action is allowed on everything with them. Sprintf sorts the keys of the condition.
				to := fmt.Sprintf("%s\x00%v\x00%t", service, condition, unnamed)
				was := all[to]
				all[to] = iampolicy.Statement{Effect: iampolicy.EffectAllow, Action: append(was.Action, action),
					Resource: append(was.Resource, on...), Condition: condition}
			}
		}
	}
	var bounds []iampolicy.Statement
	for _, s := range sorted.Map(all) {
		s.Action, s.Resource = sorted.Set(s.Action), widest(s.Resource)
		bounds = append(bounds, s)
	}
	guards := readRights(scope)
	return slices.Concat(bounds, guards.Boundary, guards.Both), nil
}

// reach returns the resources on which an offering's service role may work, by service.
func (o Offering) reach(scope plan.Scope) map[string]iampolicy.Texts {
	reach := map[string]iampolicy.Texts{}
	for _, s := range o.permissions(scope) {
		if s.Effect != iampolicy.EffectAllow {
			continue
		}
		for _, action := range s.Action {
			service := serviceOf(action)
			for _, on := range s.Resource {
				if on != "*" { // the resource of actions that know no others
					reach[service] = append(reach[service], on)
				}
			}
		}
	}
	return reach
}

// common returns the part of a condition that holds for every instance. In wide, stars replace the
// texts of an instance: patterns take them, and tests without patterns are left out if they have any.
func common(asked, wide iampolicy.Condition) iampolicy.Condition {
	for operator, keys := range wide {
		lower := strings.ToLower(operator)
		if strings.Contains(lower, "not") || !strings.Contains(lower, "like") && !strings.Contains(lower, "arn") {
			maps.DeleteFunc(keys, func(key string, values iampolicy.Texts) bool {
				return !slices.Equal(values, asked[operator][key])
			})
		}
		if len(keys) == 0 {
			delete(wide, operator)
		}
	}
	return wide
}

// prefixed returns a function that fills in the prefix of the broker's names, in any space.
func prefixed(scope plan.Scope) func(string) string {
	return strings.NewReplacer("${"+plan.ValuePrefix+"}", scope.Prefix(), "${"+plan.ValueSpacePrefix+"}", scope.Stacks()).Replace
}

func serviceOf(action string) string {
	service, _, _ := strings.Cut(strings.ToLower(action), ":")
	return service
}

// anything puts stars in the place of an instance's own texts.
func anything(text string) string {
	for _, part := range strings.SplitAfter(text, "${")[1:] {
		name, _, ok := strings.Cut(part, "}")
		if ok && !strings.Contains(name, ":") {
			text = strings.ReplaceAll(text, "${"+name+"}", "*")
		}
	}
	return text
}

// widest leaves out patterns that others include.
func widest(patterns []string) iampolicy.Texts {
	all := sorted.Set(patterns)
	return slices.DeleteFunc(slices.Clone(all), func(narrow string) bool {
		return slices.ContainsFunc(all, func(wide string) bool { return wide != narrow && iampolicy.Like(narrow, wide) })
	})
}
