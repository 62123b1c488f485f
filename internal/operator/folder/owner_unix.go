//go:build unix

package folder

import (
	"os"
	"path/filepath"
	"syscall"
)

// giveToOwner makes the owner of its data folder the owner of a file: otherwise the broker could not
// read what a command run by root has written. A file whose owner cannot be changed stays the caller's.
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
