package lifecycle

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/sorted"
)

// SameParameters reports whether two parameter objects are equal by value:
// the order of members does not count, numbers are compared exactly, and
// absent equals empty (PROV-09). Both are valid JSON or nil.
func SameParameters(a, b json.RawMessage) bool {
	return sameValue(decode(a), decode(b))
}

// A ParameterChange is a member in which two parameter objects differ.
type ParameterChange struct {
	Name    string
	Removed bool // the second object has no member of this name
}

// ChangedParameters returns the members whose values differ, sorted by name.
func ChangedParameters(a, b json.RawMessage) (changes []ParameterChange) {
	x, _ := decode(a).(map[string]any)
	y, _ := decode(b).(map[string]any)
	all := map[string]any{}
	maps.Copy(all, x)
	maps.Copy(all, y)
	for name := range sorted.Map(all) {
		v, had := x[name]
		w, has := y[name]
		if had != has || !sameValue(v, w) {
			changes = append(changes, ParameterChange{Name: name, Removed: !has})
		}
	}
	return changes
}

// decode returns an empty object if raw is absent or null (INP-07).
func decode(raw json.RawMessage) any {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if len(raw) == 0 || d.Decode(&v) != nil || v == nil {
		return map[string]any{}
	}
	return v
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	default:
		return a == b
	}
}

// sameNumber compares two JSON numbers by value without ever expanding an
// exponent: 1e999999999 must not cost more than it weighs (INP-15).
func sameNumber(a, b string) bool {
	an, ad, ae := decimal(a)
	bn, bd, be := decimal(b)
	return ad == bd && (ad == "" || an == bn && ae == be)
}

// decimal splits a JSON number into its sign, its significant digits without
// zeros at either end, and the exponent of the last digit. Zero has no digits.
// The exponent is a decimal number in text, since it may be of any length.
func decimal(s string) (negative bool, digits string, exponent string) {
	s, negative = strings.CutPrefix(s, "-")
	mantissa, exp := s, "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exp = s[:i], s[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	digits = strings.TrimRight(all, "0")
	if e, ok := new(big.Int).SetString(strings.TrimPrefix(exp, "+"), 10); ok {
		exp = e.Add(e, big.NewInt(int64(len(all)-len(digits)-len(fraction)))).String()
	}
	return negative, digits, exp
}

// stableContext lists the members of a platform's context that name a place and do not change. The others
// (names, annotations, unknown ones) are volatile and take no part in the comparison (PROV-09, INP-06).
var stableContext = []string{"platform", "organization_guid", "space_guid", "namespace", "clusterid"}

// Stable returns the stable members of a context, which are recorded in clear. It is nil if
// there are none, or if a record has no room for them.
func Stable(context json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(context, &members) != nil {
		return nil
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return !slices.Contains(stableContext, name) })
	out, err := json.Marshal(members)
	if err != nil || len(members) == 0 || len(out) > limits.StableContext {
		return nil
	}
	return out
}

// SamePlacement reports whether two requests name the same place: it compares the two guids,
// and the stable members of the context that both have.
func SamePlacement(a, b Attributes) bool {
	if a.OrganizationGUID != b.OrganizationGUID || a.SpaceGUID != b.SpaceGUID {
		return false
	}
	x, _ := decode(a.Context).(map[string]any)
	y, _ := decode(b.Context).(map[string]any)
	for _, name := range stableContext {
		v, inX := x[name]
		w, inY := y[name]
		if inX && inY && !sameValue(v, w) {
			return false
		}
	}
	return true
}

// MergeParameters returns the parameters after an update (UPD-08). It applies a merge patch at
// the first level only (RFC 7386): given members replace those of the same name, null removes
// one, and the others stay. Below the first level, and in current, null is a value like any
// other. The result is nil if no member is left.
func MergeParameters(current, given json.RawMessage) json.RawMessage {
	var merged, changes map[string]json.RawMessage
	if json.Unmarshal(current, &merged) != nil || merged == nil {
		merged = map[string]json.RawMessage{}
	}
	if json.Unmarshal(given, &changes) == nil {
		for k, v := range changes {
			if merged[k] = v; string(v) == "null" {
				delete(merged, k)
			}
		}
	}
	if len(merged) == 0 {
		return nil
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // escaping would make six bytes of one
	_ = e.Encode(merged)   // every member is valid JSON
	return bytes.TrimSpace(out.Bytes())
}
