//go:build !linux

package pgserver

func isZombie(int) bool { return false }
