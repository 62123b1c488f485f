//go:build unix && !aix && !solaris

package bolt

import (
	"errors"
	"os"
	"syscall"
)

// share lets other processes read the file of a store that is open for writing. A process that
// wants to write needs the lock for itself, and still gets ErrLocked. If another process gets
// the lock while it changes hands, that process keeps it, and share returns ErrLocked.
func share(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
