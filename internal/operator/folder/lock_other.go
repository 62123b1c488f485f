//go:build !unix

package folder

import (
	"errors"
	"io/fs"
	"os"
)

var errLocked = errors.New("locked by another process")

// lockFile relies on the lock that the records' file has of its own.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

// lockToRead relies on that, too.
func lockToRead(path string) (*os.File, error) { return os.Open(path) }

func unlock(f *os.File) { _ = f.Close() }

// unwritable reports whether an error says that nothing can be written there.
func unwritable(err error) bool { return errors.Is(err, fs.ErrPermission) }
