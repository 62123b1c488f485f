package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// login connects with a grant, and must.
func login(t *testing.T, g *provider.Grant) *pgx.Conn {
	t.Helper()
	return expect.Get(connect(t, g))(t)
}

func refused(t *testing.T, c *pgx.Conn, code, statement string) {
	t.Helper()
	_, err := c.Exec(t.Context(), statement)
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || !strings.HasPrefix(e.Code, code) {
		t.Errorf("%s: %v, want the error %s", statement, err, code)
	}
}

// value reads the one value of a query.
func value[T any](t *testing.T, c *pgx.Conn, query string, args ...any) (v T) {
	t.Helper()
	expect.OK(t, c.QueryRow(t.Context(), query, args...).Scan(&v), query)
	return v
}

// Bindings of an instance work on the same things, see no other instance, and one
// that only reads reads all, also what is made later, and in schemas to come.
func TestRoles(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.provision()
		a, b := login(t, d.bind("a", "")), login(t, d.bind("b", ""))
		exec(t, a, "CREATE TABLE before (n int)", "INSERT INTO before VALUES (1)", "CREATE SCHEMA own", "CREATE TABLE own.one (n serial)",
			"CREATE VIEW seen AS SELECT * FROM before", "CREATE MATERIALIZED VIEW kept AS SELECT * FROM before")
		exec(t, b, "ALTER TABLE before ADD m int", "DROP VIEW seen")
		reading := d.bind("r", `{"role":"read_only"}`)
		r := login(t, reading)
		exec(t, a, "CREATE TABLE after (n int)", "CREATE SCHEMA later", "CREATE TABLE later.one (n int)")
		for _, table := range []string{"before", "after", "own.one", "later.one", "kept", "own.one_n_seq"} {
			exec(t, r, "SELECT * FROM "+table)
		}
		exec(t, r, "SET default_transaction_read_only = off")
		for _, statement := range []string{
			"INSERT INTO before VALUES (2)", "DELETE FROM after", "CREATE TABLE t (n int)", "CREATE TEMP TABLE t (n int)", "CREATE SCHEMA s",
			"SELECT nextval('own.one_n_seq')", "TRUNCATE before", "DROP TABLE before",
			"SET ROLE " + value[string](t, a, "SELECT current_user::text"),
		} {
			refused(t, r, "42501", statement)
		}
		d.unbind("r")
		shut(t, "a login that only read survives its unbind", reading)
	})
}

// After an unbind, all things of the binding are the owner's, and no trick of the binding keeps it in.
func TestUnbindEndsAll(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.provision()
		grant := d.bind("a", "")
		a, other := login(t, grant), login(t, d.bind("other", ""))
		exec(t, a, "SET ROLE NONE", "CREATE SCHEMA mine", "CREATE TABLE mine.t (n int)", "INSERT INTO mine.t VALUES (7)",
			"CREATE FUNCTION mine.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'", "CREATE VIEW mine.v AS SELECT * FROM mine.t",
			"ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC", "ALTER USER CURRENT_USER PASSWORD 'mine'",
			"ALTER USER CURRENT_USER SET work_mem = '8MB'", "SELECT lo_create(0)")
		exec(t, other, "CREATE TABLE granted (n int)", fmt.Sprintf("GRANT ALL ON granted TO %s WITH GRANT OPTION", grant.Credentials["username"]))
		// Open and prepared transactions hold locks on the role itself.
		exec(t, a, "BEGIN", "ALTER USER CURRENT_USER PASSWORD 'prepared'", "CREATE TABLE mine.p (n int)", "PREPARE TRANSACTION 'one'")
		exec(t, other, "BEGIN", "CREATE TABLE q (n int)", fmt.Sprintf("GRANT SELECT ON q TO %s", grant.Credentials["username"]),
			"PREPARE TRANSACTION 'two'")
		exec(t, other, "BEGIN", "CREATE TABLE innocent (n int)", "PREPARE TRANSACTION 'three'")
		d.unbind("a")
		if _, err := a.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Error("a session survives the unbind")
		}
		super := s.Connect("postgres")
		if n := value[int](t, super, "SELECT count(*) FROM pg_roles WHERE rolname = $1", grant.Credentials["username"]); n != 0 {
			t.Error("the login is still there")
		}
		if got := value[string](t, super, "SELECT string_agg(gid, ' ') FROM pg_prepared_xacts WHERE database = $1",
			grant.Credentials["name"]); got != "three" {
			t.Errorf("prepared transactions: %q, want the innocent one alone", got)
		}
		if n := value[int](t, other, "SELECT n FROM mine.v"); n != 7 {
			t.Errorf("the owner reads %d of what the binding left", n)
		}
		exec(t, other, "ALTER TABLE mine.t ADD m int", "DROP SCHEMA mine CASCADE")
		d.unbind("other")
		d.deprovision()
	})
}

// At the limit of connections a tenant cannot block its own unbind; the limit stands
// again afterwards, also if the step dies in between.
func TestUnbindAtTheLimit(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.in.Snapshot = []byte(`{"connection_limit":2}`)
		d.provision()
		a, b := login(t, d.bind("a", "")), d.bind("b", "")
		exec(t, a, "SET ROLE NONE", "CREATE SCHEMA mine")
		name, limit := b.Credentials["name"].(string), "SELECT datconnlimit FROM pg_database WHERE datname = $1"
		login(t, b)
		if _, err := connect(t, b); err == nil {
			t.Fatal("the limit does not hold: nothing is shown")
		}
		super := s.Connect("postgres")
		d.unbind("a")
		expect.Same(t, "after the unbind the limit is", 2, value[int](t, super, limit, name))
		exec(t, super, "ALTER DATABASE "+name+" CONNECTION LIMIT -1")
		d.unbind("never-was")
		if got := value[int](t, super, limit, name); got != 2 {
			t.Errorf("a limit that was left open is %d after the next step", got)
		}
	})
}

// A lock of somebody else's delays an unbind and does not fail it. The login is out at once.
func TestUnbindWaitsForLocks(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	d := newDesk(t, s.Access(), nil)
	d.provision()
	grant := d.bind("a", "")
	a, other := login(t, grant), login(t, d.bind("other", ""))
	exec(t, a, "SET ROLE NONE", "CREATE TABLE public.mine (n int)", "GRANT ALL ON mine TO PUBLIC")
	exec(t, other, "BEGIN", "LOCK TABLE mine IN ACCESS SHARE MODE", "SELECT * FROM mine")
	u := d.binding("a", "")
	u.Secret, u.Parameters = nil, nil
	st, err := d.p.Unbind(t.Context(), u)
	if _, failed := errors.AsType[*provider.Failure](err); failed || st.Done {
		t.Errorf("behind a lock: done %v, error %v", st.Done, err)
	}
	shut(t, "behind a lock, the login is not out", grant)
	exec(t, other, "COMMIT")
	d.unbind("a")
}

// An unbind also removes what the login left in another database.
func TestStrays(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "18")
	s.Exec("postgres", "CREATE DATABASE anybodys")
	d := newDesk(t, s.Access(), nil)
	d.provision()
	grant := d.bind("a", "")
	a := login(t, grant)
	owner := value[string](t, a, "SELECT current_user::text")
	uri := strings.Replace(grant.Credentials["uri"].(string), "/"+grant.Credentials["name"].(string), "/anybodys", 1)
	stray := expect.Get(pgx.Connect(t.Context(), uri))(t)
	defer func() { _ = stray.Close(context.Background()) }()
	exec(t, stray, "SELECT lo_create(0)", "SET ROLE "+owner, "SELECT lo_create(0)")
	d.unbind("a")
	d.deprovision()
	super := s.Connect("anybodys")
	if n := value[int](t, super, "SELECT count(*) FROM pg_largeobject_metadata"); n != 0 {
		t.Errorf("%d things are left in another database", n)
	}
}

// Quarantine of an instance keeps all its logins out, those that only read too, and
// ends their sessions; release lets the same ones in.
func TestQuarantineOfAnInstance(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.provision()
		grants := []*provider.Grant{d.bind("a", ""), d.bind("r", `{"role":"read_only"}`)}
		sessions := []*pgx.Conn{login(t, grants[0]), login(t, grants[1])}
		held, _, err := d.p.List(t.Context(), "")
		if err != nil || len(held) != 3 {
			t.Fatalf("it lists %v: %v", held, err)
		}
		for _, h := range held {
			if h.Tags.Binding == "" {
				for _, do := range []func(context.Context, provider.Holding) error{d.p.Quarantine, d.p.Quarantine} {
					expect.OK(t, do(t.Context(), h))
				}
				for i, g := range grants {
					shut(t, fmt.Sprintf("login %d gets in", i), g)
					if _, err := sessions[i].Exec(t.Context(), "SELECT 1"); err == nil {
						t.Errorf("session %d goes on", i)
					}
				}
				expect.OK(t, d.p.Release(t.Context(), h))
			}
		}
		for _, g := range grants {
			login(t, g)
		}
	})
}

// An update sets limits in place, and adds extensions under the owner role.
func TestUpdate(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access(), nil)
		d.in.Snapshot = []byte(`{"connection_limit":2,"statement_timeout":60,"extensions":["citext","pgcrypto"]}`)
		d.in.Parameters = []byte(`{"extensions":["pgcrypto"],"locale":"C"}`)
		d.provision()
		grant := d.bind("a", "")
		update := func(id, snapshot, parameters string) *provider.Failure {
			in := d.in
			in.Operation = provider.Operation{ID: id, Kind: operation.Update}
			in.Former, in.Snapshot, in.Parameters = d.in.Snapshot, []byte(snapshot), []byte(parameters)
			_, f := d.drive(func(ctx context.Context) (provider.Status, error) { in.Epoch = d.in.Epoch; return d.p.Update(ctx, in) })
			return f
		}
		if f := update("u1", `{"connection_limit":7,"extensions":["citext"]}`, `{"extensions":["citext"]}`); f != nil {
			t.Fatal(f)
		}
		c := login(t, grant)
		expect.Same(t, "statements end after", "0", value[string](t, c, "SHOW statement_timeout"))
		if got := value[int](t, c, "SELECT datconnlimit FROM pg_database WHERE datname = current_database()"); got != 7 {
			t.Errorf("%d connections", got)
		}
		if got := value[string](t, c, "SELECT string_agg(extname || ' ' || (extowner::regrole::text = current_user), ', ' ORDER BY extname) "+
			"FROM pg_extension WHERE extname <> 'plpgsql'"); got != "citext true, pgcrypto true" {
			t.Errorf("extensions, and whether they are the owner role's: %s", got)
		}
		if f := update("u0", `{"connection_limit":7,"target":"default"}`, ``); f != nil {
			t.Errorf("a plan that names the server on which it is: %+v", f)
		}
		for what, f := range map[string]*provider.Failure{
			"another server":               update("u2", `{"target":"elsewhere"}`, `{}`),
			"an extension not of the plan": update("u3", `{"extensions":["citext"]}`, `{"extensions":["hstore"]}`),
		} {
			if f == nil || f.InstanceUsable == nil || !*f.InstanceUsable || f.UpdateRepeatable == nil || !*f.UpdateRepeatable {
				t.Errorf("%s: %+v", what, f)
			}
		}
	})
}

// A choice that the plan or the server does not allow fails before anything is made.
func TestChoices(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	for parameters, want := range map[string]bool{
		`{"locale":"C"}`: true, `{"locale":"POSIX"}`: true, `{"locale":"pg_c_utf8"}`: true, `{"locale":"xx_XX"}`: false,
		`{"locale":"C'; DROP ROLE x; --"}`: false, `{"locale":"default"}`: false, `{"extensions":["citext"]}`: true,
		`{"extensions":["plpython3u"]}`: false, `{"extensions":["dblink"]}`: false, `{"extensions":"citext"}`: false,
	} {
		t.Run(parameters, func(t *testing.T) {
			d := newDesk(t, s.Access(), func(o *postgres.Options) {
				o.Broker = "broker-" + hosted.Name("x", provider.Tags{Platform: parameters})
			})
			d.in.Snapshot, d.in.Parameters = []byte(`{"extensions":["citext","plpython3u"]}`), []byte(parameters)
			_, f := d.drive(func(ctx context.Context) (provider.Status, error) { return d.p.Provision(ctx, d.in) })
			if (f == nil) != want {
				t.Errorf("%v, want success %v", f, want)
			}
			held, _, err := d.p.List(t.Context(), "")
			if err != nil || len(held) > 0 != want {
				t.Errorf("it lists %v: %v", held, err)
			}
		})
	}
}

// A database that is not ours is refused, whoever's it is; one that a crash left
// without a label is ours only beside an owner role that is.
func TestDatabasesThatAreNotOurs(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "16")
	for name, tc := range map[string]struct {
		owner string // "" for the broker's login
		ours  bool
	}{"Superusers": {"postgres", false}, "WithoutOwnerRole": {"", false}} {
		t.Run(name, func(t *testing.T) {
			access := s.Access()
			d := newDesk(t, access, func(o *postgres.Options) { o.Broker = "broker-not-ours-" + name })
			owner := access.User
			if tc.owner != "" {
				owner = value[string](t, s.Connect("postgres"), "SELECT current_user::text")
			}
			database, _, _ := namesAt(provider.TagsOf(d.in))
			s.Exec("postgres", "CREATE DATABASE "+database+" OWNER "+owner)
			for _, step := range []func(context.Context, provider.Instance) (provider.Status, error){d.p.Provision, d.p.Update, d.p.Deprovision} {
				if _, f := d.drive(func(ctx context.Context) (provider.Status, error) { return step(ctx, d.in) }); f == nil {
					t.Error("it succeeds over what is not ours")
				}
			}
			if n := value[int](t, s.Connect("postgres"), "SELECT count(*) FROM pg_database WHERE datname = $1", database); n != 1 {
				t.Error("it is gone")
			}
		})
	}
}

// Passwords are in no statement, the broker's login belongs to no binding, and a
// session in a tenant's database looks nothing up in the tenant's schemas.
func TestHygiene(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	access := s.Access()
	d := newDesk(t, access, func(o *postgres.Options) { o.Pool = 2 })
	d.provision()
	grant := d.bind("a", "")
	a := login(t, grant)
	// An operator that a comparison of names would pick up, and a function in the way.
	exec(t, a, "CREATE FUNCTION public.caught(name, text) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN "+
		"EXECUTE 'CREATE TABLE public.ran_as_' || current_user || ' (n int)'; RETURN true; END $$",
		"CREATE OPERATOR public.= (LEFTARG = name, RIGHTARG = text, FUNCTION = public.caught)",
		"CREATE FUNCTION public.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT 'DROP TABLE x' $$",
		"SET ROLE NONE", "CREATE TABLE public.mine (n int)")
	d.bind("r", `{"role":"read_only"}`)
	d.unbind("r")
	d.unbind("a")
	b := login(t, d.bind("b", ""))
	if n := value[int](t, b, "SELECT count(*) FROM pg_class WHERE relname LIKE 'ran_as_%'"); n != 0 {
		t.Error("a tenant's operator ran")
	}
	said := s.Log()
	if strings.Contains(said, grant.Credentials["password"].(string)) || !strings.Contains(said, "SCRAM-SHA-256$4096") {
		t.Error("the server's log tells a password, or does not log what is looked for")
	}
	super := s.Connect("postgres")
	if got := value[string](t, super, "SELECT coalesce(string_agg(m.roleid::regrole::text, ', '), '') "+
		"FROM pg_auth_members m WHERE m.member = $1::regrole AND (m.inherit_option OR m.set_option) AND m.roleid::regrole::text LIKE 'lsb%'",
		access.User); got != "" {
		t.Errorf("the broker's login is a member of bindings' roles: %s", got)
	}
	if n := value[int](t, super, "SELECT count(*) FROM pg_auth_members m WHERE m.member = $1::regrole AND m.inherit_option "+
		"AND m.roleid <> 'pg_signal_backend'::regrole",
		access.User); n != 0 {
		t.Errorf("the broker's login inherits of %d roles", n)
	}
}

// The credentials are exactly those that are promised, and each way of writing them leads in.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17", pgtest.TLS())
	d := newDesk(t, s.Access(), nil)
	d.in.Snapshot = []byte(`{"valid_days":1}`)
	d.provision()
	g := d.bind("a", "")
	var names []string
	for _, name := range []string{"type", "database", "uri", "jdbcUrl", "host", "port", "name", "username", "password", "sslmode", "ca"} {
		if g.Credentials[name] == nil {
			names = append(names, name)
		}
	}
	if g.Credentials["type"] != "postgresql" || g.Credentials["database"] != g.Credentials["name"] {
		t.Errorf("it is of the type %v, for the database %v", g.Credentials["type"], g.Credentials["database"])
	}
	if len(names) > 0 || len(g.Credentials) != 11 || g.Credentials["sslmode"] != "verify-full" || g.Credentials["port"] != s.Port() {
		t.Errorf("missing %v of %d, sslmode %v", names, len(g.Credentials), g.Credentials["sslmode"])
	}
	if jdbc := g.Credentials["jdbcUrl"].(string); !strings.HasPrefix(jdbc, "jdbc:postgresql://127.0.0.1:") ||
		!strings.Contains(jdbc, "&sslmode=verify-full&user="+g.Credentials["username"].(string)) || !strings.Contains(jdbc, "?password=") {
		t.Error("the JDBC URL is not one")
	}
	want := d.clock.Now().Add(24 * time.Hour)
	if g.ExpiresAt.After(want) || g.ExpiresAt.Before(want.Add(-time.Minute)) || !g.RenewBefore.Before(g.ExpiresAt) {
		t.Errorf("it expires at %v, is to be renewed before %v", g.ExpiresAt, g.RenewBefore)
	}
}
