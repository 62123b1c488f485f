package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/provider/hosted"
)

// A role is dropped only once nothing in any database is its own or open to it. How much
// that is, a tenant decides: a million large objects, or tables.
//
// Hazard: REASSIGN OWNED and DROP OWNED change all of it in one statement. That takes a
// lock for each thing, of which the server has so many for everybody, and longer than a
// statement may take; and it begins anew each time. So things are changed a few at a
// time, in transactions of their own, until those statements have little left to do.

// Sizes and times of batches.
const (
	// batch is how many things change in one transaction: a table has several locks.
	batch = 100
	// readAtOnce is how many things are read at a time: the server walks over the entries
	// of those that were changed, while a tenant's transaction keeps them from removal.
	readAtOnce = 2000
	// emptyFor is how long a step goes on with batches. The next one goes on after it.
	emptyFor = 4 * time.Second
)

// An emptying takes from roles what they have in the database of its session. The
// broker's login has the privileges of some roles meanwhile.
type emptying struct {
	work
	in   *pgx.Conn
	has  []string        // the roles whose privileges those are
	time context.Context // as long as this step goes on with it
}

// empty has work empty roles, in a transaction of its session that takes effect in the
// end. Rights are revoked in the name of who granted them, or else the server only warns:
// any tenant may grant something to another one's roles, whose names it can read.
func (w work) empty(in *pgx.Conn, do func(*emptying) error, roles ...string) error {
	rows, err := in.Query(w.ctx, `SELECT DISTINCT r.rolname::text FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND s.refclassid = 'pg_authid'::regclass
  AND s.deptype = 'o' AND r.rolname ~ '^ls[ob]' AND EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles k ON k.oid = m.member
    WHERE m.roleid = r.oid AND m.admin_option AND starts_with(k.rolname::text, $1)) ORDER BY 1`, keepersOf(w.names.broker))
	if err != nil {
		return err
	}
	lent, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, role := range roles {
		if !slices.Contains(lent, role) {
			lent = append(lent, role)
		}
	}
	long, cancel := context.WithTimeout(w.ctx, emptyFor)
	defer cancel()
	e := &emptying{work: w, in: in, has: lent, time: long}
	return w.lentIn(in, lent, func() error { return do(e) })
}

// disown takes from roles all that they have in databases. What they own in their own one
// goes to the heir, if there is one, and what they own elsewhere is dropped.
//
// Hazard: a tenant of another broker on the same server may grant something to the role,
// and only that broker gets into its database. The role opens nothing any more, and its
// name is needed for what may come: so it is left under another one.
func (w work) disown(databases []string, heir string, roles ...string) error {
	var barred []string
	for _, database := range databases {
		its := heir
		if database != w.names.database {
			its = ""
		}
		err := w.disownIn(database, its, roles...)
		if _, outside := errors.AsType[*pgconn.ConnectError](err); outside && classOf(err) == denied {
			barred = append(barred, database)
		} else if err != nil {
			return err
		}
	}
	if len(barred) == 0 {
		return nil
	}
	var left []string
	var lines []line
	args := []string{"locked: it has something where Longshore may not enter, in " + strings.Join(barred, ", ")}
	for _, role := range roles {
		left = append(left, prefixLeft+strings.ToLower(rand.Text()))
		n := len(args)
		args = append(args, role, left[len(left)-1])
		lines = append(lines, line{role, fmt.Sprintf(
			`ALTER ROLE %%%d$I RENAME TO %%%d$I; COMMENT ON ROLE %%%[2]d$I IS %%1$L`, n+1, n+2)})
	}
	if err := w.asks(lines, args...); err != nil {
		return err
	}
	w.log.WarnContext(w.ctx, "roles are locked and stay: they have something in a database that the broker may not enter. "+
		"Run DROP OWNED BY them there, and DROP ROLE", "roles", left, "were", roles, "databases", barred)
	return hosted.ErrChanged
}

func (w work) disownIn(database, heir string, roles ...string) error {
	lent := slices.Clone(roles)
	if w.seen.owner.exists() && !slices.Contains(lent, w.names.owner) {
		lent = append(lent, w.names.owner) // who has granted it what it has
	}
	return w.enter(database, func(c *pgx.Conn) error {
		return w.empty(c, func(e *emptying) error {
			for _, role := range roles {
				text := `DROP OWNED BY %1$I`
				if heir != "" {
					text = `REASSIGN OWNED BY %1$I TO %2$I; ` + text
					for _, of := range []string{ownedSchemas, ownedThings} {
						if err := e.all(of, role, heir); err != nil {
							return err
						}
					}
				}
				if err := e.close(role); err != nil {
					return err
				}
				if err := script(w.ctx, c, text, role, heir); err != nil {
					return err
				}
			}
			return nil
		}, lent...)
	})
}

// strangers takes from the roles of others what the tenant has given them in its
// database: once that is shut, they could not be emptied.
func (w work) strangers() error {
	rows, err := w.c.Query(w.ctx, `SELECT DISTINCT r.rolname::text FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = $1) AND s.refclassid = 'pg_authid'::regclass AND s.deptype <> 'o'
  AND r.rolname ~ '^ls' AND r.rolname NOT IN ($2, $3) ORDER BY 1`, w.names.database, w.names.owner, w.names.reader)
	if err != nil {
		return err
	}
	strangers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(strangers) == 0 {
		return err
	}
	return w.enter(w.names.database, func(c *pgx.Conn) error {
		return w.empty(c, func(e *emptying) error {
			for _, role := range strangers {
				if err := e.close(role); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// close revokes what was granted to a role, in the name of who owns it.
func (e *emptying) close(role string) error {
	for _, of := range []string{grantedThings, grantedDefaults, grantedPolicies, ownedDefaults} {
		if err := e.all(of, role, ""); err != nil {
			return err
		}
	}
	return nil
}

// A change is statements that one thing needs.
type change struct {
	As, Text string
	Roles    []string // of others, whose privileges it takes
}

// all makes what a query says until it says nothing more. What cannot be done that way
// is left to whoever calls, who does the rest at once, or says what is in the way.
func (e *emptying) all(query, role, heir string) error {
	var before []change
	for size := batch; ; {
		rows, err := e.in.Query(e.ctx, query, role, heir, readAtOnce)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[change])
		if err != nil || len(all) == 0 || reflect.DeepEqual(all, before) {
			return err
		}
		before = all
		for len(all) > 0 {
			some := all[:min(size, len(all))]
			err := e.make(some)
			_, refused := errors.AsType[*pgconn.PgError](err)
			switch class := classOf(err); {
			case err == nil:
				all = all[len(some):]
			case class == noLocks && size > 1: // others need them too
				size = max(size/10, 1)
			case class == denied, class == hosted.Other && refused:
				return nil
			default:
				return err
			}
			if e.time.Err() != nil {
				return hosted.ErrGoesOn
			}
		}
	}
}

// make makes changes, which take effect at once. The session is in a transaction before
// and after it.
func (e *emptying) make(some []change) error {
	var b strings.Builder
	var lent []string
	for _, c := range some {
		for _, role := range c.Roles {
			if !slices.Contains(lent, role) && !slices.Contains(e.has, role) {
				lent = append(lent, role)
			}
		}
		if c.As != "" {
			b.WriteString("SET LOCAL ROLE " + pgx.Identifier{c.As}.Sanitize() + "; ")
		}
		b.WriteString(c.Text + "; ")
	}
	run := func() error { return run(e.ctx, e.in, b.String()+"RESET ROLE; COMMIT; BEGIN") }
	if len(lent) == 0 {
		return e.undone(run())
	}
	return e.undone(e.lent(lent, run, func() error { return nil }))
}

// undone has an error leave the session in a new transaction.
func (e *emptying) undone(err error) error {
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		err = errors.Join(err, run(context.WithoutCancel(e.ctx), e.in, "ROLLBACK; BEGIN"))
	}
	return err
}

func run(ctx context.Context, c *pgx.Conn, text string) error {
	_, err := c.PgConn().Exec(ctx, text).ReadAll()
	return err
}

// The queries give statements, in whose name each is made, and whose privileges it takes. Their $1 is a role, $2
// its heir, and $3 how many there are at most. A tenant that is in its database drops or
// makes things meanwhile: what is gone is left out.

// dependingOn finds what depends on the role, in the session's database.
const dependingOn = `FROM pg_shdepend s WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND s.refclassid = 'pg_authid'::regclass AND s.refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)
  AND $2::text IS NOT NULL`

// ownedSchemas come first, since the heir has to be able to make things in them.
const ownedSchemas = `SELECT '', format('ALTER SCHEMA %I OWNER TO %I', n.nspname, $2::text), NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_namespace'::regclass AND s.deptype = 'o' LIMIT $3) o
JOIN pg_namespace n ON n.oid = o.objid`

// ownedThings are of every kind that a tenant can make many of. A sequence follows the
// table that owns it, and a multirange its range. A schema of another binding's is opened
// to the heir, who could not have a thing there otherwise.
const ownedThings = `SELECT '', coalesce((SELECT format('GRANT USAGE, CREATE ON SCHEMA %s TO %I; ', i.schema, $2::text)
    WHERE NOT has_schema_privilege($2::text, to_regnamespace(i.schema), 'CREATE')), '') ||
  format('ALTER %s %s OWNER TO %I', CASE WHEN i.type IN ('function', 'procedure', 'aggregate') THEN 'ROUTINE'
    WHEN i.type = 'statistics object' THEN 'STATISTICS' ELSE i.type END, i.identity, $2::text), NULL
FROM (SELECT s.classid, s.objid ` + dependingOn + ` AND s.deptype = 'o') o, pg_identify_object(o.classid, o.objid, 0) i
WHERE i.type IN ('table', 'view', 'materialized view', 'sequence', 'foreign table', 'type', 'function', 'procedure', 'aggregate',
    'operator', 'operator class', 'operator family', 'collation', 'conversion', 'text search dictionary',
    'text search configuration',
    'statistics object', 'publication', 'large object')
  AND NOT (i.type = 'sequence' AND EXISTS (SELECT FROM pg_depend d WHERE d.classid = o.classid AND d.objid = o.objid
    AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')))
  AND NOT (i.type = 'type' AND EXISTS (SELECT FROM pg_type t WHERE t.oid = o.objid AND t.typtype = 'm'))
LIMIT $3`

// grantedThings also end what third roles have passed on, to which the owner has given
// the right to. Each has it taken back by itself.
//
// Hazard: the server revokes what hangs on a right only from those who can have it in no
// other way, and what was passed on of a column not with the table. A binding is a member
// of the owner; and it may have passed on what it has lost since. So it is given the right
// again, which makes it the one in whose name its own REVOKE is; and the way to the thing.
const grantedThings = `SELECT x.owner::regrole::text,
  format('REVOKE ALL ON %s %s FROM %I CASCADE', x.kind, i.identity, $1) || coalesce(p.text, ''), p.roles
FROM (SELECT DISTINCT g.classid, g.objid FROM (SELECT s.classid, s.objid ` + dependingOn + ` AND s.deptype = 'a'
  AND s.classid IN (
  'pg_class'::regclass, 'pg_proc'::regclass, 'pg_namespace'::regclass, 'pg_type'::regclass,
  'pg_largeobject'::regclass) LIMIT $3) g) o,
LATERAL (
  SELECT relowner AS owner, CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, relacl || ARRAY(
    SELECT l FROM pg_attribute t, unnest(t.attacl) l WHERE t.attrelid = o.objid) AS acl
    FROM pg_class WHERE o.classid = 'pg_class'::regclass AND oid = o.objid
  UNION ALL SELECT proowner, 'ROUTINE', proacl FROM pg_proc WHERE o.classid = 'pg_proc'::regclass AND oid = o.objid
  UNION ALL SELECT nspowner, 'SCHEMA', nspacl FROM pg_namespace WHERE o.classid = 'pg_namespace'::regclass AND oid = o.objid
  UNION ALL SELECT typowner, 'TYPE', typacl FROM pg_type WHERE o.classid = 'pg_type'::regclass AND oid = o.objid
  UNION ALL SELECT lomowner, 'LARGE OBJECT', lomacl FROM pg_largeobject_metadata
    WHERE o.classid = 'pg_largeobject'::regclass AND oid = o.objid
) x, pg_identify_object(o.classid, o.objid, 0) i, LATERAL (
  SELECT array_agg(DISTINCT a.grantor::regrole::text) AS roles, string_agg(DISTINCT format(
    '; GRANT ALL ON %1$s %2$s TO %3$s WITH GRANT OPTION; ' ||
    u.granted || 'SET LOCAL ROLE %3$s; REVOKE ALL ON %1$s %2$s FROM %4$s CASCADE; ' || u.revoked ||
    'SET LOCAL ROLE %5$s; REVOKE ALL ON %1$s %2$s FROM %3$s CASCADE',
    x.kind, i.identity, a.grantor::regrole, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
    x.owner::regrole,
    i.schema), '') AS text
  FROM pg_roles r, aclexplode(x.acl) a, LATERAL (SELECT
    CASE WHEN y.needed THEN 'RESET ROLE; GRANT USAGE ON SCHEMA %6$s TO %3$s; ' ELSE '' END AS granted,
    CASE WHEN y.needed THEN 'RESET ROLE; REVOKE USAGE ON SCHEMA %6$s FROM %3$s; ' ELSE '' END AS revoked
    FROM (SELECT coalesce(NOT has_schema_privilege(a.grantor, to_regnamespace(i.schema)::oid, 'USAGE'), false) AS needed) y) u
  WHERE r.rolname = $1 AND r.oid IN (a.grantor, a.grantee) AND a.grantor <> x.owner
    AND a.grantor::regrole::text ~ '^ls[ob]'
) p
WHERE x.owner::regrole::text ~ '^ls[ob]' AND i.identity IS NOT NULL`

// defaults have all default privileges of an entry be revoked from somebody, %s.
const defaults = `format('ALTER DEFAULT PRIVILEGES FOR ROLE %s %s REVOKE ALL ON %s FROM %s', d.defaclrole::regrole,
  CASE WHEN d.defaclnamespace <> 0 THEN 'IN SCHEMA ' || d.defaclnamespace::regnamespace::text END,
  CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'ROUTINES' WHEN 'T' THEN 'TYPES'
    WHEN 'n' THEN 'SCHEMAS' ELSE 'LARGE OBJECTS' END, `

const grantedDefaults = `SELECT d.defaclrole::regrole::text, ` + defaults + `quote_ident($1)), NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_default_acl'::regclass AND s.deptype = 'a' LIMIT $3) o
JOIN pg_default_acl d ON d.oid = o.objid WHERE d.defaclrole::regrole::text ~ '^ls[ob]'`

// ownedDefaults are those for a schema; for none there are a few.
const ownedDefaults = `SELECT '', ` + defaults + `(
  SELECT string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
  FROM aclexplode(d.defaclacl) a)), NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_default_acl'::regclass AND s.deptype = 'o') o
JOIN pg_default_acl d ON d.oid = o.objid WHERE d.defaclnamespace <> 0 LIMIT $3`

// grantedPolicies end where they are for nobody else, as with DROP OWNED.
const grantedPolicies = `SELECT c.relowner::regrole::text, CASE WHEN rest.roles IS NULL
  THEN format('DROP POLICY %I ON %s', p.polname, p.polrelid::regclass)
  ELSE format('ALTER POLICY %I ON %s TO %s', p.polname, p.polrelid::regclass, rest.roles) END, NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_policy'::regclass AND s.deptype = 'r' LIMIT $3) o
JOIN pg_policy p ON p.oid = o.objid JOIN pg_class c ON c.oid = p.polrelid,
LATERAL (SELECT string_agg(r::regrole::text, ', ') AS roles FROM unnest(p.polroles) r
  WHERE r <> (SELECT oid FROM pg_roles WHERE rolname = $1)) rest
WHERE c.relowner::regrole::text ~ '^ls[ob]'`
