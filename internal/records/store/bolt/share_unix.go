//go:build unix && !aix && !solaris

package bolt

import (
	"errors"
	"os"
	"syscall"
)

// share lets other processes read the file of a store that is open to be written; one
// that would write needs the lock for itself and still gets ErrLocked. A process that gets
// the lock while it changes hands keeps it: then this is ErrLocked.
func share(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
