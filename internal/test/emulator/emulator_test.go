//go:build unix

package emulator_test

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/emulator"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/testserver"
)

func TestHolder(t *testing.T) {
	testserver.Hold(func() string { return *emulator.Config(t).BaseEndpoint })
}

func healthy(url string) error {
	answer, err := http.Get(url + "/_ministack/health")
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
	temp := t.TempDir()
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_ENDPOINT_URL=") })
	testserver.EndsWithItsTest(t, append(env, "TMPDIR="+temp), healthy, func(url string) bool {
		return healthy(url) != nil && len(expect.Get(os.ReadDir(temp))(t)) == 0
	})
}

func TestNamesDiffer(t *testing.T) {
	if a, b := emulator.Name("table"), emulator.Name("table"); a == b || !strings.HasPrefix(a, "table-") {
		t.Errorf("names %q and %q", a, b)
	}
}
