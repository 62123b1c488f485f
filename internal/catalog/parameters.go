package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/longshore/longshore/internal/catalog/schema"
)

// maxViolations bounds how many violations one ParameterError reports.
const maxViolations = 5

// A ParameterError says which of a user's parameters break which rule. It is written for the user. It
// never contains a value that the user gave, nor a member's name other than those of the schema, since
// parameters can hold secrets. Only CheckResult names parameters that an instance has had already.
type ParameterError struct {
	// Violations are the first five in the order of schema.Sorted, at least one.
	Violations []schema.Violation
	// omitted counts the other violations.
	omitted int
}

// Error returns one sentence for the user, without a full stop, which is the same for the same parameters.
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
// BIND-15); for an update, the plan is the one that the instance will have. Parameters that are
// absent or null count as {} (INP-07). A *ParameterError is for the user; any other error is a
// fault of the broker: a schema that was compiled with the catalog does not compile.
//
// A plan that is not in the catalog has no schema, so only the form of the parameters is
// checked. Instances outlive their plan's place in the catalog (CAT-28); Plan tells whether a
// request may name the plan.
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

// CheckResult checks all the parameters that an instance has after an update; given are those of
// the update itself. The plan is the one that the instance will have. An update must not lead to
// parameters that could not be provisioned: the create schema judges the result as a whole, except
// for members that only the update schema has under its properties, which the update schema judges.
// The error names the members that were not given, so that the user knows what to remove.
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
		if _, stays := kept[name]; stays { // given members have been checked already
			violations = append(violations, update.JudgeMember(name, value)...)
		}
	}
	if create != nil {
		violations = append(violations, create.Judge(parameters, kept)...)
	}
	return newParameterError(violations)
}

// newParameterError returns nil if nothing is violated.
func newParameterError(violations []schema.Violation) error {
	if len(violations) == 0 {
		return nil
	}
	violations = schema.Sorted(violations)
	told := min(len(violations), maxViolations)
	return &ParameterError{violations[:told], len(violations) - told}
}

// parse reads parameters, with numbers as json.Number so that they keep their digits. Callers have
// bounded their length, and know that they are UTF-8.
func parse(params json.RawMessage) (map[string]any, []schema.Violation) {
	trimmed := bytes.TrimSpace(params)
	if len(trimmed) == 0 || string(trimmed) == "null" {
		return map[string]any{}, nil
	}
	v, _ := schema.Parse(params)
	parameters, ok := v.(map[string]any)
	if !ok {
		return nil, []schema.Violation{{Rule: "must be a JSON object"}} // INP-03
	}
	if schema.Extreme(parameters) {
		return nil, []schema.Violation{{Rule: "must hold only numbers with exponents from -1000 to 1000"}}
	}
	return parameters, nil
}
