package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/suggest"
)

// A Violation is one rule that one member of a value breaks.
type Violation struct {
	// Member is a JSON pointer into the value; empty for the whole. A name that
	// the schema does not know is shown as "*".
	Member string
	// Rule is what the member must be, as the rest of a sentence.
	Rule string
	// Remedy is what to do, as the schema's description says; Explain alone
	// tells it.
	Remedy string
}

// Judge finds what a value, as of Parse, breaks, in no order. It names the
// members of kept even where the schema does not know them.
func (s *Schema) Judge(v any, kept map[string]any) []Violation {
	j := &judge{schema: s, kept: kept}
	found, _ := j.node(s.root, v, nil, nil)
	return found
}

// Explain is Judge for values that hold no secret: it tells all names, each
// member that is not known by itself, and what to do.
func (s *Schema) Explain(v any) []Violation {
	found, _ := (&judge{schema: s, open: true}).node(s.root, v, nil, nil)
	return found
}

// Has reports whether the schema has a member under its properties.
func (s *Schema) Has(name string) bool { return s.root.properties[name] != nil }

// JudgeMember finds what one member breaks that the schema has.
func (s *Schema) JudgeMember(name string, v any) []Violation {
	found, _ := (&judge{schema: s}).node(s.root.properties[name], v, &place{name: name}, nil)
	return found
}

type judge struct {
	schema *Schema
	kept   map[string]any
	open   bool // names and remedies are told
}

// A place is a value's within the whole; nil for the whole.
type place struct {
	above *place
	name  string
	index int // if name is not the member's
	item  bool
	// remedy is what the schema says of it, where it is told.
	remedy string
}

// A trail is the schemas that are judging one value, to find one that refers to
// itself for ever.
type trail struct {
	above *trail
	node  *node
}

// A judged is what of one value schemas have judged: unevaluatedProperties and
// unevaluatedItems are about the others.
type judged struct {
	members map[string]bool
	items   map[int]bool
}

func (d *judged) add(o judged) {
	if d.members != nil { // else nobody asks
		maps.Copy(d.members, o.members)
		maps.Copy(d.items, o.items)
	}
}

func (d *judged) member(name string) {
	if d.members != nil {
		d.members[name] = true
	}
}

func (d *judged) item(i int) {
	if d.items != nil {
		d.items[i] = true
	}
}

// A visit is one schema judging one value.
type visit struct {
	*judge
	n     *node
	v     any
	at    *place
	trail *trail
	found []Violation
	seen  judged
}

func (j *judge) node(n *node, v any, at *place, above *trail) ([]Violation, judged) {
	t := &visit{judge: j, n: n, v: v, at: at, trail: &trail{above, n}}
	if j.schema.tracks {
		t.seen = judged{map[string]bool{}, map[int]bool{}}
	}
	for o := above; o != nil; o = o.above {
		if o.node == n {
			t.tell("%s", refusal(t.member(at)))
			return t.found, t.seen
		}
	}
	if !t.plain() {
		return t.found, t.seen
	}
	for _, ref := range n.refs {
		t.same(ref)
	}
	switch v := v.(type) {
	case map[string]any:
		t.object(v)
	case []any:
		t.array(v)
	case string:
		t.text(v)
	case json.Number:
		t.number(v)
	}
	t.combined()
	t.rest()
	return t.found, t.seen
}

func (t *visit) tell(format string, args ...any) {
	t.found = append(t.found, Violation{t.member(t.at), fmt.Sprintf(format, args...), t.remedy(t.n)})
}

// remedy is what the schema says of a value, or of what that is in.
func (t *visit) remedy(of *node) string {
	switch said := of.says(); {
	case !t.open:
		return ""
	case said == "" && t.at != nil:
		return t.at.remedy
	default:
		return said
	}
}

// same has another schema judge the same value, and reports whether it is
// content.
func (t *visit) same(n *node) bool {
	found, seen := t.node(n, t.v, t.at, t.trail)
	t.found = append(t.found, found...)
	if len(found) == 0 {
		t.seen.add(seen)
	}
	return len(found) == 0
}

// tries has another schema judge the same value without consequence.
func (t *visit) tries(n *node) (found []Violation) {
	found, seen := t.node(n, t.v, t.at, t.trail)
	if len(found) == 0 {
		t.seen.add(seen)
	}
	return found
}

// below has a schema judge a member or an item.
func (t *visit) below(n *node, v any, at *place) {
	found, _ := t.node(n, v, at, nil)
	t.found = append(t.found, found...)
}

func (t *visit) of(name string) *place {
	return &place{above: t.at, name: name, remedy: t.remedy(t.n.properties[name])}
}

func (t *visit) nth(i int) *place {
	return &place{above: t.at, index: i, item: true, remedy: t.remedy(t.n)}
}

// plain judges what is about the value as such. What breaks it says all.
func (t *visit) plain() bool {
	n := t.n
	text, isText := t.v.(string)
	switch judges := formats[n.format]; {
	case n.never:
		t.tell("is not allowed here")
	case n.types != nil && t.open && t.v == nil && !slices.Contains(n.types, "null"):
		t.tell("has no value")
	case n.types != nil && !slices.ContainsFunc(n.types, func(name string) bool { return isOf(t.v, name) }):
		t.tell("must be %s", types(n.types))
	case n.enum != nil && !slices.ContainsFunc(n.enum, func(v any) bool { return equal(t.v, v) }):
		t.tell("must be %s", values(n.enum))
		if near := suggest.Nearest(text, texts(n.enum)); near != "" && t.open {
			t.found[len(t.found)-1].Remedy = fmt.Sprintf("did you mean %q?", near)
		}
	case isText && judges != nil && !judges(text):
		t.tell("must have the format %q", n.format)
	default:
		return true
	}
	return false
}

func (t *visit) object(v map[string]any) {
	n := t.n
	if len(v) < n.minProperties {
		t.tell("must have at least %s", count(n.minProperties, "member"))
	}
	if n.maxProperties >= 0 && len(v) > n.maxProperties {
		t.tell("must have at most %s", count(n.maxProperties, "member"))
	}
	t.require(v, n.required, "is required")
	for name, needed := range n.needs {
		if _, given := v[name]; given {
			t.require(v, needed, fmt.Sprintf("is required where %q is given", name))
		}
	}
	for name, dependent := range n.dependents {
		if _, given := v[name]; given {
			t.same(dependent)
		}
	}
	var unknown []string
	for name, value := range v {
		judges := t.judgesOf(name)
		if len(judges) == 0 && n.additional != nil {
			if n.additional.never {
				unknown = append(unknown, name)
			}
			judges = []*node{n.additional}
		}
		for _, below := range judges {
			if !below.never || below != n.additional {
				t.below(below, value, t.of(name))
			}
			t.seen.member(name)
		}
		if n.propertyNames != nil {
			t.name(name)
		}
	}
	t.unknown(unknown)
}

// judgesOf are the schemas for a member by its name.
func (t *visit) judgesOf(name string) []*node {
	var judges []*node
	if below, ok := t.n.properties[name]; ok {
		judges = append(judges, below)
	}
	for pattern, below := range t.n.patterns {
		if pattern.MatchString(name) {
			judges = append(judges, below)
		}
	}
	return judges
}

func (t *visit) require(v map[string]any, names []string, rule string) {
	for _, name := range names {
		if _, given := v[name]; !given { // its name is the schema's
			t.found = append(t.found, Violation{t.member(t.at) + "/" + escape(name), rule, t.remedy(t.n.properties[name])})
		}
	}
}

// name judges a member's name, which is not told.
func (t *visit) name(name string) {
	if found, _ := t.node(t.n.propertyNames, name, t.at, nil); len(found) > 0 {
		t.tell("must not have a member of such a name: each name %s", rules(found))
	}
}

func (t *visit) array(v []any) {
	n := t.n
	if len(v) < n.minItems {
		t.tell("must have at least %s", count(n.minItems, "item"))
	}
	if n.maxItems >= 0 && len(v) > n.maxItems {
		t.tell("must have at most %s", count(n.maxItems, "item"))
	}
	if n.unique {
		if i, j, twice := twice(v); twice {
			t.tell("must not have the same item twice: items %d and %d are equal", i, j)
		}
	}
	tuple := min(len(n.prefix), len(v))
	for i, item := range v {
		judges := n.items
		if i < tuple {
			judges = n.prefix[i]
		}
		if judges == nil {
			continue
		}
		t.seen.item(i)
		if i < tuple || !judges.never || n.prefix == nil {
			t.below(judges, item, t.nth(i))
		}
	}
	if n.prefix != nil && n.items != nil && n.items.never && tuple < len(v) {
		t.tell("must not have the last %s", count(len(v)-tuple, "item"))
	}
	if n.contains != nil {
		t.contains(v)
	}
}

func (t *visit) contains(v []any) {
	n, matched := t.n, 0
	for i, item := range v {
		if found, _ := t.node(n.contains, item, t.nth(i), nil); len(found) == 0 {
			if matched++; n.marks {
				t.seen.item(i)
			}
		}
	}
	const form = " of the form that the plan asks for"
	if least := max(n.minContains, -n.minContains); matched < least { // 1 unless it is given
		t.tell("must have at least %s"+form, count(least, "item"))
	}
	if n.maxContains >= 0 && matched > n.maxContains {
		t.tell("must have at most %s"+form, count(n.maxContains, "item"))
	}
}

func (t *visit) text(v string) {
	n, length := t.n, utf8.RuneCountInString(v)
	if length < n.minLength {
		t.tell("must have at least %s", count(n.minLength, "character"))
	}
	if n.maxLength >= 0 && length > n.maxLength {
		t.tell("must have at most %s", count(n.maxLength, "character"))
	}
	if n.pattern != nil && !n.pattern.MatchString(v) {
		t.tell("must match the pattern %q", n.pattern)
	}
}

func (t *visit) number(number json.Number) {
	n := t.n
	if n.minimum == nil && n.maximum == nil && n.above == nil && n.below == nil && n.multipleOf == nil {
		return
	}
	v, _ := new(big.Rat).SetString(number.String())
	if n.minimum != nil && v.Cmp(n.minimum) < 0 {
		t.tell("must be at least %s", decimal(n.minimum))
	}
	if n.maximum != nil && v.Cmp(n.maximum) > 0 {
		t.tell("must be at most %s", decimal(n.maximum))
	}
	if n.above != nil && v.Cmp(n.above) <= 0 {
		t.tell("must be greater than %s", decimal(n.above))
	}
	if n.below != nil && v.Cmp(n.below) >= 0 {
		t.tell("must be less than %s", decimal(n.below))
	}
	if n.multipleOf != nil && !new(big.Rat).Quo(v, n.multipleOf).IsInt() {
		t.tell("must be a multiple of %s", decimal(n.multipleOf))
	}
}

// combined judges by schemas that others are made of.
func (t *visit) combined() {
	n := t.n
	if n.not != nil && len(t.tries(n.not)) == 0 {
		t.tell("must not have the form that the plan excludes")
	}
	for _, part := range n.allOf {
		t.same(part)
	}
	if len(n.anyOf) > 0 {
		var failed [][]Violation
		for _, form := range n.anyOf {
			if found := t.tries(form); len(found) > 0 {
				failed = append(failed, found)
			} else if !t.schema.tracks {
				break
			}
		}
		if len(failed) == len(n.anyOf) {
			t.alternatives(failed)
		}
	}
	if len(n.oneOf) > 0 {
		t.exactlyOne()
	}
	if n.when != nil {
		then := n.then
		if len(t.tries(n.when)) > 0 {
			then = n.otherwise
		}
		if then != nil {
			t.same(then)
		}
	}
}

func (t *visit) exactlyOne() {
	var failed [][]Violation
	for _, form := range t.n.oneOf {
		if found := t.tries(form); len(found) > 0 {
			failed = append(failed, found)
		}
	}
	switch len(t.n.oneOf) - len(failed) {
	case 0:
		t.alternatives(failed)
	case 1:
	default:
		t.tell("must have exactly one of the forms that the plan allows, and has several")
	}
}

// rest judges what nothing else has judged.
func (t *visit) rest() {
	if object, ok := t.v.(map[string]any); ok && t.n.unevaluatedProperties != nil {
		for name, value := range object {
			if !t.seen.members[name] {
				t.below(t.n.unevaluatedProperties, value, t.of(name))
				t.seen.member(name)
			}
		}
	}
	if list, ok := t.v.([]any); ok && t.n.unevaluatedItems != nil {
		for i, item := range list {
			if !t.seen.items[i] {
				t.below(t.n.unevaluatedItems, item, t.nth(i))
				t.seen.item(i)
			}
		}
	}
}

// isOf reports whether a value is of a type.
func isOf(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		if name == "integer" {
			r, ok := new(big.Rat).SetString(v.String())
			return ok && r.IsInt()
		}
		return name == "number"
	}
	return false
}

// equal compares values as JSON: 1 is 1.0.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, xOK := new(big.Rat).SetString(a.String())
		y, yOK := new(big.Rat).SetString(b.String())
		return xOK && yOK && x.Cmp(y) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case []any, map[string]any:
		return false // they cannot be compared by ==
	}
	return a == b
}

// twice finds two items that are equal.
func twice(list []any) (first, second int, found bool) {
	texts := map[string]int{} // most lists are of text
	for j, b := range list {
		if text, ok := b.(string); ok {
			if i, seen := texts[text]; seen {
				return i, j, true
			}
			texts[text] = j
			continue
		}
		for i, a := range list[:j] {
			if equal(a, b) {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// member renders a place as a JSON pointer. A member's name is told only if the
// schema declares it: a name may be a secret too, such as a key of a user's own
// map.
func (j *judge) member(at *place) string {
	switch {
	case at == nil:
		return ""
	case at.item:
		return j.member(at.above) + "/" + strconv.Itoa(at.index)
	}
	name := "*"
	if _, kept := j.kept[at.name]; j.open || j.schema.declared[at.name] || kept && at.above == nil {
		name = escape(at.name)
	}
	return j.member(at.above) + "/" + name
}
