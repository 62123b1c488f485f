package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/test/expect"
)

// The drafts of JSON Schema that the tests are written in.
const (
	draft04 = "http://json-schema.org/draft-04/schema#"
	draft07 = "http://json-schema.org/draft-07/schema#"
	draft20 = "https://json-schema.org/draft/2020-12/schema"
)

// with is a catalog whose one plan has the schema, JSON without draft and braces, for provision, update and bind.
func with(t testing.TB, draft, schema string) *catalog.Catalog {
	t.Helper()
	return expect.Get(load(map[string]string{"a/offering.yaml": offeringWith(draft, schema)}))(t)
}

// offeringWith is JSON, which is YAML too.
func offeringWith(draft, schema string) string {
	if schema != "" {
		schema = ", " + schema
	}
	parameters := fmt.Sprintf(`{"parameters": {"$schema": %q, "type": "object"%s}}`, draft, schema)
	return fmt.Sprintf(`{"id": "o", "name": "one", "description": "d", "provider": "demo", "bindable": true,
		"plans": [{"id": "p", "name": "small", "description": "d", "schemas": {
			"service_instance": {"create": %[1]s, "update": %[1]s}, "service_binding": {"create": %[1]s}}}]}`, parameters)
}

// A broken rule as tests compare it.
type broken struct{ Member, Rule string }

func violationsOf(t *testing.T, err error) []broken {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *catalog.ParameterError
	if !errors.As(err, &e) {
		t.Fatalf("want a *ParameterError, got %T: %v", err, err)
	}
	var all []broken
	for _, v := range e.Violations {
		all = append(all, broken{v.Member, v.Rule})
	}
	return all
}

type checkTest struct {
	reason, draft, schema, params string
	want                          []broken
}

func by(draft string) func(reason, schema, params string, want ...broken) checkTest {
	return func(reason, schema, params string, want ...broken) checkTest {
		return checkTest{reason, draft, schema, params, want}
	}
}

var by04, by07, by20 = by(draft04), by(draft07), by(draft20)

// a is a schema of the member a alone.
func a(schema string) string { return `"properties": {"a": ` + schema + `}` }

// Absent parameters are {}, and parameters that are no JSON object are refused.
func inputTests() []checkTest {
	return []checkTest{
		by04("INP-07: absent parameters are {}.", ``, ""),
		by04("INP-07: null is absent.", ``, " null\n"),
		by04("Absent parameters lack what is required.", `"required": ["a"]`, "", broken{"/a", "is required"}),
		by04("INP-01: what is not JSON is refused without a word of it.", ``, `{"a": canary}`,
			broken{"", "must be a JSON object"}),
		by04("INP-01: nothing follows the object.", ``, `{} {}`, broken{"", "must be a JSON object"}),
		by04("INP-03: parameters are an object.", ``, `["x"]`, broken{"", "must be a JSON object"}),
		by04("INP-15: a number that takes a million digits is refused, not computed.", a(`{"minimum": 1}`),
			`{"a":[{"b":1e1000000000}]}`, broken{"", "must hold only numbers with exponents from -1000 to 1000"}),
		by04("INP-15: numbers beyond a float are compared all the same.", a(`{"maximum": 1e308}`),
			`{"a":1e400}`, broken{"/a", "must be at most 1" + strings.Repeat("0", 308)}),
		by04("INP-15: digits beyond a float's precision count.",
			a(`{"maximum": 123456789012345678901234567890}`), `{"a":123456789012345678901234567891}`,
			broken{"/a", "must be at most 123456789012345678901234567890"}),
		by04("INP-15: deep nesting is refused or accepted, never a crash.", ``,
			`{"a":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+`}`, broken{"", "must be a JSON object"}),
	}
}

// Each keyword of a schema is judged and told.
func schemaTests() []checkTest {
	return []checkTest{
		by04("The type is told.", a(`{"type": "integer"}`), `{"a":"x"}`, broken{"/a", "must be an integer"}),
		by04("All types are told, in a stable order.", a(`{"type": ["string", "null"]}`), `{"a":1}`,
			broken{"/a", "must be a string or null"}),
		by04("An integer may be written as 2.0.", a(`{"type": "integer"}`), `{"a":2.0}`),
		by04("The allowed values are told as JSON.", a(`{"enum": ["s", 2, true, null]}`), `{"a":"x"}`,
			broken{"/a", `must be one of "s", 2, true, null`}),
		by07("So is a single one, with its digits.", a(`{"const": {"b": 1.50}}`), `{"a":"x"}`,
			broken{"/a", `must be {"b":1.50}`}),
		by07("The format is told by its name.", a(`{"format": "ipv4"}`), `{"a":"x"}`,
			broken{"/a", `must have the format "ipv4"`}),
		by04("The pattern is told as the schema has it.", a(`{"pattern": "^[a-z]+$"}`), `{"a":"X"}`,
			broken{"/a", `must match the pattern "^[a-z]+$"`}),
		by04("Lengths count characters.", `"properties": {"a": {"minLength": 2}, "b": {"maxLength": 1}}`,
			`{"a":"x","b":"xx"}`, broken{"/a", "must have at least 2 characters"}, broken{"/b", "must have at most 1 character"}),
		by04("Each missing member is told by itself.", a(`{"required": ["y", "x"]}`), `{"a":{}}`,
			broken{"/a/x", "is required"}, broken{"/a/y", "is required"}),
		by04("What makes a member necessary is told.", `"dependencies": {"a": ["b"]}`, `{"a":1}`,
			broken{"/b", `is required where "a" is given`}),
		by20("Also in the words of later drafts.", `"dependentRequired": {"a": ["b"]}`, `{"a":1}`,
			broken{"/b", `is required where "a" is given`}),
		by20("A dependent schema is told by what it asks.", `"dependentSchemas": {"a": {"required": ["b"]}}`,
			`{"a":1}`, broken{"/b", "is required"}),
		by04("The allowed names are told, and the one that was perhaps meant; the user's own is not.",
			`"properties": {"size": {}, "name": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": false`,
			`{"sizes":1, "other":2}`,
			broken{"", `must have no members but "name", "size", names that match "^x-" (2 not known; did you mean "size"?)`}),
		by04("An object without declared members allows none.", a(`{"additionalProperties": false}`),
			`{"a":{"b":1}}`, broken{"/a", `must have no members (1 not known)`}),
		by04("A name that the schema does not declare is shown as *.",
			a(`{"additionalProperties": {"type": "string"}}`), `{"a":{"b":1}}`, broken{"/a/*", `must be a string`}),
		by20("Also where the names come from several schemas.",
			`"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false`, `{"a":1,"b":2}`,
			broken{"/*", "is not allowed here"}),
		by07("The rule for names is told, and the object that has one.",
			a(`{"propertyNames": {"pattern": "^[a-z]+$", "maxLength": 3}}`), `{"a":{"X":1}}`,
			broken{"/a", `must not have a member of such a name: each name must match the pattern "^[a-z]+$"`}),
		by04("Members are counted.", `"minProperties": 3, "properties": {"a": {"maxProperties": 0}}`,
			`{"a":{"b":1}}`, broken{"", "must have at least 3 members"}, broken{"/a", "must have at most 0 members"}),
		by04("Items are counted.", `"properties": {"a": {"minItems": 1}, "b": {"maxItems": 1}}`,
			`{"a":[],"b":[1,2]}`, broken{"/a", "must have at least 1 item"}, broken{"/b", "must have at most 1 item"}),
		by04("Items are told by their index.", a(`{"items": {"type": "string"}}`), `{"a":["x",1]}`,
			broken{"/a/1", "must be a string"}),
		by04("Items beyond a tuple are counted.", a(`{"items": [{}], "additionalItems": false}`),
			`{"a":[1,2,3]}`, broken{"/a", "must not have the last 2 items"}),
		by04("Equal items are told by their indexes; 1 is 1.0.", a(`{"uniqueItems": true}`), `{"a":[1,2,1.0]}`,
			broken{"/a", "must not have the same item twice: items 0 and 2 are equal"}),
		by07("What an item must be is the plan's to say.", a(`{"contains": {"type": "string"}}`), `{"a":[1]}`,
			broken{"/a", "must have at least 1 item of the form that the plan asks for"}),
		by20("With their numbers in later drafts.",
			`"properties": {"a": {"contains": {"type": "string"}, "minContains": 2},
				"b": {"contains": {"type": "string"}, "maxContains": 1}}`,
			`{"a":["x"],"b":["x","y"]}`, broken{"/a", "must have at least 2 items of the form that the plan asks for"},
			broken{"/b", "must have at most 1 item of the form that the plan asks for"}),
		by04("Limits are told with all their digits.", `"properties": {"a": {"minimum": 1.5}, "b": {"maximum": 2}}`,
			`{"a":1,"b":3}`, broken{"/a", "must be at least 1.5"}, broken{"/b", "must be at most 2"}),
		by07("Exclusive limits are told as such.",
			`"properties": {"a": {"exclusiveMinimum": 1}, "b": {"exclusiveMaximum": 2}, "c": {"multipleOf": 0.25}}`,
			`{"a":1,"b":2,"c":0.3}`, broken{"/a", "must be greater than 1"}, broken{"/b", "must be less than 2"},
			broken{"/c", "must be a multiple of 0.25"}),
	}
}

// Schemas that are made of others.
func combinedTests() []checkTest {
	return []checkTest{
		by04("What is excluded is the plan's to say.", a(`{"not": {"type": "string"}}`), `{"a":"x"}`,
			broken{"/a", "must not have the form that the plan excludes"}),
		by04("Each part is told by itself.", `"allOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["b"]}]`,
			`{"a":1}`, broken{"/a", "must be a string"}, broken{"/b", "is required"}),
		by04("Alternatives for one member are told as one rule.",
			a(`{"anyOf": [{"type": "boolean"}, {"enum": ["x", "y"]}]}`), `{"a":"z"}`,
			broken{"/a", `must be a boolean, or must be one of "x", "y"`}),
		by04("Alternatives that are about members name them.",
			`"oneOf": [{"required": ["a", "b"]}, {"required": ["c"]}]`, `{}`,
			broken{"", "must have one of these forms: parameter /a is required and parameter /b is required, or " +
				"parameter /c is required"}),
		by04("Having two of the forms is not having one.", `"oneOf": [{"required": ["a"]}, {"required": ["b"]}]`,
			`{"a":1,"b":1}`, broken{"", "must have exactly one of the forms that the plan allows, and has several"}),
		by04("A long list of alternatives helps nobody.",
			`"anyOf": [{"required": ["a", "b", "c", "d"]}, {"required": ["e", "f", "g"]}]`, `{}`,
			broken{"", "must have one of the 2 forms that the plan allows"}),
		by07("A condition is told by what it asks.", `"if": {"required": ["a"]}, "then": {"required": ["b"]}`,
			`{"a":1}`, broken{"/b", "is required"}),
		by07("A member can be forbidden.", a(`false`), `{"a":1}`, broken{"/a", "is not allowed here"}),
		by04("References within the schema are followed.",
			`"definitions": {"d": {"properties": {"b": {"type": "string"}}, "additionalProperties": false}},
				"properties": {"a": {"$ref": "#/definitions/d"}}`,
			`{"a":{"b":1,"c":2}}`, broken{"/a", `must have no members but "b" (1 not known)`},
			broken{"/a/b", "must be a string"}),
		by20("A schema that only refers to itself judges nothing; it must not hang.", `"$ref": "#"`, `{"a":1}`,
			broken{"", "do not satisfy the plan's schema"}),
		by04("Members are named as JSON pointers write them.", `"properties": {"a/b~c": {"type": "string"}}`,
			`{"a/b~c":1}`, broken{"/a~1b~0c", "must be a string"}),
		by04("A name of digits is no index.", `"additionalProperties": {"type": "string"}`,
			`{"4111111111111111":1}`, broken{"/*", "must be a string"}),
	}
}

func TestCheck(t *testing.T) {
	for _, tc := range slices.Concat(inputTests(), schemaTests(), combinedTests()) {
		t.Run(tc.reason, func(t *testing.T) {
			c := with(t, tc.draft, tc.schema)
			for _, verb := range []catalog.Verb{catalog.Create, catalog.Update, catalog.Bind} {
				err := c.Check(verb, "o", "p", json.RawMessage(tc.params))
				expect.Same(t, tc.reason+"\nCheck "+string(verb), tc.want, violationsOf(t, err))
			}
		})
	}
}

func TestCheckReportsFewAndAlwaysTheSame(t *testing.T) {
	c := with(t, draft04, `"required": ["g", "f", "e", "d", "c", "b", "a"], "properties": {"h": {"type": "string"}}`)
	const want = "parameter /a is required; parameter /b is required; parameter /c is required; parameter /d is required; " +
		"parameter /e is required; and 3 more"

	// Members are read from maps, whose order changes from run to run; and requests are checked at once.
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := c.Check(catalog.Create, "o", "p", json.RawMessage(`{"h":1}`))
			expect.Same(t, "Check(...)", want, fmt.Sprint(err))
		})
	}
	wg.Wait()
}

func TestCheckPicksTheSchema(t *testing.T) {
	only := func(where string) string {
		return spoil(map[int]string{10: "  description: d\n  schemas: {" + fmt.Sprintf(where, `{parameters: {$schema: "`+draft04+
			`", type: object, required: [a]}}`) + "}"})
	}
	create := only("service_instance: {create: %s}")
	type refused struct{ Create, Update, Bind bool }
	for _, tc := range []struct {
		reason, text, service, plan string
		want                        refused
	}{
		{"PROV-19: create judges provisions alone.", create, "offering-1", "plan-1", refused{Create: true}},
		{"UPD-12: update judges updates alone.", only("service_instance: {update: %s}"), "offering-1", "plan-1",
			refused{Update: true}},
		{"BIND-15: the binding's schema judges binds alone.", only("service_binding: {create: %s}"), "offering-1",
			"plan-1", refused{Bind: true}},
		{"A plan without schemas allows everything.", create, "offering-1", "plan-2", refused{}},
		{"CAT-28: a plan that left the catalog has no schema.", create, "offering-1", "plan-0", refused{}},
		{"A plan of another offering is unknown.", create, "offering-0", "plan-1", refused{}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			c := expect.Get(load(map[string]string{"a/offering.yaml": tc.text}))(t)
			refuses := func(v catalog.Verb) bool { return c.Check(v, tc.service, tc.plan, nil) != nil }
			expect.Same(t, tc.reason+"\nCheck...(nil)", tc.want,
				refused{refuses(catalog.Create), refuses(catalog.Update), refuses(catalog.Bind)})
			if c.Check(catalog.Bind, tc.service, tc.plan, json.RawMessage(`5`)) == nil {
				t.Errorf("%s\nCheck(bind, 5): the form is checked even without a schema", tc.reason)
			}
		})
	}
}

// The parameters that an instance has after an update are judged as a whole, by its plan of then (UPD-12).
func TestCheckResult(t *testing.T) {
	const (
		strict = `"properties": {"size": {"type": "integer", "maximum": 9}, "zone": {"type": "string"}},
			"additionalProperties": false`
		later = `"properties": {"size": {"type": "integer", "maximum": 5}, "rotate": {"type": "integer", "minimum": 1}},
			"additionalProperties": false`
		unknown = "is not a parameter of the plan; give it as null to remove it"
	)
	type trial struct {
		reason, create, update, result, given string
		want                                  []broken
	}
	of := func(reason, create, update, result, given string, want ...broken) trial {
		return trial{reason, create, update, result, given, want}
	}
	for _, tc := range []trial{
		of("All is allowed.", strict, strict, `{"size":1,"zone":"z"}`, `{"size":1}`),
		of("What is kept is judged, and named.", strict, strict, `{"size":1,"colour":"red"}`, `{"size":1}`,
			broken{"/colour", unknown}),
		of("Each by its name.", strict, strict, `{"b":1,"a":1}`, ``, broken{"/a", unknown}, broken{"/b", unknown}),
		of("So is its value.", strict, strict, `{"size":10}`, `{}`, broken{"/size", "must be at most 9"}),
		of("Also by a rule for names that the schema does not declare.",
			`"additionalProperties": {"type": "string"}`, ``, `{"a":1}`, ``, broken{"/a", "must be a string"}),
		of("Names below may be a user's own: they are hidden as ever.",
			`"additionalProperties": {"additionalProperties": {"type": "string"}}`, ``, `{"a":{"secret":1}}`, ``,
			broken{"/a/*", "must be a string"}),
		of("In the words of later drafts.", `"$schema": "`+draft20+`", "unevaluatedProperties": false`, ``,
			`{"a":1}`, ``, broken{"/a", "is not allowed here"}),
		of("What is given may be a secret in the wrong place.", strict, ``, `{"hunter2":1}`, `{"hunter2":1}`,
			broken{"", `must have no members but "size", "zone" (1 not known)`}),
		of("What is required cannot be removed.", `"required": ["size"]`, ``, ``, `{"size":null}`,
			broken{"/size", "is required"}),
		of("What an update must give need not stay.", ``, `"required": ["reason"]`, `{"size":1}`, ``),
		of("A member of the update schema alone was judged by it.", strict, later, `{"zone":"z","rotate":2}`, `{"rotate":2}`),
		of("And is judged by it when it stays.", strict, later, `{"zone":"z","rotate":0}`, `{"zone":"z"}`,
			broken{"/rotate", "must be at least 1"}),
		of("What both know, the create schema judges in the whole.", strict, later, `{"size":7}`, ``),
		of("Without schemas all is allowed.", ``, ``, `{"a":1}`, ``),
		of("The form is judged all the same.", `"required": ["size"]`, ``, `5`, ``, broken{"", "must be a JSON object"}),
		of("The update schema does not judge what is kept and could be provisioned.", ``, strict, `{"a":1}`, ``),
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var parts []string
			for part, schema := range map[string]string{"create": tc.create, "update": tc.update} {
				if schema != "" && !strings.Contains(schema, "$schema") {
					schema = fmt.Sprintf(`"$schema": %q, %s`, draft04, schema)
				}
				if schema != "" {
					parts = append(parts, fmt.Sprintf(`%q: {"parameters": {"type": "object", %s}}`, part, schema))
				}
			}
			schemas := ""
			if len(parts) > 0 {
				schemas = `, "schemas": {"service_instance": {` + strings.Join(parts, ", ") + `}}`
			}
			c := expect.Get(load(map[string]string{"a/offering.yaml": `{"id": "o", "name": "one", "description": "d", "provider":
				"demo", "bindable": true, "plans": [{"id": "p", "name": "small", "description": "d"` + schemas + `}]}`}))(t)
			err := c.CheckResult("o", "p", json.RawMessage(tc.result), json.RawMessage(tc.given))
			expect.Same(t, tc.reason+"\nCheckResult(...)", tc.want, violationsOf(t, err))
		})
	}
}

// No value reaches an error, nor a name that the schema does not declare, in whatever form it is printed. What each keyword
// says is compared word by word in TestCheck: here are the values that a keyword could quote otherwise.
func TestParameterErrorHidesValues(t *testing.T) {
	const canary = "CANARY-7d1e"
	const value, list, member = `{"a":"` + canary + `"}`, `{"a":["` + canary + `","` + canary + `"]}`,
		`{"a":{"` + canary + `":"` + canary + `"}}`
	const number = `{"a":907020501}` // a secret may be a number
	for name, tc := range map[string]struct{ draft, schema, params string }{
		"Type":                  {draft04, a(`{"type": "integer"}`), value},
		"TypeNumber":            {draft04, a(`{"type": "string"}`), number},
		"EnumObject":            {draft04, a(`{"enum": [{"x": 1}]}`), member},
		"FormatDate":            {draft07, a(`{"format": "date-time"}`), value},
		"FormatURI":             {draft07, a(`{"format": "uri"}`), `{"a":"://` + canary + `"}`},
		"FormatRegex":           {draft07, a(`{"format": "regex"}`), `{"a":"(` + canary + `"}`},
		"Minimum":               {draft04, a(`{"minimum": 1e9}`), number},
		"Required":              {draft04, a(`{"required": ["x"]}`), member},
		"AdditionalProperties":  {draft04, a(`{"additionalProperties": false}`), member},
		"PatternProperties":     {draft04, a(`{"patternProperties": {"^C": {"type": "integer"}}}`), member},
		"UnevaluatedProperties": {draft20, a(`{"unevaluatedProperties": false}`), member},
		"PropertyNames":         {draft07, a(`{"propertyNames": {"pattern": "^x$", "enum": ["x"], "format": "uri"}}`), member},
		"UniqueItems":           {draft04, a(`{"uniqueItems": true}`), list},
		"Items":                 {draft04, a(`{"items": {"enum": [1]}}`), list},
		"UnevaluatedItems":      {draft20, a(`{"unevaluatedItems": false}`), list},
		"Contains":              {draft07, a(`{"contains": {"const": 1}}`), list},
		"AllOf":                 {draft04, a(`{"allOf": [{"enum": [1]}, {"pattern": "^x$"}]}`), value},
		"AnyOf":                 {draft04, a(`{"anyOf": [{"enum": [1]}, {"pattern": "^x$"}]}`), value},
		"AnyOfNames": {draft07,
			a(`{"anyOf": [{"additionalProperties": false}, {"propertyNames": {"const": "x"}}]}`), member},
		"OneOfSeveral": {draft04, a(`{"oneOf": [{"type": "string"}, {"pattern": "C"}]}`), value},
		"Then":         {draft07, `"if": {"required": ["a"]}, "then": {"properties": {"a": {"enum": [1]}}}`, value},
		"Reference":    {draft20, `"$defs": {"d": {"enum": [1]}}, "properties": {"a": {"$ref": "#/$defs/d"}}`, value},
		"NotJSON":      {draft04, ``, `{"a":` + canary + `}`},
		"NotAnObject":  {draft04, ``, `"` + canary + `"`},
		"Extreme":      {draft04, ``, `{"` + canary + `":907020501e99999}`},
	} {
		t.Run(name, func(t *testing.T) {
			err := with(t, tc.draft, tc.schema).Check(catalog.Create, "o", "p", json.RawMessage(tc.params))
			if err == nil {
				t.Fatal("the parameters must be refused, else this proves nothing")
			}
			expect.Never(t, "an error", fmt.Sprintf("%v %+v %#v", err, err, err), canary, "907020501")
		})
	}
}

// FuzzCheck requires that no parameters make a check panic, and that what the error says is the same each time.
func FuzzCheck(f *testing.F) {
	f.Add(`"properties": {"a": {"enum": [1]}}`, `{"a":2}`)
	f.Add(`"additionalProperties": {"multipleOf": 0.1}`, `{"a":1e-400}`)
	f.Add(`"properties": {"a": {"uniqueItems": true, "items": {"minimum": 0}}}`, `{"a":[1,1e2,1E+2,-0]}`)
	f.Add(`"oneOf": [{"$ref": "#/oneOf/1"}, {"$ref": "#/oneOf/0"}]`, `{}`)
	f.Add(`"propertyNames": {"format": "uri"}, "patternProperties": {"": {"not": {}}}`, `{"":null}`)
	f.Fuzz(func(t *testing.T, schema, params string) {
		for _, draft := range []string{draft04, draft20} {
			c, err := load(map[string]string{"a/offering.yaml": offeringWith(draft, schema)})
			if err != nil {
				continue
			}
			first := c.Check(catalog.Create, "o", "p", json.RawMessage(params))
			second := c.Check(catalog.Create, "o", "p", json.RawMessage(params))
			if fmt.Sprint(first) != fmt.Sprint(second) {
				t.Errorf("want the same words twice, got %v and %v", first, second)
			}
		}
	})
}
