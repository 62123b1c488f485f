package offeringfiles

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/offerings"
)

//go:embed first.yaml firstaws
var firsts embed.FS

// schemaFile is the schema of offering files, for editors; it stands beside the
// folders of offerings.
const schemaFile = "offering.schema.json"

// New writes a first offering, which works as it is, as NAME/offering.yaml in a
// folder, with ids of its own; and beside NAME the schema of this version, for
// editors. It gives the file's path. What exists is not changed.
func New(dir, name string) (path string, err error) {
	text, err := firsts.ReadFile("first.yaml")
	if err != nil {
		return "", err
	}
	return write(dir, name, map[string][]byte{compile.OfferingFile: text})
}

// NewAWS is New with an AWS service, of four files.
func NewAWS(dir, name string) (path string, err error) {
	texts := map[string][]byte{}
	for _, file := range []string{compile.OfferingFile, "template.yaml", "permissions.json", "policy.json"} {
		if texts[file], err = firsts.ReadFile("firstaws/" + file); err != nil {
			return "", err
		}
	}
	return write(dir, name, texts)
}

// write writes the files of a first offering.
func write(dir, name string, texts map[string][]byte) (path string, err error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", &advice.Error{
			Name: "the name", What: fmt.Sprintf("%q is not one that command lines can use", name),
			Remedy: "use lower-case letters, digits and hyphens",
		}
	}
	shipped, err := Load("")
	if err != nil {
		return "", err
	}
	for _, o := range shipped.Offerings() {
		if o.Name == name {
			return "", &advice.Error{Name: "the name", What: fmt.Sprintf("%q is that of an offering that ships", name),
				Remedy: "choose another one"}
		}
	}
	path = filepath.Join(dir, name, compile.OfferingFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("making the offering's folder: %w", err)
	}
	texts[compile.OfferingFile] = []byte(strings.NewReplacer("NAME", name, "OFFERING_ID", app.NewUUID(),
		"PLAN_ID", app.NewUUID()).
		Replace(string(texts[compile.OfferingFile])))
	for file := range texts {
		at := filepath.Join(filepath.Dir(path), file)
		if _, err := os.Lstat(at); err == nil {
			return "", &advice.Error{Name: at, What: "exists already", Remedy: "choose another name, or edit it"}
		}
	}
	for file, text := range texts {
		if err := create(filepath.Join(filepath.Dir(path), file), text); err != nil {
			return "", err
		}
	}
	if err := create(filepath.Join(dir, schemaFile), offerings.Schema); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}

// create writes a file that does not exist.
func create(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
