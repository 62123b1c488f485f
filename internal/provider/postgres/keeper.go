package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// Roles are made, changed and dropped by keepers: roles of the broker's that nobody logs
// in by, each with a share of all instances.
//
// Hazard: a role that makes another one administers it, which is a membership. To see
// whether somebody may change a role, the server walks through all that they are a member
// of, at any remove, and reads them anew after each change of a membership. For a login
// that has made six thousand roles, that is a tenth of a second for each statement.
//
// So the broker's login asks a keeper by a function that runs as the keeper (SECURITY
// DEFINER): the server then walks through the keeper's share alone. The login may become
// no keeper, since SET ROLE would walk through all of them.

// keepers is how many there are: about as many as each then has roles on a server that
// is as full as servers are.
const keepers = 64

const prefixKeeper = "lsk"

// keepersOf begins the names of a broker's keepers.
func keepersOf(broker string) string {
	return hosted.Name(prefixKeeper, provider.Tags{Broker: broker})
}

// keeperFor is whose share an instance falls into when its roles are made. What was made
// once stays with its keeper, under whatever name: the server knows whose it is.
func keeperFor(broker, owner string) string {
	return fmt.Sprintf("%s%02d", keepersOf(broker), crc32.ChecksumIEEE([]byte(owner))%keepers)
}

// A line is statements that belong together. The keeper of the role that it names runs
// them; without one, the broker's login.
type line struct {
	of   string
	text string
}

// asking has the server quote what is put into lines (script), and hand each to the
// keeper of its role. A role that is not made yet has the keeper that makes it.
const asking = `
SELECT string_agg(CASE WHEN l.keeper IS NULL THEN l.text
    ELSE format('SELECT %I.%I(%L)', $5::text, l.keeper, l.text) END, '; ' ORDER BY l.i),
  array_remove(array_agg(DISTINCT l.keeper), NULL)
FROM (SELECT u.i, format(u.text, VARIADIC $3::text[]) AS text, CASE WHEN u.role <> '' THEN coalesce((
    SELECT k.rolname::text FROM pg_roles r JOIN pg_auth_members m ON m.roleid = r.oid JOIN pg_roles k ON k.oid = m.member
    WHERE r.rolname = u.role AND m.admin_option AND starts_with(k.rolname::text, $4) LIMIT 1), $6::text) END AS keeper
  FROM unnest($1::name[], $2::text[]) WITH ORDINALITY u (role, text, i)) l`

// ready is what lines come to, and the keepers in it.
func (w work) ready(lines []line, args ...string) (text string, keepers []string, err error) {
	var roles, texts []string
	for _, l := range lines {
		roles, texts = append(roles, l.of), append(texts, l.text)
	}
	err = w.c.QueryRow(w.ctx, asking, roles, texts, args, keepersOf(w.names.broker), identitySchema(w.names.broker),
		w.names.keeper).
		Scan(&text, &keepers)
	return text, keepers, err
}

// asks runs lines in the broker's own database, in one transaction. A keeper that is not
// there yet is made first.
func (w work) asks(lines []line, args ...string) error {
	text, keepers, err := w.ready(lines, args...)
	if err != nil {
		return err
	}
	run := func() error {
		_, err := w.c.PgConn().Exec(w.ctx, text).ReadAll()
		return err
	}
	err = run()
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != undefinedFunction {
		return err
	}
	for _, keeper := range keepers {
		if err := w.hire(keeper); err != nil {
			return err
		}
	}
	return run()
}

const undefinedFunction = "42883"

// keep has the keeper of a role run statements.
func (w work) keep(role, text string, args ...string) error {
	return w.asks([]line{{role, text}}, args...)
}

// hire makes a keeper, and the function by which it is asked, in one transaction. The
// function's owner is who makes it, for which the login becomes the keeper once.
func (w work) hire(keeper string) error {
	there := false
	if err := w.c.QueryRow(w.ctx, `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)`, keeper).Scan(&there); err != nil {
		return err
	}
	text := `GRANT %1$I TO CURRENT_USER WITH INHERIT FALSE, SET TRUE;
GRANT USAGE, CREATE ON SCHEMA %2$I TO %1$I;
SET LOCAL ROLE %1$I;
CREATE OR REPLACE FUNCTION %2$I.%1$I(text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
  AS 'BEGIN EXECUTE $1; END';
REVOKE ALL ON FUNCTION %2$I.%1$I(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION %2$I.%1$I(text) TO SESSION_USER;
RESET ROLE;
REVOKE ALL ON SCHEMA %2$I FROM %1$I;
REVOKE %1$I FROM CURRENT_USER GRANTED BY CURRENT_USER`
	if !there {
		text = `CREATE ROLE %1$I NOLOGIN CREATEROLE; COMMENT ON ROLE %1$I IS 'it makes roles for Longshore';
` + text
	}
	return w.here(text, keeper, identitySchema(w.names.broker))
}

// lent gives the broker's login what roles may, and the power to become them, while
// something is done in another database: it has none of it otherwise. It is taken back
// before that takes effect (then). What a step that dies has left lent, the same step
// takes back as it is repeated, or the end of any unbind (takeBack).
//
// One step at a time has a role lent: another one's end would take it from both.
func (w work) lent(roles []string, while, then func() error) error {
	lend, back, keys := make([]line, len(roles)), make([]line, len(roles)), make([]int64, len(roles))
	for i, role := range roles {
		name := fmt.Sprintf("%%%d$I", i+1)
		lend[i] = line{role, "GRANT " + name + " TO SESSION_USER WITH INHERIT TRUE, SET TRUE"}
		back[i] = line{role, "REVOKE " + name + " FROM SESSION_USER GRANTED BY CURRENT_USER"}
		keys[i] = keyOf("lent " + role)
	}
	slices.Sort(keys) // two steps at two roles wait for one another in one order
	if _, err := w.c.Exec(w.ctx, "SELECT pg_advisory_lock(k) FROM unnest($1::bigint[]) k", keys); err != nil {
		return err
	}
	err := w.asks(lend, roles...)
	if err != nil {
		return err
	}
	err = while()
	rest, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), backTimeout)
	defer cancel()
	w.ctx = rest
	if kept := w.asks(back, roles...); err == nil {
		err = kept
	}
	if err == nil {
		err = then()
	}
	_, unlocked := w.c.Exec(w.ctx, "SELECT pg_advisory_unlock(k) FROM unnest($1::bigint[]) k", keys)
	return cmp.Or(err, unlocked)
}

// lentNow names the roles that keepers have lent the broker's login.
const lentNow = `SELECT r.rolname::text FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
JOIN pg_roles k ON k.oid = m.grantor
WHERE m.member = (SELECT oid FROM pg_roles WHERE rolname = session_user) AND starts_with(k.rolname::text, $1)`

// takeBack takes back what is lent, and is used by nobody.
func (w work) takeBack() error {
	rows, err := w.c.Query(w.ctx, lentNow, keepersOf(w.names.broker))
	if err != nil {
		return err
	}
	roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, role := range roles {
		free := false
		if err = w.c.QueryRow(w.ctx, "SELECT pg_try_advisory_lock($1)", keyOf("lent "+role)).Scan(&free); err != nil {
			return err
		}
		if !free {
			continue // a step goes on with it, and takes it back
		}
		if err = w.keep(role, "REVOKE %1$I FROM SESSION_USER GRANTED BY CURRENT_USER", role); err != nil {
			return err
		}
		if _, err = w.c.Exec(w.ctx, "SELECT pg_advisory_unlock($1)", keyOf("lent "+role)); err != nil {
			return err
		}
	}
	return err
}

// lentIn is a lent whose effect is a transaction of another session's.
func (w work) lentIn(c *pgx.Conn, roles []string, do func() error) error {
	return w.lent(roles, func() error {
		if err := script(w.ctx, c, "BEGIN"); err != nil {
			return err
		}
		return do()
	}, func() error { return script(w.ctx, c, "COMMIT") })
}

// backTimeout is how long what was lent is taken back, when the step's own time is over.
const backTimeout = 2 * time.Second
