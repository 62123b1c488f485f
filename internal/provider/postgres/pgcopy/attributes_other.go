//go:build !linux

package pgcopy

import "syscall"

// attributes are none: a program outlives a broker that is killed, until its login is evicted.
func attributes() *syscall.SysProcAttr { return nil }
