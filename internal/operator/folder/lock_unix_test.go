//go:build unix

package folder

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A child that is being started holds each file of its parent until it runs its program: a folder that was
// closed meanwhile opens again.
func TestALockEndsBeforeAChildBegins(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileLock)
	held, err := lockFile(path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := syscall.Dup(int(held.Fd()))
	if err != nil {
		t.Fatal(err)
	}
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
