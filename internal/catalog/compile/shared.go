package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// shared are the members of an offering that apply to its plans, unless a plan gives its own.
// Whether instances can be bound, and whether they may change their plan, are not among them:
// the catalog endpoint has these members for an offering itself, and platforms look there.
var shared = []string{
	"free", "binding_rotatable", "maximum_polling_duration", "typical_duration", "asynchronous", "asynchronous_binding",
	"restore_parameter", "requires_app", "settings", "maintenance_info", "schemas",
}

// share gives each plan the members that the offering has for all plans. To a schema, 3600.0 is an integer; a deadline
// written like that would be lost without a word, so it is a problem.
func (d *draft) share(v any) {
	offering, _ := v.(map[string]any)
	plans, _ := offering["plans"].([]any)
	for i, p := range plans {
		plan, ok := p.(map[string]any)
		if !ok {
			continue // the problem is noted already
		}
		for _, name := range shared {
			of, common := offering[name]
			own, said := plan[name]
			switch {
			case common && said:
				plan[name] = patched(of, own)
			case common:
				plan[name] = of
			}
		}
		for _, name := range []string{"maximum_polling_duration", "typical_duration"} {
			at := fmt.Sprintf("/plans/%d/%s", i, name)
			n, given := plan[name].(json.Number)
			if _, err := n.Int64(); given && err != nil && !d.bad[d.stands(at)] {
				d.about(at, "has a fraction or an exponent", "write whole seconds in digits alone, such as 3600")
			}
		}
	}
}

// patched merges a plan's own member into the offering's, as a JSON Merge Patch (RFC 7396).
// Mappings are merged member by member, and null removes a member.
func patched(of, own any) any {
	patch, ok := own.(map[string]any)
	if !ok {
		return own
	}
	target, _ := of.(map[string]any)
	target = maps.Clone(target)
	if target == nil {
		target = map[string]any{}
	}
	for name, v := range patch {
		if was, there := target[name]; v == nil && there {
			delete(target, name)
		} else {
			target[name] = patched(was, v)
		}
	}
	return target
}

// stands returns the pointer to the place in the file: a member that a plan takes from its
// offering is found at the offering.
func (d *draft) stands(at string) string {
	_, below, _ := strings.Cut(strings.TrimPrefix(at, "/plans/"), "/")
	member, _, _ := strings.Cut(below, "/")
	if !strings.HasPrefix(at, "/plans/") || !slices.Contains(shared, member) {
		return at
	}
	for end := len(below); end > 0; end = strings.LastIndexByte(below[:end], '/') {
		if d.places[at[:len(at)-len(below)+end]].value != nil {
			return at
		}
		if d.places["/"+below[:end]].value != nil {
			return "/" + below
		}
	}
	return at
}
