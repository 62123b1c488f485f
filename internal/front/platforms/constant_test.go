package platforms_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// AUTH-02: a login costs no hash that is slow on purpose, which would let anybody keep the broker busy, and takes as long
// whatever is wrong with it: secrets meet in constant time only, and no comparison is left out because another one has failed. A
// clock could not tell; the code can be read.
func TestLoginsAreCheapAndConstant(t *testing.T) {
	functions := map[string]*ast.FuncDecl{}
	for _, path := range expect.Get(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := expect.Get(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
		for _, spec := range f.Imports {
			expect.Never(t, path+" imports what is slow on purpose", spec.Path.Value, "bcrypt", "scrypt", "argon2", "pbkdf2")
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				functions[receiver(fn)+fn.Name.Name] = fn
			}
		}
		for n := range ast.Preorder(f) {
			if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) &&
				(secret(b.X) && !empty(b.Y) || secret(b.Y) && !empty(b.X)) {
				t.Errorf("%s compares a password with %s, byte by byte until they differ", path, b.Op)
			}
		}
	}

	if !calls(functions["same"], "ConstantTimeCompare") {
		t.Error("same does not compare in constant time")
	}
	for n := range ast.Preorder(functions["Credential.matches"]) {
		if b, ok := n.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) && calls(b.Y, "same") {
			t.Error("Credential.matches leaves a comparison out when the other has failed")
		}
	}
	for _, name := range []string{"Platform.Until", "Registry.authenticate"} {
		if functions[name] == nil || !calls(functions[name], "matches") {
			t.Fatalf("%s is not there, or compares nothing: the test proves nothing", name)
		}
		for n := range ast.Preorder(functions[name]) {
			loop, ok := n.(*ast.RangeStmt)
			if !ok {
				continue
			}
			for n := range ast.Preorder(loop) {
				switch n.(type) {
				case *ast.ReturnStmt, *ast.BranchStmt:
					t.Errorf("%s ends its loop early", name)
				}
			}
		}
	}
}

func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	of := fn.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	return of.(*ast.Ident).Name + "."
}

// secret is an expression that reads a password, and empty one that is "".
func secret(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name == "Password"
	case *ast.Ident:
		return x.Name == "password"
	}
	return false
}

func empty(x ast.Expr) bool {
	literal, ok := x.(*ast.BasicLit)
	return ok && literal.Value == `""`
}

// calls reports whether something calls a function or method of this name.
func calls(in ast.Node, name string) bool {
	for n := range ast.Preorder(in) {
		if call, ok := n.(*ast.CallExpr); ok {
			fn, _ := call.Fun.(*ast.Ident)
			if of, ok := call.Fun.(*ast.SelectorExpr); ok {
				fn = of.Sel
			}
			if fn != nil && fn.Name == name {
				return true
			}
		}
	}
	return false
}
