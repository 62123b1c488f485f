package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/operation"
	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
	"github.com/longshore/longshore/internal/provider/postgres"
	"github.com/longshore/longshore/internal/test/expect"
	"github.com/longshore/longshore/internal/test/pgtest"
	"github.com/longshore/longshore/internal/test/providertest"
	"github.com/longshore/longshore/internal/test/testserver"
)

// A cut is the way to a server, which ends after so many messages, as for a broker that
// is killed: the server has the last of them, and nobody has its answer.
type cut struct {
	mu   sync.Mutex
	left int // 0 for a way that does not end
	dead bool
	open []io.Closer
}

// newCut is a way of the broker's alone: users have the server's own address.
func newCut(t *testing.T, a hosted.Access) (*cut, hosted.Access) {
	t.Helper()
	c, l := &cut{}, listener(t)
	go testserver.Relay(l, net.JoinHostPort(a.Host, strconv.Itoa(a.Port)), func(server io.Writer) io.Writer {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.open = append(c.open, server.(io.Closer)); c.dead {
			c.end()
		}
		return messages{server, c}
	})
	a.PublicPort, a.Port = a.Port, l.Addr().(*net.TCPAddr).Port
	return c, a
}

// after has the way end with the nth message from now; whole mends it, and tells whether it had ended.
func (c *cut) after(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
}

func (c *cut) whole() (ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended = c.dead
	c.left, c.dead = 0, false
	return ended
}

// end closes what is open.
func (c *cut) end() {
	c.dead = true
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.open = nil
}

// messages count as they reach the server.
type messages struct {
	io.Writer
	*cut
}

func (m messages) Write(message []byte) (int, error) {
	n, err := m.Writer.Write(message)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == 1 {
		m.end()
	}
	m.left = max(m.left-1, 0)
	return n, err
}

// A server that falls silent when a step gives up a batch that was refused does not hold the step: it ends with its time.
func TestASilentServerHoldsNoStep(t *testing.T) {
	t.Parallel()
	ctx, expire := context.WithCancel(t.Context())
	err := postgres.Undone(ctx, pgtest.Start(t, "17").Access(), func(c net.Conn) net.Conn { return silent{c, expire} })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the step says %v", err)
	}
}

// A silent connection sends no ROLLBACK: the time of the step is over instead.
type silent struct {
	net.Conn
	expire func()
}

func (s silent) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("ROLLBACK")) {
		s.expire()
		return len(b), nil
	}
	return s.Conn.Write(b)
}

// sessionsOf counts the sessions of a login.
const sessionsOf = `SELECT count(*) FROM pg_stat_activity WHERE usename = $1`

// A broker that is killed at any message to the server leaves no role lent to its login:
// neither when the same step is repeated, nor when an unbind overtakes it.
func TestAKilledBrokerLeavesNoRoleLent(t *testing.T) {
	t.Parallel()
	s := pgtest.New(t, "17") // others' locks hold up an unbind by seconds
	const citext = `{"extensions":["citext"]}`
	type killed struct {
		prepare func()
		step    providertest.Step
		finish  func(n int)
	}
	for name, of := range map[string]func(t *testing.T, d, other *desk) killed{
		"Unbind": func(t *testing.T, d, other *desk) killed {
			theirs := other.as("theirs")
			exec(t, theirs, `CREATE TABLE t ()`)
			return killed{func() {
				a := d.bind("a", "")
				exec(t, login(t, a), `SET ROLE NONE`, `SELECT lo_create(0)`)
				exec(t, theirs, `GRANT SELECT ON t TO `+user(a))
			}, d.unbinding("a", operation.Unbind), func(int) { d.unbind("a") }}
		},
		"ReaderBind": func(t *testing.T, d, _ *desk) killed {
			tenant, reader := d.as("tenant"), d.binding("reader", readOnly)
			return killed{func() {
				exec(t, tenant, `ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM `+d.readers())
			}, calling(d.p.Bind, &reader), func(n int) {
				if n%2 == 0 {
					d.reads("reader")
				}
				d.unbind("reader")
			}}
		},
		"Update": func(_ *testing.T, d, _ *desk) killed {
			updates := 0
			update := func() providertest.Step { return d.updating(fmt.Sprint("op-update-", updates), citext, citext) }
			return killed{func() { updates++ }, func(ctx context.Context) (provider.Status, error) { return update()(ctx) },
				func(int) { d.must(update()) }}
		},
	} {
		access := s.Access()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			way, access := newCut(t, access)
			d := newDesk(t, access, pool(1))
			d.in.Snapshot = []byte(citext)
			d.provision()
			other := d.life("other", "op-other")
			other.provision()
			super, tc := expect.Get(pgx.Connect(t.Context(), s.Superuser("postgres")))(t), of(t, d, other)
			defer end(super)
			for n, ended := 1, true; ended; n++ {
				tc.prepare()
				way.after(n)
				_, err := tc.step(t.Context())
				if ended = way.whole(); !ended && err != nil {
					t.Fatal(err)
				}
				for ended && value[int](t, super, sessionsOf, access.User) > 0 { // the server may not have read the last message yet
					time.Sleep(time.Millisecond)
				}
				tc.finish(n)
				keepersAlone(t, super, fmt.Sprint("killed at message ", n), access.User)
				if !ended && n < 10 {
					t.Errorf("it takes %d messages: nothing is shown", n)
				}
			}
		})
	}
}
