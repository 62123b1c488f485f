//go:build !unix

package backup

import (
	"errors"
	"os"
)

var errLocked = errors.New("locked by another process")

// lock takes no lock: what a killed backup left is not removed here. No program is released for such a system.
func lock(*os.File) error { return errors.ErrUnsupported }
