package rules_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/golden"
	"github.com/longshore/longshore/kit/conformance"
)

const (
	root     = "../../.."
	document = root + "/docs/conformance.md"
)

// A rule is a line of rules.tsv, with the title that it stands under.
type rule struct{ title, id, level, sentence, source, note string }

func readRules(t *testing.T) []rule {
	t.Helper()
	raw := expect.Get(os.ReadFile("rules.tsv"))(t)
	var out []rule
	title := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		m := strings.Split(line, "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case len(m) == 1:
			title = line
		case len(m) == 5:
			out = append(out, rule{title, m[0], m[1], m[2], m[3], m[4]})
		default:
			t.Fatalf("line %q has not five members", line)
		}
	}
	return out
}

// named are rules as code, comments and pages write them.
var named = regexp.MustCompile(`\b[A-Z]{3,4}-[0-9]{2}\b`)

// others look like rules.
var others = []string{"UTF-16", "CRC-32"}

// walk calls visit with each Go file and page of the project, and with the scripts of CI.
func walk(t *testing.T, visit func(path string, text []byte) error) {
	t.Helper()
	expect.OK(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") && name != ".ci" || name == "node_modules" ||
				name == "testdata" && filepath.Base(filepath.Dir(path)) != "e2e") {
				return filepath.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(name); ext != ".go" && ext != ".md" && name != "peers.txt" &&
			filepath.Base(filepath.Dir(path)) != ".ci" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return visit(path, text)
	}))
}

// holders are the tests that name each rule: functions of test files and of
// suites, and the conformance kit, whose cases are tests of any broker.
func holders(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	walk(t, func(path string, text []byte) error {
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.FromSlash(root+"/")))
		kit := dir == "kit/conformance" && !strings.HasSuffix(path, "_test.go")
		suite := strings.HasSuffix(dir, "test")
		if !strings.HasSuffix(path, ".go") || !kit && !suite && !strings.HasSuffix(path, "_test.go") ||
			dir == "internal/test/rules" {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, place := range named.FindAllIndex(text, -1) {
			id := string(text[place[0]:place[1]])
			holder := "the conformance kit"
			if !kit {
				holder = dir + " " + enclosing(set, f, place[0])
			}
			found[id] = append(found[id], holder)
		}
		return nil
	})
	for id, names := range found {
		slices.Sort(names)
		found[id] = slices.Compact(names)
	}
	return found
}

// enclosing is the function whose text or comment stands at an offset.
func enclosing(set *token.FileSet, f *ast.File, offset int) string {
	for _, d := range f.Decls {
		from, to := set.Position(d.Pos()).Offset, set.Position(d.End()).Offset
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Doc != nil {
			from = set.Position(fn.Doc.Pos()).Offset
		}
		if ok && from <= offset && offset < to {
			return fn.Name.Name
		}
	}
	return filepath.Base(set.Position(f.Pos()).Filename)
}

// render is the table of all rules. Its page is written by `go test ./internal/test/rules -update`.
func render(rules []rule, held map[string][]string) string {
	var b strings.Builder
	title := ""
	for _, r := range rules {
		if r.title != title {
			title = r.title
			fmt.Fprintf(&b, "\n## %s\n\n| rule | level | sentence | source | held by |\n| --- | --- | --- | --- | --- |\n", title)
		}
		by := cmp.Or(strings.Join(held[r.id], ", "), r.note, "—")
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.id, r.level, r.sentence, r.source, by)
	}
	return b.String()
}

// documented are the sources that a rule may have.
var documented = regexp.MustCompile(`^(2\.(9|1[0-7]) [A-Z].+|RFC 9110 [0-9.]+|Request-Reply|` +
	`Cloud (Foundry operations|Controller)|client|own)$`)

func TestEveryRuleIsHeld(t *testing.T) {
	rules, held := readRules(t), holders(t)
	known := map[string]bool{}
	for _, r := range rules {
		if known[r.id] {
			t.Errorf("%s is listed twice", r.id)
		}
		known[r.id] = true
		if !strings.HasSuffix(r.sentence, ".") || strings.Contains(r.sentence, "|") || !documented.MatchString(r.source) {
			t.Errorf("%s has no sentence, or a source of no known kind: %q, %q", r.id, r.sentence, r.source)
		}
		if r.level != "MAY" && r.note == "" && len(held[r.id]) == 0 {
			t.Errorf("%s (%s) is held by no test: name it in the one that does, or write one", r.id, r.level)
		}
	}
	expect.Least(t, "rules that are listed", 350, len(rules))
	golden.Part(t, document, render(rules, held))
}

// Code, comments and pages cite existing rules, and a rule that nobody cites says why.
func TestWhatIsCitedIsARule(t *testing.T) {
	rules := readRules(t)
	cited := map[string]bool{}
	walk(t, func(path string, text []byte) error {
		if path == filepath.FromSlash(document) {
			return nil
		}
		for _, id := range named.FindAllString(string(text), -1) {
			known := slices.ContainsFunc(rules, func(r rule) bool { return r.id == id })
			if !known && !slices.Contains(others, id) {
				t.Errorf("%s cites %s, which is no rule of rules.tsv", path, id)
			}
			cited[id] = true
		}
		return nil
	})
	for _, r := range rules {
		if !cited[r.id] && r.note == "" {
			t.Errorf("%s is cited nowhere, and its line does not say why", r.id)
		}
	}
}

// A rule that a document asks of any broker has no later version here, and is no decision of our own.
func TestSourcesAgreeWithTheKit(t *testing.T) {
	rules := readRules(t)
	for _, c := range conformance.Cases() {
		i := slices.IndexFunc(rules, func(r rule) bool { return r.id == c.Rule() })
		if i < 0 {
			t.Errorf("%s is a case of no rule", c.ID)
			continue
		}
		r := rules[i]
		first := slices.IndexFunc(c.Sources, func(s conformance.Source) bool {
			return s.Level != conformance.Recommended && s.Document != "RFC 9110, HTTP Semantics"
		})
		if first < 0 {
			continue
		}
		var minor int
		if _, err := fmt.Sscanf(r.source, "2.%d ", &minor); err != nil || minor > c.Sources[first].From {
			t.Errorf("%s is from %q, and its case %s from %v", r.id, r.source, c.ID, c.Sources[first])
		}
	}
}
