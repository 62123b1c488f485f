package compile_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
)

// FuzzLoad requires that no file makes Load panic, hang, or say nothing of
// what it refuses.
func FuzzLoad(f *testing.F) {
	f.Add(sound)
	f.Add(spoil(map[int]string{10: "  description: d\n  schemas: &s {service_instance: {create: {parameters: {$schema: " +
		"\"http://json-schema.org/draft-04/schema#\", type: object, id: \"x#y\", properties: {a: {$ref: \"#\"}}}}}}",
		13: "  <<: {schemas: *s}\n  description: d"}))
	f.Add(spoil(map[int]string{10: "  description: d\n  schemas: {service_binding: {create: {parameters: {$schema: " +
		"\"https://json-schema.org/draft/2020-12/schema\", type: object, $id: \"a:b\", $dynamicAnchor: a, $defs: {b: {$id: c, " +
		"$anchor: a}}}}}}"}))
	f.Add("&a {b: *a, <<: [*a, *a]}")
	f.Add("[[[[")
	f.Add("a: !!binary x\n? [b]\n: !!float z\n")
	f.Add("---\n...\n---\n")
	f.Add("id: \x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := load(map[string]string{"a/offering.yaml": text})
		var problems compile.Problems
		switch {
		case err == nil && c == nil, err != nil && c != nil:
			t.Fatalf("want either a catalog or an error, got %v, %v", c, err)
		case err != nil && (!errors.As(err, &problems) || len(problems) == 0):
			t.Fatalf("want problems, got %T: %v", err, err)
		case err == nil:
			for _, o := range c.Offerings() {
				if _, err := json.Marshal(o); err != nil {
					t.Fatalf("what loads must have a form in JSON: %v", err)
				}
				for _, p := range o.Plans {
					// A schema that compiles must be able to judge.
					_ = c.Check(catalog.Create, o.ID, p.ID, json.RawMessage(`{"a":{"b":[1,2.5e3,null,"x"]}}`))
				}
			}
		}
		for _, p := range problems {
			if p.What == "" || p.Remedy == "" || p.Line < 1 {
				t.Errorf("want line, words and remedy, got %+v", p)
			}
		}
	})
}
