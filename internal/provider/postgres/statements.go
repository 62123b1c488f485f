package postgres

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/hosted"
)

// A work is one act on a real server, made under the lock of the thing.
type work struct {
	*sqlServer
	sqlSession // in the broker's own database
	names
	seen seen
}

// enter lends do a session in another database.
//
// Hazard: once a database is at its limit, only superusers get in, so a tenant could block its own unbind;
// and nobody gets into a retained database. So enter opens the database, or lifts the limit, until its
// session is connected; it does both only if both bar it. If the step dies in between, the next step sets the
// limit again (seen.bounded), and a retained database stays safe because nobody has the right to connect to it.
func (w work) enter(database string, do func(sqlSession) error) error {
	back, entered := "", false
	alter := func(how string) error { return w.script("ALTER DATABASE %1$I "+how, database) }
	visit := func() error {
		return w.inside(w.ctx, database, func(c sqlSession) error {
			entered = true
			if back != "" {
				if err := alter(back); err != nil {
					return err
				}
			}
			return do(c)
		})
	}
	lifted := func(how, undo string) error {
		back += " " + undo
		if err := alter(how); err != nil {
			return err
		}
		return visit()
	}
	err := visit()
	if !entered && classOf(err) == shut {
		err = lifted("ALLOW_CONNECTIONS true", "ALLOW_CONNECTIONS false")
	}
	if !entered && classOf(err) == crowded {
		// Only the label of the instance's own database is read here; another database is entered because its
		// tenant has granted something.
		var limit int
		failed := w.row(`SELECT CASE WHEN datname = $2 THEN $3::int ELSE datconnlimit END FROM pg_database WHERE datname = $1`,
			database, w.database, w.seen.owner.details().connections()).Scan(&limit)
		switch {
		case errors.Is(failed, pgx.ErrNoRows):
			return hosted.ErrChanged
		case failed != nil:
			err = failed
		default:
			err = lifted("CONNECTION LIMIT -1", "CONNECTION LIMIT "+strconv.Itoa(limit))
		}
	}
	if !entered && back != "" {
		err = errors.Join(err, alter(back))
	}
	return err
}

func (a setLimit) do(w work) error {
	return w.script(`ALTER DATABASE %1$I CONNECTION LIMIT %2$s`, w.database, strconv.Itoa(a.limit))
}

func (a createOwner) do(w work) error {
	return w.keep(w.owner, `CREATE ROLE %1$I NOLOGIN; CREATE ROLE %2$I NOLOGIN; COMMENT ON ROLE %1$I IS %3$L`,
		w.reader, a.label)
}

func (a createDatabase) do(w work) error {
	return w.script("CREATE DATABASE %1$I TEMPLATE template0 ENCODING 'UTF8' ALLOW_CONNECTIONS false CONNECTION LIMIT %2$s %3$s",
		w.database, strconv.Itoa(a.limit), a.locale)
}

func (a openDatabase) do(w work) error {
	return w.script(`REVOKE ALL ON DATABASE %1$I FROM PUBLIC;
GRANT CONNECT, CREATE, TEMPORARY ON DATABASE %1$I TO %2$I;
GRANT CONNECT ON DATABASE %1$I TO %4$I;
COMMENT ON DATABASE %1$I IS %3$L;
ALTER DATABASE %1$I ALLOW_CONNECTIONS true`, w.database, w.owner, a.label, w.reader)
}

func (a configure) do(w work) error {
	err := w.enter(w.database, func(c sqlSession) error {
		if err := c.script(`REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT ALL ON SCHEMA public TO %1$I;
GRANT USAGE ON SCHEMA public TO %2$I`, w.owner, w.reader); err != nil || len(a.extensions) == 0 {
			return err
		}
		return w.lentIn(c, []string{w.owner}, func() error { return w.extend(c, a.extensions) })
	})
	if err != nil {
		return err
	}
	timeout := "ALTER DATABASE %2$I RESET statement_timeout"
	if a.timeout != "" {
		timeout = "ALTER DATABASE %2$I SET statement_timeout = %5$L"
	}
	return w.asks([]line{
		{"", "ALTER DATABASE %2$I CONNECTION LIMIT %3$s; " + timeout},
		{w.owner, "COMMENT ON ROLE %1$I IS %4$L"},
	}, w.database, strconv.Itoa(a.limit), a.label, a.timeout)
}

// extend makes extensions as the owner role.
func (w work) extend(c sqlSession, names []string) error {
	for _, name := range names {
		if err := c.script(`SET LOCAL ROLE %1$I; CREATE EXTENSION IF NOT EXISTS %2$I SCHEMA public; RESET ROLE`,
			w.owner, name); err != nil {
			return err
		}
	}
	return nil
}

func (dropOwner) do(w work) error {
	if err := w.disown(w.seen.owner.holds, "", w.owner, w.reader); err != nil {
		return err
	}
	return w.keep(w.owner, `DROP ROLE IF EXISTS %2$I; DROP ROLE %1$I`, w.reader)
}

// rollBack rolls back the prepared transactions that a query selects with their databases and owners. Each
// must be rolled back in its own database, as its owner, and outside a transaction.
func (w work) rollBack(which string, args ...any) error {
	type waiting struct{ GID, Database, Owner string }
	all, err := collect(w.sqlSession, pgx.RowToStructByPos[waiting], which, args...)
	if err != nil {
		return err
	}
	for _, x := range all {
		err := w.enter(x.Database, func(c sqlSession) error {
			return w.lent([]string{x.Owner}, func() error { return c.script(`SET ROLE %1$I`, x.Owner) },
				func() error { return c.script(`ROLLBACK PREPARED %1$L`, x.GID) })
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// The keeper of a binding's role ends the sessions that the binding has left: DROP DATABASE ends only the
// sessions of roles whose privileges its caller has, and the broker's login has no such privileges.
func (dropDatabase) do(w work) error {
	// Prepared transactions would block the drop.
	if err := w.rollBack(`SELECT x.gid, x.database::text, x.owner::text FROM pg_prepared_xacts x
WHERE x.database = $1 AND x.owner ~ '^ls[ob]'`, w.database); err != nil {
		return err
	}
	if err := (endInstance{}).do(w); err != nil {
		return err
	}
	return w.drop()
}

const (
	// dropTimeout limits the statement that drops a database.
	dropTimeout = "15min"
	// dropWait is how long a step waits for the drop. The next step looks again.
	dropWait = 5 * time.Second
)

// drop drops the database in a session of its own, which outlives the step: the server first writes out all
// changes of all databases, and would begin that anew after each interruption. The session's lock shows that
// the drop is under way.
func (w work) drop() error {
	cfg := w.cfg.Copy()
	cfg.RuntimeParams["statement_timeout"] = dropTimeout
	c, err := pgx.ConnectConfig(w.ctx, cfg)
	if err != nil {
		return err
	}
	locked := false
	err = c.QueryRow(w.ctx, "SELECT pg_try_advisory_lock($1)", keyOf("drop "+w.database)).Scan(&locked)
	if err != nil || !locked {
		end(c)
		return cmp.Or(err, hosted.ErrGoesOn)
	}
	dropped := make(chan error, 1)
	go func() {
		defer end(c)
		dropped <- sqlSession{context.WithoutCancel(w.ctx), c}.script(`DROP DATABASE %1$I WITH (FORCE)`, w.database)
	}()
	select {
	case err := <-dropped:
		return err
	case <-w.ctx.Done():
	case <-time.After(dropWait):
	}
	return hosted.ErrGoesOn
}

// It shuts the database before it ends the sessions, since others may be beginning.
func (a relabel) do(w work) error {
	if a.retained && w.seen.database.open {
		if err := w.strangers(); err != nil {
			return err
		}
	}
	lines, logins := []line{{w.owner, `COMMENT ON ROLE %1$I IS %5$L`}}, ""
	if a.retained {
		if err := w.row(`SELECT coalesce(string_agg(DISTINCT m.member::regrole::text, ', '), '') FROM pg_auth_members m
JOIN pg_roles r ON r.oid = m.roleid
WHERE r.rolname IN ($1, $2) AND m.member::regrole::text ~ '^lsb'`, w.owner, w.reader).Scan(&logins); err != nil {
			return err
		}
	}
	if logins != "" {
		lines = append(lines, line{w.owner, `REVOKE %1$I, %4$I FROM %7$s`})
	}
	if w.seen.database.comment != "" {
		text := `GRANT CONNECT ON DATABASE %2$I TO %3$I, %4$I; ALTER DATABASE %2$I ALLOW_CONNECTIONS true`
		if a.shut {
			text = `REVOKE CONNECT ON DATABASE %2$I FROM %3$I, %4$I; ALTER DATABASE %2$I ALLOW_CONNECTIONS false`
		}
		lines = append(lines, line{"", text + `; COMMENT ON DATABASE %2$I IS %6$L`})
	}
	if err := w.asks(lines, w.database, w.owner, w.reader, a.owner, a.database, logins); err != nil || !a.shut {
		return err
	}
	return endInstance{}.do(w)
}

func (endInstance) do(w work) error {
	return w.terminate(`datid`, w.seen.database.thing, prefixLogin)
}
