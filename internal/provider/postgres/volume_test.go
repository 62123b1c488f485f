package postgres_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// gifts are grants of every kind of thing to STRANGER. LOGIN is the giver's own login, which passes one on by itself.
var gifts = []string{
	`CREATE TABLE given (a serial, b text)`, `GRANT ALL ON given TO STRANGER`, `GRANT SELECT (a), UPDATE (b) ON given TO STRANGER`,
	`GRANT ALL ON given TO STRANGER WITH GRANT OPTION`, `GRANT USAGE ON SEQUENCE given_a_seq TO STRANGER`,
	`CREATE FUNCTION given() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `GRANT EXECUTE ON FUNCTION given() TO STRANGER`,
	`CREATE PROCEDURE given(int) LANGUAGE sql AS 'SELECT 1'`, `GRANT EXECUTE ON PROCEDURE given(int) TO STRANGER`,
	`CREATE AGGREGATE "given %s"(int) (SFUNC = int4pl, STYPE = int)`, `GRANT EXECUTE ON FUNCTION "given %s"(int) TO STRANGER`,
	`CREATE SCHEMA given`, `GRANT ALL ON SCHEMA given TO STRANGER`, `CREATE TYPE given_t AS ENUM ()`,
	`GRANT USAGE ON TYPE given_t TO STRANGER`,
	`CREATE DOMAIN given_d AS int`, `GRANT USAGE ON DOMAIN given_d TO STRANGER`, `SELECT lo_create(4711)`,
	`GRANT ALL ON LARGE OBJECT 4711 TO STRANGER`, `ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO STRANGER`,
	`ALTER DEFAULT PRIVILEGES IN SCHEMA given GRANT ALL ON ROUTINES TO STRANGER`,
	`ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO STRANGER`, `CREATE POLICY alone ON given TO STRANGER`,
	`CREATE POLICY "not alone" ON given TO STRANGER, PUBLIC`, `CREATE POLICY both ON given TO STRANGER, LOGIN`,
	`CREATE TABLE passed (a int)`, `GRANT ALL ON passed TO LOGIN WITH GRANT OPTION`, `SET ROLE NONE`,
	`ALTER ROLE LOGIN SET search_path = public`, `GRANT SELECT (a) ON passed TO STRANGER`, `GRANT INSERT ON passed TO STRANGER`,
}

// give has a binding's session grant something of every kind to roles.
func (r *raid) give(g *provider.Grant, roles ...string) {
	r.t.Helper()
	for i, role := range roles {
		c := login(r.t, g)
		for _, text := range gifts {
			policy := strings.HasPrefix(text, "CREATE POLICY")
			if i > 0 && !policy && (strings.HasPrefix(text, "CREATE") || strings.HasPrefix(text, "SELECT lo")) {
				continue // it is there
			}
			if policy {
				text = strings.NewReplacer("alone", fmt.Sprint("alone", i), "both", fmt.Sprint("both", i)).Replace(text)
			}
			exec(r.t, c, strings.NewReplacer("STRANGER", role, "LOGIN", user(g)).Replace(text))
		}
		end(c)
	}
}

// within repeats a step until it is done, each time with as long as that.
func (d *desk) within(whole, long time.Duration, step providertest.Step) {
	d.t.Helper()
	if said, err := d.tried(whole, long, step); err != nil {
		d.t.Fatalf("it does not end: %v; errors before: %v", err, said)
	}
}

// unbound unbinds within steps of 20 seconds.
func (d *desk) unbound(id string, kind operation.Kind) {
	d.t.Helper()
	d.within(5*time.Minute, 20*time.Second, d.unbinding(id, kind))
}

// tried repeats a step that may take so long until it is done, or whole is over. It counts the errors on the way.
func (d *desk) tried(whole, long time.Duration, step providertest.Step) (map[string]int, error) {
	limited, cancel := context.WithTimeout(d.t.Context(), whole)
	defer cancel()
	said := map[string]int{}
	for {
		ctx, cancel := context.WithTimeout(limited, long)
		st, err := step(ctx)
		cancel()
		if err == nil && st.Done {
			return said, nil
		}
		if failed := (*provider.Failure)(nil); errors.As(err, &failed) || waiting.For(limited, 10*time.Millisecond) != nil {
			return said, fmt.Errorf("%+v, %w", st, cmp.Or(err, limited.Err()))
		}
		if err != nil {
			said[strings.ReplaceAll(err.Error(), "[redacted]", "")]++
		}
	}
}

// A tenant's grants to others hold up none of them after the tenant has deleted its
// instance, also where its database is retained, and shut.
func TestGiftsOfWhatIsRetainedHoldUpNobody(t *testing.T) {
	everyRaid(t, func(t *testing.T, r *raid) {
		r.in.Snapshot = []byte(`{"retain_days":7}`)
		mine, theirs := r.bind("mine", ""), user(r.other.bind("theirs", ""))
		r.give(mine, theirs, r.other.owner())
		r.unbind("mine")
		r.retain()
		gives(t, r.server.Connect("postgres"), "things in what is retained that are open to others", 0,
			`SELECT count(*) FROM pg_shdepend WHERE refobjid IN ($1::regrole, $2::regrole)
			AND dbid = (SELECT oid FROM pg_database WHERE datname ~ '^lsd' AND NOT datallowconn AND datdba = $3::regrole)`,
			theirs, r.other.owner(), r.broker)
		r.other.in.Epoch = r.in.Epoch
		r.other.unbind("theirs")
		r.other.deprovision()
	})
}

// A database that was shut with such grants in it is opened for as long as it takes to get in.
func TestAShutDatabaseIsEntered(t *testing.T) {
	everyRaid(t, func(t *testing.T, r *raid) {
		r.give(r.bind("mine", ""), user(r.other.bind("theirs", "")), r.other.owner())
		r.server.Exec("postgres", "ALTER DATABASE "+r.database()+" ALLOW_CONNECTIONS false CONNECTION LIMIT 0")
		r.other.unbind("theirs")
		r.other.deprovision()
		gives(t, r.server.Connect("postgres"), "the database is not shut as it was", false,
			"SELECT datallowconn OR datconnlimit <> 0 FROM pg_database WHERE datname = $1", r.database())
	})
}

// crowded has room for some three hundred locks.
func crowded(t testing.TB, version string) *pgtest.Server {
	return pgtest.New(t, version, pgtest.Setting("max_locks_per_transaction", "10"), pgtest.Setting("max_connections", "20"),
		pgtest.Setting("max_prepared_transactions", "0"))
}

// A binding that has left the owner role and made more things than the server has locks is
// unbound, and what it made is the owner's: it is handed over a few at a time.
func TestMoreThingsThanLocks(t *testing.T) {
	pgtest.Each(t, crowded, func(t *testing.T, s *pgtest.Server) {
		r := alone(t, s)
		mine := r.bind("mine", "")
		c, other := login(t, mine), r.as("heir")
		exec(t, other, "CREATE SCHEMA closed", "GRANT USAGE, CREATE ON SCHEMA closed TO "+user(mine), "CREATE TABLE parent (n int)",
			"SET ROLE NONE", "CREATE SCHEMA sealed", "GRANT USAGE, CREATE ON SCHEMA sealed TO "+user(mine))
		exec(t, c, "SET ROLE NONE", "CREATE SCHEMA own", "CREATE FUNCTION sealed.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
			"CREATE TABLE sealed.t (n serial, m int GENERATED ALWAYS AS IDENTITY)", "CREATE TYPE own.span AS RANGE (SUBTYPE = int)")
		for i, text := range []string{
			"CREATE TABLE own.t%d (n serial PRIMARY KEY, b text)", "CREATE FUNCTION own.f%d() RETURNS int LANGUAGE sql AS $q$SELECT 1$q$",
			"CREATE TYPE own.e%d AS ENUM ()", "CREATE VIEW own.v%d AS SELECT 1 AS one", "CREATE SCHEMA s%d",
			"ALTER DEFAULT PRIVILEGES IN SCHEMA s%d GRANT ALL ON TABLES TO PUBLIC",
		} {
			var all strings.Builder
			for n := range 120 {
				fmt.Fprintf(&all, "EXECUTE '"+text+"'; COMMIT; ", n)
			}
			if i == 0 {
				all.WriteString("PERFORM lo_create(0) FROM generate_series(1, 200); COMMIT; ")
			}
			exec(t, c, "DO $$ BEGIN "+all.String()+" END $$")
		}
		end(c)
		r.unbound("mine", operation.Unbind)
		if n := value[int](t, s.Connect(r.database()), `SELECT count(*) FROM pg_shdepend WHERE refobjid = $1::regrole AND deptype = 'o'
			AND classid <> 'pg_default_acl'::regclass`, r.owner()); n < 900 {
			t.Errorf("the owner role has %d things, want all that the binding made", n)
		}
		exec(t, other, "SET ROLE "+r.owner(), "DROP TABLE own.t7", "DROP FUNCTION own.f7", "DROP TYPE own.span", "DROP TABLE sealed.t")
	})
}

// A binding that only reads is made where there are more tables than the server has locks, and reads all of them.
func TestMoreTablesThanLocksAreRead(t *testing.T) {
	t.Parallel()
	d := ready(t, crowded(t, "18").Access()) // earlier versions take no lock to grant
	c := d.as("writes")
	for n := range 12 {
		exec(t, c, fmt.Sprintf("DO $$ BEGIN FOR i IN 1..100 LOOP "+
			"EXECUTE 'CREATE TABLE %c' || i || ' (n int)'; COMMIT; END LOOP; END $$", 'a'+n))
	}
	gives(t, d.reads("reads"), "tables that are read", 1200, "SELECT count(*) FROM pg_class "+
		"WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND has_table_privilege(oid, 'SELECT')")
}

// More grants to a stranger than one statement can revoke in its time are revoked by many.
func TestMoreGiftsThanTime(t *testing.T) {
	t.Parallel()
	r := newRaid(t, pgtest.Start(t, "17"))
	c, theirs := r.as("mine"), user(r.other.bind("theirs", ""))
	exec(t, c, "DO $$ BEGIN FOR i IN 1..12000 LOOP PERFORM lo_create(i); EXECUTE 'GRANT ALL ON LARGE OBJECT ' || i || ' TO "+
		theirs+"'; END LOOP; END $$")
	whole := 10 * time.Second
	for timeout := 60 * time.Millisecond; ; timeout *= 2 { // a busy machine may not do the smallest part in less
		if timeout > 2*time.Second {
			whole = 5 * time.Minute
		}
		r.p.SetStatementTimeout(fmt.Sprintf("%dms", timeout.Milliseconds()))
		said, err := r.other.tried(whole, 20*time.Second, r.other.unbinding("theirs", operation.Unbind))
		if err == nil {
			return
		}
		if whole > time.Minute {
			t.Fatalf("it does not end: %v; errors before: %v", err, said)
		}
	}
}

// A database whose deletion was cut off holds up no unbind.
func TestAHalfDroppedDatabaseHoldsUpNobody(t *testing.T) {
	everyAlone(t, func(t *testing.T, r *raid) {
		r.bind("mine", "")
		r.unbind("mine")
		// The server marks one so.
		r.server.Exec("postgres", "UPDATE pg_database SET datconnlimit = -2 WHERE datname = '"+r.database()+"'")
		r.unbound("mine", operation.Deprovision)
		r.deprovision()
	})
}

// An unbind hands nothing over where the database is about to be dropped.
func TestTheDeletionOfAnInstanceHandsNothingOver(t *testing.T) {
	everyAlone(t, func(t *testing.T, r *raid) {
		mine := r.bind("mine", "")
		exec(t, login(t, mine), "SET ROLE NONE", "CREATE TABLE public.mine (n int)", "GRANT ALL ON mine TO PUBLIC")
		exec(t, r.as("heir"), "BEGIN", "LOCK TABLE mine IN ACCESS SHARE MODE") // for ever
		r.unbound("mine", operation.Deprovision)
		r.unbound("heir", operation.Deprovision)
		r.deprovision()
		expect.Never(t, "the server's log", r.server.Log(), "REASSIGN OWNED BY "+user(mine))
	})
}

// A retained database is not dropped with its last binding.
func TestTheDeletionOfWhatIsRetainedHandsOver(t *testing.T) {
	everyAlone(t, func(t *testing.T, r *raid) {
		r.in.Snapshot = []byte(`{"retain_days":7}`)
		exec(t, r.as("mine"), "SET ROLE NONE", "CREATE TABLE public.mine (n int)")
		r.unbound("mine", operation.Deprovision)
		gives(t, r.server.Connect(r.database()), "tables of the owner role", 1,
			"SELECT count(*) FROM pg_tables WHERE tableowner = $1", r.owner())
	})
}

// A tenant of another broker on the same server grants something to roles that its own broker does not know. They are removed
// all the same: what is left opens nothing, has another name, and is reported.
func TestGiftsInAnotherBrokersDatabase(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		var log bytes.Buffer
		d := ready(t, s.Access(), func(o *postgres.Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		grant := d.bind("a", "")
		r := alone(t, s)
		exec(t, r.as("mine"), "CREATE TABLE given (a int)", "GRANT ALL ON given TO "+user(grant)+", "+d.owner())
		d.unbound("a", operation.Unbind)
		shut(t, "the login opens", grant)
		d.as("a") // a binding of the same id
		d.unbind("a")
		d.deprovision()
		d.holdsNothing()
		for _, role := range []string{user(grant), d.owner()} {
			expect.Same(t, "reports of "+role, 1, strings.Count(log.String(), role))
		}
		left := texts(t, s, "postgres", `SELECT rolname::text FROM pg_roles WHERE rolname ~ '^lsx' AND NOT rolcanlogin
			AND shobj_description(oid, 'pg_authid') LIKE '%`+r.database()+`%'`)
		if len(left) != 3 { // the login, and the owner role with that of readers
			t.Fatalf("left: %q", left)
		}
		for _, role := range left {
			s.Exec(r.database(), "DROP OWNED BY "+role, "DROP ROLE "+role)
		}
	})
}

// The server writes out what was changed before it drops a database, however long that
// takes: a step that does not wait for it does not end it either.
func TestADropOutlivesItsStep(t *testing.T) {
	own := func(t testing.TB, version string) *pgtest.Server { return pgtest.New(t, version) }
	pgtest.Each(t, own, func(t *testing.T, s *pgtest.Server) {
		d := ready(t, s.Access())
		checkpointer := "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
		pid := value[int](t, s.Connect("postgres"), checkpointer)
		expect.OK(t, syscall.Kill(pid, syscall.SIGSTOP))
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a busy server takes its time to answer a login
			if st, err := d.p.Deprovision(ctx, d.in); err != nil || st.Done {
				t.Errorf("while the server writes: %+v %v", st, err)
			}
			cancel()
		}
		expect.OK(t, syscall.Kill(pid, syscall.SIGCONT))
		d.within(5*time.Minute, 5*time.Second, calling(d.p.Deprovision, &d.in))
		expect.Never(t, "the server's log", s.Log(), "canceling statement")
		if n := strings.Count(s.Log(), "statement: DROP DATABASE"); n > 2 {
			t.Errorf("it was dropped by %d statements", n)
		}
	})
}
