//go:build unix

package pgserver_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// dataFolder is one that the server's user may be let into. A test's own lies in one for root alone.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := expect.Get(os.MkdirTemp("", "longshore-data-"))(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "postgres")
}

// options are for a server of version 17 in a folder.
func options(t *testing.T, dir string) pgserver.Options {
	t.Helper()
	o := pgserver.Options{Dir: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	return with(o, pgserver.EnvBin, pgtest.Programs(t, "17"))
}

// with has a setting alone in its environment.
func with(o pgserver.Options, setting, value string) pgserver.Options {
	o.Getenv = func(name string) string { return map[string]string{setting: value}[name] }
	return o
}

func open(t *testing.T, o pgserver.Options) *pgserver.Server {
	t.Helper()
	s := expect.Get(pgserver.Open(t.Context(), o))(t)
	t.Cleanup(func() { _ = s.Close() }) // again, where the test has come to its end
	return s
}

func closed(t *testing.T, s *pgserver.Server) {
	t.Helper()
	expect.OK(t, s.Close())
}

func query(t *testing.T, a hosted.Access, sql string) (answer string, err error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=disable",
		a.Host, a.Port, a.User, a.Password, a.Database))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	err = conn.QueryRow(t.Context(), sql).Scan(&answer)
	return answer, err
}

func want(t *testing.T, a hosted.Access, sql, answer string) {
	t.Helper()
	if got, err := query(t, a, sql); err != nil || got != answer {
		t.Errorf("%s: %q, %v; want %q", sql, got, err, answer)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// TestLife goes through the life of one server, in one folder.
func TestLife(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	o := options(t, dir)
	s := open(t, o)
	a := s.Access()
	want(t, a, "SELECT rolsuper::text || rolcreaterole || rolcreatedb FROM pg_roles WHERE rolname = current_user", "falsetruetrue")
	want(t, a, "SELECT lower('ÄÖ')", "äö")
	want(t, a, "SELECT current_setting('data_checksums')", "on")
	super := a
	super.User = "postgres"
	if _, err := query(t, super, "SELECT 'in'"); err == nil {
		t.Error("the superuser gets in over the network")
	}
	if a.Host != pgserver.Loopback || a.TLS != hosted.TLSDisable {
		t.Errorf("it is reached at %s, with TLS %s", a.Host, a.TLS)
	}
	hides(t, dir, a.Password)
	conn := expect.Get(s.Cluster().Connect(t.Context(), a.Database))(t)
	expect.Get(conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'kept' AS v; GRANT SELECT ON kept TO PUBLIC"))(t)
	expect.OK(t, conn.Close(t.Context()))
	first := s.Cluster().PID()
	closed(t, s)
	// The system may not have forgotten the process yet.
	eventually(t, "the server's end", func() bool { return s.Cluster().PID() == 0 && syscall.Kill(first, 0) != nil })

	t.Run("PortTaken", func(t *testing.T) {
		l := expect.Get(net.Listen("tcp", net.JoinHostPort(a.Host, strconv.Itoa(a.Port))))(t)
		defer func() { _ = l.Close() }()
		refused(t, o, fmt.Sprintf("process %d (", os.Getpid()), strconv.Itoa(a.Port))
	})
	t.Run("StalePID", func(t *testing.T) {
		stale(t, s.Cluster())
		again := open(t, o)
		want(t, again.Access(), "SELECT v FROM kept", "kept")
		if again.Access() != a {
			t.Error("the credentials have changed")
		}
		closed(t, again)
	})
	t.Run("Crash", func(t *testing.T) {
		again := open(t, o)
		before := again.Cluster().PID()
		expect.OK(t, syscall.Kill(before, syscall.SIGKILL))
		eventually(t, "the server to be started again", func() bool {
			got, err := query(t, a, "SELECT v FROM kept")
			return err == nil && got == "kept" && again.Cluster().PID() != before
		})
		closed(t, again)
	})
	t.Run("Hangs", func(t *testing.T) { hangs(t, o) })
	t.Run("Recovers", func(t *testing.T) { recovers(t, o, s.Cluster()) })
}

// hides makes sure that a password stands in no log and in no command line, and that who may read it is its owner alone.
func hides(t *testing.T, dir, password string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was the server's, for a moment
		}
		if err != nil || !bytes.Contains(raw, []byte(password)) {
			return err
		}
		info, err := d.Info()
		if seen++; err == nil && (d.Name() != "server.json" || info.Mode().Perm() != 0o600) {
			t.Errorf("%s has the password, %v", path, info.Mode())
		}
		return err
	})
	if err != nil || seen != 1 {
		t.Errorf("%d files have the password: %v", seen, err)
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if raw, _ := os.ReadFile(path); bytes.Contains(raw, []byte(password)) {
			t.Errorf("%s has the password", path)
		}
	}
}

// attributes run a process under an account.
func attributes(a pgserver.Account) *syscall.SysProcAttr {
	if !a.IsOther() {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a.UID, Gid: a.GID}}
}

// stale has the server's own note name a process that has nothing to do with it, as after the machine went down.
func stale(t *testing.T, c pgserver.Cluster) {
	t.Helper()
	other := exec.CommandContext(t.Context(), "sleep", "60")
	other.SysProcAttr = attributes(c.Account)
	expect.OK(t, other.Start())
	t.Cleanup(func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	})
	path := filepath.Join(c.Data, "postmaster.pid")
	note := fmt.Sprintf("%d\n%s\n1700000000\n%d\n%s\n127.0.0.1\n  1 1\nready   \n", other.Process.Pid, c.Data, c.Port, c.Sockets)
	expect.OK(t, errors.Join(os.WriteFile(path, []byte(note), 0o600), c.Account.Give(path)))
}

// The test starts itself again, as a broker that only has a server.
const (
	holderVariable = "PGSERVER_TEST_DIR"
	binVariable    = "PGSERVER_TEST_BIN"
)

func TestHolder(t *testing.T) {
	dir := os.Getenv(holderVariable)
	if dir == "" {
		return // it plays its role only for another test
	}
	o := pgserver.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}
	s, err := pgserver.Open(t.Context(), with(o, pgserver.EnvBin, os.Getenv(binVariable)))
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	fmt.Println("server is", s.Cluster().PID())
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or told to end
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A holder is another process that runs a server.
type holder struct {
	cmd *exec.Cmd
	in  io.Closer
	pid int // the server's
}

// hold starts one under an account.
func hold(t *testing.T, dir string, account pgserver.Account) holder {
	t.Helper()
	program := expect.Get(os.Executable())(t)
	if account.IsOther() {
		program = copyOf(t, program)
	}
	h := holder{cmd: exec.CommandContext(t.Context(), program, "-test.run=^TestHolder$", "-test.v", "-test.timeout=2m")}
	h.cmd.Dir, h.cmd.SysProcAttr = "/", attributes(account)
	h.cmd.Env = []string{holderVariable + "=" + dir, binVariable + "=" + pgtest.Programs(t, "17"), "PATH=" + os.Getenv("PATH")}
	out := expect.Get(h.cmd.StdoutPipe())(t)
	h.in = expect.Get(h.cmd.StdinPipe())(t)
	expect.OK(t, h.cmd.Start())
	t.Cleanup(h.kill)
	for lines := bufio.NewScanner(out); h.pid == 0 && lines.Scan(); {
		if pid, ok := strings.CutPrefix(lines.Text(), "server is "); ok {
			h.pid = expect.Get(strconv.Atoi(pid))(t)
		} else if strings.HasPrefix(lines.Text(), "failed:") {
			t.Fatal(lines.Text())
		}
	}
	if h.pid == 0 {
		t.Fatal("the other process has no server")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return h
}

func (h holder) kill() {
	_ = h.cmd.Process.Kill() // it may have ended
	_ = h.cmd.Wait()
}

// copyOf is a copy of a program that every user can run.
func copyOf(t *testing.T, program string) string {
	t.Helper()
	raw := expect.Get(os.ReadFile(program))(t)
	syscall.ForkLock.RLock() // a process that another test starts would hold the file open, and nobody could run it
	defer syscall.ForkLock.RUnlock()
	f := expect.Get(os.CreateTemp("", "longshore-program-"))(t)
	t.Cleanup(func() { _ = os.Remove(f.Name()) })
	expect.Get(f.Write(raw))(t)
	expect.OK(t, errors.Join(f.Chmod(0o755), f.Close()))
	return f.Name()
}

// After kill -9 of the broker, its server lives on, and the next start takes it over, sessions and all.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	h := hold(t, dir, pgserver.Account{})
	var kept struct {
		Port    int
		Sockets string
	}
	expect.OK(t, json.Unmarshal(expect.Get(os.ReadFile(filepath.Join(dir, "server.json")))(t), &kept))
	c := pgserver.Cluster{Sockets: cmp.Or(kept.Sockets, filepath.Join(dir, "socket")), Port: kept.Port}
	session := expect.Get(c.Connect(t.Context(), ""))(t)
	defer func() { _ = session.Close(context.Background()) }()
	h.kill()
	s := open(t, options(t, dir))
	expect.Same(t, fmt.Sprintf("process %d was not taken over: there is", h.pid), h.pid, s.Cluster().PID())
	if err := session.Ping(t.Context()); err != nil {
		t.Errorf("a session has ended: %v", err)
	}
	want(t, s.Access(), "SELECT 'in'", "in")
	closed(t, s)
	if syscall.Kill(h.pid, 0) == nil {
		eventually(t, "the server's end", func() bool { return s.Cluster().PID() == 0 })
	}
}

// hangs meets a server that runs on and does not answer: it is started again.
func hangs(t *testing.T, o pgserver.Options) {
	h := hold(t, o.Dir, pgserver.Account{})
	h.kill()
	expect.OK(t, syscall.Kill(h.pid, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(h.pid, syscall.SIGKILL) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := pgserver.Open(ctx, o); err == nil {
		t.Error("a server that does not answer was taken over")
	}
	closed(t, open(t, o))
}

// recovers has a server recover for as long as there is a file. It is not ended because that takes longer than a start may,
// whoever has started it. One that ends meanwhile is started again at once.
func recovers(t *testing.T, o pgserver.Options, c pgserver.Cluster) {
	for name, text := range map[string]string{
		"recovering": "", "recovery.signal": "",
		"postgresql.auto.conf": "hot_standby = off\nrestore_command = 'while [ -e recovering ]; do sleep 0.05; done; false'\n",
	} {
		path := filepath.Join(c.Data, name)
		expect.OK(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), c.Account.Give(path)))
	}
	starts := func(s pgserver.Cluster) bool {
		conn, err := s.Connect(t.Context(), "")
		if err == nil {
			_ = conn.Close(t.Context())
		}
		refused, _ := errors.AsType[*pgconn.PgError](err)
		return refused != nil && refused.Code == "57P03"
	}
	within := func(wait time.Duration, pid int) *pgserver.Server {
		s := expect.Get(pgserver.OpenWithin(t.Context(), o, wait))(t)
		t.Cleanup(func() { _ = s.Close() })
		if now := s.Cluster().PID(); !starts(s.Cluster()) || pid != 0 && pid != now {
			t.Errorf("process %d does not recover, of %d", now, pid)
		}
		return s
	}
	s := within(15*time.Second, 0)
	ends := func(pid int) { expect.OK(t, syscall.Kill(pid, syscall.SIGQUIT)) }
	first := s.Cluster().PID()
	ends(first)
	eventually(t, "the server to be started again", func() bool { return c.PID() != first && starts(c) })
	closed(t, s)

	other := c.Serve()
	expect.OK(t, other.Start())
	go func() { _ = other.Wait() }()
	eventually(t, "the other one's start", func() bool { return starts(c) })
	closed(t, within(5*time.Second, other.Process.Pid))
	again := c.Serve()
	expect.OK(t, again.Start())
	go func() { _ = again.Wait() }()
	eventually(t, "the other one's start", func() bool { return starts(c) })
	time.AfterFunc(time.Second, func() {
		ends(again.Process.Pid)
		_ = os.Remove(filepath.Join(c.Data, "recovering"))
	})
	s = open(t, o)
	want(t, s.Access(), "SELECT v FROM kept", "kept")
	closed(t, s)
}

// refused opens a server, and wants what is said of why it cannot be.
func refused(t *testing.T, o pgserver.Options, parts ...string) {
	t.Helper()
	s, err := pgserver.Open(t.Context(), o)
	if err == nil {
		closed(t, s)
		t.Fatalf("it was started; want %q", parts)
	}
	expect.Says(t, "the error", err.Error(), parts...)
}

// The data choose the version of the programs, and nothing is touched without them.
func TestPrograms(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	by := func(bin string) pgserver.Options { return with(options(t, dir), pgserver.EnvBin, bin) }
	refused(t, by(t.TempDir()), pgserver.EnvBin, "make postgres")
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made for nothing: %v", err)
	}
	refused(t, by(fake(t, "15.4")), "15", "16 is the oldest")
	refused(t, by(fake(t, "broken")), "does not run", "libxml2")
	closed(t, open(t, by(pgtest.Programs(t, "16"))))
	refused(t, by(pgtest.Programs(t, "17")), "16, which wrote this data", "it is version 17", pgserver.EnvBin, "docs/own-postgres.md")
	closed(t, open(t, by(pgtest.Programs(t, "16"))))
}

// fake are programs that only say a version.
func fake(t *testing.T, version string) string {
	t.Helper()
	if version == "broken" {
		return scripts(t, t.TempDir(), "echo 'error while loading shared libraries: libxml2.so.2'\nexit 127", "")
	}
	return scripts(t, t.TempDir(), "echo 'postgres (PostgreSQL) "+version+"'", "")
}

// scripts are programs of shell in a folder.
func scripts(t *testing.T, dir, postgres, initdb string) string {
	t.Helper()
	for name, script := range map[string]string{"postgres": postgres, "initdb": initdb} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	return dir
}

// An error of the set-up is one line, and not the output of all tries.
func TestSetUpFails(t *testing.T) {
	t.Parallel()
	data := dataFolder(t)
	bin := filepath.Join(filepath.Dir(data), "bin") // the server's user reaches it there
	expect.OK(t, errors.Join(os.Mkdir(bin, 0o755), os.Chmod(bin, 0o755), os.Chmod(filepath.Dir(data), 0o711)))
	scripts(t, bin, "echo 'postgres (PostgreSQL) 17.11'", `case "$*" in
*locale=C\ *) echo 'creating configuration files ... ok'; echo 'FATAL:  No space left on device'; exit 1;;
*) echo 'initdb: error: invalid locale name'; exit 1;;
esac`)
	_, err := pgserver.Open(t.Context(), with(options(t, data), pgserver.EnvBin, bin))
	if err == nil || !strings.HasSuffix(err.Error(), "initdb: exit status 1: FATAL:  No space left on device") {
		t.Errorf("%v", err)
	}
}

// Programs are looked for in PATH first.
func TestFind(t *testing.T) {
	dir := fake(t, "18.1")
	t.Setenv("PATH", fake(t, "12.9")+":"+dir+":"+os.Getenv("PATH"))
	p, err := pgserver.Find(t.Context(), 0, "", pgserver.Account{})
	if err != nil || p.Major != 18 || p.Dir != dir {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = pgserver.Find(t.Context(), 99, "", pgserver.Account{})
	if !errors.Is(err, pgserver.ErrNone) || !strings.Contains(err.Error(), "it is version 12") {
		t.Errorf("%v", err)
	}
}

// A path may be too long for a socket: the superuser's lies elsewhere then, in a
// folder that only the server's user may enter, and a lost one is made anew.
func TestLongPath(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(filepath.Dir(dataFolder(t)), strings.Repeat("long", 25))
	expect.OK(t, errors.Join(os.Mkdir(parent, 0o700), os.Chmod(filepath.Dir(parent), 0o711)))
	o := options(t, filepath.Join(parent, "postgres"))
	s := open(t, o)
	sockets := s.Cluster().Sockets
	info, err := os.Stat(sockets)
	if err != nil || info.Mode().Perm() != 0o700 || strings.HasPrefix(sockets, parent) {
		t.Fatalf("the sockets are in %s: %v", sockets, err)
	}
	closed(t, s)
	expect.OK(t, errors.Join(os.RemoveAll(sockets), os.Mkdir(sockets, 0o777), os.Chmod(sockets, 0o777)))
	defer func() { _ = os.RemoveAll(sockets) }()
	again := open(t, o)
	if got := again.Cluster().Sockets; got == sockets {
		t.Error("a folder that anybody may write was taken for the socket's")
	}
	_ = os.RemoveAll(again.Cluster().Sockets)
	closed(t, again)
}

// Root starts the server as another user, which has to reach its data.
func TestRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		return // TestOtherThanRoot shows the other way
	}
	hidden := filepath.Join(t.TempDir(), "data")
	expect.OK(t, os.Mkdir(hidden, 0o700))
	refused(t, options(t, filepath.Join(hidden, "postgres")), "chmod o+x", "--data")
	o := options(t, dataFolder(t))
	refused(t, with(o, pgserver.EnvUser, "nobody-of-that-name"), pgserver.EnvUser, "nobody-of-that-name")
	refused(t, with(o, pgserver.EnvUser, "root"), pgserver.EnvUser)
}

// A server of another user reads who may connect, whatever the umask of root is. The umask is the whole process's: no other
// test may run meanwhile.
func TestAccessUnderAStrictUmask(t *testing.T) {
	dir := t.TempDir()
	c := pgserver.Cluster{Data: filepath.Join(dir, "data"), Account: expect.Get(pgserver.FindAccount(""))(t)}
	defer syscall.Umask(syscall.Umask(0o077))
	expect.OK(t, c.WriteAccess())
	for _, name := range []string{"hba.conf", "ident.conf"} {
		info := expect.Get(os.Stat(filepath.Join(dir, name)))(t)
		expect.Same(t, "the mode of "+name, fs.FileMode(0o640), info.Mode())
	}
}

// A user other than root runs the server as themselves.
func TestOtherThanRoot(t *testing.T) {
	t.Parallel()
	account := expect.Get(pgserver.FindAccount(""))(t)
	dir := dataFolder(t)
	if account.IsOther() {
		expect.OK(t, account.Give(filepath.Dir(dir)))
	}
	h := hold(t, dir, account)
	if account.IsOther() {
		refused(t, options(t, dir), "other than root", "as that user")
	}
	expect.OK(t, h.in.Close())
	if err := h.cmd.Wait(); err != nil {
		t.Errorf("the server's end: %v", err)
	}
	if syscall.Kill(h.pid, 0) == nil {
		t.Error("the server has outlived its end")
	}
}
