package compile

import (
	"maps"
	"slices"
	"strings"
)

// shared are the members of an offering that its plans take, unless they say otherwise.
// Whether instances can be bound, and may change their plan, is the offering's, too:
// the catalog endpoint knows these of an offering, and platforms look there.
var shared = []string{
	"free", "binding_rotatable", "maximum_polling_duration", "typical_duration", "asynchronous", "asynchronous_binding",
	"restore_parameter", "requires_app", "settings", "maintenance_info", "schemas",
}

// share gives each plan what stands at the offering for all of them.
func share(v any) {
	offering, _ := v.(map[string]any)
	plans, _ := offering["plans"].([]any)
	for _, p := range plans {
		plan, ok := p.(map[string]any)
		if !ok {
			continue // which is noted already
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
	}
}

// patched is what all plans have with what one of them says: a JSON Merge Patch (RFC
// 7396). Mappings are merged member by member, and null takes a member away.
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

// stands is where the file has what a pointer names: what a plan takes from its
// offering stands there.
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
