package pgserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// holderOf names the process that listens on a port, as far as this user can tell: root sees all processes,
// others only their own.
func holderOf(port int) string {
	const listening = "0A"
	inodes := map[string]bool{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		raw, _ := os.ReadFile(path)
		for line := range strings.Lines(string(raw)) {
			// sl, local address, remote address, state, queues, timer, retries, uid, timeout, inode
			f := strings.Fields(line)
			if len(f) > 9 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == listening {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && inodes[to] {
			process := filepath.Dir(filepath.Dir(link))
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			return fmt.Sprintf("process %s (%s)", filepath.Base(process), bytes.TrimSpace(name))
		}
	}
	return "another process"
}
