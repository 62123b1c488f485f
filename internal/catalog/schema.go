package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
)

// maxSchema bounds a schema, in bytes of its JSON (CAT-21).
const maxSchema = 64 << 10

// drafts of JSON Schema, by what $schema says without a final "#". Anything
// else would be a schema from elsewhere (CAT-21).
var schemaDrafts = []string{
	"http://json-schema.org/draft-04/schema",
	"http://json-schema.org/draft-06/schema",
	"http://json-schema.org/draft-07/schema",
	"https://json-schema.org/draft/2019-09/schema",
	"https://json-schema.org/draft/2020-12/schema",
}

// planChecks are a plan's compiled schemas; nil allows everything.
type planChecks struct{ create, update, bind *schema }

// A schema is a compiled JSON schema, and what its messages need. It never
// changes: any number of requests may use it at once.
type schema struct {
	compiled *jsonschema.Schema
	root     any
	// declared are the member names that the schema itself speaks of.
	// Messages name no others, since users' own names may be secrets.
	declared map[string]bool
}

// schemas reads a plan's schemas (CAT-20).
func (o object) schemas(name string) (*Schemas, planChecks) {
	var checks planChecks
	so, ok := o.within(name, "service_instance", "service_binding")
	if !ok {
		return nil, checks
	}
	schemas := &Schemas{}
	if io, ok := so.within("service_instance", "create", "update"); ok {
		schemas.ServiceInstance = &InstanceSchemas{}
		schemas.ServiceInstance.Create, checks.create = io.parameters("create")
		schemas.ServiceInstance.Update, checks.update = io.parameters("update")
	}
	if bo, ok := so.within("service_binding", "create"); ok {
		schemas.ServiceBinding = &BindingSchemas{}
		schemas.ServiceBinding.Create, checks.bind = bo.parameters("create")
	}
	return schemas, checks
}

// within reads a member that is a mapping with at least one of the known
// members.
func (o object) within(name string, known ...string) (object, bool) {
	m, ok := o.members[name]
	if !ok {
		return object{}, false
	}
	inner, ok := o.r.object(m.value, join(o.path, name), known...)
	if ok && len(inner.given) == 0 {
		o.problem(name, "is empty", "give it "+strings.Join(known, " or ")+", or remove it")
	}
	return inner, ok
}

// parameters reads one {parameters: schema}.
func (o object) parameters(name string) (*ParametersSchema, *schema) {
	po, ok := o.within(name, "parameters")
	if !ok {
		return nil, nil
	}
	document := po.mapping("parameters", form{nulls: true, exact: true})
	if document == nil {
		return nil, nil
	}
	return &ParametersSchema{Parameters: document}, po.compile("parameters", document)
}

// compile checks a schema and compiles it, once for all plans that share it;
// nil when it has problems.
func (o object) compile(name string, document map[string]any) *schema {
	node := o.members[name].value
	text, err := json.Marshal(document)
	if err != nil || o.r.broken[node] {
		return nil // the value is noted already, perhaps where it was aliased first
	}
	if s, ok := o.r.schemas[string(text)]; ok {
		return s
	}
	s, faults := newSchema(text)
	for _, f := range faults {
		o.r.broken[node] = true
		at, line := join(o.path, name), o.lineOf(name)
		if len(f.location) > 0 {
			at, line = at+" at "+pointer(f.location), locate(node, f.location)
		}
		o.r.problem(line, at+" "+f.what, f.remedy)
	}
	if len(faults) > 0 {
		return nil
	}
	o.r.schemas[string(text)] = s
	return s
}

// locate is the line of a place in a schema, or of what is nearest above.
func locate(n *yaml.Node, location []string) int {
	line := n.Line
	for _, token := range location {
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
			if n.Content[i].Value == token {
				line, next = n.Content[i].Line, resolve(n.Content[i+1])
			}
		}
		if n.Kind == yaml.SequenceNode {
			var i int
			if _, err := fmt.Sscan(token, &i); err == nil && i >= 0 && i < len(n.Content) {
				next = resolve(n.Content[i])
				line = next.Line
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	return line
}

// pointer renders a location as a JSON pointer.
func pointer(location []string) string {
	var b strings.Builder
	for _, token := range location {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
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

// newSchema checks a schema by CAT-21 and by what Cloud Controller asks
// beyond (the root's type), and compiles it.
func newSchema(text []byte) (*schema, []fault) {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	document, ok := root.(map[string]any)
	if err != nil || !ok {
		return nil, []fault{{what: "is not a JSON object", remedy: "write a JSON schema"}}
	}
	var faults []fault
	if len(text) > maxSchema {
		faults = append(faults, fault{what: fmt.Sprintf("is larger than %d bytes of JSON", maxSchema), remedy: "shorten it"})
	}
	const remedy = "begin the schema with $schema: \"http://json-schema.org/draft-04/schema#\", or a later draft's"
	switch draft, given := document["$schema"]; {
	case !given:
		faults = append(faults, fault{what: "has no $schema", remedy: remedy})
	case !isDraft(draft):
		faults = append(faults, fault{location: []string{"$schema"}, what: "is not a published draft of JSON Schema", remedy: remedy})
	}
	if document["type"] != "object" {
		faults = append(faults, fault{what: "does not say type: object", remedy: "add it; parameters are always an object"})
	}
	faults = append(faults, references(root, nil)...)
	if len(faults) > 0 {
		return nil, faults
	}
	compiled, err := compile(root)
	if err != nil {
		return nil, explain(err)
	}
	s := &schema{compiled: compiled, root: root, declared: map[string]bool{}}
	s.declare(root)
	return s, nil
}

func isDraft(v any) bool {
	s, ok := v.(string)
	return ok && slices.Contains(schemaDrafts, strings.TrimSuffix(s, "#"))
}

// compile runs the library, which panics on some schemas instead of refusing
// them: an operator is owed a line number all the same.
func compile(root any) (compiled *jsonschema.Schema, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("cannot be compiled")
		}
	}()
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(offline{})
	if err := compiler.AddResource(schemaURL, root); err != nil {
		return nil, err
	}
	return compiler.Compile(schemaURL)
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
			faults = append(faults, references(item, below(at, fmt.Sprint(i)))...)
		}
	case map[string]any:
		for _, keyword := range names(v) {
			value := v[keyword]
			switch target, isString := value.(string); {
			case slices.Contains(plainValues, keyword):
			case slices.Contains(refKeywords, keyword) && isString && !strings.HasPrefix(target, "#"):
				faults = append(faults, fault{location: below(at, keyword), what: "refers to another document",
					remedy: "copy what it refers to under definitions, and refer to it as \"#/definitions/NAME\""})
			case slices.Contains(namedSchemas, keyword):
				named, _ := value.(map[string]any)
				for _, name := range names(named) {
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

// names are a mapping's member names, sorted.
func names(m map[string]any) []string {
	all := make([]string, 0, len(m))
	for name := range m {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// declare collects the member names that the schema speaks of.
func (s *schema) declare(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			s.declare(item)
		}
	case map[string]any:
		for keyword, value := range v {
			switch value := value.(type) {
			case map[string]any:
				if slices.Contains([]string{"properties", "dependencies", "dependentSchemas", "dependentRequired"}, keyword) {
					for name := range value {
						s.declared[name] = true
					}
				}
			case []any:
				if keyword == "required" {
					for _, name := range value {
						if name, ok := name.(string); ok {
							s.declared[name] = true
						}
					}
				}
			}
			s.declare(value)
		}
	}
}
