package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/internal/spelling"
)

// Aliases can make a small file endless: these bound what one file may expand
// to.
const (
	maxNodes = 100_000 // values, all in all
	maxDepth = 100     // values within values
)

// A reader turns the YAML nodes of one file into values and notes each problem
// with its line. A value that has a problem is read as its zero value, and
// reading goes on, so that one run finds everything.
type reader struct {
	file      string
	providers []string            // the known ones
	schemas   map[string]*schema  // compiled so far, by their JSON
	broken    map[*yaml.Node]bool // schemas whose problems are noted
	problems  []Problem
	nodes     int // visited so far
	depth     int // of the value being read
}

func (r *reader) problem(line int, what, remedy string) {
	if r.nodes > maxNodes {
		return // what follows from giving up is no news
	}
	r.problems = append(r.problems, Problem{File: r.file, Line: line, What: what, Remedy: remedy})
}

// visit reports whether the reader may look at one more node. Once it may
// not, the file is given up.
func (r *reader) visit(n *yaml.Node) bool {
	switch {
	case r.nodes == maxNodes:
		r.problem(n.Line, fmt.Sprintf("the file expands to more than %d values", maxNodes),
			"use fewer aliases, and none that contains itself")
	case r.depth > maxDepth && r.nodes < maxNodes:
		r.problem(n.Line, fmt.Sprintf("the file nests more than %d values", maxDepth),
			"flatten it, and let no alias contain itself")
		r.nodes = maxNodes
	}
	r.nodes++
	return r.nodes <= maxNodes
}

// A member is one named value of a mapping.
type member struct {
	name  string
	line  int
	value *yaml.Node // never an alias
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// members reads a mapping in file order, merge keys included. Names given
// twice and names that are no strings are problems.
func (r *reader) members(n *yaml.Node, path string) []member {
	var own []member
	var merged []*yaml.Node
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), resolve(n.Content[i+1])
		if !r.visit(key) {
			return nil
		}
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			r.problem(key.Line, whole(path)+" has a member whose name is not a string", "put the name in quotes")
		case seen[key.Value] != 0:
			r.problem(key.Line, fmt.Sprintf("%s is given twice, first on line %d", join(path, key.Value), seen[key.Value]),
				"remove one of the two")
		default:
			seen[key.Value] = key.Line
			own = append(own, member{key.Value, key.Line, value})
		}
	}
	for _, from := range merged {
		for _, m := range r.merge(from, path) {
			if seen[m.name] == 0 {
				seen[m.name] = m.line
				own = append(own, m)
			}
		}
	}
	return own
}

// merge reads what a merge key names: a mapping, or a list of them.
func (r *reader) merge(n *yaml.Node, path string) []member {
	r.depth++
	defer func() { r.depth-- }()
	switch {
	case !r.visit(n):
		return nil
	case n.Kind == yaml.MappingNode:
		return r.members(n, path)
	case n.Kind == yaml.SequenceNode:
		var all []member
		for _, item := range n.Content {
			all = append(all, r.merge(resolve(item), path)...)
		}
		return all
	}
	r.problem(n.Line, whole(path)+" merges what is no mapping", "let << name mappings only")
	return nil
}

// join names a member within path, for people.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func whole(path string) string {
	if path == "" {
		return "the offering"
	}
	return path
}

// An object is a mapping with a fixed set of members.
type object struct {
	r       *reader
	path    string
	line    int
	members map[string]member
	given   map[string]bool // also those whose value is a problem
}

// object reads a mapping; members that are not known are problems.
func (r *reader) object(n *yaml.Node, path string, known ...string) (object, bool) {
	o := object{r: r, path: path, line: n.Line, members: map[string]member{}, given: map[string]bool{}}
	if !r.visit(n) {
		return o, false
	}
	if n.Kind != yaml.MappingNode {
		r.problem(n.Line, whole(path)+" is not a mapping", "write it as \"name: value\" lines")
		return o, false
	}
	for _, m := range r.members(n, path) {
		o.given[m.name] = true
		if !slices.Contains(known, m.name) {
			remedy := "remove it; known here: " + strings.Join(known, ", ")
			if near := spelling.Nearest(m.name, known); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			r.problem(m.line, fmt.Sprintf("%s has an unknown member %q", whole(path), m.name), remedy)
			continue
		}
		if m.value.Kind == yaml.ScalarNode && m.value.ShortTag() == "!!null" {
			// CAT-27: an absent member is omitted, never null.
			r.problem(m.line, join(path, m.name)+" has no value", "give it one, or remove the member")
			continue
		}
		o.members[m.name] = m
	}
	return o, true
}

// lineOf is where a member stands, or the object if it has none.
func (o object) lineOf(name string) int {
	if m, ok := o.members[name]; ok {
		return m.line
	}
	return o.line
}

func (o object) problem(name, what, remedy string) {
	o.r.problem(o.lineOf(name), join(o.path, name)+" "+what, remedy)
}

// require notes a problem when a member is absent.
func (o object) require(name, remedy string) {
	if !o.given[name] {
		o.problem(name, "is missing", remedy)
	}
}

// text reads a string of 1 to limit characters; empty when absent or wrong.
func (o object) text(name string, limit int) string {
	m, ok := o.members[name]
	if !ok {
		return ""
	}
	switch {
	case m.value.Kind != yaml.ScalarNode:
		o.problem(name, "is not a string", "write one line of text")
	case m.value.ShortTag() != "!!str":
		o.problem(name, "is not a string", "put it in quotes")
	case strings.TrimSpace(m.value.Value) == "":
		o.problem(name, "is empty", "give it a text, or remove the member")
	case utf8.RuneCountInString(m.value.Value) > limit:
		o.problem(name, fmt.Sprintf("is longer than %d characters", limit), "shorten it")
	default:
		return m.value.Value
	}
	return ""
}

// flag reads a boolean; nil when absent or wrong.
func (o object) flag(name string) *bool {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	var v bool
	if m.value.Kind != yaml.ScalarNode || m.value.ShortTag() != "!!bool" || m.value.Decode(&v) != nil {
		o.problem(name, "is not a boolean", "write true or false, without quotes")
		return nil
	}
	return &v
}

func (o object) isTrue(name string) bool {
	v := o.flag(name)
	return v != nil && *v
}

// list reads the items of a sequence; nil when absent or wrong.
func (o object) list(name string) []*yaml.Node {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	if m.value.Kind != yaml.SequenceNode {
		o.problem(name, "is not a list", "write each item on a line of its own, after a hyphen")
		return nil
	}
	items := make([]*yaml.Node, 0, len(m.value.Content))
	for _, item := range m.value.Content {
		if !o.r.visit(item) {
			return nil
		}
		items = append(items, resolve(item))
	}
	return items
}

// texts reads a list of strings that are not empty.
func (o object) texts(name string) []string {
	var texts []string
	for i, item := range o.list(name) {
		if item.Kind != yaml.ScalarNode || item.ShortTag() != "!!str" || strings.TrimSpace(item.Value) == "" {
			o.r.problem(item.Line, fmt.Sprintf("%s[%d] is not a string with characters", join(o.path, name), i),
				"write text, in quotes where it looks like a number, or remove the item")
			continue
		}
		texts = append(texts, item.Value)
	}
	return texts
}

// mapping reads a mapping of any members; nil when absent or wrong.
func (o object) mapping(name string, form form) map[string]any {
	m, ok := o.members[name]
	if !ok {
		return nil
	}
	if m.value.Kind != yaml.MappingNode {
		o.problem(name, "is not a mapping", "write it as \"name: value\" lines")
		return nil
	}
	v, _ := o.r.value(m.value, join(o.path, name), form).(map[string]any)
	return v
}

// A form says how free values are read.
type form struct {
	nulls bool // null is a value, not a problem
	exact bool // numbers keep their digits (json.Number)
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// value reads any value that JSON can express.
func (r *reader) value(n *yaml.Node, path string, form form) any {
	r.depth++
	defer func() { r.depth-- }()
	n = resolve(n)
	if !r.visit(n) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for _, m := range r.members(n, path) {
			object[m.name] = r.value(m.value, join(path, m.name), form)
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			list = append(list, r.value(item, fmt.Sprintf("%s[%d]", path, i), form))
		}
		return list
	}
	var v any
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value
	case "!!null":
		if !form.nulls {
			r.problem(n.Line, path+" has no value", "give it one, or remove the member")
		}
		return nil
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&v); err == nil && isNumber(v) && form.exact && jsonNumber.MatchString(n.Value) {
			v = json.Number(n.Value)
			if tooExtreme(json.Number(n.Value)) {
				v = nil
			}
		}
		if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
			v = nil
		}
	}
	if v == nil {
		r.problem(n.Line, path+" is no value that JSON can express", "write text, a number, true or false, a list or a mapping")
	}
	return v
}

func isNumber(v any) bool {
	switch v.(type) {
	case int, int64, uint64, float64:
		return true
	}
	return false
}
