// Package e2e tests the program as its users start it: the real binary, asked over
// HTTP, killed and started again.
package e2e
