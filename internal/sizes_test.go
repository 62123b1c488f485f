package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// What a reader takes in at once. A suite is code of tests: a test file, a
// package that only tests import, or the kit.
const (
	productLines = 60
	suiteLines   = 110
	lineLength   = 140
)

// Functions and lines stay short enough to be read at once, in all Go code,
// the benchmark's module included.
func TestFunctionsAreShort(t *testing.T) {
	seen := 0
	for path := range goFiles(t) {
		seen++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join("..", path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		limit := productLines
		if strings.HasSuffix(path, "_test.go") || below(path, "internal/test") || strings.HasPrefix(path, "kit/") {
			limit = suiteLines
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := path + " " + fn.Name.Name
			lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			if lines > limit {
				t.Errorf("%s has %d lines, over %d: take a part out of it", name, lines, limit)
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d files were seen", seen)
	}
}

func TestLinesAreShort(t *testing.T) {
	for path := range goFiles(t) {
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			if length := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); length > lineLength {
				t.Errorf("%s:%d has %d characters, over %d", path, n, length, lineLength)
			}
		}
	}
}

// goFiles are the paths of all Go files from the root of the repository.
func goFiles(t *testing.T) iter.Seq[string] {
	t.Helper()
	return func(yield func(string) bool) {
		err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && path != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			if !d.IsDir() && strings.HasSuffix(path, ".go") && !yield(filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))) {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
