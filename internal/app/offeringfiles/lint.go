package offeringfiles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/catalog/compile"
	"github.com/longshore/longshore/internal/provider/cloudformation/template"
)

// A linter collects templates for a single call of cfn-lint, since most of the time of a call is its start.
type linter struct {
	shown []string // the templates' paths as problems show them
	texts [][]byte
}

// check checks a plan, and notes its template, unless it is noted already.
func (l *linter) check(checked check.Plan) (json.RawMessage, error) {
	snapshot, err := template.Check(checked)
	file := template.FileOf(checked)
	shown := path.Join(checked.Folder, file)
	if err != nil || file == "" || slices.Contains(l.shown, shown) {
		return snapshot, err
	}
	text, err := fs.ReadFile(checked.Files, file)
	l.shown, l.texts = append(l.shown, shown), append(l.texts, text)
	return snapshot, err
}

// A finding is the part of cfn-lint's output about one finding.
type finding struct {
	Filename, Level, Message string
	Location                 struct{ Start struct{ LineNumber int } }
	Rule                     struct{ ID string }
}

// run calls cfn-lint with copies of the templates, since those that ship are in no folder.
func (l *linter) run(ctx context.Context, program string, warn func(advice.Error)) error {
	folder, err := os.MkdirTemp("", "longshore-lint")
	if err != nil {
		return fmt.Errorf("making a folder for templates: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	arguments, shown := []string{"--format", "json", "--"}, map[string]string{}
	for i, text := range l.texts {
		file := filepath.Join(folder, strconv.Itoa(i)+filepath.Ext(l.shown[i]))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return fmt.Errorf("copying templates: %w", err)
		}
		arguments, shown[file] = append(arguments, file), l.shown[i]
	}
	said, complaint := bytes.Buffer{}, bytes.Buffer{}
	lint := exec.CommandContext(ctx, program, arguments...)
	lint.Stdout, lint.Stderr = &said, &complaint
	err = lint.Run() // the exit status is not zero if it finds something
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &advice.Error{Name: "--lint", What: fmt.Sprintf("finds no program %q", program),
			Remedy: "install it, as by `pip install cfn-lint`, or give its path by --lint=PATH", Cause: err}
	}
	var found []finding
	if json.Unmarshal(said.Bytes(), &found) != nil {
		return fmt.Errorf("%s does not answer as cfn-lint does: %w", program,
			errors.Join(err, errors.New(strings.TrimSpace(complaint.String()))))
	}
	var problems compile.Problems
	for _, f := range found {
		e := advice.Error{File: shown[f.Filename], Line: f.Location.Start.LineNumber,
			What:   strings.TrimSuffix(strings.ReplaceAll(f.Message, f.Filename, shown[f.Filename]), "."),
			Remedy: "mend it, or have the template's Metadata say cfn-lint: {config: {ignore_checks: [" + f.Rule.ID + "]}}"}
		if f.Level == "Error" {
			problems = append(problems, e)
		} else {
			warn(e)
		}
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}
