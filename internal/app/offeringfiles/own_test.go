package offeringfiles_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app/offeringfiles"
	"github.com/longshore/longshore/internal/base/advice"
	"github.com/longshore/longshore/internal/catalog/compile"
)

// edit replaces text of a file.
func edit(t *testing.T, path, old, text string) {
	t.Helper()
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(was), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(was), old, text, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// An operator's offering is locked, cannot change under its version, and is locked again
// under another one.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	path, err := offeringfiles.NewAWS(dir, "first-log")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
