//go:build unix

package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// loses starts a broker with a server of its own, whose records or key are lost once it has a binding.
func loses(t *testing.T, files ...string) (o *own, uri string) {
	t.Helper()
	o = startOwn(t, pgtest.Programs(t, "17"))
	o.provision(t, "first", "")
	uri = o.bind(t, "first", "one")
	o.interrupt(t)
	for _, file := range files {
		expect.OK(t, os.Remove(filepath.Join(o.data, file)))
	}
	return o, uri
}

// goesOn starts a broker after its rebuild: its instance is known, and what an application has of it works.
func (o *own) goesOn(t *testing.T, uri string) {
	t.Helper()
	o.again(t)
	must(t, o.url, "GET", instancePath("first"), "", http.StatusOK)
	if _, err := sql(t, uri, "SELECT 'in'"); err != nil {
		t.Errorf("what an application has does not work any more: %v", err)
	}
}

// With records lost, or records and key at once, a rebuild still gives a record to what exists.
func TestLostRecordsWithAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string][]string{"Records": {"longshore.db"}, "RecordsAndKey": {"longshore.db", "vault.key"}} {
		t.Run(name, func(t *testing.T) {
			o, uri := loses(t, lost...)
			said := does(t, o.env, "rebuild", "--yes", "--data", o.data, "--postgres", "embedded")
			expect.Says(t, "the rebuild", said, "1 instances and 1 bindings have a record again")
			o.goesOn(t, uri)
			o.interrupt(t)
		})
	}
}

// With the vault's key lost, a broker with a server of its own gets back to work: a rebuild says which flag it lacks, and
// gives up nothing before it has it. Each run says all that is lost.
func TestALostKeyWithAServerOfItsOwn(t *testing.T) {
	t.Parallel()
	o, uri := loses(t, "vault.key")
	const lost = "first/one"
	code, said := run(t, o.env, "rebuild", "--yes", "--data", o.data)
	expect.Same(t, "without the flag, exit status", 1, code)
	expect.Says(t, "without the flag, it", said, "--postgres is not given")
	expect.Never(t, "without the flag, it", said, lost)
	for _, run := range []string{"the first", "the second"} {
		said := does(t, o.env, "rebuild", "--yes", "--data", o.data, "--postgres", "embedded")
		expect.Says(t, run+" run", said, "lost: the credentials of binding "+lost, "again:\n  "+lost+"\n")
	}
	o.goesOn(t, uri)
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
	o.provision(t, "first", "")
	uri := o.bind(t, "first", "b")
	expect.Get(sql(t, uri, "CREATE TABLE kept AS SELECT 'kept' AS v"))(t)
	o.provision(t, "copy", `,"parameters":{"restore_from":"first"}`)
	o.holds(t, o.bind(t, "copy", "c"))

	dir := t.TempDir()
	dump, all := filepath.Join(dir, "first.dump"), filepath.Join(dir, "all.tar.gz")
	does(t, o.env, "backup", "--data", o.data, "first", dump)
	does(t, o.env, "backup", "--data", o.data, "--all", all)
	listed := expect.Get(exec.Command(filepath.Join(bin, "pg_restore"), "--list", dump).Output())(t)
	expect.Says(t, "the dump", string(listed), "TABLE DATA public kept")
	o.provision(t, "later", "")
	o.interrupt(t)

	expect.OK(t, os.Rename(o.data, o.data+".lost"))
	expect.OK(t, os.Mkdir(o.data, 0o700))
	tar(t, "-xzpf", all, "-C", o.data)
	o.again(t)
	o.holds(t, uri)
	must(t, o.url, "GET", instancePath("later"), "", http.StatusNotFound)
	o.provision(t, "later", "")
	o.holds(t, o.bind(t, "first", "another"))
	o.unbind(t, "first", "b")
	if _, err := sql(t, uri, "SELECT v FROM kept"); err == nil {
		t.Error("what was unbound after the restore opens")
	}
	o.interrupt(t)
}
