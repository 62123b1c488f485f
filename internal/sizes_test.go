package internal_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/sizes"
)

// outsize lists the files that are not yet within the limits, each with what it may have
// at most: lines of the file, and lines that are too long. Numbers only fall.
const outsize = "outsize.txt"

var update = flag.Bool("update", false, "take out of "+outsize+" what is within the limits, and lower what has shrunk")

// An excess is what of a file is over the limits; zero is what is within.
type excess struct{ lines, long int }

// isTest reports whether a file is code of tests.
func isTest(path string) bool {
	return strings.HasSuffix(path, "_test.go") || below(path, "internal/test") || below(path, "localstack")
}

// A reader takes in short things at once: functions, lines, and the files of product, kit and benchmark are within their limits.
func TestSizes(t *testing.T) {
	listed := readOutsize(t)
	found := map[string]excess{}
	for path, f := range measured(t) {
		limit := sizes.FunctionLines
		if isTest(path) || below(path, "kit") {
			limit = sizes.SuiteLines
		}
		for _, fn := range f.Functions {
			if fn.Lines > limit {
				t.Errorf("%s: %s has %d lines, over %d: take a part out of it", path, fn.Name, fn.Lines, limit)
			}
		}
		over := excess{long: len(f.Long)}
		if f.Lines > sizes.FileLines && !isTest(path) {
			over.lines = f.Lines
		}
		if over != (excess{}) {
			found[path] = over
		}
		if over.lines > listed[path].lines {
			t.Errorf("%s has %d lines, over %d: give a subject of its own a file", path, f.Lines,
				max(sizes.FileLines, listed[path].lines))
		}
		if over.long > listed[path].long {
			t.Errorf("%s has lines over %d columns: %v", path, sizes.Columns, f.Long)
		}
	}
	for path := range listed {
		if _, ok := found[path]; !ok && !*update {
			t.Errorf("%s lists %s, which is within the limits or gone: run go test ./internal -update", outsize, path)
		}
	}
	if *update {
		writeOutsize(t, listed, found)
	}
}

// Comments say why: a tenth of the product's lines, at least.
func TestCommentsAreATenth(t *testing.T) {
	lines, comments := 0, 0
	for path, f := range measured(t) {
		if !isTest(path) && !below(path, "kit") && !below(path, "bench") {
			lines, comments = lines+f.Lines, comments+f.Comments
		}
	}
	if lines < 10_000 || comments*10 < lines {
		t.Errorf("%d of %d lines of product are comments: a tenth is the least", comments, lines)
	}
}

func readOutsize(t *testing.T) map[string]excess {
	t.Helper()
	listed := map[string]excess{}
	for line := range strings.Lines(read(t, outsize)) {
		var path string
		var e excess
		expect.Get(fmt.Sscan(line, &path, &e.lines, &e.long))(t, outsize, line)
		listed[path] = e
	}
	return listed
}

// writeOutsize lowers what is listed to what was found. It adds nothing.
func writeOutsize(t *testing.T, listed, found map[string]excess) {
	t.Helper()
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(listed)) {
		if is, ok := found[path]; ok {
			fmt.Fprintln(&b, path, min(is.lines, listed[path].lines), min(is.long, listed[path].long))
		}
	}
	expect.OK(t, os.WriteFile(outsize, []byte(b.String()), 0o644))
}

// measured are all Go files, by their paths from the root of the repository.
func measured(t *testing.T) map[string]sizes.File {
	t.Helper()
	found := map[string]sizes.File{}
	for _, file := range files(t, "..", ".go") {
		if !strings.Contains(file, "testdata/") {
			found[file] = expect.Get(sizes.Measure("../" + file))(t)
		}
	}
	if len(found) < 300 { // -update would forget the others
		t.Fatalf("only %d files were seen", len(found))
	}
	return found
}
