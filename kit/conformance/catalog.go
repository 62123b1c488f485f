package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// typed wants members that are present to have a JSON type. A null counts as absent here, since
// CAT-27 is about nulls.
func typed(jsonType string, names ...string) func(o object) string {
	return func(o object) string {
		for _, name := range names {
			if v, _ := find(o, name); v != nil && typeOf(v) != jsonType {
				return name + " to be of type " + jsonType
			}
		}
		return ""
	}
}

// texts wants members to be present, and strings that are not empty.
func texts(names ...string) func(o object) string {
	return func(o object) string {
		for _, name := range names {
			if v, _ := o[name].(string); v == "" {
				return name + " to be a text that is not empty"
			}
		}
		return ""
	}
}

// unique wants the values that pick returns for a catalog to differ.
func unique(what string, pick func(services []object) []string) test {
	return func(_ *scene, a response) (string, string) {
		values := pick(list(a.body["services"]))
		slices.Sort(values)
		for n := 1; n < len(values); n++ {
			if values[n] == values[n-1] {
				return what + " to be unique", fmt.Sprintf("%.100q twice", values[n])
			}
		}
		return "", ""
	}
}

var (
	friendly = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)
	semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
		`(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
)

const (
	maxName   = 255
	maxSchema = 64 << 10
	maxTags   = 2048
)

// schemas returns all schemas of a plan, by their paths.
func schemas(plan object) map[string]any {
	out := map[string]any{}
	for _, path := range []string{"service_instance.create", "service_instance.update", "service_binding.create"} {
		if v, ok := find(plan, "schemas."+path); ok {
			out[path] = v
		}
	}
	return out
}

// references returns an external $ref; empty if there is none.
func references(v any) string {
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			return ref
		}
		for _, member := range v {
			if ref := references(member); ref != "" {
				return ref
			}
		}
	case []any:
		for _, item := range v {
			if ref := references(item); ref != "" {
				return ref
			}
		}
	}
	return ""
}

// nothing returns the path of a null; empty if there is none.
func nothing(v any, path string) string {
	switch v := v.(type) {
	case nil:
		return path
	case object:
		for name, member := range v {
			if name == "parameters" || name == "metadata" { // nulls in these are the owner's business
				continue
			}
			if at := nothing(member, path+"."+name); at != "" {
				return at
			}
		}
	case []any:
		for n, item := range v {
			if at := nothing(item, fmt.Sprintf("%s[%d]", path, n)); at != "" {
				return at
			}
		}
	}
	return ""
}

func planSchemas(o object) string {
	for path, v := range schemas(o) {
		action, ok := v.(object)
		if !ok {
			return "schemas." + path + " to be an object"
		}
		schema, ok := action["parameters"].(object)
		if _, there := action["parameters"]; there && !ok {
			return "schemas." + path + ".parameters to be an object"
		}
		if ok && text(schema, "$schema") == "" {
			return "schemas." + path + ".parameters to name its $schema"
		}
		if ref := references(schema); ref != "" {
			return "no external $ref in schemas." + path
		}
		if len(encode(v)) > maxSchema {
			return "schemas." + path + " to be at most 64 kB"
		}
	}
	return ""
}

func planMaintenance(o object) string {
	v := o["maintenance_info"]
	if v == nil {
		return ""
	}
	info, ok := v.(object)
	switch version := text(info, "version"); {
	case !ok:
		return "maintenance_info to be an object"
	case !semantic.MatchString(version):
		return "maintenance_info.version to be a semantic version"
	}
	return ""
}

func dashboardClient(o object) string {
	v := o["dashboard_client"]
	if v == nil {
		return ""
	}
	client, ok := v.(object)
	if !ok {
		return "dashboard_client to be an object"
	}
	return texts("id", "secret", "redirect_uri")(client)
}

func serviceTags(o object) string {
	v := o["tags"]
	if v == nil {
		return ""
	}
	tags, ok := v.([]any)
	if !ok {
		return "tags to be an array"
	}
	for _, tag := range tags {
		if typeOf(tag) != "string" {
			return "tags to be texts"
		}
	}
	return ""
}

func tagLengths(o object) string {
	length := 0
	tags, _ := o["tags"].([]any)
	for _, tag := range tags {
		text, _ := tag.(string)
		length += len(text)
	}
	if length > maxTags {
		return "tags of at most 2048 characters together"
	}
	return ""
}

func serviceRequires(o object) string {
	v := o["requires"]
	if v == nil {
		return ""
	}
	items, ok := v.([]any)
	if !ok {
		return "requires to be an array"
	}
	for _, item := range items {
		if item != "syslog_drain" && item != "route_forwarding" && item != "volume_mount" {
			return "requires to hold syslog_drain, route_forwarding and volume_mount only"
		}
	}
	return ""
}

func lengths(o object) string {
	for _, name := range []string{"name", "description"} {
		if utf8.RuneCountInString(text(o, name)) > maxName {
			return name + " of at most 255 characters"
		}
	}
	return ""
}
