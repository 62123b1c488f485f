package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/base/provider/target"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres/pgconfig"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
)

// calls are what the same acts come to on any server.
type calls struct {
	server
	tags provider.Tags
	said []string
}

// act makes an act on what stands, or on what stood at the beginning, and notes what
// came of it: the code that it is refused by, and what stands then.
func (c *calls) act(t *testing.T, a any, stale bool) {
	t.Helper()
	var was seen
	if !stale {
		was = expect.Get(c.Look(t.Context(), c.tags))(t)
	}
	code, err := "done", hosted.ErrGoesOn
	// On a busy machine a step does not wait for a DROP, and the session of the act before still holds its lock for a moment.
	for tries := 20; errors.Is(err, hosted.ErrGoesOn) || errors.Is(err, hosted.ErrChanged) && tries > 0; tries-- {
		err = c.Do(t.Context(), c.tags, was, a)
	}
	if err != nil {
		code = "refused"
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
			code = refused.Code
		} else if errors.Is(err, hosted.ErrChanged) {
			code = "changed"
		}
	}
	now, err := c.Look(t.Context(), c.tags)
	// The server counts a session for a moment after it has ended, and no life here has one.
	for tries := 100; err == nil && now.login.sessions > 0 && tries > 0; tries-- {
		now, err = c.Look(t.Context(), c.tags)
	}
	expect.OK(t, err)
	for _, of := range []*thing{&now.owner.thing, &now.database.thing, &now.login.thing} {
		of.id = min(of.id, 1) // whether there is one
	}
	c.said = append(c.said, fmt.Sprintf("%T %v: %s: %+v", a, stale, code, now))
}

func realServer(t *testing.T) *sqlServer {
	t.Helper()
	real := expect.Get(openSQL(pgtest.Start(t, "17").Access(), 0, slog.New(slog.DiscardHandler)))(t)
	t.Cleanup(real.Close)
	return real
}

// The fake does and refuses the same as a real server.
func TestFakeIsAsReal(t *testing.T) {
	t.Parallel()
	label := func(text string) string { return "longshore:" + text }
	lives := map[string][]any{
		"Whole": {createOwner{label("a")}, createDatabase{limit: 5}, openDatabase{label("b")},
			configure{label: label("c"), limit: 7, timeout: "60s"}, createLogin{label: label("d")},
			openLogin{label: label("e"), verifier: "x"}, lockLogin{label: label("f"), keep: true},
			unlockLogin{label: label("g"), login: true}, lockLogin{label: label("h")}, endSessions{}, emptyLogin{}, dropLogin{},
			createLogin{label: label("i"), verifier: "x"}, lockLogin{label: label("j")}, dropLogin{},
			relabel{label("k"), label("l"), true, false}, relabel{label("m"), label("n"), false, false}, dropDatabase{}, dropOwner{}},
		"ReadOnly": {createOwner{label("a")}, createDatabase{limit: -1}, openDatabase{label("b")},
			configure{label: label("c"), limit: -1}, createLogin{label: label("d"), readOnly: true},
			openLogin{label: label("e"), verifier: "x", readOnly: true}, lockLogin{label: label("f")}, dropLogin{}, emptyLogin{},
			dropLogin{}, dropDatabase{}, dropOwner{}},
		"Retained": {relabel{label("a"), label("b"), true, true}, createOwner{label("c")},
			relabel{label("d"), label("e"), true, true}, createDatabase{limit: 5}, relabel{label("f"), label("g"), false, false},
			openDatabase{label("h")}, configure{label: label("i"), limit: 7}, createLogin{label: label("j")},
			relabel{label("k"), label("l"), true, true}, relabel{label("m"), label("n"), true, true},
			relabel{label("o"), label("p"), false, false}, dropLogin{}, dropDatabase{},
			relabel{label("q"), label("r"), true, false}, dropOwner{}},
		"OutOfOrder": {dropOwner{}, dropDatabase{}, dropLogin{}, openDatabase{label("a")}, createLogin{label: label("b")},
			createOwner{label("c")}, createOwner{label("d")}, createDatabase{limit: 1}, createDatabase{limit: 2},
			openDatabase{label("e")}, dropOwner{}, createLogin{label: label("f")}, createLogin{label: label("g")}, dropDatabase{},
			dropOwner{}, emptyLogin{}, dropLogin{}},
	}
	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			real := realServer(t)
			tags := provider.Tags{Broker: "fake-" + name + rand.Text(), Platform: "p", Instance: "i", Binding: "b"}
			expect.Get(real.Identify(t.Context(), tags.Broker, true))(t)
			on := []*calls{{server: real, tags: tags}, {server: NewFake("fake", time.Now), tags: tags}}
			for _, c := range on {
				for i, a := range life {
					c.act(t, a, false)
					if i == 2 {
						c.act(t, a, true)
					}
				}
			}
			expect.Same(t, "what the real one and the fake say", on[0].said, on[1].said)
		})
	}
}

// A database is entered while as little as possible is lifted, and is then as it was. Where it is dropped meanwhile, the step
// looks again.
func TestOnlyWhatBarsTheBrokerIsLifted(t *testing.T) {
	t.Parallel()
	real, ctx, name := realServer(t), t.Context(), "lsd"+strings.ToLower(rand.Text())
	during := ""
	real.cfg.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		all, err := c.Exec(ctx, "SELECT datallowconn, datconnlimit FROM pg_database WHERE datname = '"+name+"'").ReadAll()
		if err == nil && len(all[0].Rows) > 0 {
			during = string(bytes.Join(all[0].Rows[0], []byte(" ")))
		}
		return err
	}
	enter := func(c sqlSession) error {
		return work{sqlServer: real, sqlSession: c}.enter(name, func(sqlSession) error { return nil })
	}
	for _, one := range []struct{ is, during, then string }{
		{"ALLOW_CONNECTIONS false CONNECTION LIMIT 5", "t 5", "false 5"},
		{"ALLOW_CONNECTIONS true CONNECTION LIMIT 0", "t -1", "true 0"},
		{"ALLOW_CONNECTIONS false CONNECTION LIMIT 0", "t -1", "false 0"},
	} {
		then := ""
		expect.OK(t, real.with(ctx, func(c sqlSession) error {
			return errors.Join(c.script("CREATE DATABASE %1$I "+one.is, name), enter(c), c.row(
				"SELECT datallowconn || ' ' || datconnlimit FROM pg_database WHERE datname = $1", name).Scan(&then))
		}))
		expect.Same(t, one.is+", while it is entered", one.during, during)
		expect.Same(t, one.is+", then", one.then, then)
		err := real.with(ctx, func(c sqlSession) error {
			real.cfg.OnPgError = func(_ *pgconn.PgConn, e *pgconn.PgError) bool {
				_ = c.script("DROP DATABASE %1$I", name) // at the refusal
				return e.Severity != "FATAL"
			}
			return enter(c)
		})
		real.cfg.OnPgError = nil
		if !errors.Is(err, hosted.ErrChanged) && classOf(err) != hosted.Busy {
			t.Errorf("%s, and dropped: %v", one.is, err)
		}
	}
}

// Epochs of both go on alike.
func TestFakesEpochsAreAsReal(t *testing.T) {
	t.Parallel()
	for _, s := range []server{realServer(t), NewFake("fake", time.Now)} {
		identify := func(write bool) hosted.Said { return expect.Get(s.Identify(t.Context(), "broker", write))(t) }
		if none := identify(false); none.Identity != "" {
			t.Errorf("%T, of which nothing is known: %+v", s, none)
		}
		first, again := identify(true), identify(false)
		if first != again || first.Identity == "" || first.Epoch.Count != 1 {
			t.Errorf("%T says %+v, then %+v", s, first, again)
		}
		to := target.Epoch{Line: first.Epoch.Line, Count: 9, Mark: "m"}
		for _, other := range []target.Epoch{{Count: 2}, {Count: 1, Mark: "x"}, {}} {
			if did, err := s.Advance(t.Context(), "broker", other, to); err != nil || did {
				t.Errorf("%T is advanced from %v, where it is not: %v", s, other, err)
			}
		}
		for _, want := range []bool{true, false} {
			if did, err := s.Advance(t.Context(), "broker", first.Epoch, to); err != nil || did != want {
				t.Errorf("%T is advanced: %v, want %v: %v", s, did, want, err)
			}
		}
		expect.Same(t, fmt.Sprintf("%T is at", s), to, identify(false).Epoch)
	}
}

// A server of a version that the broker cannot work with is told from others.
func TestOldServers(t *testing.T) {
	t.Parallel()
	all := map[string]bool{"15.18": true, "9.6.24": true, "16.0": false, "17.11 (Debian 17.11-1)": false, "18beta1": false}
	for version, old := range all {
		expect.Same(t, version+" is taken for old", old, pgconfig.Major(version) < oldest)
	}
	trouble, ok := errors.AsType[*target.Trouble](New(Options{}).Explain("default", errOld))
	if !ok || trouble.Kind != target.Rights || !strings.Contains(trouble.Message, "PostgreSQL 16") {
		t.Errorf("an old server is explained as %v", trouble)
	}
}
