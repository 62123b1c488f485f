package catalog_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
)

// FuzzCheck requires that no parameters make a check panic, and that what the
// error says is the same each time.
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
