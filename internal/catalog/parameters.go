package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/longshore/longshore/internal/limits"
)

// maxExponent bounds the decimal exponent of numbers in parameters. It is
// beyond every number that a computer works with; without it a few bytes
// would ask for the memory of a million digits (INP-15).
const maxExponent = 1000

// maxViolations bounds how many violations one ParameterError tells.
const maxViolations = 5

// A ParameterError says which of a user's parameters break which rule. It is
// written for the user, and never contains a value that the user gave, nor a
// member's name other than those of the schema: parameters can hold secrets.
// Only CheckResult names what an instance has had already.
type ParameterError struct {
	// Member is a JSON pointer into the parameters; empty when they are meant
	// as a whole. A name that the schema does not know is shown as "*".
	Member string
	// Rule is what the member must be, as the rest of a sentence: "must be an
	// integer".
	Rule string
	// More are further violations, at most four.
	More []ParameterError
	// omitted counts the violations beyond those.
	omitted int
}

// Error is one sentence for the user, without a full stop, the same for the
// same parameters.
func (e *ParameterError) Error() string {
	clauses := []string{e.clause()}
	for _, m := range e.More {
		clauses = append(clauses, m.clause())
	}
	if e.omitted > 0 {
		clauses = append(clauses, fmt.Sprintf("and %d more", e.omitted))
	}
	return strings.Join(clauses, "; ")
}

func (e *ParameterError) clause() string {
	if e.Member == "" {
		return "the parameters " + e.Rule
	}
	return "parameter " + e.Member + " " + e.Rule
}

// CheckCreate checks the parameters of a provision against the plan's schema
// (PROV-18, PROV-19). Parameters that are absent or null count as {} (INP-07).
// The error is always a *ParameterError, and belongs to the user.
//
// A plan that the catalog does not hold has no schema: only the form of the
// parameters is checked then. Instances outlive their plan's place in the
// catalog (CAT-28); whether a request may name the plan is asked of Plan.
func (c *Catalog) CheckCreate(serviceID, planID string, params json.RawMessage) error {
	at, _ := c.plan(serviceID, planID)
	return at.checks.create.check(params)
}

// CheckUpdate checks the parameters that an update gives (UPD-12), otherwise as
// CheckCreate does. The plan is the one that the instance has afterwards.
func (c *Catalog) CheckUpdate(serviceID, planID string, params json.RawMessage) error {
	at, _ := c.plan(serviceID, planID)
	return at.checks.update.check(params)
}

// CheckResult checks all the parameters that an instance has after an update, of
// which some were given with it. The plan is the one that it has then. An update
// leads to nothing that could not be provisioned: the create schema judges the
// result as a whole, but for the members that the update schema alone has under
// its properties, and judges. The error names the members that were not given,
// so that the user knows what to remove.
func (c *Catalog) CheckResult(serviceID, planID string, result, given json.RawMessage) error {
	at, _ := c.plan(serviceID, planID)
	create, update := at.checks.create, at.checks.update
	parameters, violations := parse(result)
	if len(violations) > 0 {
		return newParameterError(violations)
	}
	kept := maps.Clone(parameters)
	known, _ := parse(given)
	for name := range known {
		delete(kept, name)
	}
	for name, value := range parameters {
		if !update.has(name) || create.has(name) {
			continue
		}
		delete(parameters, name)
		if _, stays := kept[name]; stays { // what was given has been checked
			violations = append(violations, update.judgeMember(name, value)...)
		}
	}
	return newParameterError(append(violations, create.judge(parameters, kept)...))
}

// CheckBind checks the parameters of a bind (BIND-15), otherwise as
// CheckCreate does.
func (c *Catalog) CheckBind(serviceID, planID string, params json.RawMessage) error {
	at, _ := c.plan(serviceID, planID)
	return at.checks.bind.check(params)
}

// check checks parameters; a nil schema allows every object.
func (s *schema) check(params json.RawMessage) error {
	parameters, violations := parse(params)
	if len(violations) == 0 {
		violations = s.judge(parameters, nil)
	}
	return newParameterError(violations)
}

// judge finds what parameters break. It may name the members that are kept.
func (s *schema) judge(parameters, kept map[string]any) []violation {
	if s == nil {
		return nil
	}
	return (&telling{schema: s, parameters: parameters, kept: kept}).of(s.compiled.Validate(parameters))
}

// judgeMember finds what one member breaks that the schema has.
func (s *schema) judgeMember(name string, value any) []violation {
	err := s.compiled.Properties[name].Validate(value)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		within(invalid, name)
	}
	return (&telling{schema: s, parameters: map[string]any{name: value}}).of(err)
}

// within moves an error and its causes into the member that was judged alone.
func within(e *jsonschema.ValidationError, name string) {
	e.InstanceLocation = append([]string{name}, e.InstanceLocation...)
	for _, cause := range e.Causes {
		within(cause, name)
	}
}

// has reports whether the schema speaks of a member under its properties.
func (s *schema) has(name string) bool {
	return s != nil && s.compiled.Properties[name] != nil
}

// newParameterError is nil when nothing is violated.
func newParameterError(violations []violation) error {
	if len(violations) == 0 {
		return nil
	}
	slices.SortFunc(violations, func(a, b violation) int {
		return cmp.Or(strings.Compare(a.member, b.member), strings.Compare(a.rule, b.rule))
	})
	violations = slices.Compact(violations)
	e := &ParameterError{Member: violations[0].member, Rule: violations[0].rule, omitted: max(0, len(violations)-maxViolations)}
	for _, v := range violations[1 : len(violations)-e.omitted] {
		e.More = append(e.More, ParameterError{Member: v.member, Rule: v.rule})
	}
	return e
}

// parse reads parameters, numbers as json.Number so that they keep their
// digits.
func parse(params json.RawMessage) (map[string]any, []violation) {
	trimmed := bytes.TrimSpace(params)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return map[string]any{}, nil
	}
	if len(params) > limits.Parameters {
		return nil, []violation{{rule: fmt.Sprintf("must be at most %d bytes of JSON", limits.Parameters)}}
	}
	if !utf8.Valid(params) {
		return nil, []violation{{rule: "must be text in UTF-8"}} // INP-17
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(params))
	parameters, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, []violation{{rule: "must be a JSON object"}} // INP-03
	}
	if hasExtremeNumber(parameters) {
		return nil, []violation{{rule: fmt.Sprintf("must hold only numbers with exponents from -%d to %d", maxExponent, maxExponent)}}
	}
	return parameters, nil
}

func hasExtremeNumber(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if hasExtremeNumber(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasExtremeNumber)
	case json.Number:
		return tooExtreme(v)
	}
	return false
}

// tooExtreme reports whether a number's exponent is beyond maxExponent.
func tooExtreme(n json.Number) bool {
	i := strings.IndexAny(string(n), "eE")
	if i < 0 {
		return false
	}
	exponent, err := strconv.Atoi(string(n[i+1:]))
	return err != nil || exponent < -maxExponent || exponent > maxExponent
}
