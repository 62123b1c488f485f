package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/catalog/schema"
)

// maxViolations bounds how many violations one ParameterError tells.
const maxViolations = 5

// A ParameterError says which of a user's parameters break which rule. It is
// written for the user, and never contains a value that the user gave, nor a
// member's name other than those of the schema: parameters can hold secrets.
// Only CheckResult names what an instance has had already.
type ParameterError struct {
	// Violations are the first five in the order of schema.Sorted, at least one.
	Violations []schema.Violation
	// omitted counts those beyond.
	omitted int
}

// Error is one sentence for the user, without a full stop, the same for the
// same parameters.
func (e *ParameterError) Error() string {
	var clauses []string
	for _, v := range e.Violations {
		clauses = append(clauses, v.Clause())
	}
	if e.omitted > 0 {
		clauses = append(clauses, fmt.Sprintf("and %d more", e.omitted))
	}
	return strings.Join(clauses, "; ")
}

// Check checks parameters against the plan's schema for a verb (PROV-18, PROV-19, UPD-12,
// BIND-15); of an update, the plan is the one that the instance has afterwards. Parameters
// that are absent or null count as {} (INP-07). A *ParameterError belongs to the user; another
// error is ours: a schema that was compiled with the catalog does not compile.
//
// A plan that the catalog does not hold has no schema: only the form of the
// parameters is checked then. Instances outlive their plan's place in the
// catalog (CAT-28); whether a request may name the plan is asked of Plan.
func (c *Catalog) Check(v Verb, serviceID, planID string, params json.RawMessage) error {
	s, err := c.schema(v, serviceID, planID)
	if err != nil {
		return err
	}
	parameters, violations := parse(params)
	if len(violations) == 0 && s != nil {
		violations = s.Judge(parameters, nil)
	}
	return newParameterError(violations)
}

// CheckResult checks all the parameters that an instance has after an update, of
// which some were given with it. The plan is the one that it has then. An update
// leads to nothing that could not be provisioned: the create schema judges the
// result as a whole, but for the members that the update schema alone has under
// its properties, and judges. The error names the members that were not given,
// so that the user knows what to remove.
func (c *Catalog) CheckResult(serviceID, planID string, result, given json.RawMessage) error {
	create, errCreate := c.schema(Create, serviceID, planID)
	update, errUpdate := c.schema(Update, serviceID, planID)
	if err := errors.Join(errCreate, errUpdate); err != nil {
		return err
	}
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
		if update == nil || !update.Has(name) || create != nil && create.Has(name) {
			continue
		}
		delete(parameters, name)
		if _, stays := kept[name]; stays { // what was given has been checked
			violations = append(violations, update.JudgeMember(name, value)...)
		}
	}
	if create != nil {
		violations = append(violations, create.Judge(parameters, kept)...)
	}
	return newParameterError(violations)
}

// newParameterError is nil when nothing is violated.
func newParameterError(violations []schema.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	violations = schema.Sorted(violations)
	told := min(len(violations), maxViolations)
	return &ParameterError{violations[:told], len(violations) - told}
}

// parse reads parameters, numbers as json.Number so that they keep their
// digits.
func parse(params json.RawMessage) (map[string]any, []schema.Violation) {
	trimmed := bytes.TrimSpace(params)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return map[string]any{}, nil
	}
	if len(params) > limits.Parameters {
		return nil, []schema.Violation{{Rule: fmt.Sprintf("must be at most %d bytes of JSON", limits.Parameters)}}
	}
	if !utf8.Valid(params) {
		return nil, []schema.Violation{{Rule: "must be text in UTF-8"}} // INP-17
	}
	v, err := schema.Parse(params)
	parameters, ok := v.(map[string]any)
	if err != nil || !ok {
		return nil, []schema.Violation{{Rule: "must be a JSON object"}} // INP-03
	}
	if schema.Extreme(parameters) {
		return nil, []schema.Violation{{Rule: "must hold only numbers with exponents from -1000 to 1000"}}
	}
	return parameters, nil
}
