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

// A warm connection is one that a long-running program keeps from the first step at a server on. It is used
// when nobody can connect any more.
//
// Hazard: all sessions share one table of locks, which any of them can fill. Then connecting or revoking
// anything fails for want of a lock, even the unbind of the binding that has filled the table. So the warm
// connection holds some locks in reserve. It releases them to end the sessions that hold the other locks, by
// their processes: for that, the broker's login needs pg_signal_backend.
type warm struct {
	mu       sync.Mutex
	conn     *pgx.Conn
	identity string // the server's identity
	reserved bool
}

const (
	// warmTimeout is how long a question on the warm connection may take.
	warmTimeout = 5 * time.Second
	// reserving takes as many locks as one statement may need.
	reserving = `SELECT count(pg_advisory_lock(pg_backend_pid(), i)) FROM generate_series(1, 50) i`
	// ending ends the sessions of a role.
	ending = `SELECT count(*) FILTER (WHERE pg_terminate_backend(s.pid, 500)) FROM pg_stat_get_activity(NULL) s
WHERE s.usesysid = to_regrole($1)`
	// most finds the process that holds the most locks. The query itself takes no lock; reading whose process
	// it is would.
	most = `SELECT pid, count(*) FROM pg_lock_status() GROUP BY 1 ORDER BY 2 DESC LIMIT 1`
)

// keepWarm opens the warm connection if there is none. If that fails, the step goes on without one. It runs
// the queries once, so that the server has in memory what they need.
func (s *sqlServer) keepWarm(ctx context.Context, identity string) {
	if s.pool == nil || !s.warm.mu.TryLock() {
		return // another step is using it, or waits for a server that does not answer
	}
	defer s.warm.mu.Unlock()
	w := &s.warm
	if w.conn == nil || w.conn.IsClosed() || w.conn.Ping(ctx) != nil {
		cfg := s.cfg.Copy()
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

// onWarm runs a query on the warm connection, and reports whether that worked.
func (s *sqlServer) onWarm(ctx context.Context, ask func(context.Context, *warm) error) bool {
	s.warm.mu.Lock()
	defer s.warm.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	return s.warm.conn != nil && !s.warm.conn.IsClosed() && ask(ctx, &s.warm) == nil
}

func (s *sqlServer) coolDown() {
	s.warm.mu.Lock()
	defer s.warm.mu.Unlock()
	if s.warm.conn != nil {
		end(s.warm.conn)
	}
}

// keptTo returns the server that is kept for a target; nil if there is none.
func (p *Provider) keptTo(target string) *sqlServer {
	if p.Pool == 0 {
		return nil
	}
	if at, err := p.Reach(provider.Target{Name: target}); err == nil {
		real, _ := at.Server.(*sqlServer)
		return real
	}
	return nil
}

// expel ends the sessions of a binding that block its unbind, and reports whether there were any. The warm
// connection is used only if its server has proven to be the binding's target.
func (p *Provider) expel(ctx context.Context, b provider.Binding, cause error) bool {
	if class := classOf(cause); class != noLocks && class != crowded {
		return false
	}
	s := p.keptTo(b.Instance.Target.Name)
	if s == nil {
		return false
	}
	ended := 0
	return s.onWarm(ctx, func(ctx context.Context, w *warm) error {
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

// detail names the process that holds the most locks.
func (p *Provider) detail(target string, class hosted.Class) (more string) {
	s := p.keptTo(target)
	if class != noLocks || s == nil {
		return ""
	}
	s.onWarm(context.Background(), func(ctx context.Context, w *warm) error {
		var pid, locks int
		err := w.conn.QueryRow(ctx, most).Scan(&pid, &locks)
		if err == nil {
			more = fmt.Sprintf(". The process %d has %d", pid, locks)
		}
		return err
	})
	return more
}
