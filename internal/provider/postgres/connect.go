package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
)

// Times of a session. A step has 20 s; what takes longer is ended by the server,
// also when nobody waits for it any more.
const (
	statementTimeout = "15s"
	lockTimeout      = "1s"
	idleTimeout      = "30s" // in a transaction
	// sessionTimeout ends a session that nobody uses, and with it the lock that it has:
	// its owner stands still, or its machine has gone without a word. It is longer than
	// a pool keeps one.
	sessionTimeout = "90s"
)

// workDatabase is where the broker's login works unless its access says otherwise.
const workDatabase = "postgres"

// config is how the broker's login connects. Nothing of the environment or of files
// of the user's is part of it.
//
// Hazard: in a tenant's database, a name without a schema may be the tenant's: an
// operator of theirs that a comparison picks up runs as the broker's login. So the
// search path of every session is pg_catalog, from the first message on.
//
// What was committed is not lost in a crash, also where the server's settings have it
// not written at once: a step that answered that it is done will not be repeated.
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

// A dialer gives connections to the broker's own database, and new ones to others.
type dialer struct {
	cfg  *pgx.ConnConfig
	pool *pgxpool.Pool // nil if one connection is kept for a step
	one  *pgx.Conn
	warm warm // where there is a pool
}

func newDialer(a hosted.Access, pool int) (*dialer, error) {
	settings, err := config(a)
	if err != nil {
		return nil, err
	}
	d := &dialer{cfg: settings.ConnConfig.Copy()}
	if pool == 0 {
		return d, nil
	}
	settings.MaxConns, settings.MaxConnIdleTime = int32(pool), time.Minute
	d.pool, err = pgxpool.NewWithConfig(context.Background(), settings) // connects to nothing yet
	return d, err
}

// with has work use a connection to the broker's own database. One that met an
// error is closed: it may hold a lock, or another role.
func (d *dialer) with(ctx context.Context, work func(*pgx.Conn) error) error {
	if d.pool != nil {
		held, err := d.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer held.Release()
		if err = work(held.Conn()); err != nil {
			end(held.Conn())
		}
		return err
	}
	if d.one == nil || d.one.IsClosed() {
		c, err := pgx.ConnectConfig(ctx, d.cfg)
		if err != nil {
			return err
		}
		d.one = c
	}
	err := work(d.one)
	if err != nil {
		end(d.one)
	}
	return err
}

// inside has work use a connection to another database, which is closed after it.
func (d *dialer) inside(ctx context.Context, database string, work func(*pgx.Conn) error) error {
	cfg := d.cfg.Copy()
	cfg.Database = database
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer end(c)
	return work(c)
}

func (d *dialer) Close() {
	if d.pool != nil {
		d.pool.Close()
	}
	d.coolDown()
	if d.one != nil {
		end(d.one)
	}
}

// end closes a connection, and waits for no answer.
func end(c *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx)
}
