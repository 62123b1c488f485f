// Package sizes measures Go files, and says how large they may become. It leaves it to
// its callers which files those are.
package sizes

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"strings"
)

// The limits of what a reader takes in at once. A suite is code of tests, or of the kit: a case
// that tells its whole story may be longer than a function of product.
const (
	FileLines     = 400
	FunctionLines = 60
	SuiteLines    = 110
	Columns       = 130
	tab           = 4 // columns
)

// A File is what was measured of one.
type File struct {
	Lines     int
	Comments  int   // lines on which a comment stands, and no code
	Tokens    int   // of Go, without comments and without the semicolons that nobody wrote
	Long      []int // the numbers of the lines that have more than Columns
	Functions []Function
}

// A Function is one that is declared by name.
type Function struct {
	Name  string
	Lines int
}

// Measure reads a file that can be parsed.
func Measure(path string) (File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return File{}, err
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	var f File
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			f.Functions = append(f.Functions, Function{Name: fn.Name.Name, Lines: lines})
		}
	}
	for line := range strings.Lines(string(text)) {
		f.Lines++
		if columns(strings.TrimSuffix(line, "\n")) > Columns {
			f.Long = append(f.Long, f.Lines)
		}
	}
	f.scan(text)
	return f, nil
}

func columns(line string) int {
	n := 0
	for _, r := range line {
		if n++; r == '\t' {
			n += tab - 1 - (n-1)%tab
		}
	}
	return n
}

// scan counts tokens, and the lines that comments have to themselves.
func (f *File) scan(text []byte) {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	code, comments := map[int]bool{}, map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		on := code
		if tok == token.COMMENT {
			on = comments
		} else {
			f.Tokens++
		}
		for i := range strings.Count(literal, "\n") + 1 {
			on[file.Line(pos)+i] = true
		}
	}
	for line := range comments {
		if !code[line] {
			f.Comments++
		}
	}
}
