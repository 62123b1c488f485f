//go:build unix

package backup

import (
	"errors"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by another process")

// lock holds an exclusive lock on an open file until it is closed or the process ends, however it ends.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
