package template

import (
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// JSON Schema says which patterns all read alike.
func TestCommonPatterns(t *testing.T) {
	for pattern, want := range map[string]bool{
		"[a-z]+": true, "^[^a-z_.-]*$": true, "(a|b){2,3}c?": true, `a\.b\-c\[`: true, "[a-z]{2}": true, "": true, "é+": true,
		"(?i)a": false, "(?:a)": false, "(?=a)a": false, `\d+`: false, `[\w]`: false,
		"[a&&b]": false, "[[:alpha:]]": false, "a.b": false,
		`\p{L}`: false, "a++": false, "a{,3}": false, "a{1,2000}": false, "(a": false, "[a": false, `\\(?i)`: false, "a{": false,
	} {
		expect.Same(t, pattern, want, common(pattern))
	}
}
