package mariadb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A querier is a pool or one connection of it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// query reads all rows of a query, each with read.
func query(ctx context.Context, q querier, read func(scan func(...any) error) error, text string, args ...any) error {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // what went wrong is told by Err
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

const recordColumns = "SELECT name, instance, serial, version, label, details FROM things "

// records reads those that a query gives.
func records(ctx context.Context, q querier, where string, args ...any) (all []record, err error) {
	err = query(ctx, q, func(scan func(...any) error) error {
		var r record
		var label, details string
		if err := scan(&r.name, &r.instance, &r.serial, &r.version, &label, &details); err != nil {
			return err
		}
		var ok bool
		if r.label, ok = hosted.ParseLabel(label); !ok || json.Unmarshal([]byte(details), &r.details) != nil {
			return fmt.Errorf("the record of %q cannot be read: somebody has changed it, or a later version wrote it", r.name)
		}
		all = append(all, r)
		return nil
	}, recordColumns+where, args...)
	return all, err
}

// List implements hosted.Host. What is left of a binding goes with the instance.
func (s *sqlServer) List(ctx context.Context, broker, after string, limit int) (page []hosted.Listed, last string, err error) {
	all, err := records(ctx, s.db, "WHERE broker = ? AND name > ? ORDER BY name LIMIT ?", broker, after, limit)
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

// recorded is the part of what is seen that records tell.
func recorded(ctx context.Context, q querier, n names) (now seen, err error) {
	which, args := "WHERE instance = ? ORDER BY name", []any{n.database}
	if n.login != "" {
		now.logins = []login{{name: n.login}}
		which, args = "WHERE name IN (?, ?)", []any{n.database, n.login}
	}
	all, err := records(ctx, q, which, args...)
	for _, r := range all {
		switch {
		case r.name == n.database:
			now.instance = r
		case n.login != "":
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
	n := namesOf(t)
	now, err := recorded(ctx, c, n)
	for _, look := range []func(context.Context, querier, string, *seen) error{
		lookAtDatabase, lookAtLogins, lookAtSessions, lookAtGrants, lookAtEvents, lookAtDefiners,
	} {
		if err == nil {
			err = look(ctx, c, n.database, &now)
		}
	}
	return now, err
}

// login gives the one of a name, nil if there is none.
func (now *seen) login(name string) *login {
	i, found := slices.BinarySearchFunc(now.logins, name, func(l login, name string) int { return strings.Compare(l.name, name) })
	if !found {
		return nil
	}
	return &now.logins[i]
}

// in is a list of the logins' names for a query.
func (now *seen) in() (list string, args []any) {
	for _, l := range now.logins {
		args = append(args, l.name)
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", len(args)), ", ") + ")", args
}

func lookAtDatabase(ctx context.Context, q querier, database string, now *seen) error {
	return query(ctx, q, func(scan func(...any) error) error {
		now.database = true
		return scan(new(string))
	}, "SELECT schema_name FROM information_schema.schemata WHERE schema_name = ?", database)
}

// lookAtLogins reads the accounts as the server keeps them.
func lookAtLogins(ctx context.Context, q querier, _ string, now *seen) error {
	if len(now.logins) == 0 {
		return nil
	}
	list, args := now.in()
	return query(ctx, q, func(scan func(...any) error) error {
		var name, verifier, locked, tls, connections, seconds string
		if err := scan(&name, &verifier, &locked, &tls, &connections, &seconds); err != nil {
			return err
		}
		l := now.login(name)
		l.exists, l.verifier, l.locked, l.tls = true, verifier, locked == "1", tls != "0"
		l.limits.Connections, _ = strconv.Atoi(connections) // the server's own numbers
		timeout, _ := strconv.ParseFloat(seconds, 64)
		l.limits.StatementTimeout = int(timeout)
		return nil
	}, `SELECT user, IFNULL(JSON_VALUE(priv, '$.authentication_string'), ''), IFNULL(JSON_VALUE(priv, '$.account_locked'), '0'),
		IFNULL(JSON_VALUE(priv, '$.ssl_type'), '0'), IFNULL(JSON_VALUE(priv, '$.max_user_connections'), '0'),
		IFNULL(JSON_VALUE(priv, '$.max_statement_time'), '0')
		FROM mysql.global_priv WHERE host = '%' AND user IN `+list, args...)
}

func lookAtSessions(ctx context.Context, q querier, _ string, now *seen) error {
	if len(now.logins) == 0 {
		return nil
	}
	list, args := now.in()
	return query(ctx, q, func(scan func(...any) error) error {
		var name string
		var n int
		if err := scan(&name, &n); err != nil {
			return err
		}
		now.login(name).sessions = n
		return nil
	}, "SELECT user, COUNT(*) FROM information_schema.processlist WHERE user IN "+list+" GROUP BY user", args...)
}

// lookAtGrants reads who has rights on the database by its name: those of a pattern
// are the operator's own affair.
func lookAtGrants(ctx context.Context, q querier, database string, now *seen) error {
	return query(ctx, q, func(scan func(...any) error) error {
		var g grantee
		var reads, writes, schedules string
		if err := scan(&g.user, &g.host, &reads, &writes, &schedules); err != nil {
			return err
		}
		l := now.login(g.user)
		if l != nil && g.host == "%" {
			l.schedules = schedules == "Y"
		}
		switch {
		case l != nil && g.host == "%" && writes == "Y" && schedules == "Y":
			l.granted = roleAll
		case l != nil && g.host == "%" && writes == "Y": // a part of the rights, as in quarantine
		case l != nil && g.host == "%" && reads == "Y":
			l.granted = roleReadOnly
		case l == nil || g.host != "%":
			now.strangers = append(now.strangers, g)
		}
		return nil
	}, `SELECT user, host, MAX(may_read), MAX(may_write), MAX(may_schedule) FROM (
		SELECT user, host, select_priv AS may_read, insert_priv AS may_write, event_priv AS may_schedule
		FROM mysql.db WHERE db = ? UNION ALL
		SELECT user, host, '', '', '' FROM mysql.tables_priv WHERE db = ? UNION ALL
		SELECT user, host, '', '', '' FROM mysql.columns_priv WHERE db = ? UNION ALL
		SELECT user, host, '', '', '' FROM mysql.procs_priv WHERE db = ?) AS granted GROUP BY user, host`,
		database, database, database, database)
}

// definer is how the server writes an account that something runs as.
func definer(name string) string { return name + "@%" }

// lookAtEvents looks once accounts that are to go are locked.
func lookAtEvents(ctx context.Context, q querier, database string, now *seen) error {
	if !slices.ContainsFunc(now.logins, login.goes) {
		return nil
	}
	return query(ctx, q, func(scan func(...any) error) error {
		var by, event string
		if err := scan(&by, &event); err != nil {
			return err
		}
		if l := now.login(strings.TrimSuffix(by, "@%")); l != nil && by == definer(l.name) {
			l.events = append(l.events, event)
		}
		return nil
	}, "SELECT definer, event_name FROM information_schema.events WHERE event_schema = ? AND status = 'ENABLED' ORDER BY "+
		"event_name", database)
}

// definersTime is how many seconds looking for what runs as an account may take: the
// server opens each table of the database for it, of which a tenant can make any number.
const definersTime = 5

// lookAtDefiners looks once accounts that are to go are locked, and not before: however
// long it takes, nobody has the use of it. Of one that it took too long for, it is
// taken that something runs as it.
func lookAtDefiners(ctx context.Context, q querier, database string, now *seen) error {
	if !slices.ContainsFunc(now.logins, func(l login) bool { return l.exists && l.goes() }) {
		return nil
	}
	err := query(ctx, q, func(scan func(...any) error) error {
		var by string
		if err := scan(&by); err != nil {
			return err
		}
		if l := now.login(strings.TrimSuffix(by, "@%")); l != nil && by == definer(l.name) {
			l.defines = true
		}
		return nil
	}, fmt.Sprintf("SET STATEMENT max_statement_time = %d FOR ", definersTime)+
		`SELECT definer FROM information_schema.views WHERE table_schema = ? UNION
		SELECT definer FROM information_schema.routines WHERE routine_schema = ? UNION
		SELECT definer FROM information_schema.triggers WHERE trigger_schema = ?`, database, database, database)
	if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != tookTooLong {
		return err
	}
	for i := range now.logins {
		now.logins[i].defines = true
	}
	return nil
}
