package postgres_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
)

// holdings are all memberships by which the server walks from the broker's login, but for
// those of keepers, which it does not follow.
const holdings = `SELECT coalesce(string_agg(m.roleid::regrole || ' ' || m.admin_option || m.inherit_option || m.set_option, ', '), '')
FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
WHERE m.member = $1::regrole AND r.rolname <> 'pg_signal_backend'
  AND NOT (r.rolname ~ '^lsk' AND m.admin_option AND NOT m.inherit_option AND NOT m.set_option)`

// The broker's login is a member of keepers alone, whatever has been done: the server
// walks through all memberships of who changes a role. An instance's roles have one keeper.
func TestTheLoginIsAMemberOfKeepersAlone(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		r := newRaid(t, s)
		super := s.Connect("postgres")
		alone := func(after string) {
			t.Helper()
			if got := value[string](t, super, holdings, r.broker); got != "" {
				t.Errorf("after %s the broker's login is a member of more than keepers: %s", after, got)
			}
		}
		alone("a provision")
		r.in.Snapshot = []byte(`{"extensions":["citext"]}`)
		a, reader := r.take(r.desk, "a", ""), r.take(r.desk, "reader", `{"role":"read_only"}`)
		alone("binds")
		theirs := r.take(r.other, "theirs", "")
		c := r.session(a)
		exec(t, c, `CREATE TABLE t ()`, `GRANT ALL ON t TO `+theirs.login+`, `+theirs.owner, `SET ROLE NONE`, `SELECT lo_create(0)`)
		if got := value[int](t, super, `SELECT count(DISTINCT m.member) FROM pg_auth_members m JOIN pg_roles k ON k.oid = m.member
WHERE m.roleid::regrole::text = ANY($1) AND m.admin_option AND k.rolname ~ '^lsk' AND k.rolcreaterole AND NOT k.rolcanlogin`,
			[]string{a.login, a.owner, reader.login}); got != 1 {
			t.Errorf("the roles of an instance have %d keepers, want one", got)
		}
		r.other.unbind("theirs")
		alone("an unbind of one to whom another tenant has granted something")
		r.unbind("a")
		alone("an unbind of one that had something")
		r.unbind("reader")
		r.other.deprovision()
		r.deprovision()
		alone("deprovisions")
		if n := value[int](t, super, `SELECT count(*) FROM pg_auth_members m JOIN pg_auth_members k ON k.roleid = m.member
WHERE k.member = $1::regrole`, r.broker); n != 0 {
			t.Errorf("in the end keepers have %d roles", n)
		}
	})
}

// The rights of readers are those of their role: one more reader adds no right to any table,
// and the first of them reads what was made before it and after the last one went.
func TestReadersShareARole(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		r := newRaid(t, s)
		c := r.session(r.take(r.desk, "a", ""))
		exec(t, c, `CREATE TABLE before ()`, `CREATE SCHEMA own`, `CREATE TABLE own.one (n serial)`)
		rights := func() string {
			return value[string](t, c, `SELECT string_agg(relname || cardinality(relacl), ', ' ORDER BY relname) FROM pg_class
WHERE relname IN ('before', 'one', 'one_n_seq', 'after')`)
		}
		read := func(id string) {
			t.Helper()
			reader := r.session(r.take(r.desk, id, `{"role":"read_only"}`))
			for _, name := range []string{"before", "own.one", "own.one_n_seq"} {
				exec(t, reader, `SELECT * FROM `+name)
			}
			exec(t, c, fmt.Sprintf(`CREATE TABLE after_%s ()`, id))
			exec(t, reader, fmt.Sprintf(`SELECT * FROM after_%s`, id))
			refused(t, reader, "42501", `SET ROLE lsr`+r.owner()[3:])
		}
		read("one")
		first := rights()
		read("two")
		r.unbind("one")
		r.unbind("two")
		exec(t, c, `ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM lsr`+r.owner()[3:], `REVOKE ALL ON before FROM lsr`+r.owner()[3:])
		read("three")
		if now := rights(); now != first {
			t.Errorf("rights on tables are %s with three readers, %s with one", now, first)
		}
	})
}

// Where the server refuses a keeper what it needs, the operator is told so.
func TestAKeeperThatLacksARight(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	r := newRaid(t, s)
	super := s.Connect("postgres")
	keeper := r.keeper(super)
	exec(t, super, "ALTER ROLE "+keeper+" NOCREATEROLE")
	b := r.binding("b", "")
	_, err := r.p.Bind(t.Context(), b)
	providertest.Troubled(t, "a bind", target.Rights, err)
	if err != nil && !strings.Contains(err.Error(), "rds_password") {
		t.Errorf("it is explained by %v", err)
	}
	exec(t, super, "ALTER ROLE "+keeper+" CREATEROLE")
	r.session(r.take(r.desk, "b", ""))
}

// The function by which a keeper is asked is made again where it was dropped.
func TestAKeepersFunctionIsMadeAgain(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		r := newRaid(t, s)
		root := s.Connect(r.access.Database)
		function := value[string](t, root, `SELECT oid::regprocedure::text FROM pg_proc WHERE proname = $1`, r.keeper(root))
		exec(t, root, `DROP FUNCTION `+function)
		r.session(r.take(r.desk, "b", ""))
		got := value[string](t, root, `SELECT proacl::text || prosecdef FROM pg_proc WHERE oid = $1::regprocedure`, function)
		if strings.Contains(got, "{=") || strings.Contains(got, ",=") || !strings.HasSuffix(got, "true") {
			t.Errorf("it opens to %s", got)
		}
		expect.Same(t, "the broker's login is a member of", "", value[string](t, root, holdings, r.broker))
	})
}

// Several who are lent one role do not take it from one another.
func TestReadersAtOnce(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "18")
	access := s.Access()
	d := newDesk(t, access, func(o *postgres.Options) { o.Pool = 4 })
	d.provision()
	c := login(t, d.bind("a", ""))
	exec(t, c, `CREATE TABLE t ()`)
	var all sync.WaitGroup
	for i := range 4 {
		b := d.binding(fmt.Sprint("reader-", i), `{"role":"read_only"}`)
		all.Go(func() {
			for range 100 {
				st, err := d.p.Bind(t.Context(), b)
				if trouble, ok := errors.AsType[*target.Trouble](err); ok {
					t.Errorf("a bind beside others meets a trouble: %v", trouble)
				}
				if st.Done {
					return
				}
			}
			t.Error("a bind beside others comes to no end")
		})
	}
	all.Wait()
	for i := range 4 {
		exec(t, login(t, d.bind(fmt.Sprint("reader-", i), `{"role":"read_only"}`)), `SELECT * FROM t`)
	}
	expect.Same(t, "the broker's login is a member of", "", value[string](t, s.Connect("postgres"), holdings, access.User))
}

// A tenant reaches no keeper: not by SET ROLE, nor by the function, even where the
// operator has left the broker's database open.
func TestTenantsReachNoKeeper(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		r := newRaid(t, s)
		mine := r.take(r.desk, "mine", "")
		super := s.Connect("postgres")
		keeper := r.keeper(super)
		root := s.Connect(r.access.Database)
		function := value[string](t, root, `SELECT oid::regproc::text FROM pg_proc WHERE proname = $1`, keeper)
		exec(t, root, `GRANT CONNECT ON DATABASE `+r.access.Database+` TO PUBLIC`)
		u := expect.Get(url.Parse(mine.grant.Credentials["uri"].(string)))(t)
		u.Path = "/" + r.access.Database
		c := expect.Get(pgx.Connect(t.Context(), u.String()))(t)
		defer end(c)
		call := `SELECT ` + function + `('ALTER ROLE ` + mine.login + ` CREATEROLE')`
		refused(t, c, "42501", call)
		exec(t, root, `GRANT USAGE ON SCHEMA `+strings.Split(function, ".")[0]+` TO PUBLIC`)
		refused(t, c, "42501", call)
		refused(t, c, "42501", `SET ROLE `+keeper)
		refused(t, c, "42501", `GRANT `+keeper+` TO `+mine.login)
	})
}

// keeper is who keeps the instance's roles.
func (r *raid) keeper(super *pgx.Conn) string {
	r.t.Helper()
	return value[string](r.t, super, `SELECT m.member::regrole::text FROM pg_auth_members m
WHERE m.roleid = $1::regrole AND m.admin_option AND m.member::regrole::text ~ '^lsk'`, r.owner())
}

// A right that a tenant gives to another one's readers' role keeps that one's instance no
// longer than a right given to a login.
func TestRightsOfAStrangersReaders(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		r := newRaid(t, s)
		readers := `lsr` + r.other.owner()[3:]
		exec(t, r.session(r.take(r.desk, "mine", "")), `CREATE TABLE t ()`, `GRANT ALL ON t TO `+readers,
			`ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO `+readers)
		r.take(r.other, "theirs", `{"role":"read_only"}`)
		r.other.unbind("theirs")
		r.other.deprovision()
		if n := value[int](t, s.Connect("postgres"), `SELECT count(*) FROM pg_roles WHERE rolname = $1`, readers); n != 0 {
			t.Error("the readers' role is left")
		}
	})
}

// Keepers and what they keep serve the broker's login under another name.
func TestTheLoginIsRenamed(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "16")
	r := newRaid(t, s)
	a := r.take(r.desk, "a", "")
	exec(t, r.session(a), `SET ROLE NONE`, `SELECT lo_create(0)`)
	r.p.Close()
	renamed := r.access
	renamed.User += "too"
	s.Exec("postgres", `ALTER ROLE `+r.access.User+` RENAME TO `+renamed.User)
	broker := r.in.Broker
	d := newDesk(t, renamed, func(o *postgres.Options) { o.Broker = broker })
	d.in.Target, d.in.Epoch = r.in.Target, r.in.Epoch
	login(t, d.bind("reader", `{"role":"read_only"}`))
	d.unbind("a")
	d.unbind("reader")
	d.deprovision()
}

// Readers of a retained instance that was given back read what they read before.
func TestReadersOfWhatIsGivenBack(t *testing.T) {
	everyVersion(t, func(t *testing.T, s *pgtest.Server) {
		d := retainDesk(t, s)
		login(t, d.bind("reader", `{"role":"read_only"}`))
		d.unbind("reader")
		d.unbind("b1")
		o := d.undelete(d.retain(), "back", "op-back")
		reader := login(t, o.bind("reader", `{"role":"read_only"}`))
		exec(t, reader, `SELECT * FROM t`)
		exec(t, login(t, o.bind("b", "")), `CREATE TABLE later ()`)
		exec(t, reader, `SELECT * FROM later`)
		o.unbind("reader")
		o.unbind("b")
	})
}
