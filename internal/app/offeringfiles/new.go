package offeringfiles

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/offerings"
)

//go:embed firstdemo firstaws
var firsts embed.FS

// New writes a first offering, which works as it is, as NAME/offering.yaml in a folder, with
// ids of its own; aws makes it one of an AWS service, in four files. Beside NAME it writes this
// version's schema, for editors. It returns the file's path. Existing files are not changed.
func New(dir, name string, aws bool) (path string, err error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return "", advice.For("the name", fmt.Sprintf("%q is not one that command lines can use", name),
			"use lower-case letters, digits and hyphens")
	}
	shipped, err := Load("")
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(shipped.Offerings(), func(o catalog.Offering) bool { return o.Name == name }) {
		return "", advice.For("the name", fmt.Sprintf("%q is that of an offering that ships", name), "choose another one")
	}
	folder := filepath.Join(dir, name)
	if err = os.MkdirAll(dir, 0o755); err == nil {
		err = os.Mkdir(folder, 0o755)
	}
	if errors.Is(err, fs.ErrExist) {
		return "", advice.For(folder, "exists already", "choose another name, or edit what is in it")
	}
	first := "firstdemo"
	if aws {
		first = "firstaws"
	}
	files, _ := fs.Sub(firsts, first)
	if err == nil {
		err = os.CopyFS(folder, files)
	}
	if err != nil {
		return "", fmt.Errorf("making the offering's folder: %w", err)
	}
	path = filepath.Join(folder, compile.OfferingFile)
	text, err := os.ReadFile(path)
	if err == nil {
		ids := strings.NewReplacer("NAME", name, "OFFERING_ID", app.NewUUID(), "PLAN_ID", app.NewUUID())
		err = os.WriteFile(path, []byte(ids.Replace(string(text))), 0o644)
	}
	schema := filepath.Join(dir, "offering.schema.json")
	if _, missing := os.Lstat(schema); err == nil && errors.Is(missing, fs.ErrNotExist) {
		err = os.WriteFile(schema, offerings.Schema, 0o644)
	}
	return path, err
}
