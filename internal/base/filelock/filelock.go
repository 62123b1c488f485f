// Package filelock locks open files against other processes. A lock never waits, and ends when the file is closed
// or the process ends, however it ends.
package filelock

import "errors"

// ErrLocked says that another process holds a lock that excludes the one that was asked for. Where the system has no
// such locks, the error of each function is errors.ErrUnsupported.
var ErrLocked = errors.New("locked by another process")
