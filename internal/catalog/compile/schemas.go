package compile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

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

// schemaURL names the one schema of a compiler. It can be fetched by nobody.
const schemaURL = "parameters:///schema"

// offline refuses every schema from elsewhere: neither a file nor a URL is
// ever read, whatever a schema refers to.
type offline struct{}

func (offline) Load(string) (any, error) {
	return nil, errors.New("schemas from elsewhere are not read")
}

// faultsOf checks a schema by CAT-21: by the schema of its draft, and as it
// will be used.
func faultsOf(text []byte) []fault {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	document, ok := root.(map[string]any)
	if err != nil || !ok || !schema.Known(document["$schema"]) || document["type"] != "object" {
		return nil // which is noted already
	}
	if faults := references(root, nil); len(faults) > 0 {
		return faults
	}
	if err := follow(root); err != nil {
		return explain(err)
	}
	if _, err := schema.New(text); err != nil {
		return []fault{{what: "cannot be used: " + strings.ReplaceAll(err.Error(), "\n", "; "), remedy: "write what it means in another way"}}
	}
	return nil
}

// follow checks that a schema follows its draft. The library panics on some
// schemas instead of refusing them: an operator is owed a line number all the
// same.
func follow(root any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cannot be compiled")
		}
	}()
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(offline{})
	if err := compiler.AddResource(schemaURL, root); err != nil {
		return err
	}
	_, err = compiler.Compile(schemaURL)
	return err
}

// explain turns the library's refusal into faults. What breaks the rules of
// JSON Schema has a place.
func explain(err error) []fault {
	const remedy = "correct the schema; patterns are written in RE2 syntax"
	var invalid *jsonschema.SchemaValidationError
	var root *jsonschema.ValidationError
	if !errors.As(err, &invalid) || !errors.As(invalid.Err, &root) {
		return []fault{{what: "does not compile: " + strings.ReplaceAll(err.Error(), schemaURL, ""), remedy: remedy}}
	}
	var faults []fault
	for _, e := range leaves(root) {
		// The library's words begin with the place, which is said in our way.
		_, words, _ := strings.Cut(e.Error(), ": ")
		faults = append(faults, fault{location: e.InstanceLocation, what: "is not JSON Schema: " + words, remedy: remedy})
	}
	return faults
}

// leaves are the errors that an error comes down to. Of alternatives that all
// failed it is the one that came furthest: it was probably meant.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return []*jsonschema.ValidationError{slices.MaxFunc(all, func(a, b *jsonschema.ValidationError) int {
			return cmp.Or(len(a.InstanceLocation)-len(b.InstanceLocation), beyondType(a)-beyondType(b))
		})}
	}
	return all
}

// beyondType is 1 for an error about more than the value's type.
func beyondType(e *jsonschema.ValidationError) int {
	if _, ok := e.ErrorKind.(*kind.Type); ok {
		return 0
	}
	return 1
}

// Keywords by what stands below them.
var (
	namedSchemas = []string{"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"}
	plainValues  = []string{"enum", "const", "default", "examples"}
	refKeywords  = []string{"$ref", "$dynamicRef", "$recursiveRef"}
)

// references finds what refers beyond the schema (CAT-21). The library knows
// the published meta-schemas by heart; those are refused here as well, since
// platforms do.
func references(v any, at []string) []fault {
	var faults []fault
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			faults = append(faults, references(item, below(at, strconv.Itoa(i)))...)
		}
	case map[string]any:
		for _, keyword := range slices.Sorted(maps.Keys(v)) {
			value := v[keyword]
			switch target, isString := value.(string); {
			case slices.Contains(plainValues, keyword):
			case slices.Contains(refKeywords, keyword) && isString && !strings.HasPrefix(target, "#"):
				faults = append(faults, fault{location: below(at, keyword), what: "refers to another document",
					remedy: "copy what it refers to under definitions, and refer to it as \"#/definitions/NAME\""})
			case slices.Contains(namedSchemas, keyword):
				named, _ := value.(map[string]any)
				for _, name := range slices.Sorted(maps.Keys(named)) {
					faults = append(faults, references(named[name], below(at, keyword, name))...)
				}
			default:
				faults = append(faults, references(value, below(at, keyword))...)
			}
		}
	}
	return faults
}

func below(at []string, tokens ...string) []string {
	return append(slices.Clone(at), tokens...)
}
