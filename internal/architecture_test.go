package internal_test

import (
	"go/ast"
	"go/parser"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// A pathed is a path on the page, with what it is said to declare, if anything.
	pathed = regexp.MustCompile("`((?:internal|cmd|functions|infra|offerings|kit|localstack|bench)(?:/[a-z0-9_./-]*)?)`" +
		"(?: \\((`[A-Za-z]+`(?:, `[A-Za-z]+`)*)\\))?")
	quoted = regexp.MustCompile("`([^`]+)`")
)

// The page for contributors names files that exist, what these declare, and each package of each floor.
func TestArchitecturePageIsTrue(t *testing.T) {
	page, declarations := read(t, "../docs/architecture.md"), 0
	for _, m := range pathed.FindAllStringSubmatch(page, -1) {
		path := "../" + m[1]
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the page names %s: %v", m[1], err)
			continue
		}
		for _, name := range quoted.FindAllStringSubmatch(m[2], -1) {
			declarations++
			if !declares(t, path, name[1]) {
				t.Errorf("%s does not declare %s, as the page says", m[1], name[1])
			}
		}
	}
	if declarations < 10 {
		t.Errorf("only %d declarations are named", declarations)
	}
	for _, floor := range floors {
		for _, name := range folders(t, floor) {
			if name != "testdata" && !strings.Contains(page, "`"+name+"`") &&
				!strings.Contains(page, "`internal/"+floor+"/"+name+"`") {
				t.Errorf("the page does not name the package internal/%s/%s", floor, name)
			}
		}
	}
}

// declares reports whether a Go file has a declaration of that name outside functions.
func declares(t *testing.T, path, name string) bool {
	t.Helper()
	named := func(id *ast.Ident) bool { return id.Name == name }
	return slices.ContainsFunc(parsed(t, path, parser.SkipObjectResolution).Decls, func(d ast.Decl) bool {
		if fn, ok := d.(*ast.FuncDecl); ok {
			return named(fn.Name)
		}
		return slices.ContainsFunc(d.(*ast.GenDecl).Specs, func(s ast.Spec) bool {
			switch s := s.(type) {
			case *ast.TypeSpec:
				return named(s.Name)
			case *ast.ValueSpec:
				return slices.ContainsFunc(s.Names, named)
			}
			return false
		})
	})
}
