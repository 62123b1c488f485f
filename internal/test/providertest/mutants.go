package providertest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// MutantVariable names, in a subprocess of RunMutants, the fault that the
// provider of TestSound is to have.
const MutantVariable = "LONGSHORE_PROVIDERTEST_MUTANT"

// A Mutant is a provider with a fault.
type Mutant struct {
	Reason string // what it breaks
	Caught string // the case that has to catch it
}

// RunMutants proves that the suite can fail: each mutant is caught by the case
// that is there for it. The package's TestSound runs the suite.
func RunMutants(t *testing.T, mutants map[string]Mutant) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caughtBy := "TestSound/Asynchronous/" + m.Caught
			pattern := "^" + strings.ReplaceAll(caughtBy, "/", "$/^") + "$"
			cmd := exec.CommandContext(t.Context(), self, "-test.run="+pattern, "-test.failfast")
			cmd.Env = append(os.Environ(), MutantVariable+"="+name)
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				t.Fatalf("%s: the mutant passed %s (error %v)", m.Reason, m.Caught, err)
			}
			if !strings.Contains(string(out), "--- FAIL: "+caughtBy) {
				t.Errorf("%s: the mutant was not caught but broke:\n%s", m.Reason, out)
			}
		})
	}
}
