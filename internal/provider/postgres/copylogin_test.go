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
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// ofACopy returns a server, and a side of a copy whose database is the broker's own.
func ofACopy(t *testing.T, s *pgtest.Server) (*sqlServer, names) {
	t.Helper()
	access := s.Access()
	d := expect.Get(openSQL(access, 0, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(d.Close)
	broker, owner := access.User, "lsoprepared"+access.User
	side := names{database: access.Database, owner: owner, reader: "lsrprepared" + access.User, login: "lscw" + access.User,
		broker: broker, keeper: keeperFor(broker, owner)}
	expect.Get(d.Identify(t.Context(), broker, true))(t)
	expect.OK(t, d.with(t.Context(), func(c sqlSession) error {
		w := work{sqlSession: c, names: side}
		return w.keep(owner, "CREATE ROLE %1$I NOLOGIN; CREATE ROLE %2$I NOLOGIN", side.reader)
	}))
	return d, side
}

// evicted evicts the login of a copy, without an error on the way.
func evicted(t *testing.T, d *sqlServer, side names) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !expect.Get(evictCopy(ctx, d, side))(t) {
		if waiting.For(ctx, 100*time.Millisecond) != nil {
			t.Fatal("the login stays")
		}
	}
}

// A transaction that was prepared by a copy's login, and that locks its role, does not keep the login.
func TestPreparedTransactionsHoldUpNoEndOfACopy(t *testing.T) {
	pgtest.Each(t, pgtest.Start, func(t *testing.T, s *pgtest.Server) {
		d, side := ofACopy(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		login := expect.Get(admitCopy(ctx, d, side, false))(t)
		s.Exec("postgres", "GRANT CONNECT ON DATABASE "+side.database+" TO "+side.owner)
		cfg := d.cfg.Copy()
		cfg.User, cfg.Password = login.Name, login.Password
		c := expect.Get(pgx.ConnectConfig(ctx, cfg))(t)
		expect.Get(c.PgConn().Exec(ctx, "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'other "+login.Name+"'").
			ReadAll())(t)
		expect.Get(c.PgConn().Exec(ctx, "BEGIN; ALTER ROLE "+login.Name+" PASSWORD 'known'; "+
			"PREPARE TRANSACTION 'it''s "+login.Name+"'").ReadAll())(t)
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
			return c.row("SELECT count(*) FROM pg_prepared_xacts WHERE gid LIKE '%' || $1", login.Name).Scan(&left)
		}))
		expect.Same(t, "prepared transactions that are left", 0, left)
	})
}

// Earlier versions made the logins of copies without a keeper. One that a dead process of theirs has left goes as well, and
// the owner role gets what it has made.
func TestALoginThatNoKeeperHasMadeIsEvicted(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	access := s.Access()
	d := expect.Get(openSQL(access, 0, slog.New(slog.DiscardHandler)))(t)
	defer d.Close()
	ctx, broker, owner := t.Context(), access.User, "lsoold"+access.User
	side := names{database: access.Database, owner: owner, reader: "lsrold" + access.User, login: "lscwold" + access.User,
		broker: broker, keeper: keeperFor(broker, owner)}
	expect.Get(d.Identify(ctx, broker, true))(t)
	expect.OK(t, d.with(ctx, func(c sqlSession) error {
		return work{sqlSession: c, names: side}.asks([]line{
			{owner, "CREATE ROLE %1$I NOLOGIN; CREATE ROLE %2$I NOLOGIN"},
			{"", "CREATE ROLE %3$I NOLOGIN; COMMENT ON ROLE %3$I IS %4$L"},
		}, side.reader, side.login, copyMark)
	}))
	expect.OK(t, d.with(ctx, func(c sqlSession) error {
		return work{sqlSession: c, names: side}.asks([]line{
			{owner, "GRANT %1$I TO %2$I"}, {"", "ALTER ROLE %2$I LOGIN PASSWORD 'old'"},
		}, side.login)
	}))
	s.Exec("postgres", "GRANT CONNECT, CREATE ON DATABASE "+access.Database+" TO "+owner)
	cfg := d.cfg.Copy()
	cfg.User, cfg.Password = side.login, "old"
	c := expect.Get(pgx.ConnectConfig(ctx, cfg))(t)
	for _, statements := range []string{"CREATE SCHEMA made; CREATE TABLE made.one ()",
		"BEGIN; CREATE TABLE made.two (); PREPARE TRANSACTION 'old " + side.login + "'",
		"BEGIN; ALTER ROLE " + side.login + " PASSWORD 'known'"} {
		expect.Get(c.PgConn().Exec(ctx, statements).ReadAll())(t)
	}
	evicted(t, d, side)
	var left []string
	expect.OK(t, d.with(ctx, func(c sqlSession) (err error) {
		left, err = c.texts(`SELECT relowner::regrole::text FROM pg_class WHERE relnamespace = 'made'::regnamespace
UNION ALL SELECT roleid::regrole::text FROM pg_auth_members
WHERE member = session_user::regrole AND roleid::regrole::text !~ '^(lsk|pg_)'`)
		return err
	}))
	expect.Same(t, "who owns what it made, and what the broker's login is a member of", []string{owner}, left)
}

// A copy's login to which somebody has granted something where the broker may not enter is gone without an error: it has
// another name.
func TestALoginThatHasSomethingElsewhereIsEvicted(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, "17")
	d, side := ofACopy(t, s)
	expect.Get(admitCopy(t.Context(), d, side, false))(t)
	elsewhere := "elsewhere" + side.broker
	s.Exec("postgres", "CREATE DATABASE "+elsewhere, "REVOKE CONNECT ON DATABASE "+elsewhere+" FROM PUBLIC")
	s.Exec(elsewhere, "CREATE TABLE given ()", "GRANT ALL ON given TO "+side.login)
	evicted(t, d, side)
	var left string
	expect.OK(t, d.with(t.Context(), func(c sqlSession) error {
		return c.row(`SELECT rolname::text FROM pg_roles
WHERE NOT rolcanlogin AND shobj_description(oid, 'pg_authid') LIKE '%' || $1`, elsewhere).Scan(&left)
	}))
	s.Exec("postgres", "DROP DATABASE "+elsewhere, "DROP ROLE "+left)
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
	first := c.get("0")
	c.end("0")
	<-first.ended
	if _, err := c.begin("more", until); err != nil {
		t.Errorf("one more, after another has ended: %v", err)
	}
}
