package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds an offering file, in bytes: far above any real one, low
// enough to read it whole.
const maxFile = 1 << 20

// OfferingFile is the file of an offering, in the offering's own folder. What
// else stands there is the provider's to read.
const OfferingFile = "offering.yaml"

// A Source is a folder of offerings, each of which is a folder with an
// OfferingFile in it; or it is the one folder of an offering itself. Names that
// begin with a dot are left alone.
type Source struct {
	// Name is the folder as problems show it.
	Name string
	FS   fs.FS
}

// Load reads the offering files of all sources, a later one adding to the
// earlier, and checks them by the rules of section 4 of the checklist.
// Providers are the names that an offering may give as its provider.
//
// The error is always Problems: everything that is wrong, and nothing is
// loaded then. A broken offering is refused as a whole catalog because ids
// must be unique across it (CAT-04), and because half a catalog would take
// plans away from instances that use them.
func Load(providers []string, sources ...Source) (*Catalog, error) {
	var (
		files    []string // in the order of loading
		problems []Problem
		drafts   []draft
		schemas  = map[string]*schema{}
	)
	for _, source := range sources {
		files = append(files, source.Name)
		names, misplaced, err := offeringFiles(source)
		for _, m := range misplaced {
			files = append(files, m.File)
		}
		problems = append(problems, misplaced...)
		switch {
		case err != nil:
			problems = append(problems, Problem{File: source.Name,
				What: "the folder cannot be read: " + err.Error(), Remedy: "check that it exists and may be read"})
		case len(names)+len(misplaced) == 0:
			problems = append(problems, Problem{File: source.Name,
				What: "the folder holds no offering", Remedy: "add NAME/" + OfferingFile + " for each offering: `longshore catalog new NAME` writes a first one"})
		}
		for _, name := range names {
			r := &reader{file: path.Join(source.Name, name), providers: providers, schemas: schemas, broken: map[*yaml.Node]bool{}}
			files = append(files, r.file)
			if root, ok := r.parse(source.FS, name); ok {
				drafts = append(drafts, r.offering(root))
			}
			problems = append(problems, r.problems...)
		}
	}
	if len(sources) == 0 {
		problems = append(problems, Problem{File: "offerings",
			What: "there is no folder of offerings", Remedy: "name at least one"})
	}
	problems = append(problems, duplicates(drafts)...)
	if len(problems) > 0 {
		return nil, sorted(problems, files)
	}
	return assemble(drafts), nil
}

// offeringFiles names the offering files of a folder, sorted, and what looks
// like one in a place where none is read.
func offeringFiles(source Source) (names []string, misplaced []Problem, err error) {
	if isFile(source.FS, OfferingFile) {
		return []string{OfferingFile}, nil, nil
	}
	entries, err := fs.ReadDir(source.FS, ".")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name, extension := e.Name(), path.Ext(e.Name())
		switch info, err := fs.Stat(source.FS, name); { // of what a symbolic link names
		case strings.HasPrefix(name, "."):
		case err == nil && info.IsDir() && isFile(source.FS, path.Join(name, OfferingFile)):
			names = append(names, path.Join(name, OfferingFile))
		case err == nil && info.IsDir():
			misplaced = append(misplaced, Problem{File: path.Join(source.Name, name), What: "the folder holds no " + OfferingFile,
				Remedy: "add one, or move the folder elsewhere"})
		case strings.EqualFold(extension, ".yaml") || strings.EqualFold(extension, ".yml"):
			misplaced = append(misplaced, Problem{File: path.Join(source.Name, name), What: "the file stands outside of an offering's folder",
				Remedy: "move it to " + path.Join(source.Name, strings.TrimSuffix(name, extension), OfferingFile)})
		}
	}
	return names, misplaced, nil
}

func isFile(folder fs.FS, name string) bool {
	info, err := fs.Stat(folder, name)
	return err == nil && !info.IsDir()
}

// parse reads a file's one document.
func (r *reader) parse(folder fs.FS, name string) (*yaml.Node, bool) {
	f, err := folder.Open(name)
	if err != nil {
		r.problem(0, "the file cannot be read: "+err.Error(), "check that it may be read")
		return nil, false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		r.problem(0, "the file cannot be read: "+err.Error(), "check that it may be read")
		return nil, false
	case len(data) > maxFile:
		r.problem(1, fmt.Sprintf("the file is larger than %d bytes", maxFile), "shorten it")
		return nil, false
	}

	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	err = decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&document):
		r.problem(1, "the file is empty", "write an offering into it, or remove its folder")
		return nil, false
	case err != nil:
		r.syntax(data, err)
		return nil, false
	}
	err = decoder.Decode(&next)
	switch {
	case err == nil:
		r.problem(next.Line, "the file holds several documents", "put each offering into a folder of its own")
		return nil, false
	case !errors.Is(err, io.EOF):
		r.syntax(data, err)
		return nil, false
	}
	return resolve(document.Content[0]), true
}

func isEmpty(document *yaml.Node) bool {
	return len(document.Content) == 0 ||
		document.Content[0].Kind == yaml.ScalarNode && document.Content[0].Value == ""
}

var (
	yamlLine   = regexp.MustCompile(`^line ([0-9]+): `)
	yamlAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// syntax notes what the YAML library refused; its line is in its words.
func (r *reader) syntax(data []byte, err error) {
	what, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		line, _ = strconv.Atoi(m[1])
		what = what[len(m[0]):]
	} else if m := yamlAnchor.FindStringSubmatch(what); m != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+m[1]))
		line = 1 + bytes.Count(before, []byte("\n"))
	}
	r.problem(line, "the file is not YAML: "+what, "correct the line or the one before; indent with spaces, quote text that holds \": \" or \"#\"")
}

// assemble builds the catalog of drafts that have no problem.
func assemble(drafts []draft) *Catalog {
	c := &Catalog{services: map[string]int{}, plans: map[string]planAt{}}
	for i, d := range drafts {
		c.offerings = append(c.offerings, d.offering)
		c.services[d.offering.ID] = i
		for j, p := range d.offering.Plans {
			c.plans[p.ID] = planAt{offering: i, plan: j, checks: d.checks[j]}
		}
	}
	return c
}
