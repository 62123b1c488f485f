package postgres

import (
	"context"
	"fmt"
	"strconv"

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
	case dropDatabase:
		return w.here(`DROP DATABASE %1$I WITH (FORCE)`, w.names.database)
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
	}
	return fmt.Errorf("there is no act %T", a)
}

// here runs statements in the broker's own database, in one transaction.
func (w work) here(text string, args ...string) error { return script(w.ctx, w.c, text, args...) }

// in runs statements in another database.
func (w work) in(database string, text string, args ...string) error {
	return w.inside(w.ctx, database, func(c *pgx.Conn) error { return script(w.ctx, c, text, args...) })
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
	err := w.inside(w.ctx, w.names.database, func(c *pgx.Conn) error {
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

func (w work) dropOwner() error {
	for _, database := range w.seen.owner.holds {
		if err := w.in(database, w.member(w.names.owner)+`; SET LOCAL ROLE %1$I; DROP OWNED BY %1$I; RESET ROLE`, w.names.owner); err != nil {
			return err
		}
	}
	return w.here(`DROP ROLE %1$I`, w.names.owner)
}

func (w work) createLogin(a createLogin) error {
	text := `CREATE ROLE %1$I NOLOGIN; COMMENT ON ROLE %1$I IS %4$L; `
	if a.readOnly {
		text += `GRANT CONNECT ON DATABASE %2$I TO %1$I; ALTER ROLE %1$I IN DATABASE %2$I SET default_transaction_read_only = on`
	} else {
		text += `GRANT %3$I TO %1$I; ALTER ROLE %1$I IN DATABASE %2$I SET role = %3$L`
	}
	return w.here(text, w.names.login, w.names.database, w.names.owner, a.label)
}

func (w work) openLogin(a openLogin) error {
	if a.readOnly {
		if err := w.readable(); err != nil {
			return err
		}
	}
	until := "infinity"
	if a.until != "" {
		until = a.until
	}
	return w.here(`ALTER ROLE %1$I LOGIN PASSWORD %2$L VALID UNTIL %3$L; COMMENT ON ROLE %1$I IS %4$L`,
		w.names.login, a.verifier, until, a.label)
}

// readable lets a login read all that the owner role has, and will have.
func (w work) readable() error {
	return w.inside(w.ctx, w.names.database, func(c *pgx.Conn) error {
		rows, err := c.Query(w.ctx, `SELECT nspname::text FROM pg_namespace
WHERE pg_get_userbyid(nspowner) = $1 OR nspname = 'public' ORDER BY 1`, w.names.owner)
		if err != nil {
			return err
		}
		schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return err
		}
		if err := script(w.ctx, c, `GRANT USAGE ON SCHEMA public TO %1$I`, w.names.login); err != nil {
			return err
		}
		text := `SET LOCAL ROLE %1$I;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO %2$I;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON SEQUENCES TO %2$I;
ALTER DEFAULT PRIVILEGES GRANT USAGE ON SCHEMAS TO %2$I;`
		args := []string{w.names.owner, w.names.login}
		for _, schema := range schemas {
			args = append(args, schema)
			if schema != "public" {
				text += fmt.Sprintf("GRANT USAGE ON SCHEMA %%%d$I TO %%2$I;\n", len(args))
			}
			for _, kind := range []string{"TABLES", "SEQUENCES"} {
				text += fmt.Sprintf("GRANT SELECT ON ALL %s IN SCHEMA %%%d$I TO %%2$I;\n", kind, len(args))
			}
		}
		return script(w.ctx, c, text+"RESET ROLE", args...)
	})
}

func (w work) lockLogin(a lockLogin) error {
	password := " PASSWORD NULL"
	if a.keep {
		password = ""
	}
	if err := w.here(`ALTER ROLE %1$I NOLOGIN`+password+`; COMMENT ON ROLE %1$I IS %2$L`, w.names.login, a.label); err != nil {
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
		if role == w.names.owner {
			after += "; " + w.member(role)
		} else {
			after += "; REVOKE " + name + " FROM CURRENT_USER GRANTED BY CURRENT_USER"
		}
	}
	return before + text + after
}

// endWait is how long a session that is to end is waited for, in milliseconds.
const endWait = "500"

func (w work) endSessions() error {
	return w.here(w.asPrivileged(`SELECT pg_terminate_backend(pid, %2$s) FROM pg_stat_activity WHERE usename = %1$L`, w.names.login),
		w.names.login, endWait)
}

func (w work) unlockLogin(a unlockLogin) error {
	login := "NOLOGIN"
	if a.login {
		login = "LOGIN"
	}
	return w.here(`ALTER ROLE %1$I `+login+`; COMMENT ON ROLE %1$I IS %2$L`, w.names.login, a.label)
}

func (w work) emptyLogin() error {
	for _, database := range w.seen.login.holds {
		text, roles := `DROP OWNED BY %1$I`, []string{w.names.login}
		if w.seen.owner.exists() {
			roles = append(roles, w.names.owner) // who has granted it what it has
			if database == w.names.database {
				text = `REASSIGN OWNED BY %1$I TO %2$I; ` + text
			}
		}
		if err := w.in(database, w.asPrivileged(text, roles...), w.names.login, w.names.owner); err != nil {
			return err
		}
	}
	return nil
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
	return w.here(`REVOKE CONNECT ON DATABASE %1$I FROM %2$I; COMMENT ON ROLE %2$I IS %3$L`, w.names.database, w.names.owner, a.label)
}

func (w work) openInstance(a openInstance) error {
	return w.here(`GRANT CONNECT ON DATABASE %1$I TO %2$I; COMMENT ON ROLE %2$I IS %3$L`, w.names.database, w.names.owner, a.label)
}
