package mariadb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/longshore/longshore/internal/base/provider/target"
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
	case lacksTable(err) && !write:
		return said, nil
	case lacksTable(err):
		err = s.prepare(ctx)
	case err != nil || said.Identity != "" || !write:
		return said, err
	}
	// Of two who write at once, the first is right.
	if err == nil {
		_, err = s.db.ExecContext(ctx, "INSERT IGNORE INTO brokers VALUES (?, ?, 1, '')", broker, rand.Text())
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

// said is what the server says that it is to the broker; nothing if it never was asked.
func (s *sqlServer) said(ctx context.Context, broker string) (said hosted.Said, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT identity, epoch, mark FROM brokers WHERE broker = ?", broker).
		Scan(&said.Identity, &said.Epoch.Count, &said.Epoch.Mark)
	if errors.Is(err, sql.ErrNoRows) {
		return said, nil
	}
	if err == nil {
		s.identity.Store(&said.Identity) // other steps lock by it
	}
	return said, s.proven(ctx, err, "brokers")
}

// Advance implements hosted.Server.
func (s *sqlServer) Advance(ctx context.Context, broker string, seen, to target.Epoch) (bool, error) {
	err := changed(ctx, s.db, "UPDATE brokers SET epoch = ?, mark = ? WHERE broker = ? AND epoch = ? AND mark = ?",
		to.Count, to.Mark, broker, seen.Count, seen.Mark)
	if errors.Is(err, hosted.ErrChanged) {
		return false, nil
	}
	return err == nil, err
}
