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

// Keepers make, change and drop roles. A keeper is a role of the broker's that nobody logs in by. Each
// has a share of all instances.
//
// Hazard: a role that makes another one administers it, which is a membership. Before somebody
// changes a role, the server walks through all of their memberships, direct and indirect, and
// reads them anew after each change of a membership. For a login that has made six thousand roles,
// each statement takes a tenth of a second.
//
// So the broker's login asks a keeper through a function that runs as the keeper (SECURITY
// DEFINER): the server then walks through that keeper's share alone. The login never becomes a
// keeper, since SET ROLE would walk through all of them.

// keepers is how many there are: on a full server, each has about as many roles.
const keepers = 64

const prefixKeeper = "lsk"

// keepersOf is the prefix of the names of a broker's keepers.
func keepersOf(broker string) string {
	return hosted.Name(prefixKeeper, provider.Tags{Broker: broker})
}

// keeperFor is the keeper that makes the roles of an instance. A role stays with the keeper that made
// it, whatever its name: the server knows which one did.
func keeperFor(broker, owner string) string {
	return fmt.Sprintf("%s%02d", keepersOf(broker), crc32.ChecksumIEEE([]byte(owner))%keepers)
}

// A line is statements that the keeper of a role runs; without a role, the broker's login does.
type line struct {
	of   string
	text string
}

// asking has the server quote the arguments of lines (script), and hand each line to the keeper of its
// role. The keeper that is to make a missing role is $6.
const asking = `
SELECT string_agg(CASE WHEN l.keeper IS NULL THEN l.text
    ELSE format('SELECT %I.%I(%L)', $5::text, l.keeper, l.text) END, '; ' ORDER BY l.i),
  array_remove(array_agg(DISTINCT l.keeper), NULL)
FROM (SELECT u.i, format(u.text, VARIADIC $3::text[]) AS text, CASE WHEN u.role <> '' THEN coalesce((
    SELECT k.rolname::text FROM pg_roles r JOIN pg_auth_members m ON m.roleid = r.oid JOIN pg_roles k ON k.oid = m.member
    WHERE r.rolname = u.role AND m.admin_option AND starts_with(k.rolname::text, $4) LIMIT 1), $6::text) END AS keeper
  FROM unnest($1::name[], $2::text[]) WITH ORDINALITY u (role, text, i)) l`

// ready is the text of lines, and the keepers that it asks.
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

// asks runs lines in the broker's own database, in one transaction. It makes missing keepers first.
func (w work) asks(lines []line, args ...string) error {
	text, keepers, err := w.ready(lines, args...)
	if err != nil {
		return err
	}
	err = run(w.ctx, w.c, text)
	if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != undefinedFunction {
		return err
	}
	for _, keeper := range keepers {
		if err := w.hire(keeper); err != nil {
			return err
		}
	}
	return run(w.ctx, w.c, text)
}

const undefinedFunction = "42883"

// keep runs statements by the keeper of a role.
func (w work) keep(role, text string, args ...string) error {
	return w.asks([]line{{role, text}}, args...)
}

// hire makes a keeper, and the function that asks it, in one transaction. The login becomes the keeper
// once, to make that function: its maker owns it.
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

// lent gives the broker's login the privileges of roles, and the power to become them, for the time
// of while, which works in another database. It takes both back before then makes that work
// effective. If a step dies meanwhile, its repetition takes them back, or the end of any unbind
// (takeBack).
//
// Only one step at a time has a role lent: its end would take the role from both.
func (w work) lent(roles []string, while, then func() error) error {
	lend, back, keys := make([]line, len(roles)), make([]line, len(roles)), make([]int64, len(roles))
	for i, role := range roles {
		name := fmt.Sprintf("%%%d$I", i+1)
		lend[i] = line{role, "GRANT " + name + " TO SESSION_USER WITH INHERIT TRUE, SET TRUE"}
		back[i] = line{role, "REVOKE " + name + " FROM SESSION_USER GRANTED BY CURRENT_USER"}
		keys[i] = keyOf("lent " + role)
	}
	slices.Sort(keys) // one order for all steps: no deadlock
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

// lentNow names the roles that keepers have lent to the broker's login.
const lentNow = `SELECT r.rolname::text FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid
JOIN pg_roles k ON k.oid = m.grantor
WHERE m.member = (SELECT oid FROM pg_roles WHERE rolname = session_user) AND starts_with(k.rolname::text, $1)`

// takeBack takes back the roles that are lent and that no step uses.
func (w work) takeBack() error {
	roles, err := collect(w.ctx, w.c, pgx.RowTo[string], lentNow, keepersOf(w.names.broker))
	for _, role := range roles {
		free := false
		if err = w.c.QueryRow(w.ctx, "SELECT pg_try_advisory_lock($1)", keyOf("lent "+role)).Scan(&free); err != nil {
			return err
		}
		if !free {
			continue // a step uses the role, and takes it back
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

// lentIn is lent for work that is one transaction of another session.
func (w work) lentIn(c *pgx.Conn, roles []string, do func() error) error {
	return w.lent(roles, func() error {
		if err := script(w.ctx, c, "BEGIN"); err != nil {
			return err
		}
		return do()
	}, func() error { return script(w.ctx, c, "COMMIT") })
}

// backTimeout is how long taking roles back may last once the step's own time is over.
const backTimeout = 2 * time.Second
