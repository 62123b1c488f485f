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

	"github.com/longshore/longshore/internal/test/pgtest"
)

// A backup of all, made while the broker runs, is a data folder: where it is unpacked,
// a broker starts with its server, and the credentials that were handed out open what
// was written. What came after the backup is in neither the records nor the server.
func TestABackupOfAllIsADataFolder(t *testing.T) {
	t.Parallel()
	bin := pgtest.Programs(t, "17")
	o := startOwn(t, bin)
	o.provision(t, "first")
	uri := o.bind(t, "first", "b")
	if _, err := sql(t, uri, "CREATE TABLE kept AS SELECT 'kept' AS v"); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"service_id":%q,"plan_id":%q,"organization_guid":"o","space_guid":"s",`+
		`"parameters":{"restore_from":"first"}}`,
		servicePostgres, planSmall)
	must(t, o.url, "PUT", instancePath("copy")+"?accepts_incomplete=true", body, http.StatusCreated, http.StatusAccepted)
	if state := settled(t, o.url, instancePath("copy")); state != "succeeded" {
		t.Fatalf("the restore has %s:\n%s", state, o.log)
	}
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

	if err := os.Rename(o.data, o.data+".lost"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(o.data, 0o700); err != nil {
		t.Fatal(err)
	}
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
