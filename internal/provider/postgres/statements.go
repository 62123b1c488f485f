package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/hosted"
)

// A work is one act on a real server, under its lock.
type work struct {
	sqlServer
	ctx   context.Context
	c     *pgx.Conn // in the broker's own database
	names names
	seen  seen
}

// do makes the act.
func (w work) do(a any) error {
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
	case relabel:
		return w.relabel(a)
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
// the limit so, and the next one sets it (seen.bounded). Nobody has the right to
// connect to what is retained.
func (w work) enter(database string, do func(*pgx.Conn) error) error {
	return w.enterDespite(database, nil, do)
}

func (w work) enterDespite(database string, lifted []hosted.Class, do func(*pgx.Conn) error) error {
	entered := false
	inside := func(c *pgx.Conn) error {
		entered = true
		return do(c)
	}
	err := w.inside(w.ctx, database, inside)
	why := classOf(err)
	if entered || err == nil || slices.Contains(lifted, why) {
		return err
	}
	lift, back := "ALLOW_CONNECTIONS true", "ALLOW_CONNECTIONS false"
	switch why {
	case shut:
	case crowded:
		label, _ := w.seen.owner.label()
		limit := limitOf(detailsOf(label))
		if database != w.names.database { // another tenant's, which has granted something
			err := w.c.QueryRow(w.ctx, `SELECT datconnlimit FROM pg_database WHERE datname = $1`, database).Scan(&limit)
			if err != nil {
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
	return w.here("CREATE DATABASE %1$I TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false CONNECTION LIMIT %2$s"+
		text, args...)
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
	return w.asks([]line{
		{"", "ALTER DATABASE %1$I CONNECTION LIMIT %3$s; " + timeout},
		{w.names.owner, "COMMENT ON ROLE %2$I IS %4$L"},
	}, w.names.database, w.names.owner, strconv.Itoa(a.limit), a.label, a.timeout)
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

func (w work) dropOwner() error {
	if err := w.disown(w.seen.owner.holds, "", w.names.owner, w.names.reader); err != nil {
		return err
	}
	return w.keep(w.names.owner, `DROP ROLE IF EXISTS %2$I; DROP ROLE %1$I`, w.names.owner, w.names.reader)
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
// second phase: they keep it from being dropped.
func (w work) withoutPrepared() error {
	if w.seen.database.prepared == 0 {
		return nil
	}
	const all = `SELECT x.gid, x.database::text, x.owner::text FROM pg_prepared_xacts x
WHERE x.database = $1 AND x.owner ~ '^ls[ob]'`
	return w.rollBack(all, w.names.database)
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
	err = c.QueryRow(w.ctx, "SELECT pg_try_advisory_lock($1)", keyOf("drop "+w.names.database)).Scan(&locked)
	if err != nil || !locked {
		end(c)
		return cmp.Or(err, hosted.ErrGoesOn)
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
	return hosted.ErrGoesOn
}

// relabel shuts a database in which sessions are about to begin, and then ends all.
func (w work) relabel(a relabel) error {
	if a.retained && w.seen.database.open {
		if err := w.strangers(); err != nil {
			return err
		}
	}
	args := []string{w.names.database, w.names.owner, w.names.reader, a.owner, a.database}
	lines := []line{{w.names.owner, `COMMENT ON ROLE %2$I IS %4$L`}}
	if a.retained {
		logins, err := w.members()
		if err != nil {
			return err
		}
		for _, login := range logins {
			args = append(args, login)
			lines = append(lines, line{w.names.owner, fmt.Sprintf(`REVOKE %%2$I, %%3$I FROM %%%d$I`, len(args))})
		}
	}
	if w.seen.database.comment != "" {
		text := `GRANT CONNECT ON DATABASE %1$I TO %2$I, %3$I; ALTER DATABASE %1$I ALLOW_CONNECTIONS true`
		if a.shut {
			text = `REVOKE CONNECT ON DATABASE %1$I FROM %2$I, %3$I; ALTER DATABASE %1$I ALLOW_CONNECTIONS false`
		}
		lines = append(lines, line{"", text + `; COMMENT ON DATABASE %1$I IS %5$L`})
	}
	if err := w.asks(lines, args...); err != nil || !a.shut {
		return err
	}
	return w.endInstance()
}

// members are the logins that work as the owner, or read.
func (w work) members() ([]string, error) {
	rows, err := w.c.Query(w.ctx, `SELECT DISTINCT m.member::regrole::text FROM pg_auth_members m
JOIN pg_roles r ON r.oid = m.roleid
WHERE r.rolname IN ($1, $2) AND m.member::regrole::text ~ '^lsb'`, w.names.owner, w.names.reader)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (w work) endInstance() error {
	return w.terminate(`datid`, w.seen.database.thing)
}
