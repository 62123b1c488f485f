package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A warm connection is kept to a server from the first step on, by a program that lives
// longer than a step, and does nothing until nobody gets in any more.
//
// Hazard: all sessions share one table of locks, which any of them can fill. Whoever
// connects then, or revokes anything, is refused for want of a lock: also the unbind of
// who has filled it. So the connection has some locks in reserve. It gives them up to end
// the sessions that have the others, by their processes: for that the broker's login
// needs pg_signal_backend.
type warm struct {
	mu       sync.Mutex
	conn     *pgx.Conn
	identity string // of the server that it leads to
	reserved bool
}

const (
	// warmTimeout is how long the warm connection is waited for.
	warmTimeout = 5 * time.Second
	// reserving takes what one statement may need.
	reserving = `SELECT count(pg_advisory_lock(pg_backend_pid(), i)) FROM generate_series(1, 50) i`
	// ending ends the sessions of a role.
	ending = `SELECT count(*) FILTER (WHERE pg_terminate_backend(s.pid, 500)) FROM pg_stat_get_activity(NULL) s
WHERE s.usesysid = to_regrole($1)`
	// most is which process has most locks. It needs none itself, unlike whose it is.
	most = `SELECT pid, count(*) FROM pg_lock_status() GROUP BY 1 ORDER BY 2 DESC LIMIT 1`
)

// keepWarm sees that there is such a connection. A step goes on without one. What it will
// ask is asked once, so that the server has read what it needs for that.
func (d *dialer) keepWarm(ctx context.Context, identity string) {
	if d.pool == nil || !d.warm.mu.TryLock() {
		return // or somebody is at it, or waits for a server that does not answer
	}
	defer d.warm.mu.Unlock()
	w := &d.warm
	if w.conn == nil || w.conn.IsClosed() || w.conn.Ping(ctx) != nil {
		cfg := d.cfg.Copy()
		cfg.RuntimeParams["idle_session_timeout"] = "0"
		c, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return
		}
		w.conn, w.identity, w.reserved = c, identity, false
		_, _ = c.Exec(ctx, ending, "nobody")
		_, _ = c.Exec(ctx, most)
	}
	if !w.reserved {
		_, err := w.conn.Exec(ctx, reserving)
		w.reserved = err == nil
	}
}

// onWarm asks on the warm connection; false if that cannot be.
func (d *dialer) onWarm(ctx context.Context, ask func(context.Context, *warm) error) bool {
	d.warm.mu.Lock()
	defer d.warm.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	return d.warm.conn != nil && !d.warm.conn.IsClosed() && ask(ctx, &d.warm) == nil
}

func (d *dialer) coolDown() {
	d.warm.mu.Lock()
	defer d.warm.mu.Unlock()
	if d.warm.conn != nil {
		end(d.warm.conn)
	}
}

// keptTo is the way to a target that is kept; nil if none is.
func (p *Provider) keptTo(target string) *dialer {
	if p.Pool == 0 {
		return nil
	}
	if at, err := p.Reach(provider.Target{Name: target}); err == nil {
		if real, ok := at.Server.(sqlServer); ok {
			return real.dialer
		}
	}
	return nil
}

// expel ends the sessions of a binding that keep its own unbind from being made, and
// reports whether there were some. The connection's server has proven who it is.
func (p *Provider) expel(ctx context.Context, b provider.Binding, cause error) bool {
	if class := classOf(cause); class != noLocks && class != crowded {
		return false
	}
	d := p.keptTo(b.Instance.Target.Name)
	if d == nil {
		return false
	}
	ended := 0
	return d.onWarm(ctx, func(ctx context.Context, w *warm) error {
		if w.identity != b.Instance.Target.Identity {
			return hosted.ErrChanged
		}
		w.reserved = false
		if _, err := w.conn.Exec(ctx, "SELECT pg_advisory_unlock_all()"); err != nil {
			return err
		}
		return w.conn.QueryRow(ctx, ending, namesOf(provider.BindingTagsOf(b)).login).Scan(&ended)
	}) && ended > 0
}

// detail tells which process has all locks.
func (p *Provider) detail(target string, class hosted.Class) (more string) {
	d := p.keptTo(target)
	if class != noLocks || d == nil {
		return ""
	}
	d.onWarm(context.Background(), func(ctx context.Context, w *warm) error {
		var pid, locks int
		err := w.conn.QueryRow(ctx, most).Scan(&pid, &locks)
		if err == nil {
			more = fmt.Sprintf(". The process %d has %d", pid, locks)
		}
		return err
	})
	return more
}
