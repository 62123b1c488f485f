// Package compile turns offering folders into a compiled catalog: it reads each offering.yaml,
// refuses broken files with file, line and remedy, and lets each plan's provider check the
// plan. Deployed programs hold the result; no program that starts cold imports this package.
//
// The JSON Schema that is published with the shipped offerings says what an offering file may
// hold. This package checks only what a schema cannot say. The rules are CAT-*.
package compile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/base/suggest"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/schema"
	"github.com/longshore/longshore/offerings"
)

// OfferingFile is the name of an offering's file, in the offering's own folder. The provider
// reads the other files of the folder.
const OfferingFile = "offering.yaml"

// A Source is a folder of offerings, each of which is a folder with an OfferingFile in it, or
// it is the folder of a single offering. Names that begin with a dot are ignored.
type Source struct {
	// Name is the folder as problems show it.
	Name string
	FS   fs.FS
}

// Options say what offerings may name, and which providers check them.
type Options struct {
	// Providers are the providers that an offering may name, with the checks of their plans; nil for none.
	Providers map[string]check.Func
	// Off holds those of the Providers that this broker does not offer, with the way to turn each of them on.
	Off map[string]string
	// Beside is a compiled catalog that precedes the result: its ids and names must not be used again. Nil for none.
	Beside *catalog.Catalog
	// Warn receives, with file, line and remedy, doubts that are no reason to refuse an
	// offering; nil to drop them.
	Warn func(advice.Error)
}

// Load compiles the offerings of all sources and opens the result.
func Load(o Options, sources ...Source) (*catalog.Catalog, error) {
	compiled, err := Compile(o, sources...)
	if err != nil {
		return nil, err
	}
	return catalog.Open(compiled)
}

// Compile reads the offerings of all sources in order, checks them, and returns the compiled catalog.
//
// An error is of type Problems, and holds everything that is wrong with the files at once. One
// broken offering refuses the whole catalog: ids must be unique across it (CAT-04), and half a
// catalog would take plans away from instances that use them.
func Compile(o Options, sources ...Source) ([]byte, error) {
	c := compiler{Options: o, kept: map[string][]byte{}}
	for _, source := range sources {
		c.source(source)
	}
	c.beside()
	c.problems = append(c.problems, duplicates(c.drafts)...)
	if len(c.problems) > 0 {
		return nil, sorted(c.problems)
	}
	all := make([]catalog.Offering, len(c.drafts))
	for i, d := range c.drafts {
		all[i] = d.offering
	}
	return catalog.Encode(all, c.kept)
}

// beside puts the offerings of the compiled catalog before the ones that were read.
func (c *compiler) beside() {
	if c.Beside == nil {
		return
	}
	var all []*draft
	for _, o := range c.Beside.Offerings() {
		all = append(all, &draft{offering: o, file: "the offering " + o.Name + " that ships"})
	}
	c.drafts = append(all, c.drafts...)
	maps.Copy(c.kept, c.Beside.Files())
}

// A compiler collects the offerings and problems that it finds.
type compiler struct {
	Options
	problems []advice.Error
	drafts   []*draft
	kept     map[string][]byte // the providers' files, by digest
	locks    map[string][]byte // the lock files to write, by name; nil to compare plans with the existing ones
}

// problem notes a problem of a folder, or of a file as a whole.
func (c *compiler) problem(file, what, remedy string, cause error) {
	c.problems = append(c.problems, advice.Error{File: file, What: what, Remedy: remedy, Cause: cause})
}

// source reads one source.
func (c *compiler) source(source Source) {
	before := len(c.problems)
	names, err := c.offeringFiles(source)
	switch {
	case err != nil:
		c.problem(source.Name, "the folder cannot be read: "+err.Error(), "check that it exists and may be read", nil)
	case len(names) == 0 && len(c.problems) == before:
		c.problem(source.Name, "the folder holds no offering",
			"add NAME/"+OfferingFile+" for each offering: `longshore catalog new NAME` writes a first one", nil)
	}
	for _, name := range names {
		d := &draft{file: path.Join(source.Name, name), places: map[string]position{}, bad: map[string]bool{},
			noted: map[problemKey]bool{}}
		if c.file(d, source.FS, name) {
			c.drafts = append(c.drafts, d)
		}
		c.problems = append(c.problems, d.problems...)
	}
}

// ofOfferings is the schema of offering files.
var ofOfferings = schema.Own("offering files", offerings.Schema)

// file reads one offering, and reports whether it could be read at all.
func (c *compiler) file(d *draft, files fs.FS, name string) bool {
	root := d.parse(files, name)
	if root == nil {
		return false
	}
	d.places[""] = position{root.Line, root}
	v := d.value(root, "")
	if d.nodes > maxNodes {
		return false
	}
	broken := ofOfferings().Explain(v)
	for _, b := range broken {
		if !d.bad[b.Member] {
			d.about(b.Member, b.Rule, b.Remedy)
		}
	}
	for _, b := range broken {
		d.bad[b.Member] = true
	}
	d.share(v)
	d.fill(v)
	c.provider(d)
	if judge := c.Providers[d.offering.Provider]; judge != nil && len(d.problems) == 0 {
		folder, _ := fs.Sub(files, path.Dir(name)) // the file has been read
		l, err := readLock(folder, c.locks != nil)
		if err != nil {
			d.refused(err, "")
			return true
		}
		for i := range d.offering.Plans {
			d.check(judge, i, l, folder, c.keep)
		}
		if l.renew && len(l.is) > 0 {
			c.locks[path.Join(path.Dir(name), LockFile)] = l.file()
		}
	}
	if c.Warn != nil {
		for _, w := range sorted(d.warnings) {
			c.Warn(w)
		}
	}
	return true
}

// keep implements check.Plan's Keep.
func (c *compiler) keep(content []byte) string {
	digest := fmt.Sprintf("%x", sha256.Sum256(content))
	c.kept[digest] = content
	return digest
}

// provider checks that the offering's provider is known, and that this broker offers it.
func (c *compiler) provider(d *draft) {
	name := d.offering.Provider
	switch remedy, off := c.Off[name]; {
	case name == "": // a missing name is noted already
	case off:
		d.about("/provider", "is not offered by this broker", remedy)
	default:
		if _, known := c.Providers[name]; !known {
			all := slices.Sorted(maps.Keys(c.Providers))
			d.about("/provider", fmt.Sprintf("names an unknown provider, %q", name),
				suggest.Meant(name, all, "choose one of: "+strings.Join(all, ", ")))
		}
	}
}

// offeringFiles names the offering files of a folder, sorted, and notes files that look like
// offering files where none is read.
func (c *compiler) offeringFiles(source Source) (names []string, err error) {
	if isFile(source.FS, OfferingFile) {
		return []string{OfferingFile}, nil
	}
	entries, err := fs.ReadDir(source.FS, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, extension := e.Name(), path.Ext(e.Name())
		at, within := path.Join(source.Name, name), path.Join(name, OfferingFile)
		_, inside := fs.Stat(source.FS, within)
		info, gone := fs.Stat(source.FS, name) // describes the target of a symbolic link
		folder := gone == nil && info.IsDir()
		switch {
		case strings.HasPrefix(name, "."):
		case errors.Is(inside, fs.ErrPermission):
			c.problem(at, "the folder cannot be read", "let the user that runs this read it and what is in it", inside)
		case folder && isFile(source.FS, within):
			names = append(names, within)
		case folder:
			remedy := "add one, or move the folder elsewhere"
			if isFile(source.FS, path.Join(name, "offering.yml")) {
				remedy = "rename offering.yml"
			}
			c.problem(at, "the folder holds no "+OfferingFile, remedy, nil)
		case strings.EqualFold(extension, ".yaml") || strings.EqualFold(extension, ".yml"):
			c.problem(at, "the file stands outside of an offering's folder",
				"move it to "+path.Join(strings.TrimSuffix(at, extension), OfferingFile), nil)
		}
	}
	return names, nil
}

func isFile(folder fs.FS, name string) bool {
	info, err := fs.Stat(folder, name)
	return err == nil && !info.IsDir()
}
