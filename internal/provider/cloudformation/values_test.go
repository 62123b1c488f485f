package cloudformation

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

func TestValues(t *testing.T) {
	a, four := plan.Source{Parameter: "a"}, "4"
	long, letters := strings.Repeat("x", plan.MaxValue), strings.Repeat("ü", plan.MaxValue/2)
	for name, c := range map[string]struct {
		reason string
		source plan.Source
		given  string
		want   string // "-" for none, "!" for a refusal
	}{
		"Number": {"numbers keep their digits", a, `{"a":100000000000000000000000000.10}`,
			"100000000000000000000000000.10"},
		"Bool":           {"", a, `{"a":true}`, "true"},
		"List":           {"", a, `{"a":["x",1,false]}`, "x,1,false"},
		"Default":        {"", plan.Source{Parameter: "a", Value: &four}, `{}`, "4"},
		"Null":           {"null is not given", plan.Source{Parameter: "a", Value: &four}, `{"a":null}`, "4"},
		"Given":          {"", plan.Source{Parameter: "a", Value: &four}, `{"a":"5"}`, "5"},
		"Undeclared":     {"what no source names reaches nothing", a, `{"b":"5"}`, "-"},
		"Context":        {"", plan.Source{Context: "space"}, `{"space":"x"}`, "the space"},
		"Target":         {"", plan.Source{Target: "subnets"}, `{"subnets":"x"}`, "s-1,s-2"},
		"Longest":        {"", a, fmt.Sprintf(`{"a":%q}`, long), long},
		"Longer":         {"", a, fmt.Sprintf(`{"a":%q}`, long+"x"), "!"},
		"LongestLetters": {"bytes count, and not letters", a, fmt.Sprintf(`{"a":%q}`, letters), letters},
		"LongerLetters":  {"", a, fmt.Sprintf(`{"a":%q}`, letters+"x"), "!"},
		"LongList":       {"", a, fmt.Sprintf(`{"a":[%q,"x"]}`, long), "!"},
		"Object":         {"", a, `{"a":{"b":"c"}}`, "!"},
		"Lists":          {"", a, `{"a":[["b"]]}`, "!"},
		"Comma":          {"one becomes two", a, `{"a":["b,c"]}`, "!"},
		"Resolve":        {"it becomes a secret", a, `{"a":"{{resolve:secretsmanager:x}}"}`, "!"},
		"Within":         {"", a, `{"a":"x{{resolve:ssm:x}}"}`, "!"},
		"Escaped":        {"", a, `{"a":"\u007b{resolve:ssm:x}}"}`, "!"},
		"Element":        {"a template can take one of a list", a, `{"a":["x","{{resolve:ssm:x}}"]}`, "!"},
		"Parts": {"a template takes a text apart at its commas, and joins it without them", a,
			`{"a":"x{,{resolve:ssm:x}}"}`, "!"},
		"Head":          {"it is joined with the rest", a, `{"a":"{"}`, "!"},
		"Spaced":        {"what is around an element of a list is dropped", a, `{"a":"x{ , {resolve:ssm:x}}"}`, "!"},
		"Controlled":    {"so are control characters", a, `{"a":"x{\u0001,\u0000{resolve:ssm:x}}"}`, "!"},
		"SpacedElement": {"", a, `{"a":["x{\u2003","y"]}`, "!"},
		"Tail":          {"it is joined with what begins it", a, `{"a":"{resolve:ssm:x}}"}`, "!"},
		"Braces":        {"they open nothing", a, `{"a":"a{b}c}"}`, "a{b}c}"},
		"Point":         {"an integer is written as one", a, `{"a":30.0}`, "30"},
		"Exponent":      {"", a, `{"a":5e0}`, "5"},
		"Shift":         {"", a, `{"a":1200e-2}`, "12"},
		"MinusZero":     {"", a, `{"a":-0}`, "0"},
		"Zero":          {"a template may compare it with 0", a, `{"a":0.0}`, "0"},
		"Fraction":      {"", a, `{"a":-125e-2}`, "-1.25"},
		"Digits":        {"", a, `{"a":1.50}`, "1.50"},
		"Integers":      {"in lists, too", a, `{"a":[1.0,2e1]}`, "1,20"},
		"Control":       {"the stack could not be read", a, `{"a":"x\u0001y"}`, "!"},
		"Delete":        {"", a, `{"a":"x\u007f"}`, "!"},
		"NoCharacter":   {"", a, `{"a":"x\uffff"}`, "!"},
		"ControlInList": {"", a, `{"a":["x","\u0000"]}`, "!"},
		"Lines":         {"a certificate has some", a, `{"a":"x\n\ty"}`, "x\n\ty"},
		"Name": {"no order fails of what a platform calls it", plan.Source{Context: "instance_name"}, `{}`,
			"((resolve:ssm:x}}-- é"},
		"LongName": {"", plan.Source{Context: "organization"}, `{}`, "x" + strings.Repeat("ü", plan.MaxValue/2-1)},
	} {
		in := provider.Instance{Parameters: json.RawMessage(c.given),
			Place: provider.Place{Space: "the space", InstanceName: "{{resolve:ssm:x}}\x01\n é", Organization: "x" + letters}}
		i := expect.Get(inputsOf(in, plan.Target{Subnets: []string{"s-1", "s-2"}}))(t)
		out, err := i.passed(plan.Settings{Parameters: map[string]plan.Source{"P": c.source}}, false, nil)
		var refused refusal
		got := "-"
		switch {
		case errors.As(err, &refused):
			if got = "!"; strings.Contains(err.Error(), "resolve") {
				t.Errorf("%s: the refusal repeats the value: %v", name, err)
			}
		case err != nil:
			t.Fatal(err)
		case len(out) > 0:
			got = out[0].value
		}
		expect.Same(t, name+": "+c.reason, c.want, got)
	}
}

// No two texts that pass, with anything that a template puts between, become what
// CloudFormation resolves, unless the template opens it itself.
func TestJoined(t *testing.T) {
	const bad = "{{resolve:"
	var pass []string
	for from := range bad {
		for to := from; to <= len(bad); to++ {
			for _, text := range []string{bad[from:to], bad[from:to] + "x", "x" + bad[from:to]} {
				if !suspicious(text) {
					pass = append(pass, text)
				}
			}
		}
	}
	for _, a := range pass {
		for _, b := range pass {
			for _, between := range []string{"", "{", "x", "resolve:"} {
				if strings.Contains(a+between+b, bad) {
					t.Errorf("%q, %q and %q pass", a, between, b)
				}
			}
		}
	}
	if len(pass) < 50 {
		t.Errorf("only %d texts pass: %q", len(pass), pass)
	}
}

// An update keeps what nobody changes. A parameter that the user has removed has no effect any more: GET does not show it.
func TestUpdatedValues(t *testing.T) {
	four := "4"
	removable := map[string]plan.Source{"Days": {Parameter: "days", Value: &four}, "Note": {Parameter: "note"}}
	sources := map[string]plan.Source{
		"Given": {Parameter: "given"}, "Fixed": {Value: &four}, "Secret": {Parameter: "secret", Secret: true},
		"Space": {Context: "space"},
	}
	has := map[string]bool{"Given": true, "Fixed": true, "Secret": true, "Space": true}
	i := inputs{parameters: map[string]any{"given": "new"}, place: provider.Place{Space: "renamed"}}
	for name, c := range map[string]struct {
		sources map[string]plan.Source
		same    bool
		has     map[string]bool
		want    []parameter
	}{
		"SamePlan": {sources, true, has, []parameter{
			{name: "Fixed", keep: true}, {name: "Given", value: "new"}, {name: "Secret", keep: true},
			{name: "Space", keep: true}}},
		"OtherPlan": {sources, false, has, []parameter{
			{name: "Fixed", value: "4"}, {name: "Given", value: "new"}, {name: "Secret", keep: true},
			{name: "Space", value: "renamed"}}},
		"NewParameters": {sources, false, map[string]bool{}, []parameter{
			{name: "Fixed", value: "4"}, {name: "Given", value: "new"}, {name: "Space", value: "renamed"}}},
		// The note is the template's own again.
		"Removed": {removable, true, map[string]bool{"Days": true, "Note": true}, []parameter{{name: "Days", value: "4"}}},
	} {
		got := expect.Get(i.passed(plan.Settings{Parameters: c.sources}, c.same, c.has))(t, name)
		expect.Same(t, name, c.want, got, cmp.AllowUnexported(parameter{}))
	}
}
