package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenceFile matches the names that authors give to licences. A noticeFile must be passed on, too,
// but is not a licence by itself.
var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([-._].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^(notice|patents|copyright)`)
)

// licences returns the texts that come with the code of others: of each module that is linked into
// any program, and of Go. A module without a licence must not be passed on, and ends the release.
func (r *release) licences(ctx context.Context) ([]byte, error) {
	texts := map[string]map[string]bool{} // the modules of each text
	goroot, err := output(ctx, r.root, fixed, goCommand(), "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	dir, version, _ := strings.Cut(goroot, "\n")
	if err := collect(texts, "Go's standard library "+version, dir, dir); err != nil {
		return nil, err
	}
	var problems []error
	for _, p := range r.platforms {
		packages, err := r.linked(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, pkg := range packages {
			m := pkg.Module
			if m == nil || m.Main {
				continue
			}
			problems = append(problems, collect(texts, m.Path+" "+m.Version, m.Dir, pkg.Dir))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return written(texts), nil
}

// A linkedPackage is a package that a program consists of, as go list describes it.
type linkedPackage struct {
	Dir    string
	Module *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// linked returns the packages of all programs on a platform.
func (r *release) linked(ctx context.Context, p platform) (packages []linkedPackage, err error) {
	raw, err := output(ctx, r.root, p.environment(), goCommand(), "list", "-deps", "-tags", "lambda.norpc",
		"-json=Dir,Module", "./cmd/longshore", "./functions/...")
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(strings.NewReader(raw)); ; {
		var pkg linkedPackage
		if err := d.Decode(&pkg); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, pkg)
	}
}

// collect reads the texts for a package: those in its folder, and in each folder above it up to the
// module's, since a part of a module may be somebody else's work.
func collect(texts map[string]map[string]bool, module, top, dir string) error {
	found := false
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !licenceFile.MatchString(e.Name()) || e.Type()&fs.ModeType != 0 || strings.HasSuffix(e.Name(), ".go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			key := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
			if texts[key] == nil {
				texts[key] = map[string]bool{}
			}
			texts[key][module] = true
			found = found || !noticeFile.MatchString(e.Name())
		}
		if dir == top {
			break
		}
		dir = filepath.Dir(dir)
	}
	if !found {
		return fmt.Errorf("%s has no licence file in %s: ask its authors, or do without it", module, top)
	}
	return nil
}

// written joins the texts, each once, under the modules that it belongs to.
func written(texts map[string]map[string]bool) []byte {
	var parts []string
	for text, modules := range texts {
		names := strings.Join(slices.Sorted(maps.Keys(modules)), "\n")
		parts = append(parts, names+"\n\n"+text+"\n")
	}
	slices.Sort(parts)
	var b bytes.Buffer
	b.WriteString("Longshore's programs contain code of these modules, under these licences.\n")
	for _, part := range parts {
		b.WriteString("\n" + strings.Repeat("-", 80) + "\n\n" + part)
	}
	return b.Bytes()
}
