package mariadb_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/mariadbtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// A bench is a provider at work, with no suite around it.
type bench struct {
	*world
	*providertest.Bench[*mariadb.Provider]
}

func newBench(t testing.TB) *bench {
	t.Helper()
	return benchOf(newWorld(t))
}

// newReady is a bench with an instance.
func newReady(t testing.TB) (*bench, provider.Instance) {
	t.Helper()
	b := newBench(t)
	return b, b.Provisioned("i")
}

// newOwnBench is a bench whose broker has a login and a database of its own on a server.
func newOwnBench(t testing.TB, s *mariadbtest.Server) *bench {
	t.Helper()
	return benchOf(&world{t: t, server: s, access: s.Access(t), clock: providertest.NewClock(start), calls: &providertest.Calls{}, broker: "broker"})
}

func benchOf(w *world) *bench {
	w.t.Helper()
	const plan = `{"connection_limit":5,"statement_timeout":1}`
	return &bench{w, providertest.NewBench(w.t, w.open(w.broker, w.access), w.clock, w.broker, plan)}
}

// bound makes a binding, and opens its database as an application does.
func (b *bench) bound(in provider.Instance, id, parameters string) (provider.Binding, map[string]any, *sql.DB) {
	b.t.Helper()
	made := b.Binding(in, id, parameters)
	credentials := b.Bind(made).Credentials
	return made, credentials, dial(b.t, credentials, nil)
}

// number is the server's number of an error; 0 for none.
func number(t testing.TB, err error) uint16 {
	t.Helper()
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if err == nil {
		return 0
	}
	if !ok {
		t.Fatalf("not the server's error: %v", err)
	}
	return e.Number
}

// refused requires that a server let nobody in. It says so by three numbers, for a
// wrong password, a locked account and one that is not there, and not always alike.
func refused(t testing.TB, what string, err error) {
	t.Helper()
	if !slices.Contains([]uint16{1045, 1698, 4151}, number(t, err)) {
		t.Errorf("%s: %v, want refused", what, err)
	}
}

// A session runs statements.
type session interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

func exec(t testing.TB, db session, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		expect.Get(db.ExecContext(t.Context(), statement))(t, statement)
	}
}

// fails requires that the server answers each statement with an error of this number.
func fails(t testing.TB, who string, db session, statements map[string]uint16) {
	t.Helper()
	for statement, want := range statements {
		if _, err := db.ExecContext(t.Context(), statement); number(t, err) != want {
			t.Errorf("%s: %s: %v, want error %d", who, statement, err, want)
		}
	}
}

func count(t testing.TB, db *sql.DB, query string) (n int) {
	t.Helper()
	expect.OK(t, db.QueryRowContext(t.Context(), query).Scan(&n), query)
	return n
}

// conn is one connection, which ends with the test.
func conn(t testing.TB, db *sql.DB) *sql.Conn {
	t.Helper()
	c := expect.Get(db.Conn(t.Context()))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The server refuses all that a binding must not do.
func TestABindingMayNot(t *testing.T) {
	b := newBench(t)
	mine, theirs := b.Provisioned("mine"), b.Provisioned("theirs")
	_, own, db := b.bound(mine, "b", "")
	_, other, victim := b.bound(theirs, "b", "")
	exec(t, victim, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	exec(t, db, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	c := conn(t, victim)
	var session int
	expect.OK(t, c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&session))
	name, login := fmt.Sprint(other["name"]), fmt.Sprint(other["username"])
	self := fmt.Sprint(own["username"]) + "@'%'"
	_, err := db.ExecContext(t.Context(), "SELECT 1 INTO OUTFILE '/tmp/longshore-attack'")
	if n := number(t, err); n != 1045 && n != 1227 { // versions differ
		t.Errorf("writing a file: %v", err)
	}
	for what, tc := range map[string]struct {
		statement string
		want      uint16
	}{
		"UseAnother":        {"USE " + name, 1044},
		"ReadAnother":       {"SELECT * FROM " + name + ".t", 1142},
		"WriteAnother":      {"INSERT INTO " + name + ".t VALUES (2)", 1142},
		"CreateInAnother":   {"CREATE TABLE " + name + ".u (a INT)", 1142},
		"DropAnother":       {"DROP DATABASE " + name, 1044},
		"LockAnother":       {"LOCK TABLES " + name + ".t WRITE", 1044},
		"BackupLockAnother": {"BACKUP LOCK " + name + ".t", 1227},
		"LikeNamedDatabase": {"CREATE DATABASE " + fmt.Sprint(own["name"]) + "x", 1044},
		"BrokersRecords":    {"SELECT * FROM " + b.access.Database + ".things", 1142},
		"Hashes":            {"SELECT * FROM mysql.global_priv", 1142},
		"OthersRights":      {"SHOW GRANTS FOR " + login + "@'%'", 1044},
		"KillAnother":       {fmt.Sprintf("KILL %d", session), 1095},
		"CreateUser":        {"CREATE USER x@'%'", 1227},
		"CreateRole":        {"CREATE ROLE x", 1227},
		"Grant":             {"GRANT SELECT ON " + fmt.Sprint(own["name"]) + ".* TO " + login + "@'%'", 1044},
		"RaiseLimits":       {"ALTER USER " + self + " WITH MAX_USER_CONNECTIONS 0", 1227},
		"Unlock":            {"ALTER USER " + self + " ACCOUNT UNLOCK", 1227},
		"PasswordOfAnother": {"SET PASSWORD FOR " + login + "@'%' = PASSWORD('x')", 1044},
		"ViewAsAnother":     {"CREATE DEFINER=" + login + "@'%' VIEW v AS SELECT 1", 1227},
		"RoutineAsBroker":   {"CREATE DEFINER=" + b.access.User + "@'%' PROCEDURE p() SELECT 1", 1227},
		"EventAsRoot":       {"CREATE DEFINER=root@localhost EVENT e ON SCHEDULE EVERY 1 SECOND DO SELECT 1", 1227},
		"ReadFile":          {"LOAD DATA INFILE '/etc/passwd' INTO TABLE t", 1045},
		"GlobalSetting":     {"SET GLOBAL general_log = OFF", 1227},
		"Plugin":            {"INSTALL SONAME 'auth_ed25519'", 1142},
		"FlushTables":       {"FLUSH TABLES WITH READ LOCK", 1227},
		"Shutdown":          {"SHUTDOWN", 1227},
		"OthersServer":      {"CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1')", 1227},
	} {
		if _, err := db.ExecContext(t.Context(), tc.statement); number(t, err) != tc.want {
			t.Errorf("%s: %v, want error %d", what, err, tc.want)
		}
	}
	exec(t, db, "KILL USER "+login) // it is no error, and finds none that it may end
	exec(t, c, "DO 1")
	var file sql.NullString
	var databases, users, sessions string
	err = db.QueryRowContext(t.Context(), `SELECT LOAD_FILE('/etc/passwd'),
		(SELECT GROUP_CONCAT(schema_name ORDER BY 1) FROM information_schema.schemata),
		(SELECT GROUP_CONCAT(DISTINCT grantee) FROM information_schema.user_privileges),
		(SELECT GROUP_CONCAT(DISTINCT user) FROM information_schema.processlist)`).Scan(&file, &databases, &users, &sessions)
	if err != nil || file.Valid {
		t.Errorf("reading a file: %v %v", file, err)
	}
	want := [3]string{"information_schema," + fmt.Sprint(own["name"]), fmt.Sprintf("'%v'@'%%'", own["username"]), fmt.Sprint(own["username"])}
	expect.Same(t, "what a binding sees of databases, users and sessions", want, [3]string{databases, users, sessions})
}

// A session that is open when its binding ends, with a transaction and whatever it has prepared, ends with it; so does a
// password that the binding has changed. Bound again by the same operation, it is given the one on record.
func TestNothingOutlivesAnUnbind(t *testing.T) {
	b, in := newReady(t)
	binding, credentials, db := b.bound(in, "b", "")
	again, _, stays := b.bound(in, "stays", "")
	exec(t, db, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB", "SET PASSWORD = PASSWORD('of its own')")
	credentials["password"] = "of its own"
	changed := dial(t, credentials, nil)
	tx := expect.Get(changed.BeginTx(t.Context(), nil))(t, "with the changed password")
	exec(t, tx, "INSERT INTO t VALUES (1)", "PREPARE s FROM 'SELECT 1'", "SET @mine = 'kept'")
	exec(t, stays, "SET PASSWORD = PASSWORD('of its own')")
	if !opens(t, b.Bind(again)) {
		t.Error("the password on record is refused")
	}
	b.Unbind(binding)
	if _, err := tx.ExecContext(t.Context(), "EXECUTE s"); err == nil {
		t.Error("a session outlives its binding")
	}
	refused(t, "the changed password, after the unbind", changed.PingContext(t.Context()))
	expect.Same(t, "rows of the open transaction that the other binding sees", 0, count(t, stays, "SELECT COUNT(*) FROM t"))
	expect.Same(t, "left of the binding", "", b.look(provider.BindingTagsOf(binding)))
}

// Clients that give the name of a binding, in any case, and never log in neither stop a step nor keep an account, even
// if they come back whenever they are cut off.
func TestClientsThatDoNotLogIn(t *testing.T) {
	b, in := newReady(t)
	binding, credentials, _ := b.bound(in, "b", "")
	name := fmt.Sprint(credentials["username"])
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	t.Cleanup(func() { stop(); clients.Wait() })
	for _, name := range []string{name, name, name, strings.ToUpper(name)} {
		begun := make(chan bool, 1)
		clients.Go(func() {
			for ctx.Err() == nil {
				beginLogin(ctx, fmt.Sprintf("%v:%v", credentials["host"], credentials["port"]), name, begun)
			}
		})
		<-begun
	}
	b.Unbind(binding)
	expect.Same(t, "left of the binding", "", b.look(provider.BindingTagsOf(binding)))
}

// beginLogin gives the server a name, says so once the server has asked for the password, and gives none until it is cut off.
func beginLogin(ctx context.Context, address, name string, begun chan<- bool) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	packet := func() error {
		var head [4]byte
		_, err := io.ReadFull(c, head[:])
		if err == nil {
			_, err = io.CopyN(io.Discard, c, int64(head[0]))
		}
		return err
	}
	const capabilities = 1 | 1<<9 | 1<<15 | 1<<19 // long passwords, version 4.1, its passwords, and other kinds of them
	answer := binary.LittleEndian.AppendUint32(nil, capabilities)
	answer = binary.LittleEndian.AppendUint32(answer, 1<<24)
	answer = append(answer, 45) // utf8mb4
	answer = append(answer, make([]byte, 23)...)
	answer = append(answer, name+"\x00\x00of no kind\x00"...)
	if packet() != nil {
		return
	}
	if _, err := c.Write(append([]byte{byte(len(answer)), 0, 0, 1}, answer...)); err == nil && packet() == nil {
		select {
		case begun <- true:
		default:
		}
		_, _ = io.Copy(io.Discard, c)
	}
}

// Views and the like that run as a binding go on to work after its end, though nobody can log in as it. The
// removal of the instance removes its account.
func TestWhatABindingDefined(t *testing.T) {
	b, in := newReady(t)
	_, _, other := b.bound(in, "other", "")
	exec(t, other, "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", "INSERT INTO t VALUES (7)")
	var logins []any
	for use, define := range map[string]string{
		"SELECT a FROM v":                      "CREATE VIEW v AS SELECT a FROM t",
		"CALL p()":                             "CREATE PROCEDURE p() SELECT a FROM t",
		"SELECT f()":                           "CREATE FUNCTION f() RETURNS INT READS SQL DATA RETURN (SELECT a FROM t)",
		"INSERT INTO u VALUES (1) RETURNING a": "CREATE TRIGGER w BEFORE INSERT ON u FOR EACH ROW SET NEW.a = (SELECT a FROM t)",
	} {
		binding, credentials, db := b.bound(in, use, "")
		exec(t, db, define)
		b.Unbind(binding)
		expect.Same(t, use+", after the binding's end, gives", 7, count(t, other, use))
		refused(t, use+": the ended binding", dial(t, credentials, nil).PingContext(t.Context()))
		if held := b.Held(); len(held) != 2 { // the instance and the other binding
			t.Errorf("%s: the inventory holds %+v", use, held)
		}
		b.Unbind(binding) // once more

		anew := b.Binding(in, use, "")
		if grant := b.Bind(anew); !opens(t, grant) || len(b.Held()) != 3 {
			t.Errorf("%s: bound anew, opens %v, held %+v", use, opens(t, grant), b.Held())
		}
		b.Unbind(anew)
		login := credentials["username"]
		expect.Same(t, use+": accounts that stay", "1", b.text("SELECT COUNT(*) FROM mysql.global_priv WHERE user = ?", login))
		logins = append(logins, login)
	}
	b.Deprovision(in)
	for _, table := range []string{"global_priv", "db", "procs_priv"} {
		got := b.text("SELECT COUNT(*) FROM mysql."+table+" WHERE user IN (?, ?, ?, ?)", logins...)
		expect.Same(t, "after the deprovision, rows of the accounts in "+table, "0", got)
	}
	expect.Same(t, "after the deprovision, held", nil, b.Held())
}

// The server runs the events of an account that is locked. Ours do not run on:
// another binding may enable them, and they run as that one then.
func TestEventsStop(t *testing.T) {
	b, in := newReady(t)
	binding, credentials, db := b.bound(in, "b", "")
	_, other, successor := b.bound(in, "other", "")
	exec(t, db, "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE EVENT `e``; DROP TABLE t; --` ON SCHEDULE EVERY 1 SECOND STARTS NOW() + INTERVAL 1 HOUR DO INSERT INTO t VALUES ()",
		"CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO t VALUES ()")
	rows := func() int { return count(t, successor, "SELECT COUNT(*) FROM t") }
	until(t, "the event runs", func() bool { return rows() > 0 })
	b.Unbind(binding)
	enabled := "SELECT GROUP_CONCAT(definer) FROM information_schema.events WHERE event_schema = ? AND status = 'ENABLED'"
	expect.Same(t, "whose events may run", "", b.text(enabled, credentials["name"]))
	expect.Same(t, "an event keeps the account", "", b.look(provider.BindingTagsOf(binding)))
	before := rows()
	exec(t, successor, "ALTER EVENT e ENABLE")
	expect.Same(t, "the event runs as", fmt.Sprintf("%v@%%", other["username"]), b.text(enabled, credentials["name"]))
	until(t, "the event runs again", func() bool { return rows() > before })
}

// A binding may make any number of events: a look reads only some of them, and the unbind goes on until none may run. The
// events of another binding are not among them.
func TestManyEvents(t *testing.T) {
	b, in := newReady(t)
	binding, credentials, db := b.bound(in, "b", "")
	_, other, successor := b.bound(in, "other", "")
	const many = 600
	event := "CREATE EVENT %s%d ON SCHEDULE EVERY 1 SECOND STARTS NOW() + INTERVAL 1 HOUR DO SELECT 1"
	for n := range many {
		exec(t, successor, fmt.Sprintf(event, "a", n))
		exec(t, db, fmt.Sprintf(event, "b", n))
	}
	tags := hosted.BindingTags(binding)
	if n, err := mariadb.Events(t.Context(), b.server.Administrator(), tags); err != nil || n == 0 || n == many {
		t.Errorf("a look finds %d events, error %v", n, err)
	}
	b.Unbind(binding)
	got := b.text("SELECT CONCAT(COUNT(*), ' ', MIN(definer), ' ', MAX(definer)) FROM information_schema.events "+
		"WHERE event_schema = ? AND status = 'ENABLED'", credentials["name"])
	expect.Same(t, "the events that may run", fmt.Sprintf("%d %v@%% %[2]v@%%", many, other["username"]), got)
}

// Events stand still while their account is in quarantine, and one that runs is ended.
// The events of another binding of the instance, and of a binding that is given back, run on.
func TestEventsInQuarantine(t *testing.T) {
	b, in := newReady(t)
	binding, credentials, db := b.bound(in, "b", "")
	_, _, other := b.bound(in, "other", "")
	exec(t, db, "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO t VALUES ()",
		"CREATE EVENT sleeps ON SCHEDULE EVERY 1 SECOND DO DO SLEEP(1000)")
	exec(t, other, "CREATE TABLE u (a INT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE EVENT f ON SCHEDULE EVERY 1 SECOND DO INSERT INTO u VALUES ()")
	rows := func(table string) string {
		return b.text("SELECT COUNT(*) FROM " + fmt.Sprint(credentials["name"]) + "." + table)
	}
	fired := func() string {
		return b.text("SELECT last_executed FROM information_schema.events WHERE event_schema = ? AND event_name = 'e'",
			credentials["name"])
	}
	until(t, "the events run", func() bool { return rows("t") != "0" && rows("u") != "0" })
	for kind, tags := range map[string]provider.Tags{"Binding": provider.BindingTagsOf(binding), "Instance": provider.TagsOf(in)} {
		holding := provider.Holding{Tags: tags, Target: b.Target}
		expect.OK(t, b.P.Quarantine(t.Context(), holding), kind)
		last, before, others := fired(), rows("t"), rows("u")
		for range 2 {
			until(t, kind+": the event is due again", func() bool { return fired() != last })
			last = fired()
		}
		if kind == "Binding" {
			until(t, "the other binding's event runs", func() bool { return rows("u") != others })
		}
		expect.Same(t, kind+": in quarantine, the event's rows", before, rows("t"))
		running := "SELECT COUNT(*) FROM information_schema.processlist WHERE user = ? AND info LIKE '%SLEEP%'"
		expect.Same(t, kind+": in quarantine, events that run", "0", b.text(running, credentials["username"]))
		expect.OK(t, b.P.Release(t.Context(), holding), kind)
		until(t, kind+": the event runs again", func() bool { return rows("t") != before })
	}
}

// until waits for a condition of the server.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("it never came: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Rights outlive a database: those that somebody else has on it would open the next one of its name.
func TestRightsEndWithTheDatabase(t *testing.T) {
	b, in := newReady(t)
	_, credentials, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT, b INT)", "CREATE PROCEDURE p() SELECT 1")
	name, who := fmt.Sprint(credentials["name"]), "x"+strings.ToLower(rand.Text()[:12])
	exec(t, b.server.Administrator(), "CREATE USER "+who+"@'%' IDENTIFIED BY 'x'", "CREATE ROLE "+who+"role",
		"GRANT SELECT ON "+name+".* TO "+who+"@'%' WITH GRANT OPTION",
		"GRANT SELECT ON "+name+".* TO "+who+"role", "GRANT SELECT, INSERT (a) ON "+name+".t TO "+who+"@'%'",
		"GRANT EXECUTE ON PROCEDURE "+name+".p TO "+who+"@'%'", "GRANT DELETE HISTORY ON "+name+".* TO "+who+"@'%'")
	t.Cleanup(func() {
		b.server.Root(t, "DROP USER "+who+"@'%'")
		b.server.Root(t, "DROP ROLE "+who+"role")
	})
	until(t, "the operator learns whose rights are in the way", func() bool {
		_, err := b.P.Deprovision(t.Context(), in)
		return err != nil && strings.Contains(err.Error(), who)
	})
	b.server.Root(t, "REVOKE DELETE HISTORY ON "+name+".* FROM "+who+"@'%'")
	b.Deprovision(in)
	anew := b.Provisioned("i")
	_, _, db = b.bound(anew, "b", "")
	exec(t, db, "CREATE TABLE t (a INT, b INT)", "CREATE PROCEDURE p() SELECT 1")
	stranger := dial(t, map[string]any{
		"username": who, "password": "x", "host": credentials["host"], "port": credentials["port"], "name": "",
	}, nil)
	fails(t, "a stranger, on the next database of the name", stranger,
		map[string]uint16{"SELECT * FROM " + name + ".t": 1142, "CALL " + name + ".p()": 1370})
}

// A lock that somebody else holds delays a step, and never fails it.
func TestLocksDelay(t *testing.T) {
	t.Parallel()
	b, in := newReady(t)
	binding, _, db := b.bound(in, "b", "")
	_, _, other := b.bound(in, "other", "")
	exec(t, db, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB", "CREATE VIEW v AS SELECT * FROM t")
	c := conn(t, other)
	exec(t, c, "LOCK TABLES t WRITE, v WRITE")
	b.Unbind(binding)
	exec(t, c, "UNLOCK TABLES")

	// A prepared transaction has no session that could be ended.
	xid := rand.Text()
	exec(t, c, "XA START '"+xid+"'", "INSERT INTO t VALUES (1)", "XA END '"+xid+"'", "XA PREPARE '"+xid+"'")
	_ = c.Close()
	var st provider.Status
	for range 3 { // the first may still wait for sessions to end
		st = expect.Get(b.P.Deprovision(t.Context(), in))(t)
		expect.Same(t, "with a prepared transaction on a table of it, it is done", false, st.Done)
	}
	if st.After == 0 || !strings.Contains(st.Description, "lock") {
		t.Errorf("held up by a lock, it says %+v", st)
	}
	until(t, "the transaction is rolled back", func() bool {
		return expect.Err(b.server.Administrator().ExecContext(t.Context(), "XA ROLLBACK '"+xid+"'")) == nil
	})
	b.Deprovision(in)
}

// While the call of a caller who has died is still at work, nobody else works on the
// instance; a tenant cannot hold it up, since the lock's name is not known to it.
func TestOneWorksAtATime(t *testing.T) {
	t.Parallel()
	b, in := newReady(t)
	lock := mariadb.LockName(b.Target.Identity, in)
	c := conn(t, b.server.Administrator())
	exec(t, c, "DO GET_LOCK('"+lock+"', 0)")
	waits := func() int { return strings.Count(b.server.Log(t), "SELECT GET_LOCK('"+lock) }
	before, binding := waits(), b.Binding(in, "b", "")
	if st, err := b.P.Bind(t.Context(), binding); err != nil || st.Done || st.After == 0 {
		t.Fatalf("while another call is at work: %+v, %v; want a pause", st, err)
	}
	expect.Same(t, "waits for the lock in one step", 1, waits()-before)
	exec(t, c, "DO RELEASE_LOCK('"+lock+"')")
	b.Bind(binding)
	expect.Never(t, "the lock's name", lock, b.Target.Identity)
}

// The server's logs, processes and tables have no password.
func TestNoPasswordIsSeen(t *testing.T) {
	b, in := newReady(t)
	binding, credentials, _ := b.bound(in, "b", "")
	anew := b.Binding(in, "b", "")
	second := b.Bind(anew).Credentials
	b.Unbind(anew)
	said := b.server.Log(t) + b.text("SELECT GROUP_CONCAT(CONCAT(label, details)) FROM "+b.access.Database+".things")
	if !strings.Contains(said, "ALTER USER") {
		t.Fatal("the log of statements holds none")
	}
	expect.Never(t, "the server's logs", said, fmt.Sprint(credentials["password"]), fmt.Sprint(second["password"]),
		string(binding.Secret), string(anew.Secret))
}

// With TLS, users are told what the certificate is verified by, and get in no other way.
func TestTLS(t *testing.T) {
	w := newWorld(t)
	w.access = w.server.ByTLS(w.access)
	b := benchOf(w)
	in := b.Provisioned("i")
	_, credentials, plain := b.bound(in, "b", "")
	if err := plain.PingContext(t.Context()); number(t, err) != 1045 {
		t.Errorf("without TLS: %v, want refused", err)
	}
	expect.Same(t, "sslmode", any("verify-full"), credentials["sslmode"])
	expect.Says(t, "the URI", fmt.Sprint(credentials["uri"]), "ssl-mode=VERIFY_IDENTITY")
	expect.Says(t, "the JDBC URL", fmt.Sprint(credentials["jdbcUrl"]), "sslMode=verify-full")
	roots := x509.NewCertPool()
	expect.Same(t, "there are certificates to verify by", true, roots.AppendCertsFromPEM([]byte(fmt.Sprint(credentials["ca"]))))
	exec(t, dial(t, credentials, func(c *mysql.Config) {
		c.TLS = &tls.Config{ServerName: fmt.Sprint(credentials["host"]), RootCAs: roots}
	}), "CREATE TABLE t (a INT)")
	want := []string{"ca", "database", "host", "jdbcUrl", "name", "password", "port", "sslmode", "type", "uri", "username"}
	expect.Same(t, "the credentials have", want, slices.Sorted(maps.Keys(credentials)))
	if credentials["type"] != "mysql" || credentials["database"] != credentials["name"] {
		t.Errorf("it is of the type %v, for the database %v", credentials["type"], credentials["database"])
	}
}

// Limits are those of the plan, and change in place.
func TestLimits(t *testing.T) {
	b, in := newReady(t)
	_, _, db := b.bound(in, "b", "")
	open := func(db *sql.DB) (n int) {
		t.Helper()
		for range 8 {
			c, err := db.Conn(t.Context())
			if err != nil {
				expect.Same(t, "one connection too many is refused by error", 1226, number(t, err))
				break
			}
			defer func() { _ = c.Close() }()
			n++
		}
		return n
	}
	expect.Same(t, "connections of a binding", 5, open(db))
	if err := db.QueryRowContext(t.Context(), "SELECT SLEEP(10)").Scan(new(int)); number(t, err) != 1969 {
		t.Errorf("a long statement: %v", err)
	}
	in.Operation, in.Former, in.Snapshot = b.Operation(operation.Update), in.Snapshot, json.RawMessage(`{"connection_limit":7}`)
	b.Update(in)
	_ = db.Close()
	_, credentials, fresh := b.bound(in, "c", "")
	expect.Same(t, "after the update, connections of a binding", 7, open(fresh))
	got := b.text("SELECT GROUP_CONCAT(DISTINCT JSON_VALUE(priv, '$.max_user_connections')) FROM mysql.global_priv WHERE user IN "+
		"(SELECT user FROM mysql.db WHERE db = ?)", credentials["name"])
	expect.Same(t, "connections that accounts may have", "7", got)
	in.Operation, in.Parameters = b.Operation(operation.Update), json.RawMessage(`{"collation":"utf8mb4_bin"}`)
	expect.Same(t, "an update to another collation leaves the instance usable", new(true), b.Fails(b.P.Update, in).InstanceUsable)
}

// A binding that only reads writes nothing, also where it was another one before.
func TestReadOnly(t *testing.T) {
	b, in := newReady(t)
	first, _, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)", "CREATE VIEW v AS SELECT a FROM t",
		"CREATE PROCEDURE p() INSERT INTO t VALUES (8)")
	b.Unbind(first)
	_, _, reader := b.bound(in, "b", `{"role":"read_only"}`)
	expect.Same(t, "it reads", 7, count(t, reader, "SELECT a FROM v"))
	exec(t, reader, "SELECT a FROM t FOR UPDATE") // MariaDB asks for no right to lock what is read, as the guide says
	fails(t, "a reader", reader, map[string]uint16{
		"INSERT INTO t VALUES (1)": 1142, "DROP TABLE t": 1142, "CREATE TABLE u (a INT)": 1142, "CALL p()": 1370,
		"LOCK TABLES t READ": 1044, "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1": 1044,
	})
}

// A database that a binding has dropped comes back, empty, with the next binding.
func TestADroppedDatabaseComesBack(t *testing.T) {
	b := newBench(t)
	in := b.Instance("i")
	in.Parameters = json.RawMessage(`{"collation":"utf8mb4_bin"}`)
	b.Provision(in)
	_, credentials, db := b.bound(in, "b", "")
	exec(t, db, "DROP DATABASE "+fmt.Sprint(credentials["name"]))
	b.bound(in, "c", "")
	got := b.text("SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = ?", credentials["name"])
	expect.Same(t, "its collation is", "utf8mb4_bin", got)
	b.Deprovision(in)
	odd := b.Instance("odd")
	for _, name := range []string{"latin1_bin", "no_such", "x; DROP DATABASE mysql"} {
		odd.Parameters, _ = json.Marshal(map[string]string{"collation": name})
		expect.Says(t, "the failure for collation "+name, b.Fails(b.P.Provision, odd).Message, "collation")
	}
}
