package mariadb

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A querier is a pool or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, statement string, args ...any) (sql.Result, error)
}

// query reads the rows of a query as text.
func (j job) query(text string, args ...any) (all [][]string, err error) {
	rows, err := j.QueryContext(j.ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err says what went wrong
	columns, err := rows.Columns()
	for err == nil && rows.Next() {
		row, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		err = rows.Scan(into...)
		all = append(all, row)
	}
	return all, cmp.Or(err, rows.Err())
}

// records reads the records that a condition selects.
func (j job) records(where string, args ...any) (all []record, err error) {
	rows, err := j.query("SELECT name, instance, serial, version, label, details FROM things "+where, args...)
	for _, row := range rows {
		r := record{name: row[0], instance: row[1], serial: row[2], version: row[3]}
		var ok bool
		if r.label, ok = hosted.ParseLabel(row[4]); !ok || json.Unmarshal([]byte(row[5]), &r.details) != nil {
			return nil, cmp.Or(err, fmt.Errorf("the record of %q cannot be read: somebody has changed it, or a later version "+
				"wrote it", r.name))
		}
		all = append(all, r)
	}
	return all, err
}

// List implements hosted.Host. It skips accounts that only stay until their instance is removed.
func (s *sqlServer) List(ctx context.Context, broker, after string, limit int) (page []hosted.Listed, last string, err error) {
	all, err := job{ctx, s.db, names{}}.records("WHERE broker = ? AND name > ? ORDER BY name LIMIT ?", broker, after, limit)
	for _, r := range all {
		if r.details.Phase != left {
			page = append(page, hosted.Listed{Name: r.name, Label: r.label})
		}
	}
	if len(all) == limit {
		last = all[limit-1].name
	}
	return page, last, err
}

func (s *sqlServer) collation(ctx context.Context, name string) (has bool, err error) {
	err = s.db.QueryRowContext(ctx, `SELECT COUNT(*) > 0 FROM information_schema.collation_character_set_applicability
		WHERE character_set_name = 'utf8mb4' AND ? IN (collation_name, full_collation_name)`, name).Scan(&has)
	return has, err
}

func (s *sqlServer) links(ctx context.Context) (follows bool, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT @@have_symlink = 'YES'").Scan(&follows)
	return follows, err
}

// sizeTime is how many seconds summing up sizes may take: the server opens each table of the database for
// that.
const sizeTime = 3

func (s *sqlServer) usage(ctx context.Context, database string) (version string, size *int64, err error) {
	size = new(int64)
	err = s.db.QueryRowContext(ctx, fmt.Sprintf("SET STATEMENT max_statement_time = %d FOR ", sizeTime)+
		`SELECT CAST(IFNULL(SUM(data_length + index_length), 0) AS SIGNED) FROM information_schema.tables
		WHERE table_schema = ?`, database).Scan(size)
	if errors.Is(err, errTooLong) {
		size, err = nil, nil
	}
	if err == nil {
		err = s.db.QueryRowContext(ctx, "SELECT SUBSTRING_INDEX(@@version, '-', 1)").Scan(&version)
	}
	return version, size, err
}

// recorded reads the records of the instance and the logins with these names.
func (j job) recorded() (now seen, err error) {
	which, args := "WHERE instance = ? ORDER BY name", []any{j.database}
	if j.login != "" {
		now.logins = []login{{name: j.login}}
		which, args = "WHERE name IN (?, ?)", []any{j.database, j.login}
	}
	all, err := j.records(which, args...)
	for _, r := range all {
		switch {
		case r.name == j.database:
			now.instance = r
		case j.login != "":
			now.logins[0].record = r
		default:
			now.logins = append(now.logins, login{name: r.name, record: r})
		}
	}
	return now, err
}

// Look implements hosted.Host.
func (s *sqlServer) Look(ctx context.Context, t provider.Tags) (seen, error) {
	c, err := s.db.Conn(ctx)
	if err != nil {
		return seen{}, err
	}
	defer func() { _ = c.Close() }()
	j := job{ctx, c, namesOf(t)}
	now, err := j.recorded()
	for _, look := range []func(*seen) error{
		j.lookAtDatabase, j.lookAtLogins, j.lookAtSessions, j.lookAtGrants, j.lookAtEvents, j.lookAtDefiners,
	} {
		if err == nil {
			err = look(&now)
		}
	}
	return now, err
}

// login finds a login by name; nil if there is none.
func (now *seen) login(name string) *login {
	i, found := slices.BinarySearchFunc(now.logins, name, func(l login, name string) int { return strings.Compare(l.name, name) })
	if !found {
		return nil
	}
	return &now.logins[i]
}

// in returns a list of placeholders for the logins' names, and the names as its arguments.
func (now *seen) in() (list string, args []any) {
	for _, l := range now.logins {
		args = append(args, l.name)
	}
	return places(args), args
}

// places returns a list of placeholders for arguments.
func places(args []any) string {
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ") + ")"
}

func (j job) lookAtDatabase(now *seen) error {
	rows, err := j.query("SELECT schema_name FROM information_schema.schemata WHERE schema_name = ?", j.database)
	now.database = len(rows) > 0
	return err
}

// lookAtLogins reads the accounts from the server's own table.
func (j job) lookAtLogins(now *seen) error {
	if len(now.logins) == 0 {
		return nil
	}
	list, args := now.in()
	rows, err := j.query(`SELECT user, IFNULL(JSON_VALUE(priv, '$.authentication_string'), ''),
		IFNULL(JSON_VALUE(priv, '$.account_locked'), '0'), IFNULL(JSON_VALUE(priv, '$.ssl_type'), '0'),
		IFNULL(JSON_VALUE(priv, '$.max_user_connections'), '0'), IFNULL(JSON_VALUE(priv, '$.max_statement_time'), '0')
		FROM mysql.global_priv WHERE host = '%' AND user IN `+list, args...)
	for _, row := range rows {
		l := now.login(row[0])
		l.exists, l.verifier, l.locked, l.tls = true, row[1], row[2] == "1", row[3] != "0"
		l.limits.Connections, _ = strconv.Atoi(row[4]) // the server's own numbers
		timeout, _ := strconv.ParseFloat(row[5], 64)
		l.limits.StatementTimeout = int(timeout)
	}
	return err
}

// lookAtSessions counts sessions. Hazard: the server lists a client that has not logged in yet, too, by whatever
// name it gives, and compares names there without case and trailing spaces unless they are binary.
func (j job) lookAtSessions(now *seen) error {
	if len(now.logins) == 0 {
		return nil
	}
	list, args := now.in()
	rows, err := j.query("SELECT user, "+loggedIn+", COUNT(*) FROM information_schema.processlist WHERE BINARY user IN "+
		list+" GROUP BY user", args...)
	for _, row := range rows {
		l := now.login(row[0])
		l.sessions, _ = strconv.Atoi(row[1])
		l.clients, _ = strconv.Atoi(row[2])
	}
	return err
}

// loggedIn counts the sessions that have logged in.
const loggedIn = "COUNT(CASE WHEN command NOT IN ('Connect', 'Change user') THEN 1 END)"

// lookAtGrants reads who has rights on the database by its exact name. Rights by a pattern are the operator's
// business.
func (j job) lookAtGrants(now *seen) error {
	rows, err := j.query(`SELECT user, host, MAX(may_read), MAX(may_write), MAX(may_schedule) FROM (
		SELECT user, host, select_priv AS may_read, insert_priv AS may_write, event_priv AS may_schedule
		FROM mysql.db WHERE db = ? UNION ALL
		SELECT user, host, '', '', '' FROM mysql.tables_priv WHERE db = ? UNION ALL
		SELECT user, host, '', '', '' FROM mysql.columns_priv WHERE db = ? UNION ALL
		SELECT user, host, '', '', '' FROM mysql.procs_priv WHERE db = ?) AS granted GROUP BY user, host`,
		j.database, j.database, j.database, j.database)
	for _, row := range rows {
		g, reads, writes, schedules := grantee{row[0], row[1]}, row[2] == "Y", row[3] == "Y", row[4] == "Y"
		l := now.login(g.user)
		if l == nil || g.host != "%" {
			now.strangers = append(now.strangers, g)
			continue
		}
		l.schedules = schedules
		switch {
		case writes && schedules:
			l.granted = roleAll
		case writes: // only some of the rights, as in quarantine
		case reads:
			l.granted = roleReadOnly
		}
	}
	return err
}

// definedBy returns the login that something runs as, given the server's text for its definer; nil if the
// definer is none of the logins.
func (now *seen) definedBy(definer string) *login {
	name, here := strings.CutSuffix(definer, "@%")
	if !here {
		return nil
	}
	return now.login(name)
}

// eventsAtOnce is how many events one look reads, and one act stops: a tenant can make any number of events.
const eventsAtOnce = 500

// lookAtEvents looks only if some of the accounts are being removed, and only at their events.
func (j job) lookAtEvents(now *seen) error {
	var gone []any
	for _, l := range now.logins {
		if l.goes() {
			gone = append(gone, l.name+"@%")
		}
	}
	if len(gone) == 0 {
		return nil
	}
	rows, err := j.query(fmt.Sprintf("SELECT definer, event_name FROM information_schema.events WHERE event_schema = ? "+
		"AND status = 'ENABLED' AND definer IN %s ORDER BY event_name LIMIT %d", places(gone), eventsAtOnce),
		append([]any{j.database}, gone...)...)
	for _, row := range rows {
		if l := now.definedBy(row[0]); l != nil {
			l.events = append(l.events, row[1])
		}
	}
	return err
}

// definersTime is how many seconds the search for definers may take: the server opens each table of the
// database for it, and a tenant can make any number of tables.
const definersTime = 5

// lookAtDefiners looks only if some of the accounts are being removed: those are locked, so nobody can use
// them however long it takes. If the search takes too long, all accounts count as definers.
func (j job) lookAtDefiners(now *seen) error {
	if !slices.ContainsFunc(now.logins, func(l login) bool { return l.exists && l.goes() }) {
		return nil
	}
	rows, err := j.query(fmt.Sprintf("SET STATEMENT max_statement_time = %d FOR ", definersTime)+
		`SELECT definer FROM information_schema.views WHERE table_schema = ? UNION
		SELECT definer FROM information_schema.routines WHERE routine_schema = ? UNION
		SELECT definer FROM information_schema.triggers WHERE trigger_schema = ?`, j.database, j.database, j.database)
	for _, row := range rows {
		if l := now.definedBy(row[0]); l != nil {
			l.defines = true
		}
	}
	if !errors.Is(err, errTooLong) {
		return err
	}
	for i := range now.logins {
		now.logins[i].defines = true
	}
	return nil
}
