package lifecycle_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/lifecycle"
	"github.com/longshore/longshore/internal/test/expect"
)

// bignum is a number of thirty digits: more than a float keeps (INP-15).
const bignum = "123456789012345678901234567890"

func TestSameParameters(t *testing.T) {
	deep := func(inner string) string {
		return `{"a":` + strings.Repeat("[", 900) + inner + strings.Repeat("]", 900) + `}`
	}
	for name, tc := range map[string]struct {
		reason string
		a, b   string
		want   bool
	}{
		"Equal":          {"they are the same bytes", `{"a":1}`, `{"a":1}`, true},
		"Order":          {"the order of members does not count", `{"a":1,"b":{"c":2,"d":3}}`, `{"b":{"d":3,"c":2},"a":1}`, true},
		"Space":          {"nor does space", "{ \"a\" :\n 1 }", `{"a":1}`, true},
		"Escapes":        {"nor how a text is written", `{"\u0061":"\u00e9\/"}`, `{"a":"é/"}`, true},
		"Absent":         {"absent is as empty", ``, `{}`, true},
		"Null":           {"INP-07: null is as absent", `null`, ``, true},
		"NullIsEmpty":    {"and so as empty", ` null `, `{ }`, true},
		"NullMember":     {"a member that is null is there", `{"a":null}`, `{}`, false},
		"NullValues":     {"two nulls are one value", `{"a":null}`, `{"a":null}`, true},
		"NullIsNotFalse": {"null is not false", `{"a":null}`, `{"a":false}`, false},
		"Fraction":       {"numbers are compared by value", `{"a":1}`, `{"a":1.0}`, true},
		"Exponent":       {"however they are written", `{"a":1}`, `{"a":1e0}`, true},
		"Hundred":        {"with zeros or an exponent", `{"a":100}`, `{"a":1e2}`, true},
		"Shifted":        {"wherever the point is", `{"a":12.50}`, `{"a":0.0125E+3}`, true},
		"Small":          {"also below one", `{"a":0.01}`, `{"a":1E-2}`, true},
		"Leading":        {"zeros in an exponent do not count", `{"a":100}`, `{"a":1e+002}`, true},
		"Zero":           {"zero has one value", `{"a":0}`, `{"a":0.00e9}`, true},
		"MinusZero":      {"and no sign", `{"a":0}`, `{"a":-0}`, true},
		"MinusZeros":     {"however it is written", `{"a":-0.0}`, `{"a":0e-5}`, true},
		"ZeroIsNotTen":   {"zeros at the end count", `{"a":1}`, `{"a":10}`, false},
		"ZeroIsNotOne":   {"zero is nothing else", `{"a":0}`, `{"a":1e-999}`, false},
		"Sign":           {"a sign counts", `{"a":1}`, `{"a":-1}`, false},
		"SmallSign":      {"and so does that of an exponent", `{"a":1e2}`, `{"a":1e-2}`, false},
		"Digits":         {"every digit counts", `{"a":` + bignum + `}`, `{"a":` + bignum[:29] + `1}`, false},
		"DigitsShifted":  {"and none is lost", `{"a":` + bignum + `}`, `{"a":` + bignum[:1] + "." + bignum[1:] + `e29}`, true},
		"Float":          {"what floats take for equal is not", `{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		"TooLarge":       {"what no float holds is a number", `{"a":1e400}`, `{"a":10e399}`, true},
		"Infinite":       {"and not infinite", `{"a":1e400}`, `{"a":1e401}`, false},
		"Huge":           {"an exponent is never expanded", `{"a":1e999999999}`, `{"a":10e999999998}`, true},
		"HugeDiffer":     {"and counts", `{"a":1e999999999}`, `{"a":1e999999998}`, false},
		"Tiny":           {"also below one", `{"a":1e-999999999}`, `{"a":0.1e-999999998}`, true},
		"Endless": {"an exponent may be of any length", `{"a":1e9` + strings.Repeat("9", 60) + `}`,
			`{"a":10e9` + strings.Repeat("9", 59) + `8}`, true},
		"Overflow":       {"and does not wrap around", `{"a":1e9223372036854775807}`, `{"a":10e-9223372036854775808}`, false},
		"NumberAsText":   {"a number is not its text", `{"a":1}`, `{"a":"1"}`, false},
		"TrueIsNotOne":   {"nor is true", `{"a":1}`, `{"a":true}`, false},
		"TrueIsNotFalse": {"nor false", `{"a":true}`, `{"a":false}`, false},
		"TextCase":       {"letters of texts count", `{"a":"x"}`, `{"a":"X"}`, false},
		"NameCase":       {"and those of names", `{"a":1}`, `{"A":1}`, false},
		"Arrays":         {"equal arrays", `{"a":[1,"x",null,[]]}`, `{"a":[1.0,"x",null,[]]}`, true},
		"ArrayOrder":     {"the order of an array counts", `{"a":[1,2]}`, `{"a":[2,1]}`, false},
		"ArrayLength":    {"and its length", `{"a":[1]}`, `{"a":[1,1]}`, false},
		"EmptyArray":     {"an empty array is no object", `{"a":[]}`, `{"a":{}}`, false},
		"NoArray":        {"an object is no array", `{"a":{}}`, `{"a":[]}`, false},
		"Nested":         {"all that at any depth", `{"a":{"b":[{"c":1.50}]}}`, `{"a":{"b":[{"c":1.5}]}}`, true},
		"NestedDiffer":   {"and also what differs", `{"a":{"b":[{"c":1.50}]}}`, `{"a":{"b":[{"c":1.51}]}}`, false},
		"Deep":           {"INP-15: deeply nested", deep("1"), deep("1.0"), true},
		"DeepDiffer":     {"INP-15: deeply nested and different", deep("1"), deep("2"), false},
		"OtherMember":    {"another name", `{"a":1}`, `{"b":1}`, false},
		"MoreMembers":    {"a member more", `{"a":1}`, `{"a":1,"b":1}`, false},
		"Twice":          {"INP-08: of two members of one name the last counts", `{"a":1,"a":2}`, `{"a":2}`, true},
	} {
		a, b := json.RawMessage(tc.a), json.RawMessage(tc.b)
		expect.Same(t, "PROV-09: "+name+": "+tc.reason, tc.want, lifecycle.SameParameters(a, b))
		expect.Same(t, "PROV-09: "+name+": "+tc.reason+", the other way", tc.want, lifecycle.SameParameters(b, a))
	}
	expect.Same(t, "nothing is the same as nothing", true, lifecycle.SameParameters(nil, nil))
}

// Numbers are the same if and only if their exact values are.
func TestSameNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 1))
	digits := func(n int) string {
		out := make([]byte, n)
		for i := range out {
			out[i] = "000123456789"[rng.IntN(12)]
		}
		return string(out)
	}
	number := func() string {
		s := ""
		if rng.IntN(3) == 0 {
			s = "-"
		}
		if whole := strings.TrimLeft(digits(rng.IntN(4)), "0"); whole != "" {
			s += whole
		} else {
			s += "0"
		}
		if rng.IntN(2) == 0 {
			s += "." + digits(1+rng.IntN(4))
		}
		if rng.IntN(2) == 0 {
			s += []string{"e", "E", "e+", "e-", "E-"}[rng.IntN(5)] + digits(1+rng.IntN(2))
		}
		return s
	}
	equal := 0
	for range 20_000 {
		a, b := number(), number()
		x, okX := new(big.Rat).SetString(a)
		y, okY := new(big.Rat).SetString(b)
		if !okX || !okY {
			t.Fatalf("%q or %q is no number", a, b)
		}
		want := x.Cmp(y) == 0
		if want {
			equal++
		}
		if got := lifecycle.SameParameters(json.RawMessage(`[`+a+`]`), json.RawMessage(`[`+b+`]`)); got != want {
			t.Fatalf("PROV-09: %s and %s are the same: %v", a, b, got)
		}
	}
	if equal < 100 {
		t.Errorf("only %d pairs were equal", equal)
	}
}

func TestMergeParameters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason               string
		current, given, want string
	}{
		"Overwrites":   {"what is given replaces", `{"a":1,"b":2}`, `{"b":3}`, `{"a":1,"b":3}`},
		"Adds":         {"or is added", `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`},
		"Nothing":      {"nothing is given", `{"a":1}`, ``, `{"a":1}`},
		"Null":         {"null is as nothing", `{"a":1}`, `null`, `{"a":1}`},
		"Empty":        {"nor is anything in an empty object", `{"a":1}`, `{}`, `{"a":1}`},
		"FromNone":     {"there was nothing before", ``, `{"a":1}`, `{"a":1}`},
		"FromNull":     {"or null", `null`, `{"a":1}`, `{"a":1}`},
		"Neither":      {"there is nothing", ``, `{}`, ``},
		"BothEmpty":    {"of nothing and nothing comes nothing", `{}`, `{}`, ``},
		"NullMember":   {"a member that is given as null is removed", `{"a":1,"b":2}`, `{"a":null}`, `{"b":2}`},
		"NullUnknown":  {"one that is not there stays away", `{"a":1}`, `{"b":null}`, `{"a":1}`},
		"NullLast":     {"nothing may be left", `{"a":1}`, `{"a": null }`, ``},
		"NullDeep":     {"below the first level null is a value", `{"a":{"x":1}}`, `{"a":{"x":null}}`, `{"a":{"x":null}}`},
		"NullBefore":   {"and so it is in what was provisioned", `{"a":null}`, `{"b":1}`, `{"a":null,"b":1}`},
		"Angles":       {"no byte becomes six", `{"a":"<&>"}`, `{"b":"<"}`, `{"a":"<&>","b":"<"}`},
		"Whole":        {"members are replaced as a whole", `{"a":{"x":1,"y":2}}`, `{"a":{"x":3}}`, `{"a":{"x":3}}`},
		"NamesExactly": {"names are compared exactly", `{"a":1}`, `{"A":2}`, `{"A":2,"a":1}`},
		"Digits": {"INP-15: no digit is lost, of what stays or of what comes", `{"a":` + bignum + `}`, `{"b":1e400}`,
			`{"a":` + bignum + `,"b":1e400}`},
		"Twice": {"INP-08: the last counts", `{"a":1}`, `{"a":2,"a":3}`, `{"a":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			current, given := json.RawMessage(tc.current), json.RawMessage(tc.given)
			got := lifecycle.MergeParameters(current, given)
			expect.Same(t, fmt.Sprintf("UPD-08: %s", tc.reason), tc.want, string(got))
			holds(t, string(current) == tc.current && string(given) == tc.given, tc.reason+": it changed what it was given")
			again := lifecycle.MergeParameters(got, given)
			holds(t, lifecycle.SameParameters(again, got), tc.reason+": merging it again gives another", string(again))
		})
	}
	expect.Same(t, "what comes of nothing", nil, lifecycle.MergeParameters(nil, nil))
}

func TestSamePlacement(t *testing.T) {
	of := func(organization, space, context string) lifecycle.Attributes {
		return lifecycle.Attributes{OrganizationGUID: organization, SpaceGUID: space, Context: json.RawMessage(context)}
	}
	type placements struct {
		reason string
		a, b   lifecycle.Attributes
		want   bool
	}
	tests := map[string]placements{
		"Same":         {"it is", of("o", "s", `{"platform":"cf"}`), of("o", "s", `{"platform":"cf"}`), true},
		"Nothing":      {"clients up to 2.9 may name none", of("", "", ``), of("", "", ``), true},
		"Organization": {"another organization", of("o", "s", ``), of("x", "s", ``), false},
		"Space":        {"another space", of("o", "s", ``), of("o", "x", ``), false},
		"Swapped":      {"the guids are not one list", of("o", "s", ``), of("s", "o", ``), false},
		"OneHasNone":   {"one names a place, the other none", of("o", "s", ``), of("", "", ``), false},
		"ContextOnce":  {"a context that only one has says nothing", of("o", "s", `{"platform":"cf"}`), of("o", "s", ``), true},
		"MemberOnce":   {"nor does a member", of("o", "s", `{"platform":"cf","namespace":"n"}`), of("o", "s", `{"platform":"cf"}`), true},
		"Volatile": {"IDEM-06: what may change says nothing",
			of("o", "s", `{"instance_name":"a","organization_name":"b","space_name":"c","organization_annotations":{"x":"y"},"extension":1}`),
			of("o", "s", `{"instance_name":"d","organization_name":"e","space_name":"f","organization_annotations":{},"extension":2}`),
			true},
		"Order": {"nor does the order", of("o", "s", `{"namespace":"n","clusterid":"c"}`), of("o", "s", `{"clusterid":"c","namespace":"n"}`),
			true},
	}
	// The five members that name a place, each by itself.
	for _, member := range []string{"platform", "organization_guid", "space_guid", "namespace", "clusterid"} {
		context := func(value string) lifecycle.Attributes { return of("o", "s", fmt.Sprintf(`{%q:%q}`, member, value)) }
		tests["Same"+member] = placements{"the member is the same", context("a"), context("a"), true}
		tests["Other"+member] = placements{"the member names another place", context("a"), context("b"), false}
	}
	for name, tc := range tests {
		if got, back := lifecycle.SamePlacement(tc.a, tc.b), lifecycle.SamePlacement(tc.b, tc.a); got != tc.want || back != tc.want {
			t.Errorf("PROV-09: %s: %s: %v, and %v the other way", name, tc.reason, got, back)
		}
	}
}

// Values equal themselves and their like, whatever they are, and comparing them is not slower than reading them.
func FuzzSameParameters(f *testing.F) {
	f.Add(`{"a":1.50e+7}`, `{"a":[null,true,"x"]}`)
	f.Add(`{"a":1e999999999}`, `{"a":-0.0}`)
	f.Add(`null`, `{}`)
	f.Add(`[[[[]]]]`, `"text"`)
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := json.RawMessage(a), json.RawMessage(b)
		equal := lifecycle.SameParameters(x, y) // also of what is not JSON
		merged := lifecycle.MergeParameters(x, y)
		if !json.Valid(x) || !json.Valid(y) {
			return
		}
		if !lifecycle.SameParameters(x, x) || lifecycle.SameParameters(y, x) != equal {
			t.Errorf("%s and %s are not compared as equals are", a, b)
		}
		var again any
		d := json.NewDecoder(strings.NewReader(a))
		d.UseNumber()
		expect.OK(t, d.Decode(&again))
		written := expect.Get(json.Marshal(again))(t)
		if !lifecycle.SameParameters(x, written) {
			t.Errorf("%s is not the same as %s", a, written)
		}
		if merged != nil && !json.Valid(merged) {
			t.Errorf("%s and %s are merged to %s", a, b, merged)
		}
	})
}
