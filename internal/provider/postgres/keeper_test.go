package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore/longshore/internal/pgserver/pgtest"
	"github.com/longshore/longshore/internal/provider"
)

// holdings are all memberships by which the server walks from the broker's login, but for
// those of keepers, which it does not follow.
const holdings = `SELECT coalesce(string_agg(m.roleid::regrole || ' ' || m.admin_option || m.inherit_option || m.set_option, ', '), '')
FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
WHERE m.member = $1::regrole AND NOT (r.rolname ~ '^lsk' AND m.admin_option AND NOT m.inherit_option AND NOT m.set_option)`

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

// What readers may is the readers' role's: one more reader adds no right to any table,
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
	keeper := value[string](t, super, `SELECT m.member::regrole::text FROM pg_auth_members m WHERE m.roleid = $1::regrole AND m.admin_option
AND m.member::regrole::text ~ '^lsk'`, r.owner())
	exec(t, super, "ALTER ROLE "+keeper+" NOCREATEROLE")
	b := r.binding("b", "")
	_, err := r.p.Bind(t.Context(), b)
	troubled(t, "a bind", provider.TroubleRights, err)
	if err != nil && !strings.Contains(err.Error(), "rds_password") {
		t.Errorf("it is explained by %v", err)
	}
	exec(t, super, "ALTER ROLE "+keeper+" CREATEROLE")
	r.session(r.take(r.desk, "b", ""))
}
