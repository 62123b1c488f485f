//go:build !linux

package pgcopy

import "syscall"

// attributes returns no attributes: if the broker is killed, the program runs on until its login is evicted.
func attributes() *syscall.SysProcAttr { return nil }
