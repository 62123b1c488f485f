package catalog_test

import (
	"io/fs"
	"strings"
	"testing/fstest"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
)

// known are the providers that the tests know.
var known = compile.Known("demo", "cloudformation")

// sound is an offering without a problem; tests spoil single lines of it.
const sound = `id: offering-1
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

// spoil replaces the given lines of sound, counted from 1. A replacement may
// hold several lines, or none.
func spoil(lines map[int]string) string {
	all := strings.SplitAfter(sound, "\n")
	for n, with := range lines {
		if with != "" && !strings.HasSuffix(with, "\n") {
			with += "\n"
		}
		all[n-1] = with
	}
	return strings.Join(all, "")
}

func folder(files map[string]string) fs.FS {
	f := fstest.MapFS{}
	for name, text := range files {
		f[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return f
}

func load(files map[string]string) (*catalog.Catalog, error) {
	return compile.Load(known, compile.Source{Name: "offerings", FS: folder(files)})
}
