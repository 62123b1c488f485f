//go:build unix

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// The ids of the offering postgres never change once published.
const (
	servicePostgres = "0f0a3c1e-5e0b-4c39-9d5a-6d1f7c1b7a10"
	planSmall       = "2f4a0a52-0d8f-4b6f-8d4e-1b3c52a6f1d1"
)

// An own is a broker with a PostgreSQL of its own, started as `make run` does.
type own struct {
	*process
	data string
	env  []string
}

// startOwn starts one. As root, its data lie where another user may be let pass.
func startOwn(t *testing.T, bin string) *own {
	t.Helper()
	dir := expect.Get(os.MkdirTemp("", "longshore-e2e-data-"))(t)
	o := &own{data: filepath.Join(dir, "data"), env: credentials(pgserver.EnvBin + "=" + bin)}
	t.Cleanup(func() {
		if pid := o.pid(); pid != 0 {
			_ = pgserver.Stop(context.Background(), pid, time.Second)
		}
		_ = os.RemoveAll(dir)
	})
	expect.OK(t, os.Chmod(dir, 0o711))
	o.again(t)
	return o
}

func (o *own) again(t *testing.T) {
	t.Helper()
	cmd := command(o.env, "serve", "--listen", "127.0.0.1:0", "--data", o.data, "--postgres", "embedded")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	o.process = startCommand(t, cmd)
}

// interrupt is Ctrl-C, which reaches the broker and all that belongs to its terminal.
func (o *own) interrupt(t *testing.T) {
	t.Helper()
	expect.OK(t, syscall.Kill(-o.cmd.Process.Pid, syscall.SIGINT))
	<-o.ended
	expect.Same(t, "the broker's exit status", 0, o.cmd.ProcessState.ExitCode())
	expect.Never(t, "the log", o.log.String(), "level=ERROR")
	expect.Same(t, "its server runs on, process", 0, o.pid())
}

// pid is the server's process; 0 if it does not run.
func (o *own) pid() int {
	return pgserver.Cluster{Data: filepath.Join(o.data, "postgres", "data")}.PID()
}

func (o *own) provision(t *testing.T, id, more string) {
	t.Helper()
	r := rented{o.process, t, servicePostgres, planSmall, instancePath(id)}
	r.begins("PUT", r.path, ","+place+more)
	o.succeeds(t, r.path)
}

// bind gives the binding's uri.
func (o *own) bind(t *testing.T, instance, id string) string {
	t.Helper()
	a := must(t, o.url, "PUT", bindingPath(instance, id), planBody(servicePostgres, planSmall, ""), 201, 200)
	credentials, _ := a.body["credentials"].(map[string]any)
	return fmt.Sprint(credentials["uri"])
}

func (o *own) unbind(t *testing.T, instance, id string) {
	t.Helper()
	must(t, o.url, "DELETE", bindingPath(instance, id)+"?"+idsOf(servicePostgres, planSmall), "", http.StatusOK)
}

// sql runs a statement over a binding, and gives the text that it answers.
func sql(t *testing.T, uri, statement string) (answer string, err error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), uri)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if err = conn.QueryRow(t.Context(), statement).Scan(&answer); errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return answer, err
}

// tellsWhose asks for the owner of what a database's application and its administrator see.
func (o *own) tellsWhose(t *testing.T, uri, instance, binding string) {
	t.Helper()
	names := strings.Fields(expect.Get(sql(t, uri, "SELECT current_database() || ' ' || session_user || ' ' || current_user"))(t))
	names = append(names, "lsr"+strings.TrimPrefix(names[2], "lso")) // the readers' role
	of := "instance +" + instance
	for n, want := range []string{of, "binding +" + binding, of, of} {
		said := does(t, o.env, "whose", names[n], "--data", o.data)
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(said) {
			t.Errorf("whose %s?\n%s", names[n], said)
		}
	}
}

func (o *own) holds(t *testing.T, uri string) {
	t.Helper()
	if got, err := sql(t, uri, "SELECT v FROM kept"); err != nil || got != "kept" {
		t.Errorf("%q, %v", got, err)
	}
}

func (o *own) offers(t *testing.T) bool {
	t.Helper()
	return strings.Contains(must(t, o.url, "GET", "/v2/catalog", "", http.StatusOK).raw, servicePostgres)
}

// TestOwnPostgres is the first minutes of a new user, and what may come after.
func TestOwnPostgres(t *testing.T) {
	t.Parallel()
	o := startOwn(t, pgtest.Programs(t, "17"))
	// A shell gets the printed commands at once, as when a user pastes them.
	_, printed, _ := strings.Cut(o.out.String(), "Try it:")
	printed, _, _ = strings.Cut(printed, "See it")
	shell := exec.Command("sh", "-c", "set -e; export PGCONNECT_TIMEOUT=10; "+strings.TrimSpace(printed)+
		" -Atc \"SELECT 'tried'\"")
	shell.Env = append(os.Environ(), o.env...)
	if said, err := shell.CombinedOutput(); !o.offers(t) || err != nil || !strings.HasSuffix(string(said), "tried\n") {
		t.Errorf("how to try a database does not work: %v\n%s\n%s", err, printed, said)
	}
	o.provision(t, "first", "")
	uri := o.bind(t, "first", "one")
	expect.Get(sql(t, uri, "CREATE TABLE kept AS SELECT 'kept' AS v"))(t)
	o.holds(t, uri)
	o.tellsWhose(t, uri, "first", "one")
	gone := o.bind(t, "first", "two")
	o.unbind(t, "first", "two")
	_, code := pgtest.Login(t, gone)
	expect.Same(t, "a login after its unbind", "28P01", code)

	o.interrupt(t)
	if _, err := sql(t, uri, "SELECT 'in'"); err == nil {
		t.Error("the server has outlived Ctrl-C")
	}
	o.again(t)
	o.holds(t, uri)

	server := o.pid()
	o.kill()
	o.holds(t, uri) // it lives on
	o.again(t)
	o.holds(t, o.bind(t, "first", "three"))
	expect.Same(t, fmt.Sprintf("process %d was not taken over: there is", server), server, o.pid())
	o.interrupt(t)

	// Without PostgreSQL, whoever has instances still sees them, and what is asked of them waits.
	o.env = credentials(pgserver.EnvBin + "=" + t.TempDir())
	o.again(t)
	expect.Same(t, "it is offered", true, o.offers(t))
	expect.Says(t, "why it cannot be had", o.log.String(), "make postgres")
	path := instancePath("second")
	must(t, o.url, "PUT", path+async, orderBody(servicePostgres, planSmall, ""), http.StatusAccepted)
	o.interrupt(t)
	o.env = credentials(pgserver.EnvBin + "=" + pgtest.Programs(t, "17"))
	o.again(t)
	expect.Same(t, "what waited has", "succeeded", settled(t, o.url, path))
	o.interrupt(t)
}

// TestNoPostgres: what else there is, is offered.
func TestNoPostgres(t *testing.T) {
	t.Parallel()
	o := startOwn(t, t.TempDir())
	expect.Same(t, "it is offered", false, o.offers(t))
	expect.Says(t, "why it cannot be had", o.log.String(), "make postgres")
	expect.Says(t, "what is printed", o.out.String(), planAsync)
	must(t, o.url, "PUT", instancePath("one"), provisionBody(planSync, `{}`), http.StatusCreated)
}

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
