//go:build unix

package folder

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
)

// A child that is being started holds each file of its parent until it runs its program: a folder that was
// closed meanwhile opens again.
func TestALockEndsBeforeAChildBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileLock)
	held := expect.Get(lockFile(path))(t)
	child := expect.Get(syscall.Dup(int(held.Fd())))(t)
	defer func() { _ = syscall.Close(child) }()
	if _, err := lockFile(path); err == nil {
		t.Fatal("two have the lock at once")
	}
	unlock(held)
	again, err := lockFile(path)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	unlock(again)
}

// The lock of the logins ends with the change, too, whatever child is being started then.
func TestTheLockOfLoginsEndsBeforeAChildBegins(t *testing.T) {
	l, child := Logins{t.TempDir()}, -1
	err := l.locked(func() error {
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(child) }()
	if err := l.locked(func() error { return nil }); err != nil {
		t.Errorf("the next change: %v", err)
	}
}
