// Package pgcopy copies what is in one tenant's database, by PostgreSQL's own pg_dump
// and pg_restore, to a file or into another database. It owns the copies that run in
// this process (Copier), the logins that they are made by, how these programs are run,
// and what their failures mean. It leaves to others which database may be copied where,
// and when.
//
// Hazard: a dump and a restore run tenants' code (views, functions, index
// expressions, triggers), with all that the login may do which they run by. SET ROLE
// is no protection: that code can undo it. So each copy has a login of its own, which
// is a member of one role, the database's owner, and is nothing else: what that code
// does is what the database's users can do anyway. The broker's login, whose keepers may
// change every role, opens no tenant's database for it.
package pgcopy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/secret"
	"github.com/longshore/longshore/internal/provider/postgres/scram"
)

// A Side is a database that is read or written, its owner role, and the name of the
// login for that. The caller derives all three.
type Side struct{ Database, Owner, Login string }

// A Server is what is needed of a server: sessions of the broker's login, in the
// database that it works in, and in others, with pg_catalog as their search path.
type Server interface {
	With(ctx context.Context, work func(*pgx.Conn) error) error
	Inside(ctx context.Context, database string, work func(*pgx.Conn) error) error
	// Join gives the statement that makes the side's login a member of its owner role,
	// which the broker's login may not say by itself.
	Join(ctx context.Context, side Side) (statement string, err error)
	Close()
}

// A Login is one that was let in. It is for one copy.
type Login struct {
	secret.Holder
	Side
	Password string
}

// mark begins the comment on each login: what has another one is not ours. It is no
// label of things that users have, so that no inventory takes a login for a binding.
const mark = "longshore-copy"

// validFor is how long a login's password opens: both programs connect at once, and
// what they have begun goes on.
const validFor = "10 minutes"

// ErrForeign: the login's name is taken by a role that is not ours.
var ErrForeign = errors.New("the name of a copy's login is taken by a role that is not the broker's")

// Admit makes the side's login, or makes it anew, with a password that nobody else has
// been told. To read, it may change nothing, whatever is run.
func Admit(ctx context.Context, s Server, side Side, reads bool) (Login, error) {
	l := Login{Side: side, Password: rand.Text()}
	verifier, err := scram.Verifier(l.Password)
	if err != nil {
		return l, err
	}
	join, err := s.Join(ctx, side)
	if err != nil {
		return l, err
	}
	return l, s.With(ctx, func(c *pgx.Conn) error {
		found, err := look(ctx, c, side.Login)
		if err != nil {
			return err
		}
		until := ""
		if err := c.QueryRow(ctx, `SELECT to_char((now() + $1::text::interval) AT TIME ZONE 'UTC',
  'YYYY-MM-DD HH24:MI:SS+00')`, validFor).
			Scan(&until); err != nil {
			return err
		}
		login, database := quoted(side.Login), quoted(side.Database)
		var statements []string
		if !found {
			statements = append(statements, "CREATE ROLE "+login+" NOLOGIN", "COMMENT ON ROLE "+login+" IS '"+mark+"'")
		}
		readOnly := "off"
		if reads {
			readOnly = "on"
		}
		return within(ctx, c, append(statements,
			join,
			"ALTER ROLE "+login+" IN DATABASE "+database+" SET role = "+quoted(side.Owner),
			"ALTER ROLE "+login+" IN DATABASE "+database+" SET default_transaction_read_only = "+readOnly,
			"ALTER ROLE "+login+" LOGIN CONNECTION LIMIT 2 PASSWORD '"+verifier+"' VALID UNTIL '"+until+"'",
		)...)
	})
}

// Evict keeps a login out, ends its sessions, gives what it has made to the owner
// role, and drops it. It answers whether it is gone: a session that takes its time to
// end, or somebody else's lock, has it called again later. What is not ours is left.
func Evict(ctx context.Context, s Server, side Side) (gone bool, err error) {
	var holds []string
	err = s.With(ctx, func(c *pgx.Conn) error {
		found, err := look(ctx, c, side.Login)
		if err != nil || !found {
			gone = err == nil
			return err
		}
		if err := shut(ctx, s, c, side.Login); err != nil {
			return err
		}
		if holds, err = ending(ctx, s, c, side.Login); err != nil || len(holds) > 0 {
			return err
		}
		gone = true
		return within(ctx, c, "DROP ROLE "+quoted(side.Login))
	})
	if errors.Is(err, errSessions) {
		return false, nil
	}
	for _, database := range holds {
		err = errors.Join(err, s.Inside(ctx, database, func(c *pgx.Conn) error { return empty(ctx, c, side, database) }))
	}
	return gone, err
}

// shut lets nobody in by the login any more.
//
// Hazard: a tenant's code that the copy ran may have changed the login's password in a
// transaction that is still open, or prepared, and so hold a lock on the role for as
// long as it likes. Those end first then, and shutting is tried again.
func shut(ctx context.Context, s Server, c *pgx.Conn, login string) error {
	err := within(ctx, c, "ALTER ROLE "+quoted(login)+" NOLOGIN PASSWORD NULL")
	const lockNotAvailable = "55P03"
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != lockNotAvailable {
		return err
	}
	if err := terminate(ctx, c, login); err != nil {
		return err
	}
	if _, err := rollBack(ctx, s, c, login); err != nil {
		return err
	}
	return errSessions
}

// rollBack ends the login's prepared transactions, each in its database, and reports
// whether there was one. They outlive the login, and hold up its end, or that of the
// database.
func rollBack(ctx context.Context, s Server, c *pgx.Conn, login string) (found bool, _ error) {
	rows, err := c.Query(ctx, "SELECT gid, database::text FROM pg_prepared_xacts WHERE owner = $1", login)
	if err != nil {
		return false, err
	}
	type waiting struct{ GID, Database string }
	prepared, err := pgx.CollectRows(rows, pgx.RowToStructByPos[waiting])
	if err != nil || len(prepared) == 0 {
		return false, err
	}
	if err := become(ctx, c, login); err != nil {
		return false, err
	}
	for _, x := range prepared {
		if err := s.Inside(ctx, x.Database, func(c *pgx.Conn) error {
			if _, err := c.Exec(ctx, "SET ROLE "+quoted(login)); err != nil {
				return err
			}
			_, err := c.Exec(ctx, "ROLLBACK PREPARED '"+strings.ReplaceAll(x.GID, "'", "''")+"'")
			return err
		}); err != nil {
			return false, err
		}
	}
	return true, nil
}

// become lets the broker's login become another one; the grant ends with that.
func become(ctx context.Context, c *pgx.Conn, login string) error {
	return within(ctx, c, "GRANT "+quoted(login)+" TO CURRENT_USER WITH INHERIT FALSE, SET TRUE")
}

// terminate ends the login's sessions, which takes a moment.
func terminate(ctx context.Context, c *pgx.Conn, login string) error {
	name := quoted(login)
	return within(ctx, c, "GRANT "+name+" TO CURRENT_USER WITH INHERIT TRUE",
		"SELECT pg_terminate_backend(pid, 500) FROM pg_stat_activity WHERE usename = '"+login+"'",
		"REVOKE "+name+" FROM CURRENT_USER GRANTED BY CURRENT_USER")
}

// look reports whether the login is there.
func look(ctx context.Context, c *pgx.Conn, login string) (found bool, _ error) {
	comment := ""
	err := c.QueryRow(ctx, "SELECT COALESCE(shobj_description(oid, 'pg_authid'), '') FROM pg_roles WHERE rolname = $1",
		login).Scan(&comment)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	case comment != mark:
		return true, ErrForeign
	}
	return true, nil
}

// errSessions: sessions of a login have not ended yet.
var errSessions = errors.New("sessions of a copy's login have not ended yet")

// ending ends the login's sessions, and gives the databases in which it has
// something; nil when it has nothing.
func ending(ctx context.Context, s Server, c *pgx.Conn, login string) (holds []string, _ error) {
	var left int
	if err := c.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE usename = $1", login).Scan(&left); err != nil {
		return nil, err
	}
	if left > 0 {
		if err := terminate(ctx, c, login); err != nil {
			return nil, err
		}
		return nil, errSessions
	}
	if found, err := rollBack(ctx, s, c, login); err != nil || found {
		return nil, cmp.Or(err, errSessions)
	}
	rows, err := c.Query(ctx, `SELECT DISTINCT d.datname::text FROM pg_shdepend s JOIN pg_database d ON d.oid = s.dbid
JOIN pg_roles r ON r.oid = s.refobjid WHERE s.refclassid = 'pg_authid'::regclass AND r.rolname = $1
AND s.classid <> 'pg_db_role_setting'::regclass`, login)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// empty gives to the owner role what the login has in a database, as the login.
func empty(ctx context.Context, c *pgx.Conn, side Side, database string) error {
	login, owner := quoted(side.Login), quoted(side.Owner)
	statements := []string{"GRANT " + login + " TO CURRENT_USER WITH INHERIT FALSE, SET TRUE", "SET LOCAL ROLE " + login}
	if database == side.Database {
		statements = append(statements, "REASSIGN OWNED BY "+login+" TO "+owner)
	}
	return within(ctx, c, append(statements, "DROP OWNED BY "+login, "RESET ROLE")...)
}

// within runs statements in one transaction.
func within(ctx context.Context, c *pgx.Conn, statements ...string) error {
	_, err := c.PgConn().Exec(ctx, "BEGIN; "+strings.Join(statements, "; ")+"; COMMIT").ReadAll()
	if err != nil {
		_, _ = c.PgConn().Exec(ctx, "ROLLBACK").ReadAll()
		return fmt.Errorf("preparing the login of a copy: %w", err)
	}
	return nil
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
