package mariadb_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// newKeepingBench is a bench on a server of its own, with these settings, whose plan
// retains what is deleted and limits nothing.
func newKeepingBench(t testing.TB, settings ...string) *bench {
	t.Helper()
	b := newOwnBench(t, mariadbtest.New(t, settings...))
	b.Plan = `{"retain_days":7}`
	return b
}

// live takes an instance and a binding through all that can happen to them, beside an
// attacker whose binding ends last but one.
func (b *bench) live(attacker provider.Binding) {
	b.t.Helper()
	in := b.Instance("a neighbour's é中'\\\"?")
	b.Provision(in)
	binding := b.Binding(in, "b ?\\'", "")
	if !opens(b.t, b.Bind(binding)) {
		b.t.Error("a neighbour's binding does not open")
	}
	in.Operation, in.Former = b.Operation(operation.Update), in.Snapshot
	in.Snapshot = json.RawMessage(`{"connection_limit":7,"retain_days":7}`)
	b.Update(in)
	holding := provider.Holding{Tags: provider.BindingTagsOf(binding), Target: b.Target}
	expect.OK(b.t, errors.Join(b.P.Quarantine(b.t.Context(), holding), b.P.Release(b.t.Context(), holding)))
	b.Unbind(binding)
	again := b.Undeleted(in, b.Retained(in), "again")
	b.Unbind(attacker)
	b.Deprovision(again)
}

// Prepared statements are counted for the whole server. One tenant prepares as many as there may be, and everybody's
// operations go on, the end of its own binding too. The broker's values reach the server as they are, whatever letters it
// takes its clients to write in.
func TestPreparedStatements(t *testing.T) {
	t.Parallel()
	b := newKeepingBench(t, "--max-prepared-stmt-count=100", "--skip-character-set-client-handshake", "--character-set-server=gbk")
	in := b.Provisioned("attacker")
	binding, _, db := b.bound(in, "b", "")
	c := conn(t, db)
	got := uint16(0)
	for n := 0; got == 0 && n < 200; n++ {
		got = number(t, expect.Err(c.ExecContext(t.Context(), fmt.Sprintf("PREPARE s%d FROM 'SELECT 1'", n))))
	}
	if got != 1461 {
		t.Fatalf("the statements are not used up: %d", got)
	}
	b.live(binding)
	b.Deprovision(in)
}

// One tenant holds all connections that the server has. The broker has one that it kept, and the one that the server
// reserves; where it has neither, the operator is told what to do.
func TestConnections(t *testing.T) {
	t.Parallel()
	b := newKeepingBench(t, "--max-connections=10", "--wait-timeout=1")
	binding, credentials, _ := b.bound(b.Provisioned("attacker"), "b", "")
	db := dial(t, credentials, func(c *mysql.Config) { c.Params = map[string]string{"wait_timeout": "1000"} })
	lambda := b.frozen(nil)
	getsIn := func() bool {
		_, _, err := lambda.Survey(t.Context(), b.Target.Name)
		return err == nil
	}
	var watch *sql.Conn
	until(t, "the administrator stays in", func() bool { // on a busy machine the server may end the session first
		watch = conn(t, b.server.Administrator())
		return expect.Err(watch.ExecContext(t.Context(), "SET wait_timeout = 1000")) == nil
	})
	var err error
	for err == nil {
		_, err = db.Conn(t.Context()) // all are open until the test ends
	}
	if n := number(t, err); n != 1040 {
		t.Fatalf("the connections are not used up: %v", err)
	}
	until(t, "the broker gets in by the connection that is reserved", getsIn)
	until(t, "that one is free again, and the one that is kept outlives what the server lets others be idle", func() bool {
		var n, idle int
		err := watch.QueryRowContext(t.Context(), "SELECT COUNT(*), FLOOR(IFNULL(MIN(time_ms), 0)) "+
			"FROM information_schema.processlist WHERE user = ?", b.access.User).Scan(&n, &idle)
		return err == nil && n == 1 && idle > 1500
	})
	until(t, "the administrator holds the one that is reserved", func() bool {
		reserved, err := b.server.Administrator().Conn(t.Context())
		if err == nil {
			t.Cleanup(func() { _ = reserved.Close() })
			_, err = reserved.ExecContext(t.Context(), "SET wait_timeout = 1000")
		}
		return err == nil
	})
	_, err = lambda.Unbind(t.Context(), binding)
	providertest.Troubled(t, "without a connection", target.Connections, err)
	b.Unbind(binding)
	until(t, "the broker gets in", getsIn)
}

// A mute way to a server carries messages, until a lock is given back.
type mute struct {
	io.Writer
	expire func()
}

func (m mute) Write(message []byte) (int, error) {
	if bytes.Contains(message, []byte("RELEASE_LOCK")) {
		m.expire() // the time of the step is over, and nobody answers
		return len(message), nil
	}
	return m.Writer.Write(message)
}

// A server that falls silent when a step gives its lock back does not hold the step: it ends with its time.
func TestASilentServerHoldsNoStep(t *testing.T) {
	b := newBench(t)
	l := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	ctx, expire := context.WithCancel(t.Context())
	go testserver.Relay(l, net.JoinHostPort(b.access.Host, fmt.Sprint(b.access.Port)), func(server io.Writer) io.Writer {
		return mute{server, expire}
	})
	access := b.access
	access.Port = l.Addr().(*net.TCPAddr).Port
	in := b.Instance("silent")
	t.Cleanup(func() { _, _ = b.P.Deprovision(context.Background(), in) })
	expect.Fails(t, "the step", context.Canceled, expect.Err(b.open(b.broker, access).Provision(ctx, in)))
	b.Provision(in) // the lock is free
}

// A drop that waits longer than other statements may take goes on: one that is cut off has dropped nothing.
func TestDropsTakeTheirTime(t *testing.T) {
	mariadb.StatementTime(t, "1")
	b, in := newReady(t)
	_, credentials, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT)")
	holder := conn(t, b.server.Administrator())
	waits := "SELECT COUNT(*) FROM information_schema.processlist WHERE user = ? AND info LIKE '%DROP DATABASE%' AND time_ms > 1200"
	for try := 0; ; try++ {
		exec(t, holder, "LOCK TABLES "+fmt.Sprint(credentials["name"])+".t READ")
		var st provider.Status
		var err error
		ended := make(chan struct{})
		go func() { defer close(ended); st, err = b.P.Deprovision(t.Context(), in) }()
		until(t, "the drop waits, or was cut off", func() bool {
			select {
			case <-ended:
				return true
			default:
				return b.text(waits, b.access.User) != "0"
			}
		})
		exec(t, holder, "UNLOCK TABLES")
		<-ended
		if err == nil && st.Done {
			return
		}
		if try == 5 {
			t.Fatalf("the drop is cut off each time: %+v %v", st, err)
		}
	}
}

// answers are a querier's, which counts what it is asked.
type answers struct {
	mariadb.Querier
	err   error
	asked int
}

func (a *answers) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	a.asked++
	return nil, a.err
}

// The broker looks for what runs as an account when the account is locked. Where a
// database has so many tables that the look takes too long, the account stays, locked.
func TestLookingForDefiners(t *testing.T) {
	slow, other := &mysql.MySQLError{Number: 1969}, errors.New("other")
	for name, tc := range map[string]struct {
		reason  string
		locked  bool
		err     error
		defines bool
		fails   bool
	}{
		"Open":  {reason: "an account that is open is locked first", err: slow},
		"Slow":  {reason: "what is not known stays", locked: true, err: slow, defines: true},
		"Other": {reason: "another error says nothing", locked: true, err: other, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := &answers{err: tc.err}
			got, err := mariadb.Defines(t.Context(), q, tc.locked)
			if got != tc.defines || (err != nil) != tc.fails || q.asked > 0 != tc.locked {
				t.Errorf("%s: defines %v, error %v, asked %d times", tc.reason, got, err, q.asked)
			}
		})
	}
}

// Where the server follows symbolic links, a tenant has it write into any folder that
// it may write to itself. The start says so.
func TestFoldersOfOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		server *mariadbtest.Server
		writes bool
	}{
		"Usual": {mariadbtest.Start(t), true}, "SkipSymbolicLinks": {mariadbtest.New(t, "--skip-symbolic-links"), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newOwnBench(t, tc.server)
			in := b.Provisioned("i")
			_, _, db := b.bound(in, "b", "")
			folder := expect.Get(os.MkdirTemp("", "lso"))(t)
			defer func() { _ = os.RemoveAll(folder) }()
			for i, engine := range []string{"MyISAM", "Aria", "InnoDB"} {
				exec(t, db, fmt.Sprintf("CREATE TABLE t%d (a INT) ENGINE=%s DATA DIRECTORY='%s'", i, engine, folder))
			}
			if found, err := filepath.Glob(folder + "/*"); (len(found) > 0) != tc.writes || err != nil {
				t.Errorf("in another's folder there are %v: %v", found, err)
			}
			var said bytes.Buffer
			_, _, err := b.frozen(slog.New(slog.NewTextHandler(&said, nil))).Survey(t.Context(), hosted.DefaultTarget)
			if got := strings.Contains(said.String(), "skip-symbolic-links"); got != tc.writes || err != nil {
				t.Errorf("at the start the log says %q: %v", said.String(), err)
			}
		})
	}
}

// Facts tell what is in use of a tenant's own database; each binding adds its limit of connections.
func TestFactsAreOfOneInstance(t *testing.T) {
	b := newBench(t)
	mine, theirs := b.Provisioned("mine"), b.Provisioned("theirs")
	facts := func(in provider.Instance) provider.Facts {
		t.Helper()
		f, err := b.P.Describe(t.Context(), in)
		if err != nil || f.Size == nil || f.Connections == nil || !strings.HasPrefix(f.Engine, "MariaDB 1") ||
			strings.Contains(f.Engine, "-") || f.Address == "" {
			t.Fatalf("facts %+v, error %v", f, err)
		}
		return f
	}
	_, _, one := b.bound(mine, "one", "")
	_, _, two := b.bound(mine, "two", "")
	exec(t, one, "CREATE TABLE big (t LONGTEXT) ENGINE=MyISAM", "INSERT INTO big VALUES (REPEAT('x', 2000000))",
		"CREATE TABLE processlist (user TEXT)", "CREATE TABLE tables (table_schema TEXT)")
	exec(t, two, "SELECT 1")
	if f := facts(mine); *f.Size < 2_000_000 || *f.Connections != 2 || f.ConnectionLimit != 10 {
		t.Errorf("it holds 2 MB, and two bindings have a session: size %d, connections %d of %d", *f.Size, *f.Connections,
			f.ConnectionLimit)
	}
	if f := facts(theirs); *f.Size != 0 || *f.Connections != 0 || f.ConnectionLimit != 0 {
		t.Errorf("an empty database without bindings: size %d, connections %d of %d", *f.Size, *f.Connections, f.ConnectionLimit)
	}
}
