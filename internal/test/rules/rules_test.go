package rules_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance.md")

const document = "../../../docs/conformance.md"

// A rule is one of the requirement list.
type rule struct{ section, id, level, note string }

func readRules(t *testing.T) []rule {
	t.Helper()
	raw, err := os.ReadFile("rules.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var out []rule
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		members := strings.Split(line, "\t")
		if len(members) != 4 {
			t.Fatalf("line %q has not four members", line)
		}
		out = append(out, rule{members[0], members[1], members[2], members[3]})
	}
	return out
}

// named are rules as tests write them.
var named = regexp.MustCompile(`\b(?:AUTH|BIND|CAT|CLI|CONC|DEPR|ERR|FAC|GETB|GETI|HDR|IDEM|INP|` +
	`LOB|LOP|MISC|NFR|OID|ORB|ORP|POLL|PROV|RID|ROT|SIM|UNB|UPD)-[0-9]{2}[a-z]?\b`)

// holders are the tests that name each rule: functions of test files and of
// suites, and the conformance kit, whose cases are tests of any broker.
func holders(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string]map[string]bool{}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "../../.." &&
				(strings.HasPrefix(name, ".") || name == "bench" || name == "node_modules" || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		dir := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), filepath.FromSlash("../../../")))
		kit := dir == "kit/conformance" && !strings.HasSuffix(path, "_test.go")
		suite := strings.HasSuffix(dir, "test")
		if !strings.HasSuffix(path, ".go") || !kit && !suite && !strings.HasSuffix(path, "_test.go") || dir == "internal/test/rules" {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, place := range named.FindAllIndex(text, -1) {
			id := string(text[place[0]:place[1]])
			holder := "the conformance kit"
			if !kit {
				holder = dir + " " + enclosing(set, f, place[0])
			}
			if found[id] == nil {
				found[id] = map[string]bool{}
			}
			found[id][holder] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for id, names := range found {
		out[id] = slices.Sorted(maps.Keys(names))
	}
	return out
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

func render(rules []rule, held map[string][]string) []byte {
	var b bytes.Buffer
	b.WriteString(`# Which test holds which rule

The rules are those of the project's requirement list, which is drawn from the Cloud Foundry v2.9 document, the versions of the Open
Service Broker API to 2.17, and the asynchronous request-reply pattern; comments and tests name them. The level is what the
project promises for its own broker: the documents' word, in places firmer; REC is what no document asks. What the documents
ask of any broker is what the kit reports. This page is made by
` + "`go test ./internal/test/rules -update`" + `, and a test keeps it true. Deliberate departures are in
[divergences.md](divergences.md), and the kit is described in [conformance-kit.md](conformance-kit.md).
`)
	section := ""
	for _, r := range rules {
		if r.section != section {
			section = r.section
			fmt.Fprintf(&b, "\n## %s\n\n| rule | level | held by |\n| --- | --- | --- |\n", section)
		}
		by := strings.Join(held[r.id], ", ")
		switch {
		case by == "" && r.note == "":
			by = "—"
		case by == "":
			by = r.note
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.id, r.level, by)
	}
	return b.Bytes()
}

func TestEveryRuleIsHeld(t *testing.T) {
	rules, held := readRules(t), holders(t)
	known := map[string]bool{}
	for _, r := range rules {
		if known[r.id] {
			t.Errorf("%s is listed twice", r.id)
		}
		known[r.id] = true
		if r.level != "MAY" && r.note == "" && len(held[r.id]) == 0 {
			t.Errorf("%s (%s) is held by no test: name it in the one that does, or write one", r.id, r.level)
		}
	}
	for id, by := range held {
		if !known[id] {
			t.Errorf("%s, which %v names, is no rule", id, by)
		}
	}
	if len(rules) < 350 {
		t.Errorf("only %d rules are listed", len(rules))
	}
	page := render(rules, held)
	if *update {
		if err := os.WriteFile(document, page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(document); err != nil || !bytes.Equal(got, page) {
		t.Errorf("docs/conformance.md is not up to date (%v): run go test ./internal/test/rules -update", err)
	}
}
