package cloudformation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/sorted"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
)

// A refusal says why a value is not passed to CloudFormation. It never repeats the value.
type refusal string

func (r refusal) Error() string { return string(r) }

// inputs holds the sources of values in one step.
type inputs struct {
	parameters map[string]any // the user's
	place      provider.Place
	target     plan.Target
}

func inputsOf(in provider.Instance, t plan.Target) (inputs, error) {
	i := inputs{place: in.Place, target: t}
	if len(in.Parameters) == 0 {
		return i, nil
	}
	d := json.NewDecoder(bytes.NewReader(in.Parameters))
	d.UseNumber() // numbers keep their digits
	if err := d.Decode(&i.parameters); err != nil {
		return i, refusal("The parameters are not an object of JSON.")
	}
	return i, nil
}

// value returns the first value that one of the sources gives; nil if none does. foreign reports
// whether the value comes from a user or a platform.
func (i inputs) value(s plan.Source) (value any, foreign bool) {
	if v, ok := i.parameters[s.Parameter]; ok && s.Parameter != "" && v != nil {
		return v, true
	}
	if v := map[string]string{
		"organization": i.place.Organization, "space": i.place.Space, "instance_name": i.place.InstanceName,
	}[s.Context]; v != "" {
		// A user cannot mend the names that the platform gives: they are cleaned instead of
		// refused.
		if v = plan.Tidy(v); opens(v) {
			v = strings.ReplaceAll(v, "{", "(")
		}
		return v, true
	}
	if v := i.target.Value(s.Target); v != "" {
		return v, false
	}
	if s.Value != nil {
		return *s.Value, false
	}
	return nil, false
}

// passed returns the parameters of a stack; has names those that the stack has already. While the
// plan means the same, only the user's values are new: the instance keeps the values of the
// platform and of the target. A value that a user gives no more counts as never given: the platform
// is told that it is gone. A value that CloudFormation does not show stays until it is given anew.
func (i inputs) passed(m plan.Settings, same bool, has map[string]bool) (out []parameter, err error) {
	for name, source := range sorted.Map(m.Parameters) {
		v, foreign := i.value(source)
		users := source.Parameter != "" && source.Context == "" && source.Target == ""
		if _, given := i.parameters[source.Parameter]; !given && has[name] && (same && !users || source.Secret) {
			out = append(out, parameter{name: name, keep: true})
			continue
		}
		if v == nil {
			continue // the template's default counts
		}
		text, err := textOf(name, source, v, foreign)
		if err != nil {
			return nil, err
		}
		out = append(out, parameter{name: name, value: text})
	}
	return out, nil
}

// textOf returns a value in the form that CloudFormation takes: as text.
func textOf(name string, s plan.Source, v any, foreign bool) (string, error) {
	text, why := plan.Text(v)
	if why == "" && foreign && opens(text) {
		why = "begins or ends with an opening brace, has two in a row, or one beside a comma. " +
			"CloudFormation could take that for a reference to a secret, so it is refused. Give one without."
	}
	if why != "" {
		return "", refusal(fmt.Sprintf("The value of %q %s", cmp.Or(s.Parameter, s.Context, name), why))
	}
	return text, nil
}

// opens reports whether a text could open a dynamic reference. A template can split a list at its
// commas and join it without them, so each item counts by itself.
func opens(text string) bool { return slices.ContainsFunc(strings.Split(text, ","), suspicious) }

// suspicious reports whether a text, alone or between other texts, could become one of
// CloudFormation's dynamic references, {{resolve:...}}.
//
// Hazard: CloudFormation resolves them in everything that a template builds from its parameters,
// and puts a secret there. A template joins texts as it likes, so a brace at an edge can be half of
// an opening. A text without two braces in a row, and without a brace at its edges, opens no
// reference next to any other text. CloudFormation drops the white space around the items of a
// list, so it is dropped here too. Only openings matter: the check of the catalog refuses a
// template that opens a reference itself and puts a parameter in it.
func suspicious(text string) bool {
	const braces = "{"
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) })
	return strings.Contains(text, "{{") || strings.HasPrefix(text, braces) || strings.HasSuffix(text, braces)
}
