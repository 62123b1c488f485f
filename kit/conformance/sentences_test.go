package conformance

import (
	"cmp"
	flags "flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

var documents = flags.String("documents", "",
	"a folder with the documents of the versions, 2.9.md to 2.17.md: compare the sentences with them, and write what stands in "+
		"them")

// proved lists the sentences that were found verbatim in the document of each version. The
// documents are not part of this repository.
const proved = "testdata/sentences.txt"

// Markup that a sentence is given without.
var (
	links = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	codes = regexp.MustCompile(`</?(tt|code)>`)
	tags  = regexp.MustCompile(`<[^>]*>`)
)

func plainText(markdown string) string {
	t := links.ReplaceAllString(markdown, "$1")
	t = tags.ReplaceAllString(codes.ReplaceAllString(t, "`"), " ")
	t = strings.NewReplacer(`\_`, "_", "&nbsp;", " ").Replace(t)
	return strings.Join(strings.Fields(t), " ")
}

// printed are the lines "version, tab, text" for each sentence, and for each title
// of a section, that some case prints in a run of some version.
func printed() []string {
	lines := map[string]bool{}
	add := func(s Source, minor int) {
		if s.Sentence == "" || !strings.HasPrefix(s.Document, osb+" v") && !strings.HasPrefix(s.Document, cf+" v") {
			return // of no version, or of another document
		}
		lines[fmt.Sprintf("2.%d\t%s", minor, s.Sentence)] = true
	}
	for _, c := range Cases() {
		for minor := OldestMinor; minor <= NewestMinor; minor++ {
			if s, ok := c.At(minor); ok {
				add(s, cmp.Or(c.speaks, minor))
			}
		}
	}
	for minor := OldestMinor; minor <= NewestMinor; minor++ {
		for _, h := range (&Knowledge{unguarded: true}).hazards(minor) {
			add(h.Source, minor)
		}
	}
	return slices.SortedFunc(maps.Keys(lines), func(a, b string) int { return strings.Compare(after(a)+a, after(b)+b) })
}

func after(line string) string { return line[strings.Index(line, "\t")+1:] }

// Each sentence that is printed for a version stands verbatim in the version's own document.
func TestSentencesStandInTheirDocuments(t *testing.T) {
	lines := printed()
	if *documents != "" {
		text := map[string]string{}
		for minor := OldestMinor; minor <= NewestMinor; minor++ {
			version := fmt.Sprintf("2.%d", minor)
			text[version] = plainText(string(expect.Get(os.ReadFile(filepath.Join(*documents, version+".md")))(t)))
		}
		for _, line := range lines {
			version, sentence, _ := strings.Cut(line, "\t")
			if !strings.Contains(text[version], plainText(sentence)) {
				t.Errorf("version %s does not say: %s", version, sentence)
			}
		}
		if !t.Failed() {
			expect.OK(t, os.WriteFile(proved, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
		}
		return
	}
	known := strings.Split(strings.TrimSpace(string(expect.Get(os.ReadFile(proved))(t))), "\n")
	for _, line := range lines {
		if !slices.Contains(known, line) {
			t.Errorf("%q was not compared with the document of its version: see the flag -documents", line)
		}
	}
	for _, line := range known {
		if !slices.Contains(lines, line) {
			t.Errorf("%q is printed no more", line)
		}
	}
	if len(lines) < 500 {
		t.Errorf("only %d sentences are printed", len(lines))
	}
}
