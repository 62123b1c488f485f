package plan

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

// Text returns a value of a parameter, or of a setting, in the form that CloudFormation takes: as
// text. A list becomes its items between commas. If CloudFormation does not take the value, why
// says so, and what to give instead.
func Text(v any) (text, why string) {
	switch v := v.(type) {
	case string:
		text = v
	case json.Number:
		text = number(v)
	case float64: // settings are read as floats
		text = strconv.FormatFloat(v, 'f', -1, 64)
	case bool, int:
		text = fmt.Sprint(v)
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			if _, nested := item.([]any); nested {
				return "", "is a list of lists. Give a list of texts."
			}
			if items[i], why = Text(item); why != "" {
				return "", why
			}
			if strings.Contains(items[i], ",") {
				return "", "has a list in which one has a comma. Give each without commas."
			}
		}
		text = strings.Join(items, ",")
	default:
		return "", "is neither a text, a number, true or false, nor a list of these."
	}
	switch {
	case strings.ContainsFunc(text, Unwritable):
		why = "has a control character. Give one without."
	case len(text) > MaxValue:
		why = fmt.Sprintf("is longer than %d bytes. Give a shorter one.", MaxValue)
	}
	return text, why
}

// number returns a number in the form that CloudFormation takes: an integer without a point, and
// never an exponent. Hazard: CloudFormation compares texts, so that 0.0 is not 0. A schema has
// checked the number, or it is a setting, so its exponent is small.
func number(n json.Number) string {
	text := n.String()
	r, ok := new(big.Rat).SetString(text)
	switch {
	case !ok:
		return text
	case r.IsInt():
		return r.Num().String()
	case !strings.ContainsAny(text, "eE"):
		return text // keeps all its digits
	}
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

// Unwritable reports whether a character must not stand in a stack. Hazard: AWS takes control
// characters, but its answers can then not be read any more: they are XML, which cannot represent
// them.
func Unwritable(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF'
}

// Tidy turns a text of the platform into one that any stack takes, since no user can mend it:
// control characters become hyphens, and a long text is clipped.
func Tidy(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || Unwritable(r) {
			return '-'
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), MaxValue)], "") // without half a character at the end
}
