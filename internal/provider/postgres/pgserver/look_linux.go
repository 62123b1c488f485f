package pgserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
)

// isZombie reports whether a process has ended, and its parent has not waited for it.
func isZombie(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := bytes.Cut(raw, []byte(") ")) // after the name, which may hold anything
	return err == nil && found && bytes.HasPrefix(state, []byte("Z"))
}

// serves reports whether a process is the server of a data folder, by its working folder: the data may
// have been moved since its start.
func serves(_ context.Context, pid int, data string) bool {
	same, err := sameFolder(fmt.Sprintf("/proc/%d/cwd", pid), data)
	return err == nil && same
}
