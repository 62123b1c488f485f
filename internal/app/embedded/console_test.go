package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/catalog"
	"github.com/longshore/longshore/internal/operator/backup"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testkit"
)

// demoCatalog is what is offered if no broker runs.
func demoCatalog() (*catalog.Catalog, error) { return testkit.Demo(), nil }

// contents are the files that stand in a folder itself.
func contents(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	var all strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() {
			all.WriteString(path + "\n" + string(expect.Get(os.ReadFile(path))(t)) + "\n")
		}
	}
	return all.String()
}

// A folder that a version before the first release wrote has neither a console nor a backup, and is left as it is.
func TestCommandsRefuseAnOldFolder(t *testing.T) {
	dir := withInstances(t, "one")
	old := `{"format": 1, "identity": "of its records", "broker": "b", "check": "AAAA"}`
	expect.OK(t, os.WriteFile(filepath.Join(dir, "longshore.json"), []byte(old), 0o600))
	before := contents(t, dir)
	console := func(lost func(string)) error {
		_, _, err := Console(t.Context(), dir, demoCatalog, nil, lost)
		return err
	}
	for name, err := range map[string]error{
		"Console": console(nil), "Rebuild": console(func(string) {}),
		"Backup": Backup(t.Context(), dir, backup.Wish{All: true}, nil),
	} {
		expect.Says(t, name, fmt.Sprint(err), "is of a version before the first release")
	}
	expect.Same(t, "the folder", before, contents(t, dir))
}
