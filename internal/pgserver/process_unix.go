//go:build unix

package pgserver

import (
	"errors"
	"io/fs"
	"syscall"
)

// attributes put a process into a group of its own, which Ctrl-C does not reach,
// under an account.
func attributes(a Account) *syscall.SysProcAttr {
	s := &syscall.SysProcAttr{Setpgid: true}
	if a.IsOther() {
		s.Credential = &syscall.Credential{Uid: a.UID, Gid: a.GID}
	}
	return s
}

func signal(pid int, s syscall.Signal) error { return syscall.Kill(pid, s) }

// alive reports whether there is such a process, whoever's it is. One that has ended
// and that nobody has waited for is none.
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
