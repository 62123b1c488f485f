package folder

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/longshore/longshore/internal/base/filelock"
)

// lockFile holds an exclusive lock until unlock is called or the process ends, however it ends.
func lockFile(path string) (*os.File, error) {
	return lockAs(path, os.O_CREATE|os.O_RDWR, filelock.Exclusive)
}

// lockToRead holds a shared lock, which excludes that of lockFile. It writes nothing.
func lockToRead(path string) (*os.File, error) { return lockAs(path, os.O_RDONLY, filelock.Shared) }

// lockAs takes no lock where the system has none: the file of the records has a lock of its own.
func lockAs(path string, flag int, lock func(*os.File) error) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func unlock(f *os.File) {
	filelock.Release(f)
	_ = f.Close()
}

// unwritable reports whether an error means that the folder cannot be written to.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
