package compile

import (
	_ "embed"
	"fmt"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/schema"
)

// maxSchema bounds a schema, in bytes of its JSON (CAT-21).
const maxSchema = 64 << 10

// schemas checks a plan's schemas (CAT-20). The schema of offering files already requires that
// each of them begins with a draft and describes an object.
func (d *draft) schemas(s *catalog.Schemas, at string) {
	for _, of := range []struct {
		verb  catalog.Verb
		below string
	}{
		{catalog.Create, "/service_instance/create"}, {catalog.Update, "/service_instance/update"},
		{catalog.Bind, "/service_binding/create"},
	} {
		p, at := s.For(of.verb), at+of.below+"/parameters"
		if p == nil {
			continue
		}
		if len(p.Parameters) > maxSchema {
			d.about(at, fmt.Sprintf("is larger than %d bytes of JSON", maxSchema), "shorten it")
		}
		for _, v := range violationsOf(p.Parameters) {
			d.about(at+v.Member, v.Rule, v.Remedy)
		}
	}
}

//go:embed keywords.schema.json
var keywordsText []byte

// ofKeywords is the schema of keywords' values. The drafts agree on most keywords; a keyword
// that only a later draft knows is checked all the same.
var ofKeywords = schema.Own("keywords", keywordsText)

// violationsOf checks a schema by CAT-21: whether its keywords have valid values, and whether it compiles for use.
func violationsOf(text []byte) []schema.Violation {
	root, _ := schema.Parse(text)
	document, ok := root.(map[string]any)
	if !ok || !schema.Known(document["$schema"]) || document["type"] != "object" {
		return nil // the problem is noted already
	}
	compiled, broken := schema.New(text)
	if compiled == nil {
		return broken
	}
	return append(ofKeywords().Explain(document), broken...)
}
