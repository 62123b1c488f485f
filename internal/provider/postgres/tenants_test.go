package postgres_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// Bindings of an instance work on the same things, see no other instance, and one
// that only reads reads all, also what is made later, and in schemas to come. In the end nothing is left.
func TestRoles(t *testing.T) {
	everyAlone(t, func(t *testing.T, d *raid) {
		a := d.as("a")
		exec(t, a, "CREATE TABLE before (n int)", "INSERT INTO before VALUES (1)", "CREATE SCHEMA own", "CREATE TABLE own.one (n serial)",
			"CREATE VIEW seen AS SELECT * FROM before", "CREATE MATERIALIZED VIEW kept AS SELECT * FROM before")
		exec(t, d.as("b"), "ALTER TABLE before ADD m int", "DROP VIEW seen")
		reading := d.bind("r", readOnly)
		r := login(t, reading)
		exec(t, a, "CREATE TABLE after (n int)", "CREATE SCHEMA later", "CREATE TABLE later.one (n int)")
		for _, table := range []string{"before", "after", "own.one", "later.one", "kept", "own.one_n_seq"} {
			exec(t, r, "SELECT * FROM "+table)
		}
		exec(t, r, "SET default_transaction_read_only = off")
		refused(t, r, "INSERT INTO before VALUES (2)", "DELETE FROM after", "CREATE TABLE t (n int)", "CREATE TEMP TABLE t (n int)",
			"CREATE SCHEMA s", "SELECT nextval('own.one_n_seq')", "TRUNCATE before", "DROP TABLE before", "SET ROLE "+d.owner())
		d.unbind("a")
		ended(t, "its unbind", a)
		d.unbind("r")
		shut(t, "a login that only read survives its unbind", reading)
		d.unbind("b")
		d.deprovision()
		d.holdsNothing()
	})
}

// At the limit of connections a tenant cannot block its own unbind; the limit stands
// again afterwards, also if the step dies in between.
func TestUnbindAtTheLimit(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access())
		d.in.Snapshot = []byte(`{"connection_limit":2}`)
		d.provision()
		a, b := d.as("a"), d.bind("b", "")
		exec(t, a, "SET ROLE NONE", "CREATE SCHEMA mine")
		login(t, b)
		shut(t, "the limit does not hold: nothing is shown", b)
		super := s.Connect("postgres")
		d.unbind("a")
		gives(t, super, "the limit after the unbind", 2, limitOf, d.database())
		exec(t, super, "ALTER DATABASE "+d.database()+" CONNECTION LIMIT -1")
		d.unbind("never-was")
		gives(t, super, "a limit that was left open, after the next step", 2, limitOf, d.database())
	})
}

// A lock of somebody else's delays an unbind and does not fail it. The login is out at once.
func TestUnbindWaitsForLocks(t *testing.T) {
	t.Parallel()
	d := alone(t, pgtest.Start(t, "17"))
	grant := d.bind("a", "")
	a, other := login(t, grant), d.as("other")
	exec(t, a, "SET ROLE NONE", "CREATE TABLE public.mine (n int)", "GRANT ALL ON mine TO PUBLIC")
	exec(t, other, "BEGIN", "LOCK TABLE mine IN ACCESS SHARE MODE", "SELECT * FROM mine")
	st, err := d.unbinding("a", operation.Unbind)(t.Context())
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
	d := alone(t, s)
	stray := login(t, d.bind("a", ""), to("anybodys"))
	defer end(stray)
	exec(t, stray, "SELECT lo_create(0)", "SET ROLE "+d.owner(), "SELECT lo_create(0)")
	d.unbind("a")
	d.deprovision()
	gives(t, s.Connect("anybodys"), "things that are left in another database", 0, "SELECT count(*) FROM pg_largeobject_metadata")
}

// Quarantine of an instance keeps all its logins out, those that only read too, and
// ends their sessions; release lets the same ones in. One that only reads, and that is
// released or made meanwhile, opens nothing before the instance is released too.
func TestQuarantineOfAnInstance(t *testing.T) {
	everyAlone(t, func(t *testing.T, d *raid) {
		a, reader := d.bind("a", ""), d.bind("r", readOnly)
		sessions := []*pgx.Conn{login(t, a), login(t, reader)}
		expect.Same(t, "how many it lists", 3, len(d.held()))
		for _, h := range d.held() {
			if h.Tags.Binding == "" {
				expect.OK(t, d.p.Quarantine(t.Context(), h))
				expect.OK(t, d.p.Quarantine(t.Context(), h))
				shut(t, "a login gets in", a, reader)
				ended(t, "the quarantine", sessions...)
				expect.OK(t, d.p.Release(t.Context(), h))
			}
		}
		login(t, a)
		login(t, reader)
		instance, itsLogin := d.holding(), d.holding()
		itsLogin.Tags = provider.BindingTagsOf(d.binding("r", ""))
		d.put(d.p.Quarantine, itsLogin)
		d.put(d.p.Quarantine, instance)
		d.put(d.p.Release, itsLogin)
		made := d.bind("new", readOnly)
		shut(t, "one that was released, or made, opens an instance in quarantine", reader, made)
		d.put(d.p.Release, instance)
		login(t, reader)
		login(t, made)
	})
}

// An update sets limits in place, and adds extensions under the owner role.
func TestUpdate(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := newDesk(t, s.Access())
		d.in.Snapshot = []byte(`{"connection_limit":2,"statement_timeout":60,"extensions":["citext","pgcrypto"]}`)
		d.in.Parameters = []byte(`{"extensions":["pgcrypto"],"locale":"C"}`)
		d.provision()
		grant := d.bind("a", "")
		d.must(d.updating("u1", `{"connection_limit":7,"extensions":["citext"]}`, `{"extensions":["citext"]}`))
		c := login(t, grant)
		gives(t, c, "statements end after", "0", "SHOW statement_timeout")
		gives(t, c, "connections", 7, limitOf, d.database())
		gives(t, c, "extensions, and whether they are the owner role's", "citext true, pgcrypto true",
			"SELECT string_agg(extname || ' ' || (extowner::regrole::text = current_user), ', ' ORDER BY extname) "+
				"FROM pg_extension WHERE extname <> 'plpgsql'")
		// A plan may name the server on which it is.
		d.must(d.updating("u0", `{"connection_limit":7,"target":"default"}`, ``))
		for what, step := range map[string]providertest.Step{
			"another server":               d.updating("u2", `{"target":"elsewhere"}`, `{}`),
			"an extension not of the plan": d.updating("u3", `{"extensions":["citext"]}`, `{"extensions":["hstore"]}`),
		} {
			_, f := d.drive(step)
			if f == nil || f.InstanceUsable == nil || !*f.InstanceUsable || f.UpdateRepeatable == nil || !*f.UpdateRepeatable {
				t.Errorf("%s: %+v", what, f)
			}
		}
	})
}

// A rebuilt record does not say what the plan was. Its instance is updated where it is, and nowhere else.
func TestUpdateOfARebuiltRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t, fakeAccess, func(o *postgres.Options) { o.Accesses["elsewhere"] = fakeAccess })
	d.p.Fake(postgres.NewFake("one", d.clock.Now))
	d.in.Snapshot = []byte(`{"target":"elsewhere"}`)
	d.provision()
	expect.Same(t, "where it is", "elsewhere", d.in.Target.Name)
	d.in.Snapshot = nil
	d.must(d.updating("u1", `{"target":"elsewhere","connection_limit":7}`, ``))
	if _, f := d.drive(d.updating("u2", `{"connection_limit":7}`, ``)); f == nil {
		t.Error("it got the plan of a server where it is not")
	}
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
			d := newDesk(t, s.Access())
			d.in.Snapshot, d.in.Parameters = []byte(`{"extensions":["citext","plpython3u"]}`), []byte(parameters)
			_, f := d.drive(calling(d.p.Provision, &d.in))
			if (f == nil) != want {
				t.Errorf("%v, want success %v", f, want)
			}
			expect.Same(t, "it lists something", want, len(d.held()) > 0)
		})
	}
}

// A database that is not ours is refused, whoever's it is; one that a crash left
// without a label is ours only beside an owner role that is.
func TestDatabasesThatAreNotOurs(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "16")
	for name, superusers := range map[string]bool{"Superusers": true, "WithoutOwnerRole": false} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, s.Access())
			super, owner := s.Connect("postgres"), d.access.User
			if superusers {
				owner = value[string](t, super, "SELECT current_user::text")
			}
			exec(t, super, "CREATE DATABASE "+d.database()+" OWNER "+owner)
			for _, step := range []providertest.Step{
				calling(d.p.Provision, &d.in), calling(d.p.Update, &d.in), calling(d.p.Deprovision, &d.in),
			} {
				if _, f := d.drive(step); f == nil {
					t.Error("it succeeds over what is not ours")
				}
			}
			gives(t, super, "databases that are left", 1, "SELECT count(*) FROM pg_database WHERE datname = $1", d.database())
		})
	}
}

// The credentials are exactly those that are promised, and each way of writing them leads in.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17", pgtest.TLS())
	d := newDesk(t, s.Access())
	d.in.Snapshot = []byte(`{"valid_days":1}`)
	d.provision()
	g := d.bind("a", "")
	c := g.Credentials
	expect.Same(t, "credentials", []string{"ca", "database", "host", "jdbcUrl", "name", "password", "port", "sslmode", "type", "uri", "username"},
		slices.Sorted(maps.Keys(c)))
	for name, value := range c {
		if value == nil {
			t.Errorf("%s is nil", name)
		}
	}
	expect.Same(t, "the database", c["name"], c["database"])
	expect.Same(t, "type, sslmode and port", []any{"postgresql", "verify-full", s.Port()}, []any{c["type"], c["sslmode"], c["port"]})
	if jdbc := c["jdbcUrl"].(string); !strings.HasPrefix(jdbc, "jdbc:postgresql://127.0.0.1:") ||
		!strings.Contains(jdbc, "&sslmode=verify-full&user="+user(g)) || !strings.Contains(jdbc, "?password=") {
		t.Error("the JDBC URL is not one")
	}
	want := d.clock.Now().Add(24 * time.Hour)
	if g.ExpiresAt.After(want) || g.ExpiresAt.Before(want.Add(-time.Minute)) || !g.RenewBefore.Before(g.ExpiresAt) {
		t.Errorf("it expires at %v, is to be renewed before %v", g.ExpiresAt, g.RenewBefore)
	}
}
