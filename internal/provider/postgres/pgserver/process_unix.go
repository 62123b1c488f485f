//go:build unix

package pgserver

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// attributes returns attributes that run a process as the account, in a session of its own that neither
// Ctrl-C nor the end of a terminal reaches.
func attributes(a Account) *syscall.SysProcAttr {
	s := &syscall.SysProcAttr{Setsid: true}
	if a.IsOther() {
		s.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID}
	}
	return s
}

func signal(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

// alive reports whether a process with this id runs, of any user. A zombie does not count.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return (err == nil || errors.Is(err, syscall.EPERM)) && !isZombie(pid)
}

// mayPass reports whether the account may pass through a folder.
func (a Account) mayPass(info fs.FileInfo) bool {
	const owner, group, other = 0o100, 0o010, 0o001
	mode := uint32(info.Mode().Perm())
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && stat.Uid == a.UID:
		return mode&owner != 0
	case ok && stat.Gid == a.GID:
		return mode&group != 0
	default:
		return mode&other != 0
	}
}

// keeps reports whether a path is a folder (not a link) that belongs to the account, and that nobody else may
// enter.
func (a Account) keeps(path string) bool {
	uid := uint32(os.Geteuid())
	if a.IsOther() {
		uid = a.UID
	}
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uid
}
