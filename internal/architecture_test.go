package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
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

// The page for contributors names files that exist, what these declare, and each package
// of each floor.
func TestArchitecturePageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	declarations := 0
	for _, m := range pathed.FindAllStringSubmatch(page, -1) {
		path := filepath.Join("..", filepath.FromSlash(m[1]))
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
		entries, err := os.ReadDir(floor)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && e.Name() != "testdata" &&
				!strings.Contains(page, "`"+e.Name()+"`") && !strings.Contains(page, "`internal/"+floor+"/"+e.Name()+"`") {
				t.Errorf("the page does not name the package internal/%s/%s", floor, e.Name())
			}
		}
	}
}

// declares reports whether a Go file has a declaration of that name outside functions.
func declares(t *testing.T, path, name string) bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	named := func(id *ast.Ident) bool { return id.Name == name }
	return slices.ContainsFunc(f.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		if ok {
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
