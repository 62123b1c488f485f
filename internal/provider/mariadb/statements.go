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

// Rights of bindings in their database: all but the right to delete the history of tables, which the broker's
// login cannot grant.
const (
	privileges = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK " +
		"TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER"
	readPrivileges = "SELECT, SHOW VIEW"
	// Rights that somebody may have granted to strangers, on a table and on a routine.
	tablePrivileges   = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE VIEW, SHOW VIEW, TRIGGER"
	routinePrivileges = "EXECUTE, ALTER ROUTINE"
)

// quoted returns a name as an identifier for a statement. The names of events and of strangers may contain
// anything.
func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func account(name string) string { return quoted(name) + "@'%'" }

// A job is the work of one call on the things with these names.
type job struct {
	ctx context.Context
	querier
	names
}

func (j job) run(statement string, args ...any) error {
	_, err := j.ExecContext(j.ctx, statement, args...)
	return err
}

// lockName returns the name of an instance's lock. It is secret: a tenant that knew it could take the lock.
func lockName(identity, database string) string {
	sum := sha256.Sum256([]byte(identity + " " + database))
	return hex.EncodeToString(sum[:16])
}

// lockWait is how many seconds a caller waits for another caller's job.
const lockWait = 1

// Do implements hosted.Host. One caller at a time works on an instance: its connection holds the instance's
// lock. The lock ends with the connection: another caller gets the lock only after the statement of a dead
// caller has ended.
func (s *sqlServer) Do(ctx context.Context, t provider.Tags, now seen, a any) error {
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
	if got.Int64 != 1 { // another look would only wait again
		return hosted.ErrGoesOn
	}
	err = job{ctx, c, n}.act(now, a.(act))
	if _, unlock := c.ExecContext(ctx, "DO RELEASE_LOCK(?)", lock); unlock != nil {
		_ = c.Raw(func(any) error { return driver.ErrBadConn }) // closing the connection frees the lock
	}
	return err
}

// act makes the change, if the records are still as they were seen.
func (j job) act(was seen, a act) error {
	now, err := j.recorded()
	if err != nil {
		return err
	}
	if !now.instance.same(was.instance) || !slices.EqualFunc(now.logins, was.logins, func(now, was login) bool {
		return now.record.same(was.record)
	}) {
		return hosted.ErrChanged
	}
	return a.do(j)
}

func (a put) do(j job) error { return j.put(a.record) }

func (a forget) do(j job) error {
	return j.changed("DELETE FROM things WHERE serial = ? AND version = ?", a.record.serial, a.record.version)
}

func (a run) do(j job) error {
	for _, statement := range a {
		if err := j.run(statement); err != nil {
			return err
		}
	}
	return nil
}

func (r record) createDatabase() run {
	return run{"CREATE DATABASE IF NOT EXISTS " + quoted(r.name) + " CHARACTER SET utf8mb4 COLLATE " + r.details.Collation +
		" COMMENT 'Longshore keeps whose this is in its own database'"}
}

func (l login) disableEvents() (all run) {
	for _, event := range l.events {
		all = append(all, "ALTER EVENT "+quoted(l.record.instance)+"."+quoted(event)+" DISABLE")
	}
	return all
}

func (l login) alter(clauses string) run { return run{"ALTER USER " + account(l.name) + clauses} }

// open lets the account in with a password. The server gets only the hash of the password.
func (w wantedBinding) open(l login) run {
	return l.alter(identified(w.verifier) + requires(w.tls) + w.limits.with() + " ACCOUNT UNLOCK")
}

// unlock undoes a lockLogin that kept the password.
func (l login) unlock() run {
	all := l.alter(" ACCOUNT UNLOCK")
	if l.record.details.Role == roleAll {
		all = append(all, "GRANT EVENT ON "+quoted(l.record.instance)+".* TO "+account(l.name))
	}
	return all
}

func (l login) drop() run { return run{"DROP USER IF EXISTS " + account(l.name)} }

// changed changes a row. It returns hosted.ErrChanged if no row meets the condition any more.
func (j job) changed(statement string, args ...any) error {
	result, err := j.ExecContext(j.ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(hosted.ErrChanged, err)
	}
	return nil
}

func (j job) put(r record) error {
	details, _ := json.Marshal(r.details) // texts
	if !r.exists() {
		return j.run("INSERT INTO things (name, instance, broker, version, label, details) VALUES (?, ?, ?, 1, ?, ?)",
			r.name, r.instance, r.label.Broker, r.label.Text(), string(details))
	}
	return j.changed("UPDATE things SET version = version + 1, label = ?, details = ? WHERE serial = ? AND version = ?",
		r.label.Text(), string(details), r.serial, r.version)
}

// It first ends all connections to the database, even an operator's, which would block the drop. The drop may
// take longer than a step: the server goes on with it, and holds the lock meanwhile. Hazard: a drop that is
// cut off has dropped nothing, so a database of many tables would never go away.
func (dropDatabase) do(j job) error {
	sessions, err := j.query("SELECT id FROM information_schema.processlist WHERE db = ?", j.database)
	if err != nil {
		return err
	}
	for _, row := range sessions {
		if err := j.run("KILL CONNECTION " + row[0]); err != nil && classOf(err) != hosted.Busy {
			return err
		}
	}
	return j.run("SET STATEMENT max_statement_time = 0 FOR DROP DATABASE IF EXISTS " + quoted(j.database))
}

// It revokes rights on tables and routines, too.
func (a revoke) do(j job) error {
	for _, g := range a.from {
		who := quoted(g.user)
		if g.host != "" { // a role has none
			who += "@" + quoted(g.host)
		}
		given, err := j.query(`SELECT '', table_name, ? FROM mysql.tables_priv WHERE user = ? AND host = ? AND db = ? UNION
			SELECT CONCAT(routine_type, ' '), routine_name, ? FROM mysql.procs_priv WHERE user = ? AND host = ? AND db = ?`,
			tablePrivileges, g.user, g.host, j.database, routinePrivileges, g.user, g.host, j.database)
		if err != nil {
			return err
		}
		rights := []string{privileges + " ON " + quoted(j.database) + ".*", "GRANT OPTION ON " + quoted(j.database) + ".*"}
		for _, row := range given {
			on := " ON " + row[0] + quoted(j.database) + "." + quoted(row[1])
			rights = append(rights, row[2]+on, "GRANT OPTION"+on)
		}
		for _, right := range rights {
			err := j.run("REVOKE " + right + " FROM " + who)
			if err != nil && classOf(err) != hosted.Busy { // the grantee has no right of that kind
				return err
			}
		}
	}
	var now seen
	if err := j.lookAtGrants(&now); err != nil {
		return err
	}
	for _, g := range now.strangers {
		if slices.Contains(a.from, g) {
			return fmt.Errorf("the account or role %q has rights on the database %q that the broker's login cannot take from "+
				"it: revoke them", g.user, j.database)
		}
	}
	return nil
}

// It completes an account that exists in part: in the end, the account has the rights of its role, and it
// never has those of another role.
func (a createLogin) do(j job) error {
	on := " ON " + quoted(j.database) + ".* "
	given := privileges
	if a.role == roleReadOnly {
		given = readPrivileges
	}
	if err := j.run("CREATE USER IF NOT EXISTS " + account(a.name) + identified(nobodys()) + " ACCOUNT LOCK"); err != nil {
		return err
	}
	if err := j.run("REVOKE " + privileges + on + "FROM " + account(a.name)); err != nil && classOf(err) != hosted.Busy {
		return err
	}
	return j.run("GRANT " + given + on + "TO " + account(a.name))
}

// It first revokes the right to events. Hazard: the server also runs the events of a locked account, each in
// a session of its own, so there would always be sessions.
func (a lockLogin) do(j job) error {
	err := j.run("REVOKE EVENT ON " + quoted(j.database) + ".* FROM " + account(a.record.name))
	if err != nil && classOf(err) != hosted.Busy { // the account has no such right
		return err
	}
	password := ""
	if !a.keep {
		password = identified(nobodys())
	}
	if err := j.run("ALTER USER " + account(a.record.name) + password + " ACCOUNT LOCK"); err != nil {
		return err
	}
	if err := (endSessions{a.record.name}).do(j); err != nil && !errors.Is(err, hosted.ErrGoesOn) {
		return err // the next look finds sessions that are left
	}
	if a.keep {
		return nil
	}
	return j.put(a.record.in(ended))
}

// It waits until the sessions are gone: they first roll back. Clients that are logging in are cut off, too. It does
// not wait for them: once the account is locked, no later one gets in, and anybody could have some at any time.
func (a endSessions) do(j job) error {
	for range 20 {
		if err := j.run("KILL CONNECTION USER " + quoted(a.name)); err != nil {
			return err
		}
		var n int
		err := j.QueryRowContext(j.ctx, "SELECT "+loggedIn+" FROM information_schema.processlist WHERE BINARY user = ?",
			a.name).Scan(&n)
		if err != nil || n == 0 {
			return err
		}
		if err := waiting.For(j.ctx, 20*time.Millisecond); err != nil {
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

// identified returns the clause of a statement that sets a password by its hash alone.
func identified(verifier string) string {
	return " IDENTIFIED VIA mysql_native_password USING '" + verifier + "'"
}

// nobodys returns the hash of a password that nobody knows.
func nobodys() string { return verifierOf(rand.Text()) }

func requires(tls bool) string {
	if tls {
		return " REQUIRE SSL"
	}
	return " REQUIRE NONE"
}

func (l limits) with() string {
	return fmt.Sprintf(" WITH MAX_USER_CONNECTIONS %d MAX_STATEMENT_TIME %d", l.Connections, l.StatementTimeout)
}
