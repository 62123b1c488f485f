package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A serverCopy copies a running server's data directory, by means of the server's own backup
// statements. The server goes on working: what it writes meanwhile is in its log of changes (WAL),
// from the beginning of the copy to its end. No database is opened and no user's code is run.
type serverCopy struct {
	ctx     context.Context
	conn    *pgx.Conn
	archive *archive
	data    string // its path in the folder
	// label tells a server that starts on the copy where to begin; last is the file of the log of
	// changes in which the copy ends.
	label, last string
}

// keepsChanges is a temporary slot of this connection: as long as it exists, the server removes no
// part of its log of changes. Its name is fixed, so that only one backup can run at a time.
const keepsChanges = "longshore_backup"

// duplicateObject is the server's error code for a name that is taken.
const duplicateObject = "42710"

// ErrUnderWay says that another backup of the server is running.
var ErrUnderWay = errors.New("another backup is under way: wait until it is done, and run this one again")

// closeWithin is how long closing a copy waits for the server.
const closeWithin = 5 * time.Second

func beginServer(ctx context.Context, s Server, to *archive) (_ *serverCopy, err error) {
	conn, err := s.Connect(ctx)
	if err != nil {
		return nil, errors.New("the PostgreSQL server of the data folder does not let its superuser in: look at its log")
	}
	c := &serverCopy{ctx: ctx, conn: conn, archive: to, data: s.Data}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for _, statement := range []string{
		"SET search_path = pg_catalog",
		"SELECT pg_create_physical_replication_slot('" + keepsChanges + "', true, true)",
		"SELECT pg_backup_start('longshore', fast => true)",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == duplicateObject {
				return nil, ErrUnderWay
			}
			return nil, fmt.Errorf("beginning the copy of the server: %w", err)
		}
	}
	spaces, err := os.ReadDir(filepath.Join(to.dir, s.Data, "pg_tblspc"))
	if err == nil && len(spaces) > 0 {
		err = errors.New("the server keeps databases outside of the data folder (it has tablespaces): " +
			"stop the broker, and copy the data folder and them by hand")
	}
	return c, err
}

// files adds the server's files, without its log of changes and without the files that are of no
// use to another process: the same that pg_basebackup leaves out.
func (c *serverCopy) files() error {
	return c.archive.walk(c.data, func(name string) bool {
		below, err := filepath.Rel(c.data, name)
		if err != nil || below == "." {
			return false
		}
		base := filepath.Base(below)
		if slices.Contains([]string{"postmaster.pid", "postmaster.opts", "backup_label", "tablespace_map", "backup_manifest"},
			below) ||
			below == control || strings.HasPrefix(base, "pg_internal.init") || strings.HasPrefix(base, "pgsql_tmp") {
			return true
		}
		top, _, inside := strings.Cut(filepath.ToSlash(below), "/")
		return inside && slices.Contains([]string{
			"pg_wal", "pg_replslot", "pg_dynshmem", "pg_notify", "pg_serial", "pg_snapshots", "pg_stat_tmp", "pg_subtrans",
		}, top)
	})
}

// control is the file that says where a server's log of changes begins. It is copied last, and read
// until it is stable, since the server overwrites it in place.
const control = "global/pg_control"

// end ends the copy: later changes of the server are not in it.
func (c *serverCopy) end(to *archive) error {
	whole, err := c.steady(filepath.Join(to.dir, c.data, control))
	if err == nil {
		err = to.text(filepath.Join(to.dir, c.data, control), filepath.Join(c.data, control), string(whole))
	}
	if err != nil {
		return err
	}
	var spaces string
	err = c.conn.QueryRow(c.ctx,
		"SELECT pg_walfile_name(lsn), labelfile, COALESCE(spcmapfile, '') FROM pg_backup_stop(wait_for_archive => false)").
		Scan(&c.last, &c.label, &spaces)
	if err == nil && strings.TrimSpace(spaces) != "" {
		err = errors.New("somebody has added a tablespace to the server meanwhile")
	}
	if err != nil {
		return fmt.Errorf("ending the copy of the server: %w", err)
	}
	return to.text(filepath.Join(to.dir, c.data, "PG_VERSION"), filepath.Join(c.data, "backup_label"), c.label)
}

// steady reads a file until two reads in a row agree.
func (c *serverCopy) steady(path string) (was []byte, _ error) {
	for c.ctx.Err() == nil {
		is, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(was, is) {
			return is, nil
		}
		was = is
	}
	return nil, c.ctx.Err()
}

// changes adds the log of changes from the copy's beginning to its end.
func (c *serverCopy) changes() error {
	_, first, ok := strings.Cut(c.label, "(file ")
	first, _, closed := strings.Cut(first, ")")
	if !ok || !closed {
		return errors.New("the server does not say where the copy begins")
	}
	dir := filepath.Join(c.data, "pg_wal")
	files, err := os.ReadDir(filepath.Join(c.archive.dir, dir))
	if err != nil {
		return err
	}
	var found []string
	for _, f := range files {
		name := f.Name()
		isPart := len(name) == len(first) && first <= name && name <= c.last
		if !isPart && !strings.HasSuffix(name, ".history") {
			continue
		}
		if err := c.archive.file(filepath.Join(c.archive.dir, dir, name), filepath.Join(dir, name)); err != nil {
			return err
		}
		found = append(found, name)
	}
	for _, end := range []string{first, c.last} {
		if !slices.Contains(found, end) {
			return fmt.Errorf("%s is gone", end)
		}
	}
	return nil
}

// close ends the connection, and with it everything that was begun on the server.
func (c *serverCopy) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), closeWithin)
	defer cancel()
	_ = c.conn.Close(ctx)
}
