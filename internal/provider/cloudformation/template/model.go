package template

import (
	"strings"

	"github.com/longshore/longshore/internal/base/sorted"
)

// A mapping is an object of JSON or YAML.
type mapping = map[string]any

// items returns the items of a list. Any other value counts as a list of one, and nil as an empty
// list.
func items(v any) []any {
	list, is := v.([]any)
	if v != nil && !is {
		return []any{v}
	}
	return list
}

// A model is a template in the form in which this package reads it. load has refused forms that
// CloudFormation does not have.
type model struct {
	*document
	root       mapping
	declared   map[string]parameter // the template's parameters
	resources  map[string]resource
	conditions mapping
	mappings   mapping
	outputs    map[string]mapping
}

type parameter struct {
	kind     string // its Type
	fallback any    // its Default, nil for none
	secret   bool
	members  mapping
}

type resource struct {
	kind       string // its Type
	condition  string
	properties mapping
	members    mapping
}

// sections lists the sections that an offering's template may have.
var sections = []string{"AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Mappings", "Conditions",
	"Resources",
	"Outputs"}

// section returns a section of a template as objects by their names.
func (c *checker) section(name string) map[string]mapping {
	members, ok := c.root[name].(mapping)
	if c.root[name] != nil && !ok {
		c.wrong(slot(name), name+" is no mapping", "write NAME: and below it what it is")
	}
	all := make(map[string]mapping, len(members))
	for member, v := range sorted.Map(members) {
		object, ok := v.(mapping)
		if !ok {
			c.wrong(slot(name)+slot(member), member+" is no mapping", "write its members below it")
			continue
		}
		all[member] = object
	}
	return all
}

// load reads a template's sections.
func (c *checker) load(d *document) {
	c.model = &model{document: d, declared: map[string]parameter{}, resources: map[string]resource{}}
	var ok bool
	if c.root, ok = d.value.(mapping); !ok {
		c.wrong("", "the template is no mapping", "write Resources: and below it what an instance is made of")
	}
	for name, object := range c.section("Parameters") {
		p := parameter{fallback: object["Default"], members: object}
		p.kind, _ = object["Type"].(string)
		echo, plain := scalarText(object["NoEcho"])
		p.secret = strings.EqualFold(echo, "true") // CloudFormation ignores case here
		if object["NoEcho"] != nil && (!plain || !p.secret && !strings.EqualFold(echo, "false")) {
			c.wrong("/Parameters"+slot(name)+"/NoEcho", "NoEcho of "+name+" is neither true nor false",
				"write true, or leave it out")
		}
		c.declared[name] = p
	}
	for name, object := range c.section("Resources") {
		r := resource{members: object}
		r.kind, _ = object["Type"].(string)
		r.condition, _ = object["Condition"].(string)
		r.properties, ok = object["Properties"].(mapping)
		if object["Properties"] != nil && !ok {
			c.wrong("/Resources"+slot(name)+"/Properties", "the properties of "+name+" are no mapping",
				"write each as NAME: VALUE")
		}
		c.resources[name] = r
	}
	c.conditions, _ = c.root["Conditions"].(mapping)
	c.mappings, _ = c.root["Mappings"].(mapping)
	c.outputs = c.section("Outputs")
}

// walk visits a value and every value in it, each with its pointer: outer values before inner ones,
// in a fixed order.
func walk(v any, at string, visit func(at string, v any)) {
	visit(at, v)
	switch v := v.(type) {
	case mapping:
		for name, member := range sorted.Map(v) {
			walk(member, at+slot(name), visit)
		}
	case []any:
		for i, item := range v {
			walk(item, nth(at, i), visit)
		}
	}
}

// call reads an intrinsic function: an object with a single member whose name is Ref or Condition,
// or begins with Fn::.
func call(v any) (name string, argument any, ok bool) {
	object, isObject := v.(mapping)
	if !isObject || len(object) != 1 {
		return "", nil, false
	}
	for name, argument = range object {
	}
	return name, argument, name == "Ref" || name == "Condition" || strings.HasPrefix(name, "Fn::")
}

// placeholders returns the names in ${...} in a text of Fn::Sub, and the pieces of text around
// them, which are one more.
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
func substitution(argument any) (text string, own mapping) {
	switch a := argument.(type) {
	case string:
		return a, nil
	case []any:
		if len(a) == 2 {
			text, _ = a[0].(string)
			own, _ = a[1].(mapping)
		}
	}
	return text, own
}
