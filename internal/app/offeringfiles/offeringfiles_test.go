package offeringfiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/test/expect"
)

// A first offering works as it is, has ids of its own, and is never written over.
func TestNew(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cache", "123"} {
		expect.Get(offeringfiles.New(dir, name))(t)
	}
	c, err := offeringfiles.Load(dir)
	expect.OK(t, err)
	found := 0
	for _, o := range c.Offerings() {
		if o.Name == "cache" || o.Name == "123" {
			found++
			if c.Check(catalog.Create, o.ID, o.Plans[0].ID, []byte(`{"size_gb": 0}`)) == nil {
				t.Errorf("%s takes any parameters", o.Name)
			}
		}
	}
	expect.Same(t, "of the two, found", 2, found)

	mine := filepath.Join(dir, "cache", compile.OfferingFile)
	expect.OK(t, os.WriteFile(mine, []byte("mine"), 0o600))
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
	expect.OK(t, err)
	c, err := offeringfiles.Validate(dir, func(w advice.Error) { t.Error(w.Error()) })
	expect.OK(t, err)
	if !slices.ContainsFunc(c.Offerings(), func(o catalog.Offering) bool {
		return o.Name == "first-log" && o.Provider == "cloudformation"
	}) {
		t.Error("the offering is not there")
	}
	expect.OK(t, os.Remove(path))
	template := filepath.Join(filepath.Dir(path), "template.yaml")
	expect.OK(t, os.WriteFile(template, []byte("mine"), 0o600))
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
	expect.OK(t, os.WriteFile(file, nil, 0o600))
	for _, name := range []string{file, file + "-gone"} {
		_, err := offeringfiles.Load(name)
		if err == nil || !strings.Contains(err.Error(), "offerings folder") ||
			!strings.Contains(err.Error(), "let the broker's user read it") {
			t.Errorf("%s: want an error that names the folder and a remedy, got %v", name, err)
		}
	}
}

// The four files of the documentation are an offering: with plans that mean what the page
// says, and permissions that lack nothing.
func TestFourFiles(t *testing.T) {
	var warnings []advice.Error
	c, err := offeringfiles.Validate("../../../docs/examples", func(w advice.Error) { warnings = append(warnings, w) })
	expect.OK(t, err)
	if len(warnings) != 1 || filepath.Base(warnings[0].File) != "permissions.json" {
		t.Errorf("beside what CloudFormation may also call, it warns: %v", warnings)
	}
	for _, o := range c.Offerings() {
		if o.Name != "app-log" {
			continue
		}
		m, err := plan.Parse(o.Plans[0].Snapshot)
		expect.OK(t, err)
		if diff := cmp.Diff([]string{"retention_days"}, m.Accepts); diff != "" || m.Fixed != nil {
			t.Errorf("its parameters: -want +got\n%s\nfixed %q", diff, m.Fixed)
		}
		for _, digest := range []string{m.Template, m.Permissions} {
			if _, there := c.File(digest); !there {
				t.Errorf("the compiled catalog does not carry %s", digest)
			}
		}
		return
	}
	t.Error("the offering is not there")
}

// The boundary that the page writes into templates is the one that an account holds.
func TestDocumentedBoundary(t *testing.T) {
	page, err := os.ReadFile("../../../docs/cloudformation.md")
	expect.OK(t, err)
	scope := plan.ScopeOf("Longshore")
	stack := scope.Stack(provider.Tags{Platform: "p", Instance: "i", Incarnation: "o"}, "spaceabc")
	place := plan.Location{Partition: "aws", Account: "123456789012", Region: "eu-west-1"}
	got, err := plan.Fill(regexp.MustCompile("arn:.*:policy/longshore/.*").FindString(string(page)), map[string]string{
		plan.ValuePartition: place.Partition, plan.ValueAccount: place.Account, plan.ValueRegion: place.Region,
		"Scope": strings.Split(stack, "-")[1],
	})
	if want := scope.BoundaryARN(place, "app-log"); err != nil || got != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

// cfnLint is where `make cfn-lint` installs it.
const cfnLint = "../../../.tools/cfn-lint-1.58.0/bin/cfn-lint"

// The linter knows properties and attributes that no check here knows. Its findings name
// the operator's file and line.
func TestLinted(t *testing.T) {
	if testing.Short() {
		t.Skip("the linter takes seconds, which -short leaves out")
	}
	if _, err := os.Stat(cfnLint); err != nil {
		t.Fatalf("no linter of templates: %v: run make cfn-lint", err)
	}
	dir := t.TempDir()
	path, err := offeringfiles.NewAWS(dir, "wrong")
	expect.OK(t, err)
	template := filepath.Join(filepath.Dir(path), "template.yaml")
	text, err := os.ReadFile(template)
	expect.OK(t, err)
	wrong := strings.NewReplacer("RetentionInDays:", "RetentionInHours:", "{Value: !Ref Log}",
		"{Value: !GetAtt Log.Am}").Replace(string(text))
	expect.OK(t, os.WriteFile(template, []byte(wrong), 0o600))
	warn := func(w advice.Error) { t.Error(w.Error()) }
	if _, err := offeringfiles.Validate(dir, warn); err != nil {
		t.Fatalf("without the linter: %v", err)
	}
	var problems compile.Problems
	if _, err := offeringfiles.Linted(t.Context(), cfnLint, dir, warn); !errors.As(err, &problems) {
		t.Fatalf("want problems, got %v", err)
	}
	lines := map[string]int{}
	for _, p := range problems {
		if p.File != template {
			t.Errorf("not in the operator's file: %s", p.Error())
		}
		for _, word := range []string{"RetentionInHours", "'Am'"} {
			if strings.Contains(p.What, word) {
				lines[word] = p.Line
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"RetentionInHours": 16, "'Am'": 19}, lines); diff != "" || len(problems) != 2 {
		t.Errorf("of %v -want +got:\n%s", problems, diff)
	}
}

// A linter that is not there, or that fails, is said.
func TestWithoutALinter(t *testing.T) {
	none := func(advice.Error) {}
	_, err := offeringfiles.Linted(t.Context(), "no-such-linter", "", none)
	if err == nil || !strings.Contains(err.Error(), "pip install cfn-lint") {
		t.Errorf("without a linter: %v", err)
	}
	for _, program := range []string{"false", "true"} { // one that fails, and one that says nothing
		if _, err := offeringfiles.Linted(t.Context(), program, "", none); err == nil ||
			!strings.Contains(err.Error(), "does not answer") {
			t.Errorf("with %s: %v", program, err)
		}
	}
}

// edit replaces text of a file.
func edit(t *testing.T, path, old, text string) {
	t.Helper()
	was, err := os.ReadFile(path)
	expect.OK(t, err)
	if !strings.Contains(string(was), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	expect.OK(t, os.WriteFile(path, []byte(strings.Replace(string(was), old, text, 1)), 0o600))
}

// An operator's offering is locked, cannot change under its version, and is locked again
// under another one.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	path, err := offeringfiles.NewAWS(dir, "first-log")
	expect.OK(t, err)
	lock := filepath.Join(filepath.Dir(path), compile.LockFile)
	if changed, err := offeringfiles.Lock(dir); err != nil || len(changed) != 0 {
		t.Errorf("a plan without a version is locked: %q %v", changed, err)
	}
	edit(t, path, "free: false", "free: false\nmaintenance_info: {version: 1.0.0}")
	if _, err := offeringfiles.Load(dir); err == nil || !strings.Contains(err.Error(), "catalog lock") {
		t.Errorf("a version without a lock: %v", err)
	}
	for range 2 {
		changed, err := offeringfiles.Lock(dir)
		if err != nil || len(changed) > 0 && changed[0] != lock {
			t.Fatalf("locked %q: %v", changed, err)
		}
	}
	if _, err := offeringfiles.Load(dir); err != nil {
		t.Errorf("locked: %v", err)
	}
	edit(t, filepath.Join(filepath.Dir(path), "template.yaml"), "Default: 30", "Default: 7")
	for name, do := range map[string]func() error{
		"load": func() error { _, err := offeringfiles.Load(dir); return err },
		"lock": func() error { _, err := offeringfiles.Lock(dir); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "raise the version") {
			t.Errorf("%s: a template that changed under its version: %v", name, err)
		}
	}
	edit(t, path, "1.0.0", "1.0.1")
	if changed, err := offeringfiles.Lock(dir); err != nil || len(changed) != 1 {
		t.Errorf("locked again %q: %v", changed, err)
	}
	if _, err := offeringfiles.Load(dir); err != nil {
		t.Errorf("locked again: %v", err)
	}
}

// Permit writes into the permissions what CloudFormation calls, and they are right then.
func TestPermit(t *testing.T) {
	dir := t.TempDir()
	path, err := offeringfiles.NewAWS(dir, "first-log")
	expect.OK(t, err)
	permissions := filepath.Join(filepath.Dir(path), "permissions.json")
	edit(t, permissions, `"logs:CreateLogGroup", "logs:DeleteLogGroup", `, "")
	all, err := offeringfiles.Permit(dir)
	if err != nil || all[permissions] == nil ||
		!strings.Contains(strings.Join(all[permissions].Added, " "), "logs:CreateLogGroup") {
		t.Fatalf("%v: %v", all, err)
	}
	text, err := os.ReadFile(permissions)
	if err != nil || string(text) != string(all[permissions].Text) {
		t.Errorf("it holds %s: %v", text, err)
	}
	silence := `  - {about: CloudFormation may also call, reason: "the template sets nothing that these are for"}`
	edit(t, path, "  warnings:\n"+silence+"\n", "")
	if _, err := offeringfiles.Validate(dir, func(w advice.Error) {
		if len(all[permissions].Left) == 0 || !strings.Contains(w.What, "may also call") {
			t.Error(w.Error())
		}
	}); err != nil {
		t.Error(err)
	}
	if again, err := offeringfiles.Permit(dir); err != nil || len(again[permissions].Added) != 0 {
		t.Errorf("a second time: %v %v", again, err)
	}
	var refused *advice.Error
	if _, err := offeringfiles.Permit(filepath.Join(dir, "gone")); !errors.As(err, &refused) {
		t.Errorf("of no folder: %v", err)
	}
	if _, err := offeringfiles.Lock(filepath.Join(dir, "gone")); !errors.As(err, &refused) {
		t.Errorf("of no folder: %v", err)
	}
}
