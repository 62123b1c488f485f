package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/suggest"
)

// maxListed bounds the values and names that one rule lists.
const maxListed = 20

// Clause returns the violation as a part of a sentence.
func (v Violation) Clause() string {
	if v.Member == "" {
		return "the parameters " + v.Rule
	}
	return "parameter " + v.Member + " " + v.Rule
}

// Sorted orders violations by member and then by rule, and drops duplicates.
func Sorted(all []Violation) []Violation {
	slices.SortFunc(all, func(a, b Violation) int {
		return cmp.Or(strings.Compare(a.Member, b.Member), strings.Compare(a.Rule, b.Rule))
	})
	return slices.Compact(all)
}

// unknown reports each kept member by itself, and the other unknown members together: which
// names are allowed, and which were perhaps meant.
func (t *visit) unknown(names []string) {
	allowed := slices.Sorted(maps.Keys(t.n.properties))
	var given []string
	for _, name := range names {
		at := t.in(name)
		switch _, kept := t.kept[name]; {
		case kept && t.at == nil:
			t.found = append(t.found, Violation{Member: t.member(at),
				Rule: "is not a parameter of the plan; give it as null to remove it"})
		case t.open:
			t.found = append(t.found, Violation{t.member(at), "is an unknown member",
				suggest.Meant(name, allowed, cmp.Or(t.n.propertyNames.says(),
					"remove it; known here: "+strings.Join(allowed, ", ")))})
		default:
			given = append(given, name)
		}
	}
	if len(given) == 0 {
		return
	}
	var patterns []string
	for pattern := range t.n.patterns {
		patterns = append(patterns, "names that match "+strconv.Quote(pattern.String()))
	}
	slices.Sort(patterns)
	rule := "must have no members"
	if known := append(quoted(allowed), patterns...); len(known) > 0 {
		rule += " but " + listed(known)
	}
	rule += fmt.Sprintf(" (%d not known", len(given))
	var meant []string
	for _, name := range given {
		if near := suggest.Nearest(name, allowed); near != "" && !slices.Contains(meant, near) {
			meant = append(meant, near)
		}
	}
	if len(meant) > 0 {
		slices.Sort(meant)
		rule += "; did you mean " + listed(quoted(meant)) + "?"
	}
	t.tell("%s)", rule)
}

// alternatives reports the forms of which the member must have one, each by the rules that the member breaks.
func (t *visit) alternatives(forms [][]Violation) {
	const most = 6 // violations; more would bury the user
	var here, all []string
	total, elsewhere := 0, false
	for _, found := range forms {
		found = Sorted(found)
		total += len(found)
		clauses := make([]string, len(found))
		for i, v := range found {
			elsewhere = elsewhere || v.Member != t.member(t.at)
			clauses[i] = v.Clause()
		}
		slices.Sort(clauses)
		all = append(all, strings.Join(clauses, " and "))
		if form := rules(found); !slices.Contains(here, form) {
			here = append(here, form)
		}
	}
	switch {
	case total > most:
		t.tell("must have one of the %d forms that the plan allows", len(forms))
	case elsewhere:
		t.tell("must have one of these forms: %s", strings.Join(all, ", or "))
	default:
		t.tell("%s", strings.Join(here, ", or "))
	}
}

// rules joins the rules of violations that concern the same value.
func rules(violations []Violation) string {
	all := make([]string, len(violations))
	for i, v := range violations {
		all[i] = v.Rule
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " and ")
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

// values renders the values that an enum or const of the schema allows.
func values(allowed []any) string {
	all := make([]string, len(allowed))
	for i, v := range allowed {
		text, _ := json.Marshal(v) // never fails for what JSON was decoded into
		all[i] = string(text)
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

func listed(all []string) string {
	if len(all) > maxListed {
		return strings.Join(all[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(all)-maxListed)
	}
	return strings.Join(all, ", ")
}

// count renders a number, or a count of something.
func count(n *big.Rat, noun string) string {
	text := decimal(n)
	switch {
	case noun == "":
		return text
	case text == "1":
		return "1 " + noun
	}
	return text + " " + noun + "s"
}

// decimal renders a number of the schema with all its digits.
func decimal(r *big.Rat) string {
	if digits, exact := r.FloatPrec(); exact && digits <= maxListed {
		return r.FloatString(digits)
	}
	return r.RatString()
}
