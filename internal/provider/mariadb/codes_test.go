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
	for name, tc := range map[string]struct {
		err  error
		want string // a part of what the operator reads
	}{
		"Exists":         {code(1007), "own words"},
		"AccountExists":  {code(1396), "own words"},
		"Locked":         {code(1205), "own words"},
		"Deadlock":       {code(1213), "own words"},
		"Slow":           {code(1969), "own words"},
		"ShutDown":       {code(1053), "nobody answers"},
		"Killed":         {code(1927), "nobody answers"},
		"Password":       {code(1045), "password of today"},
		"AccountLocked":  {code(4151), "password of today"},
		"NoDatabase":     {code(1049), "own database is missing"},
		"NoRight":        {code(1044), "lacks a right"},
		"NoGlobalRight":  {code(1227), "lacks a right"},
		"ReadOnly":       {code(1290), "takes no changes"},
		"DiskFull":       {code(1021), "no room left"},
		"TableFull":      {code(1114), "no room left"},
		"LocksFull":      {code(1206), "memory"},
		"NoFile":         {code(23), "open_files_limit"},
		"NoFolder":       {code(1018), "open_files_limit"},
		"NoTable":        {code(1146), "own tables"},
		"Transactions":   {code(1637), "XA ROLLBACK"},
		"Connections":    {code(1040), "max_connections"},
		"Threads":        {code(1135), "KILL"},
		"OwnConnections": {code(1226), "max_connections"},
		"HostBlocked":    {code(1129), "FLUSH HOSTS"},
		"BadConnection":  {driver.ErrBadConn, "nobody answers"},
		"Ended":          {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), "nobody answers"},
		"Refused":        {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, "in time"},
		"Silent":         {context.DeadlineExceeded, "in time"},
		"Other":          {code(1), "own words"},
	} {
		got := mariadb.Explain(tc.err)
		if !strings.Contains(got.Error(), tc.want) || !errors.Is(got, tc.err) {
			t.Errorf("%s: %q, want %q in it, and the cause", name, got, tc.want)
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
		"NewPassword": {func(a *hosted.Access) { a.Password = "of yesterday" }, "password of today"},
		"NoDatabase":  {func(a *hosted.Access) { a.Database = "lsdmissing" }, "own database is missing"},
		"NoRights":    {func(a *hosted.Access) { a.Database = "mysql" }, "lacks a right"},
		"Gone":        {func(a *hosted.Access) { a.Port = 1 }, "nobody answers"},
		"WrongAuthority": {func(a *hosted.Access) {
			*a = mariadbTLS(t, *a)
			a.Host = "127.0.0.1"
			a.CA = strings.Replace(a.CA, "A", "B", 1)
		}, "certificate"},
		"NoAuthority": {func(a *hosted.Access) { *a = mariadbTLS(t, *a); a.CA = "" }, "certificate"},
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
