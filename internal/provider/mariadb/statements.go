package mariadb

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// What bindings may do in their database: all but drop the history of tables, which
// the broker's login cannot give.
const (
	privileges = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK " +
		"TABLES, EXECUTE, " +
		"CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER"
	readPrivileges = "SELECT, SHOW VIEW"
	// Those that others may have been given on a table, and on a routine.
	tablePrivileges   = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE VIEW, SHOW VIEW, TRIGGER"
	routinePrivileges = "EXECUTE, ALTER ROUTINE"
)

// quoted is a name in a statement. Those of databases and accounts are derived;
// those of events, and of strangers, may hold anything.
func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func account(name string) string { return quoted(name) + "@'%'" }

// A job is one connection that holds the lock of an instance. The lock ends with
// the connection: what a caller who has died still has under way is over before
// anybody else begins.
type job struct {
	*sql.Conn
	names
}

func (j job) run(ctx context.Context, statement string, args ...any) error {
	_, err := j.ExecContext(ctx, statement, args...)
	return err
}

// lockName is the lock's of an instance, which a tenant could take if it knew it.
func lockName(identity, database string) string {
	sum := sha256.Sum256([]byte(identity + " " + database))
	return hex.EncodeToString(sum[:16])
}

// lockWait is how many seconds somebody else's job is waited for.
const lockWait = 1

// Do implements hosted.Host. One at a time works on an instance.
func (s *sqlServer) Do(ctx context.Context, t provider.Tags, now seen, act any) error {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	n := namesOf(t)
	lock := lockName(*s.identity.Load(), n.database)
	var got sql.NullInt64
	if err := c.QueryRowContext(ctx, "SELECT GET_LOCK(?, ?)", lock, lockWait).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return hosted.ErrChanged
	}
	err = job{c, n}.act(ctx, now, act)
	if _, unlock := c.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK(?)", lock); unlock != nil {
		_ = c.Raw(func(any) error { return driver.ErrBadConn }) // the lock goes with it
	}
	return err
}

// act makes the change, if the records are as they were seen.
func (j job) act(ctx context.Context, was seen, a any) error {
	now, err := recorded(ctx, j, j.names)
	if err != nil {
		return err
	}
	if !now.instance.same(was.instance) || len(now.logins) != len(was.logins) {
		return hosted.ErrChanged
	}
	for i, l := range now.logins {
		if !l.record.same(was.logins[i].record) {
			return hosted.ErrChanged
		}
	}
	switch a := a.(type) {
	case put:
		return j.put(ctx, a.record)
	case forget:
		return changed(ctx, j, "DELETE FROM things WHERE serial = ? AND version = ?", a.record.serial, a.record.version)
	case createDatabase:
		return j.run(ctx, "CREATE DATABASE IF NOT EXISTS "+quoted(j.database)+" CHARACTER SET utf8mb4 COLLATE "+a.collation+
			" COMMENT 'Longshore keeps whose this is in its own database'")
	case dropDatabase:
		return j.dropDatabase(ctx)
	case revoke:
		return j.revoke(ctx, a.from)
	case disableEvents:
		for _, event := range a.events {
			if err := j.run(ctx, "ALTER EVENT "+quoted(j.database)+"."+quoted(event)+" DISABLE"); err != nil {
				return err
			}
		}
		return nil
	}
	return j.actOnLogin(ctx, a)
}

func (j job) actOnLogin(ctx context.Context, a any) error {
	switch a := a.(type) {
	case createLogin:
		return j.createLogin(ctx, a)
	case openLogin:
		return j.run(ctx, "ALTER USER "+account(a.name)+identified(a.verifier)+requires(a.tls)+a.limits.with()+" ACCOUNT UNLOCK")
	case limitLogin:
		return j.run(ctx, "ALTER USER "+account(a.name)+a.limits.with())
	case lockLogin:
		return j.lockLogin(ctx, a)
	case unlockLogin:
		err := j.run(ctx, "ALTER USER "+account(a.name)+" ACCOUNT UNLOCK")
		if err == nil && a.role == roleAll {
			err = j.run(ctx, "GRANT EVENT ON "+quoted(j.database)+".* TO "+account(a.name))
		}
		return err
	case endSessions:
		return j.endSessions(ctx, a.name)
	case dropLogin:
		return j.run(ctx, "DROP USER IF EXISTS "+account(a.name))
	}
	return fmt.Errorf("there is no act %T", a)
}

// changed makes a change of a record, which is hosted.ErrChanged if it is another one now.
func changed(ctx context.Context, q interface {
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}, statement string, args ...any) error {
	result, err := q.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(hosted.ErrChanged, err)
	}
	return nil
}

func (j job) put(ctx context.Context, r record) error {
	details, err := json.Marshal(r.details)
	if err != nil {
		return err
	}
	if !r.exists() {
		return j.run(ctx, "INSERT INTO things (name, instance, broker, version, label, details) VALUES (?, ?, ?, 1, ?, ?)",
			r.name, r.instance, r.label.Broker, r.label.Text(), string(details))
	}
	return changed(ctx, j, "UPDATE things SET version = version + 1, label = ?, details = ? WHERE serial = ? AND version = ?",
		r.label.Text(), string(details), r.serial, r.version)
}

// dropDatabase ends the connections to the database first, whoever has them: an
// operator's session would hold the drop up. It may take longer than a step: the server
// goes on, with the lock, and others meet that it is busy. Hazard: one that is cut off
// has dropped nothing, so that a database of many tables would never go.
func (j job) dropDatabase(ctx context.Context) error {
	var ids []int64
	err := query(ctx, j, func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	}, "SELECT id FROM information_schema.processlist WHERE db = ?", j.database)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := j.run(ctx, fmt.Sprintf("KILL CONNECTION %d", id)); err != nil && classOf(err) != hosted.Busy {
			return err
		}
	}
	return j.run(ctx, "SET STATEMENT max_statement_time = 0 FOR DROP DATABASE IF EXISTS "+quoted(j.database))
}

// revoke takes the rights away, on tables and routines too.
func (j job) revoke(ctx context.Context, from []grantee) error {
	for _, g := range from {
		who := quoted(g.user)
		if g.host != "" { // a role has none
			who += "@" + quoted(g.host)
		}
		rights := []string{privileges + " ON " + quoted(j.database) + ".*", "GRANT OPTION ON " + quoted(j.database) + ".*"}
		err := query(ctx, j, func(scan func(...any) error) error {
			var kind, name, some string
			err := scan(&kind, &name, &some)
			on := " ON " + kind + quoted(j.database) + "." + quoted(name)
			rights = append(rights, some+on, "GRANT OPTION"+on)
			return err
		}, `SELECT '', table_name, ? FROM mysql.tables_priv WHERE user = ? AND host = ? AND db = ? UNION
			SELECT CONCAT(routine_type, ' '), routine_name, ? FROM mysql.procs_priv WHERE user = ? AND host = ? AND db = ?`,
			tablePrivileges, g.user, g.host, j.database, routinePrivileges, g.user, g.host, j.database)
		if err != nil {
			return err
		}
		for _, right := range rights {
			err := j.run(ctx, "REVOKE "+right+" FROM "+who)
			if err != nil && classOf(err) != hosted.Busy { // it has none of that kind
				return err
			}
		}
	}
	var now seen
	if err := lookAtGrants(ctx, j, j.database, &now); err != nil {
		return err
	}
	for _, g := range now.strangers {
		if slices.Contains(from, g) {
			return fmt.Errorf("the account or role %q has rights on the database %q that the broker's login cannot take from "+
				"it: revoke them",
				g.user, j.database)
		}
	}
	return nil
}

// createLogin is repeated over whatever part of it stands: rights are the role's in
// the end, and never those of another one.
func (j job) createLogin(ctx context.Context, a createLogin) error {
	on := " ON " + quoted(j.database) + ".* "
	given := privileges
	if a.role == roleReadOnly {
		given = readPrivileges
	}
	if err := j.run(ctx, "CREATE USER IF NOT EXISTS "+account(a.name)+identified(nobodys())+" ACCOUNT LOCK"); err != nil {
		return err
	}
	if err := j.run(ctx, "REVOKE "+privileges+on+"FROM "+account(a.name)); err != nil && classOf(err) != hosted.Busy {
		return err
	}
	return j.run(ctx, "GRANT "+given+on+"TO "+account(a.name))
}

// lockLogin takes the right to events first. Hazard: the server runs those of a locked
// account, too, each time in a session of its own, so that there would always be some.
func (j job) lockLogin(ctx context.Context, a lockLogin) error {
	err := j.run(ctx, "REVOKE EVENT ON "+quoted(j.database)+".* FROM "+account(a.record.name))
	if err != nil && classOf(err) != hosted.Busy { // it has no such right
		return err
	}
	password := ""
	if !a.keep {
		password = identified(nobodys())
	}
	if err := j.run(ctx, "ALTER USER "+account(a.record.name)+password+" ACCOUNT LOCK"); err != nil {
		return err
	}
	if err := j.endSessions(ctx, a.record.name); err != nil && !errors.Is(err, hosted.ErrGoesOn) {
		return err // else another look finds them
	}
	if a.keep {
		return nil
	}
	return j.put(ctx, a.record.in(ended))
}

// endSessions kills what an account has open, and sees that it is gone: what a
// session does is rolled back first.
func (j job) endSessions(ctx context.Context, name string) error {
	for range 20 {
		if err := j.run(ctx, "KILL CONNECTION USER "+quoted(name)); err != nil {
			return err
		}
		var n int
		err := j.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE user = ?", name).Scan(&n)
		if err != nil || n == 0 {
			return err
		}
		if err := waiting.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return hosted.ErrGoesOn
}

var errOther = errors.New("it is not known who the server is")

func (s *sqlServer) expel(ctx context.Context, identity, name string) error {
	if known := s.identity.Load(); identity == "" || known == nil || *known != identity {
		return errOther
	}
	_, err := s.db.ExecContext(ctx, "KILL CONNECTION USER "+quoted(name))
	return err
}

// identified is a password in a statement, by its hash alone.
func identified(verifier string) string {
	return " IDENTIFIED VIA mysql_native_password USING '" + verifier + "'"
}

// nobodys is a hash of which nobody has the password.
func nobodys() string {
	var random [20]byte
	_, _ = rand.Read(random[:]) // it cannot fail
	return "*" + strings.ToUpper(hex.EncodeToString(random[:]))
}

func requires(tls bool) string {
	if tls {
		return " REQUIRE SSL"
	}
	return " REQUIRE NONE"
}

func (l limits) with() string {
	return fmt.Sprintf(" WITH MAX_USER_CONNECTIONS %d MAX_STATEMENT_TIME %d", l.Connections, l.StatementTimeout)
}
