package mariadb_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/test/expect"
)

// newKeeper is a bench whose plan retains what is deleted for a week.
func newKeeper(t testing.TB) *bench {
	t.Helper()
	b := newBench(t)
	b.Plan = string(expect.Get(mariadb.Check(check.Plan{Settings: map[string]any{"retain_days": json.Number("7")}}))(t))
	expect.Same(t, "the snapshot", `{"retain_days":7}`, b.Plan)
	return b
}

// A retained instance opens to nobody: not to an open session, a changed password, an event, or the rights of others. The
// next instance of the id, and the next binding, have nothing of it, and what runs as a binding works again when it is given
// back.
func TestDeletedDatabasesAreRetained(t *testing.T) {
	b := newKeeper(t)
	in := b.Provisioned("i")
	gone, was, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)", "CREATE VIEW v AS SELECT a FROM t",
		"CREATE PROCEDURE p() SQL SECURITY DEFINER INSERT INTO t VALUES (2)",
		"CREATE TRIGGER w BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a + (SELECT COUNT(*) FROM v) - "+
			"(SELECT COUNT(*) FROM v)",
		"CREATE EVENT e ON SCHEDULE EVERY 1 SECOND STARTS NOW() + INTERVAL 1 HOUR DO INSERT INTO t VALUES (9)")
	_, stays, left := b.bound(in, "left", "") // the broker has lost it
	exec(t, left, "SET PASSWORD = PASSWORD('of its own')")
	stays["password"] = "of its own"
	session := conn(t, dial(t, stays, nil))
	b.Unbind(gone)
	held := b.Retained(in)
	if _, err := session.ExecContext(t.Context(), "SELECT * FROM t"); err == nil {
		t.Error("a session outlives the deletion")
	}
	shut := func(when string) {
		t.Helper()
		for _, credentials := range []map[string]any{was, stays} {
			if err := dial(t, credentials, nil).PingContext(t.Context()); mariadb.ClassOf(err) != hosted.Login {
				t.Errorf("%s, it opens to a binding of the deleted instance: %v", when, err)
			}
		}
	}
	shut("retained")
	enabled := "SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ? AND status = 'ENABLED'"
	expect.Same(t, "events of what is retained that may run", "0", b.text(enabled, was["name"]))

	anew := b.Instance("i")
	anew.Incarnation = "of its next life"
	b.Provision(anew)
	_, fresh, next := b.bound(anew, "b", "") // of the same id as one that something runs as
	tables := "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"
	expect.Same(t, "tables of the next instance of the id", 0, count(t, next, tables))
	for _, statement := range []string{"SELECT * FROM %v.t", "CALL %v.p()", "DROP DATABASE %v"} {
		if _, err := next.ExecContext(t.Context(), fmt.Sprintf(statement, was["name"])); err == nil {
			t.Errorf("the next binding of the id reaches what is retained: %s", statement)
		}
	}
	if fresh["username"] == was["username"] || fresh["name"] == was["name"] {
		t.Error("two lives have one name")
	}

	back := b.Undeleted(in, held, "back")
	shut("given back")
	_, _, again := b.bound(back, "b", "")
	exec(t, again, "CALL p()", "INSERT INTO t VALUES (3)")
	expect.Same(t, "given back, the view gives", 6, count(t, again, "SELECT SUM(a) FROM v"))
	b.Fails(b.P.Deprovision, in) // late, and not its own any more
	expect.Same(t, "rows that a deletion that came late has left", 3, count(t, again, "SELECT COUNT(*) FROM t"))
	back.Snapshot = nil
	b.Deprovision(back)
	accounts := "SELECT COUNT(*) FROM mysql.global_priv WHERE user = ?"
	expect.Same(t, "accounts of what is gone", "0", b.text(accounts, was["username"]))
	anew.Unfinished = true
	b.Deprovision(anew)
	expect.Same(t, "what it lists in the end", nil, b.Held())
}

// If the operator drops a retained database, an instance that is to have it back fails, makes nothing in its place,
// and can be deleted, as can what is left.
func TestRetainedDatabaseIsDropped(t *testing.T) {
	b := newKeeper(t)
	in := b.Provisioned("i")
	held := b.Retained(in)
	b.server.Root(t, "DROP DATABASE "+nameOf(provider.TagsOf(in)))
	back := b.Back(in, "back")
	b.Adopt(in, held, back)
	b.Fails(b.P.Provision, back)
	b.Deprovision(back)
	expect.Same(t, "what it lists in the end", nil, b.Held())
}

func TestCheckOfDeletion(t *testing.T) {
	dropped := expect.Get(mariadb.Check(check.Plan{Settings: map[string]any{"on_delete": "drop"}}))(t)
	expect.Same(t, "the snapshot of a plan that drops", "{}", string(dropped))
	_, err := mariadb.Check(check.Plan{Settings: map[string]any{"on_delete": "drop", "retain_days": 7}})
	expect.Says(t, "the error of one that does both", fmt.Sprint(err), "on_delete", "contradicts retain_days")
}

func TestCheckOfBounds(t *testing.T) {
	most := map[string]any{"connection_limit": 10000, "statement_timeout": 86400, "retain_days": 3650}
	taken := expect.Get(mariadb.Check(check.Plan{Settings: most}))(t)
	expect.Same(t, "the snapshot", `{"connection_limit":10000,"statement_timeout":86400,"retain_days":3650}`, string(taken))
	for name, values := range map[string][]any{"connection_limit": {0, 10001, "7"}, "statement_timeout": {0, 86401},
		"retain_days": {0, 3651}, "on_delete": {"keep", 7}} {
		for _, value := range values {
			_, err := mariadb.Check(check.Plan{Settings: map[string]any{name: value}})
			expect.Says(t, fmt.Sprint("the error of ", value), fmt.Sprint(err), name)
		}
	}
}
