package internal_test

import (
	"regexp"
	"strings"
	"testing"
)

// hides matches a comment that hides its subject. The comment of a function or member that is
// called Of begins with its name, and so does not match.
var hides = regexp.MustCompile(`(?m)^[ \t]*// (What|Whoever|Whatever|Those|Nobody|Somebody)\b.*$`)

// A comment begins with its subject: a reader who has to guess it reads the code instead.
func TestCommentsBeginWithTheirSubject(t *testing.T) {
	names := files(t, "..", ".go")
	if len(names) < 100 {
		t.Fatalf("there are %d files of Go", len(names))
	}
	for _, name := range names {
		lines := strings.Split(read(t, "../"+name), "\n")
		for i, line := range lines {
			continues := i > 0 && strings.HasPrefix(strings.TrimSpace(lines[i-1]), "//")
			if !continues && hides.MatchString(line) {
				t.Errorf("%s:%d: %s: name the subject first", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}
