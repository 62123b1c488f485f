//go:build unix

package folder

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by another process")

// lockFile holds an exclusive lock until unlock is called or the process ends, however it ends.
func lockFile(path string) (*os.File, error) {
	return lockAs(path, os.O_CREATE|os.O_RDWR, syscall.LOCK_EX)
}

// lockToRead holds a shared lock, which excludes that of lockFile. It writes nothing.
func lockToRead(path string) (*os.File, error) { return lockAs(path, os.O_RDONLY, syscall.LOCK_SH) }

func lockAs(path string, flag, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, err
}

// unlock releases the lock and closes the file. Closing alone would not release it: a child that
// the process is just starting also holds the file, until it runs its program.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}

// unwritable reports whether an error means that the folder cannot be written to.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
