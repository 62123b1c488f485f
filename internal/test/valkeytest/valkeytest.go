// Package valkeytest gives tests real Valkey servers: some that the tests of a
// process share, others of a test's own that it may restart. It owns finding the
// program that `make valkey` installs, the broker's login as the guide makes it, and
// the end of every server, however the process ends. What is made in a server is the
// tests' affair.
package valkeytest

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/testserver"
)

// program is what `make valkey` installs, from the module's root.
const program = ".tools/valkey-9.1.2/valkey-server"

const (
	startWait  = 30 * time.Second
	startTries = 3
	answerWait = 30 * time.Second
)

// BrokerRules are what the broker's login may do, as docs/valkey.md has them.
const BrokerRules = "resetchannels ~{lsv* -@all +acl|setuser +acl|deluser +acl|getuser +acl|users +acl|save " +
	"+client|kill +client|list +config|get +info +scan +unlink +ping"

// Logins of every server.
const (
	broker = "lsadmin"
	root   = "root"
)

// A Server is a real one.
type Server struct {
	dir      string
	port     int
	password string
	mu       sync.Mutex
	exited   <-chan struct{}
	end      func()
}

var (
	mu     sync.Mutex
	shared = map[string]func() (*Server, error){}
)

// Start gives the server of a name, which all tests of this process share: they do
// not stop it, nor change its settings. Where there is no program the test fails: a
// suite that did not run proves nothing. Only `go test -short` skips it.
func Start(t testing.TB, name string) *Server {
	t.Helper()
	mu.Lock()
	one := shared[name]
	if one == nil {
		one = sync.OnceValues(func() (*Server, error) { return start(standard) })
		shared[name] = one
	}
	mu.Unlock()
	return of(t, one)
}

// New gives a server of the test's own, which ends with the test. Settings are lines
// of its configuration, after those that make it sound; Unsound leaves these out.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := of(t, func() (*Server, error) { return start(append(standard[:len(standard):len(standard)], settings...)) })
	t.Cleanup(s.remove)
	return s
}

func (s *Server) remove() {
	s.Stop()
	_ = os.RemoveAll(s.dir)
}

// Unsound is a server of the test's own that forgets its users when it restarts.
func Unsound(t testing.TB) *Server {
	t.Helper()
	s := of(t, func() (*Server, error) { return start(nil) })
	t.Cleanup(s.remove)
	return s
}

func of(t testing.TB, start func() (*Server, error)) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Valkey server, which -short leaves out")
	}
	s, err := start()
	if err != nil {
		t.Fatalf("no Valkey: %v", err)
	}
	return s
}

// standard is what a sound server has beside its address.
var standard = []string{"aclfile users.acl"}

func start(settings []string) (s *Server, err error) {
	path, err := find()
	if err != nil {
		return nil, err
	}
	for range startTries { // another process may have taken the port
		if s, err = attempt(path, settings); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// find looks for the program that make has installed.
func find() (string, error) {
	path, err := testserver.Installed(program)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not installed: run `make valkey`", program)
	}
	return path, nil
}

func attempt(path string, settings []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "longshore-valkey-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, port: port, password: rand.Text()}
	users := []string{
		"user default off", "user " + broker + " on #" + s.hash() + " " + BrokerRules,
		"user " + root + " on #" + s.hash() + " ~* &* +@all",
	}
	lines := append([]string{
		"bind 127.0.0.1", "port " + strconv.Itoa(port), "dir " + dir, "save \"\"", "appendonly no", "loglevel verbose",
	}, settings...)
	if len(settings) == 0 {
		lines = append(lines, users...)
	}
	err = errors.Join(os.WriteFile(filepath.Join(dir, "users.acl"), []byte(strings.Join(users, "\n")+"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "valkey.conf"), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	if err != nil {
		return nil, err
	}
	return s, s.run(path)
}

func (s *Server) hash() string {
	sum := sha256.Sum256([]byte(s.password))
	return hex.EncodeToString(sum[:])
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// run starts the program and waits until it answers.
func (s *Server) run(path string) error {
	var err error
	if s.exited, s.end, err = launch(path, s.dir, filepath.Join(s.dir, "log")); err != nil {
		return err
	}
	deadline := time.After(startWait)
	for {
		session, err := s.dial(root, s.password)
		if err == nil {
			_ = session.conn.Close()
			return nil
		}
		select {
		case <-s.exited:
			return fmt.Errorf("valkey-server ended at its start: %s", s.Log())
		case <-deadline:
			s.end()
			return fmt.Errorf("valkey-server did not answer within %v: %w: %s", startWait, err, s.Log())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Access is how the broker reaches it.
func (s *Server) Access() hosted.Access {
	return hosted.Access{Host: "127.0.0.1", Port: s.port, User: broker, Password: s.password, TLS: hosted.TLSDisable}
}

// TLS has the server answer behind TLS too, until the test's end: at the port, on
// 127.0.0.1, by whom the certificate in PEM names.
func (s *Server) TLS(t testing.TB) (port int, ca string) {
	t.Helper()
	front := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(front.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: front.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	plainly := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	go testserver.Relay(l, plainly, func(server io.Writer) io.Writer { return server })
	return l.Addr().(*net.TCPAddr).Port, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: front.Certificate().Raw}))
}

// Log is what the server has logged.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

// Kept is the file in which the server keeps its users.
func (s *Server) Kept(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "users.acl"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// PutBack starts the server again on a file of users that was Kept.
func (s *Server) PutBack(t testing.TB, kept string) {
	t.Helper()
	s.Stop()
	if err := os.WriteFile(filepath.Join(s.dir, "users.acl"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Restart(t)
}

// Stop ends the server. Stopping it again does nothing.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
	<-s.exited
}

// Restart kills the server and starts it again.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	path, err := find()
	if err == nil {
		err = s.run(path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Root opens a session that may do everything.
func (s *Server) Root(t testing.TB) *Session {
	t.Helper()
	session, err := s.Login(t, root, s.password)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// Login opens a session as an app does, which ends with the test.
func (s *Server) Login(t testing.TB, user, password string) (*Session, error) {
	t.Helper()
	session, err := s.dial(user, password)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = session.conn.Close() })
	return session, nil
}

// A Session is one connection, in which each answer is read as it was sent: a test
// sees when the server ends it.
type Session struct {
	conn net.Conn
	in   *bufio.Reader
}

func (s *Server) dial(user, password string) (*Session, error) {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), answerWait)
	if err != nil {
		return nil, err
	}
	session := &Session{conn, bufio.NewReader(conn)}
	if _, err := session.Do("AUTH", user, password); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return session, nil
}

// An Answer is an error that the server answered with.
type Answer string

func (a Answer) Error() string { return string(a) }

// Do sends a command and reads its answer: nil, a text, an int64 or a slice of such.
func (s *Session) Do(command ...string) (any, error) {
	if err := s.Send(command...); err != nil {
		return nil, err
	}
	return s.Read()
}

// Send sends a command.
func (s *Session) Send(command ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(s.conn, b.String())
	return err
}

// Read reads an answer. The end of the session is io.EOF, or an error of the network.
func (s *Session) Read() (any, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(answerWait)); err != nil {
		return nil, err
	}
	line, err := s.in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSuffix(line[1:], "\r\n")
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, Answer(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil || kind == ':' || n < 0 {
		if kind == ':' {
			return n, err
		}
		return nil, err
	}
	if kind == '$' {
		raw := make([]byte, n+2)
		_, err := io.ReadFull(s.in, raw)
		return string(raw[:n]), err
	}
	all := make([]any, n)
	for i := range all {
		var refused Answer
		all[i], err = s.Read()
		if errors.As(err, &refused) { // within a transaction's answers
			all[i] = refused
		} else if err != nil {
			return nil, err
		}
	}
	return all, nil
}
