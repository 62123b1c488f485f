package postgres_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider/target"
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

// keepersAlone requires that the broker's login is a member of keepers alone.
func keepersAlone(t *testing.T, super *pgx.Conn, after, broker string) {
	t.Helper()
	gives(t, super, "after "+after+", the broker's login is a member of more than keepers", "", holdings, broker)
}

// The broker's login is a member of keepers alone, whatever has been done: the server
// walks through all memberships of who changes a role. An instance's roles have one keeper.
// A right that another tenant gives to its readers' role keeps an instance no longer than a right given to a login.
func TestTheLoginIsAMemberOfKeepersAlone(t *testing.T) {
	everyRaid(t, func(t *testing.T, r *raid) {
		super := r.server.Connect("postgres")
		keepersAlone(t, super, "a provision", r.broker)
		r.in.Snapshot = []byte(`{"extensions":["citext"]}`)
		a, reader := r.bind("a", ""), r.bind("reader", readOnly)
		keepersAlone(t, super, "binds", r.broker)
		theirs := r.other.bind("theirs", "")
		readers := r.other.readers()
		exec(t, login(t, a), `CREATE TABLE t ()`, `GRANT ALL ON t TO `+user(theirs)+`, `+r.other.owner()+`, `+readers,
			`ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO `+readers, `SET ROLE NONE`, `SELECT lo_create(0)`)
		r.other.bind("their-reader", readOnly)
		gives(t, super, "keepers of an instance's roles", 1, `SELECT count(DISTINCT m.member)
FROM pg_auth_members m JOIN pg_roles k ON k.oid = m.member
WHERE m.roleid::regrole::text = ANY($1) AND m.admin_option AND k.rolname ~ '^lsk' AND k.rolcreaterole AND NOT k.rolcanlogin`,
			[]string{user(a), r.owner(), user(reader)})
		r.other.unbind("theirs", "their-reader")
		keepersAlone(t, super, "an unbind of one to whom another tenant has granted something", r.broker)
		r.unbind("a")
		keepersAlone(t, super, "an unbind of one that had something", r.broker)
		r.unbind("reader")
		r.other.deprovision()
		gives(t, super, "readers' roles that are left", 0, `SELECT count(*) FROM pg_roles WHERE rolname = $1`, readers)
		r.deprovision()
		keepersAlone(t, super, "deprovisions", r.broker)
		gives(t, super, "roles that keepers have in the end", 0, `SELECT count(*)
FROM pg_auth_members m JOIN pg_auth_members k ON k.roleid = m.member WHERE k.member = $1::regrole`, r.broker)
	})
}

// The rights of readers are those of their role: one more reader adds no right to any table,
// and the first of them reads what was made before it and after the last one went.
func TestReadersShareARole(t *testing.T) {
	everyAlone(t, func(t *testing.T, r *raid) {
		c := r.as("a")
		exec(t, c, `CREATE TABLE before ()`, `CREATE SCHEMA own`, `CREATE TABLE own.one (n serial)`)
		rights := func() string {
			return value[string](t, c, `SELECT string_agg(relname || cardinality(relacl), ', ' ORDER BY relname) FROM pg_class
WHERE relname IN ('before', 'one', 'one_n_seq', 'after')`)
		}
		read := func(id string) {
			t.Helper()
			reader := r.reads(id)
			exec(t, reader, `SELECT * FROM before`, `SELECT * FROM own.one`, `SELECT * FROM own.one_n_seq`)
			exec(t, c, `CREATE TABLE after_`+id+` ()`)
			exec(t, reader, `SELECT * FROM after_`+id)
			refused(t, reader, `SET ROLE `+r.readers())
		}
		read("one")
		first := rights()
		read("two")
		r.unbind("one", "two")
		exec(t, c, `ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM `+r.readers(), `REVOKE ALL ON before FROM `+r.readers())
		read("three")
		expect.Same(t, "rights on tables with one reader, and with three", first, rights())
	})
}

// Where the server refuses a keeper what it needs, the operator is told so.
func TestAKeeperThatLacksARight(t *testing.T) {
	t.Parallel()
	r := alone(t, pgtest.Start(t, "17"))
	super := r.server.Connect("postgres")
	keeper := r.keeper(super)
	exec(t, super, "ALTER ROLE "+keeper+" NOCREATEROLE")
	_, err := r.p.Bind(t.Context(), r.binding("b", ""))
	providertest.Troubled(t, "a bind", target.Rights, err)
	expect.Says(t, "what explains it", fmt.Sprint(err), "rds_password")
	exec(t, super, "ALTER ROLE "+keeper+" CREATEROLE")
	r.as("b")
}

// Several who are lent one role do not take it from one another.
func TestReadersAtOnce(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "18")
	d := ready(t, s.Access(), pool(4))
	exec(t, d.as("a"), `CREATE TABLE t ()`)
	var all sync.WaitGroup
	for i := range 4 {
		b := d.binding(fmt.Sprint("reader-", i), readOnly)
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
		exec(t, d.reads(fmt.Sprint("reader-", i)), `SELECT * FROM t`)
	}
	keepersAlone(t, s.Connect("postgres"), "binds at once", d.access.User)
}

// A tenant reaches no keeper: not by SET ROLE, nor by the function, even where the operator has left the broker's database open.
// The function by which a keeper is asked is made again where it was dropped, and opens to nobody else then either.
func TestTenantsReachNoKeeper(t *testing.T) {
	everyAlone(t, func(t *testing.T, r *raid) {
		mine := r.bind("mine", "")
		root := r.server.Connect(r.access.Database)
		keeper := r.keeper(root)
		function := value[string](t, root, `SELECT oid::regproc::text FROM pg_proc WHERE proname = $1`, keeper)
		signature := value[string](t, root, `SELECT oid::regprocedure::text FROM pg_proc WHERE proname = $1`, keeper)
		exec(t, root, `GRANT CONNECT ON DATABASE `+r.access.Database+` TO PUBLIC`)
		c := login(t, mine, to(r.access.Database))
		defer end(c)
		call := `SELECT ` + function + `('ALTER ROLE ` + user(mine) + ` CREATEROLE')`
		refused(t, c, call)
		exec(t, root, `GRANT USAGE ON SCHEMA `+strings.Split(function, ".")[0]+` TO PUBLIC`)
		refused(t, c, call, `SET ROLE `+keeper, `GRANT `+keeper+` TO `+user(mine))
		exec(t, root, `DROP FUNCTION `+signature)
		r.as("b")
		got := value[string](t, root, `SELECT proacl::text || prosecdef FROM pg_proc WHERE oid = $1::regprocedure`, signature)
		if strings.Contains(got, "{=") || strings.Contains(got, ",=") || !strings.HasSuffix(got, "true") {
			t.Errorf("it opens to %s", got)
		}
		refused(t, c, call)
		keepersAlone(t, root, "a bind", r.broker)
	})
}

// keeper is who keeps the instance's roles.
func (r *raid) keeper(super *pgx.Conn) string {
	r.t.Helper()
	return value[string](r.t, super, `SELECT m.member::regrole::text FROM pg_auth_members m
WHERE m.roleid = $1::regrole AND m.admin_option AND m.member::regrole::text ~ '^lsk'`, r.owner())
}

// Keepers and what they keep serve the broker's login under another name.
func TestTheLoginIsRenamed(t *testing.T) {
	t.Parallel()
	r := alone(t, pgtest.Start(t, "16"))
	exec(t, r.as("a"), `SET ROLE NONE`, `SELECT lo_create(0)`)
	r.p.Close()
	r.access.User += "too"
	r.server.Exec("postgres", `ALTER ROLE `+r.broker+` RENAME TO `+r.access.User)
	r.reopen()
	r.reads("reader")
	r.unbind("a", "reader")
	r.deprovision()
}
