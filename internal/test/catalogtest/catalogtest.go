// Package catalogtest has an offering without a problem, which tests of the catalog and of
// its compiler spoil and load.
package catalogtest

import (
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
)

// Known are the providers that the tests know.
var Known = Providers("demo", "cloudformation")

// Providers are options with providers that check nothing.
func Providers(names ...string) compile.Options {
	o := compile.Options{Providers: map[string]check.Func{}}
	for _, name := range names {
		o.Providers[name] = nil
	}
	return o
}

// Sound is an offering without a problem; tests spoil single lines of it.
const Sound = `id: offering-1
name: one
description: The first
provider: demo
bindable: true
bindings_retrievable: true
plans:
- id: plan-1
  name: small
  description: The small one
- id: plan-2
  name: large
  description: The large one
`

// Spoil replaces the given lines of Sound, counted from 1. A replacement may
// hold several lines, or none.
func Spoil(lines map[int]string) string {
	all := strings.SplitAfter(Sound, "\n")
	for n, with := range lines {
		if with != "" && !strings.HasSuffix(with, "\n") {
			with += "\n"
		}
		all[n-1] = with
	}
	return strings.Join(all, "")
}

// Folder holds files by their paths.
func Folder(files map[string]string) fs.FS {
	f := fstest.MapFS{}
	for name, text := range files {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

// Load compiles the offerings of a folder of files.
func Load(files map[string]string) (*catalog.Catalog, error) {
	return compile.Load(Known, compile.Source{Name: "offerings", FS: Folder(files)})
}
