//go:build unix

package pgtest

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a folder is this user's, and nobody else may write it.
func ours(info fs.FileInfo) bool {
	const writable = 0o022
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&writable == 0
}
