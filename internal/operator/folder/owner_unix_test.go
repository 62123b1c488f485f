//go:build unix

package folder

import (
	"errors"
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
	each(func(path string) error { return isOwners(t, path) })
}

const owner = 12345

// isOwners requires that a file belongs to the owner.
func isOwners(t *testing.T, path string) error {
	t.Helper()
	info, err := os.Lstat(path)
	if err == nil && info.Sys().(*syscall.Stat_t).Uid != owner {
		t.Errorf("%s is root's", filepath.Base(path))
	}
	return err
}

// The broker starts on a folder that a command of root has set up, or has opened without its lock.
func TestWhatRootSetsUpBelongsToTheFoldersOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	expect.OK(t, os.Lchown(dir, owner, owner))
	for range 2 {
		opens(t, dir)
		for _, name := range []string{fileLock, fileKey, fileRecords, fileMarker} {
			expect.OK(t, isOwners(t, filepath.Join(dir, name)))
		}
		expect.OK(t, os.Remove(filepath.Join(dir, fileLock)))
	}
}

// A child that is being started holds each file of its parent until it runs its program. A lock ends all the same: a folder that
// was closed meanwhile opens again, and the logins can be changed again.
func TestALockEndsBeforeAChildBegins(t *testing.T) {
	l, child := Logins{t.TempDir()}, -1
	err := l.locked(func() error {
		expect.Fails(t, "two have the lock at once", platforms.ErrChanging, l.locked(func() error { return nil }))
		var want syscall.Stat_t
		if err := syscall.Stat(l.path()+".lock", &want); err != nil {
			return err
		}
		for fd := range 1024 {
			var is syscall.Stat_t
			if syscall.Fstat(fd, &is) == nil && is.Dev == want.Dev && is.Ino == want.Ino {
				var err error
				child, err = syscall.Dup(fd)
				return err
			}
		}
		return errors.New("the lock is not held open")
	})
	expect.OK(t, err)
	defer func() { _ = syscall.Close(child) }()
	expect.OK(t, l.locked(func() error { return nil }), "the next change:")
}
