//go:build unix

package folder

import (
	"os"
	"path/filepath"
	"syscall"
)

// giveToOwner gives a file of a data folder to whom the folder belongs: where an
// operator calls a command as root, the broker could not read what it has written.
// A file that cannot be given stays the caller's.
func giveToOwner(path string) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(path, int(owner.Uid), int(owner.Gid))
	}
}
