package catalog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/test/expect"
)

// The drafts of JSON Schema that the tests are written in.
const (
	draft04 = "http://json-schema.org/draft-04/schema#"
	draft07 = "http://json-schema.org/draft-07/schema#"
	draft20 = "https://json-schema.org/draft/2020-12/schema"
)

// with is a catalog whose one plan has the schema, given as JSON without its
// draft and its braces, for provision, update and bind.
func with(t testing.TB, draft, schema string) *catalog.Catalog {
	t.Helper()
	c, err := load(map[string]string{"a/offering.yaml": offeringWith(draft, schema)})
	expect.OK(t, err)
	return c
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
	reason string
	draft  string
	schema string
	params string
	want   []broken
}

// Absent parameters are {}, and parameters that are no JSON object are refused.
func inputTests() map[string]checkTest {
	return map[string]checkTest{
		"Absent": {"INP-07: absent parameters are {}.", draft04, ``, "", nil},
		"Null":   {"INP-07: null is absent.", draft04, ``, " null\n", nil},
		"AbsentLacks": {"Absent parameters lack what is required.", draft04, `"required": ["a"]`, "",
			[]broken{{"/a", "is required"}}},
		"NotJSON": {"INP-01: what is not JSON is refused without a word of it.", draft04, ``, `{"a": canary}`,
			[]broken{{"", "must be a JSON object"}}},
		"Trailing":    {"INP-01: nothing follows the object.", draft04, ``, `{} {}`, []broken{{"", "must be a JSON object"}}},
		"NotAnObject": {"INP-03: parameters are an object.", draft04, ``, `["x"]`, []broken{{"", "must be a JSON object"}}},
		"NotUTF8": {"INP-17: invalid UTF-8 is refused.", draft04, ``, "{\"a\":\"\xff\"}",
			[]broken{{"", "must be text in UTF-8"}}},
		"TooLarge": {"Parameters are stored with a record that has a limit.", draft04, ``,
			`{"a":"` + strings.Repeat("x", limits.Parameters) + `"}`, []broken{{"", "must be at most 65536 bytes of JSON"}}},
		"LargestAllowed": {"The limit itself is allowed.", draft04, ``,
			`{"a":"` + strings.Repeat("x", limits.Parameters-8) + `"}`, nil},
		"NumberTooExtreme": {"INP-15: a number that takes a million digits is refused, not computed.", draft04,
			`"properties": {"a": {"minimum": 1}}`,
			`{"a":[{"b":1e1000000000}]}`, []broken{{"", "must hold only numbers with exponents from -1000 to 1000"}}},
		"NumberBeyondFloat": {"INP-15: numbers beyond a float are compared all the same.", draft04,
			`"properties": {"a": {"maximum": 1e308}}`,
			`{"a":1e400}`, []broken{{"/a", "must be at most 1" + strings.Repeat("0", 308)}}},
		"NumberKeepsDigits": {"INP-15: digits beyond a float's precision count.", draft04,
			`"properties": {"a": {"maximum": 123456789012345678901234567890}}`,
			`{"a":123456789012345678901234567891}`, []broken{{"/a", "must be at most 123456789012345678901234567890"}}},
		"NestedDeeply": {"INP-15: deep nesting is refused or accepted, never a crash.", draft04, ``,
			`{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, []broken{{"", "must be a JSON object"}}},
	}
}

// Each keyword of a schema is judged and told.
func schemaTests() map[string]checkTest {
	return map[string]checkTest{
		"Type": {"The type is told.", draft04, `"properties": {"a": {"type": "integer"}}`, `{"a":"x"}`,
			[]broken{{"/a", "must be an integer"}}},
		"Types": {"All types are told, in a stable order.", draft04,
			`"properties": {"a": {"type": ["string", "null"]}}`, `{"a":1}`,
			[]broken{{"/a", "must be a string or null"}}},
		"Integer": {"An integer may be written as 2.0.", draft04, `"properties": {"a": {"type": "integer"}}`, `{"a":2.0}`, nil},
		"Enum": {"The allowed values are told as JSON.", draft04,
			`"properties": {"a": {"enum": ["s", 2, true, null]}}`, `{"a":"x"}`,
			[]broken{{"/a", `must be one of "s", 2, true, null`}}},
		"Const": {"So is a single one, with its digits.", draft07, `"properties": {"a": {"const": {"b": 1.50}}}`, `{"a":"x"}`,
			[]broken{{"/a", `must be {"b":1.50}`}}},
		"Format": {"The format is told by its name.", draft07, `"properties": {"a": {"format": "ipv4"}}`, `{"a":"x"}`,
			[]broken{{"/a", `must have the format "ipv4"`}}},
		"Pattern": {"The pattern is told as the schema has it.", draft04,
			`"properties": {"a": {"pattern": "^[a-z]+$"}}`, `{"a":"X"}`,
			[]broken{{"/a", `must match the pattern "^[a-z]+$"`}}},
		"Length": {"Lengths count characters.", draft04,
			`"properties": {"a": {"minLength": 2}, "b": {"maxLength": 1}}`, `{"a":"x","b":"xx"}`,
			[]broken{{"/a", "must have at least 2 characters"}, {"/b", "must have at most 1 character"}}},
		"Required": {"Each missing member is told by itself.", draft04,
			`"properties": {"a": {"required": ["y", "x"]}}`, `{"a":{}}`,
			[]broken{{"/a/x", "is required"}, {"/a/y", "is required"}}},
		"Dependency": {"What makes a member necessary is told.", draft04, `"dependencies": {"a": ["b"]}`, `{"a":1}`,
			[]broken{{"/b", `is required where "a" is given`}}},
		"DependentRequired": {"Also in the words of later drafts.", draft20, `"dependentRequired": {"a": ["b"]}`, `{"a":1}`,
			[]broken{{"/b", `is required where "a" is given`}}},
		"DependentSchemas": {"A dependent schema is told by what it asks.", draft20,
			`"dependentSchemas": {"a": {"required": ["b"]}}`,
			`{"a":1}`, []broken{{"/b", "is required"}}},
		"Additional": {"The allowed names are told, and the one that was perhaps meant; the user's own is not.", draft04,
			`"properties": {"size": {}, "name": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": false`,
			`{"sizes":1, "other":2}`,
			[]broken{{"", `must have no members but "name", "size", names that match "^x-" (2 not known; ` +
				`did you mean "size"?)`}}},
		"AdditionalNone": {"An object without declared members allows none.", draft04,
			`"properties": {"a": {"additionalProperties": false}}`,
			`{"a":{"b":1}}`, []broken{{"/a", `must have no members (1 not known)`}}},
		"AdditionalType": {"A name that the schema does not declare is shown as *.", draft04,
			`"properties": {"a": {"additionalProperties": {"type": "string"}}}`, `{"a":{"b":1}}`,
			[]broken{{"/a/*", `must be a string`}}},
		"Unevaluated": {"Also where the names come from several schemas.", draft20,
			`"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false`, `{"a":1,"b":2}`,
			[]broken{{"/*", "is not allowed here"}}},
		"PropertyNames": {"The rule for names is told, and the object that has one.", draft07,
			`"properties": {"a": {"propertyNames": {"pattern": "^[a-z]+$", "maxLength": 3}}}`, `{"a":{"X":1}}`,
			[]broken{{"/a", `must not have a member of such a name: each name must match the pattern "^[a-z]+$"`}}},
		"MemberCount": {"Members are counted.", draft04,
			`"minProperties": 3, "properties": {"a": {"maxProperties": 0}}`, `{"a":{"b":1}}`,
			[]broken{{"", "must have at least 3 members"}, {"/a", "must have at most 0 members"}}},
		"ItemCount": {"Items are counted.", draft04,
			`"properties": {"a": {"minItems": 1}, "b": {"maxItems": 1}}`, `{"a":[],"b":[1,2]}`,
			[]broken{{"/a", "must have at least 1 item"}, {"/b", "must have at most 1 item"}}},
		"Items": {"Items are told by their index.", draft04,
			`"properties": {"a": {"items": {"type": "string"}}}`, `{"a":["x",1]}`,
			[]broken{{"/a/1", "must be a string"}}},
		"AdditionalItems": {"Items beyond a tuple are counted.", draft04,
			`"properties": {"a": {"items": [{}], "additionalItems": false}}`,
			`{"a":[1,2,3]}`,
			[]broken{{"/a", "must not have the last 2 items"}}},
		"Unique": {"Equal items are told by their indexes; 1 is 1.0.", draft04, `"properties": {"a": {"uniqueItems": true}}`,
			`{"a":[1,2,1.0]}`, []broken{{"/a", "must not have the same item twice: items 0 and 2 are equal"}}},
		"Contains": {"What an item must be is the plan's to say.", draft07,
			`"properties": {"a": {"contains": {"type": "string"}}}`,
			`{"a":[1]}`, []broken{{"/a", "must have at least 1 item of the form that the plan asks for"}}},
		"MinContains": {"With their numbers in later drafts.", draft20,
			`"properties": {"a": {"contains": {"type": "string"}, "minContains": 2}, "b": {"contains": {"type": "string"}, ` +
				`"maxContains": 1}}`,
			`{"a":["x"],"b":["x","y"]}`,
			[]broken{{"/a", "must have at least 2 items of the form that the plan asks for"},
				{"/b", "must have at most 1 item of the form that the plan asks for"}}},
		"Range": {"Limits are told with all their digits.", draft04, `"properties": {"a": {"minimum": 1.5}, "b": {"maximum": 2}}`,
			`{"a":1,"b":3}`, []broken{{"/a", "must be at least 1.5"}, {"/b", "must be at most 2"}}},
		"ExclusiveRange": {"Exclusive limits are told as such.", draft07,
			`"properties": {"a": {"exclusiveMinimum": 1}, "b": {"exclusiveMaximum": 2}, "c": {"multipleOf": 0.25}}`,
			`{"a":1,"b":2,"c":0.3}`,
			[]broken{{"/a", "must be greater than 1"}, {"/b", "must be less than 2"}, {"/c", "must be a multiple of 0.25"}}},
	}
}

// Schemas that are made of others.
func combinedTests() map[string]checkTest {
	return map[string]checkTest{
		"Not": {"What is excluded is the plan's to say.", draft04,
			`"properties": {"a": {"not": {"type": "string"}}}`, `{"a":"x"}`,
			[]broken{{"/a", "must not have the form that the plan excludes"}}},
		"AllOf": {"Each part is told by itself.", draft04,
			`"allOf": [{"properties": {"a": {"type": "string"}}}, {"required": ["b"]}]`,
			`{"a":1}`, []broken{{"/a", "must be a string"}, {"/b", "is required"}}},
		"AnyOf": {"Alternatives for one member are told as one rule.", draft04,
			`"properties": {"a": {"anyOf": [{"type": "boolean"}, {"enum": ["x", "y"]}]}}`, `{"a":"z"}`,
			[]broken{{"/a", `must be a boolean, or must be one of "x", "y"`}}},
		"OneOf": {"Alternatives that are about members name them.", draft04,
			`"oneOf": [{"required": ["a", "b"]}, {"required": ["c"]}]`, `{}`,
			[]broken{{"", "must have one of these forms: parameter /a is required and parameter /b is required, or parameter " +
				"/c is required"}}},
		"OneOfSeveral": {"Having two of the forms is not having one.", draft04,
			`"oneOf": [{"required": ["a"]}, {"required": ["b"]}]`,
			`{"a":1,"b":1}`,
			[]broken{{"", "must have exactly one of the forms that the plan allows, and has several"}}},
		"AnyOfMany": {"A long list of alternatives helps nobody.", draft04,
			`"anyOf": [{"required": ["a", "b", "c", "d"]}, {"required": ["e", "f", "g"]}]`, `{}`,
			[]broken{{"", "must have one of the 2 forms that the plan allows"}}},
		"Conditional": {"A condition is told by what it asks.", draft07,
			`"if": {"required": ["a"]}, "then": {"required": ["b"]}`, `{"a":1}`,
			[]broken{{"/b", "is required"}}},
		"FalseSchema": {"A member can be forbidden.", draft07, `"properties": {"a": false}`, `{"a":1}`,
			[]broken{{"/a", "is not allowed here"}}},
		"Reference": {"References within the schema are followed.", draft04,
			`"definitions": {"d": {"properties": {"b": {"type": "string"}}, "additionalProperties": false}}, ` +
				`"properties": {"a": {"$ref": "#/definitions/d"}}`,
			`{"a":{"b":1,"c":2}}`, []broken{{"/a", `must have no members but "b" (1 not known)`}, {"/a/b", "must be a string"}}},
		"ReferenceCycle": {"A schema that only refers to itself judges nothing; it must not hang.", draft20,
			`"$ref": "#"`, `{"a":1}`,
			[]broken{{"", "do not satisfy the plan's schema"}}},
		"PointerIsEscaped": {"Members are named as JSON pointers write them.", draft04,
			`"properties": {"a/b~c": {"type": "string"}}`,
			`{"a/b~c":1}`, []broken{{"/a~1b~0c", "must be a string"}}},
		"NumericNamesAreHidden": {"A name of digits is no index.", draft04, `"additionalProperties": {"type": "string"}`,
			`{"4111111111111111":1}`, []broken{{"/*", "must be a string"}}},
	}
}

func TestCheck(t *testing.T) {
	cases := inputTests()
	maps.Copy(cases, schemaTests())
	maps.Copy(cases, combinedTests())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := with(t, tc.draft, tc.schema)
			for _, verb := range []catalog.Verb{catalog.Create, catalog.Update, catalog.Bind} {
				err := c.Check(verb, "o", "p", json.RawMessage(tc.params))
				expect.Same(t, fmt.Sprintf("%s\nCheck(%s, ...)", tc.reason, verb), tc.want, violationsOf(t, err))
			}
		})
	}
}

func TestCheckReportsFewAndAlwaysTheSame(t *testing.T) {
	c := with(t, draft04, `"required": ["g", "f", "e", "d", "c", "b", "a"], "properties": {"h": {"type": "string"}}`)
	const want = "parameter /a is required; parameter /b is required; parameter /c is required; parameter /d is required; " +
		"parameter /e is " +
		"required; and 3 more"

	// Members are read from maps, whose order changes from run to run; and
	// requests are checked at once.
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := c.Check(catalog.Create, "o", "p", json.RawMessage(`{"h":1}`))
			if err == nil || err.Error() != want {
				t.Errorf("Check(...): want %q, got %v", want, err)
			}
		})
	}
	wg.Wait()
}

func TestCheckPicksTheSchema(t *testing.T) {
	only := func(where string) string {
		schema := `{parameters: {$schema: "` + draft04 + `", type: object, required: [a]}}`
		switch where {
		case "create", "update":
			return spoil(map[int]string{10: "  description: d\n  schemas: {service_instance: {" + where + ": " + schema + "}}"})
		}
		return spoil(map[int]string{10: "  description: d\n  schemas: {service_binding: {create: " + schema + "}}"})
	}
	type refused struct{ Create, Update, Bind bool }

	cases := map[string]struct {
		reason  string
		text    string
		service string
		plan    string
		want    refused
	}{
		"Create": {"PROV-19: create judges provisions alone.", only("create"), "offering-1", "plan-1", refused{Create: true}},
		"Update": {"UPD-12: update judges updates alone.", only("update"), "offering-1", "plan-1", refused{Update: true}},
		"Bind": {"BIND-15: the binding's schema judges binds alone.", only("bind"), "offering-1",
			"plan-1", refused{Bind: true}},
		"OtherPlan": {"A plan without schemas allows everything.", only("create"), "offering-1", "plan-2", refused{}},
		"UnknownPlan": {"CAT-28: a plan that left the catalog has no schema.", only("create"),
			"offering-1", "plan-0", refused{}},
		"OtherService": {"A plan of another offering is unknown.", only("create"), "offering-0", "plan-1", refused{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := load(map[string]string{"a/offering.yaml": tc.text})
			expect.OK(t, err)
			got := refused{Create: c.Check(catalog.Create, tc.service, tc.plan, nil) != nil,
				Update: c.Check(catalog.Update, tc.service, tc.plan, nil) != nil,
				Bind:   c.Check(catalog.Bind, tc.service, tc.plan, nil) != nil}
			expect.Same(t, fmt.Sprintf("%s\nCheck...(nil)", tc.reason), tc.want, got)
			if c.Check(catalog.Bind, tc.service, tc.plan, json.RawMessage(`5`)) == nil {
				t.Errorf("%s\nCheck(bind, 5): the form is checked even without a schema", tc.reason)
			}
		})
	}
}

// The parameters that an instance has after an update are judged as a whole, by its plan of then
// (UPD-12).
func TestCheckResult(t *testing.T) {
	const (
		strict = `"properties": {"size": {"type": "integer", "maximum": 9}, "zone": {"type": "string"}}, ` +
			`"additionalProperties": false`
		later = `"properties": {"size": {"type": "integer", "maximum": 5}, "rotate": {"type": "integer", "minimum": 1}}, ` +
			`"additionalProperties": false`
	)
	cases := map[string]struct {
		reason         string
		create, update string
		result, given  string
		want           []broken
	}{
		"Allowed": {"All is allowed.", strict, strict, `{"size":1,"zone":"z"}`, `{"size":1}`, nil},
		"Kept": {"What is kept is judged, and named.", strict, strict, `{"size":1,"colour":"red"}`, `{"size":1}`,
			[]broken{{"/colour", "is not a parameter of the plan; give it as null to remove it"}}},
		"KeptSeveral": {"Each by its name.", strict, strict, `{"b":1,"a":1}`, ``,
			[]broken{{"/a", "is not a parameter of the plan; give it as null to remove it"},
				{"/b", "is not a parameter of the plan; give it as null to remove it"}}},
		"KeptValue": {"So is its value.", strict, strict, `{"size":10}`, `{}`, []broken{{"/size", "must be at most 9"}}},
		"KeptUndeclared": {"Also by a rule for names that the schema does not declare.",
			`"additionalProperties": {"type": "string"}`, ``,
			`{"a":1}`, ``, []broken{{"/a", "must be a string"}}},
		"KeptDeep": {"Names below may be a user's own: they are hidden as ever.",
			`"additionalProperties": {"additionalProperties": {"type": "string"}}`, ``, `{"a":{"secret":1}}`, ``,
			[]broken{{"/a/*", "must be a string"}}},
		"KeptUnevaluated": {"In the words of later drafts.",
			`"$schema": "` + draft20 + `", "unevaluatedProperties": false`, ``, `{"a":1}`, ``,
			[]broken{{"/a", "is not allowed here"}}},
		"GivenIsHidden": {"What is given may be a secret in the wrong place.", strict, ``, `{"hunter2":1}`, `{"hunter2":1}`,
			[]broken{{"", `must have no members but "size", "zone" (1 not known)`}}},
		"Required": {"What is required cannot be removed.", `"required": ["size"]`, ``, ``, `{"size":null}`,
			[]broken{{"/size", "is required"}}},
		"RequiredLater": {"What an update must give need not stay.", ``, `"required": ["reason"]`, `{"size":1}`, ``, nil},
		"LaterGiven": {"A member of the update schema alone was judged by it.", strict, later,
			`{"zone":"z","rotate":2}`, `{"rotate":2}`,
			nil},
		"LaterKept": {"And is judged by it when it stays.", strict, later, `{"zone":"z","rotate":0}`, `{"zone":"z"}`,
			[]broken{{"/rotate", "must be at least 1"}}},
		"BothCreate": {"What both know, the create schema judges in the whole.", strict, later, `{"size":7}`, ``, nil},
		"NoSchema":   {"Without schemas all is allowed.", ``, ``, `{"a":1}`, ``, nil},
		"NotAnObject": {"The form is judged all the same.", `"required": ["size"]`, ``, `5`, ``,
			[]broken{{"", "must be a JSON object"}}},
		"UpdateIsNoMore": {"The update schema does not judge what is kept and could be provisioned.", ``,
			strict, `{"a":1}`, ``, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
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
			c, err := load(map[string]string{"a/offering.yaml": `{"id": "o", "name": "one", "description": "d", "provider":
				"demo", "bindable": true, "plans": [{"id": "p", "name": "small", "description": "d"` + schemas + `}]}`})
			expect.OK(t, err)
			err = c.CheckResult("o", "p", json.RawMessage(tc.result), json.RawMessage(tc.given))
			expect.Same(t, fmt.Sprintf("%s\nCheckResult(...)", tc.reason), tc.want, violationsOf(t, err))
		})
	}
}

// TestParameterErrorHidesValues gives a canary as a value, and as a name that
// the schema does not declare, to every keyword.
func TestParameterErrorHidesValues(t *testing.T) {
	const canary = "CANARY-7d1e"
	value := `{"a":"` + canary + `"}`
	list := `{"a":["` + canary + `","` + canary + `"]}`
	name := `{"a":{"` + canary + `":"` + canary + `"}}`
	number := `{"a":907020501}` // a secret may be a number

	cases := map[string]struct{ draft, schema, params string }{
		"Type":                  {draft04, `"properties": {"a": {"type": "integer"}}`, value},
		"TypeNumber":            {draft04, `"properties": {"a": {"type": "string"}}`, number},
		"Enum":                  {draft04, `"properties": {"a": {"enum": ["x"]}}`, value},
		"EnumObject":            {draft04, `"properties": {"a": {"enum": [{"x": 1}]}}`, name},
		"Const":                 {draft07, `"properties": {"a": {"const": "x"}}`, value},
		"Pattern":               {draft04, `"properties": {"a": {"pattern": "^x$"}}`, value},
		"Format":                {draft07, `"properties": {"a": {"format": "date-time"}}`, value},
		"FormatURI":             {draft07, `"properties": {"a": {"format": "uri"}}`, `{"a":"://` + canary + `"}`},
		"FormatRegex":           {draft07, `"properties": {"a": {"format": "regex"}}`, `{"a":"(` + canary + `"}`},
		"MinLength":             {draft04, `"properties": {"a": {"minLength": 99}}`, value},
		"MaxLength":             {draft04, `"properties": {"a": {"maxLength": 1}}`, value},
		"Minimum":               {draft04, `"properties": {"a": {"minimum": 1e9}}`, number},
		"Maximum":               {draft04, `"properties": {"a": {"maximum": 1}}`, number},
		"ExclusiveMinimum":      {draft07, `"properties": {"a": {"exclusiveMinimum": 1e9}}`, number},
		"ExclusiveMaximum":      {draft07, `"properties": {"a": {"exclusiveMaximum": 1}}`, number},
		"MultipleOf":            {draft04, `"properties": {"a": {"multipleOf": 2}}`, number},
		"Required":              {draft04, `"properties": {"a": {"required": ["x"]}}`, name},
		"AdditionalProperties":  {draft04, `"properties": {"a": {"additionalProperties": false}}`, name},
		"AdditionalIsSchema":    {draft04, `"properties": {"a": {"additionalProperties": {"type": "integer"}}}`, name},
		"PatternProperties":     {draft04, `"properties": {"a": {"patternProperties": {"^C": {"type": "integer"}}}}`, name},
		"UnevaluatedProperties": {draft20, `"properties": {"a": {"unevaluatedProperties": false}}`, name},
		"PropertyNames": {draft07, `"properties": {"a": {"propertyNames": {"pattern": "^x$", "enum": ["x"], ` +
			`"format": "uri"}}}`, name},
		"MinProperties":     {draft04, `"properties": {"a": {"minProperties": 9}}`, name},
		"MaxProperties":     {draft04, `"properties": {"a": {"maxProperties": 0}}`, name},
		"Dependency":        {draft04, `"dependencies": {"a": ["x"]}`, value},
		"DependentRequired": {draft20, `"dependentRequired": {"a": ["x"]}`, value},
		"MinItems":          {draft04, `"properties": {"a": {"minItems": 9}}`, list},
		"MaxItems":          {draft04, `"properties": {"a": {"maxItems": 1}}`, list},
		"UniqueItems":       {draft04, `"properties": {"a": {"uniqueItems": true}}`, list},
		"AdditionalItems":   {draft04, `"properties": {"a": {"items": [{}], "additionalItems": false}}`, list},
		"Items":             {draft04, `"properties": {"a": {"items": {"enum": [1]}}}`, list},
		"UnevaluatedItems":  {draft20, `"properties": {"a": {"unevaluatedItems": false}}`, list},
		"Contains":          {draft07, `"properties": {"a": {"contains": {"const": 1}}}`, list},
		"MinContains":       {draft20, `"properties": {"a": {"contains": {"type": "string"}, "minContains": 3}}`, list},
		"MaxContains":       {draft20, `"properties": {"a": {"contains": {"type": "string"}, "maxContains": 1}}`, list},
		"Not":               {draft04, `"properties": {"a": {"not": {"type": "string"}}}`, value},
		"AllOf":             {draft04, `"properties": {"a": {"allOf": [{"enum": [1]}, {"pattern": "^x$"}]}}`, value},
		"AnyOf":             {draft04, `"properties": {"a": {"anyOf": [{"enum": [1]}, {"pattern": "^x$"}]}}`, value},
		"AnyOfNames": {draft07,
			`"properties": {"a": {"anyOf": [{"additionalProperties": false}, {"propertyNames": {"const": "x"}}]}}`, name},
		"OneOf":        {draft04, `"properties": {"a": {"oneOf": [{"enum": [1]}, {"pattern": "^x$"}]}}`, value},
		"OneOfSeveral": {draft04, `"properties": {"a": {"oneOf": [{"type": "string"}, {"pattern": "C"}]}}`, value},
		"Then":         {draft07, `"if": {"required": ["a"]}, "then": {"properties": {"a": {"enum": [1]}}}`, value},
		"FalseSchema":  {draft07, `"properties": {"a": false}`, value},
		"Reference":    {draft20, `"$defs": {"d": {"enum": [1]}}, "properties": {"a": {"$ref": "#/$defs/d"}}`, value},
		"NotJSON":      {draft04, ``, `{"a":` + canary + `}`},
		"NotAnObject":  {draft04, ``, `"` + canary + `"`},
		"Extreme":      {draft04, ``, `{"` + canary + `":907020501e99999}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := with(t, tc.draft, tc.schema).Check(catalog.Create, "o", "p", json.RawMessage(tc.params))
			if err == nil {
				t.Fatal("the parameters must be refused, else this proves nothing")
			}
			for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
				if strings.Contains(shown, canary) || strings.Contains(shown, "907020501") {
					t.Errorf("a value must not reach an error: %s", shown)
				}
			}
		})
	}
}
