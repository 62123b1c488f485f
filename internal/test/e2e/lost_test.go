//go:build unix

package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// With records lost, or records and key at once, a rebuild still gives a record to what exists.
func TestLostRecordsWithAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][]string{"Records": {"longshore.db"}, "RecordsAndKey": {"longshore.db", "vault.key"}} {
		t.Run(name, func(t *testing.T) {
			o := startOwn(t, pgtest.Programs(t, "17"))
			o.provision(t, "first")
			uri := o.bind(t, "first", "one")
			o.interrupt(t)
			for _, file := range lost {
				expect.OK(t, os.Remove(filepath.Join(o.data, file)))
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

// With the vault's key lost, a broker with a server of its own gets back to work: a rebuild says which flag it lacks, and
// gives up nothing before it has it. Each run says all that is lost.
func TestALostKeyWithAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	o := startOwn(t, pgtest.Programs(t, "17"))
	o.provision(t, "first")
	uri := o.bind(t, "first", "one")
	o.interrupt(t)
	expect.OK(t, os.Remove(filepath.Join(o.data, "vault.key")))
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
		expect.Says(t, run+" run", said, "lost: the credentials of binding "+lost, "again:\n  "+lost+"\n")
	}
	o.again(t)
	must(t, o.url, "GET", instancePath("first"), "", http.StatusOK)
	if _, err := sql(t, uri, "SELECT 'in'"); err != nil {
		t.Errorf("what an application has does not work any more: %v", err)
	}
	o.bind(t, "first", "two")
	o.interrupt(t)
}

// A backup of all, made while the broker runs, is a data folder: where it is unpacked,
// a broker starts with its server, and the credentials that were handed out open what
// was written. What came after the backup is in neither the records nor the server.
func TestABackupOfAllIsADataFolder(t *testing.T) {
	t.Parallel()
	bin := pgtest.Programs(t, "17")
	o := startOwn(t, bin)
	o.provision(t, "first")
	uri := o.bind(t, "first", "b")
	expect.Get(sql(t, uri, "CREATE TABLE kept AS SELECT 'kept' AS v"))(t)
	body := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s",`+
		`"parameters":{"restore_from":"first"}}`,
		servicePostgres, planSmall)
	must(t, o.url, "PUT", instancePath("copy")+"?accepts_incomplete=true", body, http.StatusCreated, http.StatusAccepted)
	o.succeeds(t, instancePath("copy"))
	o.holds(t, o.bind(t, "copy", "c"))

	dir := t.TempDir()
	dump, all := filepath.Join(dir, "first.dump"), filepath.Join(dir, "all.tar.gz")
	for _, args := range [][]string{{"first", dump}, {"--all", all}} {
		if said, err := command(o.env, append([]string{"backup", "--data", o.data}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("backup %v: %v\n%s", args, err, said)
		}
	}
	listed, err := exec.Command(filepath.Join(bin, "pg_restore"), "--list", dump).Output()
	if err != nil || !strings.Contains(string(listed), "TABLE DATA public kept") {
		t.Errorf("the dump holds %s, %v", listed, err)
	}
	o.provision(t, "later")
	o.interrupt(t)

	expect.OK(t, os.Rename(o.data, o.data+".lost"))
	expect.OK(t, os.Mkdir(o.data, 0o700))
	if said, err := exec.Command("tar", "-xzpf", all, "-C", o.data).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	o.again(t)
	o.holds(t, uri)
	must(t, o.url, "GET", instancePath("later"), "", http.StatusNotFound)
	o.provision(t, "later")
	o.holds(t, o.bind(t, "first", "another"))
	ids := "?service_id=" + servicePostgres + "&plan_id=" + planSmall
	must(t, o.url, "DELETE", bindingPath("first", "b")+ids, "", http.StatusOK)
	if _, err := sql(t, uri, "SELECT v FROM kept"); err == nil {
		t.Error("what was unbound after the restore opens")
	}
	o.interrupt(t)
}
