package app_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/app"
)

// The real functions, started without their settings, end at once and name
// what is missing.
func TestColdStartsWithoutSettings(t *testing.T) {
	for function, name := range map[string]string{"api": app.EnvTable, "provisioner": app.EnvKey, "reaper": app.EnvStateMachine} {
		t.Run(function, func(t *testing.T) {
			binary, source := filepath.Join(t.TempDir(), "bootstrap"), "../../functions/"+function
			// What a test has read is what the go command keeps its result for.
			if _, err := os.ReadDir(source); err != nil {
				t.Fatal(err)
			}
			build := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", binary, source)
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("building: %v\n%s", err, out)
			}
			cmd := exec.Command(binary)
			cmd.Env = []string{"AWS_REGION=us-east-1", "PATH=" + os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true"}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), name) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
