package postgres

import (
	"context"
	"errors"
	"fmt"
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
	pgtest.Each(t, pgtest.Start, func(t *testing.T, s *pgtest.Server) {
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
		login := expect.Get(admitCopy(ctx, d, broker, side, false))(t)
		s.Exec("postgres", "GRANT CONNECT ON DATABASE "+access.Database+" TO "+owner)
		cfg := d.cfg.Copy()
		cfg.User, cfg.Password = login.Login, login.Password
		c := expect.Get(pgx.ConnectConfig(ctx, cfg))(t)
		expect.Get(c.PgConn().Exec(ctx, "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'other "+login.Login+"'").
			ReadAll())(t)
		expect.Get(c.PgConn().Exec(ctx, "BEGIN; ALTER ROLE "+login.Login+" PASSWORD 'known'; PREPARE TRANSACTION 'it''s "+login.Login+"'").ReadAll())(t)
		for gone := false; !gone; {
			var err error
			if gone, err = evictCopy(ctx, d, side); err != nil {
				t.Log(err)
			}
			if !gone && waiting.For(ctx, 100*time.Millisecond) != nil {
				t.Fatal("the login stays")
			}
		}
		var left int
		expect.OK(t, d.with(ctx, func(c sqlSession) error {
			return c.row("SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE '%' || $1", login.Login).Scan(&left)
		}))
		expect.Same(t, "prepared transactions that are left", 0, left)
	})
}

// However many restores are asked for at once, some run and the others wait for them.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	var c copier
	t.Cleanup(c.close)
	until := func(ctx context.Context, _ *copying) error { <-ctx.Done(); return ctx.Err() }
	for n := range mostCopies {
		expect.Get(c.begin(fmt.Sprint(n), until))(t)
	}
	if _, err := c.begin("0", until); !errors.Is(err, errSaving) {
		t.Errorf("the same copy twice: %v", err)
	}
	if _, err := c.begin("more", until); !errors.Is(err, errCopies) {
		t.Errorf("one more: %v", err)
	}
	first := c.get(pgcopy.Side{Login: "0"})
	c.end(pgcopy.Side{Login: "0"})
	<-first.ended
	if _, err := c.begin("more", until); err != nil {
		t.Errorf("one more, after another has ended: %v", err)
	}
}
