package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func chosen(given map[string]any, schema object) object {
	if given != nil {
		return normal(given).(object)
	}
	return sample(schema)
}

// schema returns a schema of the plan, or nil.
func (p *plan) schema(resource, action string) object {
	v, _ := find(p.schemas, resource+"."+action+".parameters")
	o, _ := v.(object)
	return o
}

// sample returns parameters for a schema: those that it requires, and no more.
func sample(schema object) object {
	out := object{}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(object)
	for _, v := range required {
		name, _ := v.(string)
		property, _ := properties[name].(object)
		if v, ok := sampleOf(property); ok {
			out[name] = v
		}
	}
	return out
}

func sampleOf(property object) (any, bool) {
	for _, known := range []string{"default", "const"} {
		if v, ok := property[known]; ok {
			return v, true
		}
	}
	if values, ok := property["enum"].([]any); ok && len(values) > 0 {
		return values[0], true
	}
	switch property["type"] {
	case "integer", "number":
		if v, ok := property["minimum"]; ok {
			return v, true
		}
		return 1, true
	case "boolean":
		return true, true
	case "array":
		return []any{}, true
	case "object":
		return sample(property), true
	case "string":
		n := 8
		if v, ok := property["maxLength"]; ok {
			_, _ = fmt.Sscan(fmt.Sprint(v), &n)
		}
		if v, ok := property["minLength"]; ok {
			var least int
			_, _ = fmt.Sscan(fmt.Sprint(v), &least)
			n = max(min(n, 8), least)
		}
		return strings.Repeat("x", min(n, 1000)), true
	}
	return nil, false
}

// wrong returns parameters that violate a schema of the plan, or nil.
func (p *plan) wrong(resource, action string) object {
	schema := p.schema(resource, action)
	if schema == nil {
		return nil
	}
	out := sample(schema)
	if schema["additionalProperties"] == false {
		out["longshore_unknown_parameter"] = true
		return out
	}
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, _ := properties[name].(object)
		switch property["type"] {
		case "integer", "number", "boolean", "array", "object":
			out[name] = "longshore-wrong-type"
			return out
		case "string":
			out[name] = 5
			return out
		}
	}
	return nil
}
