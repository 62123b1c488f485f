package postgres

import (
	"cmp"
	"context"
	"strconv"

	"github.com/longshore/longshore/internal/provider/hosted"
)

// The new login itself sets the role that it works as. A keeper's function may not do that, and if the
// broker's login did it, the server would walk through all roles.
func (a createLogin) do(w work) error {
	text, of := `CREATE ROLE %2$I NOLOGIN`, w.owner
	if a.verifier != "" {
		text = `CREATE ROLE %2$I LOGIN PASSWORD %6$L VALID UNTIL %7$L`
	}
	text += `; COMMENT ON ROLE %2$I IS %5$L; ` + admit(a.readOnly)
	lines := []line{{of, text + `; ALTER ROLE %2$I IN DATABASE %3$I SET default_transaction_read_only = on`}}
	if !a.readOnly {
		lines = []line{
			{of, text + `; GRANT %2$I TO SESSION_USER WITH INHERIT FALSE, SET TRUE`},
			{"", `SET LOCAL ROLE %2$I; ALTER ROLE %2$I IN DATABASE %3$I SET role = %4$L; RESET ROLE`},
			{of, `REVOKE %2$I FROM SESSION_USER GRANTED BY CURRENT_USER`},
		}
	}
	return w.asks(lines, w.login, w.database, w.owner, a.label, a.verifier, cmp.Or(a.until, forever),
		w.reader)
}

// forever is the expiry of a password that never expires.
const forever = "infinity"

// admit makes the login (%2) a member of the owner role (%4), or of the readers' role (%8).
func admit(readOnly bool) string {
	if readOnly {
		return `GRANT %8$I TO %2$I WITH INHERIT TRUE, SET FALSE`
	}
	return `GRANT %4$I TO %2$I`
}

func (a openLogin) do(w work) error {
	if a.readOnly {
		if err := w.readable(); err != nil {
			return err
		}
	}
	return w.keep(w.login, `ALTER ROLE %1$I LOGIN PASSWORD %2$L VALID UNTIL %3$L; COMMENT ON ROLE %1$I IS %4$L`,
		a.verifier, cmp.Or(a.until, forever), a.label)
}

// readable lets the readers' role read everything that the owner role has, and will have. After the first
// reader, something is left to do only if somebody has revoked a right, or has handed a thing over to the
// owner role.
//
// Hazard: since PostgreSQL 18, a GRANT takes a lock for each table, from the table that all sessions share. So
// batches grant the rights, each in its own transaction.
func (w work) readable() error {
	long, cancel := context.WithTimeout(w.ctx, emptyFor)
	defer cancel()
	return w.enter(w.database, func(c sqlSession) error {
		for before := ""; ; {
			text := ""
			err := c.row(lacking, w.owner, w.reader, batch).Scan(&text)
			if err != nil || text == before { // nothing is left, or what cannot be granted
				return err
			}
			if long.Err() != nil {
				return hosted.ErrGoesOn
			}
			before = text
			if err := w.lentIn(c, []string{w.owner}, func() error {
				return c.run(text)
			}); err != nil {
				return err
			}
		}
	})
}

// lacking returns statements, at most $3 of them, that let the readers' role $2 read what the owner role $1 has,
// and will have; an empty text if nothing is missing. They run as the owner role. The server itself quotes the names
// in them.
const lacking = `
SELECT coalesce(format('SET LOCAL ROLE %I; ', $1::name) || string_agg(format('%s TO %I', line, $2::name), '; '), '') FROM (
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
  WHERE NOT EXISTS (SELECT FROM pg_default_acl a, aclexplode(a.defaclacl) x WHERE a.defaclobjtype = of_all.type
    AND a.defaclnamespace = 0
    AND pg_get_userbyid(a.defaclrole) = $1::name AND pg_get_userbyid(x.grantee) = $2::name)
LIMIT $3) of_these (line)`

// It first revokes the login's rights, on which no tenant can hold a lock, so that nobody comes in again.
//
// Hazard: a tenant that has changed its password in a transaction that is still open, or prepared, holds a
// lock on its role. So its sessions and prepared transactions end before the role is changed.
func (a lockLogin) do(w work) error {
	if w.seen.owner.exists() {
		if err := w.keep(w.owner, `REVOKE %1$I, %2$I FROM %3$I`, w.reader, w.login); err != nil {
			return err
		}
	}
	if err := (endSessions{}).do(w); err != nil {
		return err
	}
	text := `ALTER ROLE %1$I NOLOGIN`
	if !a.keep {
		text += ` PASSWORD NULL`
		if err := w.rollBack(preparedOf, w.owner, w.database, w.login); err != nil {
			return err
		}
	}
	if err := w.keep(w.login, text+`; COMMENT ON ROLE %1$I IS %2$L`, a.label); err != nil {
		return err
	}
	return endSessions{}.do(w)
}

// endWait is how long to wait for a session to end, in milliseconds.
const endWait = "500"

func (endSessions) do(w work) error {
	return w.terminate(`usesysid`, w.seen.login.thing, w.login)
}

// terminate ends the sessions whose column equals the id of the thing, of logins whose names begin with a
// prefix; the keeper of each login ends them. If there are no such sessions, it changes no membership. It
// avoids the view's column of names, for which the server would read all roles.
func (w work) terminate(column string, of thing, prefix string) error {
	id := strconv.FormatUint(uint64(of.id), 10)
	logins, err := w.texts(`
SELECT name FROM (SELECT DISTINCT pg_get_userbyid(usesysid)::text FROM pg_stat_activity
WHERE `+column+` = $1::oid) of_all (name) WHERE starts_with(name, $2)`, id, prefix)
	if err != nil || len(logins) == 0 {
		return err
	}
	var lines []line
	for _, login := range logins {
		lines = append(lines, line{login, `GRANT %1$I TO CURRENT_USER WITH INHERIT TRUE;
SELECT pg_terminate_backend(pid, %3$s) FROM pg_stat_activity WHERE usename = %1$L AND ` + column + ` = %2$L;
REVOKE %1$I FROM CURRENT_USER GRANTED BY CURRENT_USER`})
	}
	return w.asks(lines, id, endWait)
}

func (a unlockLogin) do(w work) error {
	text := `ALTER ROLE %1$I NOLOGIN`
	if a.login {
		text = `ALTER ROLE %1$I LOGIN`
	}
	if w.seen.owner.exists() && w.seen.database.exists() {
		text += "; " + admit(a.readOnly)
	}
	return w.keep(w.login, text+`; COMMENT ON ROLE %1$I IS %5$L`, w.login, w.database, w.owner, a.label, "", "", w.reader)
}

func (emptyLogin) do(w work) error {
	if err := w.rollBack(preparedOf, w.owner, w.database, w.login); err != nil {
		return err
	}
	heir := ""
	if w.seen.owner.exists() {
		heir = w.owner
	}
	return w.disown(w.seen.login.holds, heir, w.login)
}

func (dropLogin) do(w work) error {
	if err := w.takeBack(); err != nil {
		return err
	}
	return w.keep(w.login, `DROP ROLE %1$I`)
}
