//go:build !unix

package pgserver

import (
	"errors"
	"io/fs"
	"syscall"
)

func attributes(Account) *syscall.SysProcAttr { return nil }

func signal(int, syscall.Signal) error { return errors.ErrUnsupported }

func alive(int) bool { return false }

func (Account) mayPass(fs.FileInfo) bool { return true }

func (Account) keeps(string) bool { return true }
