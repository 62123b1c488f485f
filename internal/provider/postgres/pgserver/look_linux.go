package pgserver

import (
	"bytes"
	"context"
	"fmt"
	"os"
)

// isZombie reports whether a process has ended but its parent has not yet waited for it.
func isZombie(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := bytes.Cut(raw, []byte(") ")) // the state follows the name, which may contain anything
	return err == nil && found && bytes.HasPrefix(state, []byte("Z"))
}

// serves reports whether a process is the server of a data folder. It compares working folders, because the
// data may have been moved since the server's start.
func serves(_ context.Context, pid int, data string) bool {
	same, err := sameFolder(fmt.Sprintf("/proc/%d/cwd", pid), data)
	return err == nil && same
}
