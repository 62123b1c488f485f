package postgres

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/waiting"
	"github.com/longshore/longshore/internal/provider/postgres/pgcopy"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// A transaction that was prepared by a copy's login, and that locks its role, does not keep the login.
func TestPreparedTransactionsHoldUpNoEndOfACopy(t *testing.T) {
	t.Parallel()
	for _, version := range pgtest.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := pgtest.Start(t, version)
			access := s.Access()
			d := expect.Get(openSQL(access, 0, slog.New(slog.DiscardHandler)))(t)
			defer d.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			broker, owner := access.User, "lsoprepared"+access.User
			expect.Get(d.Identify(ctx, broker, true))(t)
			expect.OK(t, d.with(ctx, func(c sqlSession) error {
				w := work{sqlSession: c, names: names{broker: broker, keeper: keeperFor(broker, owner)}}
				return w.keep(owner, "CREATE ROLE %1$I NOLOGIN", owner)
			}))
			side := pgcopy.Side{Database: access.Database, Owner: owner, Login: "lscw" + access.User}
			login, err := admitCopy(ctx, d, broker, side, false)
			expect.OK(t, err)
			cfg := d.cfg.Copy()
			super := s.Connect("postgres")
			_, err = super.Exec(ctx, "GRANT CONNECT ON DATABASE "+access.Database+" TO "+owner)
			_ = super.Close(ctx)
			expect.OK(t, err)
			cfg.User, cfg.Password = login.Login, login.Password
			c, err := pgx.ConnectConfig(ctx, cfg)
			expect.OK(t, err)
			expect.Get(c.PgConn().Exec(ctx, "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'other "+login.Login+"'").
				ReadAll())(t)
			if _, err := c.PgConn().Exec(ctx, "BEGIN; ALTER ROLE "+login.Login+" PASSWORD 'known'; PREPARE TRANSACTION 'it''s "+login.Login+"'").
				ReadAll(); err != nil {
				t.Fatal(err)
			}
			for gone := false; !gone; {
				if gone, err = evictCopy(ctx, d, side); err != nil {
					t.Log(err)
				}
				if !gone && waiting.For(ctx, 100*time.Millisecond) != nil {
					t.Fatal("the login stays")
				}
			}
			var left int
			if err := d.with(ctx, func(c sqlSession) error {
				return c.row("SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE '%' || $1", login.Login).Scan(&left)
			}); err != nil || left > 0 {
				t.Errorf("%d prepared transactions are left: %v", left, err)
			}
		})
	}
}
