// Package policytest decides by IAM policies as AWS does within one account: allow and
// deny, wildcards, conditions, policy variables, boundaries. It serves tests of policies
// where no emulator of AWS enforces them. It leaves out who is meant by a policy of a
// resource, and policies of sessions and of organizations.
package policytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/provider/cloudformation/iampolicy"
)

// A Request is one call, as AWS sees it.
type Request struct {
	Action   string // such as s3:GetObject
	Resource string // an ARN, or * for an action that has no resource
	// Context has the values of condition keys; a key that is not there is absent.
	// The case of names does not count.
	Context map[string][]string
}

// Allows decides as AWS does: a deny of any document denies; else a policy has to
// allow, and each boundary too.
func Allows(r Request, policies []iampolicy.Document, boundaries ...[]iampolicy.Document) bool {
	layers := append([][]iampolicy.Document{policies}, boundaries...)
	for _, layer := range layers {
		if matches(r, layer, iampolicy.EffectDeny) {
			return false
		}
	}
	for _, layer := range layers {
		if !matches(r, layer, iampolicy.EffectAllow) {
			return false
		}
	}
	return true
}

// matches reports whether a statement of an effect is about the request.
func matches(r Request, documents []iampolicy.Document, effect string) bool {
	return slices.ContainsFunc(documents, func(d iampolicy.Document) bool {
		return slices.ContainsFunc(d.Statement, func(s iampolicy.Statement) bool {
			return s.Effect == effect &&
				about(s, r, d.Version)
		})
	})
}

// about reports whether a statement is about a request.
func about(s iampolicy.Statement, r Request, version string) bool {
	action := func(pattern string) bool { return iampolicy.Like(strings.ToLower(r.Action), strings.ToLower(pattern)) }
	resource := func(pattern string) bool {
		filled, ok := fill(pattern, r, version)
		return ok && like(r.Resource, filled)
	}
	switch {
	case s.Action != nil && !slices.ContainsFunc(s.Action, action),
		s.NotAction != nil && slices.ContainsFunc(s.NotAction, action),
		s.Resource != nil && !slices.ContainsFunc(s.Resource, resource),
		s.NotResource != nil && slices.ContainsFunc(s.NotResource, resource):
		return false
	}
	for operator, keys := range s.Condition {
		o := operatorOf(operator)
		for key, wanted := range keys {
			if !o.holds(r, key, wanted, version) {
				return false
			}
		}
	}
	return true
}

// get is what the context has for a key.
func (r Request) get(key string) (values []string, has bool) {
	for name, values := range r.Context {
		if strings.EqualFold(name, key) {
			return values, true
		}
	}
	return nil, false
}

// fill puts the values of policy variables into a text. A variable that has no
// value has the text match nothing. Literal has what came from a value, and ${*}, ${?}
// and ${$}, stand for themselves.
func fill(text string, r Request, version string) (literal string, ok bool) {
	if version != iampolicy.Version {
		return text, true
	}
	var out strings.Builder
	for {
		head, rest, found := strings.Cut(text, "${")
		out.WriteString(head)
		if !found {
			return out.String(), true
		}
		name, tail, closed := strings.Cut(rest, "}")
		if !closed {
			out.WriteString("${" + rest)
			return out.String(), true
		}
		text = tail
		name, unless, has := strings.Cut(name, ",")
		name = strings.TrimSpace(name)
		values, found := r.get(name)
		switch {
		case name == "*" || name == "?" || name == "$":
			out.WriteString(quote(name))
		case found && len(values) == 1:
			out.WriteString(quote(values[0]))
		case has:
			out.WriteString(quote(strings.Trim(strings.TrimSpace(unless), "'")))
		default:
			return "", false
		}
	}
}

// The value of a variable must not act as a wildcard: these stand for its letters.
const quotedStar, quotedOne = "\x00", "\x01"

func quote(value string) string {
	return strings.NewReplacer("*", quotedStar, "?", quotedOne).Replace(value)
}

// like compares a text with a pattern that was filled.
func like(text, filled string) bool { return iampolicy.Like(quote(text), filled) }

// An operator is one of a condition.
type operator struct {
	null             bool
	forAll, forAny   bool
	ifExists, negate bool
	compare          func(value, wanted string) bool
}

// comparisons are those that this package knows, by their names in lower case.
var comparisons = map[string]func(value, wanted string) bool{
	"stringequals":           func(v, w string) bool { return v == plain(w) },
	"stringequalsignorecase": func(v, w string) bool { return strings.EqualFold(v, plain(w)) },
	"stringlike":             like,
	"arnequals":              arnLike,
	"arnlike":                arnLike,
	"bool":                   func(v, w string) bool { return strings.EqualFold(v, plain(w)) },
}

func plain(filled string) string {
	return strings.NewReplacer(quotedStar, "*", quotedOne, "?").Replace(filled)
}

// arnLike compares each of an ARN's six parts by itself: a star does not cross a colon,
// but in the last part.
func arnLike(value, wanted string) bool {
	const parts = 6
	v, w := strings.SplitN(value, ":", parts), strings.SplitN(wanted, ":", parts)
	if len(v) != parts || len(w) != parts {
		return false
	}
	for i := range v {
		if !like(v[i], w[i]) {
			return false
		}
	}
	return true
}

// operatorOf panics where it does not know an operator: a test of what is refused would
// pass for the wrong reason.
func operatorOf(name string) (o operator) {
	rest := strings.ToLower(name)
	if rest == "null" {
		return operator{null: true}
	}
	rest, o.ifExists = strings.CutSuffix(rest, "ifexists")
	rest, o.forAll = strings.CutPrefix(rest, "forallvalues:")
	rest, o.forAny = strings.CutPrefix(rest, "foranyvalue:")
	if o.compare = comparisons[rest]; o.compare == nil {
		o.negate = true
		o.compare = comparisons[strings.Replace(rest, "not", "", 1)]
	}
	if o.compare == nil || o.negate && !strings.Contains(rest, "not") || rest == "notbool" {
		panic(fmt.Sprintf("the operator %q of a condition is not known here", name))
	}
	return o
}

// holds reports whether a request has what is asked for of a key.
func (o operator) holds(r Request, key string, wanted iampolicy.Texts, version string) bool {
	values, has := r.get(key)
	if o.null {
		return slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, "true") == !has })
	}
	if !has || len(values) == 0 {
		return o.ifExists || o.forAll || o.negate && !o.forAny
	}
	one := func(value string) bool {
		found := slices.ContainsFunc(wanted, func(w string) bool {
			filled, ok := fill(w, r, version)
			return ok && o.compare(value, filled)
		})
		return found != o.negate
	}
	if o.forAny {
		return slices.ContainsFunc(values, one)
	}
	return !slices.ContainsFunc(values, func(v string) bool { return !one(v) })
}
