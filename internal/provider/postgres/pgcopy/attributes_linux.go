package pgcopy

import "syscall"

// attributes returns attributes that kill a program when the broker ends, even if the broker is killed, and
// that keep Ctrl-C from ending the program before the broker.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
