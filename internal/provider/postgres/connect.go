package postgres

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
)

// Time limits of a session. A step has 20 s. The server itself ends whatever takes longer, even if nobody
// waits for it any more.
const (
	statementTimeout = "15s"
	lockTimeout      = "1s"
	idleTimeout      = "30s" // in a transaction
	// sessionTimeout ends an idle session, and releases the session's lock: its owner hangs, or is gone
	// without closing it. It is longer than a pool keeps an idle session.
	sessionTimeout = "90s"
)

// workDatabase is the database that the broker's login works in unless its access names another.
const workDatabase = "postgres"

// config returns how the broker's login connects. It takes nothing from the environment or from the user's
// files.
//
// Hazard: in a tenant's database, a name without a schema may resolve to a thing of the tenant's. If a
// comparison picks up an operator of the tenant's, that operator runs as the broker's login. So the search
// path of every session is pg_catalog, from the first message on.
//
// synchronous_commit overrides the server's setting: a finished step is not repeated, so a crash must not
// lose its commit.
func config(a hosted.Access) (*pgxpool.Config, error) {
	settings, err := pgconfig.New(a.Host, uint16(a.Port), cmp.Or(a.Database, workDatabase), a.User)
	if err != nil {
		return nil, err
	}
	cfg := settings.ConnConfig
	if cfg.TLSConfig, err = a.TLSConfig(); err != nil {
		return nil, err
	}
	cfg.Password = a.Password
	cfg.RuntimeParams = map[string]string{
		"application_name": "longshore", "search_path": "pg_catalog", "statement_timeout": statementTimeout,
		"lock_timeout":                        lockTimeout,
		"idle_in_transaction_session_timeout": idleTimeout, "client_encoding": "UTF8", "standard_conforming_strings": "on",
		"default_transaction_read_only": "off", "datestyle": "ISO", "role": "none",
		"synchronous_commit": "on", "idle_session_timeout": sessionTimeout,
	}
	return settings, nil
}

// A sqlSession is a connection to a database, for the time of a call.
type sqlSession struct {
	ctx context.Context
	c   *pgx.Conn
}

// script runs statements in one transaction, or a single statement that allows none. The server itself quotes
// the arguments: %I is an identifier, %L a text.
func (s sqlSession) script(text string, args ...string) error {
	var ready string
	if err := s.row("SELECT pg_catalog.format($1, VARIADIC $2::text[])", text, args).Scan(&ready); err != nil {
		return err
	}
	return s.run(ready)
}

// run runs statements without changing them.
func (s sqlSession) run(text string) error {
	_, err := s.c.PgConn().Exec(s.ctx, text).ReadAll()
	return err
}

// exec runs a statement with arguments.
func (s sqlSession) exec(statement string, args ...any) error {
	_, err := s.c.Exec(s.ctx, statement, args...)
	return err
}

// row reads the only row of a query.
func (s sqlSession) row(query string, args ...any) pgx.Row {
	return s.c.QueryRow(s.ctx, query, args...)
}

// texts reads the rows of a query that selects a text.
func (s sqlSession) texts(query string, args ...any) ([]string, error) {
	return collect(s, pgx.RowTo[string], query, args...)
}

// collect reads the rows of a query.
func collect[T any](s sqlSession, to pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, _ := s.c.Query(s.ctx, query, args...) // the rows return its error
	return pgx.CollectRows(rows, to)
}

// A sqlServer is a real server: it lends connections to the broker's own database, and opens new ones to
// other databases.
type sqlServer struct {
	log  *slog.Logger
	cfg  *pgx.ConnConfig
	pool *pgxpool.Pool // nil if a step uses a single connection of its own
	one  *pgx.Conn
	warm warm // used with a pool
}

// openSQL prepares connections to a server without connecting yet.
func openSQL(a hosted.Access, pool int, log *slog.Logger) (*sqlServer, error) {
	settings, err := config(a)
	if err != nil {
		return nil, err
	}
	s := &sqlServer{log: log, cfg: settings.ConnConfig.Copy()}
	if pool == 0 {
		return s, nil
	}
	settings.MaxConns, settings.MaxConnIdleTime = int32(pool), time.Minute
	s.pool, err = pgxpool.NewWithConfig(context.Background(), settings) // connects to nothing yet
	return s, err
}

// with lends work a connection to the broker's own database. It closes the connection if work fails: the
// connection may still hold a lock, or another role.
func (s *sqlServer) with(ctx context.Context, work func(sqlSession) error) error {
	c := s.one
	if s.pool != nil {
		held, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer held.Release()
		c = held.Conn()
	} else if c == nil || c.IsClosed() {
		var err error
		if c, err = pgx.ConnectConfig(ctx, s.cfg); err != nil {
			return err
		}
		s.one = c
	}
	err := work(sqlSession{ctx, c})
	if err != nil {
		end(c)
	}
	return err
}

// inside opens a connection to another database for work, and closes it afterwards.
func (s *sqlServer) inside(ctx context.Context, database string, work func(sqlSession) error) error {
	cfg := s.cfg.Copy()
	cfg.Database = database
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer end(c)
	return work(sqlSession{ctx, c})
}

func (s *sqlServer) Close() {
	if s.pool != nil {
		s.pool.Close()
	}
	s.coolDown()
	if s.one != nil {
		end(s.one)
	}
}

// end closes a connection, and waits for that at most a second.
func end(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
