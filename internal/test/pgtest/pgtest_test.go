//go:build unix

package pgtest_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/testserver"
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

func TestHolder(t *testing.T) {
	testserver.Hold(func() string { return pgtest.Start(t, "17").Data() })
}

// However a test process ends, its servers end with it, and leave nothing.
func TestServersEndWithTheirTest(t *testing.T) {
	t.Parallel()
	testserver.EndsWithItsTest(t, os.Environ(), func(data string) error { return expect.Err(os.Stat(data + "/postmaster.pid")) },
		func(data string) bool { return errors.Is(expect.Err(os.Stat(data)), os.ErrNotExist) })
}
