package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
)

func TestSameParameters(t *testing.T) {
	cases := map[string]struct {
		a, b string
		want bool
	}{
		"Equal":            {`{"a":1}`, `{"a":1}`, true},
		"Order":            {`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		"Space":            {`{ "a" : 1 }`, `{"a":1}`, true},
		"AbsentIsEmpty":    {``, `{}`, true},
		"NullIsAbsent":     {`null`, ``, true},
		"NullMember":       {`{"a":null}`, `{}`, false},
		"Fraction":         {`{"a":1}`, `{"a":1.0}`, true},
		"Exponent":         {`{"a":100}`, `{"a":1e2}`, true},
		"ExponentSign":     {`{"a":0.01}`, `{"a":1E-2}`, true},
		"ExponentPlus":     {`{"a":100}`, `{"a":1e+02}`, true},
		"Zero":             {`{"a":0}`, `{"a":-0.00e9}`, true},
		"Sign":             {`{"a":1}`, `{"a":-1}`, false},
		"ThirtyDigits":     {`{"a":123456789012345678901234567890}`, `{"a":123456789012345678901234567891}`, false},
		"Huge":             {`{"a":1e999999999}`, `{"a":10e999999998}`, true},
		"HugeAndDifferent": {`{"a":1e999999999}`, `{"a":1e999999998}`, false},
		"NumberIsNoText":   {`{"a":1}`, `{"a":"1"}`, false},
		"ArrayOrder":       {`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		"ArrayLength":      {`{"a":[1]}`, `{"a":[1,1]}`, false},
		"Nested":           {`{"a":{"b":[{"c":1.50}]}}`, `{"a":{"b":[{"c":1.5}]}}`, true},
		"OtherMember":      {`{"a":1}`, `{"b":1}`, false},
		"MoreMembers":      {`{"a":1}`, `{"a":1,"b":1}`, false},
		"Case":             {`{"a":1}`, `{"A":1}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
				if got := lifecycle.SameParameters(json.RawMessage(pair[0]), json.RawMessage(pair[1])); got != tc.want {
					t.Errorf("PROV-09: %s and %s: %v, want %v", pair[0], pair[1], got, tc.want)
				}
			}
		})
	}
}

func TestMergeParameters(t *testing.T) {
	cases := map[string]struct{ current, given, want string }{
		"Overwrites": {`{"a":1,"b":2}`, `{"b":3}`, `{"a":1,"b":3}`},
		"Adds":       {`{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		"Nothing":    {`{"a":1}`, ``, `{"a":1}`},
		"Empty":      {`{"a":1}`, `{}`, `{"a":1}`},
		"FromNone":   {``, `{"a":1}`, `{"a":1}`},
		"Neither":    {``, `{}`, ``},
		"Digits":     {`{"a":123456789012345678901234567890}`, `{"b":1}`, `{"a":123456789012345678901234567890,"b":1}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lifecycle.MergeParameters(json.RawMessage(tc.current), json.RawMessage(tc.given)); string(got) != tc.want {
				t.Errorf("UPD-08: %s, want %s", got, tc.want)
			}
		})
	}
}

func TestSamePlacement(t *testing.T) {
	of := func(org, context string) lifecycle.Attributes {
		return lifecycle.Attributes{OrganizationGUID: org, SpaceGUID: "s", Context: json.RawMessage(context)}
	}
	cases := map[string]struct {
		a, b lifecycle.Attributes
		want bool
	}{
		"Same":     {of("o", `{"platform":"cf"}`), of("o", `{"platform":"cf"}`), true},
		"Guid":     {of("o", ``), of("x", ``), false},
		"Stable":   {of("o", `{"platform":"cf"}`), of("o", `{"platform":"k8s"}`), false},
		"Volatile": {of("o", `{"instance_name":"a","x":1}`), of("o", `{"instance_name":"b"}`), true},
		"OneHasIt": {of("o", `{"platform":"cf"}`), of("o", ``), true},
	}
	for name, tc := range cases {
		if got := lifecycle.SamePlacement(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestTokens(t *testing.T) {
	id := strings.Repeat("A", lifecycle.OperationIDLength)
	for _, key := range []lifecycle.Key{
		{Platform: "p", Instance: "i"},
		{Platform: "p", Instance: "i", Binding: "b"},
		{Platform: "p#1", Instance: "a/b.c\x00é", Binding: ".."},
		{Platform: "p", Instance: strings.Repeat("ä", 400), Binding: strings.Repeat("x", 800)},
	} {
		text := lifecycle.Token{Operation: id, Key: key}.String()
		if strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~") != "" || len(text) > 10_000 {
			t.Errorf("PROV-25: token %q", text)
		}
		got, err := lifecycle.ParseToken(text)
		if err != nil || got.Key != key || got.Operation != id {
			t.Errorf("%q reads %+v: %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "provision", id, id + ".", id + ".AA", id + "..AA", id + ".A.A.A.A", id + ".!.AA", "short.cA.aQ", id + ".cB.aQ"} {
		if got, err := lifecycle.ParseToken(bad); err == nil {
			t.Errorf("LOP-08: %q was read as %+v", bad, got)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(lifecycle.Token{Operation: strings.Repeat("A", 22), Key: lifecycle.Key{Platform: "p", Instance: "i", Binding: "b"}}.String())
	f.Add("....")
	f.Fuzz(func(t *testing.T, s string) {
		if token, err := lifecycle.ParseToken(s); err == nil && token.String() != s {
			t.Errorf("%q reads as the token %q", s, token)
		}
	})
}

func FuzzSameParameters(f *testing.F) {
	f.Add(`{"a":1.50e+7}`, `{"a":[null,true,"x"]}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
			return
		}
		x, y := json.RawMessage(a), json.RawMessage(b)
		if !lifecycle.SameParameters(x, x) || lifecycle.SameParameters(x, y) != lifecycle.SameParameters(y, x) {
			t.Errorf("%s and %s are not compared as equals are", a, b)
		}
	})
}

func TestSealedIsNotPrinted(t *testing.T) {
	s := lifecycle.Sealed("canary")
	if out := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); strings.Contains(out, "canary") || strings.Contains(out, "99 97") {
		t.Errorf("printed %s", out)
	}
}
