package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/schema"
)

// maxSchema bounds a schema, in bytes of its JSON (CAT-21).
const maxSchema = 64 << 10

// schemas checks a plan's schemas (CAT-20). That each begins with a draft and
// is of an object, the schema of offering files says.
func (r *reader) schemas(s *catalog.Schemas, at string) {
	if s == nil {
		return
	}
	if i := s.ServiceInstance; i != nil {
		r.parameters(i.Create, at+"/service_instance/create/parameters")
		r.parameters(i.Update, at+"/service_instance/update/parameters")
	}
	if b := s.ServiceBinding; b != nil {
		r.parameters(b.Create, at+"/service_binding/create/parameters")
	}
}

// parameters checks one schema, once where aliases share it.
func (r *reader) parameters(p *catalog.ParametersSchema, at string) {
	if p == nil || p.Parameters == nil || r.compiled[r.places[at].value] {
		return
	}
	r.compiled[r.places[at].value] = true
	if len(p.Parameters) > maxSchema {
		r.about(at, fmt.Sprintf("is larger than %d bytes of JSON", maxSchema), "shorten it")
	}
	for _, f := range faultsOf(p.Parameters) {
		place := at
		for _, token := range f.location {
			place += "/" + escape(token)
		}
		r.about(place, f.what, f.remedy)
	}
}

// A fault is what is wrong with a schema, and where.
type fault struct {
	location     []string
	what, remedy string
}

// faultsOf checks a schema by CAT-21: what its draft says of keywords, and as it will be
// used.
func faultsOf(text []byte) []fault {
	root, err := schema.Parse(text)
	document, ok := root.(map[string]any)
	if err != nil || !ok || !schema.Known(document["$schema"]) || document["type"] != "object" {
		return nil // which is noted already
	}
	c := keywords{draft4: strings.Contains(fmt.Sprint(document["$schema"]), "draft-04")}
	if c.schema(document, nil); len(c.faults) > 0 {
		return c.faults
	}
	if _, err := schema.New(text); err != nil {
		return []fault{{what: "cannot be used: " + strings.ReplaceAll(err.Error(), "\n", "; "), remedy: "write what it means in another way"}}
	}
	return nil
}

// keywords looks at what stands behind each keyword of a schema. The drafts say of most the
// same; a keyword that only a later draft knows is looked at all the same.
type keywords struct {
	draft4 bool
	faults []fault
}

func (c *keywords) wrong(at []string, what, remedy string) {
	c.faults = append(c.faults, fault{location: at, what: what, remedy: remedy})
}

// must notes what is not JSON Schema.
func (c *keywords) must(ok bool, at []string, be string) {
	if !ok {
		c.wrong(at, "is not JSON Schema: must be "+be, "correct the schema")
	}
}

// schema looks at a schema, below which are others.
func (c *keywords) schema(v any, at []string) {
	object, is := v.(map[string]any)
	_, truth := v.(bool)
	c.must(is || truth && (!c.draft4 || len(at) > 0 && strings.HasPrefix(at[len(at)-1], "additional")), at, "a schema")
	for _, keyword := range slices.Sorted(maps.Keys(object)) {
		c.keyword(object, keyword, below(at, keyword))
	}
}

// simpleTypes are those that every draft knows.
var simpleTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func (c *keywords) keyword(in map[string]any, keyword string, at []string) {
	v := in[keyword]
	number, isNumber := v.(json.Number)
	switch keyword {
	case "additionalItems", "additionalProperties", "contains", "else", "if", "not", "propertyNames", "then", "unevaluatedItems",
		"unevaluatedProperties":
		c.schema(v, at)
	case "items":
		if _, tuple := v.([]any); tuple {
			c.schemas(v, at)
		} else {
			c.schema(v, at)
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		c.schemas(v, at)
		list, _ := v.([]any)
		c.must(len(list) > 0, at, "a list of schemas")
	case "definitions", "$defs", "dependencies", "dependentSchemas", "patternProperties", "properties", "dependentRequired":
		c.members(keyword, v, at)
	case "maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength", "minProperties":
		n, ok := new(big.Rat).SetString(number.String())
		c.must(ok && n.IsInt() && n.Sign() >= 0, at, "an integer, at least 0")
	case "maximum", "minimum":
		c.must(isNumber, at, "a number")
	case "multipleOf":
		n, ok := new(big.Rat).SetString(number.String())
		c.must(ok && n.Sign() > 0, at, "a number above 0")
	case "exclusiveMaximum", "exclusiveMinimum":
		_, truth := v.(bool)
		c.must(truth == c.draft4 && isNumber != c.draft4, at, "what the draft has: true or false in draft-04, and a number later")
	case "required":
		c.must(names(v), at, "a list of names, each once")
	case "type":
		c.must(slices.Contains(simpleTypes, fmt.Sprint(v)) || names(v) && !slices.ContainsFunc(v.([]any), func(name any) bool {
			return !slices.Contains(simpleTypes, name.(string))
		}), at, "one or some of "+strings.Join(simpleTypes, ", "))
	case "uniqueItems", "readOnly", "writeOnly", "deprecated":
		_, ok := v.(bool)
		c.must(ok, at, "true or false")
	case "enum", "examples":
		list, ok := v.([]any)
		c.must(ok && (len(list) > 0 || keyword == "examples"), at, "a list of values")
	case "pattern":
		c.pattern(v, at)
	case "$ref", "$dynamicRef", "$recursiveRef":
		if target, ok := v.(string); ok && !strings.HasPrefix(target, "#") {
			// Platforms fetch nothing, not even the published schemas of drafts.
			c.wrong(at, "refers to another document", "copy what it refers to under definitions, and refer to it as \"#/definitions/NAME\"")
		}
		fallthrough
	case "$id", "id", "$schema", "$anchor", "$dynamicAnchor", "$comment", "title", "description", "format", "contentEncoding",
		"contentMediaType":
		_, ok := v.(string)
		c.must(ok, at, "text")
	}
}

func (c *keywords) pattern(v any, at []string) {
	text, ok := v.(string)
	c.must(ok, at, "text")
	if _, err := regexp.Compile(text); err != nil {
		c.wrong(at, "is no pattern: "+err.Error(), "write it in RE2 syntax")
	}
}

func (c *keywords) schemas(v any, at []string) {
	list, _ := v.([]any)
	for i, item := range list {
		c.schema(item, below(at, strconv.Itoa(i)))
	}
}

// members looks at what stands behind names that the schema's author chose.
func (c *keywords) members(keyword string, v any, at []string) {
	object, ok := v.(map[string]any)
	c.must(ok, at, "an object")
	for _, name := range slices.Sorted(maps.Keys(object)) {
		at := below(at, name)
		if keyword == "patternProperties" {
			c.pattern(name, at)
		}
		if _, list := object[name].([]any); keyword == "dependentRequired" || keyword == "dependencies" && list {
			c.must(names(object[name]), at, "a list of names, each once")
		} else {
			c.schema(object[name], at)
		}
	}
}

// names reports whether a value is a list of texts, each once.
func names(v any) bool {
	list, ok := v.([]any)
	seen := map[string]bool{}
	for _, item := range list {
		text, is := item.(string)
		ok = ok && is && !seen[text]
		seen[text] = true
	}
	return ok
}

func below(at []string, tokens ...string) []string {
	return append(slices.Clone(at), tokens...)
}
