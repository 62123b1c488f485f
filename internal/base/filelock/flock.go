//go:build unix && !aix && !solaris

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Exclusive takes a lock that excludes every other one.
func Exclusive(f *os.File) error { return lock(f, syscall.LOCK_EX) }

// Shared takes a lock that excludes exclusive ones alone. An exclusive lock on the same file becomes a shared one; if another
// process gets the lock while it changes hands, the error is ErrLocked.
func Shared(f *os.File) error { return lock(f, syscall.LOCK_SH) }

func lock(f *os.File, how int) error {
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Release ends a lock at once. Closing the file alone would not: a child that the process is just starting also holds
// the file, until it runs its program.
func Release(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
