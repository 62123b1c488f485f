// Command tokens counts the Go tokens of a checkout, by folder, and says what in it is
// over the limits of package sizes. Given a second checkout, an earlier one as a rule, it
// says how the first differs. Product is what a program of cmd, functions or infra
// imports: what only tests import is none. The kit, the benchmark and the maker of releases are counted apart.
//
//	go run ./internal/test/tokens CHECKOUT [EARLIER]
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/test/sizes"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tokens:", err)
		os.Exit(1)
	}
}

func run(dirs []string, out io.Writer) error {
	if len(dirs) < 1 || len(dirs) > 2 {
		return errors.New("usage: tokens CHECKOUT [EARLIER]")
	}
	var counted []*count
	for _, dir := range dirs {
		c, err := countIn(dir)
		if err != nil {
			return fmt.Errorf("counting %s: %w", dir, err)
		}
		counted = append(counted, c)
	}
	report(out, counted)
	return nil
}

// A pkg is what `go list` says of a package.
type pkg struct {
	ImportPath, Dir, Name                              string
	GoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
	Deps                                               []string
}

// packages are all of a checkout's modules. Modules are the go.mod files that git knows
// of, so that none is left out.
func packages(dir string) ([]pkg, error) {
	tracked, err := exec.Command("git", "-C", dir, "ls-files", "go.mod", "*/go.mod").Output()
	if err != nil {
		return nil, fmt.Errorf("listing what git tracks: %w", err)
	}
	var all []pkg
	for _, mod := range strings.Fields(string(tracked)) {
		list := exec.Command("go", "list",
			"-json=ImportPath,Dir,Name,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Deps", "./...")
		list.Dir, list.Stderr = filepath.Join(dir, filepath.Dir(mod)), os.Stderr
		listed, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("listing the packages of %s: %w", mod, err)
		}
		for d := json.NewDecoder(strings.NewReader(string(listed))); ; {
			var p pkg
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			all = append(all, p)
		}
	}
	return all, nil
}

// A count is what was found in one checkout.
type count struct {
	folders  map[string]int // tokens of product
	apart    map[string]int // tokens of all else
	suites   []string       // packages that only tests import
	lines    int            // of product
	comments int            // of them
	over     []string       // product files and functions over their limits
	long     int            // lines of product
}

func countIn(dir string) (*count, error) {
	all, err := packages(dir)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	product := map[string]bool{}
	paths := map[string]string{} // from the checkout's root, by import path
	for _, p := range all {
		path, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		paths[p.ImportPath] = filepath.ToSlash(path)
		if p.Name == "main" && slices.Contains([]string{"cmd", "functions", "infra"}, folder(path)) {
			product[p.ImportPath] = true
			for _, d := range p.Deps {
				product[d] = true
			}
		}
	}
	c := &count{folders: map[string]int{}, apart: map[string]int{}}
	for _, p := range all {
		path := paths[p.ImportPath]
		part := "tests"
		switch f := folder(path); {
		case f == "kit" || f == "bench" || f == "release":
			part = f
		case product[p.ImportPath]:
			part = ""
		case len(p.GoFiles) > 0:
			c.suites = append(c.suites, path)
		}
		if err := c.add(p, path, part); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// folder is what a package is counted under: its floor inside internal, or the first
// part of its path.
func folder(path string) string {
	parts := strings.SplitN(filepath.ToSlash(path), "/", 3)
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// add counts a package's files: as product, if part is empty.
func (c *count) add(p pkg, path, part string) error {
	for _, name := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
		f, err := sizes.Measure(filepath.Join(p.Dir, name))
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, "_test.go") {
			c.apart["tests"] += f.Tokens
			continue
		}
		if part != "" {
			c.apart[part] += f.Tokens
			continue
		}
		c.folders[folder(path)] += f.Tokens
		c.lines += f.Lines
		c.comments += f.Comments
		c.long += len(f.Long)
		name = path + "/" + name
		if f.Lines > sizes.FileLines {
			c.over = append(c.over, fmt.Sprintf("%s has %d lines", name, f.Lines))
		}
		for _, fn := range f.Functions {
			if fn.Lines > sizes.FunctionLines {
				c.over = append(c.over, fmt.Sprintf("%s: the function %s has %d lines", name, fn.Name, fn.Lines))
			}
		}
	}
	return nil
}

func (c *count) total() (n int) {
	for _, tokens := range c.folders {
		n += tokens
	}
	return n
}

// report says what is in the first checkout, beside the second if there is one.
func report(out io.Writer, counted []*count) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	row := func(name string, of func(*count) int) {
		line := fmt.Sprintf("%-22s", name)
		for _, c := range counted {
			line += fmt.Sprintf("%9d", of(c))
		}
		if len(counted) == 2 && of(counted[0]) > 0 && of(counted[1]) > 0 {
			now, then := of(counted[0]), of(counted[1])
			line += fmt.Sprintf("%+9d%+7.1f %%", now-then, 100*float64(now-then)/float64(then))
		}
		say("%s", line)
	}
	rows := func(of func(*count) map[string]int) {
		names := map[string]bool{}
		for _, c := range counted {
			for name := range of(c) {
				names[name] = true
			}
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			row(name, func(c *count) int { return of(c)[name] })
		}
	}
	say("Go tokens of product, without comments:")
	rows(func(c *count) map[string]int { return c.folders })
	row("product", (*count).total)
	say("\nbeside it:")
	rows(func(c *count) map[string]int { return c.apart })

	c := counted[0]
	say("\nonly tests import: %s", strings.Join(c.suites, ", "))
	say("comments: %d of %d lines of product, %.1f %%", c.comments, c.lines, 100*float64(c.comments)/float64(c.lines))
	say("lines of product over %d columns: %d", sizes.Columns, c.long)
	say("files of product over %d lines, functions over %d: %d", sizes.FileLines, sizes.FunctionLines, len(c.over))
	for _, o := range c.over {
		say("  %s", o)
	}
}
