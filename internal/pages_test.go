package internal_test

import (
	"go/ast"
	"go/parser"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// generated are the reference pages that tests write. Nobody reads one from its first to its last line.
var generated = []string{"docs/catalog.md", "docs/cli.md", "docs/conformance.md"}

// pagesOf reads the pages that people write, by their names.
func pagesOf(t *testing.T) (pages map[string]string) {
	t.Helper()
	pages = map[string]string{}
	for _, name := range files(t, "..", ".md") {
		if slices.Contains([]string{".", "docs", "docs/decisions"}, path.Dir(name)) {
			pages[name] = read(t, "../"+name)
		}
	}
	expect.Least(t, "pages", 20, len(pages))
	return pages
}

// A reader has an hour, not a day. Words are counted as by `wc -w`.
func TestPagesAreShort(t *testing.T) {
	const (
		mostReadme   = 1_000
		mostGlossary = 700
		mostDocs     = 30_000
	)
	pages, docs := pagesOf(t), 0
	for name, text := range pages {
		if strings.HasPrefix(name, "docs/") && !slices.Contains(generated, name) {
			docs += len(strings.Fields(text))
		}
	}
	for what, words := range map[string][2]int{
		"README.md":                        {len(strings.Fields(pages["README.md"])), mostReadme},
		"docs/glossary.md":                 {len(strings.Fields(pages["docs/glossary.md"])), mostGlossary},
		"docs, without what is generated,": {docs, mostDocs},
	} {
		if t.Logf("%s: %d words of %d", what, words[0], words[1]); words[0] > words[1] {
			t.Errorf("%s has %d words, and may have %d: cut what no reader needs", what, words[0], words[1])
		}
	}
}

// A long page opens with a table of contents.
func TestLongPagesHaveATableOfContents(t *testing.T) {
	const long = 1_000
	for name, text := range pagesOf(t) {
		opening, _, _ := strings.Cut(text, "\n## ")
		if len(strings.Fields(text)) > long && slices.Contains(byQuestion, name) && !strings.Contains(opening, "](#") {
			t.Errorf("%s has no table of contents", name)
		}
	}
}

// byQuestion are the pages that answer an operator's first twelve questions.
var byQuestion = []string{
	"docs/start.md", "docs/register.md", "docs/aws.md", "docs/costs.md", "docs/accounts.md", "docs/one-machine.md",
	"docs/upgrade.md", "docs/backup.md", "docs/recover.md", "docs/stuck.md", "docs/whose.md", "docs/rotate.md",
}

// Each question is answered one click from the README, and from the list of all pages, which names every page.
func TestQuestionsAreOneClickAway(t *testing.T) {
	pages := pagesOf(t)
	for _, name := range byQuestion {
		if !strings.Contains(pages["README.md"], "]("+name+")") {
			t.Errorf("the README does not lead to %s", name)
		}
	}
	for name := range pages {
		listed := name == "docs/README.md" || strings.Contains(pages["docs/README.md"], "]("+path.Base(name)+")")
		if path.Dir(name) == "docs" && !listed {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// named is a page that code names, in a comment or a message. Targets of make are
	// spoken of in a sentence, or typed in a block.
	named  = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md(#[a-z0-9-]+)?`)
	spoken = regexp.MustCompile("`make ((?:[a-z][a-z-]*[ `])+)")
	typed  = regexp.MustCompile(`(?m)^make ((?:[a-z][a-z-]*(?: |$))+)`)
)

// anchors are the places of a page that a link may lead to, as GitHub names them.
func anchors(page string) (names []string) {
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		names = append(names, name)
	}
	return names
}

// leads reports whether a link of a page leads to something that is there.
func leads(pages map[string]string, from, to string) bool {
	file, anchor, _ := strings.Cut(to, "#")
	name := from
	if file != "" {
		name = path.Join(path.Dir(from), file)
	}
	if _, err := os.Stat("../" + name); err != nil {
		return false
	}
	return anchor == "" || slices.Contains(anchors(pages[name]), anchor)
}

// Every link between pages leads to a heading or a file that exists, and so does every page that code names.
func TestLinksResolve(t *testing.T) {
	pages, followed := pagesOf(t), 0
	for name, text := range pages {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			followed++
			if !leads(pages, name, m[1]) {
				t.Errorf("%s: the link to %s leads nowhere", name, m[1])
			}
		}
	}
	for _, file := range files(t, "..", ".go") {
		for _, to := range named.FindAllString(read(t, "../"+file), -1) {
			followed++
			if !leads(pages, "README.md", to) {
				t.Errorf("%s names %s, which is not there", file, to)
			}
		}
	}
	expect.Least(t, "links that were found", 300, followed)
}

// targets are the targets of make that a page names.
func targets(page string) (names []string) {
	found := spoken.FindAllStringSubmatch(page, -1)
	for _, block := range fenced.FindAllString(page, -1) {
		found = append(found, typed.FindAllStringSubmatch(block, -1)...)
	}
	for _, m := range found {
		names = append(names, strings.Fields(strings.Trim(m[1], "` "))...)
	}
	return names
}

// Every target of make that a page names is in the Makefile.
func TestPagesNameTargetsOfMake(t *testing.T) {
	makefile, found := read(t, "../Makefile"), 0
	for name, text := range pagesOf(t) {
		for _, target := range targets(text) {
			found++
			if !regexp.MustCompile(`(?m)^` + target + `:`).MatchString(makefile) {
				t.Errorf("%s names make %s, which the Makefile does not have", name, target)
			}
		}
	}
	expect.Least(t, "targets that are named", 30, found)
}

// The program writes each message that the page of one machine has an operator alarm on.
func TestMessagesOfThePageAreWritten(t *testing.T) {
	page := pagesOf(t)["docs/one-machine.md"]
	_, table, _ := strings.Cut(page, "| the line says |")
	table, _, _ = strings.Cut(table, "\n\n")
	var code strings.Builder
	for _, file := range files(t, ".", ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			code.WriteString(read(t, file))
		}
	}
	found := 0
	for row := range strings.Lines(table) {
		says, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, m := range quoted.FindAllStringSubmatch(says, -1) {
			found++
			if !strings.Contains(code.String(), strings.TrimPrefix(m[1], "…")) {
				t.Errorf("docs/one-machine.md names the message %q, which nothing writes", m[1])
			}
		}
	}
	expect.Least(t, "messages that are named", 8, found)
}

// The tests above see what is wrong.
func TestBrokenLinksAreSeen(t *testing.T) {
	pages := map[string]string{"docs/aws.md": "# On AWS\n\n```sh\n# no heading\n```\n\n## What's `left`?\n"}
	for to, want := range map[string]bool{
		"aws.md": true, "aws.md#whats-left": true, "#on-aws": true, "../infra/main.go": true,
		"aws.md#no-heading": false, "aws.md#left": false, "nowhere.md": false, "../infra/nothing.go": false,
	} {
		expect.Same(t, "a link to "+to+" leads somewhere", want, leads(pages, "docs/aws.md", to))
	}
	page := "`make run` and `make functions`\n```sh\nmake localstack-up localstack-deploy\nmake deploy CONTEXT=x\n" +
		"```\nmake sure\n"
	want := []string{"run", "functions", "localstack-up", "localstack-deploy", "deploy"}
	expect.Same(t, "the targets that are found", want, targets(page))
}

// hides matches a comment that hides its subject. The comment of a function or member that is
// called Of begins with its name, and so does not match.
var hides = regexp.MustCompile(`(?m)^[ \t]*// (What|Whoever|Whatever|Those|Nobody|Somebody)\b.*$`)

// A comment begins with its subject: a reader who has to guess it reads the code instead.
func TestCommentsBeginWithTheirSubject(t *testing.T) {
	names := files(t, "..", ".go")
	expect.Least(t, "files of Go", 100, len(names))
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
	expect.Least(t, "declarations that are named", 10, declarations)
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
