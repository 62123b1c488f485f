package plan

import (
	"encoding/json"
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Number is a number as CloudFormation takes it: an integer without a point, and none
// with an exponent. Hazard: to CloudFormation, which compares texts, 0.0 is not 0. The
// number is one that a schema has judged, or a setting: its exponent is small.
func Number(n json.Number) string {
	text := n.String()
	r, ok := new(big.Rat).SetString(text)
	switch {
	case !ok:
		return text
	case r.IsInt():
		return r.Num().String()
	case !strings.ContainsAny(text, "eE"):
		return text // with all its digits
	}
	digits, _ := r.FloatPrec()
	return r.FloatString(digits)
}

// Unwritable reports whether a letter must not stand in a stack. Hazard: AWS takes
// control characters, and its answers cannot be read any more: they are XML, which has
// no way to write them.
func Unwritable(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' || r == '\uFFFE' || r == '\uFFFF'
}

// Tidy gives a text of the platform's that any stack takes, since no user can mend it. Control
// characters become hyphens, and long texts are clipped.
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
