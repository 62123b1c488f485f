// Package schema judges JSON values by JSON Schema, draft-04 to 2020-12, and
// says what is wrong in words for whoever gave the value: the place, and what
// would be allowed, never the value itself, which may be a secret.
//
// It does nothing before it is first used, since a function that starts cold
// waits for it. That a schema follows its draft is left to whoever compiles the
// catalog; so are references to elsewhere, which a Schema cannot have.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// drafts are the years or numbers of the drafts, by what $schema says without a
// final "#".
var drafts = map[string]int{
	"http://json-schema.org/draft-04/schema":       4,
	"http://json-schema.org/draft-06/schema":       6,
	"http://json-schema.org/draft-07/schema":       7,
	"https://json-schema.org/draft/2019-09/schema": 2019,
	"https://json-schema.org/draft/2020-12/schema": 2020,
}

// Known reports whether a value of $schema is a draft that can be judged by.
func Known(draft any) bool {
	s, ok := draft.(string)
	return ok && drafts[strings.TrimSuffix(s, "#")] != 0
}

// Parse reads one JSON value and nothing after it. Numbers are json.Number,
// which keeps their digits.
func Parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// maxExponent bounds the decimal exponent of numbers. It is beyond every number
// that a computer works with; without it a few bytes would ask for the memory of
// a million digits (INP-15).
const maxExponent = 1000

// Extreme reports whether a value holds a number with a decimal exponent beyond
// 1000 either way. Neither a schema nor what it judges may.
func Extreme(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if Extreme(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, Extreme)
	case json.Number:
		i := strings.IndexAny(string(v), "eE")
		if i < 0 {
			return false
		}
		exponent, err := strconv.Atoi(string(v[i+1:]))
		return err != nil || exponent < -maxExponent || exponent > maxExponent
	}
	return false
}

// A Schema is a JSON schema that is ready to judge. It never changes: any
// number of requests may use it at once.
type Schema struct {
	root *node
	// declared are the member names that the schema itself speaks of. Messages
	// name no others, since users' own names may be secrets.
	declared map[string]bool
	// tracks says that the schema asks what others have judged: only then is it
	// kept.
	tracks bool
}

// A node is one schema of many. Absent keywords are nil, or -1 where they count.
type node struct {
	never bool // the schema false
	about string
	refs  []*node

	types              []string
	enum               []any // of one value for const
	format             string
	pattern            *regexp.Regexp
	minLength          int
	maxLength          int
	minimum, maximum   *big.Rat
	above, below       *big.Rat // exclusive limits
	multipleOf         *big.Rat
	minProperties      int
	maxProperties      int
	required           []string
	properties         map[string]*node
	patterns           map[*regexp.Regexp]*node
	additional         *node
	propertyNames      *node
	needs              map[string][]string // dependent members
	dependents         map[string]*node
	minItems, maxItems int
	unique             bool
	prefix             []*node
	items              *node // beyond prefix
	contains           *node
	minContains        int
	maxContains        int
	marks              bool // contains counts as having judged what it matches

	not                                     *node
	allOf, anyOf, oneOf                     []*node
	when, then, otherwise                   *node
	unevaluatedItems, unevaluatedProperties *node
}

// New compiles a schema that its draft allows. The error says what refers to
// nothing, or cannot be compiled.
func New(text []byte) (*Schema, error) {
	root, err := Parse(text)
	if err != nil {
		return nil, err
	}
	document, _ := root.(map[string]any)
	said, _ := document["$schema"].(string)
	c := &compiler{
		root: root, draft: drafts[strings.TrimSuffix(said, "#")], nodes: map[string]*node{}, anchors: map[string]string{},
		schema: &Schema{declared: map[string]bool{}},
	}
	if c.draft == 0 {
		return nil, errors.New("$schema is not a published draft of JSON Schema")
	}
	c.survey(root, "", "")
	c.schema.root = c.node("")
	return c.schema, errors.Join(c.problems...)
}

// A compiler turns a document into nodes, one for each place that is a schema.
type compiler struct {
	schema   *Schema
	root     any
	draft    int
	nodes    map[string]*node  // by JSON pointer
	anchors  map[string]string // pointers, by the resource's pointer, "#" and the name
	bases    []string          // pointers of the resources within the document
	problems []error
}

func (c *compiler) refuse(at, format string, args ...any) {
	c.problems = append(c.problems, fmt.Errorf("at %q: %s", at, fmt.Sprintf(format, args...)))
}

// Keywords by what stands below them.
var (
	named = []string{"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies", "dependentRequired"}
	plain = []string{"enum", "const", "default", "examples"}
)

// survey notes the names that the document speaks of, its anchors, and the
// resources within it.
func (c *compiler) survey(v any, at, base string) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			c.survey(item, at+"/"+strconv.Itoa(i), base)
		}
	case map[string]any:
		base = c.identify(v, at, base)
		for keyword, value := range v {
			members, isObject := value.(map[string]any)
			switch {
			case slices.Contains(plain, keyword):
			case isObject && slices.Contains(named, keyword):
				for name, below := range members {
					if strings.HasPrefix(keyword, "prop") || strings.HasPrefix(keyword, "depend") {
						c.schema.declared[name] = true
					}
					c.survey(below, at+"/"+keyword+"/"+escape(name), base)
				}
			default:
				if keyword == "required" {
					for _, name := range texts(value) {
						c.schema.declared[name] = true
					}
				}
				c.schema.tracks = c.schema.tracks || c.draft >= 2019 && strings.HasPrefix(keyword, "unevaluated")
				c.survey(value, at+"/"+keyword, base)
			}
		}
	}
}

// identify notes what a schema is called, and gives the resource that it is in.
func (c *compiler) identify(v map[string]any, at, base string) string {
	keyword := "$id"
	if c.draft == 4 {
		keyword = "id"
	}
	id, _ := v[keyword].(string)
	if _, refers := v["$ref"]; refers && c.draft < 2019 {
		id = ""
	}
	if before, name, _ := strings.Cut(id, "#"); before != "" && at != "" {
		base = at
		c.bases = append(c.bases, at)
	} else if name != "" && c.draft < 2019 {
		c.anchors[base+"#"+name] = at
	}
	for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := v[keyword].(string); ok {
			c.anchors[base+"#"+name] = at
		}
	}
	if said, given := v["$schema"]; given && at != "" && drafts[strings.TrimSuffix(fmt.Sprint(said), "#")] != c.draft {
		c.refuse(at, "another draft than that of the whole schema")
	}
	return base
}

// base is the resource that a place is in.
func (c *compiler) base(at string) string {
	best := ""
	for _, b := range c.bases {
		if (at == b || strings.HasPrefix(at, b+"/")) && len(b) > len(best) {
			best = b
		}
	}
	return best
}

// refer gives the node that a reference names.
func (c *compiler) refer(at, keyword, ref string) *node {
	fragment, local := strings.CutPrefix(ref, "#")
	fragment, err := url.PathUnescape(fragment)
	if !local || err != nil {
		c.refuse(at, "%s %q refers to another document", keyword, ref)
		return nil
	}
	if keyword != "$ref" && len(c.bases) > 0 {
		c.refuse(at, "%s does not work beside schemas with an $id of their own: use $ref", keyword)
		return nil
	}
	target := c.base(at) + fragment
	if fragment != "" && fragment[0] != '/' {
		anchored, ok := c.anchors[c.base(at)+"#"+fragment]
		if !ok {
			c.refuse(at, "%s %q refers to nothing", keyword, ref)
			return nil
		}
		target = anchored
	}
	switch c.at(target).(type) {
	case map[string]any, bool:
		return c.node(target)
	}
	c.refuse(at, "%s %q refers to nothing", keyword, ref)
	return nil
}

// at finds what a pointer names in the document; nil if it names nothing.
func (c *compiler) at(pointer string) any {
	v := c.root
	if pointer == "" {
		return v
	}
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch in := v.(type) {
		case map[string]any:
			v = in[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
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

// node compiles the schema at a place, once.
func (c *compiler) node(at string) *node {
	if n, ok := c.nodes[at]; ok {
		return n
	}
	n := &node{
		minLength: -1, maxLength: -1, minProperties: -1, maxProperties: -1,
		minItems: -1, maxItems: -1, minContains: -1, maxContains: -1,
	}
	c.nodes[at] = n
	switch v := c.at(at).(type) {
	case bool:
		n.never = !v
	case map[string]any:
		k := keywords{c: c, at: at, v: v}
		if ref, ok := v["$ref"].(string); ok {
			n.refs = append(n.refs, c.refer(at, "$ref", ref))
			if c.draft < 2019 {
				return n // what stands beside it says nothing
			}
		}
		n.about, _ = v["description"].(string)
		k.values(n)
		k.objects(n)
		k.arrays(n)
		k.logic(n)
	}
	return n
}

// says is what a schema's description says, or that of what it refers to.
func (n *node) says() string {
	for i := 0; n != nil && i < 10; i++ {
		if n.about != "" || len(n.refs) == 0 {
			return n.about
		}
		n = n.refs[0]
	}
	return ""
}

// keywords reads those of one schema.
type keywords struct {
	c  *compiler
	at string
	v  map[string]any
}

func (k keywords) values(n *node) {
	n.types = texts(k.v["type"])
	if one, ok := k.v["type"].(string); ok {
		n.types = []string{one}
	}
	n.enum, _ = k.v["enum"].([]any)
	n.pattern = k.regexp(k.v["pattern"])
	n.minLength, n.maxLength = k.count("minLength"), k.count("maxLength")
	n.minimum, n.maximum, n.multipleOf = k.number("minimum"), k.number("maximum"), k.number("multipleOf")
	n.above, n.below = k.number("exclusiveMinimum"), k.number("exclusiveMaximum")
	if k.v["exclusiveMinimum"] == true {
		n.above, n.minimum = n.minimum, nil
	}
	if k.v["exclusiveMaximum"] == true {
		n.below, n.maximum = n.maximum, nil
	}
	if k.c.draft < 2019 { // later drafts only note it
		n.format, _ = k.v["format"].(string)
	}
}

func (k keywords) objects(n *node) {
	n.minProperties, n.maxProperties = k.count("minProperties"), k.count("maxProperties")
	n.required = texts(k.v["required"])
	n.properties = k.members("properties")
	n.additional = k.schema("additionalProperties")
	n.patterns = map[*regexp.Regexp]*node{}
	for pattern, below := range k.members("patternProperties") {
		if re := k.regexp(pattern); re != nil {
			n.patterns[re] = below
		}
	}
	n.needs, n.dependents = map[string][]string{}, map[string]*node{}
	for name, below := range k.members("dependencies") {
		if value := k.v["dependencies"].(map[string]any)[name]; isList(value) {
			n.needs[name] = texts(value)
		} else {
			n.dependents[name] = below
		}
	}
	if k.c.draft >= 6 {
		n.propertyNames = k.schema("propertyNames")
	}
	if k.c.draft >= 2019 {
		for name, below := range k.members("dependentSchemas") {
			n.dependents[name] = below
		}
		required, _ := k.v["dependentRequired"].(map[string]any)
		for name, value := range required {
			n.needs[name] = append(n.needs[name], texts(value)...)
		}
		n.unevaluatedProperties = k.schema("unevaluatedProperties")
	}
}

func (k keywords) arrays(n *node) {
	n.minItems, n.maxItems = k.count("minItems"), k.count("maxItems")
	n.unique = k.v["uniqueItems"] == true
	switch {
	case k.c.draft >= 2020:
		n.prefix, n.items = k.list("prefixItems"), k.schema("items")
	case isList(k.v["items"]):
		n.prefix, n.items = k.list("items"), k.schema("additionalItems")
	default:
		n.items = k.schema("items")
	}
	if k.c.draft >= 6 {
		n.contains = k.schema("contains")
	}
	if k.c.draft >= 2019 {
		n.minContains, n.maxContains = k.count("minContains"), k.count("maxContains")
		n.unevaluatedItems = k.schema("unevaluatedItems")
	}
	n.marks = k.c.draft >= 2020
}

func (k keywords) logic(n *node) {
	n.not, n.allOf, n.anyOf, n.oneOf = k.schema("not"), k.list("allOf"), k.list("anyOf"), k.list("oneOf")
	if value, given := k.v["const"]; given && k.c.draft >= 6 {
		if n.enum == nil || slices.ContainsFunc(n.enum, func(v any) bool { return equal(v, value) }) {
			n.enum = []any{value}
		} else {
			n.enum = []any{} // nothing is both
		}
	}
	if k.c.draft >= 7 {
		n.when, n.then, n.otherwise = k.schema("if"), k.schema("then"), k.schema("else")
	}
	for keyword, since := range map[string]int{"$recursiveRef": 2019, "$dynamicRef": 2020} {
		if ref, ok := k.v[keyword].(string); ok && k.c.draft >= since {
			n.refs = append(n.refs, k.c.refer(k.at, keyword, ref))
		}
	}
}

// schema compiles what a keyword holds, if that is a schema.
func (k keywords) schema(keyword string) *node {
	switch k.v[keyword].(type) {
	case map[string]any, bool:
		return k.c.node(k.at + "/" + keyword)
	}
	return nil
}

func (k keywords) list(keyword string) []*node {
	values, _ := k.v[keyword].([]any)
	var all []*node
	for i := range values {
		all = append(all, k.c.node(k.at+"/"+keyword+"/"+strconv.Itoa(i)))
	}
	return all
}

func (k keywords) members(keyword string) map[string]*node {
	values, _ := k.v[keyword].(map[string]any)
	all := make(map[string]*node, len(values))
	for name := range values {
		all[name] = k.c.node(k.at + "/" + keyword + "/" + escape(name))
	}
	return all
}

// regexp compiles a pattern; nil for none.
func (k keywords) regexp(pattern any) *regexp.Regexp {
	text, ok := pattern.(string)
	if !ok {
		return nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		k.c.refuse(k.at, "%v", err)
		return nil
	}
	return re
}

func (k keywords) number(keyword string) *big.Rat {
	n, ok := k.v[keyword].(json.Number)
	if !ok {
		return nil
	}
	r, _ := new(big.Rat).SetString(n.String())
	return r
}

// count reads a number of things; -1 for none.
func (k keywords) count(keyword string) int {
	r := k.number(keyword)
	switch {
	case r == nil:
		return -1
	case !r.IsInt() || !r.Num().IsInt64():
		return math.MaxInt
	}
	return int(r.Num().Int64())
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// texts are the strings in a list.
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

// escape makes a token of a JSON pointer.
func escape(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}
