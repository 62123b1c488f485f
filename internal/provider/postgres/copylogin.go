package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// A copy has logins of its own, one for each side (package pgcopy says why). The broker's login makes them
// itself, without a keeper.

const (
	// copyMark is the comment on each login of a copy. It is no label, so that no inventory takes such a
	// login for a binding. A role with another comment is not the broker's.
	copyMark = "longshore-copy"
	// copyValid is how long a login's password is valid. Both programs connect at once, and the sessions that
	// they have begun go on.
	copyValid = "10 minutes"
)

var (
	// errForeign says that a role that is not the broker's has the login's name.
	errForeign = errors.New("the name of a copy's login is taken by a role that is not the broker's")
	// errSessions says that sessions of the login are still ending.
	errSessions = errors.New("sessions of a copy's login have not ended yet")
)

// admitCopy makes the login of a side, or resets an existing one, with a password that nobody else knows. A
// login that only reads may change nothing, whatever code it runs.
func admitCopy(ctx context.Context, d *sqlServer, broker string, side pgcopy.Side, readOnly bool) (pgcopy.Login, error) {
	l := pgcopy.Login{Side: side, Password: rand.Text()}
	verifier, err := scram.Verifier(l.Password)
	if err != nil {
		return l, err
	}
	err = d.with(ctx, func(c sqlSession) error {
		var until string
		found, err := standing(c, side.Login)
		if err == nil {
			err = c.row(`SELECT (now() + $1::text::interval)::text`, copyValid).Scan(&until)
		}
		if err != nil {
			return err
		}
		lines := []line{
			{side.Owner, `GRANT %2$I TO %1$I WITH INHERIT TRUE, SET TRUE`},
			{"", `ALTER ROLE %1$I IN DATABASE %3$I SET role = %2$L`},
			{"", `ALTER ROLE %1$I IN DATABASE %3$I SET default_transaction_read_only = %4$s`},
			{"", `ALTER ROLE %1$I LOGIN CONNECTION LIMIT 2 PASSWORD %5$L VALID UNTIL %6$L`},
		}
		if !found {
			lines = append([]line{{"", `CREATE ROLE %1$I NOLOGIN; COMMENT ON ROLE %1$I IS %7$L`}}, lines...)
		}
		return work{sqlSession: c, names: names{broker: broker}}.asks(lines, side.Login, side.Owner, side.Database,
			fmt.Sprint(readOnly), verifier, until, copyMark)
	})
	if err != nil {
		err = fmt.Errorf("preparing the login of a copy: %w", err)
	}
	return l, err
}

// evictCopy locks the login of a copy, ends its sessions, gives what it has made to the owner role, and drops
// it. It reports whether the login is gone: while a session is ending, or somebody else holds a lock, the
// caller must call it again. It leaves a role alone that is not the broker's.
func evictCopy(ctx context.Context, d *sqlServer, side pgcopy.Side) (gone bool, err error) {
	var holds []string
	err = d.with(ctx, func(c sqlSession) error {
		found, err := standing(c, side.Login)
		if err != nil || !found {
			gone = err == nil
			return err
		}
		w := work{sqlServer: d, sqlSession: c, names: names{login: side.Login}}
		if err := w.shutOut(); err != nil {
			return err
		}
		if holds, err = w.holding(); err != nil || len(holds) > 0 {
			return err
		}
		gone = true
		return c.script(`DROP ROLE %1$I`, side.Login)
	})
	if errors.Is(err, errSessions) {
		return false, nil
	}
	for _, database := range holds {
		text := `GRANT %1$I TO CURRENT_USER WITH INHERIT FALSE, SET TRUE; SET LOCAL ROLE %1$I; `
		if database == side.Database {
			text += `REASSIGN OWNED BY %1$I TO %2$I; `
		}
		err = errors.Join(err, d.inside(ctx, database, func(c sqlSession) error {
			return c.script(text+`DROP OWNED BY %1$I; RESET ROLE`, side.Login, side.Owner)
		}))
	}
	return gone, err
}

// standing reports whether the login of a copy exists.
func standing(c sqlSession, login string) (bool, error) {
	comment := ""
	err := c.row(`SELECT coalesce(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = $1`,
		login).Scan(&comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err == nil && comment != copyMark:
		return true, errForeign
	}
	return true, err
}

// shutOut locks the login, so that nobody comes in any more.
//
// Hazard: code of a tenant that the copy ran may have changed the login's password in a transaction that is
// still open, or prepared. That transaction holds a lock on the role for as long as the tenant likes. So the
// transaction is ended first, and the next call locks the login.
func (w work) shutOut() error {
	err := w.script(`ALTER ROLE %1$I NOLOGIN PASSWORD NULL`, w.login)
	if err == nil || classOf(err) != hosted.Locked {
		return err
	}
	if err := w.endCopy(); err != nil {
		return err
	}
	if _, err := w.rollBackCopy(); err != nil {
		return err
	}
	return errSessions
}

// rollBackCopy rolls back the login's prepared transactions, each in its database, and reports whether there
// were any. They outlive the login's sessions, and block dropping both the login and the database.
func (w work) rollBackCopy() (found bool, _ error) {
	type waiting struct{ GID, Database string }
	prepared, err := collect(w.sqlSession, pgx.RowToStructByPos[waiting],
		`SELECT gid, database::text FROM pg_prepared_xacts WHERE owner = $1`, w.login)
	if err != nil || len(prepared) == 0 {
		return false, err
	}
	if err := w.script(`GRANT %1$I TO CURRENT_USER WITH INHERIT FALSE, SET TRUE`, w.login); err != nil {
		return false, err
	}
	for _, x := range prepared {
		if err := w.inside(w.ctx, x.Database, func(c sqlSession) error {
			if err := c.script(`SET ROLE %1$I`, w.login); err != nil {
				return err
			}
			return c.script(`ROLLBACK PREPARED %1$L`, x.GID)
		}); err != nil {
			return false, err
		}
	}
	return true, nil
}

// endCopy ends the login's sessions, which takes a moment.
func (w work) endCopy() error {
	return w.script(`GRANT %1$I TO CURRENT_USER WITH INHERIT TRUE;
SELECT pg_terminate_backend(pid, 500) FROM pg_stat_activity WHERE usename = %1$L;
REVOKE %1$I FROM CURRENT_USER GRANTED BY CURRENT_USER`, w.login)
}

// holding returns the databases in which the login has something, once its sessions and prepared transactions
// have ended.
func (w work) holding() ([]string, error) {
	var sessions int
	err := w.row(`SELECT count(*) FROM pg_stat_activity WHERE usename = $1`, w.login).Scan(&sessions)
	if err != nil {
		return nil, err
	}
	if sessions > 0 {
		return nil, cmp.Or(w.endCopy(), errSessions)
	}
	if found, err := w.rollBackCopy(); err != nil || found {
		return nil, cmp.Or(err, errSessions)
	}
	return w.texts(`
SELECT DISTINCT d.datname::text FROM pg_shdepend s
JOIN pg_database d ON d.oid = s.dbid JOIN pg_roles r ON r.oid = s.refobjid
WHERE s.refclassid = 'pg_authid'::regclass AND r.rolname = $1
AND s.classid <> 'pg_db_role_setting'::regclass`, w.login)
}
