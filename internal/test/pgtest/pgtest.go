// Package pgtest gives tests real PostgreSQL servers: one of each version for a
// test process, which its tests share, and others of a test's own that it may stop,
// freeze and break. It owns finding the programs that `make postgres-all` installs,
// another user to run them as where tests run as root, and the end of every server,
// however the process ends. What is made in a server is the tests' affair.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgserver"
	"github.com/longshore/longshore/internal/test/testserver"
)

// Versions are those that are supported, oldest first.
var Versions = []string{"16", "17", "18"}

const (
	// startWait is generous: a busy machine needs several seconds.
	startWait  = time.Minute
	startTries = 3
	stopGrace  = 20 * time.Second
)

// A Server is a real one, as a test sees it.
type Server struct {
	*server
	t testing.TB
}

// server is what the tests of a process share of it.
type server struct {
	Version string
	dir     string
	cluster pgserver.Cluster
	ca      string // PEM; empty without TLS
	mu      sync.Mutex
	exited  <-chan struct{}
}

var (
	mu     sync.Mutex
	shared = map[string]func() (*server, error){}
)

// Start gives the server of a version ("16", "17" or "18") that all tests of this
// process share; they do not stop it, nor change its settings. Where there is none
// the test fails: a suite that did not run proves nothing. Only `go test -short`
// skips it.
func Start(t testing.TB, version string) *Server {
	t.Helper()
	mu.Lock()
	one := shared[version]
	if one == nil {
		one = sync.OnceValues(func() (*server, error) { return start(version, options{}) })
		shared[version] = one
	}
	mu.Unlock()
	return of(t, one)
}

// Each runs a test on the server of each version that start gives.
func Each(t *testing.T, start func(testing.TB, string) *Server, test func(*testing.T, *Server)) {
	t.Parallel()
	for _, version := range Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, version))
		})
	}
}

// New gives a server of the test's own, which ends with the test.
func New(t testing.TB, version string, with ...Option) *Server {
	t.Helper()
	var o options
	for _, w := range with {
		w(&o)
	}
	s := of(t, func() (*server, error) { return start(version, o) })
	t.Cleanup(func() {
		s.Thaw()
		s.Stop()
		copies.Lock()
		defer copies.Unlock()
		_ = os.RemoveAll(s.dir)
	})
	return s
}

func of(t testing.TB, start func() (*server, error)) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a PostgreSQL server, which -short leaves out")
	}
	s, err := start()
	if err != nil {
		t.Fatalf("no PostgreSQL: %v", err)
	}
	return &Server{s, t}
}

// An Option changes what New starts.
type Option func(*options)

type options struct {
	tls      bool
	settings []string
}

// TLS has the server take no connection over the network without; its certificate
// is by an authority of its own.
func TLS() Option { return func(o *options) { o.tls = true } }

// Setting sets one of postgresql.conf's settings.
func Setting(name, value string) Option {
	return func(o *options) { o.settings = append(o.settings, name+"="+value) }
}

// quick are settings for servers that nobody misses. All statements are logged, so
// that a test can look for passwords among them.
var quick = []string{
	"fsync=off", "full_page_writes=off", "synchronous_commit=off", "shared_buffers=16MB", "max_connections=200",
	"max_prepared_transactions=10", "log_statement=all", "log_min_error_statement=info",
}

func start(version string, o options) (*server, error) {
	account, err := pgserver.FindAccount("")
	if err != nil {
		return nil, err
	}
	bin, err := programs(version, account)
	if err != nil {
		return nil, err
	}
	dir, err := folder(account)
	if err != nil {
		return nil, err
	}
	s := &server{Version: version, dir: dir, cluster: pgserver.Cluster{
		Bin: bin, Data: filepath.Join(dir, "data"), Sockets: dir, Account: account,
		Settings: append(quick[:len(quick):len(quick)], o.settings...),
	}}
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	if err := s.setUp(ctx, o); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	for range startTries { // a port that is free may be taken by the time
		if s.cluster.Port, err = freePort(); err != nil {
			break
		}
		if err = s.run(ctx); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// pristine has data folders as initdb makes them, by version: a copy takes a tenth of its
// time. Each lies beside the data of the server that was the first.
var pristine sync.Map

// copies is held for reading while a pristine folder is copied, and for writing while one is removed: cp would take
// a folder that is half removed for a whole one.
var copies sync.RWMutex

// makeData makes the data folder, by a copy where there is one. A copy fails once the server
// that it lies with has ended.
func (s *server) makeData(ctx context.Context) error {
	replicate := func(from, to string) error {
		copies.RLock()
		defer copies.RUnlock()
		return exec.CommandContext(ctx, "cp", "-Rp", from, to).Run()
	}
	if from, ok := pristine.Load(s.Version); ok && replicate(from.(string), s.cluster.Data) == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(s.cluster.Data), s.cluster.Init(ctx, "--no-sync", "--locale=C")); err != nil {
		return err
	}
	kept := filepath.Join(s.dir, "pristine")
	if replicate(s.cluster.Data, kept) == nil {
		pristine.Store(s.Version, kept)
	}
	return nil
}

func (s *server) setUp(ctx context.Context, o options) error {
	if err := errors.Join(s.makeData(ctx), s.cluster.WriteAccess()); err != nil {
		return err
	}
	if !o.tls {
		return nil
	}
	path := filepath.Join(s.dir, "hba.conf")
	rules, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(rules, []byte("host    all all"), []byte("hostssl all all")), 0o640)
	}
	if err != nil {
		return err
	}
	s.ca, err = s.certify()
	return err
}

// folder makes one of the account's own that nobody else may enter. Tests' own
// temporary folders lie in one of who runs them.
func folder(account pgserver.Account) (string, error) {
	for _, temp := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		dir, err := os.MkdirTemp(temp, "longshore-pg-")
		if err != nil {
			continue
		}
		if barred, err := account.Barred(temp); err == nil && barred == "" && len(dir) < longestSockets {
			return dir, account.Give(dir)
		}
		_ = os.Remove(dir)
	}
	return "", fmt.Errorf("neither %s nor /tmp can be used by the user %q: name a folder for temporary files in TMPDIR",
		os.TempDir(), account.Name)
}

// longestSockets leaves room for the socket's name in what a path of one may have.
const longestSockets = 80

func freePort() (int, error) {
	l, err := net.Listen("tcp", pgserver.Loopback+":0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// run starts the server and waits until it answers.
func (s *server) run(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, exited, err := launch(s.cluster.Serve(), s.dir, s.logPath())
	if err != nil {
		return err
	}
	s.exited = exited
	if err := s.cluster.Ready(ctx, pid); err != nil {
		return fmt.Errorf("the server does not answer: %w: %s", err, testserver.Tail(s.logPath()))
	}
	return nil
}

func (s *server) logPath() string { return filepath.Join(s.dir, "log") }

// Superuser is a connection string for the superuser, through the server's socket.
func (s *Server) Superuser(database string) string {
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable",
		s.cluster.Sockets, s.Port(), pgserver.Superuser, database)
}

// Bin is the folder of the server's programs, for pg_dump, psql and such.
func (s *Server) Bin() string { return s.cluster.Bin }

// Data is the server's data folder.
func (s *Server) Data() string { return s.cluster.Data }

// Host and Port are where it listens.
func (s *Server) Host() string { return pgserver.Loopback }

// Port is where it listens, also after a restart.
func (s *Server) Port() int { return s.cluster.Port }

// Log is all that the server has said. It logs each statement.
func (s *Server) Log() string {
	s.t.Helper()
	raw, err := os.ReadFile(s.logPath())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// Access is how a broker of the test's own reaches the server: by a fresh login
// and a database of its own, made by the statements that the guide gives.
func (s *Server) Access() hosted.Access {
	s.t.Helper()
	name := "broker" + strings.ToLower(rand.Text()[:12])
	a := hosted.Access{
		Host: pgserver.Loopback, Port: s.cluster.Port, User: name, Password: rand.Text(), Database: name,
		TLS: hosted.TLSDisable, CA: s.ca,
	}
	if s.ca != "" {
		a.TLS = hosted.TLSVerify
	}
	if err := s.cluster.Grant(s.t.Context(), a); err != nil {
		s.t.Fatalf("the broker's login: %v", err)
	}
	return a
}

// Exec runs statements as the superuser, each by itself.
func (s *Server) Exec(database string, statements ...string) {
	s.t.Helper()
	conn := s.Connect(database)
	for _, statement := range statements {
		if _, err := conn.Exec(s.t.Context(), statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
	if err := conn.Close(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// Connect connects as the superuser until the test ends.
func (s *Server) Connect(database string) *pgx.Conn {
	s.t.Helper()
	conn, err := s.cluster.Connect(s.t.Context(), database)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}
