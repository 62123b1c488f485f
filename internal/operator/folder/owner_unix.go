//go:build unix

package folder

import (
	"os"
	"path/filepath"
	"syscall"
)

// giveToOwner gives a file to the owner of its data folder: the broker could not read what a
// command that root calls has written. A file that cannot be given stays the caller's.
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
