//go:build !unix

package backup

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked by another process")

// lock takes no lock: what a killed backup left is not removed here.
func lock(*os.File) error { return errors.ErrUnsupported }
