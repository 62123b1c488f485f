//go:build unix

package pgtest_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// connect connects as the broker does.
func connect(t *testing.T, a hosted.Access, database string) (*pgx.Conn, error) {
	t.Helper()
	c := expect.Get(pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=disable",
		a.Host, a.Port, a.User, a.Password, database)))(t)
	if a.TLS == hosted.TLSVerify {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(a.CA)) {
			t.Fatal("the authority is no certificate")
		}
		c.TLSConfig = &tls.Config{RootCAs: roots, ServerName: a.Host}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, c)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// TestAccess shows what the broker's login may do, and what not, on each version.
func TestAccess(t *testing.T) {
	pgtest.Each(t, pgtest.Start, func(t *testing.T, s *pgtest.Server) {
		a := s.Access()
		conn := expect.Get(connect(t, a, a.Database))(t)
		var super bool
		var got string
		expect.OK(t, conn.QueryRow(t.Context(), `SELECT rolsuper, current_setting('server_version') FROM pg_roles
			WHERE rolname = current_user AND rolcreaterole AND rolcreatedb`).Scan(&super, &got))
		if super || !strings.HasPrefix(got, s.Version+".") {
			t.Errorf("the login is a superuser (%v), or the server another one: %s", super, got)
		}
		expect.Get(conn.Exec(t.Context(), "CREATE SCHEMA own"))(t)
		refused(t, a, "postgres", "42501")
		refused(t, a, "template1", "42501")
		refused(t, s.Access(), a.Database, "42501") // another broker's
		wrong := a
		wrong.Password = "wrong"
		refused(t, wrong, a.Database, "28P01")
		wrong.User = "postgres"
		refused(t, wrong, "postgres", "28000")
		if strings.Contains(s.Log(), a.Password) {
			t.Error("the server's log has the password")
		}
	})
}

func refused(t *testing.T, a hosted.Access, database, code string) {
	t.Helper()
	_, err := connect(t, a, database)
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != code {
		t.Errorf("user %s, database %s: %v, want %s", a.User, database, err, code)
	}
}

// TestOwnServer stops, kills, freezes and restarts one.
func TestOwnServer(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17", pgtest.TLS(), pgtest.Setting("work_mem", "1MB"))
	a := s.Access()
	up := func(want bool, when string) {
		t.Helper()
		if _, err := connect(t, a, a.Database); (err == nil) != want {
			t.Fatalf("%s: %v", when, err)
		}
	}
	up(true, "at first")
	var set string
	if err := s.Connect("").QueryRow(t.Context(), "SHOW work_mem").Scan(&set); err != nil || set != "1MB" {
		t.Errorf("the setting is %q: %v", set, err)
	}
	plain := a
	plain.TLS = hosted.TLSDisable
	refused(t, plain, a.Database, "28000")
	s.Freeze()
	up(false, "frozen")
	s.Thaw()
	up(true, "thawed")
	s.Stop()
	up(false, "stopped")
	s.Restart()
	up(true, "started again")
	s.Kill()
	up(false, "killed")
	s.Restart()
	up(true, "started again after a kill")
}

// The test starts itself again as a process that only has a server.
const holderVariable = "PGTEST_TEST_HOLDER"

func TestHolder(t *testing.T) {
	if os.Getenv(holderVariable) == "" {
		return // it plays its role only for another test
	}
	fmt.Println("server in", pgtest.Start(t, "17").Data())
	time.Sleep(time.Minute) // until it is killed
}

// However a test process ends, its servers end with it, and leave nothing.
func TestServersEndWithTheirTest(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), expect.Get(os.Executable())(t), "-test.run=^TestHolder$", "-test.v", "-test.timeout=1m")
	c.Env = append(os.Environ(), holderVariable+"=1")
	out := expect.Get(c.StdoutPipe())(t)
	expect.OK(t, c.Start())
	var data string
	lines := bufio.NewScanner(out)
	for data == "" && lines.Scan() {
		_, data, _ = strings.Cut(lines.Text(), "server in ")
	}
	if _, err := os.Stat(data + "/postmaster.pid"); err != nil {
		t.Fatalf("the other process has no server: %v", err)
	}
	expect.OK(t, c.Process.Signal(syscall.SIGKILL))
	_ = c.Wait() // it was killed
	for range 100 {
		if _, err := os.Stat(data); errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the server in %s has outlived the process that started it", data)
}
