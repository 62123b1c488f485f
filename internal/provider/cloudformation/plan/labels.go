package plan

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
)

// labelLetters is how many characters of such a text a tag holds.
const labelLetters = 128

// PlaceLabels returns the tags that say where an instance was ordered, for people and for their bills,
// without empty ones. They identify nothing, since their texts are clipped and cleaned.
func PlaceLabels(p provider.Place) []label.Label {
	var out []label.Label
	for _, l := range []label.Label{
		{Name: "longshore:organization", Value: p.Organization}, {Name: "longshore:space", Value: p.Space},
		{Name: "longshore:instance-name", Value: p.InstanceName},
	} {
		if l.Value = Clean(l.Value); l.Value != "" {
			out = append(out, l)
		}
	}
	return out
}

// Clean returns a text that every service takes as the value of a tag: it replaces each character
// other than letters, digits, spaces and _.:/=+-@ by a hyphen.
func Clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" _.:/=+-@", r) {
			return '-'
		}
		return r
	}, text)
	if letters := []rune(text); len(letters) > labelLetters {
		text = string(letters[:labelLetters])
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(strings.ToLower(text), "aws:") { // only AWS may write such values
		text = "-" + text
	}
	return text
}
