package template

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A model is a template as this package reads it. Whatever is of another form than
// CloudFormation's has been refused.
type model struct {
	*document
	parameters map[string]parameter
	resources  map[string]resource
	conditions map[string]any
	mappings   map[string]any
	outputs    map[string]map[string]any
}

type parameter struct {
	kind     string // its Type
	fallback any    // its Default, nil for none
	secret   bool
	members  map[string]any
}

type resource struct {
	kind       string // its Type
	condition  string
	properties map[string]any
	members    map[string]any
}

// sections of templates that are read, and those that are left alone.
var sections = []string{"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Mappings", "Conditions",
	"Resources",
	"Outputs"}

// section gives a part of a template as objects by their names.
func (m *model) section(name string, problem func(at, what, mend string)) map[string]map[string]any {
	root, _ := m.value.(map[string]any)
	members, ok := root[name].(map[string]any)
	if root[name] != nil && !ok {
		problem(slot(name), name+" is no mapping", "write NAME: and below it what it is")
	}
	all := make(map[string]map[string]any, len(members))
	for _, member := range slices.Sorted(maps.Keys(members)) {
		object, ok := members[member].(map[string]any)
		if !ok {
			problem(slot(name)+slot(member), member+" is no mapping", "write its members below it")
			continue
		}
		all[member] = object
	}
	return all
}

// newModel reads a template's sections.
func newModel(d *document, problem func(at, what, mend string)) *model {
	m := &model{document: d, parameters: map[string]parameter{}, resources: map[string]resource{}}
	root, ok := d.value.(map[string]any)
	if !ok {
		problem("", "the template is no mapping", "write Resources: and below it what an instance is made of")
	}
	for name, object := range m.section("Parameters", problem) {
		p := parameter{fallback: object["Default"], members: object}
		p.kind, _ = object["Type"].(string)
		echo, plain := scalarText(object["NoEcho"])
		p.secret = strings.EqualFold(echo, "true") // as CloudFormation reads it
		if object["NoEcho"] != nil && (!plain || !p.secret && !strings.EqualFold(echo, "false")) {
			problem("/Parameters"+slot(name)+"/NoEcho", "NoEcho of "+name+" is neither true nor false",
				"write true, or leave it out")
		}
		m.parameters[name] = p
	}
	for name, object := range m.section("Resources", problem) {
		r := resource{members: object}
		r.kind, _ = object["Type"].(string)
		r.condition, _ = object["Condition"].(string)
		r.properties, ok = object["Properties"].(map[string]any)
		if object["Properties"] != nil && !ok {
			problem("/Resources"+slot(name)+"/Properties", "the properties of "+name+" are no mapping",
				"write each as NAME: VALUE")
		}
		m.resources[name] = r
	}
	m.conditions, _ = root["Conditions"].(map[string]any)
	m.mappings, _ = root["Mappings"].(map[string]any)
	m.outputs = m.section("Outputs", problem)
	return m
}

// walk visits every value below one, each with its pointer, the outer before the
// inner, in an order that stays.
func walk(v any, at string, visit func(at string, v any)) {
	visit(at, v)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], at+slot(name), visit)
		}
	case []any:
		for i, item := range v {
			walk(item, at+"/"+strconv.Itoa(i), visit)
		}
	}
}

// call reads an intrinsic function: an object with one member whose name is Ref,
// Condition or begins with Fn::.
func call(v any) (name string, argument any, ok bool) {
	object, isObject := v.(map[string]any)
	if !isObject || len(object) != 1 {
		return "", nil, false
	}
	for name, argument = range object {
	}
	return name, argument, name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::")
}

// placeholders gives the names in ${...} of a text of Fn::Sub, and the text around
// them: one piece more than names.
func placeholders(text string) (names, pieces []string) {
	piece := ""
	for {
		before, rest, found := strings.Cut(text, "${")
		name, after, closed := strings.Cut(rest, "}")
		switch {
		case !found || !closed:
			return names, append(pieces, piece+text)
		case strings.HasPrefix(name, "!"): // ${!Literal} stands for ${Literal}
			piece += before + "${" + name[1:] + "}"
		default:
			names, pieces, piece = append(names, strings.TrimSpace(name)), append(pieces, piece+before), ""
		}
		text = after
	}
}

// substitution reads the argument of Fn::Sub.
func substitution(argument any) (text string, own map[string]any) {
	switch a := argument.(type) {
	case string:
		return a, nil
	case []any:
		if len(a) == 2 {
			text, _ = a[0].(string)
			own, _ = a[1].(map[string]any)
		}
	}
	return text, own
}
