package plan

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/label"
)

// These tags say where an instance was ordered, for people and for their bills. They identify
// nothing, since their texts are clipped and cleaned.
const (
	LabelOrganization = "longshore:organization"
	LabelSpace        = "longshore:space"
	LabelInstanceName = "longshore:instance-name"
)

// labelLetters is how many characters of such a text a tag holds.
const labelLetters = 128

// PlaceLabels returns the tags for a place, without empty ones.
func PlaceLabels(p provider.Place) []label.Label {
	var out []label.Label
	for _, l := range []label.Label{
		{Name: LabelOrganization, Value: p.Organization}, {Name: LabelSpace, Value: p.Space},
		{Name: LabelInstanceName, Value: p.InstanceName},
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
