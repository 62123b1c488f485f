//go:build unix

package folder

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/longshore/longshore/internal/front/platforms"
	"github.com/longshore/longshore/internal/test/expect"
)

// The broker, which runs as another user, can read the files that root's commands write: of a
// rotation, a check value, a lost key and lost records.
func TestWhatRootWritesBelongsToTheFoldersOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const owner = 12345
	dir := filled(t)
	each := func(do func(path string) error) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return do(path)
		})
		expect.OK(t, err)
	}
	logins := Logins{dir}
	first := platforms.Registry{Platforms: []platforms.Platform{{ID: platforms.Default, Name: platforms.Default,
		Credential: platforms.Credential{Username: "broker", Password: platforms.NewPassword()}}}}
	if _, begun, err := logins.Open(first); err != nil || !begun {
		t.Fatal(begun, err)
	}
	rebuilt(t, dir) // the demo's folder is there from the first start on
	each(func(path string) error { return os.Lchown(path, owner, owner) })

	err := logins.Change(t.Context(), func(r platforms.Registry) (platforms.Registry, error) {
		return r.Rotate(platforms.Default, platforms.NewPassword(), now(), 0)
	})
	expect.OK(t, err)
	opens(t, dir)
	for _, lost := range []string{fileKey, fileRecords} {
		expect.OK(t, os.Remove(filepath.Join(dir, lost)))
		rebuilt(t, dir)
	}
	each(func(path string) error {
		info, err := os.Lstat(path)
		if err == nil && info.Sys().(*syscall.Stat_t).Uid != owner {
			t.Errorf("%s is root's", filepath.Base(path))
		}
		return err
	})
}
