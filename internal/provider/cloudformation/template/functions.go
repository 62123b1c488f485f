package template

import (
	"encoding/json"
	"strconv"
	"strings"
)

func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// computed evaluates a function whose arguments are all known.
func computed(name string, list []any) (any, bool) {
	switch {
	case name == "Fn::Join" && len(list) == 2:
		parts, ok := list[1].([]any)
		texts := make([]string, len(parts))
		for i, part := range parts {
			text, is := scalarText(part)
			texts[i], ok = text, ok && is
		}
		separator, _ := list[0].(string)
		return strings.Join(texts, separator), ok
	case name == "Fn::Split" && len(list) == 2:
		separator, _ := list[0].(string)
		text, ok := list[1].(string)
		var parts []any
		for part := range strings.SplitSeq(text, separator) {
			parts = append(parts, part)
		}
		return parts, ok && separator != ""
	case name == "Fn::Select" && len(list) == 2:
		index, _ := scalarText(list[0])
		n, err := strconv.Atoi(index)
		parts, ok := list[1].([]any)
		if !ok || err != nil || n < 0 || n >= len(parts) {
			return nil, false
		}
		return parts[n], true
	case name == "Fn::Equals" && len(list) == 2:
		a, one := scalarText(list[0])
		b, other := scalarText(list[1])
		return a == b, one && other
	case name == "Fn::Not" && len(list) == 1:
		v, ok := list[0].(bool)
		return !v, ok
	case name == "Fn::And" || name == "Fn::Or":
		return both(list, name == "Fn::And")
	}
	return nil, false
}

// both evaluates And or, if and is false, Or. A single condition may decide the result.
func both(list []any, and bool) (any, bool) {
	known := true
	for _, v := range list {
		truth, ok := v.(bool)
		if ok && truth != and {
			return truth, true
		}
		known = known && ok
	}
	return and, known
}
