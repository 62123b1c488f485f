package schema

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/suggest"
)

// A Violation is one rule that one member of a value breaks.
type Violation struct {
	// Member is a JSON pointer into the value; empty for the whole value. A name that the
	// schema does not know is shown as "*".
	Member string
	// Rule says what the member must be, as the rest of a sentence.
	Rule string
	// Remedy says what to do, in the words of the schema's description; Judge leaves it empty.
	Remedy string
}

// Judge returns the violations of a value from Parse, in no order. It names the members of kept
// even if the schema does not know them.
func (s *Schema) Judge(v any, kept map[string]any) []Violation {
	return (&judge{Schema: s, kept: kept}).node(s.root, v, nil, nil).found
}

// Explain is Judge for values that hold no secret: it tells all names and remedies, and reports
// each unknown member by itself.
func (s *Schema) Explain(v any) []Violation {
	return (&judge{Schema: s, open: true}).node(s.root, v, nil, nil).found
}

// Has reports whether the schema has a member under its properties.
func (s *Schema) Has(name string) bool { return s.root.properties[name] != nil }

// JudgeMember returns the violations of one member that the schema has.
func (s *Schema) JudgeMember(name string, v any) []Violation {
	return (&judge{Schema: s}).node(s.root.properties[name], v, &location{key: name}, nil).found
}

type judge struct {
	*Schema
	kept map[string]any
	open bool // tell names and remedies
}

// A location is the place of a value within the whole value; nil for the whole.
type location struct {
	above *location
	key   any // a member's name, or an item's index
	// remedy is what the schema says about the value, if remedies are told.
	remedy string
}

// judged holds the names of the members, or the indexes of the items, that schemas have judged:
// unevaluatedProperties and unevaluatedItems apply to the others. Nil if the schema has neither keyword.
type judged map[any]bool

func (d judged) add(key any) {
	if d != nil {
		d[key] = true
	}
}

// A visit is one schema judging one value.
type visit struct {
	*judge
	n     *node
	v     any
	at    *location
	above *visit // of another schema that is judging the same value
	found []Violation
	seen  judged
}

func (j *judge) node(n *node, v any, at *location, above *visit) *visit {
	t := &visit{judge: j, n: n, v: v, at: at, above: above}
	if j.tracks {
		t.seen = judged{}
	}
	for o := above; o != nil; o = o.above {
		if o.n == n { // the schema refers to itself without end
			rule := "does not satisfy the plan's schema"
			if at == nil {
				rule = "do not satisfy the plan's schema"
			}
			t.tell("%s", rule)
			return t
		}
	}
	if !t.plain() {
		return t
	}
	if n.bounds != nil {
		is, noun := size(v)
		t.bounded(n.bounds, is, noun)
	}
	switch v := v.(type) {
	case map[string]any:
		t.object(v)
	case []any:
		t.array(v)
	case string:
		switch {
		case n.pattern == nil || n.pattern.MatchString(v):
		case t.open && strings.TrimSpace(v) == "":
			t.tell("is empty")
		default:
			t.form("must match the pattern %q", n.pattern)
		}
	}
	t.combined()
	t.rest()
	return t
}

func (t *visit) tell(format string, args ...any) {
	t.found = append(t.found, Violation{t.member(t.at), fmt.Sprintf(format, args...), t.remedy(t.n)})
}

// form reports which form a text must have, unless the remedy says so in plain words.
func (t *visit) form(rule string, form any) {
	if t.remedy(t.n) != "" {
		rule, form = "has the wrong %s", "form"
	}
	t.tell(rule, form)
}

// remedy returns the description of the given schema, or else of this schema, or else of the schemas around the value.
func (t *visit) remedy(of *node) string {
	switch said := cmp.Or(of.says(), t.n.says()); {
	case !t.open:
		return ""
	case said == "" && t.at != nil:
		return t.at.remedy
	default:
		return said
	}
}

// same lets another schema judge the same value.
func (t *visit) same(n *node) { t.found = append(t.found, t.tries(n)...) }

// tries lets another schema judge the same value, and does not report the violations that it returns.
func (t *visit) tries(n *node) []Violation {
	by := t.node(n, t.v, t.at, t)
	if len(by.found) == 0 {
		maps.Copy(t.seen, by.seen)
	}
	return by.found
}

// below lets a schema judge a member or an item.
func (t *visit) below(n *node, v, key any) {
	t.found = append(t.found, t.node(n, v, t.in(key), nil).found...)
	t.seen.add(key)
}

func (t *visit) in(key any) *location {
	name, _ := key.(string) // an index is no name: items have the remedy of their list
	return &location{above: t.at, key: key, remedy: t.remedy(t.n.properties[name])}
}

// plain checks the value's type, enum and format; after a violation, the other keywords are skipped.
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
	case n.allowed != nil && !n.allowed[canonical(t.v)]:
		t.tell("must be %s", values(n.enum))
		if near := suggest.Nearest(text, texts(n.enum)); near != "" && t.open {
			t.found[len(t.found)-1].Remedy = fmt.Sprintf("did you mean %q?", near)
		}
	case isText && judges != nil && !judges(text):
		t.form("must have the format %q", n.format)
	default:
		return true
	}
	return false
}

// bounded checks a number against the bounds for its noun; number is nil for a value that has none.
func (t *visit) bounded(by []bound, number *big.Rat, noun string) {
	for _, b := range by {
		if number != nil && noun == b.noun && !b.allows(number, b.is) {
			t.tell(b.rule, count(b.is, noun))
		}
	}
}

func (t *visit) object(v map[string]any) {
	n := t.n
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
		switch {
		case len(judges) > 0 || n.additional == nil:
		case n.additional.never:
			unknown = append(unknown, name)
			t.seen.add(name)
		default:
			judges = []*node{n.additional}
		}
		for _, judge := range judges {
			t.below(judge, value, name)
		}
		if n.propertyNames != nil {
			t.name(name)
		}
	}
	t.unknown(unknown)
}

// judgesOf returns the schemas that apply to a member by its name.
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
		if _, given := v[name]; !given { // the name comes from the schema
			t.found = append(t.found, Violation{t.member(t.at) + "/" + Escape(name), rule, t.remedy(t.n.properties[name])})
		}
	}
}

// name checks a member's name, which may be a secret.
func (t *visit) name(name string) {
	if found := t.node(t.n.propertyNames, name, t.at, nil).found; len(found) > 0 {
		t.tell("must not have a member of such a name: each name %s", rules(found))
	}
}

func (t *visit) array(v []any) {
	n := t.n
	if n.unique {
		if i, j := twice(v); j > 0 {
			t.tell("must not have the same item twice: items %d and %d are equal", i, j)
		}
	}
	tuple := min(len(n.prefix), len(v))
	last := n.prefix != nil && n.items != nil && n.items.never // reported once, for all items beyond the prefix
	for i, item := range v {
		switch {
		case i < tuple:
			t.below(n.prefix[i], item, i)
		case last:
			t.seen.add(i)
		case n.items != nil:
			t.below(n.items, item, i)
		}
	}
	if last && tuple < len(v) {
		t.tell("must not have the last %s", count(whole(len(v)-tuple), "item"))
	}
	if n.contains != nil {
		t.contains(v)
	}
}

func (t *visit) contains(v []any) {
	matched := 0
	for i, item := range v {
		if len(t.node(t.n.contains, item, t.in(i), nil).found) == 0 {
			if matched++; t.draft >= 2020 {
				t.seen.add(i)
			}
		}
	}
	t.bounded(t.n.containing, whole(matched), "item")
}

// combined applies the schemas that the schema combines.
func (t *visit) combined() {
	n := t.n
	if n.not != nil && len(t.tries(n.not)) == 0 {
		t.tell("must not have the form that the plan excludes")
	}
	for _, part := range slices.Concat(n.refs, n.allOf) {
		t.same(part)
	}
	t.forms(n.anyOf, len(n.anyOf))
	t.forms(n.oneOf, 1)
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

// forms applies schemas of which at least one, and at most so many, must accept the value.
func (t *visit) forms(all []*node, most int) {
	var failed [][]Violation
	for _, form := range all {
		if found := t.tries(form); len(found) > 0 {
			failed = append(failed, found)
		}
	}
	switch {
	case all != nil && len(failed) == len(all):
		t.alternatives(failed)
	case len(all)-len(failed) > most:
		t.tell("must have exactly one of the forms that the plan allows, and has several")
	}
}

// rest judges the members and items that no other schema has judged.
func (t *visit) rest() {
	left := func(by *node, value, key any) {
		if by != nil && !t.seen[key] {
			t.below(by, value, key)
		}
	}
	switch v := t.v.(type) {
	case map[string]any:
		for name, value := range v {
			left(t.n.unevaluatedProperties, value, name)
		}
	case []any:
		for i, item := range v {
			left(t.n.unevaluatedItems, item, i)
		}
	}
}

// member renders a location as a JSON pointer. It tells a member's name only if the schema
// declares the name, since a name may be a secret too, such as a key in a user's own map.
func (j *judge) member(at *location) string {
	if at == nil {
		return ""
	}
	token := "*"
	switch key := at.key.(type) {
	case int:
		token = strconv.Itoa(key)
	case string:
		if _, kept := j.kept[key]; j.open || j.declared[key] || kept && at.above == nil {
			token = Escape(key)
		}
	}
	return j.member(at.above) + "/" + token
}
