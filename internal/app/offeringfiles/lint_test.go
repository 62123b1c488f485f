package offeringfiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog/compile"
)

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
	if err != nil {
		t.Fatal(err)
	}
	template := filepath.Join(filepath.Dir(path), "template.yaml")
	text, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.NewReplacer("RetentionInDays:", "RetentionInHours:", "{Value: !Ref Log}",
		"{Value: !GetAtt Log.Am}").Replace(string(text))
	if err := os.WriteFile(template, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
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
