package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
GRANT CONNECT ON DATABASE %1$I TO %4$I;
COMMENT ON DATABASE %1$I IS %3$L;
ALTER DATABASE %1$I ALLOW_CONNECTIONS true`, w.names.database, w.names.owner, a.label, w.names.reader)
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

// enter has work use a session in another database.
//
// Hazard: at a database's limit only superusers get in, so that a tenant could block
// its own unbind, and nobody gets into one that is retained. The limit is lifted, and the
// database opened, for as long as it takes to get in; a step that dies meanwhile leaves
// the limit so, and the next one sets it (standing.bounded). Nobody has the right to
// connect to what is retained.
func (w work) enter(database string, do func(*pgx.Conn) error) error {
	return w.enterDespite(database, nil, do)
}

func (w work) enterDespite(database string, lifted []sense, do func(*pgx.Conn) error) error {
	entered := false
	inside := func(c *pgx.Conn) error {
		entered = true
		return do(c)
	}
	err := w.inside(w.ctx, database, inside)
	why := meaningOf(err)
	if entered || err == nil || slices.Contains(lifted, why) {
		return err
	}
	lift, back := "ALLOW_CONNECTIONS true", "ALLOW_CONNECTIONS false"
	switch why {
	case meansShut:
	case meansFull:
		label, _ := w.seen.owner.label()
		limit := limitOf(factsOf(label))
		if database != w.names.database { // another tenant's, which has granted something
			if err := w.c.QueryRow(w.ctx, `SELECT datconnlimit FROM pg_database WHERE datname = $1`, database).Scan(&limit); err != nil {
				return err
			}
		}
		lift, back = "CONNECTION LIMIT -1", "CONNECTION LIMIT "+strconv.Itoa(limit)
	default:
		return err
	}
	alter := func(how string) error { return w.here("ALTER DATABASE %1$I "+how, database) }
	if err := alter(lift); err != nil {
		return err
	}
	err = w.enterDespite(database, append(lifted, why), func(c *pgx.Conn) error {
		entered = true
		if err := alter(back); err != nil {
			return err
		}
		return do(c)
	})
	if !entered {
		return errors.Join(err, alter(back))
	}
	return err
}

// limit sets how many connections a database takes.
func (w work) limit(database string, n int) error {
	return w.here(`ALTER DATABASE %1$I CONNECTION LIMIT %2$s`, database, strconv.Itoa(n))
}

func (w work) createOwner(a createOwner) error {
	return w.keep(w.names.owner, `CREATE ROLE %1$I NOLOGIN; CREATE ROLE %2$I NOLOGIN; COMMENT ON ROLE %1$I IS %3$L`,
		w.names.owner, w.names.reader, a.label)
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
		if err := script(w.ctx, c, `REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT ALL ON SCHEMA public TO %1$I;
GRANT USAGE ON SCHEMA public TO %2$I`, w.names.owner, w.names.reader); err != nil || len(a.extensions) == 0 {
			return err
		}
		return w.lentIn(c, []string{w.names.owner}, func() error { return w.extend(c, a.extensions) })
	})
	if err != nil {
		return err
	}
	timeout := "ALTER DATABASE %1$I RESET statement_timeout"
	if a.timeout != "" {
		timeout = "ALTER DATABASE %1$I SET statement_timeout = %5$L"
	}
	return w.asks([]line{{"", "ALTER DATABASE %1$I CONNECTION LIMIT %3$s; " + timeout}, {w.names.owner, "COMMENT ON ROLE %2$I IS %4$L"}},
		w.names.database, w.names.owner, strconv.Itoa(a.limit), a.label, a.timeout)
}

// extend makes extensions in the name of the owner role.
func (w work) extend(c *pgx.Conn, names []string) error {
	for _, name := range names {
		if err := script(w.ctx, c, `SET LOCAL ROLE %1$I; CREATE EXTENSION IF NOT EXISTS %2$I SCHEMA public; RESET ROLE`,
			w.names.owner, name); err != nil {
			return err
		}
	}
	return nil
}

// rename has the server wait for sessions that are about to end; what still goes on
// in the database after that delays it.
func (w work) rename(from, to names, owner, database string) error {
	return w.asks([]line{
		{"", `ALTER DATABASE %1$I RENAME TO %3$I; COMMENT ON DATABASE %3$I IS %6$L`},
		{from.owner, `ALTER ROLE %2$I RENAME TO %4$I; ALTER ROLE %7$I RENAME TO %8$I; COMMENT ON ROLE %4$I IS %5$L`},
	}, from.database, from.owner, to.database, to.owner, owner, database, from.reader, to.reader)
}

func (w work) dropOwner() error {
	if err := w.disown(w.seen.owner.holds, "", w.names.owner, w.names.reader); err != nil {
		return err
	}
	return w.keep(w.names.owner, `DROP ROLE IF EXISTS %2$I; DROP ROLE %1$I`, w.names.owner, w.names.reader)
}

// createLogin has the login itself say as whom it works: no function may, and for the
// broker's login the server would walk through all roles.
func (w work) createLogin(a createLogin) error {
	text, of := `CREATE ROLE %1$I NOLOGIN`, w.names.owner
	if a.verifier != "" {
		text = `CREATE ROLE %1$I LOGIN PASSWORD %5$L VALID UNTIL %6$L`
	}
	text += `; COMMENT ON ROLE %1$I IS %4$L; ` + admit(a.readOnly)
	lines := []line{{of, text + `; ALTER ROLE %1$I IN DATABASE %2$I SET default_transaction_read_only = on`}}
	if !a.readOnly {
		lines = []line{
			{of, text + `; GRANT %1$I TO SESSION_USER WITH INHERIT FALSE, SET TRUE`},
			{"", `SET LOCAL ROLE %1$I; ALTER ROLE %1$I IN DATABASE %2$I SET role = %3$L; RESET ROLE`},
			{of, `REVOKE %1$I FROM SESSION_USER GRANTED BY CURRENT_USER`},
		}
	}
	return w.asks(lines, w.names.login, w.names.database, w.names.owner, a.label, a.verifier, cmp.Or(a.until, forever), w.names.reader)
}

// forever is how long a password is valid that does not end.
const forever = "infinity"

// admit gives a login, %1, what the owner role may, %3, or the readers', %7.
func admit(readOnly bool) string {
	if readOnly {
		return `GRANT %7$I TO %1$I WITH INHERIT TRUE, SET FALSE`
	}
	return `GRANT %3$I TO %1$I`
}

func (w work) openLogin(a openLogin) error {
	if a.readOnly {
		if err := w.readable(); err != nil {
			return err
		}
	}
	return w.keep(w.names.login, `ALTER ROLE %1$I LOGIN PASSWORD %2$L VALID UNTIL %3$L; COMMENT ON ROLE %1$I IS %4$L`,
		w.names.login, a.verifier, cmp.Or(a.until, forever), a.label)
}

// readable lets the readers' role read all that the owner role has, and will have. For
// all but the first reader that is so already, unless somebody has taken it back, or
// has handed something over to the owner role.
func (w work) readable() error {
	return w.enter(w.names.database, func(c *pgx.Conn) error {
		text := ""
		if err := c.QueryRow(w.ctx, lacking, w.names.owner, w.names.reader).Scan(&text); err != nil || text == "" {
			return err
		}
		return w.lentIn(c, []string{w.names.owner}, func() error {
			return script(w.ctx, c, `SET LOCAL ROLE %1$I; `+strings.ReplaceAll(text, "%", "%%"), w.names.owner)
		})
	})
}

// lacking are the statements that let the readers' role $2 read what the owner role $1
// has, and will have; none if it may. The server itself quotes what is in them.
const lacking = `
SELECT coalesce(string_agg(format('%s TO %I', line, $2::name), '; '), '') FROM (
  SELECT format('GRANT USAGE ON SCHEMA %I', nspname) FROM pg_namespace
  WHERE pg_get_userbyid(nspowner) = $1::name AND NOT has_schema_privilege($2::name, oid, 'USAGE')
UNION ALL
  SELECT format('GRANT SELECT ON %I.%I', n.nspname, r.relname) FROM pg_class r JOIN pg_namespace n ON n.oid = r.relnamespace
  WHERE pg_get_userbyid(r.relowner) = $1::name AND r.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND r.relpersistence <> 't'
    AND NOT CASE r.relkind WHEN 'S' THEN has_sequence_privilege($2::name, r.oid, 'SELECT')
      ELSE has_table_privilege($2::name, r.oid, 'SELECT') END
UNION ALL
  SELECT 'ALTER DEFAULT PRIVILEGES GRANT ' || rights FROM (VALUES
    ('r'::"char", 'SELECT ON TABLES'), ('S', 'SELECT ON SEQUENCES'), ('n', 'USAGE ON SCHEMAS')) of_all (type, rights)
  WHERE NOT EXISTS (SELECT FROM pg_default_acl a, aclexplode(a.defaclacl) x WHERE a.defaclobjtype = of_all.type AND a.defaclnamespace = 0
    AND pg_get_userbyid(a.defaclrole) = $1::name AND pg_get_userbyid(x.grantee) = $2::name)) of_these (line)`

// lockLogin takes the rights first, which no tenant can hold a lock on, so that
// nobody comes in again.
//
// Hazard: a tenant that has changed its password in a transaction that is still open,
// or prepared, holds a lock on its role. So both end before the role is changed.
func (w work) lockLogin(a lockLogin) error {
	if w.seen.owner.exists() {
		if err := w.keep(w.names.owner, `REVOKE %1$I, %2$I FROM %3$I`, w.names.owner, w.names.reader, w.names.login); err != nil {
			return err
		}
	}
	if err := w.endSessions(); err != nil {
		return err
	}
	text := `ALTER ROLE %1$I NOLOGIN`
	if !a.keep {
		text += ` PASSWORD NULL`
		if err := w.rollBack(preparedOf, w.names.owner, w.names.database, w.names.login); err != nil {
			return err
		}
	}
	if err := w.keep(w.names.login, text+`; COMMENT ON ROLE %1$I IS %2$L`, w.names.login, a.label); err != nil {
		return err
	}
	return w.endSessions()
}

// endWait is how long a session that is to end is waited for, in milliseconds.
const endWait = "500"

func (w work) endSessions() error {
	return w.terminate(`usesysid`, w.seen.login.thing)
}

// terminate ends sessions of bindings, each by the keeper of its role: those whose column
// has that id. Where there are none it changes no membership. The view's own column of
// names would have the server read all roles.
func (w work) terminate(column string, of thing) error {
	id := strconv.FormatUint(uint64(of.id), 10)
	rows, err := w.c.Query(w.ctx, `SELECT name FROM (SELECT DISTINCT pg_get_userbyid(usesysid)::text FROM pg_stat_activity
WHERE `+column+` = $1::oid) of_all (name) WHERE name ~ '^lsb'`, id)
	if err != nil {
		return err
	}
	logins, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(logins) == 0 {
		return err
	}
	args, lines := []string{id, endWait}, []line{}
	for _, login := range logins {
		args = append(args, login)
		lines = append(lines, line{login, strings.ReplaceAll(`GRANT %x$I TO CURRENT_USER WITH INHERIT TRUE;
SELECT pg_terminate_backend(pid, %2$s) FROM pg_stat_activity WHERE usename = %x$L AND `+column+` = %1$L;
REVOKE %x$I FROM CURRENT_USER GRANTED BY CURRENT_USER`, "%x", "%"+strconv.Itoa(len(args)))})
	}
	return w.asks(lines, args...)
}

func (w work) unlockLogin(a unlockLogin) error {
	text := `ALTER ROLE %1$I NOLOGIN`
	if a.login {
		text = `ALTER ROLE %1$I LOGIN`
	}
	if w.seen.owner.exists() && w.seen.database.exists() {
		text += "; " + admit(a.readOnly)
	}
	return w.keep(w.names.login, text+`; COMMENT ON ROLE %1$I IS %4$L`, w.names.login, w.names.database, w.names.owner, a.label, "", "",
		w.names.reader)
}

func (w work) emptyLogin() error {
	if w.seen.login.prepared > 0 {
		if err := w.rollBack(preparedOf, w.names.owner, w.names.database, w.names.login); err != nil {
			return err
		}
	}
	heir := ""
	if w.seen.owner.exists() {
		heir = w.names.owner
	}
	return w.disown(w.seen.login.holds, heir, w.names.login)
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
		err := w.enter(x.Database, func(c *pgx.Conn) error {
			return w.lent([]string{x.Owner}, func() error { return script(w.ctx, c, `SET ROLE %1$I`, x.Owner) },
				func() error { return script(w.ctx, c, `ROLLBACK PREPARED %1$L`, x.GID) })
		})
		if err != nil {
			return err
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
	if err := w.strangers(); err != nil {
		return err
	}
	return w.labelling(`ALTER DATABASE %1$I ALLOW_CONNECTIONS false`, a.label)
}

// labelling changes the database, in one transaction with the owner's label.
func (w work) labelling(text, label string) error {
	return w.asks([]line{{"", text}, {w.names.owner, `COMMENT ON ROLE %2$I IS %4$L`}},
		w.names.database, w.names.owner, w.names.reader, label)
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
	return w.drop()
}

const (
	// dropTimeout ends the statement that drops a database.
	dropTimeout = "15min"
	// dropWait is how long a step waits for that. The next one looks how far it is.
	dropWait = 5 * time.Second
)

// drop has the server drop the database in a session of its own, which outlives the step:
// the server writes out all that was changed in any database first, and one that was cut
// off would have that begin anew. Its lock says that it is under way.
func (w work) drop() error {
	cfg := w.cfg.Copy()
	cfg.RuntimeParams["statement_timeout"] = dropTimeout
	c, err := pgx.ConnectConfig(w.ctx, cfg)
	if err != nil {
		return err
	}
	locked := false
	if err := c.QueryRow(w.ctx, "SELECT pg_try_advisory_lock($1)", keyOf("drop "+w.names.database)).Scan(&locked); err != nil || !locked {
		end(c)
		return cmp.Or(err, errGoesOn)
	}
	dropped := make(chan error, 1)
	go func() {
		defer end(c)
		dropped <- script(context.WithoutCancel(w.ctx), c, `DROP DATABASE %1$I WITH (FORCE)`, w.names.database)
	}()
	select {
	case err := <-dropped:
		return err
	case <-w.ctx.Done():
	case <-time.After(dropWait):
	}
	return errGoesOn
}

func (w work) dropLogin() error {
	if err := w.takeBack(); err != nil {
		return err
	}
	return w.keep(w.names.login, `DROP ROLE %1$I`, w.names.login)
}

// closeInstance takes the right to connect from whoever has it, and ends sessions.
func (w work) closeInstance(a closeInstance) error {
	if err := w.labelling(`REVOKE CONNECT ON DATABASE %1$I FROM %2$I, %3$I`, a.label); err != nil {
		return err
	}
	return w.endInstance()
}

func (w work) openInstance(a openInstance) error {
	return w.labelling(`GRANT CONNECT ON DATABASE %1$I TO %2$I, %3$I`, a.label)
}

func (w work) endInstance() error {
	return w.terminate(`datid`, w.seen.database.thing)
}
