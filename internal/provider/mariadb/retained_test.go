package mariadb_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/mariadb"
	"github.com/longshore/longshore/internal/test/providertest"
)

// newKeeper is a bench whose plan retains what is deleted for a week.
func newKeeper(t testing.TB) *bench {
	t.Helper()
	b := newBench(t)
	snapshot, err := mariadb.Check(provider.Checked{Settings: map[string]any{"retain_days": 7}})
	if err != nil {
		t.Fatal(err)
	}
	b.plan = string(snapshot)
	return b
}

// retained deletes an instance, and gives what the inventory then lists of it.
func (b *bench) retained(in provider.Instance) provider.Holding {
	b.t.Helper()
	st := must(b, b.p.Deprovision, in)
	for _, h := range b.held() {
		if st.Retained != nil && h.Name == st.Retained.Name && h.RetainedUntil.Equal(st.Retained.Until) && h.Tags == provider.TagsOf(in) {
			b.t.Cleanup(func() { _, _ = b.p.RemoveRetained(context.Background(), h) })
			return h
		}
	}
	b.t.Fatalf("retained as %+v, and it lists %+v", st.Retained, b.held())
	panic("unreachable")
}

// from is what an instance is made of that has a deleted one back.
func (b *bench) from(in provider.Instance, h provider.Holding) *provider.Source {
	return &provider.Source{Platform: in.Platform, ID: in.ID, Incarnation: in.Incarnation, Target: b.target,
		Retained: &provider.Retained{Name: h.Name, Until: h.RetainedUntil}}
}

func count(t testing.TB, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// What is deleted opens to nobody: not to a session that is open, a password that was
// changed, an event, or rights that others have. The next instance of the id, and the
// next binding, have nothing of it, and what runs as a binding works again when it is
// given back.
func TestDeletedDatabasesAreRetained(t *testing.T) {
	b := newKeeper(t)
	in := b.instance("i")
	must(b, b.p.Provision, in)
	gone, was, db := b.bound(in, "b", "")
	exec(t, db, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)", "CREATE VIEW v AS SELECT a FROM t",
		"CREATE PROCEDURE p() SQL SECURITY DEFINER INSERT INTO t VALUES (2)",
		"CREATE TRIGGER w BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a + (SELECT COUNT(*) FROM v) - (SELECT COUNT(*) FROM v)",
		"CREATE EVENT e ON SCHEDULE EVERY 1 SECOND STARTS NOW() + INTERVAL 1 HOUR DO INSERT INTO t VALUES (9)")
	_, stays, left := b.bound(in, "left", "") // the broker has lost it
	exec(t, left, "SET PASSWORD = PASSWORD('of its own')")
	stays["password"] = "of its own"
	session, err := dial(t, stays, nil).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	must(b, b.p.Unbind, gone)
	held := b.retained(in)
	if _, err := session.ExecContext(t.Context(), "SELECT * FROM t"); err == nil {
		t.Error("a session outlives the deletion")
	}
	for _, credentials := range []map[string]any{was, stays} {
		err := dial(t, credentials, nil).PingContext(t.Context())
		if mariadb.MeaningOf(err) != mariadb.MeaningOf(&mysql.MySQLError{Number: 1045}) {
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

	back := b.instance("back")
	back.Source = b.from(in, held)
	must(b, b.p.Provision, back)
	back.Source = nil
	_, _, again := b.bound(back, "b", "")
	exec(t, again, "CALL p()", "INSERT INTO t VALUES (3)")
	if n := count(t, again, "SELECT SUM(a) FROM v"); n != 6 {
		t.Errorf("given back, the view gives %d, want 6", n)
	}
	must(b, b.p.Deprovision, in) // late, and not its own any more
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
	if left := b.held(); len(left) != 0 {
		t.Errorf("in the end it lists %+v", left)
	}
}

// Whatever call of a deletion, of a removal or of a giving back is the last of its
// process: the data are where they are to be in the end, once.
func TestRetainingIsKilled(t *testing.T) {
	b := newKeeper(t)
	killed := func(n int, step func(context.Context) (provider.Status, error)) (provider.Status, bool) {
		t.Helper()
		struck, disarm := b.calls.Arm(n, providertest.Killed)
		st, err := step(t.Context())
		if err == nil && !struck() {
			disarm()
			return st, false
		}
		disarm()
		b.p = b.open(b.broker, b.access)
		st, f := providertest.Drive(t, b.clock, step)
		if f != nil {
			t.Fatalf("after call %d it failed: %s", n, f.Message)
		}
		return st, true
	}
	for n, struck := 1, true; struck; n++ {
		in := b.instance(fmt.Sprintf("i%d", n))
		must(b, b.p.Provision, in)
		binding, _, db := b.bound(in, "b", "")
		exec(t, db, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)", "CREATE VIEW v AS SELECT a FROM t")
		must(b, b.p.Unbind, binding)
		var any [4]bool
		st, one := killed(n, func(ctx context.Context) (provider.Status, error) { return b.p.Deprovision(ctx, in) })
		held := b.held()
		if any[0] = one; len(held) != 1 || st.Retained == nil || held[0].Name != st.Retained.Name {
			t.Fatalf("after call %d: retained as %+v, it lists %+v", n, st.Retained, held)
		}
		half := b.instance(fmt.Sprintf("half%d", n))
		half.Source = b.from(in, held[0])
		_, any[1] = killed(n, func(ctx context.Context) (provider.Status, error) { return b.p.Provision(ctx, half) })
		half.Unfinished = true
		_, any[2] = killed(n, func(ctx context.Context) (provider.Status, error) { return b.p.Deprovision(ctx, half) })
		if diff := cmp.Diff(held, b.held()); diff != "" {
			t.Fatalf("given back after call %d (-before +after):\n%s", n, diff)
		}
		back := b.instance(fmt.Sprintf("back%d", n))
		back.Source = half.Source
		must(b, b.p.Provision, back)
		back.Source = nil
		last, _, again := b.bound(back, "b", "")
		if got := count(t, again, "SELECT a FROM v"); got != 7 {
			t.Fatalf("after call %d the view gives %d", n, got)
		}
		must(b, b.p.Unbind, last)
		final := b.retained(back)
		_, any[3] = killed(n, func(ctx context.Context) (provider.Status, error) { return b.p.RemoveRetained(ctx, final) })
		if held := b.held(); len(held) != 0 {
			t.Fatalf("removed after call %d, it lists %+v", n, held)
		}
		struck = any != [4]bool{}
		if n > providertest.MaxSteps {
			t.Fatal("it never ends")
		}
	}
}

// What was taken by a call that came late, of an instance that nobody knows any more, is
// data that somebody may still want back: whatever removes it, it is retained again.
func TestWhatWasTakenLateIsRetainedAgain(t *testing.T) {
	for name, gone := range map[string]func(b *bench, half provider.Instance){
		"AsAnOrphan": func(b *bench, half provider.Instance) {
			half.Source, half.PlanID, half.Snapshot = nil, "", nil
			must(b, b.p.Deprovision, half)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newKeeper(t)
			in := b.instance("i")
			must(b, b.p.Provision, in)
			held := b.retained(in)
			half := b.instance("half")
			half.Source = b.from(in, held)
			b.halfTaken(half)
			gone(b, half)
			for _, h := range b.held() {
				if cmp.Equal(h, held) {
					return
				}
			}
			t.Errorf("it lists %+v, want %+v among them", b.held(), held)
		})
	}
}

// What is retained may be dropped by its operator: an instance that was to have it back
// can be deleted, and so can the record.
func TestRetainedDatabaseIsDropped(t *testing.T) {
	b := newKeeper(t)
	in := b.instance("i")
	must(b, b.p.Provision, in)
	held := b.retained(in)
	name := nameOf(provider.TagsOf(in))
	b.server.Root(t, "DROP DATABASE "+name)
	refused := func(back provider.Instance) {
		t.Helper()
		if _, err := b.p.Provision(t.Context(), back); !isFailure(err) {
			t.Errorf("what is gone is given back: %v", err)
		}
		back.Unfinished = true
		must(b, b.p.Deprovision, back)
	}
	back := b.instance("back")
	back.Source = b.from(in, held)
	refused(back)
	must(b, b.p.RemoveRetained, held)

	in.Incarnation = "another"
	must(b, b.p.Provision, in)
	back.Source = b.from(in, b.retained(in))
	b.halfTaken(back)
	name = nameOf(provider.TagsOf(in))
	b.server.Root(t, "DROP DATABASE "+name)
	refused(back)
	if left := b.held(); len(left) != 0 {
		t.Errorf("in the end it lists %+v", left)
	}
}

// halfTaken has an instance take what is retained, and do no more.
func (b *bench) halfTaken(half provider.Instance) {
	b.t.Helper()
	for n := 1; ; n++ {
		_, disarm := b.calls.Arm(n, providertest.Killed)
		_, err := b.p.Provision(b.t.Context(), half)
		disarm()
		if err == nil {
			b.t.Fatal("it was never taken alone")
		}
		for _, h := range b.held() {
			if h.Tags == provider.TagsOf(half) {
				return
			}
		}
	}
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
	wrong, other := held, held
	wrong.Tags.Incarnation, other.Tags.Instance = "another", "another"
	for what, step := range map[string]func(context.Context) (provider.Status, error){
		"Provision":            func(ctx context.Context) (provider.Status, error) { return b.p.Provision(ctx, in) },
		"Update":               func(ctx context.Context) (provider.Status, error) { return b.p.Update(ctx, in) },
		"Bind":                 func(ctx context.Context) (provider.Status, error) { return b.p.Bind(ctx, b.binding(in, "b", "")) },
		"RemovalOfAnotherLife": func(ctx context.Context) (provider.Status, error) { return b.p.RemoveRetained(ctx, wrong) },
		"RemovalOfAnother":     func(ctx context.Context) (provider.Status, error) { return b.p.RemoveRetained(ctx, other) },
	} {
		if _, err := step(t.Context()); !isFailure(err) {
			t.Errorf("%s: %v, want a failure", what, err)
		}
	}
	if diff := cmp.Diff([]provider.Holding{held}, b.held()); diff != "" {
		t.Errorf("what is retained (-before +after):\n%s", diff)
	}
	must(b, b.p.RemoveRetained, held)
	must(b, b.p.RemoveRetained, held)
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
		got, err := mariadb.Check(provider.Checked{Settings: tc.settings})
		if said := string(got) + fmt.Sprint(err); !strings.Contains(said, tc.want) {
			t.Errorf("%s: %s, want %s", name, said, tc.want)
		}
	}
}
