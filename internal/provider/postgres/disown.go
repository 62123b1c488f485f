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

// PostgreSQL drops a role only once the role owns nothing in any database, and has no right to anything. A
// tenant decides how much that is: it may be a million large objects, or tables.
//
// Hazard: REASSIGN OWNED and DROP OWNED change everything in one statement. They take a lock for each thing,
// from a table that all sessions share, take longer than a statement may, and begin anew each time. So
// batches change the things first, each in its own transaction, until those statements have little left to
// do.

// Sizes and time limits of batches.
const (
	// batch is how many things one transaction changes: a table takes several locks.
	batch = 100
	// readAtOnce is how many things one query reads: while a tenant's transaction keeps old entries alive,
	// each query walks over the entries of all things that were changed before.
	readAtOnce = 2000
	// emptyFor is how long a step works on batches. The next step goes on.
	emptyFor = 4 * time.Second
)

// An emptying removes what roles own and may do in the database of its session. Meanwhile the broker's login
// has the privileges of the roles in has.
type emptying struct {
	work
	in   sqlSession
	has  []string
	time context.Context // ends when the next step has to go on
}

// empty lends the broker's login the privileges of roles, and lets do empty roles of a database in a transaction
// that it commits in the end. Any tenant may grant something to another tenant's roles, whose names it can
// read. Only the grantor can revoke such a grant; anybody else gets a mere warning. So empty also lends the
// privileges of all roles that own something in the database.
func (w work) empty(database string, do func(*emptying) error, roles ...string) error {
	return w.enter(database, func(in sqlSession) error {
		lent, err := in.texts(`
SELECT DISTINCT r.rolname::text FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND s.refclassid = 'pg_authid'::regclass
  AND s.deptype = 'o' AND r.rolname ~ '^ls[ob]' AND EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles k ON k.oid = m.member
    WHERE m.roleid = r.oid AND m.admin_option AND starts_with(k.rolname::text, $1)) ORDER BY 1`, keepersOf(w.broker))
		if err != nil {
			return err
		}
		lent = distinct(lent, roles)
		long, cancel := context.WithTimeout(w.ctx, emptyFor)
		defer cancel()
		e := &emptying{work: w, in: in, has: lent, time: long}
		return w.lentIn(in, lent, func() error { return do(e) })
	})
}

// distinct returns the names in the lists, each once, sorted.
func distinct(lists ...[]string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(lists...))))
}

// disown removes what roles own and may do in databases. The heir, if there is one, gets what they own in the
// instance's database; what they own elsewhere is dropped.
//
// Hazard: a tenant of another broker on the same server may grant something to the role, and only that broker
// gets into that tenant's database. The role can no longer log in, but a later binding may need its name: so
// the role stays, under another name.
func (w work) disown(databases []string, heir string, roles ...string) error {
	var barred []string
	for _, database := range databases {
		its := heir
		if database != w.database {
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
	for i, role := range roles {
		left = append(left, prefixLeft+strings.ToLower(rand.Text()))
		lines = append(lines, line{role,
			fmt.Sprintf(`ALTER ROLE %%1$I RENAME TO %%%d$I; COMMENT ON ROLE %%%[1]d$I IS %%2$L`, i+3)})
	}
	why := "locked: it has something where Longshore may not enter, in " + strings.Join(barred, ", ")
	if err := w.asks(lines, append([]string{why}, left...)...); err != nil {
		return err
	}
	w.log.WarnContext(w.ctx, "roles are locked and stay: they have something in a database that the broker may not enter. "+
		"Run DROP OWNED BY them there, and DROP ROLE", "roles", left, "were", roles, "databases", barred)
	return hosted.ErrChanged
}

func (w work) disownIn(database, heir string, roles ...string) error {
	lent := slices.Clone(roles)
	if w.seen.owner.exists() {
		lent = append(lent, w.owner) // bindings have their rights from it
	}
	return w.empty(database, func(e *emptying) error {
		for _, role := range roles {
			text := `DROP OWNED BY %1$I`
			if heir != "" {
				text = `REASSIGN OWNED BY %1$I TO %2$I; ` + text
				if err := e.all(role, heir, ownedSchemas, ownedThings); err != nil {
					return err
				}
			}
			if err := e.close(role); err != nil {
				return err
			}
			if err := e.in.script(text, role, heir); err != nil {
				return err
			}
		}
		return nil
	}, lent...)
}

// strangers revokes what the tenant has granted, in its database, to the roles of other tenants: once the
// database is shut, those roles could not be emptied.
func (w work) strangers() error {
	strangers, err := w.texts(`
SELECT DISTINCT r.rolname::text FROM pg_shdepend s JOIN pg_roles r ON r.oid = s.refobjid
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = $1) AND s.refclassid = 'pg_authid'::regclass AND s.deptype <> 'o'
  AND r.rolname ~ '^ls' AND r.rolname NOT IN ($2, $3) ORDER BY 1`, w.database, w.owner, w.reader)
	if err != nil || len(strangers) == 0 {
		return err
	}
	return w.empty(w.database, func(e *emptying) error {
		for _, role := range strangers {
			if err := e.close(role); err != nil {
				return err
			}
		}
		return nil
	})
}

// close revokes what was granted to a role, acting as the owner of each thing.
func (e *emptying) close(role string) error {
	return e.all(role, "", grantedThings, grantedDefaults, grantedPolicies, ownedDefaults)
}

// A change is the statements for one thing, and the role that runs them.
type change struct {
	As, Text string
	Roles    []string // other roles whose privileges it needs
}

// all makes all changes that the queries return, one query after the other.
func (e *emptying) all(role, heir string, queries ...string) error {
	for _, query := range queries {
		if err := e.allOf(query, role, heir); err != nil {
			return err
		}
	}
	return nil
}

// allOf makes the changes that a query returns until the query returns none, or only those that cannot be
// made. It leaves changes that the server refuses to the caller's REASSIGN OWNED or DROP OWNED, which makes
// them or says what blocks them.
func (e *emptying) allOf(query, role, heir string) error {
	var before []change
	for size := batch; ; {
		all, err := collect(e.in, pgx.RowToStructByPos[change], query, role, heir, readAtOnce)
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
			case class == noLocks && size > 1: // others need locks too
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

// make makes and commits the changes. The session is in a transaction before and after.
func (e *emptying) make(some []change) error {
	var b strings.Builder
	var lent []string
	for _, c := range some {
		lent = append(lent, c.Roles...)
		if c.As != "" {
			b.WriteString("SET LOCAL ROLE " + pgx.Identifier{c.As}.Sanitize() + "; ")
		}
		b.WriteString(c.Text + "; ")
	}
	lent = slices.DeleteFunc(distinct(lent), func(role string) bool { return slices.Contains(e.has, role) })
	run := func() error { return e.in.run(b.String() + "RESET ROLE; COMMIT; BEGIN") }
	if len(lent) == 0 {
		return e.undone(run())
	}
	return e.undone(e.lent(lent, run, func() error { return nil }))
}

// undone puts the session into a new transaction if the server has refused a statement.
func (e *emptying) undone(err error) error {
	if _, refused := errors.AsType[*pgconn.PgError](err); refused {
		err = errors.Join(err, e.in.run("ROLLBACK; BEGIN"))
	}
	return err
}

// The queries return changes: the role that makes each change, its statements, and the roles whose privileges
// it needs. $1 is the role to empty, $2 its heir, and $3 the largest number of changes. The queries skip
// things that tenants drop meanwhile.

// dependingOn finds what depends on the role, in the session's database.
const dependingOn = `FROM pg_shdepend s WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND s.refclassid = 'pg_authid'::regclass AND s.refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)
  AND $2::text IS NOT NULL`

// ownedSchemas comes first, since the heir must be able to make things in the schemas.
const ownedSchemas = `SELECT '', format('ALTER SCHEMA %I OWNER TO %I', n.nspname, $2::text), NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_namespace'::regclass AND s.deptype = 'o' LIMIT $3) o
JOIN pg_namespace n ON n.oid = o.objid`

// ownedThings covers every kind of thing that a tenant can make many of. A sequence follows the table that
// owns it, and a multirange its range. The heir is granted access to the schemas of other bindings, because
// it could not own a thing in them otherwise.
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

// grantedThings also revokes rights that a third role has passed on with a grant option from the owner, each
// as that role.
//
// Hazard: CASCADE revokes a dependent right only from grantees that have it in no other way, and does not
// revoke rights on a column with those on its table. A binding is a member of the owner role, and may have
// passed on a right that it has lost since. So the right, and access to the schema, are granted to the
// binding again: its own REVOKE then runs with the binding as the grantor.
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

// defaults revokes all default privileges of an entry from the grantees that are appended.
const defaults = `format('ALTER DEFAULT PRIVILEGES FOR ROLE %s %s REVOKE ALL ON %s FROM %s', d.defaclrole::regrole,
  CASE WHEN d.defaclnamespace <> 0 THEN 'IN SCHEMA ' || d.defaclnamespace::regnamespace::text END,
  CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'ROUTINES' WHEN 'T' THEN 'TYPES'
    WHEN 'n' THEN 'SCHEMAS' ELSE 'LARGE OBJECTS' END, `

const grantedDefaults = `SELECT d.defaclrole::regrole::text, ` + defaults + `quote_ident($1)), NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_default_acl'::regclass AND s.deptype = 'a' LIMIT $3) o
JOIN pg_default_acl d ON d.oid = o.objid WHERE d.defaclrole::regrole::text ~ '^ls[ob]'`

// ownedDefaults covers the default privileges for single schemas: there are only a few others.
const ownedDefaults = `SELECT '', ` + defaults + `(
  SELECT string_agg(DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, ', ')
  FROM aclexplode(d.defaclacl) a)), NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_default_acl'::regclass AND s.deptype = 'o') o
JOIN pg_default_acl d ON d.oid = o.objid WHERE d.defaclnamespace <> 0 LIMIT $3`

// grantedPolicies removes the role from policies, and drops a policy that is for the role alone, as DROP
// OWNED does.
const grantedPolicies = `SELECT c.relowner::regrole::text, CASE WHEN rest.roles IS NULL
  THEN format('DROP POLICY %I ON %s', p.polname, p.polrelid::regclass)
  ELSE format('ALTER POLICY %I ON %s TO %s', p.polname, p.polrelid::regclass, rest.roles) END, NULL
FROM (SELECT s.objid ` + dependingOn + ` AND s.classid = 'pg_policy'::regclass AND s.deptype = 'r' LIMIT $3) o
JOIN pg_policy p ON p.oid = o.objid JOIN pg_class c ON c.oid = p.polrelid,
LATERAL (SELECT string_agg(r::regrole::text, ', ') AS roles FROM unnest(p.polroles) r
  WHERE r <> (SELECT oid FROM pg_roles WHERE rolname = $1)) rest
WHERE c.relowner::regrole::text ~ '^ls[ob]'`
