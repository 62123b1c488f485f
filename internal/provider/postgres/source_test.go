package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// programs are the server's own.
func programs(t *testing.T, s *pgtest.Server) *pgcopy.Programs {
	t.Helper()
	return expect.Get(pgcopy.Find(t.Context(), s.Bin()))(t)
}

// copying is a desk whose broker can copy, with its instance.
func copying(t *testing.T, s *pgtest.Server) *desk {
	t.Helper()
	return ready(t, s.Access(), copies(programs(t, s)))
}

// restored is another instance that is restored from this one.
func (d *desk) restored(id string) *desk {
	o := d.life(id, "op-"+id)
	o.in.Source = &provider.Source{
		Platform: d.in.Platform, ID: d.in.ID, Incarnation: d.in.Incarnation, Origin: d.in.Origin,
		Snapshot: d.in.Snapshot, Target: d.in.Target,
	}
	return o
}

// An instance that was undeleted is restored from as any other is: its names derive from its origin.
func TestRestoreFromWhatWasUndeleted(t *testing.T) {
	t.Parallel()
	d := copying(t, pgtest.Start(t, "17"))
	exec(t, d.as("b1"), "CREATE TABLE t (a int)", "INSERT INTO t VALUES (7)")
	d.unbind("b1")
	o := d.undelete(d.retain(), "back", "op-back").restored("copy")
	o.mustRestore(nil)
	gives(t, o.as("b2"), "restored, it has", 7, "SELECT a FROM t")
}

// restore drives a restore to its end, as a worker does, or to where until says.
func (d *desk) restore(until func(provider.Status) bool) *provider.Failure {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Minute)
	defer cancel()
	for {
		st, err := d.p.Provision(ctx, d.in)
		if st.State != nil {
			d.in.State = *st.State
		}
		failure, failed := errors.AsType[*provider.Failure](err)
		switch {
		case failed:
			return failure
		case err != nil:
			d.t.Logf("passing: %v", err)
		case st.Done, until != nil && until(st):
			return nil
		}
		if err := waiting.For(ctx, min(max(st.After, time.Millisecond), 20*time.Millisecond)); err != nil {
			d.t.Fatalf("the restore does not end: %v, %+v", err, st.Description)
		}
	}
}

// mustRestore is restore to a good end.
func (d *desk) mustRestore(until func(provider.Status) bool) {
	d.t.Helper()
	if f := d.restore(until); f != nil {
		d.t.Fatal(f.Message)
	}
}

// ownsAll requires that the owner role owns all that users have made in its database.
func (d *desk) ownsAll(s *pgtest.Server) {
	d.t.Helper()
	foreign := texts(d.t, s, d.database(), `SELECT DISTINCT pg_get_userbyid(o.owner)::text || ' owns ' || o.name FROM (
SELECT relowner, relname, relnamespace FROM pg_class UNION ALL SELECT proowner, proname, pronamespace FROM pg_proc
UNION ALL SELECT typowner, typname, typnamespace FROM pg_type
UNION ALL SELECT nspowner, nspname, oid FROM pg_namespace WHERE nspname <> 'public'
UNION ALL SELECT lomowner, 'large object', 'public'::regnamespace FROM pg_largeobject_metadata) o(owner, name, space)
JOIN pg_namespace n ON n.oid = o.space WHERE n.nspname !~ '^(pg_|information_schema)' AND pg_get_userbyid(o.owner) <> $1`, d.owner())
	if len(foreign) > 0 {
		d.t.Errorf("what is not the owner's: %q", foreign)
	}
}

// leaves requires that no login of the instance's copies is left.
func (d *desk) leaves(s *pgtest.Server, when string) {
	d.t.Helper()
	var names []string
	for _, prefix := range []string{"lscr", "lscw", "lscb"} {
		names = append(names, hosted.Name(prefix, provider.TagsOf(d.in)))
	}
	if left := texts(d.t, s, "postgres", "SELECT rolname::text FROM pg_roles WHERE rolname = ANY($1)", names); len(left) > 0 {
		d.t.Errorf("%s: logins are left: %q", when, left)
	}
}

// A restored database has what the other one had when it began, all of it its own
// owner's, and none of what bindings of the other one were granted.
func TestRestore(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := copying(t, s)
		c := d.as("b")
		evilName := "\"x\n\\! touch /tmp/pwned\n; DROP TABLE kept; --\"\"y\""
		exec(t, c, "CREATE TABLE kept (id serial PRIMARY KEY, what text)",
			"INSERT INTO kept (what) SELECT 'row ' || g FROM generate_series(1, 1000) g",
			"CREATE SCHEMA mine", "CREATE TABLE mine."+evilName+" (a int)", "COMMENT ON TABLE kept IS E'one\\n\\\\! two'",
			"CREATE VIEW seen AS SELECT count(*) AS n FROM kept", "SELECT lo_from_bytea(0, 'large')",
			"CREATE POLICY p ON kept TO "+c.Config().User+" USING (true)", "GRANT SELECT ON kept TO "+c.Config().User)
		r := d.restored("j")
		r.mustRestore(nil)
		rc := r.as("rb")
		gives(t, rc, "rows, rows seen through the view, large objects and odd names", []int{1000, 1000, 1, 1}, `SELECT ARRAY[
(SELECT count(*) FROM kept), (SELECT n FROM seen), (SELECT count(*) FROM pg_largeobject_metadata),
(SELECT count(*) FROM pg_class WHERE relnamespace = 'mine'::regnamespace AND relname LIKE E'x\n%touch%')]`)
		exec(t, rc, "INSERT INTO kept (what) VALUES ('new')", "DROP VIEW seen", "DROP TABLE kept")
		r.ownsAll(s)
		r.leaves(s, "restored")
		d.unbind("b")
		r.unbind("rb")
		r.deprovision()
		d.deprovision()
	})
}

// A restore that dies on the way, with its process, is begun again by another one, from an empty database; a deletion ends one.
func TestARestoreDiesOnTheWay(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	d := copying(t, s)
	exec(t, d.as("b"), "CREATE TABLE big AS SELECT g, repeat('x', 500) FROM generate_series(1, 60000) g")
	r := d.restored("j")
	began := func(st provider.Status) bool { return strings.Contains(st.Description, "copied") }
	r.mustRestore(began)
	r.p.Close() // its copy ends somewhere
	r.reopen(copies(programs(t, s)))
	r.mustRestore(nil)
	gives(t, r.as("rb"), "begun again, rows", 60000, "SELECT count(*) FROM big")
	another := r.life("k", "op-k")
	another.in.Source = r.in.Source
	another.mustRestore(began)
	another.deprovision()
	another.leaves(s, "a deletion in the middle")
	gives(t, s.Connect("postgres"), "databases after a deletion in the middle", 0,
		"SELECT count(*) FROM pg_database WHERE datname = $1", another.database())
}

// A tenant's code that runs in a restore blocks no deletion, even if it locks the role of the copy by an
// uncommitted change of the password.
func TestATenantHoldsUpNoEndOfACopy(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	d := copying(t, s)
	exec(t, d.as("b1"), `CREATE FUNCTION held(int) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
IF session_user::text LIKE 'lscw%' THEN
  SET ROLE NONE;
  EXECUTE format('ALTER ROLE %I PASSWORD %L', session_user, 'known');
  PERFORM pg_sleep(600);
END IF;
RETURN true; END $$`, `CREATE TABLE t (a int CHECK (public.held(a)))`, `INSERT INTO t VALUES (1)`)
	o := d.restored("copy")
	o.mustRestore(func(provider.Status) bool {
		return len(texts(t, s, "postgres", `SELECT query FROM pg_stat_activity
WHERE usename LIKE 'lscw%' AND wait_event = 'PgSleep' AND datname = $1`, o.database())) > 0
	})
	o.within(20*time.Second, 20*time.Second, calling(o.p.Deprovision, &o.in))
	o.leaves(s, "a deletion in the middle")
}

// A restore that is impossible is refused, or fails with advice, and leaves nothing.
func TestRestoresThatFail(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	d := copying(t, s)
	c := d.as("b")
	exec(t, c, "CREATE TABLE forced (a int)", "INSERT INTO forced VALUES (1)")
	for name, test := range map[string]struct {
		prepare, undo string
		change        func(r *desk)
		says          string
	}{
		"NoPrograms":          {change: func(r *desk) { r.reopen() }, says: "no pg_dump"},
		"AnotherServer":       {change: func(r *desk) { r.in.Source.Target.Identity = "another" }, says: "another server"},
		"AnotherIncarnation":  {change: func(r *desk) { r.in.Source.Incarnation = "before" }, says: "not there any more"},
		"Gone":                {change: func(r *desk) { r.in.Source.ID = "gone" }, says: "not there any more"},
		"TooLarge":            {change: func(r *desk) { r.in.Snapshot = []byte(`{"size_warning":1}`) }, says: "Order a larger plan"},
		"ExtensionNotInPlan":  {prepare: "CREATE EXTENSION citext", undo: "DROP EXTENSION citext", says: "citext"},
		"ForcedRowSecurity":   {prepare: forced, undo: "ALTER TABLE forced NO FORCE ROW LEVEL SECURITY", says: "NO FORCE ROW LEVEL SECURITY"},
		"OfALoginThatHasLeft": {prepare: left, undo: undoLeft, says: "owner role"},
	} {
		exec(t, c, test.prepare) // an empty text does nothing
		r := d.restored("r" + strings.ToLower(name))
		if test.change != nil {
			test.change(r)
		}
		f := r.restore(nil)
		if f == nil || !strings.Contains(f.Message, test.says) {
			t.Errorf("%s: failed as %+v, want %q", name, f, test.says)
		}
		r.deprovision()
		r.leaves(s, name)
		exec(t, c, test.undo)
	}
	s.Exec("postgres", "ALTER DATABASE "+d.database()+" CONNECTION LIMIT 1") // c has it
	f := d.restored("late").restore(nil)
	if f == nil || !strings.Contains(f.Message, "no connection left. Close some, and try again") {
		t.Errorf("NoConnectionLeft: failed as %+v", f)
	}
}

const (
	forced = "ALTER TABLE forced ENABLE ROW LEVEL SECURITY; ALTER TABLE forced FORCE ROW LEVEL SECURITY"
	left   = `SET ROLE NONE; CREATE SCHEMA own CREATE TABLE apart (a int);
DO $$ DECLARE r text; BEGIN
FOR r IN SELECT rolname FROM pg_roles WHERE pg_has_role(current_user, oid, 'MEMBER') AND rolname <> current_user LOOP
  EXECUTE format('REVOKE ALL ON SCHEMA own FROM %I', r);
  EXECUTE format('REVOKE ALL ON own.apart FROM %I', r);
END LOOP; END $$`
	undoLeft = "DROP SCHEMA own CASCADE; RESET ROLE"
)

// evil is a tenant's function that leaves its role, and then changes another tenant's
// password, joins its owner role and makes a superuser, as far as it can.
func evil(victim, owner, self, made string) string {
	attempt := func(statement string) string {
		return fmt.Sprintf("BEGIN EXECUTE %s; EXCEPTION WHEN OTHERS THEN NULL; END;\n", "$q$"+statement+"$q$")
	}
	return "CREATE FUNCTION public.evil() RETURNS boolean LANGUAGE plpgsql VOLATILE AS $f$ BEGIN\n" +
		attempt("SET ROLE NONE") + attempt("RESET SESSION AUTHORIZATION") +
		attempt(fmt.Sprintf("ALTER ROLE %s PASSWORD 'taken'", victim)) + attempt(fmt.Sprintf("GRANT %s TO %s", owner, self)) +
		attempt(fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'taken'", made)) + attempt("ALTER ROLE CURRENT_USER CREATEROLE") +
		attempt("COPY (SELECT 1) TO PROGRAM 'true'") + "RETURN true; END $f$"
}

// The places from which a dump or a restore runs a tenant's code.
var evilPlaces = []string{
	"CREATE FUNCTION public.evil_fixed(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN PERFORM public.evil(); RETURN $1; END $f$",
	"CREATE FUNCTION public.same(a varchar, b name) RETURNS boolean LANGUAGE sql AS 'SELECT public.evil()'",
	"CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = name, FUNCTION = public.same)",
	"CREATE DOMAIN public.watched AS int CHECK (public.evil())",
	"CREATE TABLE public.checked (a int CHECK (public.evil()), d public.watched, e int DEFAULT public.evil_fixed(1), " +
		"g int GENERATED ALWAYS AS (public.evil_fixed(a)) STORED)",
	"INSERT INTO public.checked (a, d) VALUES (1, 1)",
	"CREATE INDEX watching ON public.checked (public.evil_fixed(a)) WHERE public.evil_fixed(a) > 0",
	"CREATE VIEW public.pg_roles AS SELECT public.evil() AS rolname",
	"CREATE MATERIALIZED VIEW public.kept AS SELECT public.evil() AS a, 'x'::varchar OPERATOR(public.=) 'x'::name AS b",
	"CREATE FUNCTION public.fired() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN PERFORM public.evil(); RETURN NEW; END $f$",
	"CREATE TRIGGER fires BEFORE INSERT OR UPDATE ON public.checked FOR EACH ROW EXECUTE FUNCTION public.fired()",
	"CREATE STATISTICS public.extended ON (public.evil_fixed(a)), (a + 1) FROM public.checked",
	"ANALYZE public.checked",
	"ALTER TABLE public.checked ENABLE ROW LEVEL SECURITY",
	"CREATE POLICY watches ON public.checked USING (public.evil())",
}

// No code of a tenant's that a copy runs has the broker's rights, wherever it hides. The same code has them where the
// broker's own login restores, also under SET ROLE (for which it has to be let): the attack is one.
func TestATenantsCodeInACopy(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := copying(t, s)
		victim := d.life("victim", "op-victim")
		victim.provision()
		login := user(victim.bind("v", ""))
		c := d.as("b")
		made := "made" + d.owner()[:8] + s.Version
		exec(t, c, append([]string{evil(login, victim.owner(), c.Config().User, made)}, evilPlaces...)...)
		authority := func() []string {
			return append(texts(t, s, "postgres", `SELECT rolname || ' ' || rolcreaterole || rolsuper || coalesce(rolpassword, '') FROM pg_authid
WHERE rolname = $1 OR rolname = $2 OR rolname = $3 ORDER BY 1`, login, c.Config().User, made),
				texts(t, s, "postgres", `SELECT m.member::regrole || ' in ' || m.roleid::regrole FROM pg_auth_members m
WHERE m.roleid = $1::regrole ORDER BY 1`, victim.owner())...)
		}
		before := authority()
		var saved bytes.Buffer
		expect.OK(t, d.p.Dump(t.Context(), d.in, &saved))
		r := d.restored("j")
		r.mustRestore(nil)
		expect.Same(t, "what others may do, before and after a tenant's code in a backup or a restore", before, authority())
		r.ownsAll(s)
		r.leaves(s, "the copy")
		d.leaves(s, "the copied")
		d.unbind("b")
		r.deprovision()
		for name, owner := range map[string]func(n *desk) string{
			"ByTheBrokersLogin":             func(*desk) string { return d.access.User },
			"ByTheBrokersLoginUnderSetRole": (*desk).owner,
		} {
			id := "naive" + strings.ToLower(name)
			n := d.life(id, "op-"+id)
			n.provision()
			s.Exec("postgres", "GRANT "+n.owner()+" TO "+d.access.User+" WITH INHERIT FALSE, SET TRUE")
			naive := pgcopy.Login{Database: n.database(), Owner: owner(n), Name: d.access.User, Password: d.access.Password}
			before := authority()
			_ = programs(t, s).Restore(t.Context(), d.access, naive, bytes.NewReader(saved.Bytes()))
			if cmp.Equal(before, authority()) {
				t.Errorf("%s: the attack did nothing: it proves nothing", name)
			}
		}
	})
}
