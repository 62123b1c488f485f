package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/longshore/longshore/internal/operator"
	"github.com/longshore/longshore/internal/operator/folder"
	"github.com/longshore/longshore/internal/test/expect"
)

// asAnother runs a test's goroutine as a user who may write nothing here; root may write whatever the modes of files say.
func asAnother(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	runtime.LockOSThread()
	_ = syscall.Setfsuid(nobody)
	t.Cleanup(func() {
		_ = syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}

// A folder that cannot be written, such as a snapshot that is mounted to be read, can be
// checked, and what it records be listed. Nothing else can be done with it: its servers are not asked, and a command says so.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	for name, lose := range map[string]string{"Whole": "", "WithoutItsLock": "lock"} {
		t.Run(name, func(t *testing.T) {
			dir := withInstances(t, "one", "two")
			opened(t, Settings{Data: dir, Getenv: func(name string) string {
				return map[string]string{"LONGSHORE_POSTGRES_URL": deadServer}[name]
			}}).Close()
			if lose != "" {
				expect.OK(t, os.Remove(filepath.Join(dir, lose)))
			}
			expect.OK(t, os.Chmod(filepath.Dir(dir), 0o755)) // for the other user to pass
			before := contents(t, dir)
			modes := func(folder, file fs.FileMode) {
				expect.OK(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
					if e.IsDir() {
						return errors.Join(err, os.Chmod(path, folder))
					}
					return errors.Join(err, os.Chmod(path, file))
				}))
			}
			program := expect.Get(os.Executable())(t) // which the check of records starts again
			for folder := filepath.Dir(program); folder != "/"; folder = filepath.Dir(folder) {
				info, err := os.Stat(folder)
				if err == nil && info.Mode()&0o001 == 0 {
					err = os.Chmod(folder, info.Mode()|0o011)
				}
				expect.OK(t, err)
			}
			modes(0o555, 0o444)
			t.Cleanup(func() { modes(0o755, 0o644) })
			asAnother(t)

			if checked, err := folder.Check(t.Context(), dir); err != nil || checked.Wrong > 0 || checked.Records == 0 {
				t.Errorf("checking it: %+v %v", checked, err)
			}
			console, closing, err := Console(t.Context(), dir, "", nil, nil)
			expect.OK(t, err)
			var ids []string
			page, err := operator.List.Ask(t.Context(), console, operator.Query{What: operator.Instances})
			if err != nil || page.Next != "" {
				t.Error(page.Next, err)
			}
			for _, row := range page.Items {
				ids = append(ids, row.Instance)
			}
			expect.Same(t, "it lists", "two one", strings.Join(ids, " "))
			err = expect.Err(operator.Resume.Ask(t.Context(), console, operator.None{}))
			expect.Says(t, "changing it", fmt.Sprint(err), "allow its folder to be written")
			err = expect.Err(operator.Owner.Ask(t.Context(), console, "lsdsomething"))
			expect.Says(t, "asking whose something is", fmt.Sprint(err), "not every server could be asked", "cannot be written")
			err = expect.Err(operator.Reconcile.Ask(t.Context(), console, operator.Scope{}))
			expect.Says(t, "looking at its servers", fmt.Sprint(err), "not every server could be checked", "cannot be written")
			closing()
			err = expect.Err(folder.Open(dir, inputs))
			expect.Says(t, "starting on it", fmt.Sprint(err), "allow it to be written")
			expect.Same(t, "the folder", before, contents(t, dir))
		})
	}
}
