//go:build unix

package testserver

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
)

// holder is set where a test program has started itself again, for a process that only has a server.
const holder = "TESTSERVER_HOLDER"

// Hold is all that TestHolder does: in such a process it starts a server, and says where that is.
func Hold(start func() string) {
	if os.Getenv(holder) != "" {
		fmt.Println("server:", start())
		time.Sleep(time.Minute) // until it is killed
	}
}

// EndsWithItsTest has a process of its own run TestHolder, looks at its server, kills the process, and waits until
// the server is gone.
func EndsWithItsTest(t *testing.T, env []string, lives func(at string) error, gone func(at string) bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), expect.Get(os.Executable())(t), "-test.run=^TestHolder$", "-test.v", "-test.timeout=1m")
	c.Env = append(env, holder+"=1")
	out := expect.Get(c.StdoutPipe())(t)
	expect.OK(t, c.Start())
	at, lines := "", bufio.NewScanner(out)
	for at == "" && lines.Scan() {
		_, at, _ = strings.Cut(lines.Text(), "server: ")
	}
	expect.OK(t, lives(at), "the other process has no server at", at)
	expect.OK(t, c.Process.Signal(syscall.SIGKILL))
	_ = c.Wait() // it was killed
	for range 100 {
		if gone(at) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the server at %s has outlived the process that started it", at)
}
