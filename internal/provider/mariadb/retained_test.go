package mariadb_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/check"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/providertest"
)

// newKeeper is a bench whose plan retains what is deleted for a week.
func newKeeper(t testing.TB) *bench {
	t.Helper()
	b := newBench(t)
	snapshot := expect.Get(mariadb.Check(check.Plan{Settings: map[string]any{"retain_days": 7}}))(t)
	b.plan = string(snapshot)
	return b
}

// retained deletes an instance as the worker does, and gives what the inventory lists of it.
func (b *bench) retained(in provider.Instance) provider.Holding {
	b.t.Helper()
	h := provider.Holding{Tags: provider.TagsOf(in), Target: b.target, RetainedUntil: b.clock.Now().Add(week)}
	b.put(b.p.Quarantine, h)
	for _, listed := range b.held() {
		if listed.Tags == h.Tags && listed.RetainedUntil.Equal(h.RetainedUntil) {
			b.t.Cleanup(func() { _, _ = b.p.Deprovision(context.Background(), in) })
			return listed
		}
	}
	b.t.Fatalf("retained, it lists %+v", b.held())
	panic("unreachable")
}

const week = 7 * 24 * time.Hour

// put drives what an inventory does with a thing.
func (b *bench) put(act func(context.Context, provider.Holding) error, h provider.Holding) {
	b.t.Helper()
	must(b, func(ctx context.Context, h provider.Holding) (provider.Status, error) {
		return provider.Status{Done: true}, act(ctx, h)
	}, h)
}

// back is the instance that is to have what is retained of another one.
func (b *bench) back(in provider.Instance, id string) provider.Instance {
	out := b.instance(id)
	out.Origin = in.Origin
	if in.Origin == (provider.Origin{}) {
		out.Origin = provider.Origin{Instance: in.ID, Incarnation: in.Incarnation}
	}
	return out
}

// adopt has an instance take what is retained of another one.
func (b *bench) adopt(in provider.Instance, h provider.Holding, back provider.Instance) provider.Holding {
	b.t.Helper()
	h.Tags = provider.TagsOf(back)
	b.put(func(ctx context.Context, h provider.Holding) error { return b.p.Adopt(ctx, h, provider.TagsOf(in)) }, h)
	return h
}

// undeleted makes an instance of what is retained.
func (b *bench) undeleted(in provider.Instance, h provider.Holding, id string) provider.Instance {
	b.t.Helper()
	back := b.back(in, id)
	b.put(b.p.Release, b.adopt(in, h, back))
	must(b, b.p.Provision, back)
	return back
}

func count(t testing.TB, db *sql.DB, query string) (n int) {
	t.Helper()
	expect.OK(t, db.QueryRowContext(t.Context(), query).Scan(&n), query)
	return n
}

// A retained instance opens to nobody: not to an open session, a changed password, an event, or the rights of others. The
// next instance of the id, and the next binding, have nothing of it, and what runs as a binding works again when it is given
// back.
func TestDeletedDatabasesAreRetained(t *testing.T) {
	b := newKeeper(t)
	in := b.instance("i")
	must(b, b.p.Provision, in)
	gone, was, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)", "CREATE VIEW v AS SELECT a FROM t",
		"CREATE PROCEDURE p() SQL SECURITY DEFINER INSERT INTO t VALUES (2)",
		"CREATE TRIGGER w BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a + (SELECT COUNT(*) FROM v) - (SELECT COUNT(*) "+
			"FROM v)",
		"CREATE EVENT e ON SCHEDULE EVERY 1 SECOND STARTS NOW() + INTERVAL 1 HOUR DO INSERT INTO t VALUES (9)")
	_, stays, left := b.bound(in, "left", "") // the broker has lost it
	exec(t, left, "SET PASSWORD = PASSWORD('of its own')")
	stays["password"] = "of its own"
	session := expect.Get(dial(t, stays, nil).Conn(t.Context()))(t)
	must(b, b.p.Unbind, gone)
	held := b.retained(in)
	if _, err := session.ExecContext(t.Context(), "SELECT * FROM t"); err == nil {
		t.Error("a session outlives the deletion")
	}
	for _, credentials := range []map[string]any{was, stays} {
		err := dial(t, credentials, nil).PingContext(t.Context())
		if mariadb.ClassOf(err) != hosted.Login {
			t.Errorf("what is retained opens to a binding: %v", err)
		}
	}
	if got := b.text("SELECT COUNT(*) FROM information_schema.events WHERE event_schema = ? AND status = 'ENABLED'", was["name"]); got != "0" {
		t.Errorf("%s events of what is retained may run", got)
	}

	anew := b.instance("i")
	anew.Incarnation = "of its next life"
	must(b, b.p.Provision, anew)
	_, fresh, next := b.bound(anew, "b", "") // of the same id as one that something runs as
	if n := count(t, next, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"); n != 0 {
		t.Errorf("the next instance of the id has %d tables", n)
	}
	for _, statement := range []string{"SELECT * FROM %v.t", "CALL %v.p()", "DROP DATABASE %v"} {
		if _, err := next.ExecContext(t.Context(), fmt.Sprintf(statement, was["name"])); err == nil {
			t.Errorf("the next binding of the id reaches what is retained: %s", statement)
		}
	}
	if fresh["username"] == was["username"] || fresh["name"] == was["name"] {
		t.Error("two lives have one name")
	}

	back := b.undeleted(in, held, "back")
	for _, credentials := range []map[string]any{was, stays} {
		if err := dial(t, credentials, nil).PingContext(t.Context()); err == nil {
			t.Error("given back, it opens to a binding of the deleted instance")
		}
	}
	_, _, again := b.bound(back, "b", "")
	exec(t, again, "CALL p()", "INSERT INTO t VALUES (3)")
	expect.Same(t, "given back, the view gives", 6, count(t, again, "SELECT SUM(a) FROM v"))
	if _, err := b.p.Deprovision(t.Context(), in); !isFailure(err) { // late, and not its own any more
		t.Errorf("a deletion that came late: %v", err)
	}
	if n := count(t, again, "SELECT COUNT(*) FROM t"); n != 3 {
		t.Errorf("a deletion that came late has left %d rows", n)
	}
	back.Snapshot = nil
	must(b, b.p.Deprovision, back)
	if got := b.text("SELECT COUNT(*) FROM mysql.global_priv WHERE user = ?", was["username"]); got != "0" {
		t.Error("an account is left of what is gone")
	}
	anew.Unfinished = true
	must(b, b.p.Deprovision, anew)
	expect.Same(t, "what it lists in the end", nil, b.held())
}

// A process may die after any call of a retention, an adoption or a removal: in the end the data are in the right
// place, once.
func TestRetainingIsKilled(t *testing.T) {
	b := newKeeper(t)
	killed := func(n int, step func(context.Context) (provider.Status, error)) bool {
		t.Helper()
		struck, disarm := b.calls.Arm(n, providertest.Killed)
		_, err := step(t.Context())
		disarm()
		if err == nil && !struck() {
			return false
		}
		b.p = b.open(b.broker, b.access)
		if _, f := providertest.Drive(t, b.clock, step); f != nil {
			t.Fatalf("after call %d it failed: %s", n, f.Message)
		}
		return true
	}
	for n, struck := 1, true; struck; n++ {
		in := b.instance(fmt.Sprintf("i%d", n))
		must(b, b.p.Provision, in)
		_, was, db := b.bound(in, "b", "") // which is left
		exec(t, db, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)", "CREATE VIEW v AS SELECT a FROM t")
		h := provider.Holding{Tags: provider.TagsOf(in), Target: b.target, RetainedUntil: b.clock.Now().Add(week)}
		back := b.back(in, fmt.Sprintf("back%d", n))
		its := h
		its.Tags = provider.TagsOf(back)
		struck = false
		for _, step := range []func(context.Context) (provider.Status, error){
			func(ctx context.Context) (provider.Status, error) { return provider.Status{}, b.p.Quarantine(ctx, h) },
			func(ctx context.Context) (provider.Status, error) {
				return provider.Status{}, b.p.Adopt(ctx, its, h.Tags)
			},
			func(ctx context.Context) (provider.Status, error) { return provider.Status{}, b.p.Release(ctx, its) },
			func(ctx context.Context) (provider.Status, error) { return b.p.Provision(ctx, back) },
		} {
			if killed(n, func(ctx context.Context) (provider.Status, error) {
				st, err := step(ctx)
				st.Done = st.Done || st.After == 0 && err == nil
				return st, err
			}) {
				struck = true
			}
			if dial(t, was, nil).PingContext(t.Context()) == nil {
				t.Fatalf("after call %d it opens to a binding of the deleted instance", n)
			}
		}
		last, _, again := b.bound(back, "b", "")
		if got := count(t, again, "SELECT a FROM v"); got != 7 {
			t.Fatalf("after call %d the view gives %d", n, got)
		}
		must(b, b.p.Unbind, last)
		if killed(n, func(ctx context.Context) (provider.Status, error) { return b.p.Deprovision(ctx, back) }) {
			struck = true
		}
		if held := b.held(); len(held) != 0 {
			t.Fatalf("removed after call %d, it lists %+v", n, held)
		}
		if n > providertest.MaxSteps {
			t.Fatal("it never ends")
		}
	}
}

// If the operator drops a retained database, an instance that is to have it back fails, makes nothing in its place,
// and can be deleted, as can what is left.
func TestRetainedDatabaseIsDropped(t *testing.T) {
	b := newKeeper(t)
	in := b.instance("i")
	must(b, b.p.Provision, in)
	held := b.retained(in)
	b.server.Root(t, "DROP DATABASE "+nameOf(provider.TagsOf(in)))
	back := b.back(in, "back")
	b.put(b.p.Release, b.adopt(in, held, back))
	if _, err := b.p.Provision(t.Context(), back); !isFailure(err) {
		t.Errorf("what is gone is given back: %v", err)
	}
	must(b, b.p.Deprovision, back)
	expect.Same(t, "what it lists in the end", nil, b.held())
}

// A life that is over and retained is not begun again by a call that comes late, nor by
// a binding, and nobody's removal takes it but its own.
func TestLateCallsLeaveWhatIsRetained(t *testing.T) {
	b := newKeeper(t)
	in := b.instance("i")
	must(b, b.p.Provision, in)
	_, _, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT)")
	held := b.retained(in)
	wrong := b.back(in, "another")
	for what, step := range map[string]func(context.Context) (provider.Status, error){
		"Provision":        func(ctx context.Context) (provider.Status, error) { return b.p.Provision(ctx, in) },
		"Update":           func(ctx context.Context) (provider.Status, error) { return b.p.Update(ctx, in) },
		"Bind":             func(ctx context.Context) (provider.Status, error) { return b.p.Bind(ctx, b.binding(in, "b", "")) },
		"RemovalOfAnother": func(ctx context.Context) (provider.Status, error) { return b.p.Deprovision(ctx, wrong) },
	} {
		if _, err := step(t.Context()); !isFailure(err) {
			t.Errorf("%s: %v, want a failure", what, err)
		}
	}
	expect.Same(t, "what is retained, before and after", []provider.Holding{held}, b.held())
	must(b, b.p.Deprovision, in)
	must(b, b.p.Deprovision, in)
}

func isFailure(err error) bool {
	_, is := errors.AsType[*provider.Failure](err)
	return is
}

func TestCheckOfDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		settings map[string]any
		want     string // of the snapshot, or of the error
	}{
		"Drop":   {map[string]any{"on_delete": "drop"}, `{}`},
		"Retain": {map[string]any{"retain_days": json.Number("7")}, `{"retain_days":7}`},
		"Both":   {map[string]any{"on_delete": "drop", "retain_days": 7}, "on_delete"},
		"Other":  {map[string]any{"on_delete": "keep"}, "on_delete"},
		"Never":  {map[string]any{"retain_days": 0}, "retain_days"},
	} {
		got, err := mariadb.Check(check.Plan{Settings: tc.settings})
		expect.Says(t, name, string(got)+fmt.Sprint(err), tc.want)
	}
}
