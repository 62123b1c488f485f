package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/architecture.md names what exists, and each package that stands on a floor of its
// own or right below one.
func TestTheArchitecturePageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	seen := 0
	for _, m := range regexp.MustCompile("`((?:cmd|functions|infra|internal|kit|offerings)(?:/[\\w./-]*)?)`").FindAllStringSubmatch(page, -1) {
		seen++
		if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(m[1]))); err != nil {
			t.Errorf("the page names %s: %v", m[1], err)
		}
	}
	dirs, err := filepath.Glob("*/*/*.go")
	if err != nil || len(dirs) < 100 {
		t.Fatalf("%d files: %v", len(dirs), err)
	}
	for _, file := range dirs {
		if name := filepath.Base(filepath.Dir(file)); !regexp.MustCompile("`(?:[\\w/]*/)?" + name + "`").MatchString(page) {
			if floor := filepath.Dir(filepath.Dir(file)); floor != "test" {
				t.Errorf("the page does not name internal/%s", filepath.ToSlash(filepath.Dir(file)))
			}
		}
	}
	_, changes, ok := strings.Cut(page, "## Where to change what")
	rows := strings.Count(changes, "\n| ") - 2 // without the table's head
	if seen < 40 || !ok || rows != 10 {
		t.Errorf("the page names %d rooms and files, and %d changes", seen, rows)
	}
	for row := range strings.Lines(changes) {
		if files := strings.Count(row, ".go`"); files > 3 {
			t.Errorf("a change touches %d files: %s", files, row)
		}
	}
}
