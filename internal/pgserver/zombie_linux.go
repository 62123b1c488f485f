package pgserver

import (
	"bytes"
	"fmt"
	"os"
)

// isZombie reports whether a process has ended, and its parent has not looked.
func isZombie(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := bytes.Cut(raw, []byte(") ")) // after the name, which may hold anything
	return err == nil && found && bytes.HasPrefix(state, []byte("Z"))
}
