//go:build unix

package e2e_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// typed is the block of a page that lives one life by hand.
func typed(t *testing.T, page string) string {
	t.Helper()
	text := expect.Get(os.ReadFile(filepath.Join("../../..", page)))(t)
	for _, m := range shellBlock.FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(m[1], "call() {") {
			return m[1]
		}
	}
	t.Fatalf("%s has no block that defines call()", page)
	return ""
}

// A new user types what the README and the first page say, and it works as it stands.
func TestPagesAsTyped(t *testing.T) {
	t.Parallel()
	o := startOwn(t, pgtest.Programs(t, "17"))
	for page, want := range map[string]struct {
		instance string
		prints   []string
	}{
		"README.md":     {"first", []string{`"state":"succeeded"`, "hello from lsd"}},
		"docs/start.md": {"a-demo", []string{`"name":"demo"`, `"state":"succeeded"`, `"credentials":`}},
	} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), settleLimit)
			defer cancel()
			shell := exec.CommandContext(ctx, "bash", "-c", "set -eu -o pipefail\n"+typed(t, page))
			shell.Env = append(os.Environ(), "BROKER="+o.url, "LOGIN="+username+":"+password, "PGCONNECT_TIMEOUT=10")
			shell.WaitDelay = time.Second
			said, err := shell.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			expect.Says(t, "what is printed", string(said), want.prints...)
			waitFor(t, settleLimit, "the instance to be gone", func() bool {
				a, err := send(o.url, "GET", instancePath(want.instance), "")
				return err == nil && a.status == http.StatusNotFound
			})
		})
	}
	o.interrupt(t)
}
