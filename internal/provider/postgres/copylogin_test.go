package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// A transaction that was prepared by a copy's login, and that locks its role, does not
// keep the login.
func TestPreparedTransactionsHoldUpNoEndOfACopy(t *testing.T) {
	t.Parallel()
	for _, version := range pgtest.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := pgtest.Start(t, version)
			access := s.Access()
			d, err := newDialer(access, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			owner := "lsoprepared" + access.User
			if err := d.with(ctx, func(c *pgx.Conn) error { return script(ctx, c, "CREATE ROLE %1$I", owner) }); err != nil {
				t.Fatal(err)
			}
			side := pgcopy.Side{Database: access.Database, Owner: owner, Login: "lscw" + access.User}
			server := joining{copied{dialer: d}}
			login, err := pgcopy.Admit(ctx, server, side, false)
			if err != nil {
				t.Fatal(err)
			}
			cfg := d.cfg.Copy()
			super := s.Connect("postgres")
			_, err = super.Exec(ctx, "GRANT CONNECT ON DATABASE "+access.Database+" TO "+owner)
			_ = super.Close(ctx)
			if err != nil {
				t.Fatal(err)
			}
			cfg.User, cfg.Password = login.Login, login.Password
			c, err := pgx.ConnectConfig(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.PgConn().Exec(ctx, "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'other "+login.Login+"'").
				ReadAll(); err != nil {
				t.Fatal(err)
			}
			if _, err := c.PgConn().Exec(ctx, "BEGIN; ALTER ROLE "+login.Login+" PASSWORD 'known'; PREPARE TRANSACTION 'it''s "+login.Login+"'").
				ReadAll(); err != nil {
				t.Fatal(err)
			}
			for gone := false; !gone; {
				if gone, err = pgcopy.Evict(ctx, server, side); err != nil {
					t.Log(err)
				}
				if !gone && waiting.For(ctx, 100*time.Millisecond) != nil {
					t.Fatal("the login stays")
				}
			}
			var left int
			if err := d.with(ctx, func(c *pgx.Conn) error {
				return c.QueryRow(ctx, "SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE '%' || $1", login.Login).Scan(&left)
			}); err != nil || left > 0 {
				t.Errorf("%d prepared transactions are left: %v", left, err)
			}
		})
	}
}

// joining is a server on which the broker's login may let others join any role.
type joining struct{ copied }

func (joining) Join(_ context.Context, side pgcopy.Side) (string, error) {
	return "GRANT " + side.Owner + " TO " + side.Login, nil
}
