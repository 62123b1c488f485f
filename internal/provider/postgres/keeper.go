package postgres

import (
	"cmp"
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Keepers make, change and drop roles. A keeper is a role of the broker's that nobody logs in as. Each keeper
// serves a share of all instances.
//
// Hazard: a role that makes another role administers it, which is a membership. Before anybody changes a
// role, the server walks through all memberships of the one who changes it, direct and indirect, and reads
// them anew after each change of a membership. For a login that has made six thousand roles, each statement
// takes a tenth of a second.
//
// So the broker's login asks a keeper, by a function that runs as the keeper (SECURITY DEFINER): the server
// then walks through the share of that keeper alone. The login never becomes a keeper, since SET ROLE would
// walk through all memberships.

// keepers is the number of keepers: about as many as the roles that each has on a full server.
const keepers = 64

const prefixKeeper = "lsk"

// keepersOf returns the common prefix of the names of a broker's keepers.
func keepersOf(broker string) string {
	return hosted.Name(prefixKeeper, provider.Tags{Broker: broker})
}

// keeperFor returns the keeper that makes the roles of an instance. A role stays with the keeper that made
// it, even if this function changes: the server knows who made which role.
func keeperFor(broker, owner string) string {
	return fmt.Sprintf("%s%02d", keepersOf(broker), crc32.ChecksumIEEE([]byte(owner))%keepers)
}

// A line is statements for the keeper of a role to run. In its text, %1$I is that role, and %2 the first argument.
// Without a role, the broker's login runs them.
type line struct {
	of   string
	text string
}

// asking makes the server quote the arguments of lines (see script), and wraps each line in a call of its
// role's keeper. A missing role is made by the keeper in $6. A role that no keeper has made is the login's own:
// earlier versions made the logins of copies so.
const asking = `
SELECT string_agg(CASE WHEN l.keeper IS NULL THEN l.text
    ELSE format('SELECT %I.%I(%L)', $5::text, l.keeper, l.text) END, '; ' ORDER BY l.i),
  array_remove(array_agg(DISTINCT l.keeper), NULL)
FROM (SELECT u.i, format(u.text, VARIADIC array_prepend(u.role::text, $3::text[])) AS text, CASE WHEN u.role <> '' THEN coalesce((
    SELECT k.rolname::text FROM pg_roles r JOIN pg_auth_members m ON m.roleid = r.oid JOIN pg_roles k ON k.oid = m.member
    WHERE r.rolname = u.role AND m.admin_option AND starts_with(k.rolname::text, $4) LIMIT 1),
    CASE WHEN NOT EXISTS (SELECT FROM pg_roles WHERE rolname = u.role) THEN $6::text END) END AS keeper
  FROM unnest($1::name[], $2::text[]) WITH ORDINALITY u (role, text, i)) l`

// asks runs lines in the broker's own database, in one transaction. If a keeper is missing, it makes the
// keeper first.
func (w work) asks(lines []line, args ...string) error {
	var roles, texts, keepers []string
	for _, l := range lines {
		roles, texts = append(roles, l.of), append(texts, l.text)
	}
	text := ""
	err := w.row(asking, roles, texts, args, keepersOf(w.broker), identitySchema(w.broker), w.keeper).Scan(&text, &keepers)
	if err != nil {
		return err
	}
	if err = w.run(text); !coded(err, undefinedFunction) {
		return err
	}
	for _, keeper := range keepers {
		if err := w.hire(keeper); err != nil {
			return err
		}
	}
	return w.run(text)
}

const undefinedFunction = "42883"

// keep runs statements as the keeper of a role, which is %1$I in them.
func (w work) keep(role, text string, args ...string) error {
	return w.asks([]line{{role, text}}, args...)
}

// hire makes a keeper if there is none, and the function that runs statements as the keeper, in one transaction. The login
// becomes the keeper once, to make that function: the function's maker owns it.
func (w work) hire(keeper string) error {
	return w.script(`
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = %1$L) THEN
  CREATE ROLE %1$I NOLOGIN CREATEROLE; COMMENT ON ROLE %1$I IS 'it makes roles for Longshore';
END IF; END $$;
GRANT %1$I TO CURRENT_USER WITH INHERIT FALSE, SET TRUE;
GRANT USAGE, CREATE ON SCHEMA %2$I TO %1$I;
SET LOCAL ROLE %1$I;
CREATE OR REPLACE FUNCTION %2$I.%1$I(text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
  AS 'BEGIN EXECUTE $1; END';
REVOKE ALL ON FUNCTION %2$I.%1$I(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION %2$I.%1$I(text) TO SESSION_USER;
RESET ROLE;
REVOKE ALL ON SCHEMA %2$I FROM %1$I;
REVOKE %1$I FROM CURRENT_USER GRANTED BY CURRENT_USER`, keeper, identitySchema(w.broker))
}

// unlend takes a role back that lent has granted.
const unlend = "REVOKE %1$I FROM SESSION_USER GRANTED BY CURRENT_USER"

// lent grants the broker's login the privileges of roles, and the right to become them, for the duration of
// the callback while, which works in another database. It revokes both before the callback then makes that
// work effective. If a step dies in between, its repetition revokes them, or the end of any unbind does
// (takeBack).
//
// Only one step at a time may have a role lent: its end would take the role from both steps.
func (w work) lent(roles []string, while, then func() error) error {
	lend, back, keys := make([]line, len(roles)), make([]line, len(roles)), make([]int64, len(roles))
	for i, role := range roles {
		lend[i] = line{role, "GRANT %1$I TO SESSION_USER WITH INHERIT TRUE, SET TRUE"}
		back[i] = line{role, unlend}
		keys[i] = keyOf("lent " + role)
	}
	slices.Sort(keys) // all steps lock in the same order: no deadlock
	if err := w.exec("SELECT pg_advisory_lock(k) FROM unnest($1::bigint[]) k", keys); err != nil {
		return err
	}
	err := w.asks(lend)
	if err != nil {
		return err
	}
	err = while()
	rest, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), backTimeout)
	defer cancel()
	w.ctx = rest
	if kept := w.asks(back); err == nil {
		err = kept
	}
	if err == nil {
		err = then()
	}
	unlocked := w.exec("SELECT pg_advisory_unlock(k) FROM unnest($1::bigint[]) k", keys)
	return cmp.Or(err, unlocked)
}

// lentNow returns the names of the roles that keepers have lent to the broker's login.
const lentNow = `SELECT r.rolname::text FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
JOIN pg_roles k ON k.oid = m.grantor
WHERE m.member = (SELECT oid FROM pg_roles WHERE rolname = session_user) AND starts_with(k.rolname::text, $1)`

// takeBack revokes the lent roles that no step uses.
func (w work) takeBack() error {
	roles, err := w.texts(lentNow, keepersOf(w.broker))
	for _, role := range roles {
		free := false
		if err = w.row("SELECT pg_try_advisory_lock($1)", keyOf("lent "+role)).Scan(&free); err != nil {
			return err
		}
		if !free {
			continue // a step still uses the role, and will revoke it
		}
		if err = w.keep(role, unlend); err != nil {
			return err
		}
		if err = w.exec("SELECT pg_advisory_unlock($1)", keyOf("lent "+role)); err != nil {
			return err
		}
	}
	return err
}

// lentIn is like lent, for work that is a single transaction in another session.
func (w work) lentIn(c sqlSession, roles []string, do func() error) error {
	return w.lent(roles, func() error {
		if err := c.script("BEGIN"); err != nil {
			return err
		}
		return do()
	}, func() error { return c.script("COMMIT") })
}

// backTimeout is how long revoking lent roles may take once the step's own time is over.
const backTimeout = 2 * time.Second
