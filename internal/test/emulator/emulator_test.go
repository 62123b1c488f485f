//go:build unix

package emulator_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
)

// The test starts itself again as a process that only has an emulator.
const holderVariable = "EMULATOR_TEST_HOLDER"

func TestHolder(t *testing.T) {
	if os.Getenv(holderVariable) == "" {
		return // it plays its role only for another test
	}
	fmt.Println("emulator at", *emulator.Config(t).BaseEndpoint)
	time.Sleep(time.Minute) // until it is killed
}

func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/_ministack/health", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// However a test process ends, its emulator ends with it.
func TestEmulatorEndsWithItsTest(t *testing.T) {
	emulator.Config(t) // skips or fails as the others do
	if os.Getenv("AWS_ENDPOINT_URL") != "" {
		t.Skip("AWS_ENDPOINT_URL is set: this run starts no emulator of its own")
	}
	program, err := os.Executable()
	expect.OK(t, err)
	temp := t.TempDir()
	c := exec.CommandContext(t.Context(), program, "-test.run=^TestHolder$", "-test.v", "-test.timeout=1m")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_ENDPOINT_URL=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, holderVariable+"=1", "TMPDIR="+temp)
	out, err := c.StdoutPipe()
	expect.OK(t, err)
	expect.OK(t, c.Start())
	var url string
	lines := bufio.NewScanner(out)
	for url == "" && lines.Scan() {
		_, url, _ = strings.Cut(lines.Text(), "emulator at ")
	}
	if err := healthy(t.Context(), url); err != nil {
		t.Fatalf("the other process has no emulator at %q: %v", url, err)
	}
	expect.OK(t, c.Process.Signal(syscall.SIGKILL))
	_ = c.Wait() // it was killed
	for range 100 {
		left, err := os.ReadDir(temp)
		expect.OK(t, err)
		if healthy(t.Context(), url) != nil && len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error("the emulator has outlived the process that started it")
}

func TestNamesDiffer(t *testing.T) {
	if a, b := emulator.Name("table"), emulator.Name("table"); a == b || !strings.HasPrefix(a, "table-") {
		t.Errorf("names %q and %q", a, b)
	}
}
