package limits_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/longshore/longshore/internal/base/limits"
)

func TestClip(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want string }{
		"Empty":    {"nothing stays nothing: the description is then left out (LOP-21)", "", ""},
		"Short":    {"what fits stays", "short", "short"},
		"Exact":    {"also if it just fits", "ten letter", "ten letter"},
		"Long":     {"what does not is cut, and says so", "eleven char", "eleven …"},
		"TwoBytes": {"no character is cut in two", "aüüüüüüü", "aüüü…"},
		"Wide":     {"of whatever width", "a𝄞𝄞𝄞𝄞", "a𝄞…"},
		"Invalid":  {"what is no text becomes text", "a\xff\xfeb", "a�b"},
		"Grown":    {"also if that makes it longer", strings.Repeat("a\xff", 5), "a�a…"},
	} {
		t.Run(name, func(t *testing.T) {
			got := limits.Clip(tc.text, 10)
			if got != tc.want || len(got) > 10 || !utf8.ValidString(got) {
				t.Errorf("%s: %q has %d bytes, want %q", tc.reason, got, len(got), tc.want)
			}
		})
	}
}
