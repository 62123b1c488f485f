//go:build unix

package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/pgtest"
)

// With records lost, or records and key at once, a rebuild still gives a record to what
// exists.
func TestLostRecordsWithAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][]string{"Records": {"longshore.db"}, "RecordsAndKey": {"longshore.db", "vault.key"}} {
		t.Run(name, func(t *testing.T) {
			o := startOwn(t, pgtest.Programs(t, "17"))
			o.provision(t, "first")
			uri := o.bind(t, "first", "one")
			o.interrupt(t)
			for _, file := range lost {
				if err := os.Remove(filepath.Join(o.data, file)); err != nil {
					t.Fatal(err)
				}
			}
			said, err := command(o.env, "rebuild", "--yes", "--data", o.data, "--postgres", "embedded").CombinedOutput()
			if err != nil || !strings.Contains(string(said), "1 instances and 1 bindings have a record again") {
				t.Fatalf("%v:\n%s", err, said)
			}
			o.again(t)
			must(t, o.url, "GET", instancePath("first"), "", http.StatusOK)
			if _, err := sql(t, uri, "SELECT 'in'"); err != nil {
				t.Errorf("what an application has does not work any more: %v", err)
			}
			o.interrupt(t)
		})
	}
}

// With the vault's key lost, a broker with a server of its own gets back to work: a
// rebuild says which flag it lacks, and gives up nothing before it has it. Each run says
// all that is lost.
func TestALostKeyWithAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	o := startOwn(t, pgtest.Programs(t, "17"))
	o.provision(t, "first")
	uri := o.bind(t, "first", "one")
	o.interrupt(t)
	if err := os.Remove(filepath.Join(o.data, "vault.key")); err != nil {
		t.Fatal(err)
	}
	rebuild := func(want int, flags ...string) string {
		t.Helper()
		cmd := command(o.env, append([]string{"rebuild", "--yes", "--data", o.data}, flags...)...)
		said, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Fatalf("rebuild %v ends with %d, want %d:\n%s", flags, got, want, said)
		}
		return string(said)
	}
	const lost = "first/one"
	if said := rebuild(1); !strings.Contains(said, "--postgres is not given") || strings.Contains(said, lost) {
		t.Errorf("without the flag, it says:\n%s", said)
	}
	for _, run := range []string{"the first", "the second"} {
		said := rebuild(0, "--postgres", "embedded")
		if !strings.Contains(said, "lost: the credentials of binding "+lost) || !strings.Contains(said, "again:\n  "+lost+"\n") {
			t.Errorf("%s run does not say what is lost:\n%s", run, said)
		}
	}
	o.again(t)
	must(t, o.url, "GET", instancePath("first"), "", http.StatusOK)
	if _, err := sql(t, uri, "SELECT 'in'"); err != nil {
		t.Errorf("what an application has does not work any more: %v", err)
	}
	o.bind(t, "first", "two")
	o.interrupt(t)
}
