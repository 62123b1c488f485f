package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/longshore/longshore/internal/test/expect"
)

var update = flag.Bool("update", false, "write docs/cli.md")

const (
	repository    = "../.."
	referencePage = repository + "/docs/cli.md"
)

// The reference describes every command and every flag as the program does.
func TestReferenceIsCurrent(t *testing.T) {
	want := string(expect.Get(os.ReadFile("testdata/cli.md"))(t)) + reference()
	if *update {
		expect.OK(t, os.WriteFile(referencePage, []byte(want), 0o644))
	}
	got := expect.Get(os.ReadFile(referencePage))(t)
	expect.Same(t, "docs/cli.md is not what `go test ./cmd/longshore -update` makes", want, string(got))
}

// reference is what follows the head of the page.
func reference() string {
	var b strings.Builder
	root := described()
	everywhere(root, func(c *cobra.Command) {
		if c == root || c.Parent().Name() == "completion" {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n", c.CommandPath())
		long := c.Long
		if long == "" {
			long = c.Short + "."
		}
		if c.Name() == "completion" {
			long = "Print the script that completes commands and flags in a shell: bash, fish, powershell or zsh. " +
				"Its `--help` says where to put it."
		}
		if strings.Contains(long, "\n  ") { // a list, which is to stay one
			first, rest, _ := strings.Cut(long, "\n\n")
			long = first + "\n\n```\n" + rest + "\n```"
		}
		fmt.Fprintln(&b, long)
		if c.HasSubCommands() {
			return
		}
		fmt.Fprintf(&b, "\n```sh\n%s\n```\n", c.UseLine())
		head := "\n| flag | meaning |\n| --- | --- |\n"
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			value, meaning := pflag.UnquoteUsage(f)
			if value != "" {
				value = " " + value
			}
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
				usual := f.DefValue
				if f.Value.Type() == "duration" { // without the parts of it that are zero
					usual = strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(usual)
				}
				if usual != "0" && usual != "0s" { // which stands for none, as the words say
					meaning += "; `" + usual + "` unless given"
				}
			}
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + "`, `" + name
			}
			fmt.Fprintf(&b, "%s| `%s%s` | %s |\n", head, name, value, strings.ReplaceAll(meaning, "|", `\|`))
			head = ""
		})
	})
	return b.String()
}

// A mention is a command line in a text: whole in a block of code, or named in a sentence, where arguments may be missing.
type mention struct {
	where, line string
	whole       bool
}

var (
	span = regexp.MustCompile("`(longshore [^`]+)`")
	// optional parts, as in [ID], are left out.
	optional = regexp.MustCompile(` \[[^\]]*\](\.\.\.)?`)
	calling  = regexp.MustCompile(`(?:^|[ ;(])(?:bin/)?longshore +([a-z-][^|;]*)`)
)

// inText finds the command lines of a page.
func inText(name, text string) (found []mention) {
	fenced := false
	for n, line := range strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		where := fmt.Sprintf("%s, about line %d", name, n+1)
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				found = append(found, mention{where, strings.TrimPrefix(m[1], "longshore "), false})
			}
			continue
		}
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "ExecStart=/usr/local/bin/")
		for strings.Contains(line, "=") && regexp.MustCompile(`^[A-Z_]+=`).MatchString(line) { // VARIABLE='…' before the command
			line = regexp.MustCompile(`^[A-Z_]+=('[^']*'|"[^"]*"|\S*)\s*`).ReplaceAllString(line, "")
		}
		if m := calling.FindStringSubmatch(line); m != nil && regexp.MustCompile(`^(bin/)?longshore `).MatchString(line) {
			found = append(found, mention{where, m[1], true})
		}
	}
	return found
}

// inCode finds the command lines that messages of the program name.
func inCode(t *testing.T, path string) (found []mention) {
	t.Helper()
	files := token.NewFileSet()
	f := expect.Get(parser.ParseFile(files, path, nil, parser.SkipObjectResolution))(t)
	ast.Inspect(f, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value)
			for _, m := range span.FindAllStringSubmatch(text, -1) {
				found = append(found, mention{files.Position(literal.Pos()).String(),
					strings.TrimPrefix(m[1], "longshore "), false})
			}
		}
		return true
	})
	return found
}

// words splits a line as a shell does, as far as the pages need it.
func words(line string) (out []string) {
	word, quote, inside := "", rune(0), false
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word += string(r)
		case r == '\'' || r == '"':
			quote, inside = r, true
		case strings.ContainsRune("#>&", r) && !inside: // a comment, or the shell's own
			return out
		case r == ' ' || r == '\t':
			if inside {
				out = append(out, word)
			}
			word, inside = "", false
		default:
			word, inside = word+string(r), true
		}
	}
	return out
}

// parses reports what is wrong with a command line, without doing anything.
func parses(m mention) error {
	root, did := idle()
	args := words(optional.ReplaceAllString(m.line, ""))
	if m.whole {
		root.SetArgs(args)
		if err := root.Execute(); err != nil {
			return err
		}
		if *did == "" && args[0] != "help" && args[0] != "completion" {
			return errors.New("it does nothing")
		}
		return nil
	}
	c, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%q has no command %q", c.CommandPath(), rest[0])
	}
	return c.ParseFlags(rest)
}

// Every command line in the documentation and in the program's messages can be typed as it stands.
func TestDocumentedCommandLinesExist(t *testing.T) {
	var all []mention
	var pages []string
	for _, folder := range []string{"", "/docs", "/docs/decisions"} {
		pages = append(pages, expect.Get(filepath.Glob(repository+folder+"/*.md"))(t)...)
	}
	for _, page := range pages {
		all = append(all, inText(page, string(expect.Get(os.ReadFile(page))(t)))...)
	}
	for _, script := range []string{"Makefile", ".ci/run"} {
		text := expect.Get(os.ReadFile(filepath.Join(repository, script)))(t)
		all = append(all, inText(script, "```\n"+string(text)+"\n```")...)
	}
	for _, folder := range []string{"cmd", "internal", "infra", "functions"} {
		expect.OK(t, filepath.WalkDir(filepath.Join(repository, folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				all = append(all, inCode(t, path)...)
			}
			return err
		}))
	}
	found := map[bool]int{} // by whether they are whole
	for _, m := range all {
		if err := parses(m); err != nil {
			t.Errorf("%s: longshore %s: %v", m.where, m.line, err)
		}
		found[m.whole]++
	}
	if found[true] < 25 || found[false] < 25 {
		t.Errorf("only %d whole command lines were found, and %d that are named", found[true], found[false])
	}
}

// The test above sees what is wrong.
func TestMentionsAreJudged(t *testing.T) {
	page := "Say `longshore instances`, `longshore frobnicate`, `longshore serve --fast`, `longshore platform rename`.\n" +
		"```sh\nA='b c' bin/longshore retry   # a token is missing\n$ longshore retry TOKEN --data DIR # fine\n" +
		"longshore check \\\n  --lst\nlongshore try URL URL\n```\n"
	judged := func(page string, want ...string) {
		t.Helper()
		var bad []string
		for _, m := range inText("page", page) {
			if parses(m) != nil {
				bad = append(bad, m.line)
			}
		}
		expect.Same(t, "what does not parse", want, bad)
	}
	judged(page, "frobnicate", "serve --fast", "platform rename", "retry   # a token is missing", "check    --lst", "try URL URL")
	judged("```ini\nExecStart=/usr/local/bin/longshore serve --dta x\n```\n", "serve --dta x")
	// The service unit that a page shows is judged, too.
	shown := expect.Get(os.ReadFile(repository + "/docs/one-machine.md"))(t)
	unit := regexp.MustCompile("(?ms)^```ini\n.*?^```$").FindString(string(shown))
	if units := inText("page", unit); len(units) != 1 || !units[0].whole {
		t.Errorf("the page's unit starts the program by %v", units)
	}
}

// Every flag of serve, and every variable that its help names, is on the page of settings.
func TestSettingsPageIsComplete(t *testing.T) {
	page := expect.Get(os.ReadFile(repository + "/docs/settings.md"))(t)
	serve, _, err := described().Find([]string{"serve"})
	expect.OK(t, err)
	names := regexp.MustCompile(`LONGSHORE_[A-Z_]+`).FindAllString(serve.Long, -1)
	serve.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			names = append(names, "--"+f.Name)
		}
	})
	if len(names) < 20 {
		t.Errorf("serve has only the settings %v", names)
	}
	for _, name := range names {
		if !regexp.MustCompile("`" + name + `\b`).Match(page) {
			t.Errorf("docs/settings.md does not have %s", name)
		}
	}
}
