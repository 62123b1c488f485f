package plan

import (
	"encoding/json"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Number returns a number in the form that CloudFormation takes: an integer without a point, and
// never an exponent. Hazard: CloudFormation compares texts, so that 0.0 is not 0. A schema has
// checked the number, or it is a setting, so its exponent is small.
func Number(n json.Number) string {
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
	if len(text) <= MaxValue {
		return text
	}
	end := MaxValue
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
