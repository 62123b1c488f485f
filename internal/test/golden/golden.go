// Package golden holds files to what tests make of them. With -update, a test writes its file anew.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

var update = flag.Bool("update", false, "write the files that tests make")

// File reports how a file differs from what is made for it.
func File(t testing.TB, path, made string) {
	t.Helper()
	if *update {
		expect.OK(t, os.WriteFile(path, []byte(made), 0o644))
	}
	expect.Same(t, path+" is not what `go test -update` makes of it", made, string(expect.Get(os.ReadFile(path))(t)))
}

// Part reports how a part of a page differs from what is made for it, and gives the page as it is to be. The part stands
// between two comments; people write what is around it.
func Part(t testing.TB, path, made string) (page string) {
	t.Helper()
	const from, to = "<!-- made by a test -->\n", "<!-- end -->"
	head, rest, begins := strings.Cut(string(expect.Get(os.ReadFile(path))(t)), from)
	_, tail, ends := strings.Cut(rest, to)
	if !begins || !ends {
		t.Fatalf("%s does not have %s and %s", path, from, to)
	}
	page = head + from + made + to + tail
	File(t, path, page)
	return page
}
