package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/sorted"
)

// A limit is a keyword that bounds a number: a numeric value, or a count of the value's parts.
type limit struct {
	keyword, noun string // noun names the counted parts; empty for the value itself
	allows        func(number, bound *big.Rat) bool
	rule          string // has a place for the bound
}

// A bound is a limit with the number that a schema gives it.
type bound struct {
	limit
	is *big.Rat
}

// The limits of values, and the limits of the number of items that a schema matches.
var (
	ofValues = []limit{
		{"minLength", "character", atLeast, "must have at least %s"},
		{"maxLength", "character", atMost, "must have at most %s"},
		{"minItems", "item", atLeast, "must have at least %s"},
		{"maxItems", "item", atMost, "must have at most %s"},
		{"minProperties", "member", atLeast, "must have at least %s"},
		{"maxProperties", "member", atMost, "must have at most %s"},
		{"minimum", "", atLeast, "must be at least %s"},
		{"maximum", "", atMost, "must be at most %s"},
		{"exclusiveMinimum", "", func(n, bound *big.Rat) bool { return n.Cmp(bound) > 0 }, "must be greater than %s"},
		{"exclusiveMaximum", "", func(n, bound *big.Rat) bool { return n.Cmp(bound) < 0 }, "must be less than %s"},
		{"multipleOf", "", func(n, bound *big.Rat) bool { return new(big.Rat).Quo(n, bound).IsInt() },
			"must be a multiple of %s"},
	}
	ofMatches = []limit{
		{"minContains", "item", atLeast, "must have at least %s of the form that the plan asks for"},
		{"maxContains", "item", atMost, "must have at most %s of the form that the plan asks for"},
	}
)

func atLeast(n, bound *big.Rat) bool { return n.Cmp(bound) >= 0 }
func atMost(n, bound *big.Rat) bool  { return n.Cmp(bound) <= 0 }

// size returns a number's value, or the count of the value's parts; nil if the value has neither.
func size(v any) (n *big.Rat, noun string) {
	switch v := v.(type) {
	case json.Number:
		return rational(v), ""
	case string:
		return whole(utf8.RuneCountInString(v)), "character"
	case []any:
		return whole(len(v)), "item"
	case map[string]any:
		return whole(len(v)), "member"
	}
	return nil, ""
}

func whole(n int) *big.Rat { return big.NewRat(int64(n), 1) }

// rational converts a number that is not Extreme.
func rational(n json.Number) *big.Rat {
	r, _ := new(big.Rat).SetString(n.String())
	return r
}

// isOf reports whether a value has the named type.
func isOf(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		return name == "number" || name == "integer" && rational(v).IsInt()
	}
	return false
}

// canonical returns the same text for values that are equal as JSON, such as 1 and 1.0.
func canonical(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case json.Number:
		return rational(v).RatString()
	case []any:
		for _, item := range v {
			parts = append(parts, canonical(item))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		for name, member := range sorted.Map(v) {
			parts = append(parts, strconv.Quote(name)+":"+canonical(member))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v) // true, false or nil
}

// twice finds two equal items; second is 0 if there are none.
func twice(list []any) (first, second int) {
	seen := map[string]int{}
	for j, item := range list {
		text := canonical(item)
		if i, before := seen[text]; before {
			return i, j
		}
		seen[text] = j
	}
	return 0, 0
}
