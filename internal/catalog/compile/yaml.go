package compile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/schema"
)

// Aliases can make a small file expand without end: these limits bound the expansion.
const (
	maxNodes = 100_000 // values in the whole file
	maxDepth = 100     // values within values
)

// A draft is an offering file while it is being read. It turns the file's one YAML document
// into a value that package schema can check, and notes each problem with its line. A value
// with a problem is read as null, and reading goes on, so that one run finds everything.
type draft struct {
	file     string
	offering catalog.Offering // may have problems
	problems []advice.Error
	warnings []advice.Error // from providers
	nodes    int            // visited so far
	depth    int            // how deeply the value being read is nested
	// places holds the position of each value, by its JSON pointer.
	places map[string]position
	// bad holds the pointers of values that cannot be read, or were refused.
	bad map[string]bool
	// noted holds the problems of values that aliases share, by node and text.
	noted map[problemKey]bool
}

// A position is the place of a member or an item in the file.
type position struct {
	line  int        // the line of the member's name, or of the item
	value *yaml.Node // never an alias
}

type problemKey struct {
	node *yaml.Node
	what string
}

func (d *draft) problem(line int, what, mend string) {
	if d.nodes > maxNodes {
		return // consequences of giving up are not reported
	}
	d.problems = append(d.problems, advice.Error{File: d.file, Line: line, What: what, Remedy: mend})
}

// about notes a problem of the member that a pointer names, even if the member is missing. A
// problem of a value that aliases share is noted once.
func (d *draft) about(at, what, remedy string) {
	at = d.stands(at)
	p, nearest := d.nearest(at)
	key := problemKey{p.value, at[len(nearest):] + " " + what}
	if !d.noted[key] {
		d.noted[key] = true
		d.problem(p.line, people(at)+" "+what, remedy)
	}
}

// nearest returns the position of the value that a pointer names, or of the nearest value around it.
func (d *draft) nearest(at string) (position, string) {
	p := d.places[at]
	for p.value == nil && at != "" {
		at = at[:strings.LastIndexByte(at, '/')]
		p = d.places[at]
	}
	return p, at
}

// people renders a JSON pointer as people write it: plans[0].id.
func people(at string) string {
	if at == "" {
		return "the offering"
	}
	said := ""
	for token := range strings.SplitSeq(at[1:], "/") {
		token = schema.Unescape(token)
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			said += "[" + token + "]"
		case said != "":
			said += "." + token
		default:
			said = token
		}
	}
	return said
}

// visit reports whether one more node may be read. If not, reading of the file is given up.
func (d *draft) visit(n *yaml.Node) bool {
	switch {
	case d.nodes == maxNodes:
		d.problem(n.Line, fmt.Sprintf("the file expands to more than %d values", maxNodes),
			"use fewer aliases, and none that contains itself")
	case d.depth > maxDepth && d.nodes < maxNodes:
		d.problem(n.Line, fmt.Sprintf("the file nests more than %d values", maxDepth),
			"flatten it, and let no alias contain itself")
		d.nodes = maxNodes
	}
	d.nodes++
	return d.nodes <= maxNodes
}

// parse reads a file's one document; nil if there is a problem.
func (d *draft) parse(folder fs.FS, name string) *yaml.Node {
	data, err := Read(folder, name)
	switch {
	case err != nil:
		d.problem(0, "the file cannot be read: "+err.Error(), "check that it may be read")
		return nil
	case len(data) > MaxFile:
		d.problem(1, fmt.Sprintf("the file is larger than %d bytes", MaxFile), "shorten it")
		return nil
	}
	root, more, err := Document(data)
	switch {
	case errors.Is(err, io.EOF), root != nil && isEmpty(root):
		d.problem(1, "the file is empty", "write an offering into it, or remove its folder")
	case err != nil:
		d.syntax(data, err)
	case more > 0:
		d.problem(more, "the file holds several documents", "put each offering into a folder of its own")
	default:
		return resolve(root)
	}
	return nil
}

func isEmpty(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Value == "" }

var yamlAnchor = regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`)

// syntax notes an error of the YAML library. The library tells no line of an unknown anchor.
func (d *draft) syntax(data []byte, err error) {
	e := NotYAML(err)
	if m := yamlAnchor.FindStringSubmatch(err.Error()); m != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+m[1]))
		e.Line = 1 + bytes.Count(before, []byte("\n"))
	}
	d.problem(e.Line, e.What, e.Remedy)
}

// A member is one named value of a mapping.
type member struct {
	name string
	position
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// members reads a mapping in file order, merge keys included. A name that is given twice or is
// not a string is a problem.
func (d *draft) members(n *yaml.Node, at string) []member {
	var own []member
	var merged []*yaml.Node
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), resolve(n.Content[i+1])
		if !d.visit(key) {
			return nil
		}
		switch {
		case key.ShortTag() == "!!merge":
			merged = append(merged, value)
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.problem(key.Line, people(at)+" has a member whose name is not a string", "put the name in quotes")
		case seen[key.Value] != 0:
			d.problem(key.Line, fmt.Sprintf("%s is given twice, first on line %d",
				people(at+"/"+schema.Escape(key.Value)), seen[key.Value]),
				"remove one of the two")
		default:
			seen[key.Value] = key.Line
			own = append(own, member{key.Value, position{key.Line, value}})
		}
	}
	for _, from := range merged {
		for _, m := range d.merge(from, at) {
			if seen[m.name] == 0 {
				seen[m.name] = m.line
				own = append(own, m)
			}
		}
	}
	return own
}

// merge reads the mapping that a merge key names, or the list of mappings.
func (d *draft) merge(n *yaml.Node, at string) []member {
	d.depth++
	defer func() { d.depth-- }()
	switch {
	case !d.visit(n):
		return nil
	case n.Kind == yaml.MappingNode:
		return d.members(n, at)
	case n.Kind == yaml.SequenceNode:
		var all []member
		for _, item := range n.Content {
			all = append(all, d.merge(resolve(item), at)...)
		}
		return all
	}
	d.problem(n.Line, people(at)+" merges what is no mapping", "let << name mappings only")
	return nil
}

// value reads any value that JSON can express, at a JSON pointer.
func (d *draft) value(n *yaml.Node, at string) any {
	d.depth++
	defer func() { d.depth-- }()
	n = resolve(n)
	if !d.visit(n) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for _, m := range d.members(n, at) {
			below := at + "/" + schema.Escape(m.name)
			d.places[below] = m.position
			object[m.name] = d.value(m.value, below)
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			below := at + "/" + strconv.Itoa(i)
			d.places[below] = position{item.Line, resolve(item)}
			list = append(list, d.value(item, below))
		}
		return list
	}
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		return n.Value
	case "!!null":
		return nil
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return v
		}
	case "!!int", "!!float":
		if v, ok := number(n); ok {
			return v
		}
	}
	d.about(at, "is no value that JSON can express", "write text, a number, true or false, a list or a mapping")
	d.bad[at] = true
	return nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number keeps a number's digits if JSON can write them that way.
func number(n *yaml.Node) (json.Number, bool) {
	text := n.Value
	if !jsonNumber.MatchString(text) {
		var v any
		if n.Decode(&v) != nil {
			return "", false
		}
		as, _ := json.Marshal(v) // nothing for what is infinite or no number
		if text = string(as); !jsonNumber.MatchString(text) {
			return "", false
		}
	}
	return json.Number(text), !schema.Extreme(json.Number(text))
}
