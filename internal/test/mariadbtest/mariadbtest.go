// Package mariadbtest gives tests a real MariaDB server, which all tests of a process
// share, and logins of a broker on it as the guide makes them. It owns finding the
// programs that `make mariadb` installs, and the server's end, however the process
// ends. What is made in the server is the tests' affair.
package mariadbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/testserver"
)

const (
	// installed is what `make mariadb` makes, from the module's root.
	installed = ".tools/mariadb-11.4.5"
	// variable names a folder with other programs, such as /usr of a package.
	variable = "LONGSHORE_MARIADB"

	startWait  = time.Minute // a busy machine needs several seconds
	startTries = 3
)

// guide are the statements by which docs/mariadb.md makes the broker's login and its
// own database.
const guide = "CREATE DATABASE `longshore`;\n" +
	"CREATE USER `longshore`@`%` IDENTIFIED BY 'PASSWORD' REQUIRE SSL;\n" +
	"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `longshore`.* TO `longshore`@`%`;\n" +
	"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES,\n" +
	"  LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER\n" +
	"  ON `lsd%`.* TO `longshore`@`%` WITH GRANT OPTION;\n" +
	"GRANT CREATE USER, PROCESS, CONNECTION ADMIN ON *.* TO `longshore`@`%`;\n" +
	"GRANT SELECT ON mysql.global_priv TO `longshore`@`%`;\n" +
	"GRANT SELECT ON mysql.db TO `longshore`@`%`;\n" +
	"GRANT SELECT ON mysql.tables_priv TO `longshore`@`%`;\n" +
	"GRANT SELECT ON mysql.columns_priv TO `longshore`@`%`;\n" +
	"GRANT SELECT ON mysql.procs_priv TO `longshore`@`%`;\n"

// Guide is those statements, to compare them with the guide's.
func Guide() string { return guide }

// A Server is a real one. It speaks TLS, by an authority of its own, and plainly.
type Server struct {
	dir, port    string
	base, server string
	settings     []string
	authority    string
	root         *sql.DB
	exited       <-chan struct{}
}

var shared = sync.OnceValues(func() (*Server, error) { return start() })

// Start gives the server of this process. Tests do not stop it, nor change its
// settings. Where there are no programs the test fails: a suite that did not run
// proves nothing. Only `go test -short` skips it.
func Start(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a MariaDB, which -short leaves out")
	}
	s, err := shared()
	if err != nil {
		t.Fatalf("no MariaDB: %v", err)
	}
	return s
}

// New gives a server of the test's own, which it may stop. Settings are arguments of
// the program, after those that all servers have.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a MariaDB, which -short leaves out")
	}
	s, err := start(settings...)
	if err != nil {
		t.Fatalf("no MariaDB: %v", err)
	}
	t.Cleanup(func() {
		s.stop(t)
		_ = os.RemoveAll(s.dir)
	})
	return s
}

func (s *Server) stop(t testing.TB) {
	t.Helper()
	s.Root(t, "SHUTDOWN")
	_ = s.root.Close()
	<-s.exited
}

// Copied copies the folder of a server, and gives what puts the copy in its place.
func (s *Server) Copied(t testing.TB) (restore func()) {
	t.Helper()
	data, kept := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "kept")
	stopped := func(statements func() error) {
		t.Helper()
		s.stop(t)
		if err := errors.Join(statements(), s.run()); err != nil {
			t.Fatal(err)
		}
	}
	stopped(func() error { return os.CopyFS(kept, os.DirFS(data)) })
	return func() {
		t.Helper()
		stopped(func() error { return errors.Join(os.RemoveAll(data), os.CopyFS(data, os.DirFS(kept))) })
	}
}

// Access is a fresh login of a broker, with a database of its own, reached plainly.
func (s *Server) Access(t testing.TB) hosted.Access {
	t.Helper()
	name := "longshore" + strings.ToLower(rand.Text()[:12])
	password := rand.Text()
	text := strings.NewReplacer("`longshore`", "`"+name+"`", "PASSWORD", password, " REQUIRE SSL", "").Replace(guide)
	for statement := range strings.SplitSeq(strings.TrimSpace(text), ";\n") {
		s.Root(t, strings.TrimSuffix(statement, ";"))
	}
	port, err := strconv.Atoi(s.port)
	if err != nil {
		t.Fatal(err)
	}
	return hosted.Access{
		Host: testserver.Loopback, Port: port, User: name, Password: password, Database: name, TLS: hosted.TLSDisable,
	}
}

// ByTLS is the same login, reached by TLS that is verified.
func (s *Server) ByTLS(a hosted.Access) hosted.Access {
	a.TLS, a.CA, a.Host = hosted.TLSVerify, s.authority, "localhost"
	return a
}

// Root runs a statement as the server's administrator.
func (s *Server) Root(t testing.TB, statement string, args ...any) {
	t.Helper()
	if _, err := s.root.ExecContext(context.WithoutCancel(t.Context()), statement, args...); err != nil {
		t.Fatalf("as the administrator: %v", err)
	}
}

// Administrator is the way in of the server's administrator.
func (s *Server) Administrator() *sql.DB { return s.root }

// Log is all that the server has said, in its log and in that of all statements.
func (s *Server) Log(t testing.TB) string {
	t.Helper()
	said, err := os.ReadFile(filepath.Join(s.dir, "log"))
	statements, err2 := os.ReadFile(filepath.Join(s.dir, "statements"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return string(said) + string(statements)
}

// programs finds the server and what makes its folder.
func programs() (base, server, install string, err error) {
	if base = os.Getenv(variable); base == "" {
		if base, err = testserver.Installed(installed); err != nil {
			return "", "", "", err
		}
	}
	find := func(paths ...string) string {
		for _, path := range paths {
			if _, err := os.Stat(filepath.Join(base, path)); err == nil {
				return filepath.Join(base, path)
			}
		}
		return ""
	}
	server, install = find("bin/mariadbd", "sbin/mariadbd"), find("scripts/mariadb-install-db", "bin/mariadb-install-db")
	if server == "" || install == "" {
		return "", "", "",
			fmt.Errorf("it is not installed in %s: run `make mariadb`, or name the folder that bin/mariadbd or sbin/mariadbd "+
				"lies in with %s", base, variable)
	}
	return base, server, install, nil
}

func start(settings ...string) (*Server, error) {
	base, server, install, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lsm") // short: the path of a socket has a limit
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, base: base, server: server, settings: settings}
	if err := s.setUp(install); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for range startTries {
		if s.port, err = testserver.FreePort(); err == nil {
			err = s.run()
		}
		if err == nil {
			return s, nil
		}
	}
	return nil, err
}

// setUp makes the server's folder: its administrator is the user of the tests, by the socket alone.
func (s *Server) setUp(install string) error {
	who, err := exec.Command("id", "-un").Output()
	if err != nil {
		return err
	}
	c := exec.Command(install, "--no-defaults", "--basedir="+s.base, "--datadir="+filepath.Join(s.dir, "data"), "--skip-test-db",
		"--skip-name-resolve", "--auth-root-authentication-method=socket",
		"--auth-root-socket-user="+strings.TrimSpace(string(who)))
	c.Env = append(os.Environ(), "TMPDIR="+s.dir)
	if said, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("making the server's folder: %w: %s", err, said)
	}
	made, err := testserver.NewCertificates()
	s.authority = string(made.Authority)
	return errors.Join(err,
		os.WriteFile(filepath.Join(s.dir, "certificate"), made.Server, 0o600),
		os.WriteFile(filepath.Join(s.dir, "key"), made.Key, 0o600))
}

// run starts the server for servers that nobody misses. All statements are logged,
// so that a test can look for passwords among them.
func (s *Server) run() (err error) {
	at := func(name string) string { return filepath.Join(s.dir, name) }
	args := []string{
		"--no-defaults", "--basedir=" + s.base, "--datadir=" + at("data"), "--socket=" + at("s"), "--pid-file=" + at("pid"),
		"--bind-address=" + testserver.Loopback, "--port=" + s.port, "--skip-name-resolve", "--event-scheduler=ON",
		"--ssl-cert=" + at("certificate"), "--ssl-key=" + at("key"), "--general-log=1", "--general-log-file=" + at("statements"),
		"--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=16M",
		"--innodb-log-file-size=8M", "--skip-log-bin", "--max-connections=200", "--tmpdir=" + s.dir,
	}
	args = append(args, s.settings...)
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // it is asked for by name, or refused
	}
	s.exited, err = testserver.Launch(s.server, s.dir, at("log"),
		[]string{"PATH=/usr/bin:/bin", "TMPDIR=" + s.dir, "HOME=" + s.dir}, args...)
	if err != nil {
		return err
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.Logger = "root", "unix", at("s"), log.New(io.Discard, "", 0)
	config.InterpolateParams = true // also when a test has used up the prepared statements
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	s.root = sql.OpenDB(connector)
	deadline := time.After(startWait)
	for {
		if err = s.root.PingContext(context.Background()); err == nil {
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended at its start: %s", testserver.Tail(at("log")))
		case <-deadline:
			return fmt.Errorf("it did not answer within %v: %w: %s", startWait, err, testserver.Tail(at("log")))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
