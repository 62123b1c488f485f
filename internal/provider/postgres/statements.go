package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A work is one act on a real server, under its lock.
type work struct {
	sqlServer
	ctx   context.Context
	c     *pgx.Conn // in the broker's own database
	names names
	seen  standing
}

// do makes the act.
func (w work) do(a act) error {
	switch a := a.(type) {
	case createOwner:
		return w.createOwner(a)
	case createDatabase:
		return w.createDatabase(a)
	case openDatabase:
		return w.here(`REVOKE ALL ON DATABASE %1$I FROM PUBLIC;
GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %1$I TO %2$I;
COMMENT ON DATABASE %1$I IS %3$L;
ALTER DATABASE %1$I ALLOW_CONNECTIONS true`, w.names.database, w.names.owner, a.label)
	case configure:
		return w.configure(a)
	case setLimit:
		return w.limit(w.names.database, a.limit)
	case shutDatabase:
		return w.shutDatabase(a)
	case renameInstance:
		if err := w.endInstance(); err != nil {
			return err
		}
		return w.rename(w.names, a.to, a.owner, a.database)
	case takeInstance:
		return w.rename(a.from, w.names, a.owner, a.database)
	case dropDatabase:
		return w.dropDatabase()
	case dropOwner:
		return w.dropOwner()
	case createLogin:
		return w.createLogin(a)
	case openLogin:
		return w.openLogin(a)
	case lockLogin:
		return w.lockLogin(a)
	case endSessions:
		return w.endSessions()
	case unlockLogin:
		return w.unlockLogin(a)
	case emptyLogin:
		return w.emptyLogin()
	case dropLogin:
		return w.dropLogin()
	case closeInstance:
		return w.closeInstance(a)
	case openInstance:
		return w.openInstance(a)
	case endInstance:
		return w.endInstance()
	}
	return fmt.Errorf("there is no act %T", a)
}

// here runs statements in the broker's own database, in one transaction.
func (w work) here(text string, args ...string) error { return script(w.ctx, w.c, text, args...) }

// in runs statements in another database, in one transaction.
func (w work) in(database string, text string, args ...string) error {
	return w.enter(database, func(c *pgx.Conn) error { return script(w.ctx, c, text, args...) })
}

// enter has work use a session in another database.
//
// Hazard: at a database's limit only superusers get in, so that a tenant could block
// its own unbind. The limit is lifted for as long as it takes to get in; a step that
// dies meanwhile leaves it so, and the next one sets it (standing.bounded).
func (w work) enter(database string, do func(*pgx.Conn) error) error {
	err := w.inside(w.ctx, database, do)
	if meaningOf(err) != meansFull {
		return err
	}
	label, _ := w.seen.owner.label()
	limit := limitOf(factsOf(label))
	if database != w.names.database { // another tenant's, which has granted something
		if err := w.c.QueryRow(w.ctx, `SELECT datconnlimit FROM pg_database WHERE datname = $1`, database).Scan(&limit); err != nil {
			return err
		}
	}
	if err := w.limit(database, -1); err != nil {
		return err
	}
	back := func() error { return w.limit(database, limit) }
	entered := false
	err = w.inside(w.ctx, database, func(c *pgx.Conn) error {
		entered = true
		if err := back(); err != nil {
			return err
		}
		return do(c)
	})
	if !entered {
		return errors.Join(err, back())
	}
	return err
}

// limit sets how many connections a database takes.
func (w work) limit(database string, n int) error {
	return w.here(`ALTER DATABASE %1$I CONNECTION LIMIT %2$s`, database, strconv.Itoa(n))
}

// member grants the broker's login membership in a role: to become it, and no more.
// Before version 16 membership has no such options.
func (w work) member(role string) string {
	grant := "GRANT " + pgx.Identifier{role}.Sanitize() + " TO CURRENT_USER"
	if major(w.c) >= 16 {
		grant += " WITH INHERIT FALSE, SET TRUE"
	}
	return grant
}

func (w work) createOwner(a createOwner) error {
	return w.here(`CREATE ROLE %1$I NOLOGIN;
COMMENT ON ROLE %1$I IS %2$L;
`+w.member(w.names.owner), w.names.owner, a.label)
}

func (w work) createDatabase(a createDatabase) error {
	text, args := "", []string{w.names.database, strconv.Itoa(a.limit)}
	if l := a.locale; l != nil {
		switch l.provider {
		case "i":
			text, args = " LOCALE_PROVIDER icu ICU_LOCALE %3$L LOCALE 'C'", append(args, l.icu)
		case "b":
			text, args = " LOCALE_PROVIDER builtin BUILTIN_LOCALE %3$L LOCALE 'C'", append(args, l.icu)
		default:
			text, args = " LOCALE_PROVIDER libc LC_COLLATE %3$L LC_CTYPE %4$L", append(args, l.collate, l.ctype)
		}
	}
	return w.here("CREATE DATABASE %1$I TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false CONNECTION LIMIT %2$s"+text, args...)
}

func (w work) configure(a configure) error {
	err := w.enter(w.names.database, func(c *pgx.Conn) error {
		if err := script(w.ctx, c, `REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT ALL ON SCHEMA public TO %1$I`, w.names.owner); err != nil {
			return err
		}
		for _, name := range a.extensions {
			if err := script(w.ctx, c, `SET LOCAL ROLE %1$I; CREATE EXTENSION IF NOT EXISTS %2$I SCHEMA public; RESET ROLE`,
				w.names.owner, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	timeout := "ALTER DATABASE %1$I RESET statement_timeout"
	if a.timeout != "" {
		timeout = "ALTER DATABASE %1$I SET statement_timeout = %5$L"
	}
	return w.here("ALTER DATABASE %1$I CONNECTION LIMIT %3$s; "+timeout+"; COMMENT ON ROLE %2$I IS %4$L",
		w.names.database, w.names.owner, strconv.Itoa(a.limit), a.label, a.timeout)
}

// rename has the server wait for sessions that are about to end; what still goes on
// in the database after that delays it.
func (w work) rename(from, to names, owner, database string) error {
	return w.here(`ALTER DATABASE %1$I RENAME TO %3$I; ALTER ROLE %2$I RENAME TO %4$I;
COMMENT ON ROLE %4$I IS %5$L; COMMENT ON DATABASE %3$I IS %6$L`, from.database, from.owner, to.database, to.owner, owner, database)
}

func (w work) dropOwner() error {
	for _, database := range w.seen.owner.holds {
		if err := w.disown(database, `DROP OWNED BY %1$I`, w.names.owner); err != nil {
			return err
		}
	}
	return w.here(`DROP ROLE %1$I`, w.names.owner)
}

// createLogin makes the memberships first.
//
// Hazard: to see whether the broker's login may comment on a role, or change it, the
// server walks through all roles that the login is a member of, which are all of the
// broker's. It reads them anew after each change of a membership.
func (w work) createLogin(a createLogin) error {
	text := `CREATE ROLE %1$I NOLOGIN`
	if a.verifier != "" {
		text = `CREATE ROLE %1$I LOGIN PASSWORD %5$L VALID UNTIL %6$L`
	}
	if a.readOnly {
		text += `; ` + w.admit(true) + `; ALTER ROLE %1$I IN DATABASE %2$I SET default_transaction_read_only = on`
	} else {
		text += ` IN ROLE %3$I; ALTER ROLE %1$I IN DATABASE %2$I SET role = %3$L`
	}
	return w.here(text+`; COMMENT ON ROLE %1$I IS %4$L`, w.names.login, w.names.database, w.names.owner, a.label, a.verifier,
		cmp.Or(a.until, forever))
}

// forever is how long a password is valid that does not end.
const forever = "infinity"

// admit gives a login, %1, its rights in the database, %2, or of the owner role, %3.
// An instance in quarantine lets readers in when it is released itself.
func (w work) admit(readOnly bool) string {
	label, _ := w.seen.owner.label()
	switch {
	case readOnly && label.Locked == lockedQuarantine:
		return `SELECT`
	case readOnly:
		return `GRANT CONNECT ON DATABASE %2$I TO %1$I`
	}
	return `GRANT %3$I TO %1$I`
}

func (w work) openLogin(a openLogin) error {
	if a.readOnly {
		if err := w.readable(); err != nil {
			return err
		}
	}
	return w.here(`ALTER ROLE %1$I LOGIN PASSWORD %2$L VALID UNTIL %3$L; COMMENT ON ROLE %1$I IS %4$L`,
		w.names.login, a.verifier, cmp.Or(a.until, forever), a.label)
}

// readable lets a login read all that the owner role has, and will have. The names
// come from the server, quoted by it. It may be run again: what is made meanwhile is
// the default privileges' affair.
func (w work) readable() error {
	return w.enter(w.names.database, func(c *pgx.Conn) error {
		names := func(query string) (string, error) {
			var list string
			err := c.QueryRow(w.ctx, query, w.names.owner).Scan(&list)
			return strings.ReplaceAll(list, "%", "%%"), err // it is put into what format reads
		}
		schemas, err := names(`SELECT coalesce(string_agg(format('%I', nspname), ', '), '') FROM pg_namespace
WHERE pg_get_userbyid(nspowner) = $1`)
		if err != nil {
			return err
		}
		text := `GRANT USAGE ON SCHEMA public TO %2$I;
SET LOCAL ROLE %1$I;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO %2$I;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO %2$I;
ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO %2$I;
`
		if schemas != "" {
			text += "GRANT USAGE ON SCHEMA " + schemas + " TO %2$I;\n"
		}
		if err := script(w.ctx, c, text+"RESET ROLE", w.names.owner, w.names.login); err != nil {
			return err
		}
		tables, err := names(`SELECT coalesce(string_agg(format('%I.%I', n.nspname, r.relname), ', '), '')
FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE pg_get_userbyid(r.relowner) = $1 AND r.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND r.relpersistence <> 't'`)
		if err != nil || tables == "" {
			return err
		}
		return script(w.ctx, c, "SET LOCAL ROLE %1$I; GRANT SELECT ON "+tables+" TO %2$I; RESET ROLE", w.names.owner, w.names.login)
	})
}

// lockLogin takes the rights first, which no tenant can hold a lock on, so that
// nobody comes in again.
//
// Hazard: a tenant that has changed its password in a transaction that is still open,
// or prepared, holds a lock on its role. So both end before the role is changed.
func (w work) lockLogin(a lockLogin) error {
	text := `SELECT`
	if w.seen.database.exists() {
		text += `; REVOKE ALL ON DATABASE %2$I FROM %1$I`
	}
	if w.seen.owner.exists() {
		text += `; REVOKE %3$I FROM %1$I`
	}
	if err := w.here(text, w.names.login, w.names.database, w.names.owner); err != nil {
		return err
	}
	if err := w.endSessions(); err != nil {
		return err
	}
	text = `ALTER ROLE %1$I NOLOGIN`
	if !a.keep {
		text += ` PASSWORD NULL`
		if err := w.rollBack(preparedOf, w.names.owner, w.names.database, w.names.login); err != nil {
			return err
		}
	}
	if err := w.here(text+`; COMMENT ON ROLE %1$I IS %2$L`, w.names.login, a.label); err != nil {
		return err
	}
	return w.endSessions()
}

// asPrivileged lets the broker's login do, until the transaction ends, what roles
// may: it has none of their privileges otherwise. Before version 16 it has them for
// good.
func (w work) asPrivileged(text string, roles ...string) string {
	before, after := "", ""
	for _, role := range roles {
		name := pgx.Identifier{role}.Sanitize()
		if major(w.c) < 16 {
			before += "GRANT " + name + " TO CURRENT_USER; "
			continue
		}
		before += "GRANT " + name + " TO CURRENT_USER WITH INHERIT TRUE, SET TRUE; "
		if strings.HasPrefix(role, prefixOwner) { // it stays a member, as before
			after += "; " + w.member(role)
		} else {
			after += "; REVOKE " + name + " FROM CURRENT_USER GRANTED BY CURRENT_USER"
		}
	}
	return before + text + after
}

// endWait is how long a session that is to end is waited for, in milliseconds.
const endWait = "500"

// endSessions changes no membership where there is nothing to end: see createLogin.
func (w work) endSessions() error {
	some := false
	if err := w.c.QueryRow(w.ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = $1)`, w.names.login).Scan(&some); err != nil ||
		!some {
		return err
	}
	return w.here(w.asPrivileged(`SELECT pg_terminate_backend(pid, %2$s) FROM pg_stat_activity WHERE usename = %1$L`, w.names.login),
		w.names.login, endWait)
}

func (w work) unlockLogin(a unlockLogin) error {
	text := `ALTER ROLE %1$I NOLOGIN`
	if a.login {
		text = `ALTER ROLE %1$I LOGIN`
	}
	if w.seen.owner.exists() && w.seen.database.exists() {
		text += "; " + w.admit(a.readOnly)
	}
	return w.here(text+`; COMMENT ON ROLE %1$I IS %4$L`, w.names.login, w.names.database, w.names.owner, a.label)
}

func (w work) emptyLogin() error {
	if w.seen.login.prepared > 0 {
		if err := w.rollBack(preparedOf, w.names.owner, w.names.database, w.names.login); err != nil {
			return err
		}
	}
	for _, database := range w.seen.login.holds {
		text, roles := `DROP OWNED BY %1$I`, []string{w.names.login}
		if w.seen.owner.exists() {
			roles = append(roles, w.names.owner) // who has granted it what it has
			if database == w.names.database {
				text = `REASSIGN OWNED BY %1$I TO %2$I; ` + text
			}
		}
		if err := w.disown(database, text, roles...); err != nil {
			return err
		}
	}
	return nil
}

// disown takes from the first of the roles what it has in a database. A right is
// revoked in the name of who granted it, or else the server only warns: any tenant
// may grant something to another one's roles, whose names it can read.
func (w work) disown(database, text string, roles ...string) error {
	rows, err := w.c.Query(w.ctx, `SELECT DISTINCT r.rolname::text FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = $1) AND s.refclassid = 'pg_authid'::regclass AND s.deptype = 'o'
  AND r.rolname ~ '^ls[ob]' ORDER BY 1`, database)
	if err != nil {
		return err
	}
	granters, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	all := slices.Clone(roles)
	for _, granter := range granters {
		if !slices.Contains(all, granter) {
			all = append(all, granter)
		}
	}
	return w.in(database, w.asPrivileged(text, all...), roles[0], w.names.owner)
}

// rollBack ends the prepared transactions that a query names, with their databases
// and owners: each in its database, as its owner, which no transaction may do.
func (w work) rollBack(which string, args ...any) error {
	rows, err := w.c.Query(w.ctx, which, args...)
	if err != nil {
		return err
	}
	type waiting struct{ GID, Database, Owner string }
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[waiting])
	if err != nil {
		return err
	}
	for _, x := range all {
		if err := w.here(w.member(x.Owner)); err != nil {
			return err
		}
		err := w.enter(x.Database, func(c *pgx.Conn) error {
			if err := script(w.ctx, c, `SET ROLE %1$I`, x.Owner); err != nil {
				return err
			}
			return script(w.ctx, c, `ROLLBACK PREPARED %1$L`, x.GID)
		})
		if err != nil {
			return err
		}
		if x.Owner != w.names.owner {
			if err := w.here(`REVOKE %1$I FROM CURRENT_USER GRANTED BY CURRENT_USER`, x.Owner); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutPrepared rolls back the transactions in the database that wait for their
// second phase: they keep it from being dropped or renamed.
func (w work) withoutPrepared() error {
	if w.seen.database.prepared == 0 {
		return nil
	}
	const all = `SELECT x.gid, x.database::text, x.owner::text FROM pg_prepared_xacts x WHERE x.database = $1 AND x.owner ~ '^ls[ob]'`
	return w.rollBack(all, w.names.database)
}

func (w work) shutDatabase(a shutDatabase) error {
	if err := w.withoutPrepared(); err != nil {
		return err
	}
	return w.here(`ALTER DATABASE %1$I ALLOW_CONNECTIONS false; COMMENT ON ROLE %2$I IS %3$L`, w.names.database, w.names.owner, a.label)
}

// dropDatabase ends the sessions of bindings that were left: the server would end them
// for whoever has their privileges, which the broker's login has not.
func (w work) dropDatabase() error {
	if err := w.withoutPrepared(); err != nil {
		return err
	}
	if err := w.endInstance(); err != nil {
		return err
	}
	return w.here(`DROP DATABASE %1$I WITH (FORCE)`, w.names.database)
}

func (w work) dropLogin() error {
	text := `DROP ROLE %1$I`
	if w.seen.database.exists() {
		text = `REVOKE ALL ON DATABASE %2$I FROM %1$I; ` + text
	}
	return w.here(text, w.names.login, w.names.database)
}

// closeInstance takes the right to connect from whoever has it, and ends sessions.
func (w work) closeInstance(a closeInstance) error {
	readers, err := w.readers()
	if err != nil {
		return err
	}
	text, args := `REVOKE CONNECT ON DATABASE %1$I FROM %2$I`, []string{w.names.database, w.names.owner, a.label}
	for _, name := range readers {
		args = append(args, name)
		text += fmt.Sprintf("; REVOKE CONNECT ON DATABASE %%1$I FROM %%%d$I", len(args))
	}
	if err := w.here(text+`; COMMENT ON ROLE %2$I IS %3$L`, args...); err != nil {
		return err
	}
	return w.endInstance()
}

func (w work) openInstance(a openInstance) error {
	readers, err := w.readers()
	if err != nil {
		return err
	}
	text, args := `GRANT CONNECT ON DATABASE %1$I TO %2$I`, []string{w.names.database, w.names.owner, a.label}
	for _, name := range readers {
		args = append(args, name)
		text += fmt.Sprintf("; GRANT CONNECT ON DATABASE %%1$I TO %%%d$I", len(args))
	}
	return w.here(text+`; COMMENT ON ROLE %2$I IS %3$L`, args...)
}

// readers are the logins of the instance that only read, and are not locked: the
// others get in as the owner role.
func (w work) readers() (names []string, err error) {
	label, _ := w.seen.owner.label()
	rows, err := w.c.Query(w.ctx, `SELECT r.rolname::text, c.description FROM pg_roles r
JOIN pg_shdescription c ON c.objoid = r.oid AND c.classoid = 'pg_authid'::regclass
WHERE r.rolname ~ '^lsb' AND c.description LIKE 'longshore:%' ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	var name, comment string
	_, err = pgx.ForEachRow(rows, []any{&name, &comment}, func() error {
		login, ok := (thing{comment: comment}).label()
		if ok && of(login.Tags).SameIDs(label.Tags) && factsOf(login).ReadOnly && login.Locked == "" {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func (w work) endInstance() error {
	rows, err := w.c.Query(w.ctx, `SELECT DISTINCT usename::text FROM pg_stat_activity WHERE datname = $1 AND usename ~ '^lsb'`,
		w.names.database)
	if err != nil {
		return err
	}
	logins, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(logins) == 0 {
		return err
	}
	return w.here(w.asPrivileged(`SELECT pg_terminate_backend(pid, %2$s) FROM pg_stat_activity WHERE datname = %1$L AND usename ~ '^lsb'`,
		logins...), w.names.database, endWait)
}
