package offeringfiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
)

// A first offering works as it is, has ids of its own, and is never written over.
func TestNew(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cache", "123"} {
		if _, err := offeringfiles.New(dir, name); err != nil {
			t.Fatal(err)
		}
	}
	c, err := offeringfiles.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, o := range c.Offerings() {
		if o.Name == "cache" || o.Name == "123" {
			found++
			if c.Check(catalog.Create, o.ID, o.Plans[0].ID, []byte(`{"size_gb": 0}`)) == nil {
				t.Errorf("%s takes any parameters", o.Name)
			}
		}
	}
	if found != 2 {
		t.Errorf("found %d of the two", found)
	}

	mine := filepath.Join(dir, "cache", compile.OfferingFile)
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *advice.Error
	if _, err := offeringfiles.New(dir, "cache"); !errors.As(err, &refused) {
		t.Errorf("want a refusal, got %v", err)
	}
	if text, err := os.ReadFile(mine); err != nil || string(text) != "mine" {
		t.Errorf("it was written over: %q %v", text, err)
	}
	for _, name := range []string{"../x", "demo"} { // one outside of the folder, one that ships
		if _, err := offeringfiles.New(dir, name); !errors.As(err, &refused) {
			t.Errorf("want a refusal of the name %q, got %v", name, err)
		}
	}
}

// A first AWS service works as it is, with nothing to warn of.
func TestNewAWS(t *testing.T) {
	dir := t.TempDir()
	path, err := offeringfiles.NewAWS(dir, "first-log")
	if err != nil {
		t.Fatal(err)
	}
	c, err := offeringfiles.Validate(dir, func(w advice.Error) { t.Error(w.Error()) })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(c.Offerings(), func(o catalog.Offering) bool {
		return o.Name == "first-log" &&
			o.Provider == "cloudformation"
	}) {
		t.Error("the offering is not there")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(filepath.Dir(path), "template.yaml")
	if err := os.WriteFile(template, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := offeringfiles.NewAWS(dir, "first-log"); err == nil {
		t.Error("a template that was there is no reason to refuse")
	}
	if text, err := os.ReadFile(template); err != nil || string(text) != "mine" {
		t.Errorf("it was written over: %q %v", text, err)
	}
}

// The folder that an operator names exists and is one.
func TestLoadWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, file + "-gone"} {
		_, err := offeringfiles.Load(name)
		if err == nil || !strings.Contains(err.Error(), "offerings folder") ||
			!strings.Contains(err.Error(), "let the broker's user read it") {
			t.Errorf("%s: want an error that names the folder and a remedy, got %v", name, err)
		}
	}
}
