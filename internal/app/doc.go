// Package app is the wiring: the settings, and the putting together of the
// other rooms that the programs use. It holds no rules of its own.
package app
