// Package iampolicy reads IAM policies. It owns the form of policy documents. It is pure, and
// grants nothing.
package iampolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Version is the version of the policy language. Earlier ones have no variables.
const Version = "2012-10-17"

// The effects of statements.
const (
	EffectAllow = "Allow"
	EffectDeny  = "Deny"
)

// A Document is a policy.
type Document struct {
	Version   string
	Statement []Statement
}

// A Statement allows or denies actions on resources, if its condition holds.
type Statement struct {
	Sid         string `json:",omitempty"`
	Effect      string
	Action      Texts     `json:",omitempty"`
	NotAction   Texts     `json:",omitempty"`
	Resource    Texts     `json:",omitempty"`
	NotResource Texts     `json:",omitempty"`
	Condition   Condition `json:",omitempty"`
}

// A Condition holds the required values, by operator and by key.
type Condition map[string]map[string]Texts

// Texts holds one text or several: in JSON, a single one may stand without a list.
type Texts []string

// UnmarshalJSON reads a text, a boolean, a number, or a list of these.
func (t *Texts) UnmarshalJSON(raw []byte) error {
	var one any
	if err := json.Unmarshal(raw, &one); err != nil {
		return err
	}
	all, ok := one.([]any)
	if !ok {
		all = []any{one}
	}
	out := make(Texts, 0, len(all))
	for _, v := range all {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case bool, float64:
			out = append(out, fmt.Sprint(v))
		default:
			return fmt.Errorf("a policy has %v where it needs a text", v)
		}
	}
	*t = out
	return nil
}

// Parse reads a document. It refuses members that it does not know: one could be a condition.
func Parse(raw []byte) (Document, error) {
	var written struct {
		Version   string
		ID        string `json:"Id"`
		Statement json.RawMessage
	}
	if err := strictly(raw, &written); err != nil {
		return Document{}, fmt.Errorf("reading a policy: %w", err)
	}
	d := Document{Version: written.Version}
	if err := strictly(written.Statement, &d.Statement); err != nil {
		var one Statement
		if strictly(written.Statement, &one) != nil {
			return Document{}, fmt.Errorf("reading the statements of a policy: %w", err)
		}
		d.Statement = []Statement{one}
	}
	for i, s := range d.Statement {
		if err := s.check(); err != nil {
			return Document{}, fmt.Errorf("statement %d of a policy: %w", i+1, err)
		}
	}
	return d, nil
}

// operators matches the operators of conditions.
var operators = regexp.MustCompile(`(?i)^((ForAllValues:|ForAnyValue:)?(String(Not)?(Equals(IgnoreCase)?|Like)|` +
	`(Numeric|Date)((Not)?Equals|(Less|Greater)Than(Equals)?)|Arn(Not)?(Equals|Like)|(Not)?IpAddress|BinaryEquals|Bool)` +
	`(IfExists)?|Null)$`)

// check finds statements that AWS would refuse.
func (s Statement) check() error {
	switch {
	case s.Effect != EffectAllow && s.Effect != EffectDeny:
		return fmt.Errorf("its effect is %q, not %s or %s", s.Effect, EffectAllow, EffectDeny)
	case (s.Action == nil) == (s.NotAction == nil):
		return fmt.Errorf("it needs one of Action and NotAction")
	case (s.Resource == nil) == (s.NotResource == nil):
		return fmt.Errorf("it needs one of Resource and NotResource")
	}
	for operator := range s.Condition {
		if !operators.MatchString(operator) {
			return fmt.Errorf("its condition has the operator %q, which AWS does not know", operator)
		}
	}
	return nil
}

// Map returns the statement with f applied to each text of its actions, resources and conditions.
func (s Statement) Map(f func(string) string) Statement {
	for _, of := range []*Texts{&s.Action, &s.NotAction, &s.Resource, &s.NotResource} {
		*of = of.each(f)
	}
	condition := Condition{}
	for operator, keys := range s.Condition {
		condition[operator] = map[string]Texts{}
		for key, values := range keys {
			condition[operator][key] = values.each(f)
		}
	}
	s.Condition = condition
	return s
}

func (t Texts) each(f func(string) string) (out Texts) {
	for _, text := range t {
		out = append(out, f(text))
	}
	return out
}

// strictly decodes JSON, and refuses unknown members.
func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// Like reports whether a pattern matches a text; * stands for any characters and ? for one. If the
// text is itself a pattern, Like reports whether the second pattern matches all that the first one
// does.
func Like(text, pattern string) bool {
	// star is the last star seen, and mark is where its characters end: going back to the last star
	// is enough.
	star, mark := -1, 0
	t, p := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			t, p = t+1, p+1
		case star >= 0:
			mark++
			t, p = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
