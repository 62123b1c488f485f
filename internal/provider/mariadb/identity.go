package mariadb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"slices"

	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// errUnopened says that the server denies that an existing table exists.
var errUnopened = errors.New("the server denies that an existing table exists")

// proven checks an error of a query on the table of brokers. Hazard: a server that cannot open any more files
// claims that the table does not exist, so that everything the broker ever made would seem gone. To list
// tables, it reads its folder, and says truthfully that it cannot.
func (s *sqlServer) proven(ctx context.Context, err error) error {
	if !errors.Is(err, errNoTable) {
		return err
	}
	there, failed := job{ctx, s.db, names{}}.query("SHOW TABLES")
	switch {
	case failed != nil:
		return failed
	case slices.ContainsFunc(there, func(row []string) bool { return row[0] == "brokers" }):
		return errUnopened
	}
	return err
}

// Identify implements hosted.Server.
func (s *sqlServer) Identify(ctx context.Context, broker string, write bool) (said hosted.Said, err error) {
	said, err = s.said(ctx, broker)
	none := errors.Is(err, errNoTable)
	if err != nil && !none || said.Identity != "" {
		return said, err
	}
	if !write {
		return said, nil
	}
	if none {
		for _, statement := range schema {
			if _, err = s.db.ExecContext(ctx, statement); err != nil {
				return said, err
			}
		}
	}
	// If two brokers' steps write at once, the first one counts.
	if _, err = s.db.ExecContext(ctx, "INSERT IGNORE INTO brokers VALUES (?, ?, 1, '')", broker, rand.Text()); err != nil {
		return said, err
	}
	return s.said(ctx, broker)
}

// said reads the identity and the epoch that the server has for the broker; both are zero before the first
// Identify that writes.
func (s *sqlServer) said(ctx context.Context, broker string) (said hosted.Said, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT identity, epoch, mark FROM brokers WHERE broker = ?", broker).
		Scan(&said.Identity, &said.Epoch.Count, &said.Epoch.Mark)
	if errors.Is(err, sql.ErrNoRows) {
		return said, nil
	}
	if err == nil {
		s.identity.Store(&said.Identity) // other steps name their locks by it
	}
	return said, s.proven(ctx, err)
}

// Advance implements hosted.Server.
func (s *sqlServer) Advance(ctx context.Context, broker string, seen, to target.Epoch) (bool, error) {
	err := job{ctx, s.db, names{}}.changed("UPDATE brokers SET epoch = ?, mark = ? WHERE broker = ? AND epoch = ? AND mark = ?",
		to.Count, to.Mark, broker, seen.Count, seen.Mark)
	if errors.Is(err, hosted.ErrChanged) {
		return false, nil
	}
	return err == nil, err
}
