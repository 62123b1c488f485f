package mariadb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/test/expect"
)

// Each answer of the server becomes advice for the operator.
func TestErrorsSayWhatToDo(t *testing.T) {
	code := func(n uint16) error {
		return fmt.Errorf("doing it: %w", &mysql.MySQLError{Number: n, Message: "the server's own words"})
	}
	for _, tc := range []struct {
		want string // a part of what the operator reads
		of   []error
	}{
		{"own words", []error{code(1007), code(1396), code(1205), code(1213), code(1969), code(1)}}, // there, locked, or slow
		{"nobody answers", []error{code(1053), code(1927), driver.ErrBadConn, fmt.Errorf("reading: %w", io.ErrUnexpectedEOF)}},
		{"in time", []error{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, context.DeadlineExceeded}},
		{"current name and password", []error{code(1045), code(4151)}},
		{"own database is missing", []error{code(1049)}},
		{"lacks a right", []error{code(1044), code(1227)}},
		{"takes no changes", []error{code(1290)}},
		{"no room left", []error{code(1021), code(1114)}}, // on disk, in a table
		{"memory", []error{code(1206)}},
		{"open_files_limit", []error{code(23), code(1018)}},
		{"own tables", []error{code(1146)}},
		{"XA ROLLBACK", []error{code(1637)}},
		{"max_connections", []error{code(1040), code(1226)}},
		{"KILL", []error{code(1135)}},
		{"FLUSH HOSTS", []error{code(1129)}},
	} {
		for _, err := range tc.of {
			if got := mariadb.Explain(err); !strings.Contains(got.Error(), tc.want) || !errors.Is(got, err) {
				t.Errorf("%v: %q, want %q in it, and the cause", err, got, tc.want)
			}
		}
	}
	secret := mariadb.Explain(&mysql.MySQLError{Number: mariadb.Syntax, Message: "near '*HASH'"}).Error()
	expect.Says(t, "of a statement that is not understood", secret, "version")
	expect.Never(t, "of a statement that is not understood", secret, "HASH")
}

// The same of a server that is reached wrongly, or that refuses changes.
func TestAServerThatRefuses(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		change func(*hosted.Access)
		want   string
	}{
		"NewPassword": {func(a *hosted.Access) { a.Password = "of yesterday" }, "current name and password"},
		"NoDatabase":  {func(a *hosted.Access) { a.Database = "lsdmissing" }, "own database is missing"},
		"NoRights":    {func(a *hosted.Access) { a.Database = "mysql" }, "lacks a right"},
		"Gone":        {func(a *hosted.Access) { a.Port = 1 }, "nobody answers"},
		"WrongAuthority": {func(a *hosted.Access) {
			*a = w.server.ByTLS(*a)
			a.Host = "127.0.0.1"
			a.CA = strings.Replace(a.CA, "A", "B", 1)
		}, "certificate"},
		"NoAuthority": {func(a *hosted.Access) { *a = w.server.ByTLS(*a); a.CA = "" }, "certificate"},
	} {
		access := w.access
		tc.change(&access)
		_, err := w.open(w.broker, access).Provision(t.Context(), provider.Instance{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), w.access.Password) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// A server that takes no changes has operations wait, and go on once it does.
func TestReadOnlyServer(t *testing.T) {
	b := newBench(t)
	in := b.Instance("i")
	b.server.Root(t, "SET GLOBAL read_only = ON")
	writable := func() { b.server.Root(t, "SET GLOBAL read_only = OFF") }
	t.Cleanup(writable)
	_, err := b.P.Provision(t.Context(), in)
	expect.Says(t, "on a server that only reads", fmt.Sprint(err), "takes no changes")
	writable()
	b.Provision(in)
	b.Deprovision(in)
}

// The server keeps of a password what MariaDB's own function gives.
func TestVerifiers(t *testing.T) {
	w := newWorld(t)
	for _, password := range []string{"x", "a longer one, with ü"} {
		expect.Same(t, password, w.text("SELECT PASSWORD(?)", password), mariadb.VerifierOf(password))
	}
}
