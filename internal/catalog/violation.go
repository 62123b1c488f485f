package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/longshore/longshore/internal/spelling"
)

// maxListed bounds the values and names that one rule lists.
const maxListed = 20

// A violation is one rule that one member breaks.
type violation struct{ member, rule string }

// A telling puts the library's findings into words. The words come from the
// schema alone; of the parameters it tells only types, sizes and places. The
// library's own messages are never used: they quote values.
type telling struct {
	schema     *schema
	parameters map[string]any
	// kept are members that the instance has already. They are named even where
	// the schema does not know them.
	kept map[string]any
}

// of lists what the library's finding comes down to; nothing where it is nil.
func (t *telling) of(err error) []violation {
	var invalid *jsonschema.ValidationError
	switch {
	case errors.As(err, &invalid):
		return t.violations(invalid)
	case err != nil:
		// The library's words may quote values: they are not passed on.
		return []violation{{rule: "do not satisfy the plan's schema"}}
	}
	return nil
}

// violations lists what an error and its causes come down to.
func (t *telling) violations(e *jsonschema.ValidationError) []violation {
	at := t.place(e.InstanceLocation)
	one := func(format string, args ...any) []violation {
		return []violation{{member: at, rule: fmt.Sprintf(format, args...)}}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		return t.all(e.Causes)

	case *kind.Required:
		return t.missing(e.InstanceLocation, k.Missing, "is required")
	case *kind.Dependency:
		return t.missing(e.InstanceLocation, k.Missing, fmt.Sprintf("is required where %q is given", k.Prop))
	case *kind.DependentRequired:
		return t.missing(e.InstanceLocation, k.Missing, fmt.Sprintf("is required where %q is given", k.Prop))
	case *kind.AdditionalProperties:
		if len(e.InstanceLocation) > 0 {
			return one("%s", t.unknown(e.SchemaURL, k.Properties))
		}
		return t.unknownMembers(e.SchemaURL, k.Properties)
	case *kind.PropertyNames:
		// The library does not say in which object the name stands.
		return []violation{{member: namedObject(e.SchemaURL), rule: "must not have a member of such a name: each name " + rules(t.all(e.Causes))}}
	case *kind.MinProperties:
		return one("must have at least %s", count(k.Want, "member"))
	case *kind.MaxProperties:
		return one("must have at most %s", count(k.Want, "member"))

	case *kind.Type:
		return one("must be %s", types(k.Want))
	case *kind.Enum:
		return one("must be %s", values(k.Want))
	case *kind.Const:
		return one("must be %s", values([]any{k.Want}))
	case *kind.Format:
		return one("must have the format %q", k.Want)
	case *kind.FalseSchema:
		return one("is not allowed here")

	case *kind.MinItems:
		return one("must have at least %s", count(k.Want, "item"))
	case *kind.MaxItems:
		return one("must have at most %s", count(k.Want, "item"))
	case *kind.AdditionalItems:
		return one("must not have the last %s", count(k.Count, "item"))
	case *kind.UniqueItems:
		return one("must not have the same item twice: items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return one("must have at least 1 item of the form that the plan asks for")
	case *kind.MinContains:
		return one("must have at least %s of the form that the plan asks for", count(k.Want, "item"))
	case *kind.MaxContains:
		return one("must have at most %s of the form that the plan asks for", count(k.Want, "item"))

	case *kind.MinLength:
		return one("must have at least %s", count(k.Want, "character"))
	case *kind.MaxLength:
		return one("must have at most %s", count(k.Want, "character"))
	case *kind.Pattern:
		return one("must match the pattern %q", k.Want)
	case *kind.ContentEncoding:
		return one("must be encoded as %q", k.Want)
	case *kind.ContentMediaType:
		return one("must be of the media type %q", k.Want)

	case *kind.Minimum:
		return one("must be at least %s", decimal(k.Want))
	case *kind.Maximum:
		return one("must be at most %s", decimal(k.Want))
	case *kind.ExclusiveMinimum:
		return one("must be greater than %s", decimal(k.Want))
	case *kind.ExclusiveMaximum:
		return one("must be less than %s", decimal(k.Want))
	case *kind.MultipleOf:
		return one("must be a multiple of %s", decimal(k.Want))

	case *kind.Not:
		return one("must not have the form that the plan excludes")
	case *kind.AnyOf:
		return one("%s", t.alternatives(at, e.Causes))
	case *kind.OneOf:
		if len(k.Subschemas) > 0 {
			return one("must have exactly one of the forms that the plan allows, and has several")
		}
		return one("%s", t.alternatives(at, e.Causes))
	}
	return one("%s", refusal(at))
}

// refusal is the rule where nothing better can be said.
func refusal(at string) string {
	if at == "" {
		return "do not satisfy the plan's schema"
	}
	return "does not satisfy the plan's schema"
}

func (t *telling) all(causes []*jsonschema.ValidationError) []violation {
	var all []violation
	for _, c := range causes {
		all = append(all, t.violations(c)...)
	}
	return all
}

// missing tells each missing member by itself. Its name is the schema's.
func (t *telling) missing(in []string, missing []string, rule string) []violation {
	all := make([]violation, len(missing))
	for i, name := range missing {
		all[i] = violation{member: t.place(in) + pointer([]string{name}), rule: rule}
	}
	return all
}

// unknownMembers tells each kept member by itself, and the others together.
func (t *telling) unknownMembers(schemaAt string, unknown []string) []violation {
	var all []violation
	var given []string
	for _, name := range unknown {
		if _, kept := t.kept[name]; kept {
			all = append(all, violation{member: pointer([]string{name}), rule: "is not a parameter of the plan; give it as null to remove it"})
		} else {
			given = append(given, name)
		}
	}
	if len(given) > 0 {
		all = append(all, violation{rule: t.unknown(schemaAt, given)})
	}
	return all
}

// unknown tells of members that a schema does not allow: which it does, and
// which were perhaps meant.
func (t *telling) unknown(schemaAt string, unknown []string) string {
	var allowed, patterns []string
	if object, ok := t.schema.at(schemaAt).(map[string]any); ok {
		properties, _ := object["properties"].(map[string]any)
		byPattern, _ := object["patternProperties"].(map[string]any)
		allowed, patterns = names(properties), names(byPattern)
	}
	rule := "must have no members"
	if known := append(quoted(allowed), prefixed("names that match ", quoted(patterns))...); len(known) > 0 {
		rule += " but " + listed(known)
	}
	rule += fmt.Sprintf(" (%d not known", len(unknown))
	var meant []string
	for _, name := range unknown {
		if near := spelling.Nearest(name, allowed); near != "" && !slices.Contains(meant, near) {
			meant = append(meant, near)
		}
	}
	if len(meant) > 0 {
		slices.Sort(meant)
		rule += "; did you mean " + listed(quoted(meant)) + "?"
	}
	return rule + ")"
}

// alternatives tells the forms of which the member must have one.
func (t *telling) alternatives(at string, branches []*jsonschema.ValidationError) string {
	const most = 6 // violations; more would bury the user
	var told []string
	total, here := 0, true
	for _, b := range branches {
		violations := t.violations(b)
		slices.SortFunc(violations, func(a, b violation) int { return strings.Compare(a.member+a.rule, b.member+b.rule) })
		violations = slices.Compact(violations)
		total += len(violations)
		for _, v := range violations {
			here = here && v.member == at
		}
		if branch := rules(violations); !slices.Contains(told, branch) {
			told = append(told, branch)
		}
	}
	switch {
	case here && total <= most:
		return strings.Join(told, ", or ")
	case total > most:
		return fmt.Sprintf("must have one of the %d forms that the plan allows", len(branches))
	}
	told = told[:0]
	for _, b := range branches {
		var clauses []string
		for _, v := range t.violations(b) {
			clauses = append(clauses, (&ParameterError{Member: v.member, Rule: v.rule}).clause())
		}
		slices.Sort(clauses)
		told = append(told, strings.Join(slices.Compact(clauses), " and "))
	}
	return "must have one of these forms: " + strings.Join(told, ", or ")
}

// rules joins the rules of violations that are about one thing.
func rules(violations []violation) string {
	all := make([]string, len(violations))
	for i, v := range violations {
		all[i] = v.rule
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " and ")
}

// place renders a location in the parameters as a JSON pointer. A member's
// name is told only if the schema declares it: a name may be a secret too,
// such as a key of a user's own map.
func (t *telling) place(location []string) string {
	var v any = t.parameters
	told := make([]string, len(location))
	for i, token := range location {
		told[i] = "*"
		switch in := v.(type) {
		case map[string]any:
			if _, kept := t.kept[token]; t.schema.declared[token] || kept && i == 0 {
				told[i] = token
			}
			v = in[token]
		case []any:
			if n, err := strconv.Atoi(token); err == nil && n >= 0 && n < len(in) {
				told[i] = token
				v = in[n]
			} else {
				v = nil
			}
		default:
			v = nil
		}
	}
	return pointer(told)
}

// at finds the part of the schema that an absolute location names; nil if it
// cannot.
func (s *schema) at(location string) any {
	tokens, ok := schemaTokens(location)
	v := s.root
	for _, token := range tokens {
		switch in := v.(type) {
		case map[string]any:
			v = in[token]
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
	if !ok {
		return nil
	}
	return v
}

// schemaTokens takes the JSON pointer out of an absolute schema location.
func schemaTokens(location string) ([]string, bool) {
	base, fragment, _ := strings.Cut(location, "#")
	if base != schemaURL {
		return nil, false
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, false
	}
	tokens := strings.Split(fragment, "/")[1:]
	for i, token := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens, true
}

// namedObject is where the object stands whose propertyNames a schema
// location names: known when only properties lead there, else empty.
func namedObject(location string) string {
	tokens, ok := schemaTokens(location)
	var at []string
	for ok && len(tokens) > 1 && tokens[0] == "properties" {
		at, tokens = append(at, tokens[1]), tokens[2:]
	}
	if len(tokens) != 1 || tokens[0] != "propertyNames" {
		return ""
	}
	return pointer(at)
}

// types renders types as "a string or null".
func types(all []string) string {
	articled := make([]string, len(all))
	for i, name := range all {
		switch name {
		case "null":
			articled[i] = name
		case "array", "integer", "object":
			articled[i] = "an " + name
		default:
			articled[i] = "a " + name
		}
	}
	slices.Sort(articled)
	return strings.Join(articled, " or ")
}

// values renders what an enum or const of the schema allows.
func values(allowed []any) string {
	all := make([]string, len(allowed))
	for i, v := range allowed {
		all[i] = "another value"
		if text, err := json.Marshal(v); err == nil {
			all[i] = string(text)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return "one of " + listed(all)
}

func quoted(all []string) []string {
	q := make([]string, len(all))
	for i, s := range all {
		q[i] = strconv.Quote(s)
	}
	return q
}

func prefixed(prefix string, all []string) []string {
	for i, s := range all {
		all[i] = prefix + s
	}
	return all
}

func listed(all []string) string {
	if len(all) > maxListed {
		return strings.Join(all[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(all)-maxListed)
	}
	return strings.Join(all, ", ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// decimal renders a number of the schema with all its digits.
func decimal(r *big.Rat) string {
	if digits, exact := r.FloatPrec(); exact && digits <= maxListed {
		return r.FloatString(digits)
	}
	return r.RatString()
}
