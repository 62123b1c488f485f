package mariadb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

const noTable = 1146

func lacksTable(err error) bool {
	e, is := errors.AsType[*mysql.MySQLError](err)
	return is && e.Number == noTable
}

// errUnopened: a table is there, and the server says that it is not.
var errUnopened = errors.New("the server says of a table that is there that it is not")

// proven is an error of a query of these tables. Hazard: a server that has no file left
// says that they are not there, so that all that the broker ever made would seem gone.
// It reads its folder to list them, and says truly that it cannot.
func (s *sqlServer) proven(ctx context.Context, err error, tables ...string) error {
	if !lacksTable(err) {
		return err
	}
	missing := slices.Clone(tables)
	failed := query(ctx, s.db, func(scan func(...any) error) error {
		var there string
		err := scan(&there)
		missing = slices.DeleteFunc(missing, func(table string) bool { return table == there })
		return err
	}, "SHOW TABLES")
	switch {
	case failed != nil:
		return failed
	case len(missing) == 0:
		return errUnopened
	}
	return err
}

// Identify implements hosted.Server.
func (s *sqlServer) Identify(ctx context.Context, broker string, write bool) (said hosted.Said, err error) {
	said, err = s.said(ctx, broker)
	switch {
	case lacksTable(err) && !write: // those of an earlier version have no epoch
		err = s.db.QueryRowContext(ctx, "SELECT identity FROM brokers WHERE broker = ?", broker).Scan(&said.Identity)
		if err = s.proven(ctx, err, "brokers"); lacksTable(err) || errors.Is(err, sql.ErrNoRows) {
			return hosted.Said{}, nil
		}
		return said, err
	case lacksTable(err):
		err = s.prepare(ctx)
	case said.Identity != "" && said.Epoch.Count > 0 || !write:
		return said, err
	}
	// Of two who write at once, the first is right.
	if err == nil {
		_, err = s.db.ExecContext(ctx, "INSERT IGNORE INTO brokers VALUES (?, ?)", broker, rand.Text())
	}
	if err == nil {
		_, err = s.db.ExecContext(ctx, "INSERT IGNORE INTO epochs VALUES (?, 1, NOW(6))", broker)
	}
	if err != nil {
		return hosted.Said{}, err
	}
	return s.said(ctx, broker)
}

func (s *sqlServer) prepare(ctx context.Context) error {
	for _, statement := range schema {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqlServer) said(ctx context.Context, broker string) (said hosted.Said, err error) {
	var id sql.NullString
	var count sql.NullInt64
	err = s.db.QueryRowContext(ctx, "SELECT (SELECT identity FROM brokers WHERE broker = ?), (SELECT count FROM epochs WHERE broker = ?)",
		broker, broker).Scan(&id, &count)
	if err == nil {
		s.identity.Store(&id.String) // other steps lock by it
	}
	return hosted.Said{Identity: id.String, Epoch: provider.Epoch{Count: count.Int64}}, s.proven(ctx, err, "brokers", "epochs")
}

// raiseEvery is how many seconds pass at least until the count is raised again: steps at
// once do not wait for one row, nor write the broker's record of it all the time.
const raiseEvery = 10

// Raise implements hosted.Server.
func (s *sqlServer) Raise(ctx context.Context, broker string) (provider.Epoch, error) {
	_, err := s.db.ExecContext(ctx, "UPDATE epochs SET count = count + 1, raised = NOW(6) WHERE broker = ? "+
		"AND NOT raised BETWEEN NOW(6) - INTERVAL ? SECOND AND NOW(6)", broker, raiseEvery)
	if err != nil {
		return provider.Epoch{}, err
	}
	said, err := s.said(ctx, broker)
	return said.Epoch, err
}

// Advance implements hosted.Server. A server that was restored to before it had epochs
// is given the table.
func (s *sqlServer) Advance(ctx context.Context, broker string, seen provider.Epoch, count int64) error {
	err := s.prepare(ctx)
	if err == nil {
		_, err = s.db.ExecContext(ctx, "INSERT IGNORE INTO epochs VALUES (?, 0, NOW(6))", broker)
	}
	if err != nil {
		return err
	}
	if seen.Line != "" {
		return errChanged
	}
	return changed(ctx, s.db, "UPDATE epochs SET count = ?, raised = NOW(6) WHERE broker = ? AND count = ?", count, broker, seen.Count)
}
