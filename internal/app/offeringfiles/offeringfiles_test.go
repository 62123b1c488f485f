package offeringfiles_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
	"github.com/longshore/longshore/internal/app/adapters"
	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/provider/cloudformation/plan"
	"github.com/longshore/longshore/internal/provider/cloudformation/template"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/offerings"
)

// write writes a file whole.
func write(t *testing.T, path, text string) {
	t.Helper()
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t *testing.T, path string) string {
	t.Helper()
	return string(expect.Get(os.ReadFile(path))(t))
}

// edit replaces text of a file.
func edit(t *testing.T, path, old, text string) {
	t.Helper()
	was := read(t, path)
	expect.Says(t, path, was, old)
	write(t, path, strings.Replace(was, old, text, 1))
}

// refused requires that the error is advice.
func refused(t *testing.T, what string, err error) {
	t.Helper()
	if _, ok := errors.AsType[*advice.Error](err); !ok {
		t.Errorf("%s: want a refusal, got %v", what, err)
	}
}

// newAWS is a first AWS service in a folder of its own, by the paths of the folder and of its file of an offering.
func newAWS(t *testing.T, name string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	return dir, expect.Get(offeringfiles.New(dir, name, true))(t)
}

// A first offering works as it is, has ids of its own, and is never written over.
func TestNew(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cache", "123"} {
		expect.Get(offeringfiles.New(dir, name, false))(t)
	}
	c := expect.Get(offeringfiles.Load(dir))(t)
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
	write(t, mine, "mine")
	for _, name := range []string{"cache", "../x", "demo"} { // one that is there, one outside of the folder, one that ships
		refused(t, name, expect.Err(offeringfiles.New(dir, name, false)))
	}
	expect.Same(t, "what was there", "mine", read(t, mine))
}

// A first AWS service works as it is, with nothing to warn of.
func TestNewAWS(t *testing.T) {
	dir, path := newAWS(t, "first-log")
	c := expect.Get(offeringfiles.Validate(t.Context(), dir, "", func(w advice.Error) { t.Error(w.Error()) }))(t)
	if !slices.ContainsFunc(c.Offerings(), func(o catalog.Offering) bool {
		return o.Name == "first-log" && o.Provider == "cloudformation"
	}) {
		t.Error("the offering is not there")
	}
	expect.OK(t, os.Remove(path))
	template := filepath.Join(filepath.Dir(path), "template.yaml")
	write(t, template, "mine")
	if _, err := offeringfiles.New(dir, "first-log", true); err == nil {
		t.Error("a template that was there is no reason to refuse")
	}
	expect.Same(t, "what was there", "mine", read(t, template))
}

// The folder that an operator names exists and is one.
func TestLoadWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, name := range []string{file, file + "-gone"} {
		said := fmt.Sprint(expect.Err(offeringfiles.Load(name)))
		expect.Says(t, name, said, "offerings folder", "let the broker's user read it")
	}
}

// The four files of the documentation are an offering: with plans that mean what the page
// says, and permissions that lack nothing.
func TestFourFiles(t *testing.T) {
	var warnings []advice.Error
	warn := func(w advice.Error) { warnings = append(warnings, w) }
	c := expect.Get(offeringfiles.Validate(t.Context(), "../../../docs/examples", "", warn))(t)
	if len(warnings) != 1 || filepath.Base(warnings[0].File) != "permissions.json" {
		t.Errorf("beside what CloudFormation may also call, it warns: %v", warnings)
	}
	for _, o := range c.Offerings() {
		if o.Name != "app-log" {
			continue
		}
		m := expect.Get(plan.Parse(o.Plans[0].Snapshot))(t)
		expect.Same(t, "its parameters", []string{"retention_days"}, m.Accepts)
		expect.Same(t, "those that are fixed", nil, m.Fixed)
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
	page := read(t, "../../../docs/cloudformation.md")
	scope := plan.ScopeOf("Longshore")
	stack := scope.Stack(provider.Tags{Platform: "p", Instance: "i", Incarnation: "o"}, "spaceabc")
	place := plan.Location{Partition: "aws", Account: "123456789012", Region: "eu-west-1"}
	got := expect.Get(plan.Fill(regexp.MustCompile("arn:.*:policy/longshore/.*").FindString(page), map[string]string{
		plan.ValuePartition: place.Partition, plan.ValueAccount: place.Account, plan.ValueRegion: place.Region,
		"Scope": strings.Split(stack, "-")[1],
	}))(t)
	expect.Same(t, "the boundary", scope.BoundaryARN(place, "app-log"), got)
}

// cfnLint is where `make cfn-lint` installs it.
const cfnLint = "../../../.tools/cfn-lint-1.58.0/bin/cfn-lint"

// The linter knows properties and attributes that no check here knows. Its findings name the operator's file and line.
func TestLinted(t *testing.T) {
	if testing.Short() {
		t.Skip("the linter takes seconds, which -short leaves out")
	}
	expect.Get(os.Stat(cfnLint))(t, "no linter of templates: run make cfn-lint:")
	dir, path := newAWS(t, "wrong")
	template := filepath.Join(filepath.Dir(path), "template.yaml")
	edit(t, template, "RetentionInDays:", "RetentionInHours:")
	edit(t, template, "{Value: !Ref Log}", "{Value: !GetAtt Log.Am}")
	warn := func(w advice.Error) { t.Error(w.Error()) }
	expect.Get(offeringfiles.Validate(t.Context(), dir, "", warn))(t, "without the linter")
	_, err := offeringfiles.Validate(t.Context(), dir, cfnLint, warn)
	problems, _ := errors.AsType[compile.Problems](err)
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
	expect.Same(t, "the lines", map[string]int{"RetentionInHours": 16, "'Am'": 19}, lines)
	expect.Same(t, "problems", 2, len(problems))
}

// A linter that is not there, or that fails, is said.
func TestWithoutALinter(t *testing.T) {
	none := func(advice.Error) {}
	for program, says := range map[string]string{ // one that fails, and one that says nothing
		"no-such-linter": "pip install cfn-lint", "false": "does not answer", "true": "does not answer",
	} {
		expect.Says(t, program, fmt.Sprint(expect.Err(offeringfiles.Validate(t.Context(), "", program, none))), says)
	}
}

// An operator's offering is locked, cannot change under its version, and is locked again under another one.
func TestLock(t *testing.T) {
	dir, path := newAWS(t, "first-log")
	lock := filepath.Join(filepath.Dir(path), compile.LockFile)
	load := func() error { return expect.Err(offeringfiles.Load(dir)) }
	locked := func(when string) []string {
		t.Helper()
		return expect.Get(offeringfiles.Lock(dir))(t, when)
	}
	expect.Same(t, "what is locked without a version", 0, len(locked("without a version")))
	edit(t, path, "free: false", "free: false\nmaintenance_info: {version: 1.0.0}")
	expect.Says(t, "a version without a lock", fmt.Sprint(load()), "catalog lock")
	for range 2 {
		if changed := locked("first"); len(changed) > 0 && changed[0] != lock {
			t.Fatalf("locked %q", changed)
		}
	}
	expect.OK(t, load(), "locked")
	edit(t, filepath.Join(filepath.Dir(path), "template.yaml"), "Default: 30", "Default: 7")
	for name, err := range map[string]error{"load": load(), "lock": expect.Err(offeringfiles.Lock(dir))} {
		expect.Says(t, name+" of a template that changed under its version", fmt.Sprint(err), "raise the version")
	}
	edit(t, path, "1.0.0", "1.0.1")
	expect.Same(t, "what is locked again", 1, len(locked("again")))
	expect.OK(t, load(), "locked again")
}

// Permit writes into the permissions what CloudFormation calls, and they are right then.
func TestPermit(t *testing.T) {
	dir, path := newAWS(t, "first-log")
	permissions := filepath.Join(filepath.Dir(path), "permissions.json")
	edit(t, permissions, `"logs:CreateLogGroup", "logs:DeleteLogGroup", `, "")
	permitted := expect.Get(offeringfiles.Permit(dir))(t)[permissions]
	if permitted == nil {
		t.Fatal("nothing is added")
	}
	expect.Says(t, "what is added", strings.Join(permitted.Added, " "), "logs:CreateLogGroup")
	expect.Same(t, "what the file holds", string(permitted.Text), read(t, permissions))
	silence := `  - {about: CloudFormation may also call, reason: "the template sets nothing that these are for"}`
	edit(t, path, "  warnings:\n"+silence+"\n", "")
	expect.Get(offeringfiles.Validate(t.Context(), dir, "", func(w advice.Error) {
		if len(permitted.Left) == 0 || !strings.Contains(w.What, "may also call") {
			t.Error(w.Error())
		}
	}))(t)
	expect.Same(t, "what is added a second time", 0, len(expect.Get(offeringfiles.Permit(dir))(t)[permissions].Added))
	gone := filepath.Join(dir, "gone")
	refused(t, "permissions of no folder", expect.Err(offeringfiles.Permit(gone)))
	refused(t, "a lock of no folder", expect.Err(offeringfiles.Lock(gone)))
}

var update = flag.Bool("update", false, "write the compiled catalog anew")

// ship compiles what ships.
func ship(t *testing.T, warn func(advice.Error)) []byte {
	t.Helper()
	checks := adapters.Checks()
	checks[app.ProviderCloudFormation] = template.Check
	return expect.Get(compile.Compile(compile.Options{Providers: checks, Warn: warn},
		compile.Source{Name: "offerings", FS: offerings.FS}))(t)
}

// The program has what ships as its files say it.
func TestShippedIsCurrent(t *testing.T) {
	compiled := ship(t, nil)
	if *update {
		expect.OK(t, os.WriteFile("../../../offerings/catalog.dat", compiled, 0o600))
	} else if !bytes.Equal(compiled, offerings.Catalog) {
		t.Error("offerings/catalog.dat is not what the files beside it say: run go test ./internal/app/offeringfiles -update")
	}
}

// The AWS services that ship are as careful as operators are told to be: what is doubtful about one of an operator's would fail
// here. Only what CloudFormation may also call is not: permissions allow what the templates need, and no more.
func TestShippedAreCareful(t *testing.T) {
	c := expect.Get(catalog.Open(ship(t, func(w advice.Error) {
		// A publisher's bindings make rules.
		rules := strings.HasPrefix(w.File, "offerings/eventbridge") && strings.Contains(w.What, `calls "events:DescribeRule"`)
		if !rules && !strings.Contains(w.What, "CloudFormation may also call") {
			t.Error(w.Error())
		}
	})))(t)
	shipped := 0
	for _, o := range c.Offerings() {
		if o.Provider != app.ProviderCloudFormation {
			continue
		}
		shipped++
		for _, p := range o.Plans {
			m := expect.Get(plan.Parse(p.Snapshot))(t)
			if check.ChangeOf(p.Snapshot).Shape == "" || m.Proof == nil || m.Accepts == nil || p.MaintenanceInfo == nil {
				t.Errorf("%s %s: nothing says what its updates change, what proves a key, or which version it is", o.Name, p.Name)
			}
		}
	}
	if shipped < 8 {
		t.Errorf("only %d AWS services ship", shipped)
	}
}
