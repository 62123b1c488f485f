package schema

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// New compiles a schema that its draft allows. The violations say which references lead
// nowhere, and what cannot be compiled, and where.
func New(text []byte) (*Schema, []Violation) {
	root, _ := Parse(text) // what is no JSON names no draft
	if Extreme(root) {
		return nil, []Violation{{Rule: "must hold only numbers with exponents from -1000 to 1000", Remedy: "write another bound"}}
	}
	document, _ := root.(map[string]any)
	c := &compiler{
		Schema: Schema{draft: draftOf(document["$schema"]), declared: map[string]bool{}},
		top:    root, nodes: map[string]*node{}, anchors: map[string]string{},
	}
	if c.draft == 0 {
		return nil, []Violation{{Member: "/$schema", Rule: "must be a published draft of JSON Schema"}}
	}
	c.survey(root, "")
	c.root = c.node("")
	return &c.Schema, c.broken
}

// A compiler turns a document into nodes, one for each schema in it.
type compiler struct {
	Schema
	top     any
	nodes   map[string]*node  // by JSON pointer
	anchors map[string]string // pointers, by the anchor's name
	broken  []Violation
}

func (c *compiler) refuse(at, rule, remedy string) {
	c.broken = append(c.broken, Violation{at, rule, remedy})
}

// named are keywords whose members are named by the user; plain are keywords whose values hold no schemas.
var (
	named = []string{"properties", "patternProperties", "definitions", "$defs", "dependentSchemas",
		"dependencies", "dependentRequired"}
	plain = []string{"enum", "const", "default", "examples"}
)

// since holds the draft that introduced a keyword; earlier drafts do not know it.
var since = map[string]int{
	"const": 6, "contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7,
	"dependentRequired": 2019, "dependentSchemas": 2019, "maxContains": 2019, "minContains": 2019,
	"unevaluatedItems": 2019, "unevaluatedProperties": 2019, "$recursiveRef": 2019, "prefixItems": 2020, "$dynamicRef": 2020,
}

// survey notes the member names and anchors of the document, and removes keywords that its draft does not know.
func (c *compiler) survey(v any, at string) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			c.survey(item, at+"/"+strconv.Itoa(i))
		}
	case map[string]any:
		c.identify(v, at)
		for keyword, value := range v {
			members, isObject := value.(map[string]any)
			switch {
			case c.draft < since[keyword]:
				delete(v, keyword)
			case slices.Contains(plain, keyword):
			case isObject && slices.Contains(named, keyword):
				for name, below := range members {
					if strings.HasPrefix(keyword, "prop") || strings.HasPrefix(keyword, "depend") {
						c.declared[name] = true
					}
					c.survey(below, at+"/"+keyword+"/"+Escape(name))
				}
			default:
				if keyword == "required" {
					for _, name := range texts(value) {
						c.declared[name] = true
					}
				}
				c.tracks = c.tracks || strings.HasPrefix(keyword, "unevaluated")
				c.survey(value, at+"/"+keyword)
			}
		}
	}
}

// identify notes the names of a schema.
func (c *compiler) identify(v map[string]any, at string) {
	keyword := "$id"
	if c.draft == 4 {
		keyword = "id"
	}
	id, _ := v[keyword].(string)
	if _, refers := v["$ref"]; refers && c.draft < 2019 {
		id = ""
	}
	if before, name, _ := strings.Cut(id, "#"); before != "" && at != "" {
		c.refuse(at+"/"+keyword, "must not be given: schemas within others cannot have an "+keyword+" of their own", "remove it")
	} else if name != "" && c.draft < 2019 {
		c.anchors[name] = at
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := v[keyword].(string); ok {
			c.anchors[name] = at
		}
	}
	if said, given := v["$schema"]; given && draftOf(said) != c.draft {
		c.refuse(at+"/$schema", "names another draft than that of the whole schema", "remove it")
	}
}

// refer returns the node that a reference names.
func (c *compiler) refer(at, ref string) *node {
	target, local := strings.CutPrefix(ref, "#")
	target, err := url.PathUnescape(target)
	if !local || err != nil {
		// Platforms fetch nothing, not even the published schemas of drafts.
		c.refuse(at, "refers to another document",
			`copy the target of the reference into definitions, and refer to it as "#/definitions/NAME"`)
		return nil
	}
	if anchored, ok := c.anchors[target]; ok {
		target = anchored
	}
	if target == "" || target[0] == '/' {
		switch c.at(target).(type) {
		case map[string]any, bool:
			return c.node(target)
		}
	}
	c.refuse(at, "refers to nothing", "correct it, or add what it refers to")
	return nil
}

// at finds the value that a pointer names in the document; nil if there is none.
func (c *compiler) at(pointer string) any {
	v := c.top
	if pointer == "" {
		return v
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch in := v.(type) {
		case map[string]any:
			v = in[Unescape(token)]
		case []any:
			n, err := strconv.Atoi(token)
			if err != nil || n < 0 || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

// node compiles the schema at a place, once for each place.
func (c *compiler) node(at string) *node {
	if n, ok := c.nodes[at]; ok {
		return n
	}
	n := &node{}
	c.nodes[at] = n
	switch v := c.at(at).(type) {
	case bool:
		if n.never = !v; c.draft == 4 && !strings.HasSuffix(at, "/additionalItems") &&
			!strings.HasSuffix(at, "/additionalProperties") {
			c.refuse(at, "must be an object: draft-04 has no schemas that are true or false", "write {} or {\"not\": {}}")
		}
	case map[string]any:
		k := keywords{c, at, v}
		for _, keyword := range []string{"$ref", "$recursiveRef", "$dynamicRef"} {
			if ref, ok := v[keyword].(string); ok {
				n.refs = append(n.refs, c.refer(at+"/"+keyword, ref))
			}
		}
		if n.refs != nil && c.draft < 2019 {
			return n // keywords beside a reference have no effect
		}
		n.about, _ = v["description"].(string)
		k.values(n)
		k.objects(n)
		k.arrays(n)
		n.not, n.allOf, n.anyOf, n.oneOf = k.schema("not"), k.list("allOf"), k.list("anyOf"), k.list("oneOf")
		n.when, n.then, n.otherwise = k.schema("if"), k.schema("then"), k.schema("else")
		for _, keyword := range []string{"definitions", "$defs"} {
			k.members(keyword) // to refuse faults even in schemas that nothing refers to
		}
	}
	return n
}

// keywords reads the keywords of one schema.
type keywords struct {
	*compiler
	at string
	v  map[string]any
}

func (k keywords) values(n *node) {
	n.types = texts(k.v["type"])
	if one, ok := k.v["type"].(string); ok {
		n.types = []string{one}
	}
	n.enum, _ = k.v["enum"].([]any)
	if value, given := k.v["const"]; given {
		n.never = n.enum != nil && !slices.ContainsFunc(n.enum, func(v any) bool { return canonical(v) == canonical(value) })
		n.enum = []any{value}
	}
	if n.enum != nil {
		n.allowed = map[string]bool{}
	}
	for _, v := range n.enum {
		n.allowed[canonical(v)] = true
	}
	if k.draft < 2019 { // later drafts treat it as an annotation
		n.format, _ = k.v["format"].(string)
	}
	n.pattern = k.regexp(k.at+"/pattern", k.v["pattern"])
	for keyword, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		value, given := k.v[exclusive]
		truth, is := value.(bool)
		if given && is != (k.draft == 4) {
			k.refuse(k.at+"/"+exclusive, "must be true or false in draft-04, and a number later", "correct it, or $schema")
		}
		if truth {
			k.v[exclusive] = k.v[keyword]
			delete(k.v, keyword)
		}
	}
	n.bounds = k.bounds(ofValues)
}

func (k keywords) objects(n *node) {
	n.required = texts(k.v["required"])
	n.properties, n.propertyNames = k.members("properties"), k.schema("propertyNames")
	n.additional = k.schema("additionalProperties")
	n.patterns = map[*regexp.Regexp]*node{}
	for pattern, below := range k.members("patternProperties") {
		if re := k.regexp(k.at+"/patternProperties/"+Escape(pattern), pattern); re != nil {
			n.patterns[re] = below
		}
	}
	n.needs, n.dependents = map[string][]string{}, k.members("dependentSchemas")
	for _, keyword := range []string{"dependencies", "dependentRequired"} {
		values, _ := k.v[keyword].(map[string]any)
		for name, value := range values {
			if isList(value) {
				n.needs[name] = append(n.needs[name], texts(value)...)
			} else {
				n.dependents[name] = k.node(k.at + "/" + keyword + "/" + Escape(name))
			}
		}
	}
	n.unevaluatedProperties = k.schema("unevaluatedProperties")
}

func (k keywords) arrays(n *node) {
	n.unique = k.v["uniqueItems"] == true
	switch {
	case k.draft >= 2020:
		n.prefix, n.items = k.list("prefixItems"), k.schema("items")
	case isList(k.v["items"]):
		n.prefix, n.items = k.list("items"), k.schema("additionalItems")
	default:
		n.items = k.schema("items")
	}
	if n.contains = k.schema("contains"); n.contains != nil && k.v["minContains"] == nil {
		k.v["minContains"] = json.Number("1")
	}
	n.containing = k.bounds(ofMatches)
	n.unevaluatedItems = k.schema("unevaluatedItems")
}

// schema compiles the value of a keyword if that is a schema.
func (k keywords) schema(keyword string) *node {
	switch k.v[keyword].(type) {
	case map[string]any, bool:
		return k.node(k.at + "/" + keyword)
	}
	return nil
}

func (k keywords) list(keyword string) []*node {
	values, _ := k.v[keyword].([]any)
	var all []*node
	for i := range values {
		all = append(all, k.node(k.at+"/"+keyword+"/"+strconv.Itoa(i)))
	}
	return all
}

func (k keywords) members(keyword string) map[string]*node {
	values, _ := k.v[keyword].(map[string]any)
	all := make(map[string]*node, len(values))
	for name := range values {
		all[name] = k.node(k.at + "/" + keyword + "/" + Escape(name))
	}
	return all
}

// regexp compiles a pattern; nil if there is none.
func (k keywords) regexp(at string, pattern any) *regexp.Regexp {
	text, ok := pattern.(string)
	if !ok {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		k.refuse(at, fmt.Sprintf("is no pattern: %v", err), "write it in RE2 syntax")
		return nil
	}
	return re
}

func (k keywords) bounds(of []limit) (found []bound) {
	for _, l := range of {
		if n, ok := k.v[l.keyword].(json.Number); ok {
			found = append(found, bound{l, rational(n)})
		}
	}
	return found
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// texts returns the strings in a list.
func texts(v any) []string {
	list, _ := v.([]any)
	var all []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
