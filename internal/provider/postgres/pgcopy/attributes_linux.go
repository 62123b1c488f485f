package pgcopy

import "syscall"

// attributes end a program with the broker, even if the broker is killed, and not by Ctrl-C before it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
