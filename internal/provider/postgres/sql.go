package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
)

// identitySchema returns the name of the broker's own schema in the database that the broker works in. It
// keeps brokers that share a server apart.
func identitySchema(broker string) string {
	return hosted.Name("lsi", provider.Tags{Broker: broker})
}

// identityTable returns the table that holds the server's identity and epoch.
func identityTable(broker string) string {
	return pgx.Identifier{identitySchema(broker), "identity"}.Sanitize()
}

// Identify implements hosted.Server.
func (s *sqlServer) Identify(ctx context.Context, broker string, write bool) (now hosted.Said, err error) {
	err = s.with(ctx, func(c sqlSession) error {
		if major(c) < oldest {
			return errOld
		}
		line, err := timeline(c)
		if err == nil {
			now, err = said(c, broker)
		}
		if err == nil && now.Identity == "" && write {
			if err = c.script(`CREATE SCHEMA IF NOT EXISTS %1$I;
CREATE TABLE IF NOT EXISTS %1$I.identity
  (broker text PRIMARY KEY, identity text NOT NULL, epoch bigint NOT NULL, mark text NOT NULL);
INSERT INTO %1$I.identity VALUES (%2$L, %3$L, 1, '') ON CONFLICT DO NOTHING`,
				identitySchema(broker), broker, rand.Text()); err == nil {
				now, err = said(c, broker)
			}
		}
		now.Epoch.Line = line
		return err
	})
	if err == nil && now.Identity != "" {
		s.keepWarm(ctx, now.Identity)
	}
	return now, err
}

// said reads the identity and the epoch; both are zero before the first Identify that writes.
func said(c sqlSession, broker string) (now hosted.Said, err error) {
	err = c.row("SELECT identity, epoch, mark FROM "+identityTable(broker)+" WHERE broker = $1", broker).
		Scan(&now.Identity, &now.Epoch.Count, &now.Epoch.Mark)
	if errors.Is(err, pgx.ErrNoRows) || coded(err, "42P01", "3F000") {
		return now, nil
	}
	return now, err
}

// oldest is the first version in which a role that makes roles administers only the roles that it made.
const oldest = 16

var errOld = errors.New("the server is older than PostgreSQL 16")

// errStandby refuses a standby, which only follows another server.
var errStandby = &pgconn.PgError{Severity: "ERROR", Code: "25006", Message: "it is a standby"}

// timeline returns the history that the server is on. It changes after a standby was promoted, or a backup
// was restored from the log. It is empty if a managed service hides it.
func timeline(c sqlSession) (line string, err error) {
	standby := false
	err = c.row(`SELECT pg_is_in_recovery(),
  CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END`).Scan(&standby, &line)
	if coded(err, "42501", "0A000", undefinedFunction) {
		return "", nil
	}
	if err == nil && standby {
		err = errStandby
	}
	return line, err
}

// Advance implements hosted.Server.
func (s *sqlServer) Advance(ctx context.Context, broker string, seen, to target.Epoch) (did bool, err error) {
	err = s.with(ctx, func(c sqlSession) error {
		tag, err := c.c.Exec(ctx, "UPDATE "+identityTable(broker)+" SET epoch = $4, mark = $5 WHERE broker = $1 AND epoch = $2 "+
			"AND mark = $3",
			broker, seen.Count, seen.Mark, to.Count, to.Mark)
		did = err == nil && tag.RowsAffected() == 1
		return err
	})
	return did, err
}

// looking reads all that a decision needs, in one statement. A session that is just beginning is not yet
// listed under its role, but it locks its database before the server checks whether it may connect: so it
// counts as a session of a locked login. A prepared transaction of the owner role may hold a lock on the
// login.
const looking = `
SELECT coalesce(o.oid, 0), coalesce(shobj_description(o.oid, 'pg_authid'), ''),
  coalesce(d.oid, 0), coalesce(shobj_description(d.oid, 'pg_database'), ''),
  coalesce(pg_get_userbyid(d.datdba) = current_user, false), coalesce(d.datallowconn, false), coalesce(d.datconnlimit, -1),
  CASE WHEN shobj_description(o.oid, 'pg_authid') LIKE '%"locked":"quarantine"%'
    THEN (SELECT count(*) FROM pg_stat_activity a WHERE a.datid = d.oid AND a.usename ~ '^lsb') ELSE 0 END,
  coalesce(l.oid, 0), coalesce(shobj_description(l.oid, 'pg_authid'), ''), coalesce(l.rolcanlogin, false),
  coalesce(s.n, 0),
  CASE WHEN NOT l.rolcanlogin THEN (SELECT count(*) FROM (` + preparedOf + `) x) ELSE 0 END,
  ARRAY(SELECT DISTINCT h.datname::text FROM pg_shdepend s JOIN pg_database h ON h.oid = s.dbid
    WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid = l.oid AND NOT l.rolcanlogin ORDER BY 1),
  ARRAY(SELECT DISTINCT h.datname::text FROM pg_shdepend s JOIN pg_database h ON h.oid = s.dbid
    WHERE s.refclassid = 'pg_authid'::regclass AND s.refobjid IN (o.oid, r.oid) AND d.oid IS NULL ORDER BY 1)
FROM (SELECT) one
LEFT JOIN pg_roles o ON o.rolname = $1
LEFT JOIN pg_roles r ON r.rolname = $4
LEFT JOIN pg_database d ON d.datname = $2
LEFT JOIN pg_roles l ON l.rolname = $3
LEFT JOIN LATERAL (` + sessionsOf + `) s ON true`

// sessionsOf counts the sessions of the login l, if the login is locked, and the sessions that are beginning
// in the database d.
//
// Hazard: both counts may miss a session that has just begun. So the locks are read first: OFFSET and LATERAL
// keep the planner from listing the sessions earlier.
const sessionsOf = `
SELECT cardinality(b.pids) - count(*) FILTER (WHERE a.pid = ANY (b.pids) AND a.usesysid IS NOT NULL)
  + count(*) FILTER (WHERE a.usesysid = l.oid) AS n
FROM (SELECT ARRAY(SELECT DISTINCT k.pid FROM pg_locks k WHERE k.locktype = 'object' AND k.classid = 'pg_database'::regclass
  AND k.objid = d.oid AND k.mode = 'RowExclusiveLock' AND k.pid IS NOT NULL) AS pids
  WHERE NOT l.rolcanlogin OFFSET 0) b
LEFT JOIN LATERAL (SELECT x.pid, x.usesysid FROM pg_stat_activity x WHERE x.usesysid = l.oid OR x.pid = ANY (b.pids)) a ON true
GROUP BY b.pids`

// preparedOf selects the prepared transactions that block the removal of a login: those of the owner role $1
// that hold a lock on the login $3, and the login's own.
const preparedOf = `SELECT x.gid, x.database::text, x.owner::text FROM pg_prepared_xacts x
WHERE x.owner = $3 OR x.owner = $1 AND x.database = $2 AND EXISTS (
  SELECT FROM pg_roles b
  JOIN pg_locks k ON k.objid = b.oid AND k.locktype = 'object' AND k.classid = 'pg_authid'::regclass AND k.pid IS NULL
  JOIN pg_locks t ON t.virtualtransaction = k.virtualtransaction AND t.pid IS NULL AND t.transactionid = x.transaction
  WHERE b.rolname = $3)`

// Look implements hosted.Host.
func (s *sqlServer) Look(ctx context.Context, t provider.Tags) (now seen, err error) {
	err = s.with(ctx, func(c sqlSession) error {
		now, err = lookOn(c, namesOf(t))
		return err
	})
	return now, err
}

func lookOn(c sqlSession, n names) (now seen, err error) {
	o, d, l := &now.owner, &now.database, &now.login
	err = c.row(looking, n.owner, n.database, n.login, n.reader).Scan(&o.id, &o.comment,
		&d.id, &d.comment, &d.ours, &d.open, &d.limit, &d.sessions,
		&l.id, &l.comment, &l.canLogin, &l.sessions, &l.prepared, &l.holds, &o.holds)
	return now, err
}

// keyOf derives the key of an advisory lock from a text.
func keyOf(name string) int64 {
	sum := sha256.Sum256([]byte("longshore " + name))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// Do implements hosted.Host. It takes the lock of the thing, in the broker's own database, looks, and acts.
// The lock belongs to the session: it is held while the server still runs the statement of a dead caller.
func (s *sqlServer) Do(ctx context.Context, t provider.Tags, was seen, a any) error {
	n := namesOf(t)
	return s.with(ctx, func(c sqlSession) error {
		key, locked := keyOf(cmp.Or(n.login, n.owner)), false
		if err := c.row("SELECT pg_try_advisory_lock($1)", key).Scan(&locked); err != nil {
			return err
		}
		if !locked {
			return hosted.ErrChanged
		}
		now, err := lookOn(c, n)
		if err != nil {
			return err
		}
		if !now.same(was) {
			return hosted.ErrChanged
		}
		if err := a.(act).do(work{sqlServer: s, sqlSession: c, names: n, seen: now}); err != nil {
			return err
		}
		return c.exec("SELECT pg_advisory_unlock($1)", key)
	})
}

// offering finds the locale $1, as CREATE DATABASE names it, and those of the extensions $2. The function to_jsonb
// reads the column of ICU's locales, whose name differs between versions.
const offering = `
SELECT coalesce((SELECT CASE collprovider
    WHEN 'i' THEN format('LOCALE_PROVIDER icu ICU_LOCALE %L LOCALE ''C''', icu)
    WHEN 'b' THEN format('LOCALE_PROVIDER builtin BUILTIN_LOCALE %L LOCALE ''C''', icu)
    ELSE format('LOCALE_PROVIDER libc LC_COLLATE %L LC_CTYPE %L', collcollate, collctype) END
  FROM pg_collation c, LATERAL (SELECT coalesce(to_jsonb(c)->>'colllocale', to_jsonb(c)->>'colliculocale')) l (icu)
  WHERE collname = $1 AND collnamespace = 'pg_catalog'::regnamespace
    AND collencoding IN (-1, pg_char_to_encoding('UTF8'))
    AND collprovider IN ('c', 'i', 'b') ORDER BY collencoding LIMIT 1), ''),
  ARRAY(SELECT a.name::text FROM pg_available_extensions a
    JOIN pg_available_extension_versions v ON v.name = a.name AND v.version = a.default_version
    WHERE v.trusted AND a.name = ANY($2) ORDER BY 1)`

func (s *sqlServer) offers(ctx context.Context, name string, extensions []string) (has offer, err error) {
	err = s.with(ctx, func(c sqlSession) error {
		return c.row(offering, name, extensions).Scan(&has.locale, &has.extensions)
	})
	return has, err
}

// listing reads a page of the inventory, starting from the index of names. It reads the comments from their
// table: calling the function that returns a single comment would take as long as all the rest.
const listing = `
(SELECT r.rolname::text COLLATE "C" AS name, c.description FROM pg_roles r
  JOIN pg_shdescription c ON c.objoid = r.oid AND c.classoid = 'pg_authid'::regclass
  WHERE r.rolname > $1 AND r.rolname ~ '^ls[ob]' AND c.description LIKE 'longshore:%' ORDER BY r.rolname LIMIT $2)
UNION ALL
(SELECT d.datname::text, c.description FROM pg_database d
  JOIN pg_shdescription c ON c.objoid = d.oid AND c.classoid = 'pg_database'::regclass
  WHERE d.datname > $1 AND d.datname ~ '^lsd' AND c.description LIKE 'longshore:%'
    AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = overlay(d.datname::text placing 'lso' from 1 for 3))
  ORDER BY d.datname LIMIT $2)
ORDER BY name LIMIT $2`

// List implements hosted.Host.
func (s *sqlServer) List(ctx context.Context, broker, after string, limit int) (page []hosted.Listed, last string, err error) {
	err = s.with(ctx, func(c sqlSession) error {
		rows, _ := c.c.Query(ctx, listing, after, limit) // the rows return its error
		var name, comment string
		read := 0
		_, err := pgx.ForEachRow(rows, []any{&name, &comment}, func() error {
			if read++; read == limit {
				last = name
			}
			if l, ok := hosted.ParseLabel(comment); ok && l.Broker == broker {
				page = append(page, hosted.Listed{Name: name, Label: l})
			}
			return nil
		})
		return err
	})
	return page, last, err
}

func (s *sqlServer) usage(ctx context.Context, name string) (u usage, err error) {
	err = s.with(ctx, func(c sqlSession) error {
		u.version, _, _ = strings.Cut(c.c.PgConn().ParameterStatus("server_version"), " ")
		return c.row(`SELECT coalesce((SELECT pg_database_size(d.oid) FROM pg_database d WHERE d.datname = $1), 0),
  (SELECT count(*) FROM pg_stat_activity a WHERE a.datname = $1 AND a.usename ~ '^lsb')`, name).Scan(&u.size, &u.sessions)
	})
	return u, err
}

// major returns the major version of the server.
func major(c sqlSession) int { return pgconfig.Major(c.c.PgConn().ParameterStatus("server_version")) }
