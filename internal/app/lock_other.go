//go:build !unix

package app

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked by another process")

// lockFile relies on the lock that the records' file has of its own.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
