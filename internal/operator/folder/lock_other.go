//go:build !unix

package folder

import (
	"errors"
	"io/fs"
	"os"
)

var errLocked = errors.New("locked by another process")

// lockFile takes no lock: the file of the records has a lock of its own.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

// lockToRead takes no lock, either.
func lockToRead(path string) (*os.File, error) { return os.Open(path) }

func unlock(f *os.File) { _ = f.Close() }

// unwritable reports whether an error means that the folder cannot be written to.
func unwritable(err error) bool { return errors.Is(err, fs.ErrPermission) }
