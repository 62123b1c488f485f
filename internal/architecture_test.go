package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/architecture.md names rooms and files that exist, and every room that
// others import.
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
	_, changes, ok := strings.Cut(page, "## Where to change what")
	rows := strings.Count(changes, "\n| ") - 2 // without the table's head
	if seen < 40 || !ok || rows != 10 {
		t.Errorf("the page names %d rooms and files, and %d changes", seen, rows)
	}
	for row := range strings.Lines(changes) {
		if files := strings.Count(row, ".go`"); files > 2 {
			t.Errorf("a change touches %d files: %s", files, row)
		}
	}
}
