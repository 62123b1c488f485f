package pgcopy

import "syscall"

// attributes have a program end with the broker, also when that is killed, and not
// with Ctrl-C before it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
