package sizes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/sizes"
)

func TestMeasure(t *testing.T) {
	full := "\t// " + strings.Repeat("ä", sizes.Columns-7) // a tab, two slashes and a space
	path := filepath.Join(t.TempDir(), "a.go")
	text := `// Package a
// has two lines of comment here.
package a

/* and three
more, of
which none has code */

func (x T) f() { // this one has code
	_ = ` + "`// no\n// comment`" + `
` + full + "\n" + full + "ä\n}\n"
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	got, err := sizes.Measure(path)
	expect.OK(t, err)
	want := sizes.File{
		Lines: 14, Comments: 7, Long: []int{13},
		Tokens:    2 + 8 + 4 + 1, // package a; func (x T) f() {; _ = and a text; }
		Functions: []sizes.Function{{Name: "f", Lines: 6}},
	}
	expect.Same(t, "the file was measured as something else", want, got)
}
