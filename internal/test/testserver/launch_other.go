//go:build !unix

package testserver

import "errors"

// Launch needs a system with process groups.
func Launch(string, string, string, []string, ...string) (<-chan struct{}, error) {
	return nil, errors.New("not possible on this system")
}
