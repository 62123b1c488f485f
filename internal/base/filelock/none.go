//go:build !unix || aix || solaris

package filelock

import (
	"errors"
	"os"
)

// Exclusive takes no lock here.
func Exclusive(*os.File) error { return errors.ErrUnsupported }

// Shared takes no lock here.
func Shared(*os.File) error { return errors.ErrUnsupported }

// Release does nothing here.
func Release(*os.File) {}
