// Package label writes the tags of a thing as labels that AWS's services accept, and reads them.
package label

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/longshore/longshore/internal/base/limits"
	"github.com/longshore/longshore/internal/base/provider"
)

// The names of the labels that tags become in a cloud.
const (
	Broker      = "longshore:broker"
	Platform    = "longshore:platform"
	Instance    = "longshore:instance"
	Binding     = "longshore:binding" // only on things of a binding
	Incarnation = "longshore:incarnation"
	Of          = "longshore:of" // only on things of a binding
)

// A Label is a tag as clouds have them: a name and a short value of few letters.
type Label struct{ Name, Value string }

// A part is one of the tags, under its label's name.
type part struct {
	name string
	text *string
}

func partsOf(t *provider.Tags) []part {
	return []part{
		{Broker, &t.Broker}, {Platform, &t.Platform}, {Instance, &t.Instance}, {Binding, &t.Binding},
		{Incarnation, &t.Incarnation}, {Of, &t.Of},
	}
}

// Write returns the tags as labels that AWS's services accept: at most a dozen, without the
// empty ones. Ids may hold any characters and be long: a text that is too long for one label
// continues in others, whose names end in ":2", ":3" and so on.
func Write(t provider.Tags) []Label {
	var out []Label
	for _, part := range partsOf(&t) {
		rest := Encode(*part.text)
		for n := 1; rest != ""; n++ {
			end := min(len(rest), limits.TagValue)
			out = append(out, Label{numbered(part.name, n), rest[:end]})
			rest = rest[end:]
		}
	}
	return out
}

// Read reads the tags that Write has written. It ignores other labels beside them.
func Read(labels map[string]string) (provider.Tags, error) {
	var t provider.Tags
	for _, part := range partsOf(&t) {
		var whole strings.Builder
		for n := 1; labels[numbered(part.name, n)] != ""; n++ {
			whole.WriteString(labels[numbered(part.name, n)])
		}
		text, err := Decode(whole.String())
		if err != nil {
			return provider.Tags{}, fmt.Errorf("reading label %q: %w", part.name, err)
		}
		*part.text = text
	}
	return t, nil
}

func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, n)
}

const (
	// plainLetters are the characters that every service accepts in a tag, and that no encoding makes longer.
	plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 +-=._:/@"
	// encodedMark begins an encoded text, and base64url follows.
	encodedMark = "="
	// reservedMark begins texts that only AWS may write.
	reservedMark = "aws:"
)

// Encode returns a text in the characters that labels may have. Most ids stay as they are;
// others take four bytes for three, and one more. No two texts have the same form.
func Encode(s string) string {
	if strings.Trim(s, plainLetters) == "" && !strings.HasPrefix(s, encodedMark) && canStand(s) {
		return s
	}
	return encodedMark + base64.RawURLEncoding.EncodeToString([]byte(s))
}

// canStand reports whether services accept the plain text as a value, or as several values if it is
// long: they may cut off space at the ends of a value, and refuse a value that begins with "aws:".
func canStand(s string) bool {
	lower := strings.ToLower(s)
	if len(s) > limits.TagValue {
		return !strings.Contains(s, " ") && !strings.Contains(lower, reservedMark)
	}
	return s == strings.TrimSpace(s) && !strings.HasPrefix(lower, reservedMark)
}

// Decode reverses Encode.
func Decode(s string) (string, error) {
	encoded, ok := strings.CutPrefix(s, encodedMark)
	if !ok {
		return s, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return string(raw), err
}
