package compile_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/internal/test/catalogtest"
	"github.com/longshore/longshore/internal/test/expect"
)

// All schemas of the suite follow their drafts, but for an empty enum, references to elsewhere and what only those name.
func TestSuiteFollowsItsDrafts(t *testing.T) {
	looked := 0
	for _, of := range catalogtest.Suite(t, "../schema/testdata/suite.jsonl.gz") {
		document := map[string]any{}
		if json.Unmarshal(of.Schema, &document) != nil || document["type"] != nil && document["type"] != "object" {
			continue
		}
		whole := map[string]any{"$schema": of.Draft, "type": "object"}
		maps.Copy(whole, document)
		looked++
		for _, v := range compile.ViolationsOf(expect.Get(json.Marshal(whole))(t)) {
			if !strings.Contains(v.Rule, "another document") && !strings.Contains(v.Rule, "id of their own") &&
				of.About != "enum: empty enum" && !strings.Contains(v.Rule, "refers to nothing") &&
				!strings.Contains(v.Rule, "another draft") {
				t.Errorf("%s %s: %v", of.Draft, of.About, v)
			}
		}
	}
	if looked < 1000 {
		t.Errorf("only %d schemas were looked at", looked)
	}
}

// A value that no draft allows behind a keyword is found where it stands.
func TestKeywords(t *testing.T) {
	judged := func(draft, members string) []schema.Violation {
		return compile.ViolationsOf([]byte(`{"$schema": "http://json-schema.org/` + draft + `/schema#", "type": "object", ` +
			members + `}`))
	}
	for _, c := range [][2]string{
		{`"additionalProperties": 1`, "additionalProperties"}, {`"not": []`, "not"}, {`"items": "x"`, "items"},
		{`"items": [1]`, "items/0"}, {`"allOf": []`, "allOf"}, {`"anyOf": {}`, "anyOf"},
		{`"oneOf": [{"not": 1}]`, "oneOf/0/not"}, {`"definitions": []`, "definitions"},
		{`"properties": {"a": []}`, "properties/a"}, {`"patternProperties": {"(": {}}`, "patternProperties/("},
		{`"dependencies": {"a": ["b", "b"]}`, "dependencies/a"}, {`"dependentRequired": {"a": {}}`, "dependentRequired/a"},
		{`"minLength": -1`, "minLength"}, {`"maxItems": 1.5`, "maxItems"}, {`"minProperties": "1"`, "minProperties"},
		{`"maximum": "1"`, "maximum"}, {`"multipleOf": 0`, "multipleOf"}, {`"exclusiveMinimum": true`, "exclusiveMinimum"},
		{`"required": "a"`, "required"}, {`"required": ["a", "a"]`, "required"},
		{`"properties": {"a": {"type": 1}}`, "properties/a/type"},
		{`"properties": {"a": {"type": "strng"}}`, "properties/a/type"}, {`"uniqueItems": "yes"`, "uniqueItems"},
		{`"enum": []`, "enum"}, {`"properties": {"a": {"type": ["string", "x"]}}`, "properties/a/type/1"},
		{`"enum": {}`, "enum"}, {`"pattern": "(?=x)"`, "pattern"}, {`"pattern": 1`, "pattern"}, {`"$ref": 1`, "$ref"},
		{`"$ref": "x"`, "$ref"}, {`"title": 1`, "title"}, {`"description": {}`, "description"}, {`"if": 1`, "if"},
		{`"const": {"type": 1}, "default": {"items": 1}, "x-own": {"type": 1}, "properties": {"a": true}`, ""},
	} {
		text, at := c[0], c[1]
		broken := judged("draft-07", text)
		if len(broken) > 1 || (len(broken) == 0) != (at == "") || at != "" && broken[0].Member != "/"+at {
			t.Errorf("%s: %v, want one at %q", text, broken, at)
		}
	}
	for text, ok := range map[string]bool{
		`"exclusiveMinimum": true, "minimum": 1`: true, `"exclusiveMinimum": 1`: false, `"additionalProperties": false`: true,
		`"properties": {"a": true}`: false,
	} {
		broken := judged("draft-04", text)
		expect.Same(t, fmt.Sprint("draft-04: ", text, broken), ok, len(broken) == 0)
	}
}

// One run tells all that is wrong: values that no draft allows, and references to nothing.
func TestAllThatIsWrongWithASchema(t *testing.T) {
	broken := compile.ViolationsOf([]byte(`{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties":
		{"a": {"type": "strng"}, "b": {"$ref": "#/definitions/b"}, "c": {"pattern": "(?=x)"}}, "exclusiveMinimum": 1}`))
	var at []string
	for _, v := range broken {
		at = append(at, v.Member)
	}
	slices.Sort(at)
	expect.Same(t, "it is wrong at", "/exclusiveMinimum /properties/a/type /properties/b/$ref /properties/c/pattern",
		strings.Join(at, " "))
}
