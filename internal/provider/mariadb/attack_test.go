package mariadb_test

import (
	"context"
	"crypto/rand"
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
	"github.com/longshore/longshore/internal/test/providertest"
)

// A bench is a provider at work, with no suite around it.
type bench struct {
	*world
	p      *mariadb.Provider
	target provider.Target
	plan   string
}

func newBench(t testing.TB, change ...func(*hosted.Access)) *bench {
	t.Helper()
	w := newWorld(t)
	for _, c := range change {
		c(&w.access)
	}
	return benchOf(w)
}

func benchOf(w *world) *bench {
	t := w.t
	t.Helper()
	b := &bench{world: w, p: w.open(w.broker, w.access), plan: `{"connection_limit":5,"statement_timeout":1}`}
	st, err := b.p.Provision(t.Context(), b.instance("learns"))
	if err != nil || st.Target == nil {
		t.Fatalf("the first step: %+v, %v", st, err)
	}
	b.target = *st.Target
	return b
}

func (b *bench) operation(kind operation.Kind) provider.Operation {
	return provider.Operation{ID: rand.Text(), Kind: kind, Started: b.clock.Now()}
}

func (b *bench) instance(id string) provider.Instance {
	return provider.Instance{
		Broker: b.broker, Platform: "platform-1", ID: id, Incarnation: "of " + id, ServiceID: "s", PlanID: "p",
		Operation: b.operation(operation.Provision), Snapshot: json.RawMessage(b.plan), Target: b.target,
	}
}

func (b *bench) binding(in provider.Instance, id, parameters string) provider.Binding {
	in.Operation = b.operation(operation.Bind)
	in.Parameters = nil
	made := provider.Binding{Instance: in, ID: id, Incarnation: rand.Text(), Secret: []byte(rand.Text() + rand.Text())}
	if parameters != "" {
		made.Parameters = json.RawMessage(parameters)
	}
	return made
}

// must drives a step to its good end.
func must[T any](b *bench, step func(context.Context, T) (provider.Status, error), of T) provider.Status {
	b.t.Helper()
	return providertest.Must(b.t, b.clock, func(ctx context.Context) (provider.Status, error) { return step(ctx, of) })
}

// provisioned makes an instance that the test removes in the end.
func (b *bench) provisioned(id string) provider.Instance {
	b.t.Helper()
	in := b.instance(id)
	must(b, b.p.Provision, in)
	b.t.Cleanup(func() {
		_, err := b.p.Deprovision(context.Background(), in)
		for range 20 {
			if err == nil {
				break
			}
			_, err = b.p.Deprovision(context.Background(), in)
		}
	})
	return in
}

// bound makes a binding, and opens its database as an application does.
func (b *bench) bound(in provider.Instance, id, parameters string) (provider.Binding, map[string]any, *sql.DB) {
	b.t.Helper()
	made := b.binding(in, id, parameters)
	credentials := must(b, b.p.Bind, made).Grant.Credentials
	return made, credentials, dial(b.t, credentials, nil)
}

// number is the server's number of an error; 0 for none.
func number(t testing.TB, err error) uint16 {
	t.Helper()
	if err == nil {
		return 0
	}
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		t.Fatalf("not the server's error: %v", err)
	}
	return e.Number
}

// refused reports whether a server let nobody in. It says so by three numbers, for a
// wrong password, a locked account and one that is not there, and not always alike.
func refused(t testing.TB, err error) bool {
	t.Helper()
	return slices.Contains([]uint16{1045, 1698, 4151}, number(t, err))
}

func exec(t testing.TB, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		expect.Get(db.ExecContext(t.Context(), statement))(t, statement)
	}
}

// The server refuses all that a binding must not do.
func TestABindingMayNot(t *testing.T) {
	b := newBench(t)
	mine, theirs := b.provisioned("mine"), b.provisioned("theirs")
	_, own, db := b.bound(mine, "b", "")
	_, other, victim := b.bound(theirs, "b", "")
	exec(t, victim, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	exec(t, db, "CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
	c, err := victim.Conn(t.Context())
	expect.OK(t, err)
	defer func() { _ = c.Close() }()
	var session int
	expect.OK(t, c.QueryRowContext(t.Context(), "SELECT CONNECTION_ID()").Scan(&session))
	name, login := fmt.Sprint(other["name"]), fmt.Sprint(other["username"])
	self := fmt.Sprint(own["username"]) + "@'%'"
	_, err = db.ExecContext(t.Context(), "SELECT 1 INTO OUTFILE '/tmp/longshore-attack'")
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
	want := [3]string{"information_schema," + fmt.Sprint(own["name"]), fmt.Sprintf("'%v'@'%%'", own["username"]),
		fmt.Sprint(own["username"])}
	expect.Same(t, "what a binding sees of databases, users and sessions", want, [3]string{databases, users, sessions})
}

// A session that is open when its binding ends, with a transaction and whatever it
// has prepared, ends with it; so does a password that the binding has changed.
func TestNothingOutlivesAnUnbind(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	binding, credentials, db := b.bound(in, "b", "")
	_, _, stays := b.bound(in, "stays", "")
	exec(t, db, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB", "SET PASSWORD = PASSWORD('of its own')")
	credentials["password"] = "of its own"
	changed := dial(t, credentials, nil)
	tx := expect.Get(changed.BeginTx(t.Context(), nil))(t, "with the changed password")
	exec(t, tx, "INSERT INTO t VALUES (1)", "PREPARE s FROM 'SELECT 1'", "SET @mine = 'kept'")
	must(b, b.p.Unbind, binding)
	if _, err := tx.ExecContext(t.Context(), "EXECUTE s"); err == nil {
		t.Error("a session outlives its binding")
	}
	if err := changed.PingContext(t.Context()); !refused(t, err) {
		t.Errorf("the changed password, after the unbind: %v", err)
	}
	var n int
	if err := stays.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 0 {
		t.Errorf("the other binding sees %d rows, error %v, want none of the open transaction", n, err)
	}
	expect.Same(t, "left of the binding", "", b.look(provider.BindingTagsOf(binding)))
}

// Clients that give the name of a binding, in any case, and never log in neither stop a step nor keep an account, even
// if they come back whenever they are cut off.
func TestClientsThatDoNotLogIn(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
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
	must(b, b.p.Unbind, binding)
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

// A binding that has changed its password is given the one on record, when it is bound again by the same operation.
func TestTheRecordedPasswordComesBack(t *testing.T) {
	b := newBench(t)
	binding, _, db := b.bound(b.provisioned("i"), "b", "")
	exec(t, db, "SET PASSWORD = PASSWORD('of its own')")
	again := must(b, b.p.Bind, binding).Grant
	if !opens(t, again) {
		t.Error("the password on record is refused")
	}
}

// Views and the like that run as a binding go on to work after its end, though nobody can log in as it. The
// removal of the instance removes its account.
func TestWhatABindingDefined(t *testing.T) {
	for name, define := range map[string]string{
		"View":      "CREATE VIEW v AS SELECT a FROM t",
		"Procedure": "CREATE PROCEDURE v() SELECT a FROM t",
		"Function":  "CREATE FUNCTION v() RETURNS INT READS SQL DATA RETURN (SELECT a FROM t)",
		"Trigger":   "CREATE TRIGGER v BEFORE INSERT ON u FOR EACH ROW SET NEW.a = (SELECT a FROM t)",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			in := b.provisioned("i")
			binding, credentials, db := b.bound(in, "b", "")
			_, _, other := b.bound(in, "other", "")
			exec(t, db, "CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", "INSERT INTO t VALUES (7)", define)
			must(b, b.p.Unbind, binding)
			use := map[string]string{"View": "SELECT a FROM v", "Procedure": "CALL v()", "Function": "SELECT v()",
				"Trigger": "INSERT INTO u VALUES (1) RETURNING a"}[name]
			var got int
			if err := other.QueryRowContext(t.Context(), use).Scan(&got); err != nil || got != 7 {
				t.Errorf("what the binding defined gives %d, error %v", got, err)
			}
			if err := dial(t, credentials, nil).PingContext(t.Context()); !refused(t, err) {
				t.Errorf("the ended binding logs in: %v", err)
			}
			if held := b.held(); len(held) != 2 { // the instance and the other binding
				t.Errorf("the inventory holds %+v", held)
			}
			must(b, b.p.Unbind, binding) // once more

			anew := b.binding(in, "b", "")
			grant := must(b, b.p.Bind, anew).Grant
			if !opens(t, grant) || len(b.held()) != 3 {
				t.Errorf("bound anew, opens %v, held %+v", opens(t, grant), b.held())
			}
			must(b, b.p.Unbind, anew)
			login := fmt.Sprint(credentials["username"])
			if got := b.text("SELECT COUNT(*) FROM mysql.global_priv WHERE user = ?", login); got != "1" {
				t.Errorf("%s accounts stay for what runs as them", got)
			}
			must(b, b.p.Deprovision, in)
			rights := b.text(`SELECT (SELECT COUNT(*) FROM mysql.global_priv WHERE user = ?) + (SELECT COUNT(*) FROM mysql.db WHERE user = ?) +
				(SELECT COUNT(*) FROM mysql.procs_priv WHERE user = ?)`, login, login, login)
			if held := b.held(); len(held) != 0 || rights != "0" {
				t.Errorf("after the deprovision: %+v is held, and the account has %s rows", held, rights)
			}
		})
	}
}

// held is the whole inventory.
func (b *bench) held() (all []provider.Holding) {
	b.t.Helper()
	for cursor := ""; ; {
		page, next, err := b.p.List(b.t.Context(), cursor)
		expect.OK(b.t, err)
		all = append(all, page...)
		if cursor = next; next == "" {
			return all
		}
	}
}

// The server runs the events of an account that is locked. Ours do not run on:
// another binding may enable them, and they run as that one then.
func TestEventsStop(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	binding, credentials, db := b.bound(in, "b", "")
	_, other, successor := b.bound(in, "other", "")
	exec(t, db, "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)",
		"CREATE EVENT `e``; DROP TABLE t; --` ON SCHEDULE EVERY 1 SECOND STARTS NOW() + INTERVAL 1 HOUR DO INSERT INTO t VALUES ()",
		"CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO t VALUES ()")
	count := func() (n int) {
		t.Helper()
		expect.OK(t, successor.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n))
		return n
	}
	until(t, "the event runs", func() bool { return count() > 0 })
	must(b, b.p.Unbind, binding)
	enabled := "SELECT GROUP_CONCAT(definer) FROM information_schema.events WHERE event_schema = ? AND status = 'ENABLED'"
	if got := b.text(enabled, credentials["name"]); got != "" {
		t.Errorf("events of %s may run", got)
	}
	expect.Same(t, "an event keeps the account", "", b.look(provider.BindingTagsOf(binding)))
	before := count()
	exec(t, successor, "ALTER EVENT e ENABLE")
	if got, want := b.text(enabled, credentials["name"]), fmt.Sprintf("%v@%%", other["username"]); got != want {
		t.Errorf("the event runs as %q, want %q", got, want)
	}
	until(t, "the event runs again", func() bool { return count() > before })
}

// A binding may make any number of events: a look reads only some of them, and the unbind goes on until none may run. The
// events of another binding are not among them.
func TestManyEvents(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
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
	must(b, b.p.Unbind, binding)
	got := b.text("SELECT CONCAT(COUNT(*), ' ', MIN(definer), ' ', MAX(definer)) FROM information_schema.events "+
		"WHERE event_schema = ? AND status = 'ENABLED'", credentials["name"])
	expect.Same(t, "the events that may run", fmt.Sprintf("%d %v@%% %[2]v@%%", many, other["username"]), got)
}

// Events stand still while their account is in quarantine, and one that runs is ended.
// The events of another binding of the instance, and of a binding that is given back, run on.
func TestEventsInQuarantine(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	binding, credentials, db := b.bound(in, "b", "")
	_, _, other := b.bound(in, "other", "")
	exec(t, db, "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)", "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND DO INSERT "+
		"INTO t VALUES ()",
		"CREATE EVENT sleeps ON SCHEDULE EVERY 1 SECOND DO DO SLEEP(1000)")
	exec(t, other, "CREATE TABLE u (a INT AUTO_INCREMENT PRIMARY KEY)", "CREATE EVENT f ON SCHEDULE EVERY 1 SECOND DO INSERT "+
		"INTO u VALUES ()")
	rows := func(table string) string {
		return b.text("SELECT COUNT(*) FROM " + fmt.Sprint(credentials["name"]) + "." + table)
	}
	fired := func() string {
		return b.text("SELECT last_executed FROM information_schema.events WHERE event_schema = ? AND event_name = 'e'",
			credentials["name"])
	}
	until(t, "the events run", func() bool { return rows("t") != "0" && rows("u") != "0" })
	for kind, tags := range map[string]provider.Tags{"Binding": provider.BindingTagsOf(binding), "Instance": provider.TagsOf(in)} {
		holding := provider.Holding{Tags: tags, Target: b.target}
		expect.OK(t, b.p.Quarantine(t.Context(), holding), kind)
		last, before, others := fired(), rows("t"), rows("u")
		for range 2 {
			until(t, kind+": the event is due again", func() bool { return fired() != last })
			last = fired()
		}
		if kind == "Binding" {
			until(t, "the other binding's event runs", func() bool { return rows("u") != others })
		}
		if now := rows("t"); now != before {
			t.Errorf("%s: in quarantine the event has run: %s rows, were %s", kind, now, before)
		}
		running := "SELECT COUNT(*) FROM information_schema.processlist WHERE user = ? AND info LIKE '%SLEEP%'"
		if n := b.text(running, credentials["username"]); n != "0" {
			t.Errorf("%s: in quarantine %s events run", kind, n)
		}
		expect.OK(t, b.p.Release(t.Context(), holding), kind)
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
	b := newBench(t)
	in := b.provisioned("i")
	_, credentials, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT, b INT)", "CREATE PROCEDURE p() SELECT 1")
	name, who := fmt.Sprint(credentials["name"]), "x"+strings.ToLower(rand.Text()[:12])
	for _, statement := range []string{
		"CREATE USER " + who + "@'%' IDENTIFIED BY 'x'", "CREATE ROLE " + who + "role",
		"GRANT SELECT ON " + name + ".* TO " + who + "@'%' WITH GRANT OPTION",
		"GRANT SELECT ON " + name + ".* TO " + who + "role", "GRANT SELECT, INSERT (a) ON " + name + ".t TO " + who + "@'%'",
		"GRANT EXECUTE ON PROCEDURE " + name + ".p TO " + who + "@'%'",
	} {
		b.server.Root(t, statement)
	}
	t.Cleanup(func() {
		b.server.Root(t, "DROP USER "+who+"@'%'")
		b.server.Root(t, "DROP ROLE "+who+"role")
	})
	b.server.Root(t, "GRANT DELETE HISTORY ON "+name+".* TO "+who+"@'%'")
	until(t, "the operator learns whose rights are in the way", func() bool {
		_, err := b.p.Deprovision(t.Context(), in)
		return err != nil && strings.Contains(err.Error(), who)
	})
	b.server.Root(t, "REVOKE DELETE HISTORY ON "+name+".* FROM "+who+"@'%'")
	must(b, b.p.Deprovision, in)
	anew := b.provisioned("i")
	_, _, db = b.bound(anew, "b", "")
	exec(t, db, "CREATE TABLE t (a INT, b INT)", "CREATE PROCEDURE p() SELECT 1")
	stranger := dial(t, map[string]any{
		"username": who, "password": "x", "host": credentials["host"], "port": credentials["port"], "name": "",
	}, nil)
	for statement, want := range map[string]uint16{"SELECT * FROM " + name + ".t": 1142, "CALL " + name + ".p()": 1370} {
		if _, err := stranger.ExecContext(t.Context(), statement); number(t, err) != want {
			t.Errorf("a stranger's %q on the next database of the name: %v, want %d", statement, err, want)
		}
	}
}

// A lock that somebody else holds delays a step, and never fails it.
func TestLocksDelay(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	binding, _, db := b.bound(in, "b", "")
	_, _, other := b.bound(in, "other", "")
	exec(t, db, "CREATE TABLE t (a INT PRIMARY KEY) ENGINE=InnoDB", "CREATE VIEW v AS SELECT * FROM t")
	c, err := other.Conn(t.Context())
	expect.OK(t, err)
	exec(t, c, "LOCK TABLES t WRITE, v WRITE")
	must(b, b.p.Unbind, binding)
	exec(t, c, "UNLOCK TABLES")

	// A prepared transaction has no session that could be ended.
	xid := rand.Text()
	exec(t, c, "XA START '"+xid+"'", "INSERT INTO t VALUES (1)", "XA END '"+xid+"'", "XA PREPARE '"+xid+"'")
	_ = c.Close()
	rollback := func() bool {
		_, err := b.server.Administrator().ExecContext(t.Context(), "XA ROLLBACK '"+xid+"'")
		return err == nil
	}
	var st provider.Status
	for range 3 {
		if st, err = b.p.Deprovision(t.Context(), in); err != nil || st.Done {
			t.Fatalf("with a prepared transaction on a table of it: %+v, %v; want a pause", st, err)
		}
	}
	if st.After == 0 || !strings.Contains(st.Description, "lock") {
		t.Errorf("held up by a lock, it says %+v", st)
	}
	until(t, "the transaction is rolled back", rollback)
	must(b, b.p.Deprovision, in)
}

// While the call of a caller who has died is still at work, nobody else works on the
// instance; a tenant cannot hold it up, since the lock's name is not known to it.
func TestOneWorksAtATime(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	lock := mariadb.LockName(b.target.Identity, in)
	c := expect.Get(b.server.Administrator().Conn(t.Context()))(t)
	defer func() { _ = c.Close() }()
	exec(t, c, "DO GET_LOCK('"+lock+"', 0)")
	binding := b.binding(in, "b", "")
	if st, err := b.p.Bind(t.Context(), binding); err != nil || st.Done || st.After == 0 {
		t.Fatalf("while another call is at work: %+v, %v; want a pause", st, err)
	}
	exec(t, c, "DO RELEASE_LOCK('"+lock+"')")
	must(b, b.p.Bind, binding)
	expect.Never(t, "the lock's name", lock, b.target.Identity)
}

// The server's logs, processes and tables have no password.
func TestNoPasswordIsSeen(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	binding, credentials, _ := b.bound(in, "b", "")
	anew := b.binding(in, "b", "")
	second := must(b, b.p.Bind, anew).Grant.Credentials
	must(b, b.p.Unbind, anew)
	said := b.server.Log(t) + b.text("SELECT GROUP_CONCAT(CONCAT(label, details)) FROM "+b.access.Database+".things")
	if !strings.Contains(said, "ALTER USER") {
		t.Fatal("the log of statements holds none")
	}
	for _, secret := range []string{
		fmt.Sprint(credentials["password"]), fmt.Sprint(second["password"]), string(binding.Secret), string(anew.Secret), b.access.Password,
	} {
		if secret != b.access.Password && strings.Contains(said, secret) {
			t.Error("the server's logs tell a secret")
		}
	}
}

// With TLS, users are told what the certificate is verified by, and get in no other way.
func TestTLS(t *testing.T) {
	b := newBench(t, func(a *hosted.Access) { *a = mariadbTLS(t, *a) })
	in := b.provisioned("i")
	_, credentials, plain := b.bound(in, "b", "")
	if err := plain.PingContext(t.Context()); number(t, err) != 1045 {
		t.Errorf("without TLS: %v, want refused", err)
	}
	if credentials["sslmode"] != "verify-full" || !strings.Contains(fmt.Sprint(credentials["uri"]), "ssl-mode=VERIFY_IDENTITY") ||
		!strings.Contains(fmt.Sprint(credentials["jdbcUrl"]), "sslMode=verify-full") {
		t.Errorf("the credentials say sslmode %v", credentials["sslmode"])
	}
	db := dial(t, credentials, verified(t, credentials))
	exec(t, db, "CREATE TABLE t (a INT)")
	want := []string{"ca", "database", "host", "jdbcUrl", "name", "password", "port", "sslmode", "type", "uri", "username"}
	expect.Same(t, "the credentials have", want, slices.Sorted(maps.Keys(credentials)))
	if credentials["type"] != "mysql" || credentials["database"] != credentials["name"] {
		t.Errorf("it is of the type %v, for the database %v", credentials["type"], credentials["database"])
	}
}

// Limits are those of the plan, and change in place.
func TestLimits(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	_, _, db := b.bound(in, "b", "")
	open := func() (n int) {
		t.Helper()
		for range 8 {
			c, err := db.Conn(t.Context())
			if err != nil {
				if number(t, err) != 1226 {
					t.Errorf("one connection too many: %v", err)
				}
				break
			}
			defer func() { _ = c.Close() }()
			n++
		}
		return n
	}
	if n := open(); n != 5 {
		t.Errorf("a binding has %d connections, want 5", n)
	}
	if err := db.QueryRowContext(t.Context(), "SELECT SLEEP(10)").Scan(new(int)); number(t, err) != 1969 {
		t.Errorf("a long statement: %v", err)
	}
	in.Operation = b.operation(operation.Update)
	in.Former, in.Snapshot = in.Snapshot, json.RawMessage(`{"connection_limit":7}`)
	must(b, b.p.Update, in)
	_ = db.Close()
	_, credentials, fresh := b.bound(in, "c", "")
	db = fresh
	if n := open(); n != 7 {
		t.Errorf("after the update a binding has %d connections, want 7", n)
	}
	if got := b.text("SELECT GROUP_CONCAT(DISTINCT JSON_VALUE(priv, '$.max_user_connections')) FROM mysql.global_priv WHERE user IN "+
		"(SELECT user FROM mysql.db WHERE db = ?)", credentials["name"]); got != "7" {
		t.Errorf("accounts may have %s connections, want 7", got)
	}
	in.Operation, in.Parameters = b.operation(operation.Update), json.RawMessage(`{"collation":"utf8mb4_bin"}`)
	_, f := providertest.Drive(t, b.clock, func(ctx context.Context) (provider.Status, error) { return b.p.Update(ctx, in) })
	if f == nil || f.InstanceUsable == nil || !*f.InstanceUsable {
		t.Errorf("an update to another collation: %+v, want a failure that leaves the instance usable", f)
	}
}

// A binding that only reads writes nothing, also where it was another one before.
func TestReadOnly(t *testing.T) {
	b := newBench(t)
	in := b.provisioned("i")
	first, _, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)", "CREATE VIEW v AS SELECT a FROM t",
		"CREATE PROCEDURE p() INSERT INTO t VALUES (8)")
	must(b, b.p.Unbind, first)
	_, _, reader := b.bound(in, "b", `{"role":"read_only"}`)
	var got int
	if err := reader.QueryRowContext(t.Context(), "SELECT a FROM v").Scan(&got); err != nil || got != 7 {
		t.Errorf("it reads %d, error %v", got, err)
	}
	exec(t, reader, "SELECT a FROM t FOR UPDATE") // MariaDB asks for no right to lock what is read, as the guide says
	for statement, want := range map[string]uint16{
		"INSERT INTO t VALUES (1)": 1142, "DROP TABLE t": 1142, "CREATE TABLE u (a INT)": 1142, "CALL p()": 1370,
		"LOCK " + "TABLES t READ": 1044, "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1": 1044,
	} {
		if _, err := reader.ExecContext(t.Context(), statement); number(t, err) != want {
			t.Errorf("%s: %v, want %d", statement, err, want)
		}
	}
}

// A database that a binding has dropped comes back, empty, with the next binding.
func TestADroppedDatabaseComesBack(t *testing.T) {
	b := newBench(t)
	in := b.instance("i")
	in.Parameters = json.RawMessage(`{"collation":"utf8mb4_bin"}`)
	must(b, b.p.Provision, in)
	_, credentials, db := b.bound(in, "b", "")
	exec(t, db, "DROP DATABASE "+fmt.Sprint(credentials["name"]))
	b.bound(in, "c", "")
	got := b.text("SELECT default_collation_name FROM information_schema.schemata WHERE schema_name = ?", credentials["name"])
	expect.Same(t, "its collation is", "utf8mb4_bin", got)
	must(b, b.p.Deprovision, in)
	odd := b.instance("odd")
	for _, name := range []string{"latin1_bin", "no_such", "x; DROP DATABASE mysql"} {
		odd.Parameters, _ = json.Marshal(map[string]string{"collation": name})
		_, f := providertest.Drive(t, b.clock, func(ctx context.Context) (provider.Status, error) {
			return b.p.Provision(ctx, odd)
		})
		if f == nil || !strings.Contains(f.Message, "collation") {
			t.Errorf("collation %q: %v, want a failure that says so", name, f)
		}
	}
}
